//! Certificate authorities, and the serving certificates that they sign: ECDSA P-256, in PEM.
//!
//! It knows no disk: callers decide where a key is kept, and pass times in except for development. [`crate::controllers`] keep an
//! authority in a Secret; [`crate::webhook`] serves with a [`CertificatePair`].
//!
//! Every certificate has a key of its own. Its serial number is taken from the hash of its public key, so it is random
//! (RFC 5280, 4.1.2.2).

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time between the beginning of a validity and the making of the certificate, in case another clock is behind.
pub const BACKDATED: Duration = Duration::from_hours(1);

/// Names of a server on this machine.
pub const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Longest common name, in characters (RFC 5280, `ub-common-name`). Clients read the alternative names only.
const LONGEST_COMMON_NAME: usize = 64;

/// The time in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// First moment, in whole seconds.
    pub not_before: SystemTime,
    /// Last moment, in whole seconds.
    pub not_after: SystemTime,
}

impl Validity {
    /// Returns a validity that ends `lifetime` after `now` and begins [`BACKDATED`] before it.
    pub fn new(now: SystemTime, lifetime: Duration) -> Self {
        Self { not_before: now - BACKDATED, not_after: now + lifetime }
    }
}

/// A text that is not an X.509 certificate.
pub type X509Fault = x509_parser::asn1_rs::Err<x509_parser::error::X509Error>;

/// Returns the seconds since 1970 in which a certificate, DER, is valid.
pub fn valid_seconds(certificate: &[u8]) -> Result<RangeInclusive<i64>, X509Fault> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate)?;
    let validity = certificate.validity();
    Ok(validity.not_before.timestamp()..=validity.not_after.timestamp())
}

/// Returns a time in whole seconds since 1970.
pub fn since_1970(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// An error of making or signing a certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// A name is neither a DNS name nor an IP address.
    #[error("a certificate cannot have this name; use a DNS name or an IP address")]
    Name(#[source] rcgen::Error),
    /// A key cannot be made, parsed or used.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
}

/// A certificate authority (CA) with its private key.
pub struct CertificateAuthority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl CertificateAuthority {
    /// Makes a CA whose common name is `name` followed by a part of its key's hash.
    ///
    /// No two such CAs share a name. Clients find the issuer in a bundle by its name.
    pub fn unique(name: &str, validity: Validity) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let hash = CertificateParams::default().key_identifier(&key);
        let hash = hash.first_chunk().map_or(0, |it| u32::from_be_bytes(*it));
        Self::with_key(&format!("{name} {hash:08x}"), validity, key)
    }

    /// Makes a CA with exactly this common name.
    pub fn new(common_name: &str, validity: Validity) -> Result<Self, AuthorityError> {
        Self::with_key(common_name, validity, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
    }

    fn with_key(common_name: &str, validity: Validity, key: KeyPair) -> Result<Self, AuthorityError> {
        let mut params = params(common_name, validity, CertificateParams::default());
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// Reads a CA from PEM. The caller checks that the key belongs to the certificate.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let issuer = Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(key)?)?;
        Ok(Self { certificate: certificate.to_owned(), issuer })
    }

    /// Returns the CA's own certificate, PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the CA's private key, PEM.
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Signs a certificate with a new key for a server with these DNS names and IP addresses.
    pub fn issue(
        &self,
        common_name: &str,
        names: &[String],
        validity: Validity,
    ) -> Result<CertificatePair, AuthorityError> {
        let params_of_names = CertificateParams::new(names).map_err(AuthorityError::Name)?;
        let mut params = params(common_name, validity, params_of_names);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(CertificatePair { chain: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Makes a CA with this common name, and a certificate of it for a server with these names. Both are valid for a year.
pub fn for_development(
    authority: &str,
    common_name: &str,
    names: &[String],
) -> Result<(CertificateAuthority, CertificatePair), AuthorityError> {
    let validity = Validity::new(SystemTime::now(), Duration::from_hours(365 * 24));
    let authority = CertificateAuthority::new(authority, validity)?;
    let pair = authority.issue(common_name, names, validity)?;
    Ok((authority, pair))
}

/// A serving certificate and its private key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificatePair {
    /// The server's certificate first, then any intermediate CAs.
    pub chain: String,
    /// Private key of the first certificate.
    pub key: String,
}

impl fmt::Debug for CertificatePair {
    /// Omits the private key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CertificatePair").field("chain", &self.chain).finish_non_exhaustive()
    }
}

/// The pair to serve with, or the reason why there is none yet.
pub type ServingCertificate = Result<Arc<CertificatePair>, Arc<str>>;

fn params(common_name: &str, validity: Validity, mut params: CertificateParams) -> CertificateParams {
    let common_name: String = common_name.chars().take(LONGEST_COMMON_NAME).collect();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = validity.not_before.into();
    params.not_after = validity.not_after.into();
    params
}
