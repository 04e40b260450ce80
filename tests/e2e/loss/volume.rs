//! A Secret as a kubelet mounts it: every file is a link through `..data`, and an update is the swap of that one link.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::support::pki::ServingCertificate;
use crate::support::process::Workspace;
use fixtures::certificates::TestAuthority;

/// The mounted Secret of one replica.
pub(crate) struct Volume {
    workspace: Workspace,
    updates: u32,
}

impl Volume {
    /// With a certificate of `authority` and these trusted authorities (PEM).
    pub(crate) fn new(authority: &TestAuthority, trusted: &str) -> Self {
        let mut volume = Self { workspace: Workspace::new("volume"), updates: 0 };
        for file in ["tls.crt", "tls.key", "ca.crt"] {
            symlink(Path::new("..data").join(file), volume.path().join(file)).expect("a link can be made");
        }
        volume.renew(authority, trusted);
        volume
    }

    /// Returns the folder that a replica reads.
    pub(crate) fn path(&self) -> &Path {
        self.workspace.path()
    }

    /// The certificate that is to be served.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.read("tls.crt").as_bytes()).expect("a certificate is PEM")
    }

    /// The trusted authorities, PEM.
    pub(crate) fn trusted(&self) -> String {
        self.read("ca.crt")
    }

    /// The same Secret with a new certificate.
    pub(crate) fn renew(&mut self, authority: &TestAuthority, trusted: &str) {
        let next = self.next();
        ServingCertificate::issue(authority, &next);
        fs::write(next.join("ca.crt"), trusted).expect("a file can be written");
        self.swap(&next);
    }

    /// The same Secret with other trusted authorities.
    pub(crate) fn trust(&mut self, trusted: &str) {
        let next = self.next();
        fs::create_dir(&next).expect("a folder can be made");
        for file in ["tls.crt", "tls.key"] {
            fs::write(next.join(file), self.read(file)).expect("a file can be written");
        }
        fs::write(next.join("ca.crt"), trusted).expect("a file can be written");
        self.swap(&next);
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).expect("a mounted file can be read")
    }

    fn next(&mut self) -> PathBuf {
        self.updates += 1;
        self.path().join(format!("..2026_01_01_00_00_00.{:09}", self.updates))
    }

    /// As a kubelet does it: another link takes the place of the one that is there, then the old folder goes.
    fn swap(&self, next: &Path) {
        let (data, fresh) = (self.path().join("..data"), self.path().join("..data_tmp"));
        let before = fs::read_link(&data).ok();
        symlink(next.file_name().expect("a folder has a name"), &fresh).expect("a link can be made");
        fs::rename(&fresh, &data).expect("a link can be renamed");
        if let Some(before) = before {
            fs::remove_dir_all(self.path().join(before)).expect("the folder before can be removed");
        }
    }
}
