//! Judges the chain in `tls.crt` as the API server will, a Go program.
//!
//! Go looks for a path from the serving certificate to a CA that it trusts. The other certificates may be in any order, and one
//! that is on no path counts for nothing, but each must be readable. A certificate that signs itself is on no path: if Go trusts
//! that CA, it has it already.
//!
//! Which CAs the API server trusts is not known here, apart from `ca.crt` if there is one. So a path may end at each certificate
//! whose issuer is not in the file. Go also heeds a limit to the length of the path, and to the names that a CA signs: they are not
//! judged here.

use super::rules::{fault_of, fault_of_issuer, has_known_key, has_name, parsed};
use super::source::{CertificateError, CertificateFault};
use rustls::pki_types::{CertificateDer, ServerName};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;

/// The signatures that Go tries before it refuses a chain.
const MOST_SIGNATURES: usize = 100;

/// The largest message with certificates that Go reads, in bytes.
const LARGEST_MESSAGE: usize = 256 << 10;

/// The certificates of a chain that can be on a path to a CA, by their places in the file.
pub(super) struct ServedChain {
    judged: BTreeMap<usize, JudgedCertificate>,
    /// The reason why the chain is refused whatever is on its paths.
    refused: Option<CertificateFault>,
}

/// A certificate, and everything in its file that signed it.
struct JudgedCertificate {
    validity: RangeInclusive<i64>,
    /// The reason why it is refused at any time.
    refused: Option<CertificateFault>,
    /// Places of certificates.
    issuers: Vec<usize>,
    /// The validity of each CA in `ca.crt` that signed it.
    roots: Vec<RangeInclusive<i64>>,
}

impl ServedChain {
    /// Judges a chain. `path` names its file in errors, `roots` are the certificates of `ca.crt`, and `name` is the one that clients
    /// ask for, if it is known.
    pub(super) fn new(
        chain: &[CertificateDer<'_>],
        roots: &[CertificateDer<'_>],
        name: Option<&ServerName<'static>>,
        path: &Path,
    ) -> Result<Self, CertificateError> {
        let unreadable = |at: usize| CertificateError::X509 { path: path.to_owned(), number: at + 1 };
        let certificates = chain.iter().enumerate().map(|(at, der)| parsed(der).map_err(|_| unreadable(at)));
        let certificates: Vec<_> = certificates.collect::<Result<_, _>>()?;
        // The message of TLS 1.3 has 4 bytes, and 5 for each certificate (RFC 8446, 4.4.2).
        if 4 + chain.iter().map(|der| der.len() + 5).sum::<usize>() > LARGEST_MESSAGE {
            return Err(CertificateError::TooLong { path: path.to_owned() });
        }
        let trusted: Vec<_> = roots.iter().filter_map(|root| parsed(root).ok()).collect();
        let unknown_key = certificates.iter().position(|it| !has_known_key(it));
        let mut this =
            Self { judged: BTreeMap::new(), refused: unknown_key.map(|at| in_chain(at, CertificateFault::Key)) };
        let mut signatures = 0;
        let mut queue = vec![0];
        while let Some(at) = queue.pop() {
            let Some((certificate, der)) = certificates.get(at).zip(chain.get(at)) else { continue };
            if this.judged.contains_key(&at) {
                continue;
            }
            let mut has_signed = |issuer: &X509Certificate<'_>| {
                certificate.issuer().as_raw() == issuer.subject().as_raw() && {
                    signatures += 1;
                    signatures <= MOST_SIGNATURES && signed(issuer, certificate)
                }
            };
            let mut judged = JudgedCertificate {
                validity: seconds(certificate),
                refused: None,
                issuers: Vec::new(),
                roots: trusted.iter().filter(|root| has_signed(root)).map(seconds).collect(),
            };
            let is_trusted = roots.contains(der);
            if !is_trusted {
                let issuers =
                    certificates.iter().enumerate().filter(|(other, issuer)| *other != at && has_signed(issuer));
                let issuers = issuers.filter(|(_, it)| !signs_itself(it)).map(|(other, _)| other);
                judged.issuers = issuers.collect();
            }
            let fault = if at == 0 { fault_of(certificate) } else { fault_of_issuer(certificate) };
            judged.refused = match fault.map_err(|_| unreadable(at))? {
                Some(CertificateFault::Hash(_)) if is_trusted => None,
                None if at == 0 => name.filter(|name| !has_name(der, name)).cloned().map(CertificateFault::Name),
                fault => fault,
            };
            queue.extend(&judged.issuers);
            this.judged.insert(at, judged);
        }
        if signatures > MOST_SIGNATURES {
            this.refused.get_or_insert(CertificateFault::Namesakes);
        }
        Ok(this)
    }

    /// Returns the seconds since 1970 in which the serving certificate is valid.
    pub(super) fn validity(&self) -> RangeInclusive<i64> {
        self.judged.get(&0).map_or(0..=0, |it| it.validity.clone())
    }

    /// Returns when the path to a CA ends that is valid at `now`, and an error with the reason if there is none. All times are in
    /// seconds since 1970.
    pub(super) fn check(&self, now: i64) -> Result<i64, CertificateFault> {
        let mut fault = None;
        let mut last = i64::MAX;
        let mut seen = BTreeSet::from([0]);
        let mut queue = vec![(0, i64::MAX)];
        while let Some((at, end)) = queue.pop() {
            let Some(certificate) = self.judged.get(&at) else { continue };
            if let Err(found) = certificate.check(now) {
                fault.get_or_insert(if at == 0 { found } else { in_chain(at, found) });
                continue;
            }
            last = end.min(*certificate.validity.end());
            let is_last = certificate.issuers.is_empty() || certificate.roots.iter().any(|it| it.contains(&now));
            if is_last {
                fault = None;
                break;
            }
            queue.extend(certificate.issuers.iter().filter(|it| seen.insert(**it)).map(|it| (*it, last)));
        }
        fault.or_else(|| self.refused.clone()).map_or(Ok(last), Err)
    }
}

impl JudgedCertificate {
    fn check(&self, now: i64) -> Result<(), CertificateFault> {
        match &self.refused {
            _ if now < *self.validity.start() => Err(CertificateFault::NotYetValid),
            _ if now > *self.validity.end() => Err(CertificateFault::Expired),
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }
}

fn in_chain(at: usize, fault: CertificateFault) -> CertificateFault {
    CertificateFault::Chain { number: at + 1, fault: Box::new(fault) }
}

fn seconds(certificate: &X509Certificate<'_>) -> RangeInclusive<i64> {
    certificate.validity().not_before.timestamp()..=certificate.validity().not_after.timestamp()
}

fn signs_itself(certificate: &X509Certificate<'_>) -> bool {
    certificate.subject().as_raw() == certificate.issuer().as_raw() && signed(certificate, certificate)
}

/// Returns true if a certificate has the signature of `issuer`. One that cannot be computed here counts: the name is that of the
/// issuer.
fn signed(issuer: &X509Certificate<'_>, certificate: &X509Certificate<'_>) -> bool {
    match certificate.verify_signature(Some(issuer.public_key())) {
        Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm) => true,
        Err(_) => false,
    }
}
