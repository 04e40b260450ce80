//! Unions from `+kubebuilder:validation:ExactlyOneOf` and `AtMostOneOf`, groups of JSON names on a struct, and from
//! `+k8s:dependentForbidden`, the name of another field on a field: in the 2019 form without a discriminator.
//!
//! Marked unions win, because their authors said more. Groups that share fields are one union, if its members can be split into
//! those that go together: a field that excludes two others is apart from both. Otherwise they are left out: no two unions can
//! share a field.

use crate::finding::{FindingKind, GoFinding, Position};
use crate::marked_union::{FoundBy, MarkedUnion, Selection};
use crate::marker::{Marker, Meaning, OneOfMarker};
use crate::packages::{Packages, Scope, ScopedType};
use crate::types::Field;
use kube_unions_core::schema::{Place, Schema};
use kube_unions_core::union::Form;
use kube_unions_evidence::ExclusionGraph;
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
        let mut unions = Vec::new();
        let mut open: Vec<&FoundGroup<'_>> = found.iter().filter(|one| one.members.len() > 1).collect();
        while !open.is_empty() {
            let connected = connected(&mut open);
            match self.joined(&connected) {
                Some(union) => unions.push(union),
                None => unions.extend(connected.iter().filter_map(|one| self.union(one, &connected, &mut findings))),
            }
        }
        (unions, findings)
    }

    /// Returns the union of several groups that share fields, if one can say the same.
    fn joined(&self, connected: &[&FoundGroup<'_>]) -> Option<MarkedUnion> {
        let [first, _, ..] = connected else { return None };
        let is_alike = |one: &FoundGroup<'_>| {
            !one.group.marker.exactly
                && one.group.validation == first.group.validation
                && self.marked_overlap(&one.members).is_none()
        };
        let pairs = connected.iter().flat_map(|one| {
            one.members.iter().flat_map(|name| one.members.range(..*name).map(move |other| (*other, *name)))
        });
        let members = ExclusionGraph::of(pairs).groups().filter(|_| connected.iter().all(|one| is_alike(one)))?;
        Some(self.of_members(first.group, &members))
    }

    /// Returns the union of a group among all groups of the object.
    fn union(
        &self,
        FoundGroup { group, members, .. }: &FoundGroup<'_>,
        all: &[&FoundGroup<'_>],
        findings: &mut Vec<GoFinding>,
    ) -> Option<MarkedUnion> {
        if self.is_marked(members) {
            return None;
        }
        let others = all.iter().map(|other| &other.members).filter(|other| *other != members);
        let overlap = self.marked_overlap(members).or_else(|| group_overlap(members, others));
        if let Some(message) = overlap {
            findings.push(GoFinding::left_out(group.at, FindingKind::OverlappingGroup, message));
            return None;
        }
        let apart: Vec<Vec<String>> = members.iter().map(|&name| vec![name.to_owned()]).collect();
        Some(self.of_members(group, &apart))
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
        if let [one] = group.marker.fields.iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()[..] {
            let message = format!("`{one}` excludes no other field: name another one");
            findings.push(GoFinding::left_out(group.at, FindingKind::ContradictoryMarkers, message));
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

    /// Returns the union of fields, those that go together in one part.
    fn of_members(&self, group: &OneOfGroup<'_>, parts: &[Vec<String>]) -> MarkedUnion {
        let go_name = |name: &str| self.fields.get(name).map_or_else(|| name.into(), |(field, _)| field.name.clone());
        let at = |name: &str| self.fields.get(name).map_or(group.at, |(field, _)| &field.at).clone();
        let selection = |name: &String| Selection { name: name.as_str().into(), optional: true, by_rule: false };
        let is_unset_if_empty = |name: &str| {
            self.fields.get(name).is_some_and(|(field, scope)| {
                self.packages.is_unset_if_empty(&ScopedType { written: &field.written, scope: scope.clone() })
            })
        };
        let choices =
            parts.iter().filter_map(|part| Some((go_name(part.first()?), part.iter().map(selection).collect())));
        let members: BTreeSet<&str> = parts.iter().flatten().map(String::as_str).collect();
        let empty = members.iter().copied().filter(|name| group.validation && is_unset_if_empty(name));
        MarkedUnion {
            place: self.place.clone(),
            form: Form::List,
            discriminator: None,
            choices: choices.collect(),
            required: group.marker.exactly,
            empty_is_unset: empty.map(Into::into).collect(),
            go_type: group.title.clone(),
            source: group.at.clone(),
            members: members.iter().map(|&name| (name.into(), at(name))).collect(),
            found_by: if group.validation { FoundBy::Markers } else { FoundBy::OneOf },
        }
    }
}

/// Takes the first group, and those that share fields with it or with each other.
fn connected<'g>(open: &mut Vec<&'g FoundGroup<'g>>) -> Vec<&'g FoundGroup<'g>> {
    let mut taken: Vec<&FoundGroup<'_>> = open.drain(..1).collect();
    loop {
        let shares = |one: &&FoundGroup<'_>| taken.iter().any(|other| !one.members.is_disjoint(&other.members));
        let (more, rest): (Vec<_>, Vec<_>) = open.drain(..).partition(|one| shares(one));
        *open = rest;
        if more.is_empty() {
            return taken;
        }
        taken.extend(more);
    }
}

/// Returns a message if another group has one of the fields.
fn group_overlap<'g>(members: &BTreeSet<&str>, others: impl Iterator<Item = &'g BTreeSet<&'g str>>) -> Option<String> {
    let shared = others.flatten().find(|name| members.contains(*name))?;
    Some(format!("the field `{shared}` is in two groups of the struct, but no two unions can share a field"))
}
