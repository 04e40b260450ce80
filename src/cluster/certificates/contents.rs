//! The data of the Secret: read into a [`CertificateState`], and written by a [`CertificatePlan`].
//!
//! Any data may be in the Secret. Unusable data counts as missing and is named as a fault; the plan for the rest replaces
//! it. This module knows no network; [`super::secret`] sends the data.

use super::plan::{CertificatePlan, LeafAction};
use super::state::{
    Certificate, CertificateState, LONGEST, Lifetimes, MOST, MOST_BYTES, RenewalCause, Seconds, StoredAuthority,
    StoredLeaf, find, make_room,
};
use crate::authority::{AuthorityError, BACKDATED, CertificateAuthority, CertificatePair, Validity};
use crate::controllers::certificate_to_pem;
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
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::certificate::X509Certificate;
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
    /// The leaf with its key.
    pub(super) pair: Option<Arc<CertificatePair>>,
    /// Private key of the state's signer, PEM.
    key: String,
    /// DNS names of the leaf.
    names: Vec<String>,
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
            let key = rcgen::KeyPair::from_pem(text).ok()?;
            let has_key = |it: &&StoredAuthority| {
                public_key(&it.certificate).is_some_and(|public| public == key.public_key_raw())
            };
            let certificate = Certificate::clone(&self.state.authorities.iter().find(has_key)?.certificate);
            // Some CAs can be trusted although we cannot sign for them.
            CertificateAuthority::from_pem(&certificate_to_pem(&certificate), text).ok()?;
            Some((certificate, text.to_owned()))
        });
        match signer {
            Some((certificate, key)) => (self.state.signer, self.key) = (Some(certificate), key),
            None => self.fault("`ca.key` is not the key of a CA in `ca.crt`"),
        }
    }

    fn read_leaf(&mut self, chain: &[u8], key: &[u8], name: &str) {
        if is_blank(chain) && is_blank(key) {
            return;
        }
        match read_pair(chain, key) {
            Some((pair, certificates)) => {
                self.state.leaf = verify(&certificates, &self.state.authorities, name);
                self.names = certificates.first().map(|it| dns_names(it)).unwrap_or_default();
                self.pair = self.state.leaf.is_some().then(|| Arc::new(pair));
            }
            None if chain.len() > MOST_BYTES => self.fault("`tls.crt` is longer than 64 KiB"),
            None => self.fault("`tls.crt` and `tls.key` cannot be used together"),
        }
    }

    /// Returns the next data of the Secret.
    ///
    /// `served` is the pair that [`LeafAction::Restore`] puts back. `names` are the server's DNS names.
    pub(super) fn carry_out(
        &self,
        plan: &CertificatePlan,
        served: Option<&CertificatePair>,
        names: &[String],
        now: SystemTime,
        lifetimes: Lifetimes,
    ) -> Result<Data, AuthorityError> {
        let mut bundle: String = plan.keep.iter().map(|it| certificate_to_pem(&it.certificate)).collect();
        let mut key = self.key.clone();
        let mut signer = None;
        if plan.new_authority.is_some() {
            let new = CertificateAuthority::unique(OWN, Validity::new(now, seconds(lifetimes.authority)))?;
            bundle.insert_str(0, new.certificate());
            key = new.key();
            signer = Some((now + seconds(lifetimes.authority), new));
        }
        let pair = match plan.leaf {
            LeafAction::Keep => self.pair.as_deref().cloned(),
            LeafAction::Restore => served.cloned(),
            LeafAction::Issue(cause) => {
                let (expires, signer) = match signer {
                    Some(new) => new,
                    None => self.signer()?,
                };
                let not_after = expires.min(now + seconds(lifetimes.leaf));
                let validity = Validity { not_before: now - BACKDATED, not_after };
                let common_name = names.first().map(String::as_str).unwrap_or_default();
                Some(signer.issue(common_name, &self.names_of_next(names, cause), validity)?)
            }
        };
        let (chain, leaf_key) = pair.map(|it| (it.chain, it.key)).unwrap_or_default();
        let data = [(CHAIN, chain), (KEY, leaf_key), (BUNDLE, bundle), (AUTHORITY_KEY, key)];
        Ok(data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect())
    }

    /// Returns the CA whose key is stored, and its expiry.
    fn signer(&self) -> Result<(SystemTime, CertificateAuthority), AuthorityError> {
        // INVARIANT: a plan signs with the stored key only if `read_authority_key` found its CA.
        let certificate = self.state.signer.as_ref().map(|it| certificate_to_pem(it)).unwrap_or_default();
        let signer = CertificateAuthority::from_pem(&certificate, &self.key)?;
        let authority = self.state.signer.as_ref().and_then(|it| find(&self.state.authorities, it));
        Ok((UNIX_EPOCH + seconds(authority.map_or(0, |it| it.not_after)), signer))
    }

    /// Returns the DNS names of the next leaf.
    ///
    /// During a rename of the Service, replicas disagree about its name. A certificate for the old and the new names ends
    /// the dispute. The certificate after that one has only the current names.
    fn names_of_next(&self, names: &[String], cause: RenewalCause) -> Vec<String> {
        let old = if cause == RenewalCause::OtherService { self.names.as_slice() } else { &[] };
        let mut all = names.to_vec();
        all.extend(old.iter().filter(|it| !names.contains(it)).take(MOST).cloned());
        all
    }
}

/// Encodes CAs as PEM, in this order.
pub(super) fn bundle(authorities: &[StoredAuthority]) -> Arc<str> {
    authorities.iter().map(|it| certificate_to_pem(&it.certificate)).collect::<String>().into()
}

pub(super) fn since_1970(time: SystemTime) -> Seconds {
    time.duration_since(UNIX_EPOCH).map_or(0, |it| Seconds::try_from(it.as_secs()).unwrap_or(Seconds::MAX))
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
    let (not_before, not_after) = validity(&certificate);
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

/// Finds the CA that signed a chain, as a client that calls `name` would verify it.
fn verify(chain: &[CertificateDer<'_>], authorities: &[StoredAuthority], name: &str) -> Option<StoredLeaf> {
    let (leaf, intermediates) = chain.split_first()?;
    let (_, certificate) = x509_parser::parse_x509_certificate(leaf).ok()?;
    let (not_before, not_after) = validity(&certificate);
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
    Some(StoredLeaf { issuer, not_before, not_after, fits })
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
