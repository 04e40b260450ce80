//! Certificate authorities and the serving certificates that they sign. Everything is ECDSA P-256, and PEM.
//!
//! It knows no clock and no disk: times are given to it, and where a key is kept is its user's business. A serial number
//! is taken from the hash of a public key (RFC 5280, 4.1.2.2), which is random because every certificate has a key of its
//! own.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Clocks differ: what is valid from now on is not yet valid elsewhere.
pub const BACKDATED: Duration = Duration::from_hours(1);

/// The names of a server on this machine.
pub const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// RFC 5280 bounds a common name to so many characters. Clients look at the alternative names only.
const LONGEST_COMMON_NAME: usize = 64;

/// From when until when a certificate may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first moment, whole seconds.
    pub not_before: SystemTime,
    /// The last.
    pub not_after: SystemTime,
}

impl Validity {
    /// For so long from `now`, and since [`BACKDATED`] ago.
    pub fn new(now: SystemTime, lifetime: Duration) -> Self {
        Self { not_before: now - BACKDATED, not_after: now + lifetime }
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// A server cannot have such a name.
    #[error("a name is not one that a certificate can have")]
    Name(#[source] rcgen::Error),
    /// A key could not be made, or nothing signed with it.
    #[error("no certificate could be made")]
    Make(#[from] rcgen::Error),
}

/// A certificate authority with its key.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one. `name` and the beginning of its key's hash are its common name, so that no two have the same: what
    /// verifies a chain looks for the issuer by name.
    pub fn unique(name: &str, validity: Validity) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let hash = CertificateParams::default().key_identifier(&key);
        let hash = hash.first_chunk().map_or(0, |it| u32::from_be_bytes(*it));
        Self::with_key(&format!("{name} {hash:08x}"), validity, key)
    }

    /// A new one with exactly this common name.
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

    /// One that exists. Whether the key is that of the certificate is for the caller to know.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let issuer = Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(key)?)?;
        Ok(Self { certificate: certificate.to_owned(), issuer })
    }

    /// Its own certificate.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its private key.
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A certificate for a server with these names and addresses, and a new key.
    pub fn issue(&self, common_name: &str, names: &[String], validity: Validity) -> Result<Pair, AuthorityError> {
        let params_of_names = CertificateParams::new(names).map_err(AuthorityError::Name)?;
        let mut params = params(common_name, validity, params_of_names);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Pair { chain: certificate.pem(), key: key.serialize_pem() })
    }
}

impl fmt::Debug for Authority {
    /// Never shows the key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// What a server serves with.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// Its certificate first, then those that lead to its authority.
    pub chain: String,
    /// Its private key.
    pub key: String,
}

impl fmt::Debug for Pair {
    /// Never shows the key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pair").field("chain", &self.chain).finish_non_exhaustive()
    }
}

/// A pair from whoever makes them, for whoever serves with them; or why there is none yet.
pub type Offer = Result<Arc<Pair>, Arc<str>>;

fn params(common_name: &str, validity: Validity, mut params: CertificateParams) -> CertificateParams {
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name.chars().take(LONGEST_COMMON_NAME).collect::<String>());
    params.not_before = validity.not_before.into();
    params.not_after = validity.not_after.into();
    params
}
