//! Certificates and keys for the servers of one test run, signed by an authority made for it.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// A certificate authority. Its key never leaves memory.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().expect("a key can be made");
        let pem = params.self_signed(&key).expect("a certificate can be signed").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// The authority's own certificate, PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Writes `tls.crt`, `tls.key` and `ca.crt` for a server on loopback, or behind the webhook's Service, into `folder`.
    pub(crate) fn issue(&self, folder: &Path) -> ServingCertificate {
        let names = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc", "kube-unions.kube-unions.svc"];
        let names = names.map(str::to_owned);
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new(names).expect("the names are valid");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate can be signed");
        fs::create_dir_all(folder).expect("a folder can be made");
        let serving = ServingCertificate { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
        fs::write(&serving.certificate, certificate.pem()).expect("a certificate can be written");
        fs::write(folder.join("ca.crt"), &self.pem).expect("a certificate can be written");
        fs::write(&serving.key, key.serialize_pem()).expect("a key can be written");
        serving
    }
}

/// Where a server's certificate and key are.
pub(crate) struct ServingCertificate {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// A key pair as the API server wants it for service account tokens: private key and public key, both PEM.
pub(crate) fn signing_key_pair() -> (String, String) {
    let key = KeyPair::generate().expect("a key can be made");
    (key.serialize_pem(), key.public_key_pem())
}
