//! The data of the Secret: read into a [`CertificateState`], and written by a [`CertificatePlan`].
//!
//! Any data may be in the Secret. Unusable data counts as missing and is named as a fault; the plan for the rest replaces
//! it. This module knows no network; [`super::secret`] sends the data.

use super::plan::{CertificatePlan, LeafAction};
use super::state::{
    AUTHORITY_LIFETIME, Certificate, CertificateState, LEAF_LIFETIME, LONGEST, MOST, MOST_BYTES, RenewalCause, Seconds,
    StoredAuthority, StoredLeaf, find, make_room,
};
use crate::authority::{AuthorityError, CertificateAuthority, CertificatePair, Validity, valid_seconds};
use crate::controllers::handover::certificate_to_pem;
use k8s_openapi::ByteString;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use x509_parser::extensions::GeneralName;

/// Key of the serving certificate and its intermediates; the Secret's type demands it.
const CHAIN: &str = "tls.crt";
/// Key of the serving certificate's private key; the Secret's type demands it.
const KEY: &str = "tls.key";
/// Key of the bundle of CAs to trust, the newest first.
const BUNDLE: &str = "ca.crt";
/// Key of the private key of the first CA in the bundle.
const AUTHORITY_KEY: &str = "ca.key";

/// Common name, or its beginning, of every CA that a replica makes.
const OWN: &str = "kube-unions CA";

/// Fault of a bundle with CAs beyond [`MOST`], [`MOST_BYTES`] or [`LONGEST`].
const TOO_MANY: &str = "`ca.crt` holds more than 32 CAs, more than 64 KiB, or a CA of more than 16 KiB";

/// The data of a Secret, by key.
pub(super) type Data = BTreeMap<String, ByteString>;

/// The data of a Secret, parsed.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) state: CertificateState,
    /// The CA whose key is stored.
    signer: Option<CertificateAuthority>,
    /// Names the unusable data.
    pub(super) faults: Vec<&'static str>,
}

impl Contents {
    /// Parses the data for a server that clients call `name`.
    pub(super) fn read(data: &Data, name: &str) -> Self {
        let text = |key: &str| data.get(key).map_or(&b""[..], |value| &value.0);
        let mut this = Self::default();
        this.read_bundle(text(BUNDLE));
        this.read_authority_key(text(AUTHORITY_KEY));
        this.read_leaf(text(CHAIN), text(KEY), name);
        this.bound_bundle();
        this
    }

    fn fault(&mut self, fault: &'static str) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn read_bundle(&mut self, pem: &[u8]) {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let authority = certificate.ok().and_then(|der| read_authority(&der));
            match authority {
                Some(it) if it.certificate.len() > LONGEST => self.fault(TOO_MANY),
                Some(it) if find(&self.state.authorities, &it.certificate).is_some() => {}
                Some(it) => self.state.authorities.push(it),
                None => self.fault("`ca.crt` holds data that is not a CA"),
            }
        }
        if !is_blank(pem) && self.state.authorities.is_empty() && self.faults.is_empty() {
            self.fault("`ca.crt` holds no CA");
        }
    }

    /// Ignores CAs beyond the bounds. The CA whose key is stored stays, and the CA that signed the leaf.
    fn bound_bundle(&mut self) {
        let CertificateState { authorities, signer, leaf } = &mut self.state;
        let in_use = [signer.as_ref(), leaf.as_ref().map(|it| &it.issuer)];
        if make_room(authorities, 0, |it| in_use.contains(&Some(&it.certificate))) {
            self.fault(TOO_MANY);
        }
    }

    fn read_authority_key(&mut self, pem: &[u8]) {
        if is_blank(pem) {
            return;
        }
        let signer = std::str::from_utf8(pem).ok().and_then(|text| {
            let public = rcgen::KeyPair::from_pem(text).ok()?.public_key_raw().to_vec();
            let has_key = |it: &&StoredAuthority| public_key(&it.certificate).as_ref() == Some(&public);
            let certificate = &self.state.authorities.iter().find(has_key)?.certificate;
            // Some CAs can be trusted although we cannot sign for them.
            let signer = CertificateAuthority::from_pem(&certificate_to_pem(certificate), text).ok()?;
            Some((Certificate::clone(certificate), signer))
        });
        match signer {
            Some((certificate, signer)) => (self.state.signer, self.signer) = (Some(certificate), Some(signer)),
            None => self.fault("`ca.key` is not the key of a CA in `ca.crt`"),
        }
    }

    fn read_leaf(&mut self, chain: &[u8], key: &[u8], name: &str) {
        if is_blank(chain) && is_blank(key) {
            return;
        }
        match read_pair(chain, key) {
            Some((pair, certificates)) => self.state.leaf = verify(pair, &certificates, &self.state.authorities, name),
            None if chain.len() > MOST_BYTES => self.fault("`tls.crt` is longer than 64 KiB"),
            None => self.fault("`tls.crt` and `tls.key` cannot be used together"),
        }
    }

    /// Returns the next data of the Secret.
    ///
    /// `in_force` has the leaf that [`LeafAction::Restore`] puts back. `names` are the server's DNS names.
    pub(super) fn carry_out(
        &self,
        plan: &CertificatePlan,
        in_force: &CertificateState,
        names: &[String],
        now: SystemTime,
    ) -> Result<Data, AuthorityError> {
        let validity = |lifetime| Validity::new(now, seconds(lifetime));
        let new = plan.new_authority.map(|_| CertificateAuthority::unique(OWN, validity(AUTHORITY_LIFETIME)));
        let new = new.transpose()?;
        let bundle = new.as_ref().map(CertificateAuthority::certificate).unwrap_or_default().to_owned();
        let signer = new.as_ref().or(self.signer.as_ref());
        let kept = |state: &CertificateState| state.leaf.as_ref().map(|it| CertificatePair::clone(&it.pair));
        let pair = match plan.leaf {
            LeafAction::Keep => kept(&self.state),
            LeafAction::Restore => kept(in_force),
            LeafAction::Issue(cause) => {
                let names = self.names_of_next(names, cause);
                let common_name = names.first().map(String::as_str).unwrap_or_default();
                signer.map(|it| it.issue(common_name, &names, validity(LEAF_LIFETIME))).transpose()?
            }
        };
        let (chain, key) = pair.map(|it| (it.chain, it.key)).unwrap_or_default();
        let bundle = bundle + &bundle_of(&plan.keep);
        let authority_key = signer.map(CertificateAuthority::key).unwrap_or_default();
        let data = [(CHAIN, chain), (KEY, key), (BUNDLE, bundle), (AUTHORITY_KEY, authority_key)];
        Ok(data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect())
    }

    /// Returns the DNS names of the next leaf.
    ///
    /// During a rename of the Service, replicas disagree about its name. A certificate for the old and the new names ends
    /// the dispute. The certificate after that one has only the current names.
    fn names_of_next(&self, names: &[String], cause: RenewalCause) -> Vec<String> {
        let old = self.state.leaf.as_ref().filter(|_| cause == RenewalCause::OtherService);
        let old = old.map(|it| dns_names(&it.pair.chain)).unwrap_or_default();
        names.iter().cloned().chain(old.into_iter().filter(|it| !names.contains(it)).take(MOST)).collect()
    }
}

/// Encodes CAs as PEM, in this order.
pub(super) fn bundle_of(authorities: &[StoredAuthority]) -> String {
    authorities.iter().map(|it| certificate_to_pem(&it.certificate)).collect()
}

fn seconds(number: Seconds) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or_default())
}

fn is_blank(pem: &[u8]) -> bool {
    pem.iter().all(u8::is_ascii_whitespace)
}

fn read_authority(der: &CertificateDer<'_>) -> Option<StoredAuthority> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let own = certificate.subject().iter_common_name().filter_map(|it| it.as_str().ok()).any(|it| it.starts_with(OWN));
    let (not_before, not_after) = valid_seconds(der).ok()?.into_inner();
    let authority = StoredAuthority { certificate: Certificate::from(der.as_ref()), not_before, not_after, own };
    certificate.is_ca().then_some(authority)
}

fn public_key(certificate: &Certificate) -> Option<Vec<u8>> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(certificate.public_key().subject_public_key.data.to_vec())
}

/// Returns chain and key if the key belongs to the first certificate, and clients accept a chain of this length.
fn read_pair(chain: &[u8], key: &[u8]) -> Option<(CertificatePair, Vec<CertificateDer<'static>>)> {
    let text = |pem: &[u8]| String::from_utf8(pem.to_vec()).ok().filter(|it| it.len() <= MOST_BYTES);
    let pair = CertificatePair { chain: text(chain)?, key: text(key)? };
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().ok()?;
    let key = PrivateKeyDer::from_pem_slice(key).ok()?;
    CertifiedKey::from_der(certificates.clone(), key, &provider()).ok()?;
    Some((pair, certificates))
}

/// Returns the pair of a chain with the CA that signed it, as a client that calls `name` would verify it.
fn verify(
    pair: CertificatePair,
    chain: &[CertificateDer<'_>],
    authorities: &[StoredAuthority],
    name: &str,
) -> Option<StoredLeaf> {
    let (leaf, intermediates) = chain.split_first()?;
    let (not_before, not_after) = valid_seconds(leaf).ok()?.into_inner();
    let name = ServerName::try_from(name).ok()?;
    let now = UnixTime::since_unix_epoch(seconds(not_before));
    let verified = authorities.iter().find_map(|authority| {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_slice(&authority.certificate)).ok()?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().ok()?;
        match verifier.verify_server_cert(leaf, intermediates, &name, &[], now) {
            Ok(_) => Some((&authority.certificate, true)),
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::NotValidForName | rustls::CertificateError::NotValidForNameContext { .. },
            )) => Some((&authority.certificate, false)),
            Err(_) => None,
        }
    });
    let (issuer, fits) = verified.map_or((Certificate::default(), true), |(it, fits)| (Certificate::clone(it), fits));
    Some(StoredLeaf { issuer, not_before, not_after, fits, pair: Arc::new(pair) })
}

fn dns_names(chain: &str) -> Vec<String> {
    let Ok(der) = CertificateDer::from_pem_slice(chain.as_bytes()) else { return Vec::new() };
    let Ok((_, certificate)) = x509_parser::parse_x509_certificate(&der) else { return Vec::new() };
    let Ok(Some(alternatives)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = alternatives.value.general_names.iter();
    names.filter_map(|it| if let GeneralName::DNSName(name) = it { Some((*name).to_owned()) } else { None }).collect()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
