//! The lines of a tree of unions: a kind, its unions, and the choices of each.

use super::output::{self, Paint};
use kube_unions_core::union::{Choice, SelectedMember};
use serde::Serialize;

/// A choice in the tree and in JSON: a value of a discriminator, and the members that it selects.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ChoiceItem<'a> {
    pub(crate) value: &'a str,
    pub(crate) members: Vec<MemberItem<'a>>,
}

/// A member of a choice.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct MemberItem<'a> {
    pub(crate) name: &'a str,
    /// True if the member may be missing.
    pub(crate) optional: bool,
    /// The evidence that the member is required, if it is not the declaration itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<&'static str>,
}

impl<'a> ChoiceItem<'a> {
    /// Describes a choice that a declaration names. `is_optional` tells which members it shows as optional.
    pub(crate) fn of(choice: &'a Choice, is_optional: impl Fn(&SelectedMember) -> bool) -> Self {
        let member = |it: &'a SelectedMember| MemberItem { name: it.name(), optional: is_optional(it), evidence: None };
        Self { value: choice.value(), members: choice.members().iter().map(member).collect() }
    }
}

impl MemberItem<'_> {
    fn label(&self) -> String {
        match self.evidence {
            _ if self.optional => format!("{} (optional)", self.name),
            Some(evidence) => format!("{} (required by a {evidence})", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// Returns the line of a union: its path and details.
pub(crate) fn headline(path: &str, details: &[&str], paint: Paint) -> String {
    let path = if path.is_empty() { "(the object)" } else { path };
    output::line(&format!("{} {}", paint.strong(path), paint.faint(&format!("({})", details.join(", "))))).into_owned()
}

/// Returns a line for each choice, aligned.
pub(crate) fn choices<'a>(choices: impl Iterator<Item = ChoiceItem<'a>> + Clone) -> Vec<String> {
    let shown =
        |choice: &ChoiceItem<'a>| if choice.value.is_empty() { "\"\"".to_owned() } else { choice.value.to_owned() };
    let width = choices.clone().map(|choice| shown(&choice).chars().count()).max().unwrap_or(0);
    let line = |choice: ChoiceItem<'a>| {
        let members: Vec<_> = choice.members.iter().map(MemberItem::label).collect();
        let members = if members.is_empty() { "no member".to_owned() } else { members.join(", ") };
        output::line(&format!("{:width$} → {members}", shown(&choice))).into_owned()
    };
    choices.map(line).collect()
}
