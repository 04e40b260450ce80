//! What to write into the Secret and what to serve: decided from what is known, with no network, clock or key.
//!
//! A leaf is never served before the webhook configurations hold its CA, and a CA stays in the bundle for as long as a
//! leaf that it signed could be valid. So a CA is replaced in steps, each of which any replica may take:
//!
//! 1. The new CA joins the bundle, and its key takes the place of the old one's. The old leaf is served on.
//! 2. When the configurations have been known to hold the new CA for [`Lifetimes::settle`], it signs the leaf.
//! 3. The old CA leaves the bundle when every leaf that it has signed must have ended.
//!
//! A replica may see the Secret late, and would then put the bundle of before into the configurations once more. That is
//! why step 2 waits: `settle` is longer than anybody's view of the Secret can be late.

use std::fmt;
use std::sync::Arc;

/// A certificate, DER.
pub(super) type Id = Arc<[u8]>;

/// Seconds since 1970, or a number of seconds.
pub(super) type Seconds = i64;

/// By so much clocks may differ: certificates are valid from so long ago, and not relied on for so long before their end.
pub(super) const SKEW: Seconds = 3600;

/// How long things last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetimes {
    pub(super) authority: Seconds,
    pub(super) leaf: Seconds,
    /// How long the configurations have to hold a new CA before it signs.
    pub(super) settle: Seconds,
}

/// A CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) id: Id,
    pub(super) not_before: Seconds,
    pub(super) not_after: Seconds,
    /// Made by a replica, so that its times mean what they mean here.
    pub(super) own: bool,
}

/// A serving certificate, whose key is at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) issuer: Id,
    pub(super) not_before: Seconds,
    pub(super) not_after: Seconds,
    /// It has the name by which the API server calls.
    pub(super) fits: bool,
}

/// What a Secret holds, or what a replica goes by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct State {
    /// The newest first.
    pub(super) authorities: Vec<Authority>,
    /// That whose key is at hand.
    pub(super) signer: Option<Id>,
    pub(super) leaf: Option<Leaf>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// A new CA goes before the others.
    pub(super) authority: Option<Cause>,
    /// The others.
    pub(super) keep: Vec<Authority>,
    pub(super) leaf: LeafPlan,
    /// When to decide anew if nothing changes until then.
    pub(super) again: Seconds,
}

/// What becomes of the leaf in the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafPlan {
    Keep,
    /// That which is served here is put back.
    Restore,
    /// The newest CA signs another.
    Issue(Cause),
}

/// Why something is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Missing,
    Due,
    Ended,
    NotYetValid,
    OtherNames,
    UnknownAuthority,
    NewAuthority,
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Missing => "there was none",
            Self::Due => "two thirds of its time are over",
            Self::Ended => "its time is over",
            Self::NotYetValid => "its time has not come",
            Self::OtherNames => "it was for another Service",
            Self::UnknownAuthority => "its CA was not in the bundle",
            Self::NewAuthority => "there is a new CA",
        })
    }
}

impl Authority {
    fn is_valid(&self, now: Seconds) -> bool {
        (self.not_before..self.not_after).contains(&now)
    }

    fn made(&self) -> Seconds {
        self.not_before + SKEW
    }

    fn due(&self) -> Seconds {
        two_thirds(self.not_before, self.not_after)
    }
}

impl Leaf {
    /// Why nobody should be shown this leaf, given who may have signed it.
    fn fault(&self, authorities: &[Authority], now: Seconds) -> Option<Cause> {
        if !self.fits {
            Some(Cause::OtherNames)
        } else if now < self.not_before {
            Some(Cause::NotYetValid)
        } else if now >= self.last_resort() {
            Some(Cause::Ended)
        } else {
            match find(authorities, &self.issuer) {
                None => Some(Cause::UnknownAuthority),
                // A leaf from elsewhere may outlast its CA, and is worth nothing then.
                Some(authority) => (!authority.is_valid(now)).then_some(Cause::Ended),
            }
        }
    }

    fn due(&self) -> Seconds {
        two_thirds(self.not_before, self.not_after)
    }

    /// From here on any other is better, even one that may not be trusted yet.
    fn last_resort(&self) -> Seconds {
        self.not_after - SKEW
    }
}

impl State {
    /// The leaf where it is good for something.
    fn good_leaf(&self, now: Seconds) -> Option<&Leaf> {
        self.leaf.as_ref().filter(|leaf| leaf.fault(&self.authorities, now).is_none())
    }
}

impl Plan {
    /// Whether there is anything to write.
    pub(super) fn changes(&self, stored: &State) -> bool {
        let ids = |authorities: &[Authority]| authorities.iter().map(|it| Id::clone(&it.id)).collect::<Vec<_>>();
        self.authority.is_some() || self.leaf != LeafPlan::Keep || ids(&self.keep) != ids(&stored.authorities)
    }
}

/// Decides. `going_by`: what is served and trusted here. `held_for`: how long the configurations have been known to hold
/// the CA whose key is stored; `None`: they don't, or nobody knows.
pub(super) fn plan(
    stored: &State,
    going_by: &State,
    held_for: Option<Seconds>,
    now: Seconds,
    lifetimes: Lifetimes,
) -> Plan {
    let served = going_by.good_leaf(now);
    let kept = kept(stored, going_by, served, now);
    let leaf = stored.leaf.as_ref().filter(|leaf| leaf.fault(&kept, now).is_none());
    let (signer, authority) = match stored.signer.as_ref().and_then(|id| find(&kept, id)) {
        None => (None, Some(Cause::Missing)),
        Some(it) if now < it.not_before => (None, Some(Cause::NotYetValid)),
        Some(it) if now >= it.due() => (None, Some(Cause::Due)),
        Some(it) => (Some(it), None),
    };
    let cause = stored.leaf.as_ref().map_or(Cause::Missing, |it| it.fault(&kept, now).unwrap_or(Cause::Due));
    let settled = held_for.is_some_and(|it| it >= lifetimes.settle);
    let leaf_plan = match (leaf, signer) {
        (Some(leaf), Some(signer)) if leaf.issuer == signer.id => {
            if now >= leaf.due() {
                LeafPlan::Issue(Cause::Due)
            } else {
                LeafPlan::Keep
            }
        }
        (Some(_), Some(_)) if settled => LeafPlan::Issue(Cause::NewAuthority),
        (Some(_), _) => LeafPlan::Keep,
        // What everybody trusts already, rather than what they may not trust yet.
        (None, signer) => match served {
            Some(served) if !settled && signer.is_none_or(|it| it.id != served.issuer) => LeafPlan::Restore,
            _ => LeafPlan::Issue(cause),
        },
    };
    let in_use = [leaf, served].into_iter().flatten().map(|it| &it.issuer).collect::<Vec<_>>();
    let ends = |it: &Authority| if in_use.contains(&&it.id) { it.not_after } else { leaves(it, &kept, lifetimes) };
    let keep: Vec<_> = kept.iter().filter(|it| now < ends(it)).cloned().collect();

    let waits = leaf.zip(signer).is_some_and(|(leaf, signer)| leaf.issuer != signer.id);
    let again = keep
        .iter()
        .flat_map(|it| [ends(it), it.due()])
        .chain(leaf.into_iter().flat_map(|it| [it.due(), it.last_resort()]))
        .chain(held_for.filter(|_| waits).map(|it| now + lifetimes.settle - it))
        .filter(|at| *at > now)
        .min();
    Plan { authority, keep, leaf: leaf_plan, again: again.unwrap_or(now + SKEW) }
}

/// Whether the leaf that is stored takes the place of the one that is served. `holds`: the configurations hold this CA, or
/// nobody has to trust anything.
pub(super) fn takes_over(stored: &State, going_by: &State, holds: impl Fn(&Id) -> bool, now: Seconds) -> bool {
    let (Some(new), Some(current)) = (&stored.leaf, &going_by.leaf) else { return stored.leaf.is_some() };
    match (stored.good_leaf(now), going_by.good_leaf(now)) {
        (Some(_), Some(_)) => new.issuer == current.issuer || holds(&new.issuer),
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => new.not_after > current.not_after,
    }
}

/// What is to be trusted: what the replicas have agreed on, and the CA of what is served here.
pub(super) fn trusted(stored: &State, going_by: &State, now: Seconds) -> Vec<Authority> {
    kept(stored, going_by, going_by.good_leaf(now), now)
}

/// The CAs that are there, as far as they have not ended. Where a Secret was deleted or spoilt those from before stay.
fn kept(stored: &State, going_by: &State, served: Option<&Leaf>, now: Seconds) -> Vec<Authority> {
    let usable = |state: &State| state.authorities.iter().filter(|it| now < it.not_after).cloned().collect::<Vec<_>>();
    let stored = usable(stored);
    let authorities = if stored.is_empty() { usable(going_by) } else { stored };
    with_issuer(authorities, going_by, served)
}

fn with_issuer(mut authorities: Vec<Authority>, going_by: &State, leaf: Option<&Leaf>) -> Vec<Authority> {
    let issuer = leaf.and_then(|leaf| find(&going_by.authorities, &leaf.issuer));
    authorities.extend(issuer.filter(|it| find(&authorities, &it.id).is_none()).cloned());
    authorities
}

/// When the last leaf that it can have signed has ended: it signed none since the next CA was made. Of a CA from
/// elsewhere nobody knows how long its leaves last.
fn leaves(authority: &Authority, all: &[Authority], lifetimes: Lifetimes) -> Seconds {
    if !authority.own {
        return authority.not_after;
    }
    let next = all.iter().filter(|it| it.own && it.made() > authority.made()).map(Authority::made).min();
    next.map_or(authority.not_after, |made| authority.not_after.min(made + lifetimes.leaf + SKEW))
}

fn find<'a>(authorities: &'a [Authority], id: &Id) -> Option<&'a Authority> {
    authorities.iter().find(|it| it.id == *id)
}

fn two_thirds(from: Seconds, to: Seconds) -> Seconds {
    from + (to - from) / 3 * 2
}

/// Since when the configurations hold the CA whose key is stored.
#[derive(Debug, Default)]
pub(super) struct Settling {
    since: Option<(Id, Seconds)>,
}

impl Settling {
    /// How long they have done so. `now` is that of a clock that nobody sets.
    pub(super) fn held_for(
        &mut self,
        signer: Option<&Id>,
        holds: impl Fn(&Id) -> bool,
        now: Seconds,
    ) -> Option<Seconds> {
        let signer = signer.filter(|id| holds(id));
        let since = match (signer, self.since.take()) {
            (None, _) => return None,
            (Some(id), Some((of, since))) if *id == of => (of, since),
            (Some(id), _) => (Id::clone(id), now),
        };
        Some(now - self.since.insert(since).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: Seconds = 24 * 3600;
    const LIFETIMES: Lifetimes = Lifetimes { authority: 365 * DAY, leaf: 90 * DAY, settle: 60 };
    const NOW: Seconds = 1_800_000_000;

    fn id(name: &str) -> Id {
        name.as_bytes().into()
    }

    /// Made so many days ago.
    fn authority(name: &str, days: Seconds) -> Authority {
        made(id(name), NOW - days * DAY, true)
    }

    fn made(id: Id, at: Seconds, own: bool) -> Authority {
        Authority { id, not_before: at - SKEW, not_after: at + LIFETIMES.authority, own }
    }

    fn leaf(issuer: &str, days: Seconds) -> Leaf {
        signed(&id(issuer), NOW - days * DAY, Seconds::MAX)
    }

    fn signed(issuer: &Id, at: Seconds, latest: Seconds) -> Leaf {
        let not_after = latest.min(at + LIFETIMES.leaf);
        Leaf { issuer: Id::clone(issuer), not_before: at - SKEW, not_after, fits: true }
    }

    fn state(authorities: &[Authority], signer: &str, leaf: Leaf) -> State {
        let signer = authorities.iter().find(|it| it.id == id(signer)).map(|it| Id::clone(&it.id));
        State { authorities: authorities.to_vec(), signer, leaf: Some(leaf) }
    }

    /// In short: the CAs there will be, `+` for a new one, and what becomes of the leaf.
    fn summary(plan: &Plan) -> String {
        let new = plan.authority.map(|cause| format!("+ ({cause}) ")).unwrap_or_default();
        let keep: Vec<_> = plan.keep.iter().map(|it| String::from_utf8_lossy(&it.id).into_owned()).collect();
        let leaf = match plan.leaf {
            LeafPlan::Keep => "keep".to_owned(),
            LeafPlan::Restore => "restore".to_owned(),
            LeafPlan::Issue(cause) => format!("issue ({cause})"),
        };
        format!("{new}{}: {leaf}", keep.join(" "))
    }

    #[test]
    fn every_situation_has_its_next_step() {
        let none = State::default();
        let (old, new) = (|| authority("old", 244), || authority("new", 0));
        let rotating = state(&[new(), old()], "new", leaf("old", 30));
        let of = |days, leaf_days| state(&[authority("a", days)], "a", leaf("a", leaf_days));
        let changed = |state: State, change: fn(&mut State)| {
            let mut state = state;
            change(&mut state);
            state
        };
        let foreign = Authority { own: false, ..authority("b", 300) };
        let rows = [
            ("nothing", none.clone(), none.clone(), None, "+ (there was none) : issue (there was none)"),
            ("all is well", of(100, 10), none.clone(), None, "a: keep"),
            ("a leaf of two thirds", of(100, 61), none.clone(), None, "a: issue (two thirds of its time are over)"),
            ("a CA of two thirds", of(244, 10), of(244, 10), Some(900), "+ (two thirds of its time are over) a: keep"),
            ("a new CA, not held", rotating.clone(), rotating.clone(), None, "new old: keep"),
            ("a new CA, just held", rotating.clone(), rotating.clone(), Some(59), "new old: keep"),
            ("a new CA, held", rotating.clone(), rotating.clone(), Some(60), "new old: issue (there is a new CA)"),
            (
                "a new CA that nobody ever held",
                state(&[new(), old()], "new", leaf("old", 90)),
                none.clone(),
                None,
                "new old: issue (its time is over)",
            ),
            (
                "an old CA whose leaves have ended",
                state(&[authority("a", 91), authority("b", 335)], "a", leaf("a", 31)),
                none.clone(),
                None,
                "a: keep",
            ),
            (
                "an old CA whose leaves may not have ended",
                state(&[authority("a", 90), authority("b", 334)], "a", leaf("a", 31)),
                none.clone(),
                None,
                "a b: keep",
            ),
            (
                "an old CA from elsewhere",
                state(&[authority("a", 200), foreign], "a", leaf("a", 31)),
                none.clone(),
                None,
                "a b: keep",
            ),
            ("deleted", none.clone(), of(100, 10), None, "+ (there was none) a: restore"),
            ("deleted, and long ago", none.clone(), of(365, 10), None, "+ (there was none) : issue (there was none)"),
            (
                "the CA's key is lost",
                changed(of(100, 10), |it| it.signer = None),
                none.clone(),
                None,
                "+ (there was none) a: keep",
            ),
            ("the leaf is lost", changed(of(9, 1), |it| it.leaf = None), of(9, 1), None, "a: issue (there was none)"),
            (
                "the leaf is lost amid a rotation",
                changed(rotating.clone(), |it| it.leaf = None),
                rotating.clone(),
                None,
                "new old: restore",
            ),
            (
                "another Service",
                changed(of(9, 1), |it| it.leaf.as_mut().unwrap().fits = false),
                none.clone(),
                None,
                "a: issue (it was for another Service)",
            ),
            (
                "somebody put another Secret in its place",
                state(&[new()], "new", leaf("new", 0)),
                of(100, 10),
                None,
                "new a: keep",
            ),
            (
                "from the future",
                state(&[authority("a", -2)], "a", leaf("a", -2)),
                none.clone(),
                None,
                "+ (its time has not come) a: issue (its time has not come)",
            ),
        ];
        for (what, stored, going_by, held_for, want) in rows {
            let plan = plan(&stored, &going_by, held_for, NOW, LIFETIMES);
            assert_eq!(summary(&plan), want, "{what}");
            assert!(plan.again > NOW, "{what}");
            let nothing = plan.authority.is_none() && plan.leaf == LeafPlan::Keep && plan.keep == stored.authorities;
            assert_eq!(plan.changes(&stored), !nothing, "{what}");
        }
    }

    #[test]
    fn another_leaf_is_served_when_its_ca_is_held_or_there_is_nothing_better() {
        let served = |days| state(&[authority("a", 100)], "a", leaf("a", days));
        let both = [authority("b", 0), authority("a", 100)];
        let rows = [
            ("the first", served(1), State::default(), false, true),
            ("renewed", served(0), served(60), false, true),
            ("of a new CA that is not held", state(&both, "b", leaf("b", 0)), served(9), false, false),
            ("of a new CA that is held", state(&both, "b", leaf("b", 0)), served(9), true, true),
            ("of a new CA, the old one has ended", state(&both, "b", leaf("b", 0)), served(90), false, true),
            ("ended", served(90), served(9), true, false),
            ("both have ended", served(91), served(90), true, false),
            ("none", State::default(), served(9), true, false),
        ];
        for (what, stored, going_by, held, want) in rows {
            assert_eq!(takes_over(&stored, &going_by, |_| held, NOW), want, "{what}");
        }
    }

    #[test]
    fn it_is_settled_when_the_same_ca_was_held_all_the_time() {
        let (a, b) = (id("a"), id("b"));
        let mut settling = Settling::default();
        let rows = [
            (Some(&a), true, 10, Some(0)),
            (Some(&a), true, 40, Some(30)),
            (Some(&a), false, 50, None),
            (Some(&a), true, 60, Some(0)),
            (Some(&b), true, 90, Some(0)),
            (Some(&b), true, 95, Some(5)),
            (None, true, 99, None),
        ];
        for (signer, holds, now, want) in rows {
            assert_eq!(settling.held_for(signer, |_| holds, now), want, "at {now}");
        }
    }

    /// Several replicas that see the Secret and the configurations late, and an API server that sees these late.
    struct Simulation {
        random: u64,
        now: Seconds,
        lifetimes: Lifetimes,
        /// Every version, since when.
        secret: Vec<(Seconds, State)>,
        configuration: Vec<(Seconds, Vec<Id>)>,
        replicas: Vec<Replica>,
        authorities: u32,
        last_change: Seconds,
        faults: Vec<String>,
    }

    #[derive(Default)]
    struct Replica {
        seen: usize,
        going_by: State,
        settling: Settling,
        again: Seconds,
    }

    /// A replica sees the Secret so late at the most; another registers what it saw then, and this is how late it is.
    const LATE: Seconds = 35;
    /// A replica knows so late what the configurations hold.
    const HELD_LATE: Seconds = 15;
    /// The API server goes by configurations of so long ago.
    const CLIENT_LATE: Seconds = 10;

    impl Simulation {
        fn new(seed: u64, replicas: usize, settle: Seconds) -> Self {
            Self {
                random: seed | 1,
                now: NOW,
                lifetimes: Lifetimes { settle, ..LIFETIMES },
                secret: vec![(NOW, State::default())],
                configuration: vec![(NOW, Vec::new())],
                replicas: (0..replicas).map(|_| Replica::default()).collect(),
                authorities: 0,
                last_change: NOW,
                faults: Vec::new(),
            }
        }

        fn below(&mut self, bound: Seconds) -> Seconds {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            Seconds::try_from(self.random >> 33).unwrap() % bound
        }

        fn run(mut self, years: Seconds) -> Self {
            let end = NOW + years * 365 * DAY;
            let mut next_accident = self.now + 20 * DAY;
            while self.now < end && self.faults.is_empty() {
                for index in 0..self.replicas.len() {
                    self.look(index);
                    self.check();
                }
                if self.now - self.last_change < 300 {
                    // Amid whatever is going on, too.
                    if self.below(400) == 0 {
                        self.accident();
                    }
                    self.now += 1 + self.below(7);
                } else {
                    if self.now >= next_accident {
                        next_accident = self.now + 10 * DAY + self.below(90 * DAY);
                        self.accident();
                        continue;
                    }
                    // Nothing happens by itself before.
                    let wake = self.replicas.iter().map(|it| it.again).min().unwrap().min(next_accident);
                    self.now = wake.max(self.now + 1);
                }
                self.check();
            }
            self
        }

        /// The Secret is deleted, or a replica starts anew. Both at once, so that nobody knows what there was before the
        /// Secret is written again, are beyond what can be promised.
        fn accident(&mut self) {
            let stored = self.secret.last().is_some_and(|(_, state)| state.leaf.is_some());
            if !stored || self.replicas.iter().any(|it| it.going_by.leaf.is_none()) {
                return;
            }
            if self.below(2) == 0 {
                self.store(State::default());
            } else {
                let which = usize::try_from(self.below(2)).unwrap();
                let seen = self.secret.len() - 1;
                self.replicas[which] = Replica { seen, ..Replica::default() };
                self.last_change = self.now;
            }
        }

        fn store(&mut self, state: State) {
            self.secret.push((self.now, state));
            self.last_change = self.now;
        }

        fn look(&mut self, index: usize) {
            let since = self.now - self.below(LATE + 1);
            let seen = self.secret.iter().rposition(|(at, _)| *at <= since).unwrap_or(0);
            let fresh = self.secret.len() - 1;
            let replica = &mut self.replicas[index];
            // One that has just started, or been refused, reads.
            replica.seen = if replica.going_by.leaf.is_none() { fresh } else { replica.seen.max(seen) };
            while !self.step(index) {
                self.replicas[index].seen = self.secret.len() - 1;
            }
        }

        /// Whether nothing is left to do for now.
        fn step(&mut self, index: usize) -> bool {
            let known = self.now - self.below(HELD_LATE + 1);
            let held = self.configuration_at(known).to_vec();
            let register = self.below(2) == 0;
            let (now, lifetimes) = (self.now, self.lifetimes);
            let replica = &mut self.replicas[index];
            let stored = self.secret[replica.seen].1.clone();
            let holds = |id: &Id| held.is_empty() || held.contains(id);
            if takes_over(&stored, &replica.going_by, holds, now) && replica.going_by.leaf != stored.leaf {
                replica.going_by.leaf.clone_from(&stored.leaf);
                if !stored.authorities.is_empty() {
                    replica.going_by.authorities.clone_from(&stored.authorities);
                }
                self.last_change = now;
            }
            replica.going_by.authorities = trusted(&stored, &replica.going_by, now);
            let held_for = replica.settling.held_for(stored.signer.as_ref(), holds, now);
            let plan = plan(&stored, &replica.going_by, held_for, now, lifetimes);
            replica.again = plan.again;
            let (going_by, seen) = (replica.going_by.clone(), replica.seen);
            let trusted: Vec<_> = going_by.authorities.iter().map(|it| Id::clone(&it.id)).collect();
            let configuration = &self.configuration.last().unwrap().1;
            if !trusted.is_empty() && *configuration != trusted {
                self.last_change = now;
                if register {
                    self.configuration.push((now, trusted));
                }
            }
            if !plan.changes(&stored) {
                return true;
            }
            if seen + 1 == self.secret.len() {
                let next = self.carry_out(&plan, &stored, &going_by);
                self.store(next);
            }
            false
        }

        fn carry_out(&mut self, plan: &Plan, stored: &State, going_by: &State) -> State {
            let mut authorities = plan.keep.clone();
            let mut signer = stored.signer.clone();
            if plan.authority.is_some() {
                self.authorities += 1;
                let new = made(id(&self.authorities.to_string()), self.now, true);
                signer = Some(Id::clone(&new.id));
                authorities.insert(0, new);
            }
            let leaf = match plan.leaf {
                LeafPlan::Keep => stored.leaf.clone(),
                LeafPlan::Restore => going_by.leaf.clone(),
                LeafPlan::Issue(_) => {
                    let signer = find(&authorities, signer.as_ref().unwrap()).unwrap();
                    Some(signed(&signer.id, self.now, signer.not_after))
                }
            };
            State { authorities, signer, leaf }
        }

        fn configuration_at(&self, at: Seconds) -> &[Id] {
            &self.configuration.iter().rfind(|(since, _)| *since <= at).unwrap_or(&self.configuration[0]).1
        }

        /// Every client accepts what every replica serves.
        fn check(&mut self) {
            let from = self.now - CLIENT_LATE;
            let seen_by_clients = self.configuration.iter().rev().scan(false, |before, (since, held)| {
                let done = std::mem::replace(before, *since <= from);
                (!done).then_some(held)
            });
            for held in seen_by_clients.filter(|held| !held.is_empty()) {
                for leaf in self.replicas.iter().filter_map(|it| it.going_by.leaf.as_ref()) {
                    let valid = leaf.not_before <= self.now && self.now < leaf.not_after;
                    if !valid || !held.contains(&leaf.issuer) {
                        self.faults.push(format!("at {}: {leaf:?}, and trusted are {held:?}", self.now - NOW));
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// Deletions of the Secret and restarts of replicas included.
        #[test]
        fn through_years_every_client_accepts_what_every_replica_serves(seed: u64, replicas in 2_usize..4) {
            let simulation = Simulation::new(seed, replicas, LIFETIMES.settle).run(4);
            prop_assert_eq!(&simulation.faults, &Vec::<String>::new());
            prop_assert!(simulation.authorities >= 5, "{} CAs", simulation.authorities);
            let most = simulation.secret.iter().map(|(_, state)| state.authorities.len()).max();
            prop_assert!(most.is_some_and(|it| it < 12), "{most:?} CAs at a time");
            // However many were made in the time of one leaf: of older ones there are the last, and the one before it.
            for (at, state) in &simulation.secret {
                let is_old = |it: &&Authority| it.made() + LIFETIMES.leaf + SKEW <= *at;
                let old = state.authorities.iter().filter(is_old).count();
                prop_assert!(old <= 2, "{old} old CAs at {}", at - NOW);
            }
        }
    }

    #[test]
    fn without_settling_some_client_would_not() {
        let any = (1..40).any(|seed| !Simulation::new(seed * 7919, 3, 0).run(4).faults.is_empty());
        assert!(any, "the simulation cannot fail");
    }
}
