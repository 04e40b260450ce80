//! The serving certificates of one test run.

use fixtures::certificates::TestAuthority;
use std::fs;
use std::path::{Path, PathBuf};

/// The names of the servers on loopback, and of the webhook behind its Service and behind that of a second installation.
const NAMES: [&str; 6] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default.svc",
    "kube-unions.kube-unions.svc",
    "unions.elsewhere.svc",
];

/// The files of a server's certificate and key.
pub(crate) struct ServingCertificate {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl ServingCertificate {
    /// Signs a certificate and writes `tls.crt`, `tls.key` and `ca.crt` into `folder`.
    pub(crate) fn issue(authority: &TestAuthority, folder: &Path) -> Self {
        let (chain, key) = authority.sign(&NAMES, |_| {});
        fs::create_dir_all(folder).expect("a folder can be made");
        let serving = Self { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
        fs::write(&serving.certificate, chain).expect("a certificate can be written");
        fs::write(folder.join("ca.crt"), authority.pem()).expect("a certificate can be written");
        fs::write(&serving.key, key).expect("a key can be written");
        serving
    }
}
