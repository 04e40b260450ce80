//! Finds the fields that the values of a discriminator select.

use crate::answer::{Evidence, ProposedChoice, ProposedMember, ProposedUnion, UnionFields};
use crate::candidates::CandidateFields;
use crate::combination::Combination;
use crate::decision::OtherMembers;
use crate::node::SchemaNode;
use crate::table::{TableRow, TruthTable};

/// A field that some values of a discriminator select.
struct CandidateMember<'f> {
    name: &'f str,
    /// The table of the field alone.
    table: TruthTable,
    /// The tables of the members without which the field is rejected.
    requires: Vec<(&'f str, TruthTable)>,
}

impl CandidateMember<'_> {
    fn is_allowed_with(&self, value: Option<&str>) -> bool {
        let alone = (self.name, &self.table);
        let mut tables = self.requires.iter().map(|(name, table)| (*name, table)).chain([alone]);
        tables.all(|(name, table)| table.row(value, &[name]).is_some_and(TableRow::is_allowed))
    }
}

impl CandidateFields<'_> {
    /// Returns the union of a discriminator, if each member is allowed with some values and rejected with all others. The text is
    /// the reason why it is in doubt.
    pub(crate) fn discriminated(
        &self,
        discriminator: &str,
        fields: &[String],
    ) -> Option<(ProposedUnion, Option<String>)> {
        let related: Vec<&String> = fields.iter().filter(|field| self.are_related(discriminator, field)).collect();
        if related.is_empty() {
            return None;
        }
        let (all, values) = self.values_of(discriminator)?;
        let is_only_value = values.len() == 1 && all.len() > 1;
        let table_of = |members: Vec<String>| {
            let union = UnionFields {
                discriminator: Some(discriminator.to_owned()),
                values: values.clone(),
                members,
                ..UnionFields::default()
            };
            self.table(&union, OtherMembers::Absent).filter(TruthTable::has_all_validations)
        };
        // A table of one field has only the rules that name it, so an unreadable rule about others does no harm. The other
        // fields are unknown there.
        let mut found = Vec::new();
        for field in related {
            let table = table_of(vec![field.clone()])?;
            let rows = || values.iter().filter_map(|value| table.row(Some(value), &[field]));
            let allowed = rows().filter(|row| row.is_allowed()).count();
            let rejected = rows().filter(|row| table.is_rejection(row)).count();
            let is_required = || values.iter().all(|value| table.is_rejected(Some(value), &[]));
            if allowed > 0
                && allowed.saturating_add(rejected) == values.len()
                && (rejected > 0 || (is_only_value && is_required()))
            {
                found.push(CandidateMember { name: field, table, requires: Vec::new() });
            }
        }
        let (mut satellites, mut requirements) = (Vec::new(), Vec::new());
        for field in fields.iter().filter(|field| found.iter().all(|member| member.name != *field)) {
            let mut requires = Vec::new();
            for member in &found {
                let Some(evidence) = self.requirement(field, member.name) else { continue };
                requirements.extend(evidence);
                requires.push((member.name, member.table.clone()));
            }
            if requires.is_empty() {
                continue;
            }
            let table = table_of(vec![field.clone()])?;
            if values.iter().all(|value| table.row(Some(value), &[field]).is_some_and(TableRow::is_allowed)) {
                satellites.push(CandidateMember { name: field, table, requires });
            }
        }
        found.extend(satellites);
        // In the order of the schema.
        found.sort_by_key(|member| fields.iter().position(|field| field == member.name));
        let members: Vec<String> = found.iter().map(|member| member.name.to_owned()).collect();
        let table = table_of(members.clone()).filter(|_| !members.is_empty())?;
        let mut choices = Vec::new();
        for value in &all {
            // A declaration has every value of the enum, also one that a rule rejects.
            let is_kept = values.contains(value);
            let members = if is_kept { selected(&found, &table, Some(value))? } else { Vec::new() };
            choices.push(ProposedChoice { value: value.clone(), members });
        }
        let node = self.object.node;
        let without = found.iter().find(|it| !node.always_has(discriminator) && it.is_allowed_with(None));
        let doubt = without.map(|CandidateMember { name, .. }| {
            format!("`{name}` is also allowed without `{discriminator}`, and a union requires it beside a member")
        });
        // Only a boolean has a value that stands for the missing one.
        let is_boolean = node.property(discriminator).and_then(SchemaNode::type_name) == Some("boolean");
        let doubt = doubt.filter(|_| !is_boolean);
        if is_boolean && without.is_some() {
            let members = selected(&found, &table, None)?;
            choices.insert(0, ProposedChoice { value: String::new(), members });
        }
        let decisive: Vec<&TableRow> = table.rows().iter().filter(|row| row.combination.members.len() == 1).collect();
        let fields =
            UnionFields { discriminator: Some(discriminator.to_owned()), values, members, ..UnionFields::default() };
        let empty_is_unset = self.empty_is_unset(table.rows().iter(), fields, OtherMembers::Absent);
        let evidence = Evidence::with_others(Self::evidence(&table, &decisive), requirements.into_iter());
        let union = self.object.union(Some(discriminator), choices, evidence);
        Some((ProposedUnion { empty_is_unset, ..union }, doubt))
    }

    /// Returns the values of a discriminator, its `enum`, and those of them that are not rejected whatever else is set.
    fn values_of(&self, discriminator: &str) -> Option<(Vec<String>, Vec<String>)> {
        let values = self.object.node.property(discriminator)?.discriminator_values();
        let discriminator = Some(discriminator.to_owned());
        let union = UnionFields { discriminator, values: values.clone(), ..UnionFields::default() };
        let table = self.table(&union, OtherMembers::Unknown)?;
        let kept: Vec<String> = values.iter().filter(|value| !table.is_rejected(Some(value), &[])).cloned().collect();
        (!kept.is_empty()).then_some((values, kept))
    }
}

/// Returns the members that a value selects, or a missing value. `None` if some of them are never accepted together.
fn selected(found: &[CandidateMember<'_>], table: &TruthTable, value: Option<&str>) -> Option<Vec<ProposedMember>> {
    let selected: Vec<_> = found.iter().filter(|member| member.is_allowed_with(value)).collect();
    let names: Vec<&str> = selected.iter().map(|member| member.name).collect();
    let is_required = |member: &CandidateMember<'_>| {
        member.table.is_rejected(value, &[]) || (names.len() == 1 && table.is_rejected(value, &[]))
    };
    let members = selected.iter().map(|it| ProposedMember { name: it.name.to_owned(), optional: !is_required(it) });
    (!excludes_a_pair(table, value, &names)).then(|| members.collect())
}

/// Returns true if some two of the fields that a value selects are never accepted together with it.
fn excludes_a_pair(table: &TruthTable, value: Option<&str>, selected: &[&str]) -> bool {
    let known = table.rows().iter().filter(|row| {
        let Combination { value: of_row, members, .. } = &row.combination;
        of_row.as_deref() == value && members.iter().all(|member| selected.contains(&member.as_str()))
    });
    let accepted: Vec<&TableRow> = known.filter(|row| !table.is_rejection(row)).collect();
    let together = |one: &str, other: &str| {
        accepted.iter().any(|row| row.combination.members.contains(one) && row.combination.members.contains(other))
    };
    let mut pairs =
        selected.iter().enumerate().flat_map(|(length, one)| selected.iter().take(length).map(move |it| (one, it)));
    pairs.any(|(one, other)| !together(one, other))
}
