//! The words that explain a policy to a reader of its YAML. An API server does not see them.

use crate::group::PlaceGroup;
use crate::members::Algorithm;
use kube_unions_core::union::{Choice, Form, SelectedMember, Union};
use std::collections::BTreeMap;

/// The comments of a policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PolicyComments {
    /// The lines before the policy: what it does, and its unions.
    pub(crate) head: Vec<String>,
    /// The meaning of each variable, by its name. Line breaks separate several lines.
    pub(crate) variables: BTreeMap<String, String>,
    /// The reason of `failurePolicy`.
    pub(crate) failure: &'static str,
}

/// Most members that are named. The expressions name all.
const MOST: usize = 16;

/// The longest line of names, in characters.
const WIDTH: usize = 110;

/// Returns the lines about the unions of a kind, after the sentence of what a policy does about them.
pub(crate) fn head(whose: &str, does: &str, unions: &[(&PlaceGroup<'_>, &Union)]) -> Vec<String> {
    let mut lines: Vec<String> = wrapped(&format!("Unions of {whose}. {does}"), "").collect();
    lines.push(String::new());
    lines.extend(unions.iter().flat_map(|(group, union)| describe(group, union)));
    lines
}

/// Describes a union in a few lines.
fn describe(group: &PlaceGroup<'_>, union: &Union) -> Vec<String> {
    let path = group.path();
    let place = if path.is_empty() { "the object" } else { &path };
    let groups: Vec<Vec<&str>> =
        if union.form() == Form::List { union.groups().map(Iterator::collect).collect() } else { Vec::new() };
    let group = |names: &Vec<&str>| names.join(" with ");
    let names = if groups.len() > MOST {
        format!("{} members", groups.len())
    } else {
        groups.iter().map(group).collect::<Vec<_>>().join(", ")
    };
    let required = if union.is_required() { "exactly one" } else { "at most one" };
    let one_of = |end: &str| wrapped(&format!("{place}: {required} of {names}{end}"), "  ");
    match Algorithm::of(union) {
        Algorithm::Map(discriminator) => {
            let head = format!("{place}: `{discriminator}` selects what may be set beside it:");
            wrapped(&head, "  ").chain(table(union, true)).collect()
        }
        Algorithm::Discriminated(discriminator) => {
            one_of(&format!(" is set, and `{discriminator}` names it:")).chain(table(union, false)).collect()
        }
        Algorithm::Undiscriminated => one_of(" is set.").collect(),
    }
}

/// Returns a line for each value of the discriminator.
fn table<'u>(union: &'u Union, tells_optional: bool) -> impl Iterator<Item = String> + 'u {
    let shown = |choice: &'u Choice| if choice.value().is_empty() { "\"\"" } else { choice.value() };
    let width = union.choices().iter().map(|choice| shown(choice).chars().count()).max().unwrap_or_default();
    union.choices().iter().map(move |choice| {
        let told = |member: &SelectedMember| match (tells_optional, member.is_optional()) {
            (false, _) => member.name().to_owned(),
            (true, false) => format!("{} (required)", member.name()),
            (true, true) => format!("{} (optional)", member.name()),
        };
        let members: Vec<String> = choice.members().iter().map(told).collect();
        let members = if members.is_empty() { "none".to_owned() } else { members.join(", ") };
        format!("  {:width$}  {members}", shown(choice))
    })
}

fn wrapped(text: &str, hanging: &'static str) -> impl Iterator<Item = String> + use<> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count().saturating_add(word.chars().count()) < WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{hanging}{word}"));
        }
    }
    lines.into_iter()
}
