//! Unions from `+kubebuilder:validation:ExactlyOneOf` and `AtMostOneOf`, groups of JSON names on a struct, and from
//! `+k8s:dependentForbidden`, the name of another field on a field: in the 2019 form without a discriminator.
//!
//! Marked unions win, because their authors said more. A field in two groups leaves both out: no union can share a field.

use crate::finding::GoFinding;
use crate::finding_kind::FindingKind;
use crate::marked_union::{FoundBy, MarkedUnion, Selection};
use crate::marker::{Marker, Meaning, OneOfMarker};
use crate::packages::{Packages, Scope, ScopedType};
use crate::position::Position;
use crate::types::Field;
use kube_unions_core::schema::{Place, Schema};
use kube_unions_core::union::Form;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A group of fields. At most one may be set.
#[derive(Debug)]
pub(crate) struct OneOfGroup<'p> {
    /// Name of the struct with its package.
    title: String,
    at: &'p Position,
    marker: Cow<'p, OneOfMarker>,
    /// The group is of declarative validation, for which zero values count as not set.
    validation: bool,
}

/// The object that the groups are about.
#[derive(Debug)]
pub(crate) struct OneOfObject<'p, 's> {
    /// Fields by JSON name, with those of inlined structs.
    pub(crate) fields: &'s BTreeMap<&'p str, (&'p Field, Scope<'p>)>,
    pub(crate) schema: &'s Schema,
    pub(crate) place: &'s Place,
    pub(crate) packages: &'p Packages,
    /// The unions that markers on the fields make.
    pub(crate) marked: &'s [MarkedUnion],
}

/// A group with the members that the schema has.
struct FoundGroup<'g> {
    group: &'g OneOfGroup<'g>,
    members: BTreeSet<&'g str>,
    findings: Vec<GoFinding>,
}

impl<'p> OneOfGroup<'p> {
    /// Returns the group of a marker, if it is one of these markers.
    pub(crate) fn of(marker: &'p Marker, title: String) -> Option<Self> {
        let Meaning::OneOf(one_of) = &marker.meaning else { return None };
        Some(Self { title, at: &marker.at, marker: Cow::Borrowed(one_of), validation: false })
    }

    /// Returns the group of a field and the one that it excludes, if the marker is `+k8s:dependentForbidden`.
    pub(crate) fn excluding(field: &str, meaning: &Meaning, at: &'p Position, title: &str) -> Option<Self> {
        let Meaning::Excludes(other) = meaning else { return None };
        let marker = OneOfMarker { exactly: false, fields: vec![field.into(), other.clone()] };
        Some(Self { title: title.to_owned(), at, marker: Cow::Owned(marker), validation: true })
    }
}

impl OneOfObject<'_, '_> {
    /// Returns the unions of the groups and what was left out.
    pub(crate) fn unions(&self, groups: &[OneOfGroup<'_>]) -> (Vec<MarkedUnion>, Vec<GoFinding>) {
        let mut found: Vec<FoundGroup<'_>> = groups.iter().map(|group| self.find(group)).collect();
        // `ExactlyOneOf` says more than `AtMostOneOf` about the same fields.
        found.sort_by_key(|found| !found.group.marker.exactly);
        let mut seen = BTreeSet::new();
        found.retain(|found| seen.insert(found.members.clone()));
        let mut findings: Vec<GoFinding> = found.iter_mut().flat_map(|one| one.findings.drain(..)).collect();
        let unions = found.iter().filter_map(|one| self.union(one, &found, &mut findings));
        (unions.collect(), findings)
    }

    /// Returns the union of a group among all groups of the object.
    fn union(
        &self,
        FoundGroup { group, members, .. }: &FoundGroup<'_>,
        all: &[FoundGroup<'_>],
        findings: &mut Vec<GoFinding>,
    ) -> Option<MarkedUnion> {
        if members.len() < 2 || self.is_marked(members) {
            return None;
        }
        let others = all.iter().map(|other| &other.members).filter(|other| *other != members && other.len() > 1);
        let overlap = self.marked_overlap(members).or_else(|| group_overlap(members, others));
        if let Some(message) = overlap {
            findings.push(GoFinding::left_out(group.at, FindingKind::OverlappingGroup, message));
            return None;
        }
        Some(self.of_members(group, members))
    }

    /// Finds the members of a group that the schema has.
    fn find<'g>(&self, group: &'g OneOfGroup<'g>) -> FoundGroup<'g> {
        let (mut members, mut findings) = (BTreeSet::new(), Vec::new());
        for name in &group.marker.fields {
            if self.schema.properties.contains_key(name) {
                members.insert(&**name);
            } else if let Some((field, _)) = self.fields.get(&**name) {
                let message = format!("the member `{name}` is not in the schema");
                findings.push(GoFinding::left_out(&field.at, FindingKind::MissingField, message));
            } else {
                let message = format!("`{name}` is not a field of `{}`: write the JSON name of a field", group.title);
                findings.push(GoFinding::left_out(group.at, FindingKind::UnknownField, message));
            }
        }
        FoundGroup { group, members, findings }
    }

    /// Returns true if a marked union has the same members.
    fn is_marked(&self, members: &BTreeSet<&str>) -> bool {
        self.marked.iter().any(|union| union.members().into_iter().collect::<BTreeSet<_>>() == *members)
    }

    /// Returns a message if a marked union has one of the fields.
    fn marked_overlap(&self, members: &BTreeSet<&str>) -> Option<String> {
        let fields = |union: &MarkedUnion| -> Vec<Box<str>> {
            let members = union.members().into_iter().map(Into::into);
            union.discriminator.iter().cloned().chain(members).collect()
        };
        let shared = self.marked.iter().flat_map(fields).find(|name| members.contains(&**name))?;
        Some(format!("the group shares the field `{shared}` with a marked union of the struct, which keeps it"))
    }

    fn of_members(&self, group: &OneOfGroup<'_>, members: &BTreeSet<&str>) -> MarkedUnion {
        let go_name = |name: &str| self.fields.get(name).map_or_else(|| name.into(), |(field, _)| field.name.clone());
        let at = |name: &str| self.fields.get(name).map_or(group.at, |(field, _)| &field.at).clone();
        let selection = |name: &str| vec![Selection { name: name.into(), optional: true, by_rule: false }];
        let is_unset_if_empty = |name: &&str| {
            self.fields.get(name).is_some_and(|(field, scope)| {
                self.packages.is_unset_if_empty(&ScopedType { written: &field.written, scope: scope.clone() })
            })
        };
        let empty = members.iter().copied().filter(|name| group.validation && is_unset_if_empty(name));
        MarkedUnion {
            place: self.place.clone(),
            form: Form::List,
            discriminator: None,
            choices: members.iter().map(|name| (go_name(name), selection(name))).collect(),
            required: group.marker.exactly,
            empty_is_unset: empty.map(Into::into).collect(),
            go_type: group.title.clone(),
            source: group.at.clone(),
            members: members.iter().map(|&name| (name.into(), at(name))).collect(),
            found_by: if group.validation { FoundBy::Markers } else { FoundBy::OneOf },
        }
    }
}

/// Returns a message if another group has one of the fields.
fn group_overlap<'g>(members: &BTreeSet<&str>, others: impl Iterator<Item = &'g BTreeSet<&'g str>>) -> Option<String> {
    let shared = others.flatten().find(|name| members.contains(*name))?;
    Some(format!("the field `{shared}` is in two groups of the struct, but no two unions can share a field"))
}
