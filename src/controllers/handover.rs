//! What controllers tell each other: the CA bundle, and the kinds that policies enforce instead of the webhook.
//!
//! Certificates send the CAs to trust; registration writes them into the webhook configurations and reports which CAs
//! these hold. A new certificate is served only after the configurations hold its CA, and a CA stays in the configurations
//! while any replica serves a certificate that it signed.
//!
//! Every kind is enforced by policies or by the webhook at any time. The registration drops a kind only when the [`Coverage`] says
//! that policies enforce it. The policies of a kind are deleted only when [`RegisteredKinds`] has had the kind for a while.

use kube_unions_core::names::GroupKind;
use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::Instant;

/// CA certificates in DER, each once and in a fixed order, so that two replicas write the same bytes.
pub type CaBundle = BTreeSet<Box<[u8]>>;

/// Reads the certificates of a PEM text and skips everything else.
pub fn ca_bundle(pem: impl AsRef<[u8]>) -> CaBundle {
    let certificates = CertificateDer::pem_slice_iter(pem.as_ref()).filter_map(Result::ok);
    certificates.map(|certificate| Box::from(certificate.as_ref())).collect()
}

/// Encodes one DER certificate as PEM.
pub(crate) fn certificate_to_pem(der: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", der), config)
}

/// Source of `caBundle`. PEM texts hold one certificate or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// The bundle that the replicas agreed on. The configurations hold it and nothing else.
    Agreed(Arc<str>),
    /// The bundle that was mounted into this replica. Other replicas may have a newer or older one, so registration keeps
    /// other CAs in the configurations for some minutes.
    Local(Arc<str>),
    /// cert-manager writes the bundle of this Certificate, `namespace/name`.
    InjectedFrom(Arc<str>),
}

/// CAs in the webhook configurations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RegisteredBundle {
    /// The configurations have not been read yet.
    #[default]
    Unknown,
    /// The configurations have no entries, so the API server calls no replica.
    Nothing,
    /// Every entry holds at least these CAs.
    Bundle(CaBundle),
}

impl RegisteredBundle {
    /// Returns true if every caller accepts certificates of all these CAs, or if there are no callers.
    pub fn holds(&self, authorities: &CaBundle) -> bool {
        authorities.iter().all(|authority| self.trusts(authority)) && *self != Self::Unknown
    }

    /// Returns true if every caller accepts certificates of this CA, DER, or if there are no callers.
    pub(crate) fn trusts(&self, authority: &[u8]) -> bool {
        match self {
            Self::Unknown => false,
            Self::Nothing => true,
            Self::Bundle(held) => held.contains(authority),
        }
    }
}

/// The kinds that the webhook leaves to policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// Not known yet. The registered rules stay as they are.
    Unknown,
    /// Policies enforce these kinds. The webhook is registered for all other kinds.
    Kinds(Arc<BTreeSet<GroupKind>>),
    /// The webhook is registered for no kind.
    Everything,
}

/// The kinds that the webhook is registered for, each with the time since when.
pub type RegisteredKinds = Arc<BTreeMap<GroupKind, Instant>>;

impl Coverage {
    /// Returns the coverage without policies.
    pub fn none() -> Self {
        Self::Kinds(Arc::default())
    }
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
        let bundle = ca_bundle(format!("{one}{other}"));
        let same = format!("# a comment\n{other}\n{one}{other}").replace('\n', "\r\n");
        assert_eq!(bundle, ca_bundle(same));
        let pem: String = bundle.iter().map(|it| certificate_to_pem(it)).collect();
        assert_eq!(pem.matches("BEGIN").count(), 2);
        assert_eq!(ca_bundle(pem), bundle);
        assert!(bundle.is_superset(&ca_bundle(&one)));
        assert!(ca_bundle("nonsense").is_empty());
    }
}
