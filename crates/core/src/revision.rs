//! Compares the unions of two revisions of a kind, for authors who change what clients rely on.
//!
//! Each difference is a [`Fault`] of a kind for which [`FaultKind::is_revision`] holds. The kind says what the difference costs, by its
//! severity:
//! - an *error* breaks: a write that made sense is refused, or has another effect;
//! - a *warning* is safe only with ratcheting: objects that may be stored become invalid, and can be updated only because unchanged
//!   violations are let through;
//! - a *note* is safe.

use crate::declaration::{DefinitionVersion, Fault, FaultKind, Severity, pointer_of};
use crate::listed::quoted;
use crate::names::GroupVersionKind;
use crate::schema::{Place, Schema};
use crate::union::{Choice, Form, Plan, SelectedMember, Union};
use std::collections::BTreeSet;

/// Most names in a message. The rest is counted.
const MOST_LISTED: usize = 8;

const BECAME_REQUIRED: &str = "an object must have a choice, and none was needed before";

/// A kind at one version, as one of two revisions has it.
#[derive(Debug, Clone, Copy)]
pub struct RevisedKind<'k> {
    /// The kind.
    pub gvk: &'k GroupVersionKind,
    /// The name of its CRD. A built-in type has kind and group.
    pub definition: &'k str,
    /// The unions in force.
    pub plan: Option<&'k Plan>,
    /// The version in the CRD. `None` for a built-in type, whose fields count as known to both revisions.
    pub version: Option<&'k DefinitionVersion>,
}

impl<'k> RevisedKind<'k> {
    /// Returns the differences to an older revision of the same version, in the order of the unions.
    pub fn changes_since(&self, old: &RevisedKind<'_>) -> Vec<Fault> {
        let mut revision = Revision { old: *old, new: *self, changes: Vec::new() };
        let mut added: Vec<&Union> = self.unions().iter().collect();
        let mut removed = Vec::new();
        for before in old.unions() {
            match take_best(&mut added, |after| similarity(before, after)) {
                Some(after) => revision.compare(before, after),
                None => removed.push(before),
            }
        }
        for before in removed {
            match take_best(&mut added, |after| usize::from(before.members().eq(after.members()))) {
                Some(after) => {
                    let path = if before.path().is_empty() { "(the object)" } else { before.path() };
                    revision.add(FaultKind::UnionMoved, after, format!("the union was at `{path}`"));
                }
                None => revision.add_removed(before),
            }
        }
        for after in added {
            revision.add_added(after);
        }
        revision.changes
    }

    /// Returns the note that the other revision does not have this version, if it has unions.
    pub fn alone(&self, kind: FaultKind) -> Option<Fault> {
        let unions = self.unions().len();
        let other = if kind == FaultKind::OnlyInOld { "the new files do not" } else { "the old files do not" };
        let message = format!("{other} describe this version, whose unions are not compared: {unions}");
        (unions > 0).then(|| self.fault(kind, None, message))
    }

    fn unions(&self) -> &'k [Union] {
        self.plan.map_or(&[], Plan::unions)
    }

    /// Returns the schema of the object with a union. `None` if the version has no such place, or is one of a built-in type.
    fn object(&self, union: &Union) -> Option<&'k Schema> {
        self.version?.schema.at(&place(union))
    }

    /// Returns true if an object of the version may have a field beside those of the union.
    fn may_have(&self, union: &Union, field: &str) -> bool {
        self.version.is_none() || self.object(union).is_some_and(|object| object.properties.contains_key(field))
    }

    fn fault(&self, kind: FaultKind, union: Option<&Union>, message: String) -> Fault {
        let pointer = union.map(|union| {
            if let Some(origin) = union.origins().next().filter(|_| union.declaration().is_some()) {
                return origin.entry.pointer();
            }
            let discriminator = union.discriminator().filter(|_| union.form() == Form::Map);
            let at = discriminator.map_or_else(|| place(union), |name| place(union).property(name));
            pointer_of(self.version, &at, union.source())
        });
        let cost = match kind.severity() {
            Severity::Error => "breaks",
            Severity::Warning => "safe only with ratcheting",
            Severity::Note => "safe",
        };
        let message = if kind.is_lone() { message } else { format!("{cost}: {message}") };
        Fault {
            declaration: union.and_then(Union::declaration).map(str::to_owned),
            version: Some(self.gvk.version.to_string()),
            path: union.map(|union| union.path().to_owned()).unwrap_or_default(),
            source: union.map(Union::source),
            pointer: pointer.unwrap_or_default(),
            ..Fault::new(kind, self.definition, message)
        }
        .bounded()
    }
}

/// Two revisions, and their differences.
struct Revision<'k, 'o> {
    old: RevisedKind<'o>,
    new: RevisedKind<'k>,
    changes: Vec<Fault>,
}

impl Revision<'_, '_> {
    fn add(&mut self, kind: FaultKind, union: &Union, message: impl Into<String>) {
        self.changes.push(self.new.fault(kind, Some(union), message.into()));
    }

    fn add_removed(&mut self, union: &Union) {
        let message = format!(
            "nothing declares the union of {} any more, so nothing keeps them apart",
            quoted(union.members().collect::<Vec<_>>().iter(), MOST_LISTED)
        );
        let fault = self.new.fault(FaultKind::UnionRemoved, None, message);
        self.changes.push(Fault { path: union.path().to_owned(), ..fault });
    }

    fn add_added(&mut self, union: &Union) {
        let known: Vec<&str> = union.members().filter(|name| self.old.may_have(union, name)).collect();
        let apart = known.iter().any(|one| known.iter().any(|other| !may_be_together(union, one, other)));
        if apart {
            let known = quoted(known.iter(), MOST_LISTED);
            let message =
                format!("the fields {known} were there before the union, so an object may hold several of them");
            self.add(FaultKind::UnionOverFields, union, message);
        } else {
            self.add(FaultKind::UnionAdded, union, "the union is new, and no object can violate it yet");
        }
        if union.is_required() && (self.old.version.is_none() || self.old.object(union).is_some()) {
            self.add(FaultKind::UnionBecameRequired, union, BECAME_REQUIRED);
        }
    }

    fn compare(&mut self, before: &Union, after: &Union) {
        match (before.discriminator(), after.discriminator()) {
            (None, None) => self.compare_groups(before, after),
            (None, Some(name)) => {
                let message = format!("the discriminator `{name}` is new: objects may lack it, or have another value");
                self.add(FaultKind::DiscriminatorAdded, after, message);
            }
            (Some(name), None) => {
                let message = format!("the discriminator `{name}` is gone: a write of it alone clears nothing");
                self.add(FaultKind::DiscriminatorRemoved, after, message);
            }
            (Some(old), Some(new)) if old != new => {
                let message = format!("the discriminator was `{old}` and is `{new}`");
                self.add(FaultKind::DiscriminatorRenamed, after, message);
            }
            (Some(_), Some(_)) => self.compare_choices(before, after),
        }
        if before.form() != after.form() {
            let message = "the form of the union is another one: a write of a member alone has another effect";
            self.add(FaultKind::FormChanged, after, message);
        }
        self.compare_members(before, after);
        self.compare_treatment(before, after);
    }

    /// Compares what each value of the discriminator selects.
    fn compare_choices(&mut self, before: &Union, after: &Union) {
        let named = |choices: &[Choice], value: &str| choices.iter().any(|choice| choice.value() == value);
        for choice in before.choices() {
            let value = choice.value();
            let Some(now) = after.choices().iter().find(|now| now.value() == value) else {
                self.add(FaultKind::ValueRemoved, after, format!("the value `{value}` is no choice any more"));
                continue;
            };
            for member in choice.members() {
                let name = member.name();
                let change = match now.selected(name).map(SelectedMember::is_optional) {
                    None if has(after, name) => (FaultKind::MemberDeselected, "does not select", "any more"),
                    Some(false) if member.is_optional() => (FaultKind::MemberBecameRequired, "needs", "now"),
                    Some(true) if !member.is_optional() => (FaultKind::MemberBecameOptional, "can do without", "now"),
                    None | Some(_) => continue,
                };
                let (kind, verb, when) = change;
                self.add(kind, after, format!("the value `{value}` {verb} the member `{name}` {when}"));
            }
            for member in now.members().iter().filter(|now| !now.is_optional() && choice.selected(now.name()).is_none())
            {
                let message = format!("the value `{value}` needs the member `{}` now", member.name());
                self.add(FaultKind::MemberBecameRequired, after, message);
            }
        }
        for choice in after.choices().iter().filter(|choice| !named(before.choices(), choice.value())) {
            self.add(FaultKind::ValueAdded, after, format!("the value `{}` is a new choice", choice.value()));
        }
    }

    /// Compares which members may be set together. Values without a discriminator only name groups.
    fn compare_groups(&mut self, before: &Union, after: &Union) {
        let both: Vec<&str> = before.members().filter(|name| has(after, name)).collect();
        for (position, one) in both.iter().enumerate() {
            for other in both.iter().skip(position.saturating_add(1)) {
                let (kind, verb) = match (may_be_together(before, one, other), may_be_together(after, one, other)) {
                    (true, false) => (FaultKind::GroupSplit, "could be set together, and exclude each other now"),
                    (false, true) => {
                        (FaultKind::GroupJoined, "excluded each other, and a write of one keeps the other now")
                    }
                    (true, true) | (false, false) => continue,
                };
                self.add(kind, after, format!("the members `{one}` and `{other}` {verb}"));
            }
        }
    }

    fn compare_members(&mut self, before: &Union, after: &Union) {
        let discriminated = before.discriminator().is_some() && before.discriminator() == after.discriminator();
        let keeps_value = |name: &str| {
            let mut selecting = before.choices().iter().filter(|choice| choice.selected(name).is_some());
            selecting.any(|choice| after.choices().iter().any(|now| now.value() == choice.value()))
        };
        // A removed value tells of its members.
        for name in before.members().filter(|name| !has(after, name) && (!discriminated || keeps_value(name))) {
            let rest =
                if self.new.may_have(after, name) { "the field stays, and excludes no other" } else { "nor a field" };
            self.add(FaultKind::MemberRemoved, after, format!("`{name}` is no member any more: {rest}"));
        }
        for name in after.members().filter(|name| !has(before, name)) {
            if self.old.may_have(after, name) {
                let message = format!(
                    "the field `{name}` was there before it became a member, so objects may hold it beside another one"
                );
                self.add(FaultKind::MemberOverField, after, message);
            } else {
                self.add(FaultKind::MemberAdded, after, format!("the member `{name}` is a new field"));
            }
        }
        let unset = |union: &Union| union.empty_is_unset().map(str::to_owned).collect::<BTreeSet<_>>();
        let (old, new) = (unset(before), unset(after));
        for (kind, names, other, now) in [
            (FaultKind::EmptyBecameSet, old.difference(&new), after, "counts as set"),
            (FaultKind::EmptyBecameUnset, new.difference(&old), before, "counts as not set"),
        ] {
            for name in names.filter(|name| has(other, name)) {
                self.add(kind, after, format!("an empty `{name}` {now} now"));
            }
        }
    }

    fn compare_treatment(&mut self, before: &Union, after: &Union) {
        let of = |union: &Union| [union.is_required(), union.is_normalized(), union.actions().denies()];
        let changes = [
            (
                (FaultKind::UnionBecameRequired, BECAME_REQUIRED),
                (FaultKind::UnionBecameOptional, "an object need not have a choice any more"),
            ),
            (
                (FaultKind::NormalizationEnabled, "a write that sets another member clears the old one now"),
                (
                    FaultKind::NormalizationDisabled,
                    "nothing is cleared any more: a write that only sets another member is refused",
                ),
            ),
            (
                (FaultKind::ActionBecameDeny, "what violates the union is refused now, and was accepted before"),
                (FaultKind::ActionRelaxed, "what violates the union is accepted now"),
            ),
        ];
        for ((was, is), (begun, ended)) in of(before).into_iter().zip(of(after)).zip(changes) {
            let (kind, message) = if is { begun } else { ended };
            if was != is {
                self.add(kind, after, message);
            }
        }
    }
}

/// Takes the candidate with the highest rank, the first one of equals. None has the rank 0.
fn take_best<'u>(candidates: &mut Vec<&'u Union>, rank: impl Fn(&Union) -> usize) -> Option<&'u Union> {
    let ranked = candidates.iter().enumerate().rev().map(|(position, union)| (rank(union), position));
    let (rank, position) = ranked.max_by_key(|(rank, _)| *rank)?;
    (rank > 0).then(|| candidates.remove(position))
}

/// Returns how much two unions of one object have in common. A member counts more than the discriminator.
fn similarity(one: &Union, other: &Union) -> usize {
    if one.path() != other.path() {
        return 0;
    }
    let shared = one.members().filter(|name| has(other, name)).count();
    let same_discriminator = one.discriminator().is_some() && one.discriminator() == other.discriminator();
    shared.saturating_mul(2).saturating_add(usize::from(same_discriminator))
}

fn has(union: &Union, member: &str) -> bool {
    union.members().any(|name| name == member)
}

fn may_be_together(union: &Union, one: &str, other: &str) -> bool {
    one == other
        || union.choices().iter().any(|choice| choice.selected(one).is_some() && choice.selected(other).is_some())
}

/// Returns the place of the object with a union.
fn place(union: &Union) -> Place {
    Place::from_path(union.path()).unwrap_or_default()
}
