//! Bundles of CA certificates, in PEM (RFC 7468).
//!
//! It knows nothing of who trusts a bundle. [`super::handover`] passes bundles between certificates and registration.

use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeSet;

/// CA certificates in DER, each once and in a fixed order, so that two replicas write the same bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaBundle(BTreeSet<Box<[u8]>>);

impl CaBundle {
    /// Reads the certificates of a PEM text and skips everything else.
    pub fn from_pem(pem: impl AsRef<[u8]>) -> Self {
        let certificates = CertificateDer::pem_slice_iter(pem.as_ref()).filter_map(Result::ok);
        certificates.map(|certificate| Box::from(certificate.as_ref())).collect()
    }

    /// Encodes the certificates as PEM.
    pub(crate) fn to_pem(&self) -> String {
        self.iter().map(certificate_to_pem).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the certificates, DER.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Returns true if `certificate`, DER, is in the bundle.
    pub(crate) fn contains(&self, certificate: &[u8]) -> bool {
        self.0.contains(certificate)
    }

    /// Returns true if every certificate of `other` is in the bundle.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        other.0.is_subset(&self.0)
    }

    pub(crate) fn union(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.0.intersection(&other.0).cloned().collect()
    }
}

impl FromIterator<Box<[u8]>> for CaBundle {
    fn from_iter<I: IntoIterator<Item = Box<[u8]>>>(certificates: I) -> Self {
        Self(certificates.into_iter().collect())
    }
}

/// Encodes one DER certificate as PEM.
pub(crate) fn certificate_to_pem(der: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", der), config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    fn certificate() -> String {
        CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn order_and_line_ends_do_not_change_a_bundle() {
        let (one, other) = (certificate(), certificate());
        let bundle = CaBundle::from_pem(format!("{one}{other}"));
        let same = format!("# a comment\n{other}\n{one}{other}").replace('\n', "\r\n");
        assert_eq!(bundle, CaBundle::from_pem(same));
        assert_eq!(bundle.to_pem().matches("BEGIN").count(), 2);
        assert_eq!(CaBundle::from_pem(bundle.to_pem()), bundle);
        assert_eq!(bundle.intersection(&CaBundle::from_pem(&one)), CaBundle::from_pem(&one));
        assert!(CaBundle::from_pem("nonsense").is_empty());
    }
}
