//! The unions of the kinds, as the page shows them in a tree.

use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::union::{Form, Union};
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
    /// The form, the discriminator, the source and the exceptions, as `kube-unions explain` shows them.
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
        let slash = if kind.group.is_empty() { "" } else { "/" };
        Self {
            kind: kind.kind.to_string(),
            api_version: format!("{}{slash}{}", kind.group, kind.version),
            unions: entry.plan().unions().iter().map(UnionOfKind::of).collect(),
        }
    }
}

impl UnionOfKind {
    fn of(union: &Union) -> Self {
        Self { path: union.path().to_owned(), details: details(union), choices: choices(union) }
    }
}

fn details(union: &Union) -> Vec<String> {
    let form = match union.form() {
        Form::List => "2019 form",
        Form::Map => "2022 form",
    };
    let discriminator =
        union.discriminator().map_or_else(|| "no discriminator".to_owned(), |name| format!("discriminator `{name}`"));
    let declaration = union.declaration().map(|name| format!(" {name}")).unwrap_or_default();
    let unset: Vec<&str> = union.empty_is_unset().collect();
    let mut details = vec![
        form.to_owned(),
        discriminator,
        format!("from {}{declaration}", union.source()),
        union.actions().names().join(", "),
    ];
    let exceptions = [
        (!union.is_normalized()).then(|| "not normalised".to_owned()),
        union.is_required().then(|| "required".to_owned()),
        (!unset.is_empty()).then(|| format!("empty is unset: {}", unset.join(", "))),
    ];
    details.extend(exceptions.into_iter().flatten());
    details
}

fn choices(union: &Union) -> Vec<ChoiceOfUnion> {
    if union.discriminator().is_none() {
        let choice = |member: &str| ChoiceOfUnion { value: None, member: Some(member.to_owned()), optional: false };
        return union.members().map(choice).collect();
    }
    let choices = union.choices().iter().map(|choice| ChoiceOfUnion {
        value: Some(choice.value().to_owned()),
        member: choice.member().map(str::to_owned),
        // In the 2019 form every member is optional.
        optional: choice.optional() && union.form() == Form::Map,
    });
    choices.collect()
}
