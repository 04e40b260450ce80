//! The unions of the kinds, as the page shows them in a tree.

use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::union::Union;
use kube_unions_manifests::union_details;
use serde::Serialize;

/// The unions of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnionsOfKind {
    /// The kind.
    pub kind: String,
    /// Group and version, as in `apiVersion`.
    pub api_version: String,
    /// The unions.
    pub unions: Vec<UnionOfKind>,
}

/// A union.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnionOfKind {
    /// The path of the object with the union, empty for the whole object.
    pub path: String,
    /// The form, the discriminator, the source and the settings that are not the default, as `kube-unions explain` shows them.
    pub details: Vec<String>,
    /// The values of the discriminator; the members if there is no discriminator.
    pub choices: Vec<ChoiceOfUnion>,
}

/// A choice of a union.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChoiceOfUnion {
    /// The value of the discriminator, `None` in a union without one.
    pub value: Option<String>,
    /// The member, `None` for a value without a member.
    pub member: Option<String>,
    /// True if the member may be missing.
    pub optional: bool,
}

/// Returns the unions of a catalog, in its order.
pub(crate) fn of_catalog(catalog: &Catalog) -> Vec<UnionsOfKind> {
    catalog.entries().iter().map(UnionsOfKind::of).collect()
}

impl UnionsOfKind {
    fn of(entry: &CatalogEntry) -> Self {
        let kind = entry.gvk();
        Self {
            kind: kind.kind.to_string(),
            api_version: kind.api_version(),
            unions: entry.plan().unions().iter().map(UnionOfKind::of).collect(),
        }
    }
}

impl UnionOfKind {
    fn of(union: &Union) -> Self {
        Self { path: union.path().to_owned(), details: union_details::details(union), choices: choices(union) }
    }
}

fn choices(union: &Union) -> Vec<ChoiceOfUnion> {
    if union.discriminator().is_none() {
        let choice = |member: &str| ChoiceOfUnion { value: None, member: Some(member.to_owned()), optional: false };
        return union.members().map(choice).collect();
    }
    let choices = union.choices().iter().map(|choice| ChoiceOfUnion {
        value: Some(choice.value().to_owned()),
        member: choice.member().map(str::to_owned),
        optional: union_details::is_shown_optional(union, choice),
    });
    choices.collect()
}
