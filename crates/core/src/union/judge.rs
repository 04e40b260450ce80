//! Judges an object: walks the new and the old object side by side, and collects changes and violations.
//!
//! The walk follows the order of paths. Changes and violations are therefore in that order whatever the order of keys in
//! the JSON, and the first of many violations are always the same. The walk passes over items of lists and values of maps in
//! which there is nothing to find, and looks up no counterparts of them. This module must not know JSON or admission.
//! `normalize` and `validate` have the rules for one union.

mod here;
mod judged;
mod judgement;

pub use self::judgement::LetThrough;
pub(crate) use self::judgement::{Judgement, Objects, Rules};

use self::here::{Here, Inwards};
use self::judged::{Event, EventKind, Fate, JudgedUnion};
use super::arena::{NodeRef, ObjectRef, UnionState};
use super::breach::Breaches;
use super::change::{Change, ChangeReason};
use super::correlate::{Old, OldItems, Pair, Pairs};
use super::manifest::{Claims, ItemClaims, Manifests, map_values, value_claims};
use super::normalize::{Normalized, normalize};
use super::plan::{ListNode, Node, NodeIndex, ObjectNode, Part, Plan, Role};
use super::validate::{is_settled, validate, validate_alone};
use super::violation::Violation;
use super::{Form, MemberSet};
use crate::meter::{Buffer, Exhausted, Meter};
use crate::schema::Actions;

/// Judges one part of an object. The memory of the judgement stays charged to `meter`.
pub(crate) fn judge(
    plan: &Plan,
    part: Part,
    objects: Objects<'_>,
    rules: Rules,
    meter: &dyn Meter,
) -> Result<Judgement, Exhausted> {
    let Objects { new, old, manifests } = objects;
    let mut walk = Walk { plan, rules, meter, changes: Buffer::new(meter), judgement: Judgement::default() };
    if let Some((root, new)) = plan.root(part).zip(new) {
        let old = old.map_or(Old::None, Old::Known);
        let claims = manifests.map(Manifests::claims);
        walk.value(root, new, old, claims.as_ref(), &Here::root())?;
    }
    let Walk { changes, judgement, .. } = walk;
    Ok(Judgement { changes: changes.keep(), ..judgement })
}

struct Walk<'w> {
    plan: &'w Plan,
    rules: Rules,
    meter: &'w dyn Meter,
    changes: Buffer<'w, Change>,
    /// Everything but the changes.
    judgement: Judgement,
}

impl<'w> Walk<'w> {
    fn value<'o>(
        &mut self,
        node: NodeIndex,
        new: NodeRef<'_>,
        old: Old<'o, NodeRef<'o>>,
        claims: Option<&Claims<'o>>,
        here: &Here<'_>,
    ) -> Result<(), Exhausted> {
        match self.plan.node(node) {
            Some(Node::Object(object)) => {
                self.object(object, new.object(), old.inside(|value| Some(value.object())), claims, here)
            }
            Some(Node::List(list)) => self.list(list, new, old, claims, here),
            Some(Node::Map(map)) => self.map(map.values, new, old, claims, here),
            None => Ok(()),
        }
    }

    fn object<'o>(
        &mut self,
        node: &'w ObjectNode,
        new: ObjectRef<'_>,
        old: Old<'o, ObjectRef<'o>>,
        claims: Option<&Claims<'o>>,
        here: &Here<'_>,
    ) -> Result<(), Exhausted> {
        // Empty, without an allocation, unless a union changes or has violations.
        let mut findings = Buffer::new(self.meter);
        let emptied = self.emptied(node, new, old, claims)?;
        for (position, state) in new.states_with(&node.required) {
            let emptied = emptied.iter().filter(|(union, _)| *union == position);
            let emptied = emptied.fold(MemberSet::EMPTY, |all, (_, index)| all.with(MemberSet::of(*index)));
            if let Some(finding) = self.union(node, position, state, emptied, old, claims)? {
                findings.push(finding)?;
            }
        }
        let mut events = self.events(&findings)?;
        events.sort_unstable_by(|one, other| (one.field, one.finding).cmp(&(other.field, other.finding)));
        let mut unreported = &*events;
        for (position, value) in new.children() {
            let Some(field) = node.field(position) else {
                debug_assert!(false, "a child at a field that the plan does not have");
                continue;
            };
            let before = unreported.partition_point(|event| *event.field <= *field.name);
            let (due, later) = unreported.split_at_checked(before).unwrap_or_default();
            self.report(due, &mut findings, here)?;
            unreported = later;
            // Fields below a cleared member disappear with it.
            if let Some(child) = field.child.filter(|_| !is_cleared(field.role, &findings)) {
                let claims = claims.map(|claims| claims.child(position));
                let old = old.inside(|object| object.child(position));
                self.value(child, value, old, claims.as_ref(), &here.then(Inwards::Field(&field.name)))?;
            }
        }
        self.report(unreported, &mut findings, here)
    }

    fn list<'o>(
        &mut self,
        node: &ListNode,
        new: NodeRef<'_>,
        old: Old<'o, NodeRef<'o>>,
        claims: Option<&Claims<'o>>,
        here: &Here<'_>,
    ) -> Result<(), Exhausted> {
        let (plan, meter) = (self.plan, self.meter);
        let mut beside = old.known().into_iter().flat_map(NodeRef::items).map(|(_, item)| item);
        let items = new.items().map(|(index, item)| (index, item, beside.next()));
        let mut unsettled = items.filter(|(_, item, _)| !plan.is_settled(node.items, *item)).peekable();
        if unsettled.peek().is_none() {
            return Ok(());
        }
        // Nothing of a manifest belongs to an item without an identity.
        let claims = match claims {
            Some(claims) if node.keyed => Some(ItemClaims::new(*claims, meter)?),
            Some(_) | None => None,
        };
        let claims_of = |item: NodeRef<'_>| claims.as_ref().map(|claims| claims.of(item.object()));
        let Old::Known(before) = old else {
            // Without an old list every item is new. Inside a list without identities, its old items apply to everything
            // below.
            for (index, item, _) in unsettled {
                self.value(node.items, item, old, claims_of(item).as_ref(), &here.then(Inwards::Index(index)))?;
            }
            return Ok(());
        };
        let old_items = OldItems::new(plan, node.items, before, meter);
        let pairs = if node.keyed { Some(Pairs::new(new, before, meter)?) } else { None };
        for (index, item, beside) in unsettled {
            let pair = pairs.as_ref().map_or(Pair::Uncertain, |pairs| pairs.of(item.object(), beside));
            let old = match pair {
                Pair::Same(old) => Old::Known(old),
                Pair::New => Old::None,
                Pair::Uncertain => Old::Uncertain(&old_items),
            };
            self.value(node.items, item, old, claims_of(item).as_ref(), &here.then(Inwards::Index(index)))?;
        }
        Ok(())
    }

    fn map<'o>(
        &mut self,
        values: NodeIndex,
        new: NodeRef<'_>,
        old: Old<'o, NodeRef<'o>>,
        claims: Option<&Claims<'o>>,
        here: &Here<'_>,
    ) -> Result<(), Exhausted> {
        // All maps are sorted by key.
        let mut before = map_values(old.known());
        let mut claims_of = claims.map(|claims| value_claims(*claims));
        for (key, value) in new.entries() {
            if self.plan.is_settled(values, value) {
                continue;
            }
            let same = before(key);
            let claims = claims_of.as_mut().map(|claims_of| claims_of(key));
            self.value(values, value, old.inside(|_| same), claims.as_ref(), &here.then(Inwards::Key(key)))?;
        }
        Ok(())
    }

    /// Returns the members that are empty once their own unions are normalised, and count as not set then, with the positions of their
    /// unions. Mutating admission alone does not ask, since its result is validated later.
    fn emptied<'o>(
        &mut self,
        node: &'w ObjectNode,
        new: ObjectRef<'_>,
        old: Old<'o, ObjectRef<'o>>,
        claims: Option<&Claims<'o>>,
    ) -> Result<Buffer<'w, (u8, u8)>, Exhausted> {
        let mut emptied = Buffer::new(self.meter);
        if !(self.rules.normalize && self.rules.validate) {
            return Ok(emptied);
        }
        for (position, child) in new.children() {
            if let Some(field) = node.field(position)
                && let (Role::Member { union, index }, true) = (field.role, field.values.empty_is_unset)
                && let Some(Node::Object(inside)) = field.child.and_then(|child| self.plan.node(child))
                && child.object().has_only_members()
            {
                let claims = claims.map(|claims| claims.child(position));
                let old = old.inside(|object| object.child(position).map(NodeRef::object));
                let mut keeps = false;
                for (at, state) in child.object().states() {
                    let finding = self.union(inside, at, state, MemberSet::EMPTY, old, claims.as_ref())?;
                    let clear = finding.map_or(MemberSet::EMPTY, |finding| finding.clear);
                    keeps |= !state.members.less(clear).is_empty();
                }
                if !keeps {
                    emptied.push((union, index))?;
                }
            }
        }
        Ok(emptied)
    }

    /// Judges one union with something set, or one that is required. `emptied` has the members that count as not set once all is
    /// normalised. Returns `None` if nothing changes and nothing is wrong.
    fn union<'f, 'o>(
        &mut self,
        node: &ObjectNode,
        position: u8,
        state: UnionState<'f>,
        emptied: MemberSet,
        old: Old<'o, ObjectRef<'o>>,
        claims: Option<&Claims<'o>>,
    ) -> Result<Option<JudgedUnion<'f>>, Exhausted>
    where
        'w: 'f,
    {
        let union = self.plan.unions_of(node).get(usize::from(position));
        debug_assert!(union.is_some(), "a state of a union that the plan does not have");
        let Some(union) = union else { return Ok(None) };
        let before = old.known().map(|object| object.state(position));
        let claims = claims.map(|claims| claims.of_union(position, state));
        let residue = claims.as_ref().map(|claims| claims.residue(union, before.as_ref(), &state)).unwrap_or_default();
        let cleared = if self.rules.normalize { residue.all() } else { MemberSet::EMPTY };
        let chosen = UnionState { members: state.members.less(cleared), ..state };
        let normalized_of = |state: &UnionState<'_>| {
            let normalized =
                if union.is_normalized() { normalize(union, before.as_ref(), state) } else { Normalized::default() };
            match &claims {
                Some(claims) => claims.restrict(union, before.as_ref(), state, normalized),
                None => normalized,
            }
        };
        let mut normalized = normalized_of(&chosen);
        let applies = self.rules.normalize && normalized.contradictions.is_empty();
        // Validation sees this state if nothing of this union is normalised.
        let sent = UnionState { members: chosen.members.less(emptied), ..chosen };
        if !normalized.contradictions.is_empty() && !emptied.is_empty() {
            normalized.contradictions = normalized_of(&sent).contradictions;
        }
        let contradicted = !normalized.contradictions.is_empty();
        let changes = || !normalized.clear.is_empty() || normalized.deduce.is_some() || !residue.all().is_empty();
        self.judgement.would_change |= !self.rules.normalize && changes();
        let added = before.map_or(MemberSet::EMPTY, |before| state.members.less(before.members));
        let may_yield = |index| union.is_ownerless(index) || union.is_unset_when_empty(index);
        self.judgement.would_change |= claims.is_none()
            && union.is_normalized()
            && (!state.nulls.is_empty() || added.iter().any(may_yield))
            && !is_settled(union, &state);
        let stored = if applies { normalized.applied_to(union, chosen) } else { chosen };
        let mut finding = JudgedUnion {
            union,
            position,
            state: UnionState { members: stored.members.less(emptied), ..stored },
            clear: cleared.with(if applies { normalized.clear } else { MemberSet::EMPTY }),
            residue,
            cause: normalized.cause,
            deduced: normalized.deduce.filter(|_| applies),
            faults: normalized.contradictions,
            fate: Fate::Denied,
            set: None,
        };
        // In the 2022 form validation finds what normalisation does not resolve.
        if self.rules.validate && (!contradicted || union.form() == Form::Map) {
            let validate = if union.is_normalized() { validate } else { validate_alone };
            finding.faults = validate(union, before.as_ref(), &finding.state);
        }
        if !finding.faults.is_empty() {
            // A union that is created has nothing that the manifest could switch.
            if let Some(claims) = claims.as_ref().filter(|_| before.is_some()) {
                finding.faults = finding.faults.blame_manifest(claims.contradiction(union, &sent));
            }
            let untouched = || match old {
                Old::Known(_) => Ok(before.is_some_and(|before| before.same_choice(&sent))),
                Old::Uncertain(items) => items.had_same_choice(node.union(position), &sent),
                Old::None => Ok(false),
            };
            finding.fate = match union.actions() {
                Actions::Audit => Fate::Observed,
                Actions::Warn { .. } => Fate::LetThrough(LetThrough::WarnOnly),
                Actions::Deny { .. } if self.rules.ratchet && untouched()? => Fate::LetThrough(LetThrough::Unchanged),
                Actions::Deny { .. } => Fate::Denied,
            };
            // Without validation, violations that would be let through are not reported.
            if finding.fate != Fate::Denied && !self.rules.validate {
                finding.faults = Breaches::default();
            }
        }
        let silent = finding.clear.is_empty() && finding.deduced.is_none() && finding.faults.is_empty();
        debug_assert!(
            silent || !emptied.is_empty() || !is_settled(union, &state),
            "findings in a union that is settled"
        );
        Ok((!silent).then_some(finding))
    }

    /// Returns the changes and violations of the fields of an object. Counts violations that exceed the limit.
    fn events<'f>(&mut self, findings: &[JudgedUnion<'f>]) -> Result<Buffer<'w, Event<'f>>, Exhausted> {
        let mut events = Buffer::new(self.meter);
        for (number, finding) in findings.iter().enumerate() {
            let JudgedUnion { union, faults, .. } = finding;
            let mut push = |field, kind| events.push(Event { field, finding: number, kind });
            for index in finding.clear.iter() {
                push(union.member_name(index), EventKind::Clear(index))?;
            }
            if let Some(index) = finding.deduced {
                push(union.discriminator().unwrap_or_default(), EventKind::Deduce(index))?;
            }
            if self.is_full(finding) {
                self.leave_out(finding, faults.iter().count());
                continue;
            }
            for breach in faults.iter() {
                push(breach.field(union).unwrap_or_default(), EventKind::Breach(breach))?;
            }
        }
        Ok(events)
    }

    /// Adds changes and violations to the judgement.
    fn report(
        &mut self,
        events: &[Event<'_>],
        findings: &mut [JudgedUnion<'_>],
        here: &Here<'_>,
    ) -> Result<(), Exhausted> {
        for Event { field, finding, kind } in events {
            let Some(finding) = findings.get_mut(*finding) else {
                debug_assert!(false, "an event of no finding");
                continue;
            };
            match *kind {
                EventKind::Clear(index) => self.change(here, field, finding.clearing(index))?,
                EventKind::Deduce(index) => self.change(here, field, finding.deduction(index))?,
                EventKind::Breach(_) if self.is_full(finding) => self.leave_out(finding, 1),
                EventKind::Breach(breach) => {
                    let field = breach.field(finding.union);
                    let size = here.memory(field).saturating_add(4 * size_of::<(Violation, LetThrough)>());
                    let copies = 1_usize.saturating_add(finding.union.actions().audits().into());
                    self.meter.charge(size.saturating_mul(copies))?;
                    let kind = finding.violation(breach, self.meter)?;
                    self.push(finding, Violation { path: here.path(field), kind });
                }
            }
        }
        Ok(())
    }

    fn change(&mut self, here: &Here<'_>, field: &str, reason: ChangeReason) -> Result<(), Exhausted> {
        let size = here.memory(Some(field)).saturating_add(reason.memory());
        self.meter.charge(size)?;
        self.judgement.charged = self.judgement.charged.saturating_add(size);
        self.changes.push(Change { path: here.path(Some(field)), reason })
    }

    fn push(&mut self, finding: &JudgedUnion<'_>, violation: Violation) {
        if finding.union.actions().audits() {
            self.judgement.audited.push(violation.clone());
        }
        match finding.fate {
            Fate::Denied => self.judgement.violations.push(violation),
            Fate::LetThrough(reason) => self.judgement.let_through.push((violation, reason)),
            Fate::Observed => self.judgement.observed.push(violation),
        }
    }

    /// Returns true if no list has room for another violation of this union.
    fn is_full(&self, finding: &JudgedUnion<'_>) -> bool {
        let is_full = match finding.fate {
            Fate::Denied => self.judgement.violations.is_full(),
            Fate::LetThrough(_) => self.judgement.let_through.is_full(),
            Fate::Observed => self.judgement.observed.is_full(),
        };
        is_full && (!finding.union.actions().audits() || self.judgement.audited.is_full())
    }

    fn leave_out(&mut self, finding: &JudgedUnion<'_>, number: usize) {
        if finding.union.actions().audits() {
            self.judgement.audited.leave_out(number);
        }
        match finding.fate {
            Fate::Denied => self.judgement.violations.leave_out(number),
            Fate::LetThrough(_) => self.judgement.let_through.leave_out(number),
            Fate::Observed => self.judgement.observed.leave_out(number),
        }
    }
}

impl Plan {
    /// Returns true if there is nothing to find in the unions of a part, whatever it was before.
    fn is_settled(&self, node: NodeIndex, new: NodeRef<'_>) -> bool {
        match self.node(node) {
            Some(Node::Object(node)) => {
                let (object, unions) = (new.object(), self.unions_of(node));
                let union_is_settled = |(position, state): (u8, _)| {
                    unions.get(usize::from(position)).is_none_or(|union| is_settled(union, &state))
                };
                let child_is_settled =
                    |(position, child)| node.child(position).is_none_or(|id| self.is_settled(id, child));
                object.states_with(&node.required).all(union_is_settled) && object.children().all(child_is_settled)
            }
            Some(Node::List(list)) => new.items().all(|(_, item)| self.is_settled(list.items, item)),
            Some(Node::Map(map)) => new.entries().all(|(_, value)| self.is_settled(map.values, value)),
            None => true,
        }
    }
}

/// Returns true if a field is a member that is cleared. `findings` is in the order of the object's unions.
fn is_cleared(role: Role, findings: &[JudgedUnion<'_>]) -> bool {
    match role {
        Role::Member { union, index } => {
            let found = findings.binary_search_by_key(&union, |finding| finding.position).ok();
            found.and_then(|at| findings.get(at)).is_some_and(|finding| finding.clear.contains(index))
        }
        Role::Bystander | Role::Discriminator { .. } => false,
    }
}
