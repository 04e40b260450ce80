//! The lines of a tree of unions: a kind, its unions, and the choices of each.

use super::output::{self, Paint};
use kube_unions_core::union::Choice;
use serde::Serialize;

/// A choice in the tree and in JSON: a value of a discriminator, the member that it selects, and true if that may be missing.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct ChoiceItem<'a> {
    pub(crate) value: &'a str,
    pub(crate) member: Option<&'a str>,
    pub(crate) optional: bool,
    /// The evidence that the member is required, if it is not the declaration itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<&'static str>,
}

impl<'a> ChoiceItem<'a> {
    /// Describes a choice that a declaration names.
    pub(crate) fn of(choice: &'a Choice) -> Self {
        Self { value: choice.value(), member: choice.member(), optional: choice.optional(), evidence: None }
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
        let member = match choice.member {
            None => "no member".to_owned(),
            Some(member) if choice.optional => format!("{member} (optional)"),
            Some(member) => {
                member.to_owned()
                    + &choice.evidence.map(|evidence| format!(" (required by a {evidence})")).unwrap_or_default()
            }
        };
        output::line(&format!("{:width$} → {member}", shown(&choice))).into_owned()
    };
    choices.map(line).collect()
}
