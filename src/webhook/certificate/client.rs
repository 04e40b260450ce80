//! Verification of clients by name, in addition to their CA.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// Accepts only client certificates that another verifier accepts and that have one of these names.
#[derive(Debug)]
pub(super) struct NamedClients {
    inner: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
}

impl NamedClients {
    pub(super) fn new(inner: Arc<dyn ClientCertVerifier>, names: Vec<String>) -> Self {
        Self { inner, names }
    }

    fn has_accepted_name(&self, certificate: &X509Certificate<'_>) -> bool {
        let wanted = |name: &str| self.names.iter().any(|it| it == name);
        let alternatives = certificate.subject_alternative_name().ok().flatten();
        certificate.subject().iter_common_name().filter_map(|it| it.as_str().ok()).any(wanted)
            || alternatives.iter().flat_map(|it| &it.value.general_names).any(|name| {
                matches!(name, GeneralName::DNSName(it) | GeneralName::RFC822Name(it) | GeneralName::URI(it) if wanted(it))
            })
    }
}

impl ClientCertVerifier for NamedClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        let (_, certificate) =
            x509_parser::parse_x509_certificate(end_entity).map_err(|_| CertificateError::BadEncoding)?;
        if self.has_accepted_name(&certificate) {
            Ok(verified)
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
