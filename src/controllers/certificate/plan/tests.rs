use super::super::state::{AUTHORITY_LIFETIME, Certificate, LEAF_LIFETIME, SKEW};
use super::*;
use crate::authority::CertificatePair;
use std::sync::Arc;

pub(in super::super) const DAY: Seconds = 24 * 3600;
pub(in super::super) const NOW: Seconds = 1_800_000_000;

pub(in super::super) fn id(name: &str) -> Certificate {
    name.as_bytes().into()
}

/// A CA that a replica made `days` ago.
pub(in super::super) fn authority(name: &str, days: Seconds) -> StoredAuthority {
    made(id(name), NOW - days * DAY)
}

pub(in super::super) fn made(certificate: Certificate, at: Seconds) -> StoredAuthority {
    StoredAuthority { certificate, not_before: at - SKEW, not_after: at + AUTHORITY_LIFETIME, own: true }
}

/// A leaf that `issuer` signed `days` ago.
pub(in super::super) fn leaf(issuer: &str, days: Seconds) -> StoredLeaf {
    signed(&id(issuer), NOW - days * DAY)
}

pub(in super::super) fn signed(issuer: &Certificate, at: Seconds) -> StoredLeaf {
    let pair = Arc::new(CertificatePair { chain: at.to_string(), key: String::new() });
    let (not_before, not_after) = (at - SKEW, at + LEAF_LIFETIME);
    StoredLeaf { issuer: Certificate::clone(issuer), not_before, not_after, fits: true, pair }
}

pub(in super::super) fn state(authorities: &[StoredAuthority], signer: &str, leaf: StoredLeaf) -> CertificateState {
    let signer = find(authorities, &id(signer)).map(|it| Certificate::clone(&it.certificate));
    CertificateState { authorities: authorities.to_vec(), signer, leaf: Some(leaf) }
}

/// Returns the contents of the Secret after a plan. `authorities`: the CAs that were made so far.
pub(in super::super) fn carried_out(
    plan: &CertificatePlan,
    stored: &CertificateState,
    in_force: &CertificateState,
    now: Seconds,
    authorities: &mut u32,
) -> CertificateState {
    let mut kept = plan.keep.clone();
    let mut signer = stored.signer.clone();
    if plan.new_authority.is_some() {
        *authorities += 1;
        let new = made(id(&authorities.to_string()), now);
        signer = Some(Certificate::clone(&new.certificate));
        kept.insert(0, new);
    }
    let leaf = match plan.leaf {
        LeafAction::Keep => stored.leaf.clone(),
        LeafAction::Restore => in_force.leaf.clone(),
        LeafAction::Issue(_) => {
            let signer = find(&kept, signer.as_ref().unwrap()).unwrap();
            Some(signed(&signer.certificate, now))
        }
    };
    CertificateState { authorities: kept, signer, leaf }
}

fn nothing() -> CertificateState {
    CertificateState::default()
}

/// One CA with its key, made `days` ago, and a leaf of it.
fn simple(days: Seconds, leaf_days: Seconds) -> CertificateState {
    state(&[authority("a", days)], "a", leaf("a", leaf_days))
}

/// A new CA with its key, beside the CA that signed the leaf.
fn rotating() -> CertificateState {
    state(&[authority("new", 0), authority("old", 2434)], "new", leaf("old", 30))
}

/// One CA with its key, made `days` ago for one year, and a leaf of it.
fn of_earlier_release(days: Seconds) -> CertificateState {
    let not_after = NOW + (365 - days) * DAY;
    state(&[StoredAuthority { not_after, ..authority("a", days) }], "a", leaf("a", 10))
}

fn without_leaf(state: CertificateState) -> CertificateState {
    CertificateState { leaf: None, ..state }
}

fn without_key(state: CertificateState) -> CertificateState {
    CertificateState { signer: None, ..state }
}

fn for_another_service(state: CertificateState) -> CertificateState {
    CertificateState { leaf: state.leaf.map(|leaf| StoredLeaf { fits: false, ..leaf }), ..state }
}

/// The plan in short: `+` for a new CA, the CAs that stay, and the fate of the leaf.
fn summary(plan: &CertificatePlan) -> String {
    let new = plan.new_authority.map(|cause| format!("+ ({cause}) ")).unwrap_or_default();
    let keep: Vec<_> = plan.keep.iter().map(|it| String::from_utf8_lossy(&it.certificate).into_owned()).collect();
    let leaf = match plan.leaf {
        LeafAction::Keep => "keep".to_owned(),
        LeafAction::Restore => "restore".to_owned(),
        LeafAction::Issue(cause) => format!("issue ({cause})"),
    };
    format!("{new}{}: {leaf}", keep.join(" "))
}

/// A test for each row: the stored and the served certificates, true if the stored CA is settled, and the plan.
macro_rules! transitions {
    ($($name:ident: $stored:expr, $in_force:expr, $settled:expr => $want:expr;)*) => {$(
        #[test]
        fn $name() {
            let stored = $stored;
            let plan = plan(&stored, &$in_force, $settled, NOW);
            assert_eq!(summary(&plan), $want);
            let is_unchanged =
                plan.new_authority.is_none() && plan.leaf == LeafAction::Keep && plan.keep == stored.authorities;
            assert_eq!(plan.changes(&stored), !is_unchanged);
        }
    )*};
}

transitions! {
    an_empty_secret_gets_a_ca_and_a_leaf:
        nothing(), nothing(), false => "+ (there was none) : issue (there was none)";
    certificates_in_their_first_two_thirds_stay:
        simple(2000, 10), nothing(), false => "a: keep";
    a_leaf_in_its_last_third_is_renewed:
        simple(2000, 61), nothing(), false => "a: issue (two thirds of its lifetime have passed)";
    a_ca_in_its_last_third_is_replaced_and_its_leaf_stays:
        simple(2434, 10), simple(2434, 10), true => "+ (two thirds of its lifetime have passed) a: keep";
    a_ca_for_one_year_of_an_earlier_release_is_replaced_and_its_leaf_stays:
        of_earlier_release(244), of_earlier_release(244), true
            => "+ (two thirds of its lifetime have passed) a: keep";
    a_ca_for_one_year_of_an_earlier_release_stays_for_two_thirds_of_it:
        of_earlier_release(243), of_earlier_release(243), true => "a: keep";
    a_new_ca_that_has_not_settled_does_not_sign:
        rotating(), rotating(), false => "new old: keep";
    a_new_ca_that_has_settled_signs:
        rotating(), rotating(), true => "new old: issue (there is a new CA)";
    a_new_ca_signs_when_the_old_leaf_expires:
        state(&[authority("new", 0), authority("old", 2434)], "new", leaf("old", 90)), nothing(), false
            => "new old: issue (it has expired)";
    an_old_ca_leaves_when_its_leaves_have_expired:
        state(&[authority("a", 91), authority("b", 335)], "a", leaf("a", 31)), nothing(), false => "a: keep";
    an_old_ca_stays_while_its_leaves_may_be_valid:
        state(&[authority("a", 90), authority("b", 334)], "a", leaf("a", 31)), nothing(), false => "a b: keep";
    a_foreign_ca_stays_until_it_expires:
        state(&[authority("a", 200), StoredAuthority { own: false, ..authority("b", 300) }], "a", leaf("a", 31)),
        nothing(), false => "a b: keep";
    after_a_deletion_the_served_leaf_is_restored:
        nothing(), simple(2000, 10), false => "+ (there was none) a: restore";
    after_a_deletion_an_expired_ca_is_not_restored:
        nothing(), simple(3650, 10), false => "+ (there was none) : issue (there was none)";
    a_lost_ca_key_is_replaced_and_the_leaf_stays:
        without_key(simple(2000, 10)), nothing(), false => "+ (there was none) a: keep";
    a_lost_leaf_is_issued_by_the_ca_of_the_served_one:
        without_leaf(simple(9, 1)), simple(9, 1), false => "a: issue (there was none)";
    a_leaf_lost_during_a_rotation_is_restored:
        without_leaf(rotating()), rotating(), false => "new old: restore";
    a_leaf_lost_after_the_new_ca_settled_is_issued:
        without_leaf(rotating()), rotating(), true => "new old: issue (there was none)";
    a_leaf_lost_while_its_ca_is_replaced_is_restored:
        without_leaf(simple(2434, 10)), simple(2434, 10), true
            => "+ (two thirds of its lifetime have passed) a: restore";
    a_leaf_for_another_service_is_replaced:
        for_another_service(simple(9, 1)), nothing(), false => "a: issue (it is for another Service)";
    the_ca_of_the_served_leaf_joins_the_bundle_of_a_replaced_secret:
        state(&[authority("new", 0)], "new", leaf("new", 0)), simple(100, 10), false => "new a: keep";
    certificates_from_the_future_are_replaced:
        simple(-2, -2), nothing(), false => "+ (it is not valid yet) a: issue (it is not valid yet)";
}
