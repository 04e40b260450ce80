//! Normalisation as a JSON Patch: the expression of a `MutatingAdmissionPolicy`.
//!
//! It follows [`normalize`](kube_unions_core::union) rule by rule.

use crate::body::{PolicyBody, PolicyInputs};
use crate::cel::{all, any, concat, fold, pointer, text};
use crate::condition::Conditions;
use crate::group::PlaceGroup;
use crate::members::{Algorithm, Members};
use crate::place::UnionObjects;
use crate::root::{PodOwner, Purpose};
use crate::rows::PolicyFacts;
use crate::target::PolicyTarget;
use crate::variables::Variables;
use kube_unions_core::union::{Part, Union};

/// Compiles the normalisation of places. Returns `None` if nothing can be cleared or deduced.
pub(crate) fn compile<'g, 'u>(
    part: Part,
    groups: &'g [PlaceGroup<'u>],
    owners: &[PodOwner<'u>],
    target: &PolicyTarget<'_>,
) -> Option<PolicyBody<'g, 'u>> {
    let mut deepest_first: Vec<&'g PlaceGroup<'u>> = groups.iter().collect();
    // The deepest places come first: a member takes what is in it along.
    deepest_first.sort_by_key(|group| std::cmp::Reverse(group.depth()));
    let facts =
        PolicyFacts { purpose: Purpose::Mutation, part, custom: target.custom, list_functions: true, several: false };
    let mut variables = Variables::default();
    let inputs = PolicyInputs::new(deepest_first.into_iter(), can_normalize, owners, target, facts, &mut variables)?;
    let (mut cleared, mut deduced, mut conditions) =
        (Vec::new(), Vec::new(), Conditions::new(&inputs.root, target.custom));
    for (group, union) in &inputs.unions {
        conditions.of_mutation(group, union);
    }
    for alike in &inputs.joined {
        let suspects = |members: &Members<'_>, set: &str, value: &str| Some(suspects(members, set, value));
        let objects = UnionObjects::new(alike, &inputs.root, inputs.facts, suspects, &mut variables);
        let Some(mut objects) = objects else { continue };
        if let Some(residue) = objects.take_residue(&mut variables) {
            cleared.push(objects.collect(&objects.removals(&residue)));
        }
        match Algorithm::of(objects.members.union) {
            Algorithm::Map(discriminator) => {
                cleared.push(objects.of_change(discriminator, &mut variables));
            }
            Algorithm::Undiscriminated => cleared.push(objects.of_addition(&mut variables)),
            Algorithm::Discriminated(discriminator) => {
                let (sets, clears) = objects.of_choice(discriminator, &mut variables);
                deduced.push(sets);
                cleared.extend(clears);
            }
        }
    }
    let on_create = !deduced.is_empty();
    deduced.extend(cleared);
    let expression = fold(&deduced.join(" +\n"));
    let condition = conditions.into_all();
    Some(PolicyBody { unions: inputs.unions, variables, expression, message: None, on_create, condition })
}

/// Returns true if a policy has something to do for a union. In a list without keys nothing is known to be changed, so nothing is
/// cleared.
fn can_normalize(group: &PlaceGroup<'_>, union: &Union) -> bool {
    union.is_normalized() && (group.has_identity() || matches!(Algorithm::of(union), Algorithm::Discriminated(_)))
}

/// Returns true for an object in which something may be to do.
fn suspects(members: &Members<'_>, set: &str, value: &str) -> String {
    match Algorithm::of(members.union) {
        Algorithm::Map(_) if members.ownerless().is_some() => {
            format!("{set}.exists(m, {})", members.is_not(&members.selected(value)))
        }
        Algorithm::Map(_) => format!("{set}.exists(m, {})", members.is_left_over(value)),
        Algorithm::Undiscriminated => members.clash(set),
        Algorithm::Discriminated(_) => format!("{set}.exists(m, {}[m] != {value})", members.value),
    }
}

impl UnionObjects<'_> {
    /// Returns the operations that remove members, an expression.
    fn removals(&self, members: &str) -> String {
        format!("{members}.map(m, JSONPatch{{op: \"remove\", path: {}}})", self.pointer_of_member())
    }

    /// Returns the operations that clear members in the 2022 form: a change of the discriminator wins, unless the manifest sets a member
    /// that the value does not select.
    fn of_change(&self, discriminator: &str, variables: &mut Variables) -> String {
        let UnionObjects { set, value, had, old_value, members, .. } = self;
        let comment =
            format!("members that `{discriminator}` does not select; an unknown `{discriminator}` selects nothing");
        let leftovers = format!("{set}.filter(m, {})", members.is_left_over(value));
        let leftovers = self.define("leftovers", &leftovers, &comment, variables);
        let refused = self.define(
            "refused",
            &format!("{leftovers}.exists(m, {}) && !({})", self.applies(), self.only_updates_value()),
            &format!(
                "whether the manifest of the request sets one of them: that is refused, unless an update changes `{discriminator}`"
            ),
            variables,
        );
        let clears = all(&[had, &format!("{value} != {old_value}"), &format!("!{refused}")]);
        self.collect_if(&clears, &self.removals(&leftovers))
    }

    /// Returns the operations that clear members in the 2019 form without a discriminator: the one member that was added wins, unless the
    /// manifest sets others as well, or two manifests contest it.
    fn of_addition(&self, variables: &mut Variables) -> String {
        let UnionObjects { set, had, members, .. } = self;
        let added = self.added(variables);
        let is_one = members.is_one_choice(&added);
        let contested = |it: &str| {
            let clashes = members.clashes_with(it);
            let others = format!("{set}.exists(m, {clashes} && {})", self.others_set());
            format!("{} && {others}", self.sets_again(it))
        };
        let contested = if members.union.has_groups() {
            format!("{is_one} && {}", contested(&format!("{added}[0]")))
        } else {
            format!("{added}.exists(a, {})", contested("a"))
        };
        let applied = format!("{set}.filter(m, {})", self.applies());
        let contradicts = if members.union.has_groups() {
            format!("!({})", members.go_together(&self.applied(variables)))
        } else {
            format!("{applied}.size() > 1")
        };
        let refused = self.define(
            "refused",
            &format!("{contradicts} ||\n  {contested}"),
            "whether the manifest of the request sets several, or sets the added one again while another one sets another member",
            variables,
        );
        // Only objects with such members have rows.
        let clash = if self.is_single() { members.clash(set) } else { "true".to_owned() };
        let clears = all(&[had, &clash, &is_one, &format!("!{refused}")]);
        let others = members.clashes_with(&format!("{added}[0]"));
        self.collect_if(&clears, &self.removals(&format!("{set}.filter(m, {others})")))
    }

    /// Returns the operations that set a discriminator, and those that clear members, in the 2019 form with one: where the request
    /// tells the choice, unless this would overwrite a field that the manifest sets, or that two manifests contest.
    fn of_choice(&self, discriminator: &str, variables: &mut Variables) -> (String, Option<String>) {
        let UnionObjects { set, value, members, .. } = self;
        let value_of = &members.value;
        let added = self.added(variables);
        let applied = self.applied(variables);
        let changed = self.changed(variables);
        let choice = self.define(
            "choice",
            &format!(
                "{changed} ? ({added}.all(m, {value_of}[m] == {value}) ? {value} : \"\") :\n  \
                 {} ? {value_of}[{set}[0]] :\n  \
                 {} ? {value_of}[{added}[0]] : \"\"",
                members.is_one_choice(set),
                members.is_one_choice(&added)
            ),
            &format!(
                "a new `{discriminator}` wins, unless the request contradicts itself; otherwise the only member, or the only one that\n\
                 was added; \"\" if nothing tells"
            ),
            variables,
        );
        let clears = |what: &str| format!("{set}.exists(m, {value_of}[m] != {choice} && {what})");
        let clears_own = clears(&format!("m in {applied}"));
        let overwrites = format!(
            "({} ? {choice} != {value} || {clears_own} : {} && {clears_own})",
            self.sets_value(),
            members.clash(&applied)
        );
        let overwrites = self.define(
            "overwrites",
            &overwrites,
            "whether this would change what the manifest of the request sets: that is refused",
            variables,
        );
        let contested = if self.has_identity() {
            self.define(
                "contested",
                &format!(
                    "!{changed} && {set}.exists(m, {value_of}[m] == {choice} && {}) &&\n    \
                 ({} || {choice} != {value} && {value} != \"\" && {})",
                    self.sets_again("m"),
                    clears(&self.others_set()),
                    self.others_set_value()
                ),
                "whether the manifest of somebody else sets what this would change, again and again",
                variables,
            )
        } else {
            "false".to_owned()
        };
        let decided =
            self.define("decided", &format!("{choice} != \"\" && !{}", any(&[&overwrites, &contested])), "", variables);
        let path = concat(&[self.path.clone(), text(&pointer(discriminator))]);
        let deduced = if members.union.is_boolean() { format!("{choice} == \"true\"") } else { choice.clone() };
        let sets = self.collect_if(
            &format!("{decided} && {choice} != {value}"),
            &format!("[JSONPatch{{op: \"add\", path: {path}, value: {deduced}}}]"),
        );
        // In a list without keys nothing is known to be changed, so nothing is cleared.
        let removals = self.removals(&format!("{set}.filter(m, {value_of}[m] != {choice})"));
        (sets, self.has_identity().then(|| self.collect_if(&decided, &removals)))
    }
}
