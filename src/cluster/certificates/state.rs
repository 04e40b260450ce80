//! The certificates of a Secret as facts: identities and times, without keys.
//!
//! It knows neither PEM nor X.509; [`super::contents`] reads those. [`super::plan`] decides what to write and
//! [`super::in_force`] what to serve.

use std::fmt;
use std::sync::Arc;

/// A certificate, DER.
pub(super) type Certificate = Arc<[u8]>;

/// A time in seconds since 1970, or a number of seconds.
pub(super) type Seconds = i64;

/// Greatest difference between two clocks. Certificates are valid from this long before they are made, and are not relied
/// on for this long before they expire.
pub(super) const SKEW: Seconds = 3600;

/// Most CAs.
pub(super) const MOST: usize = 32;

/// Most bytes of all CAs, DER. Each entry of the webhook configurations holds all of them.
pub(super) const MOST_BYTES: usize = 64 * 1024;

/// Most bytes of one CA, DER.
pub(super) const LONGEST: usize = 16 * 1024;

/// Lifetimes of certificates, and the wait before a new CA signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetimes {
    pub(super) authority: Seconds,
    pub(super) leaf: Seconds,
    /// Time for which the webhook configurations must hold a new CA before it signs.
    pub(super) settle: Seconds,
}

/// A CA in the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredAuthority {
    pub(super) certificate: Certificate,
    pub(super) not_before: Seconds,
    pub(super) not_after: Seconds,
    /// True if a replica made it. The lifetimes of a foreign CA's leaves are unknown.
    pub(super) own: bool,
}

/// A serving certificate whose key is in the Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredLeaf {
    /// Certificate of the CA that signed it; empty if that CA is not in the bundle.
    pub(super) issuer: Certificate,
    pub(super) not_before: Seconds,
    pub(super) not_after: Seconds,
    /// True if it has the name by which the API server calls.
    pub(super) fits: bool,
}

/// The certificates of a Secret, or those that a replica serves and trusts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CertificateState {
    /// CAs to trust, the newest first.
    pub(super) authorities: Vec<StoredAuthority>,
    /// Certificate of the CA whose key is in the Secret.
    pub(super) signer: Option<Certificate>,
    pub(super) leaf: Option<StoredLeaf>,
}

/// Reason to replace a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenewalCause {
    Missing,
    Due,
    Expired,
    NotYetValid,
    OtherService,
    UnknownAuthority,
    NewAuthority,
}

impl fmt::Display for RenewalCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Missing => "there was none",
            Self::Due => "two thirds of its lifetime have passed",
            Self::Expired => "it has expired",
            Self::NotYetValid => "it is not valid yet",
            Self::OtherService => "it is for another Service",
            Self::UnknownAuthority => "its CA is not in the bundle",
            Self::NewAuthority => "there is a new CA",
        })
    }
}

impl StoredAuthority {
    pub(super) fn is_valid(&self, now: Seconds) -> bool {
        (self.not_before..self.not_after).contains(&now)
    }

    pub(super) fn made_at(&self) -> Seconds {
        self.not_before + SKEW
    }

    /// Returns when to replace it.
    pub(super) fn due(&self) -> Seconds {
        two_thirds(self.not_before, self.not_after)
    }

    /// Returns the latest possible expiry of any leaf that this CA signed.
    ///
    /// A CA signs nothing after the next one is made. `all`: the CAs of the bundle.
    pub(super) fn last_leaf_expiry(&self, all: &[Self], lifetimes: Lifetimes) -> Seconds {
        if !self.own {
            return self.not_after;
        }
        let newer = all.iter().filter(|it| it.own && it.made_at() > self.made_at());
        let next = newer.map(Self::made_at).min();
        next.map_or(self.not_after, |made| self.not_after.min(made + lifetimes.leaf + SKEW))
    }
}

impl StoredLeaf {
    /// Returns the reason not to serve this leaf, given the CAs that may have signed it.
    pub(super) fn fault(&self, authorities: &[StoredAuthority], now: Seconds) -> Option<RenewalCause> {
        if !self.fits {
            Some(RenewalCause::OtherService)
        } else if now < self.not_before {
            Some(RenewalCause::NotYetValid)
        } else if now >= self.last_use() {
            Some(RenewalCause::Expired)
        } else {
            match find(authorities, &self.issuer) {
                None => Some(RenewalCause::UnknownAuthority),
                // A foreign leaf may outlast its CA. Clients refuse it then.
                Some(authority) => (!authority.is_valid(now)).then_some(RenewalCause::Expired),
            }
        }
    }

    /// Returns when to replace it.
    pub(super) fn due(&self) -> Seconds {
        two_thirds(self.not_before, self.not_after)
    }

    /// Returns when any other leaf becomes better, even one whose CA may not be trusted yet.
    pub(super) fn last_use(&self) -> Seconds {
        self.not_after - SKEW
    }
}

impl CertificateState {
    /// Returns the leaf if it has no fault.
    pub(super) fn usable_leaf(&self, now: Seconds) -> Option<&StoredLeaf> {
        self.leaf.as_ref().filter(|leaf| leaf.fault(&self.authorities, now).is_none())
    }
}

/// Removes CAs that are not in use, the last first, until there is room for `new` more. Returns true if it removes any.
pub(super) fn make_room(
    authorities: &mut Vec<StoredAuthority>,
    new: usize,
    is_in_use: impl Fn(&StoredAuthority) -> bool,
) -> bool {
    let before = authorities.len();
    let mut bytes: usize = authorities.iter().map(|it| it.certificate.len()).sum();
    while (authorities.len() + new > MOST || bytes + new * LONGEST > MOST_BYTES)
        && let Some(last) = authorities.iter().rposition(|it| !is_in_use(it))
    {
        bytes -= authorities.remove(last).certificate.len();
    }
    authorities.len() < before
}

pub(super) fn find<'a>(authorities: &'a [StoredAuthority], certificate: &Certificate) -> Option<&'a StoredAuthority> {
    authorities.iter().find(|it| it.certificate == *certificate)
}

fn two_thirds(from: Seconds, to: Seconds) -> Seconds {
    from + (to - from) / 3 * 2
}
