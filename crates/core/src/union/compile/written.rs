//! A union as it is declared, before any check.

use crate::schema::{ListUnion, MapUnion, SelectedFields};
use crate::union::Form;
use std::collections::{BTreeMap, BTreeSet};

/// A union as it is declared, in one shape for both forms.
pub(super) struct Written {
    pub(super) form: Form,
    pub(super) discriminator: Option<Box<str>>,
    /// The values with the members that they select, and if each may be missing.
    pub(super) choices: BTreeMap<Box<str>, BTreeMap<Box<str>, bool>>,
    /// An object without a choice violates the union.
    pub(super) required: bool,
    /// The members that count as not set if they are `false`, zero, `""`, `{}` or `[]`.
    pub(super) empty_is_unset: Vec<Box<str>>,
}

impl Written {
    pub(super) fn list(union: ListUnion) -> Self {
        let ListUnion { discriminator, fields, members: _, required, empty_is_unset } = union;
        let mut choices: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for (name, value) in fields {
            choices.entry(value).or_default().insert(name, true);
        }
        Self { form: Form::List, discriminator, choices, required, empty_is_unset }
    }

    pub(super) fn map(discriminator: &str, union: MapUnion) -> Self {
        let MapUnion { members, required, empty_is_unset } = union;
        let of =
            |selected: &SelectedFields| selected.members().map(|(name, optional)| (name.into(), optional)).collect();
        let choices = members
            .into_iter()
            .map(|(value, selected)| (value, selected.as_ref().map(of).unwrap_or_default()))
            .collect();
        Self { form: Form::Map, discriminator: Some(discriminator.into()), choices, required, empty_is_unset }
    }

    /// Returns the members, sorted. Several values of the 2022 form may select the same one.
    pub(super) fn members(&self) -> BTreeSet<&str> {
        self.choices.values().flat_map(BTreeMap::keys).map(|name| &**name).collect()
    }
}
