//! Validation: the expressions of `ValidatingAdmissionPolicies`, in the words of
//! [`Violation`](kube_unions_core::union::Violation).
//!
//! A policy tells only the first of its validations that fails, so each policy has one validation, which joins all faults.

use crate::body::{PolicyBody, PolicyInputs};
use crate::cel::{self, concat, fold, joined, one_line, printable, text};
use crate::condition::Conditions;
use crate::group::PlaceGroup;
use crate::members::Algorithm;
use crate::options::{PolicyOptions, PolicyRatcheting, WantedFaults};
use crate::place::UnionObjects;
use crate::root::{PodOwner, Purpose};
use crate::rows::PolicyFacts;
use crate::target::PolicyTarget;
use crate::variables::Variables;
use kube_unions_core::schema::Actions;
use kube_unions_core::union::{Part, Union};

/// The longest message, in bytes. The API server replaces longer ones by a fixed text.
const LONGEST_MESSAGE: usize = 5000;

/// Most faults that are sorted: an API server charges the square of their number.
const MOST_SORTED: usize = 400;

/// Characters that are kept of a longer message: each takes at most four bytes.
const KEPT: usize = LONGEST_MESSAGE / 4 - 3;

/// Compiles the faults of places to which a binding with these actions reacts. Returns `None` if there can be none.
pub(crate) fn compile<'g, 'u>(
    part: Part,
    groups: &'g [PlaceGroup<'u>],
    owners: &[PodOwner<'u>],
    actions: Actions,
    options: &PolicyOptions,
    target: &PolicyTarget<'_>,
) -> Option<PolicyBody<'g, 'u>> {
    let wanted = |union: &Union| options.ratcheting.wanted(options.actions.unwrap_or(union.actions()), actions);
    let list_functions = options.server.has_list_functions();
    let facts =
        PolicyFacts { purpose: Purpose::Validation, part, custom: target.custom, list_functions, several: false };
    let mut variables = Variables::default();
    let is_wanted = |_: &PlaceGroup<'_>, union: &Union| wanted(union).is_some();
    let inputs = PolicyInputs::new(groups.iter(), is_wanted, owners, target, facts, &mut variables)?;
    let unions = &inputs.unions;
    // A choice that is new has no old fault.
    let on_create =
        unions.iter().any(|(_, union)| wanted(union).is_some_and(|(faults, _)| faults != WantedFaults::Old));
    let (mut found, mut conditions) = (Vec::new(), Conditions::new(&inputs.root, target.custom));
    for (group, union) in unions {
        conditions.of_validation(group, union);
    }
    for alike in &inputs.joined {
        let objects = UnionObjects::new(alike, &inputs.root, inputs.facts, |_, _, _| None, &mut variables);
        let Some(objects) = objects else { continue };
        let union = objects.members.union;
        let Some((wanted, suffix)) = wanted(union) else { continue };
        // A mutating policy deduces discriminators. It may be skipped, so this one refuses what it would have changed.
        let deduces = options.mutate && options.server.has_mutating_policies();
        let verifies = deduces && union.is_normalized() && actions.denies();
        let faults = objects.faults(verifies, &mut variables);
        let mut unchanged = || {
            let comment = "whether the choice is the one that was there before; an old fault does not stop a write that leaves it alone";
            objects.define("unchanged", &objects.is_unchanged(), comment, &mut variables)
        };
        let lines = match wanted {
            WantedFaults::All => objects.collect(&faults),
            // Without a fault it does not matter that the old object may have a list in the place of the object.
            WantedFaults::New if objects.is_single() => {
                format!("({} || {faults}.size() == 0 ? [] : {faults})", unchanged())
            }
            WantedFaults::New => objects.collect_if(&format!("!{}", unchanged()), &faults),
            WantedFaults::Old => objects.collect_if(&unchanged(), &faults),
        };
        let lines = if suffix.is_empty() { lines } else { format!("{lines}.map(fault, fault + {})", text(suffix)) };
        found.push(lines);
    }
    let all = variables.add("faults", &found.join(" +\n"), "");
    // The values of a map have no order, and unions of one object are judged one by one.
    let sorts = list_functions && (unions.len() > 1 || unions.iter().any(|(group, ..)| group.is_unordered()));
    let sorted = if sorts {
        let sorted = format!("{all}.size() > {MOST_SORTED} ? {all} : {all}.sort()");
        variables.add("sorted", &sorted, "more do not fit into a message, and would cost much")
    } else {
        all.clone()
    };
    let told = variables.add("message", &format!("{sorted}.join(\"; \")"), "");
    let message = format!("size(bytes({told})) <= {LONGEST_MESSAGE} ? {told} : {told}.substring(0, {KEPT}) + \"…\"");
    // A fault of a union that the request left as it was never denies.
    let is_of_changes = actions.denies() && options.ratcheting != PolicyRatcheting::Disabled;
    Some(PolicyBody {
        variables,
        expression: fold(&format!("{all}.size() == 0")),
        message: Some(fold(&message)),
        on_create,
        condition: is_of_changes.then(|| conditions.into_changes()).flatten(),
        unions: inputs.unions,
    })
}

impl UnionObjects<'_> {
    /// Returns the variable of the faults of one object. `verifies`: a discriminator that does not name the only member is a fault.
    fn faults(&self, verifies: bool, variables: &mut Variables) -> String {
        let union = self.members.union;
        let faults = match Algorithm::of(union) {
            Algorithm::Map(discriminator) => self.of_map(discriminator, variables),
            Algorithm::Discriminated(discriminator) if union.is_normalized() => {
                self.of_list(Some(discriminator), verifies, variables)
            }
            Algorithm::Discriminated(discriminator) => self.of_list_alone(discriminator, variables),
            Algorithm::Undiscriminated => self.of_list(None, verifies, variables),
        };
        // An object that is not there needs no member.
        match self.is_there.as_ref().filter(|_| union.is_required()) {
            Some(is_there) => format!("({is_there} ? {faults} : [])"),
            None => faults,
        }
    }

    /// Returns the text of a fault of the field `name`, with the words behind its path: expressions.
    fn of_field(&self, name: &str, words: &[&str]) -> String {
        fault(self.path_of(name, Purpose::Validation), words)
    }

    /// Returns the text of a fault of the object, with these words behind its path: expressions. The first one is a text.
    fn of_object(&self, first: &str, words: &[&str]) -> String {
        fault(self.path_with(first), words)
    }

    /// Returns a value of the discriminator as messages show it.
    fn shown(&self, variables: &mut Variables) -> String {
        self.define("shown", &printable(&self.value), "as messages show it: on one line, and not too long", variables)
    }

    /// Returns the faults of the 2022 form: the discriminator and the members must agree.
    fn of_map(&self, discriminator: &str, variables: &mut Variables) -> String {
        let UnionObjects { set, value, had, old_value, .. } = self;
        let members = self.members.clone().with_needed(discriminator, &self.prefix, variables);
        let what = if members.union.has_groups() { "the members" } else { "the member" };
        let comment = format!("{what} that `{discriminator}` selects");
        let selected = self.define("selected", &members.selected(value), &comment, variables);
        let is_not = members.is_not(&selected);
        let values = variables.constant(
            &self.name("values"),
            members.listed_values(),
            &format!("the `{discriminator}` of each member, as messages tell it"),
        );
        let told = self.told(Some(&is_not), variables);
        let only = text(&format!(": Forbidden: may only be specified when `{discriminator}` is "));
        let values = format!("{values}[m]");
        let hint = text(&format!("; remove it, or change `{discriminator}` to switch the member"));
        let hint = if self.has_identity() {
            format!("({had} && {old_value} == {value} ? {hint} : \"\")")
        } else {
            "\"\"".to_owned()
        };
        let forbidden = self.of_field("m", &[&only, &values, &hint]);
        let is_left_over = format!("m in {set} && {is_not}");
        let is_told = self.has_identity().then(|| format!("{told}.size() > 0"));
        let untold = is_told.as_ref().map_or_else(String::new, |told| format!(" && !({told})"));
        let wrong = match members.is_missing(value, &selected) {
            None => format!("{set}.filter(m, {is_not}{untold}).map(m, {forbidden})"),
            Some(is_missing) => {
                let needed = text(&format!(": Required value: must be specified when `{discriminator}` is \""));
                let is_plain = members.union.choices().iter().all(|choice| !choice.value().contains(char::is_control));
                let value = if is_plain { value.clone() } else { one_line(value.clone()) };
                let missing = self.of_field("m", &[&needed, &value, &text("\"")]);
                format!(
                    "{}\n  .filter(m, {is_left_over}{untold} || !(m in {set}) && {is_missing})\n  \
                     .map(m, m in {set}\n    ? {forbidden}\n    : {missing})",
                    members.all
                )
            }
        };
        let wrong = match &is_told {
            Some(_) => format!("({set}.exists(m, {is_not}) ? {told} : []) +\n{wrong}"),
            None => wrong,
        };
        let nothing_is_fine = members.declares_none() && !members.union.is_required();
        let wrong =
            if nothing_is_fine { format!("{value} == \"\" && {set}.size() == 0 ? [] :\n{wrong}") } else { wrong };
        let wrong = self.define(
            "wrongMembers",
            &wrong,
            &format!("what is wrong with the members of a known `{discriminator}`"),
            variables,
        );
        let at = text(discriminator);
        let required = text(": Required value: must be specified when `");
        let required = self.of_field(&at, &[&required, &format!("{set}[0]"), &text("` is set")]);
        let nothing = if members.union.is_required() {
            let words =
                text(&format!(": Required value: must be specified: supported values: {}", members.supported()));
            format!("[{}]", self.of_field(&at, &[&words]))
        } else {
            "[]".to_owned()
        };
        let supported = text(&format!("\": supported values: {}", members.supported()));
        let unknown = self.of_field(&at, &[&text(": Unsupported value: \""), &self.shown(variables), &supported]);
        let faults = format!(
            "{value} in {} ? {wrong} :\n{value} != \"\" ? [{unknown}] :\n{set}.size() == 0 ? {nothing} : [{required}]",
            members.selects
        );
        self.define("wrong", &faults, "", variables)
    }

    /// Returns the faults of the 2019 form: at most one member is set, and the request does not contradict itself.
    fn of_list(&self, discriminator: Option<&str>, verifies: bool, variables: &mut Variables) -> String {
        let UnionObjects { members, set, value, .. } = self;
        let added = self.added(variables);
        let number = self.wrong_number(&added, variables);
        let value_of = &members.value;
        let mut faults = String::new();
        if self.has_identity() {
            let differs = format!("{value_of}[m] != {value}");
            let told = self.told(discriminator.map(|_| &*differs), variables);
            let contested = self.contested(discriminator, &added, variables);
            faults = format!("{told}.size() > 0 ? {told} :\n{contested}.size() > 0 ? {contested} :\n");
        }
        if let Some(discriminator) = discriminator {
            let changed = self.changed(variables);
            let contradicting = self.define(
                "contradicting",
                &format!("{changed} ? {added}.filter(m, {value_of}[m] != {value}) : []"),
                &format!("added members that a new `{discriminator}` does not name"),
                variables,
            );
            let only = text(&format!(": Forbidden: may only be specified when `{discriminator}` is \""));
            let fault = self.of_field("m", &[&only, &self.shown_value("m"), &text("\"")]);
            faults.extend([format!("{contradicting}.size() > 0 ? {contradicting}.map(m, {fault}) :\n")]);
            if verifies {
                let set_one = format!("{set}[0]");
                let fault = self.of_field(
                    &text(discriminator),
                    &[
                        &text(": Invalid value: must be \""),
                        &self.shown_value(&set_one),
                        &text("\" when `"),
                        &set_one,
                        &text("` is set"),
                    ],
                );
                let is_one = members.is_one_choice(set);
                faults.extend([format!("{is_one} && {value_of}[{set_one}] != {value} ? [{fault}] :\n")]);
            }
        }
        faults.push_str(&number);
        self.define("wrong", &faults, "", variables)
    }

    /// Returns names as messages list them. `names` is evaluated several times.
    fn named(&self, names: &str) -> String {
        // In rows, this is evaluated for each object, and not only where there is something to name.
        if self.is_single() { joined(names) } else { format!("{names}.size() == 0 ? \"\" : {}", joined(names)) }
    }

    /// Returns the value that selects a member, an expression, as messages show it.
    fn shown_value(&self, member: &str) -> String {
        let members = &self.members;
        let value = format!("{}[{member}]", members.value);
        let is_plain = |value: &str| !value.contains(char::is_control) && value.chars().count() <= cel::LONGEST;
        if members.union.choices().iter().all(|choice| is_plain(choice.value())) { value } else { printable(&value) }
    }

    /// Returns the faults of the manifest that the request applies, if it sets fields of the union that may not be set together.
    /// `rejects` is true if the value does not select the member `m`.
    fn told(&self, rejects: Option<&str>, variables: &mut Variables) -> String {
        if !self.has_identity() {
            return "[]".to_owned();
        }
        let UnionObjects { members, had, .. } = self;
        let applied = self.applied(variables);
        let names = self.define("appliedNames", &self.named(&applied), "", variables);
        let several = self.of_object(": Invalid value: the applied manifest sets ", &[&names, &text("; keep one")]);
        // A union that is created has nothing that the manifest could switch.
        let mut told = format!("!({had}) ? [] :\n");
        if let (Some(rejects), Some(discriminator)) = (rejects, members.union.discriminator()) {
            let others = self.define(
                "unselected",
                &format!("{applied}.filter(m, {rejects})"),
                &format!("those of them that `{discriminator}` does not select"),
                variables,
            );
            let names = self.define("unselectedNames", &self.named(&others), "", variables);
            let shown = self.shown(variables);
            let fault = self.of_object(
                &format!(": Invalid value: the applied manifest sets `{discriminator}` to \""),
                &[
                    &shown,
                    &text("\" and "),
                    &names,
                    &text(", which \""),
                    &shown,
                    &text("\" does not select; remove "),
                    &names,
                ],
            );
            told.extend([format!("{} ? ({others}.size() == 0 ? [] : [{fault}]) :\n", self.sets_value())]);
        }
        told.extend([format!("{} ? [] : [{several}]", members.go_together(&applied))]);
        self.define("contradicted", &told, "what is wrong with the manifest of the request", variables)
    }

    /// Returns the fault of a manifest that is applied again and whose member was cleared for the manifest of another field manager.
    fn contested(&self, discriminator: Option<&str>, added: &str, variables: &mut Variables) -> String {
        let UnionObjects { members, set, value, .. } = self;
        let first = |list: &str| if members.union.has_groups() { format!("[{list}[0]]") } else { list.to_owned() };
        let again = self.define(
            "again",
            &format!(
                "({} ? {} : {} ? {} : []).filter(m, {})",
                members.is_one_choice(added),
                first(added),
                members.is_one_choice(set),
                first(set),
                self.sets_again("m")
            ),
            "the member that the manifest of the request has set before, and that was removed since",
            variables,
        );
        let rivals = self.define(
            "rivals",
            &format!(
                "{again}.size() == 0 ? [] : {set}.filter(m, {} && {})",
                members.clashes_with(&format!("{again}[0]")),
                self.others_set()
            ),
            "what the manifests of others set",
            variables,
        );
        let one = format!("{again}[0]");
        let fault = |others: &str| {
            self.of_object(
                ": Invalid value: the applied manifest sets `",
                &[&one, &text("`, and the manifest of another field manager sets "), others, &text("; keep one")],
            )
        };
        let names = self.define("rivalNames", &self.named(&rivals), "", variables);
        let of_members = fault(&names);
        let comment = "what is wrong with the manifests of two field managers";
        let Some(discriminator) = discriminator else {
            let contested = format!("{rivals}.size() == 0 ? [] :\n[{of_members}]");
            return self.define("contested", &contested, comment, variables);
        };
        let changed = self.changed(variables);
        let of_value = fault(&text(&format!("`{discriminator}`")));
        let overwrites =
            format!("{}[{one}] != {value} && {value} != \"\" && {}", members.value, self.others_set_value());
        let contested = format!(
            "{again}.size() == 0 || {changed} ? [] :\n{rivals}.size() > 0 ? [{of_members}] :\n{overwrites}\n  ? [{of_value}] : []"
        );
        self.define("contested", &contested, comment, variables)
    }

    /// Returns the faults of the 2019 form with a discriminator that is never deduced: the discriminator and the members must
    /// agree.
    fn of_list_alone(&self, discriminator: &str, variables: &mut Variables) -> String {
        let UnionObjects { members, set, value, had, old_value, .. } = self;
        let added = self.added(variables);
        let value_of = &members.value;
        let others = format!("{set}.filter(m, {value_of}[m] != {value})");
        let only = text(&format!(": Forbidden: may only be specified when `{discriminator}` is \""));
        let hint = text(&format!("; remove it, or change `{discriminator}` to switch the member"));
        let hint = format!("({had} && {old_value} == {value} ? {hint} : \"\")");
        let fault = self.of_field("m", &[&only, &self.shown_value("m"), &text("\""), &hint]);
        let number = self.wrong_number(&added, variables);
        // A value without a member is a fault of the number of members, if one is required.
        let (has_value, is_wrong_number) = if members.union.is_required() {
            let is_wrong = if members.union.has_groups() {
                format!("!({})", members.is_one_choice(set))
            } else {
                format!("{set}.size() != 1")
            };
            (format!("{value} != \"\" && {set}.size() > 0"), is_wrong)
        } else {
            (format!("{value} != \"\""), members.clash(set))
        };
        let mut faults = format!("{has_value} ? {others}.map(m, {fault}) :\n{number}");
        if self.has_identity() {
            let told = self.told(Some(&format!("{value_of}[m] != {value}")), variables);
            faults = format!(
                "({has_value} ? {others}.size() > 0 : {is_wrong_number}) && {told}.size() > 0 ? {told} :\n{faults}"
            );
        }
        self.define("wrong", &faults, "", variables)
    }

    /// Returns the faults of more than one member, and of none although one is required.
    fn wrong_number(&self, added: &str, variables: &mut Variables) -> String {
        let UnionObjects { set, had, members, .. } = self;
        let later = format!("{set}.filter(m, {})", members.clashes_with(&format!("{set}[0]")));
        let blamed = if self.has_identity() {
            self.define(
                "blamed",
                &format!("{had} && {added}.size() > 0 ? {added} : {later}"),
                "if there are several, those that were added",
                variables,
            )
        } else {
            later
        };
        let names = format!("{}.join(\"`, `\")", members.one_of_each(set));
        let several = self.of_field("m", &[&text(": Forbidden: at most one of `"), &names, &text("` may be set")]);
        let too_many = format!("{} ? {blamed}.map(m, {several}) : []", members.clash(set));
        if self.members.union.is_required() {
            format!("{set}.size() == 0 ? [{}] :\n{too_many}", self.none_set())
        } else {
            too_many
        }
    }

    /// Returns the fault of an object without a member.
    fn none_set(&self) -> String {
        let names: Vec<_> = self.members.union.members().map(|name| format!("`{name}`")).collect();
        let one_of = if names.len() == 1 { "" } else { "one of " };
        self.of_object(&format!(": Required value: {one_of}{} must be set", names.join(", ")), &[])
    }
}

/// Returns the text of a fault: the parts of a path, and the words behind it.
fn fault(path: Vec<String>, words: &[&str]) -> String {
    let words = words.iter().map(|&word| word.to_owned());
    concat(&path.into_iter().chain(words).collect::<Vec<_>>())
}
