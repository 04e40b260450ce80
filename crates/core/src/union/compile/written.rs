//! A union as it is declared, before any check.

use crate::schema::{ListUnion, MapUnion, MemberField};
use crate::union::Form;
use std::collections::BTreeSet;

/// A union as it is declared, in one shape for both forms.
pub(super) struct Written {
    pub(super) form: Form,
    pub(super) discriminator: Option<Box<str>>,
    /// The values with the members that they select. Those of the 2019 form are sorted by member, those of the 2022 form by value.
    pub(super) choices: Vec<(Box<str>, Option<MemberField>)>,
}

impl Written {
    pub(super) fn list(union: ListUnion) -> Self {
        let choice = |(name, value)| (value, Some(MemberField { name, optional: true }));
        let choices = union.fields.into_iter().map(choice).collect();
        Self { form: Form::List, discriminator: union.discriminator, choices }
    }

    pub(super) fn map(discriminator: &str, union: MapUnion) -> Self {
        let choices = union.members.into_iter().collect();
        Self { form: Form::Map, discriminator: Some(discriminator.into()), choices }
    }

    /// Returns the members, sorted. Several values of the 2022 form may select the same one.
    pub(super) fn members(&self) -> BTreeSet<&str> {
        self.selected().map(|member| &*member.name).collect()
    }

    /// Returns the members that the values select.
    pub(super) fn selected(&self) -> impl Iterator<Item = &MemberField> {
        self.choices.iter().filter_map(|(_, member)| member.as_ref())
    }
}
