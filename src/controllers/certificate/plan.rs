//! The decision what to write into the Secret, as a table.
//!
//! It knows neither the network, nor a clock, nor a key: facts and times go in, a [`CertificatePlan`] comes out.
//! [`super::contents`] carries a plan out; [`super::state`] decides what to serve and trust.
//!
//! Two invariants keep every client's verification working. A leaf is not served before the webhook configurations hold its
//! CA. A CA stays in the bundle while any leaf that it signed may be valid. So a rotation takes three steps, and any replica
//! may take each of them:
//!
//! 1. A new CA joins the bundle and its key replaces the old CA's. Replicas keep serving the old leaf.
//! 2. After the configurations have held the new CA for a while, it is *settled*, and signs a leaf.
//! 3. The old CA leaves the bundle at its [last leaf's expiry](StoredAuthority::last_leaf_expiry).
//!
//! A replica with a stale view of the Secret may put the old bundle into the configurations once more. A CA settles for longer
//! than any view can be stale, so step 2 is safe.
//!
//! A new CA is made if the stored CA key is missing, not yet valid, or past two thirds of its CA's lifetime. It is the signer at
//! once, and not settled.
//!
//! | stored leaf | signer is settled | action |
//! |---|---|---|
//! | of the signer, in its first two thirds | – | keep |
//! | of the signer, in its last third | – | issue |
//! | of another CA | no | keep |
//! | of another CA | yes | issue |
//! | missing or unusable | no, and a leaf of another CA is served | restore the served leaf |
//! | missing or unusable | otherwise | issue |

use super::state::{CertificateState, RenewalCause, Seconds, StoredAuthority, StoredLeaf, find, make_room};

/// The next contents of the Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificatePlan {
    /// Reason to make a new CA. It goes before the others.
    pub(super) new_authority: Option<RenewalCause>,
    /// CAs that stay in the bundle.
    pub(super) keep: Vec<StoredAuthority>,
    pub(super) leaf: LeafAction,
}

/// Fate of the leaf in the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafAction {
    Keep,
    /// Put the leaf that this replica serves back into the Secret.
    Restore,
    /// Sign a new leaf with the newest CA.
    Issue(RenewalCause),
}

impl CertificatePlan {
    /// Returns true if the Secret has to be written.
    pub(super) fn changes(&self, stored: &CertificateState) -> bool {
        let kept = self.keep.iter().map(|it| &it.certificate);
        self.new_authority.is_some()
            || self.leaf != LeafAction::Keep
            || !kept.eq(stored.authorities.iter().map(|it| &it.certificate))
    }
}

/// Returns the next contents of the Secret.
///
/// `in_force`: the certificates that this replica serves and trusts. `settled`: the configurations have held the CA whose key is
/// stored for long enough.
pub(super) fn plan(
    stored: &CertificateState,
    in_force: &CertificateState,
    settled: bool,
    now: Seconds,
) -> CertificatePlan {
    let known = in_force.trusted(stored, now);
    let signer = stored.signer.as_ref().and_then(|it| find(&known, it)).ok_or(RenewalCause::Missing);
    let signer = signer.and_then(|it| match it {
        _ if now < it.not_before => Err(RenewalCause::NotYetValid),
        _ if now >= it.due() => Err(RenewalCause::Due),
        _ => Ok(it),
    });
    let new_authority = signer.err();
    let settled = settled && signer.is_ok();
    let is_of = |leaf: &StoredLeaf, authority: &StoredAuthority| leaf.issuer == authority.certificate;
    let is_of_signer = |leaf: &StoredLeaf| signer.is_ok_and(|it| is_of(leaf, it));

    let usable = stored.leaf.as_ref().ok_or(RenewalCause::Missing).and_then(|leaf| leaf.check(&known, now));
    let served = in_force.usable_leaf(now);
    let leaf = match usable {
        Ok(leaf) if is_of_signer(leaf) && now >= leaf.due() => LeafAction::Issue(RenewalCause::Due),
        Ok(leaf) if !is_of_signer(leaf) && settled => LeafAction::Issue(RenewalCause::NewAuthority),
        Ok(_) => LeafAction::Keep,
        Err(_) if !settled && served.is_some_and(|it| !is_of_signer(it)) => LeafAction::Restore,
        Err(cause) => LeafAction::Issue(cause),
    };

    let is_in_use = |it: &StoredAuthority| usable.ok().into_iter().chain(served).any(|leaf| is_of(leaf, it));
    let may_be_served = |it: &StoredAuthority| is_in_use(it) || now < it.last_leaf_expiry(&known);
    let mut keep: Vec<_> = known.iter().filter(|it| may_be_served(it)).cloned().collect();
    // More CAs than are read would be written again and again. Each deletion of the Secret adds one.
    make_room(&mut keep, new_authority.is_some().into(), |it| is_in_use(it) || signer == Ok(it));
    CertificatePlan { new_authority, keep, leaf }
}

#[cfg(test)]
mod search;
#[cfg(test)]
mod simulation;
#[cfg(test)]
pub(super) mod tests;
