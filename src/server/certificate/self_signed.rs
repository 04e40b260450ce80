//! A certificate for trying things out: a CA of its own that nothing else trusts, and a leaf for this machine.

use super::{CertificateError, ClientPolicy, Contents, read_client_ca};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Clocks differ: it is valid from an hour ago.
const SKEW: Duration = Duration::from_hours(1);
const LIFETIME: Duration = Duration::from_hours(365 * 24);

/// Makes both, and writes the CA's certificate to `ca_file`. The keys stay in memory.
pub(super) fn make(ca_file: &Path, clients: Option<&ClientPolicy>) -> Result<Contents, CertificateError> {
    let (ca, chain, key) = generate().map_err(CertificateError::SelfSigned)?;
    write(ca_file, ca.as_bytes()).map_err(|source| CertificateError::Write { path: ca_file.to_owned(), source })?;
    Ok(Contents { chain: chain.into_bytes(), key: key.into_bytes(), client_ca: read_client_ca(clients)? })
}

/// The CA's certificate, the leaf's and the leaf's key, PEM.
fn generate() -> Result<(String, String, String), rcgen::Error> {
    let now = SystemTime::now();

    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "kube-unions self-signed CA");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    ca.not_before = (now - SKEW).into();
    ca.not_after = (now + LIFETIME).into();
    let ca_key = KeyPair::generate()?;
    let ca_certificate = ca.self_signed(&ca_key)?;
    let issuer = Issuer::new(ca, ca_key);

    let mut leaf = CertificateParams::new(NAMES.map(str::to_owned))?;
    leaf.distinguished_name.push(DnType::CommonName, "kube-unions");
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    leaf.not_before = (now - SKEW).into();
    leaf.not_after = (now + LIFETIME).into();
    let leaf_key = KeyPair::generate()?;
    let leaf_certificate = leaf.signed_by(&leaf_key, &issuer)?;

    Ok((ca_certificate.pem(), leaf_certificate.pem(), leaf_key.serialize_pem()))
}

/// Whole or not at all, so that nobody reads half a file; and never through a link that somebody else has laid.
fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let result = OpenOptions::new().write(true).create_new(true).open(&new).and_then(|mut file| {
        file.write_all(contents)?;
        std::fs::rename(&new, path)
    });
    if result.is_err() {
        // Best effort: the first error is the one to report.
        std::fs::remove_file(&new).ok();
    }
    result
}
