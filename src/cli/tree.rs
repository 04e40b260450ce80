//! Unions as a tree, for people: a kind, its unions, and what each has to choose from.

use super::output::Paint;
use kube_unions_core::union::Form;
use serde::Serialize;
use std::fmt::Write;

/// A union and what stands below it.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) line: String,
    pub(super) leaves: Vec<String>,
}

/// A value of a discriminator and the member that it selects, with whether that may be missing; for programs as well.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Leaf<'a> {
    pub(super) value: &'a str,
    pub(super) member: Option<&'a str>,
    pub(super) optional: bool,
}

/// Draws branches below a line.
pub(super) fn draw(root: &str, branches: &[Branch]) -> String {
    let mut text = format!("{root}\n");
    for (position, branch) in branches.iter().enumerate() {
        let last = position + 1 == branches.len();
        let (twig, below) = if last { ("└── ", "    ") } else { ("├── ", "│   ") };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{twig}{}", branch.line);
        for (position, leaf) in branch.leaves.iter().enumerate() {
            let twig = if position + 1 == branch.leaves.len() { "└── " } else { "├── " };
            let _ = writeln!(text, "{below}{twig}{leaf}");
        }
    }
    text
}

/// The line of a union: where it is, and what there is to know of it.
pub(super) fn headline(path: &str, details: &[&str], paint: Paint) -> String {
    let path = if path.is_empty() { "(the object)" } else { path };
    format!("{} {}", paint.strong(path), paint.faint(&format!("({})", details.join(", "))))
}

/// The form, by the year of its proposal.
pub(super) fn form(form: Form) -> &'static str {
    match form {
        Form::List => "2019",
        Form::Map => "2022",
    }
}

/// The discriminator, or that there is none.
pub(super) fn discriminator(name: Option<&str>) -> String {
    name.map_or_else(|| "no discriminator".to_owned(), |name| format!("discriminator `{name}`"))
}

/// Values with what they select, one under the other.
pub(super) fn choices<'a>(leaves: impl Iterator<Item = Leaf<'a>> + Clone) -> Vec<String> {
    let shown = |leaf: &Leaf<'a>| if leaf.value.is_empty() { "\"\"".to_owned() } else { leaf.value.to_owned() };
    let width = leaves.clone().map(|leaf| shown(&leaf).chars().count()).max().unwrap_or(0);
    let line = |leaf: Leaf<'a>| {
        let member = match leaf.member {
            None => "no member".to_owned(),
            Some(member) if leaf.optional => format!("{member} (optional)"),
            Some(member) => member.to_owned(),
        };
        format!("{:width$} → {member}", shown(&leaf))
    };
    leaves.map(line).collect()
}
