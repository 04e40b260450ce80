//! Evidence from the CRD: the validation rules that somebody wrote by hand.

use kube_unions_core::schema::Place;
use kube_unions_evidence::{MemberRequirement, TruthTable, UnionFields};
use serde_json::Value;
use std::collections::BTreeSet;

/// The validation rules of a CRD at the schema node of one object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectRules<'r> {
    /// The JSON of the whole schema.
    json: &'r Value,
    place: &'r Place,
}

impl<'r> ObjectRules<'r> {
    pub(super) fn new(json: &'r Value, place: &'r Place) -> Self {
        Self { json, place }
    }

    /// Returns the values whose member the rules require: they reject every object that has the value and lacks the member.
    /// Rules that cannot be decided require nothing.
    pub(super) fn required<'v>(
        self,
        discriminator: &str,
        values: &[&str],
        members: &[(&'v str, &str)],
    ) -> BTreeSet<&'v str> {
        let Some(node) = self.json.pointer(&self.place.to_pointer()) else { return BTreeSet::new() };
        let names: BTreeSet<&str> = members.iter().map(|(_, member)| *member).collect();
        let union = UnionFields {
            discriminator: Some(discriminator.to_owned()),
            values: values.iter().map(|&value| value.to_owned()).collect(),
            members: names.into_iter().map(str::to_owned).collect(),
        };
        let table = TruthTable::of(node, &union);
        let required =
            members.iter().filter(|(value, member)| table.requires(value, member) == MemberRequirement::Required);
        required.map(|(value, _)| *value).collect()
    }
}
