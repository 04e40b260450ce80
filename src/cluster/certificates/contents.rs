//! What stands in the Secret: from its keys to a [`State`] and back.
//!
//! Anything may stand there: what cannot be used counts as missing, is named as a fault, and is replaced by the plan that
//! follows from what is left.

use super::plan::{Authority, Cause, Id, Leaf, LeafPlan, Lifetimes, Plan, Seconds, State};
use crate::authority::{self, AuthorityError, BACKDATED, CertificatePair, Validity};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// The keys of the Secret; the first two are those that its type demands.
pub(super) const CHAIN: &str = "tls.crt";
pub(super) const KEY: &str = "tls.key";
/// Every CA that is to be trusted, the newest first.
pub(super) const BUNDLE: &str = "ca.crt";
/// That of the first CA in the bundle.
pub(super) const AUTHORITY_KEY: &str = "ca.key";

/// What the common name of every CA begins with that a replica has made.
const OWN: &str = "kube-unions CA";

/// More CAs, or names, are none that anybody put there on purpose.
const MOST: usize = 32;

/// The keys of a Secret.
pub(super) type Data = BTreeMap<String, ByteString>;

/// A Secret, read.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) state: State,
    /// The leaf and its key.
    pub(super) pair: Option<Arc<CertificatePair>>,
    /// Of the state's signer.
    key: String,
    /// Every DNS name of the leaf.
    names: Vec<String>,
    /// What cannot be used.
    pub(super) faults: Vec<&'static str>,
}

impl fmt::Debug for Contents {
    /// Never shows a key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, faults, .. } = self;
        out.debug_struct("Contents").field("state", state).field("faults", faults).finish_non_exhaustive()
    }
}

impl Contents {
    /// Reads what is of use to a server that is called `name`.
    pub(super) fn read(data: &Data, name: &str) -> Self {
        let text = |key: &str| data.get(key).map_or(&b""[..], |value| &value.0);
        let mut this = Self::default();
        this.read_bundle(text(BUNDLE));
        this.read_authority_key(text(AUTHORITY_KEY));
        this.read_leaf(text(CHAIN), text(KEY), name);
        this
    }

    fn read_bundle(&mut self, pem: &[u8]) {
        let authorities = &mut self.state.authorities;
        for certificate in certificates(pem) {
            let authority = certificate.ok().and_then(|der| read_authority(&der));
            match authority {
                Some(it) if authorities.iter().any(|other| other.id == it.id) => {}
                Some(it) => authorities.push(it),
                None => self.faults.push("`ca.crt` holds what is no CA"),
            }
        }
        if !is_blank(pem) && self.state.authorities.is_empty() && self.faults.is_empty() {
            self.faults.push("`ca.crt` holds no CA");
        }
    }

    fn read_authority_key(&mut self, pem: &[u8]) {
        if is_blank(pem) {
            return;
        }
        let signer = std::str::from_utf8(pem).ok().and_then(|text| {
            let key = rcgen::KeyPair::from_pem(text).ok()?;
            let is_its = |it: &&Authority| public_key(&it.id).is_some_and(|public| public == key.public_key_raw());
            let id = Id::clone(&self.state.authorities.iter().find(is_its)?.id);
            // Not every CA that can be trusted is one that we can sign for.
            authority::CertificateAuthority::from_pem(&to_pem(&id), text).ok()?;
            Some((id, text.to_owned()))
        });
        match signer {
            Some((id, key)) => (self.state.signer, self.key) = (Some(id), key),
            None => self.faults.push("`ca.key` is not the key of a CA in `ca.crt`"),
        }
    }

    fn read_leaf(&mut self, chain: &[u8], key: &[u8], name: &str) {
        if is_blank(chain) && is_blank(key) {
            return;
        }
        match read_pair(chain, key) {
            Some((pair, certificates)) => {
                self.state.leaf = judge(&certificates, &self.state.authorities, name);
                self.names = certificates.first().map(|it| dns_names(it)).unwrap_or_default();
                self.pair = self.state.leaf.is_some().then(|| Arc::new(pair));
            }
            None => self.faults.push("`tls.crt` and `tls.key` cannot be used together"),
        }
    }

    /// What is to stand in the Secret. `served`: what [`LeafPlan::Restore`] puts back. `names`: those of the server.
    pub(super) fn carry_out(
        &self,
        plan: &Plan,
        served: Option<&CertificatePair>,
        names: &[String],
        now: SystemTime,
        lifetimes: Lifetimes,
    ) -> Result<Data, AuthorityError> {
        let mut bundle: String = plan.keep.iter().map(|it| to_pem(&it.id)).collect();
        let mut key = self.key.clone();
        let mut signer = None;
        if plan.authority.is_some() {
            let new = authority::CertificateAuthority::unique(OWN, Validity::new(now, seconds(lifetimes.authority)))?;
            bundle.insert_str(0, new.certificate());
            key = new.key();
            signer = Some((now + seconds(lifetimes.authority), new));
        }
        let pair = match plan.leaf {
            LeafPlan::Keep => self.pair.as_deref().cloned(),
            LeafPlan::Restore => served.cloned(),
            LeafPlan::Issue(cause) => {
                let (ends, signer) = match signer {
                    Some(new) => new,
                    None => self.signer()?,
                };
                let ends = ends.min(now + seconds(lifetimes.leaf));
                let validity = Validity { not_before: now - BACKDATED, not_after: ends };
                let common_name = names.first().map(String::as_str).unwrap_or_default();
                Some(signer.issue(common_name, &self.names_of_next(names, cause), validity)?)
            }
        };
        let CertificatePair { chain, key: leaf_key } =
            pair.unwrap_or(CertificatePair { chain: String::new(), key: String::new() });
        let data = [(CHAIN, chain), (KEY, leaf_key), (BUNDLE, bundle), (AUTHORITY_KEY, key)];
        Ok(data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect())
    }

    /// The CA whose key is here, and when it ends.
    fn signer(&self) -> Result<(SystemTime, authority::CertificateAuthority), AuthorityError> {
        // INVARIANT: a plan issues from what is stored only where `read_authority_key` has found the two to go together.
        let id = self.state.signer.as_ref().map(to_pem).unwrap_or_default();
        let signer = authority::CertificateAuthority::from_pem(&id, &self.key)?;
        let ends = self.state.authorities.iter().find(|it| Some(&it.id) == self.state.signer.as_ref());
        Ok((time(ends.map_or(0, |it| it.not_after)), signer))
    }

    /// While a Service is renamed there are replicas that know it by the one name and some by the other: a certificate for
    /// both ends their dispute, and the next has the right ones only.
    fn names_of_next(&self, names: &[String], cause: Cause) -> Vec<String> {
        let old = if cause == Cause::OtherNames { self.names.as_slice() } else { &[] };
        let mut all = names.to_vec();
        all.extend(old.iter().filter(|it| !names.contains(it)).take(MOST).cloned());
        all
    }
}

/// The certificates of a bundle, to be compared with [`Authority::id`].
pub(super) fn ids(pem: &str) -> Vec<Id> {
    certificates(pem.as_bytes()).filter_map(Result::ok).map(|der| Id::from(der.as_ref())).collect()
}

/// As a bundle, in this order.
pub(super) fn bundle(authorities: &[Authority]) -> Arc<str> {
    authorities.iter().map(|it| to_pem(&it.id)).collect::<String>().into()
}

/// Seconds since 1970.
pub(super) fn since_1970(time: SystemTime) -> Seconds {
    time.duration_since(UNIX_EPOCH).map_or(0, |it| Seconds::try_from(it.as_secs()).unwrap_or(Seconds::MAX))
}

fn time(at: Seconds) -> SystemTime {
    UNIX_EPOCH + seconds(at)
}

fn seconds(number: Seconds) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or_default())
}

fn is_blank(pem: &[u8]) -> bool {
    pem.iter().all(u8::is_ascii_whitespace)
}

fn certificates(pem: &[u8]) -> impl Iterator<Item = Result<CertificateDer<'static>, rustls::pki_types::pem::Error>> {
    CertificateDer::pem_slice_iter(pem).take(MOST)
}

fn read_authority(der: &CertificateDer<'_>) -> Option<Authority> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let own = certificate.subject().iter_common_name().filter_map(|it| it.as_str().ok()).any(|it| it.starts_with(OWN));
    let (not_before, not_after) = validity(&certificate);
    certificate.is_ca().then(|| Authority { id: Id::from(der.as_ref()), not_before, not_after, own })
}

fn public_key(id: &Id) -> Option<Vec<u8>> {
    let (_, certificate) = x509_parser::parse_x509_certificate(id).ok()?;
    Some(certificate.public_key().subject_public_key.data.to_vec())
}

/// Chain and key, if they go together.
fn read_pair(chain: &[u8], key: &[u8]) -> Option<(CertificatePair, Vec<CertificateDer<'static>>)> {
    let pair =
        CertificatePair { chain: String::from_utf8(chain.to_vec()).ok()?, key: String::from_utf8(key.to_vec()).ok()? };
    let certificates: Vec<_> = certificates(chain).collect::<Result<_, _>>().ok()?;
    let key = PrivateKeyDer::from_pem_slice(key).ok()?;
    CertifiedKey::from_der(certificates.clone(), key, &provider()).ok()?;
    Some((pair, certificates))
}

/// Who has signed it, and whether a client that calls `name` would take it: asked of what such a client would ask.
fn judge(chain: &[CertificateDer<'_>], authorities: &[Authority], name: &str) -> Option<Leaf> {
    let (leaf, intermediates) = chain.split_first()?;
    let (_, certificate) = x509_parser::parse_x509_certificate(leaf).ok()?;
    let (not_before, not_after) = validity(&certificate);
    let name = ServerName::try_from(name).ok()?;
    let now = UnixTime::since_unix_epoch(seconds(not_before));
    let verdict = authorities.iter().find_map(|authority| {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_slice(&authority.id)).ok()?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().ok()?;
        match verifier.verify_server_cert(leaf, intermediates, &name, &[], now) {
            Ok(_) => Some((&authority.id, true)),
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::NotValidForName | rustls::CertificateError::NotValidForNameContext { .. },
            )) => Some((&authority.id, false)),
            Err(_) => None,
        }
    });
    let (issuer, fits) = verdict.map_or((Id::default(), true), |(id, fits)| (Id::clone(id), fits));
    Some(Leaf { issuer, not_before, not_after, fits })
}

fn dns_names(der: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = x509_parser::parse_x509_certificate(der) else { return Vec::new() };
    let Ok(Some(alternatives)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = alternatives.value.general_names.iter();
    names.filter_map(|it| if let GeneralName::DNSName(name) = it { Some((*name).to_owned()) } else { None }).collect()
}

fn validity(certificate: &X509Certificate<'_>) -> (Seconds, Seconds) {
    let validity = certificate.validity();
    (validity.not_before.timestamp(), validity.not_after.timestamp())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// RFC 7468.
fn to_pem(id: &Id) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for (position, character) in STANDARD.encode(id).char_indices() {
        if position > 0 && position % 64 == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text.push_str("\n-----END CERTIFICATE-----\n");
    text
}
