//! The rules by which the API server, a Go program, judges each certificate of a chain.
//!
//! It looks at one certificate. [`super::chain`] knows which certificates count.

use super::source::CertificateFault;
use crate::authority::X509Fault;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::public_key::PublicKey;
use x509_parser::signature_algorithm::SignatureAlgorithm;

/// Signatures with a broken hash function, and such functions in the parameters of RSASSA-PSS: object identifier and function.
const BROKEN: [(&str, &str); 9] = [
    ("1.2.840.113549.1.1.2", "MD2"),
    ("1.2.840.113549.1.1.4", "MD5"),
    ("1.2.840.113549.1.1.5", "SHA-1"),
    ("1.3.14.3.2.29", "SHA-1"),
    ("1.2.840.10040.4.3", "SHA-1"),
    ("1.2.840.10045.4.1", "SHA-1"),
    ("1.2.840.113549.2.2", "MD2"),
    ("1.2.840.113549.2.5", "MD5"),
    ("1.3.14.3.2.26", "SHA-1"),
];

/// The object identifier of RSASSA-PSS, whose parameters name the hash function.
const PSS: &str = "1.2.840.113549.1.1.10";

/// The object identifier of a key of ECDSA, whose parameters name the curve.
const ECDSA: &str = "1.2.840.10045.2.1";

/// The curves of Go: P-224, P-256, P-384 and P-521.
const CURVES: [&str; 4] = ["1.3.132.0.33", "1.2.840.10045.3.1.7", "1.3.132.0.34", "1.3.132.0.35"];

/// Largest RSA key, in bits, with which Go's TLS accepts a certificate.
const LARGEST_RSA: usize = 8192;

/// Smallest RSA key, in bits, whose signatures Go accepts.
const SMALLEST_RSA: usize = 1024;

/// Extensions that Go reads. With another one that is critical, it refuses a certificate.
const READ_BY_GO: [&str; 12] = [
    "2.5.29.14",
    "2.5.29.15",
    "2.5.29.17",
    "2.5.29.19",
    "2.5.29.30",
    "2.5.29.31",
    "2.5.29.32",
    "2.5.29.33",
    "2.5.29.35",
    "2.5.29.36",
    "2.5.29.37",
    "2.5.29.54",
];

/// Extensions that rustls reads. With another one that is critical, it does not serve a certificate.
const READ_BY_RUSTLS: [&str; 6] = ["2.5.29.15", "2.5.29.17", "2.5.29.19", "2.5.29.30", "2.5.29.31", "2.5.29.37"];

/// Parses a certificate, DER. Bytes behind it are an error, as for Go.
pub(super) fn parsed<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, X509Fault> {
    match x509_parser::parse_x509_certificate(der)? {
        ([], certificate) => Ok(certificate),
        (_, _) => Err(X509Fault::Error(X509Error::InvalidCertificate)),
    }
}

/// Returns the reason why clients refuse a certificate at any time: the serving one, or one that signed another.
pub(super) fn fault_of(certificate: &X509Certificate<'_>) -> Result<Option<CertificateFault>, X509Fault> {
    if let Some(extension) = unread_extension(certificate, &READ_BY_GO) {
        return Ok(Some(CertificateFault::Extension(extension)));
    }
    let usage = certificate.extended_key_usage()?;
    Ok(if usage.is_some_and(|usage| !usage.value.any && !usage.value.server_auth) {
        Some(CertificateFault::Usage)
    } else {
        broken_hash(certificate).map(CertificateFault::Hash)
    })
}

/// Returns the reason why clients refuse what a certificate signed.
pub(super) fn fault_of_issuer(certificate: &X509Certificate<'_>) -> Result<Option<CertificateFault>, X509Fault> {
    let is_authority = certificate.basic_constraints()?.is_some_and(|it| it.value.ca)
        && certificate.key_usage()?.is_none_or(|it| it.value.key_cert_sign());
    Ok(if !is_authority {
        Some(CertificateFault::NoAuthority)
    } else if rsa_bits(certificate).is_some_and(|bits| bits < SMALLEST_RSA) {
        Some(CertificateFault::Key)
    } else {
        fault_of(certificate)?
    })
}

/// Returns true if clients can read the key of a certificate. Otherwise they refuse every chain that has it.
pub(super) fn has_known_key(certificate: &X509Certificate<'_>) -> bool {
    let algorithm = &certificate.public_key().algorithm;
    if algorithm.algorithm.to_id_string() != ECDSA {
        return rsa_bits(certificate).is_none_or(|bits| bits <= LARGEST_RSA);
    }
    let curve = algorithm.parameters.as_ref().and_then(|it| it.as_oid().ok());
    curve.is_some_and(|it| CURVES.contains(&&*it.to_id_string()))
}

/// Returns the broken hash function of the signature of a certificate; `None` if Go programs accept it.
///
/// Go has refused MD5 and SHA-1 since 1.18. It looks at no signature of a certificate that it trusts as a CA: one that signs itself can
/// only be that.
fn broken_hash(certificate: &X509Certificate<'_>) -> Option<&'static str> {
    if certificate.subject().as_raw() == certificate.issuer().as_raw() {
        return None;
    }
    let mut identifier = certificate.signature_algorithm.algorithm.to_id_string();
    if identifier == PSS
        && let Ok(SignatureAlgorithm::RSASSA_PSS(parameters)) =
            SignatureAlgorithm::try_from(&certificate.signature_algorithm)
    {
        identifier = parameters.hash_algorithm_oid().to_id_string();
    }
    BROKEN.iter().find(|(broken, _)| *broken == identifier).map(|(_, name)| *name)
}

/// Returns the size of the RSA key of a certificate in bits; `None` if its key is another one.
pub(super) fn rsa_bits(certificate: &X509Certificate<'_>) -> Option<usize> {
    match certificate.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => Some(key.key_size()),
        Ok(_) | Err(_) => None,
    }
}

/// Returns the object identifier of the extension because of which rustls does not serve a certificate.
pub(super) fn unserved_extension(certificate: &X509Certificate<'_>) -> Option<String> {
    unread_extension(certificate, &READ_BY_RUSTLS)
}

/// Returns the object identifier of a critical extension that is not among those that are read.
fn unread_extension(certificate: &X509Certificate<'_>, read: &[&str]) -> Option<String> {
    let critical = certificate.extensions().iter().filter(|it| it.critical).map(|it| it.oid.to_id_string());
    critical.into_iter().find(|it| !read.contains(&&**it))
}

/// Returns true if clients that ask for `name` accept the names of a certificate. For the name of a Service, Go's rules for
/// wildcards, case and trailing dots are those of webpki.
pub(super) fn has_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    ParsedCertificate::try_from(certificate).is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
}
