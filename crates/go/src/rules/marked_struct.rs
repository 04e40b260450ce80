//! A struct with its markers and its schema, the input of the rules, and the assignment of its members to its discriminators.

use crate::finding::{FindingKind, GoFinding, Position};
use crate::marker::{Family, Marker, Meaning, MemberMarker};
use crate::packages::{Scope, ScopedType};
use crate::types::Field;
use kube_unions_core::schema::{Place, Schema};
use serde_json::Value;

/// A struct at a place in the schema.
#[derive(Debug)]
pub(crate) struct MarkedStruct<'p, 's> {
    /// Name with the package, for messages: `v1.Strategy`.
    pub(crate) title: String,
    pub(crate) at: &'p Position,
    pub(crate) markers: Vec<&'p Marker>,
    /// Fields that JSON has, in the order of the sources.
    pub(crate) fields: Vec<StructField<'p, 's>>,
    pub(crate) place: &'s Place,
    /// The JSON of the whole schema, with the validation rules that somebody wrote by hand.
    pub(crate) json: &'s Value,
}

#[derive(Debug)]
pub(crate) struct StructField<'p, 's> {
    pub(crate) field: &'p Field,
    /// The meanings of the markers that count for the field, with their positions.
    pub(crate) meanings: Vec<(&'p Meaning, &'p Position)>,
    pub(crate) name: &'p str,
    pub(crate) scope: Scope<'p>,
    /// `None` if the schema does not have the field.
    pub(crate) schema: Option<&'s Schema>,
    /// True if the schema requires the field.
    pub(crate) required: bool,
}

impl<'p, 's> StructField<'p, 's> {
    /// Returns a field of an object with this schema.
    pub(crate) fn of(
        (name, field): (&'p str, &'p Field),
        meanings: Vec<(&'p Meaning, &'p Position)>,
        scope: &Scope<'p>,
        object: &'s Schema,
    ) -> Self {
        let required = object.required.iter().any(|required| **required == *name);
        Self { field, meanings, name, scope: scope.clone(), schema: object.properties.get(name), required }
    }

    pub(super) fn at(&self) -> &'p Position {
        &self.field.at
    }

    pub(super) fn typed(&self) -> ScopedType<'p> {
        ScopedType { written: &self.field.written, scope: self.scope.clone() }
    }

    /// Returns true if the schema says that the field is a boolean.
    pub(super) fn is_boolean(&self) -> bool {
        self.schema.is_some_and(|schema| schema.type_name.as_deref() == Some("boolean"))
    }

    /// Returns the finding that the schema lacks the field. It may be in another version, or behind a feature gate.
    pub(super) fn left_out(&self, role: &str) -> GoFinding {
        let message = format!("the {role} `{}` is not in the schema", self.name);
        GoFinding::left_out(self.at(), FindingKind::MissingField, message)
    }
}

impl<'p, 's> MarkedStruct<'p, 's> {
    /// Returns true if the struct itself is marked as a union.
    pub(super) fn is_union(&self) -> bool {
        self.markers.iter().any(|marker| marker.meaning == Meaning::Union)
    }

    /// Returns the fields that a value names, except for letter case: by their Go names, or else by their JSON names.
    pub(super) fn named<'m>(&'m self, value: &str, discriminator: &str) -> Vec<&'m StructField<'p, 's>> {
        let others = || self.fields.iter().filter(|field| field.name != discriminator);
        let by_go_name: Vec<_> = others().filter(|field| same_letters(&field.field.name, value)).collect();
        if by_go_name.is_empty() {
            others().filter(|field| same_letters(field.name, value)).collect()
        } else {
            by_go_name
        }
    }
}

/// Compares two names without letter case.
pub(super) fn same_letters(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || one.to_lowercase() == other.to_lowercase()
}

/// The fields of one union.
#[derive(Debug)]
pub(super) struct UnionGroup<'m> {
    pub(super) discriminator: Option<&'m StructField<'m, 'm>>,
    /// The fields with a member marker. `None`: the fields whose names are values of the discriminator.
    pub(super) members: Option<Vec<MarkedMember<'m>>>,
}

/// A field with one of its member markers. A field with two markers has two of these.
#[derive(Debug)]
pub(super) struct MarkedMember<'m> {
    pub(super) field: &'m StructField<'m, 'm>,
    /// Position of the marker.
    pub(super) at: &'m Position,
    pub(super) marker: &'m MemberMarker,
}

impl<'m> UnionGroup<'m> {
    pub(super) fn marked(&self) -> &[MarkedMember<'m>] {
        self.members.as_deref().unwrap_or_default()
    }
}

impl<'m> MarkedMember<'m> {
    /// Returns the value that selects the member: as the marker names it, or else the name of the Go field.
    pub(super) fn value(&self) -> &'m str {
        self.marker.value.as_deref().unwrap_or(&self.field.field.name)
    }

    /// Returns true if the marker tells the value, and not only a name that may be one.
    pub(super) fn has_value(&self) -> bool {
        self.marker.value.is_some() || self.marker.family == Family::Validation
    }

    /// Returns the names that may be the value, the best first: the JSON name counts if the values lack the Go name.
    pub(super) fn value_names(&self) -> Vec<&'m str> {
        let named = self.marker.value.as_deref();
        named.map_or_else(|| vec![&*self.field.field.name, self.field.name], |named| vec![named])
    }
}

/// A discriminator with the name of its union.
struct Discriminator<'m> {
    field: &'m StructField<'m, 'm>,
    union: Option<&'m str>,
    modes: bool,
}

/// The identity of a union within its struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnionKey<'m> {
    /// The union of the discriminator at this index.
    Discriminator(usize),
    /// A union without a discriminator, by its name and by the family of its markers.
    Alone { union: Option<&'m str>, zero_or_one: bool },
}

/// Returns the unions of a struct and what was left out.
pub(super) fn groups<'m>(marked: &'m MarkedStruct<'m, 'm>) -> (Vec<UnionGroup<'m>>, Vec<GoFinding>) {
    let discriminators = discriminators(marked);
    let (members, findings) = members(marked, &discriminators);
    // A member without a union makes every union of the struct uncertain.
    if !findings.is_empty() {
        return (Vec::new(), findings);
    }
    if let Some(finding) = in_two_unions(&members) {
        return (Vec::new(), vec![finding]);
    }
    if !members.is_empty() {
        return group_by_key(marked, &discriminators, members);
    }
    let (modes, others): (Vec<_>, Vec<_>) = discriminators.into_iter().partition(|discriminator| discriminator.modes);
    let mut findings: Vec<GoFinding> = modes.iter().map(Discriminator::without_modes).collect();
    let group = group_by_name(marked, &others).unwrap_or_else(|finding| {
        findings.push(finding);
        None
    });
    (group.into_iter().collect(), findings)
}

fn discriminators<'m>(marked: &'m MarkedStruct<'m, 'm>) -> Vec<Discriminator<'m>> {
    let of_field = |field: &'m StructField<'m, 'm>| {
        field.meanings.iter().filter_map(move |(meaning, _)| {
            let Meaning::Discriminator { union, modes } = meaning else { return None };
            Some(Discriminator { field, union: union.as_deref(), modes: *modes })
        })
    };
    marked.fields.iter().flat_map(of_field).collect()
}

/// Returns the marked members, each with its union, and the markers that belong to none.
fn members<'m>(
    marked: &'m MarkedStruct<'m, 'm>,
    discriminators: &[Discriminator<'m>],
) -> (Vec<(UnionKey<'m>, MarkedMember<'m>)>, Vec<GoFinding>) {
    let (mut members, mut findings) = (Vec::new(), Vec::new());
    for field in &marked.fields {
        let by = field.meanings.iter().find_map(|(meaning, at)| {
            let Meaning::DiscriminatedBy(name) = meaning else { return None };
            Some((&**name, *at))
        });
        let mut is_member = false;
        for (meaning, at) in &field.meanings {
            let Meaning::Member(member) = meaning else { continue };
            is_member = true;
            match key(discriminators, member, by, at) {
                Ok(key) => members.push((key, MarkedMember { field, at, marker: member })),
                Err(finding) => findings.push(finding),
            }
        }
        if let Some((_, at)) = by.filter(|_| !is_member) {
            let message = "`+unionDiscriminatedBy` is on a field that is not a member: add `+unionMember`";
            findings.push(GoFinding::left_out(at, FindingKind::MisplacedMarker, message));
        }
    }
    (members, findings)
}

/// Returns the union of a member.
fn key<'m>(
    discriminators: &[Discriminator<'m>],
    member: &'m MemberMarker,
    by: Option<(&str, &Position)>,
    at: &Position,
) -> Result<UnionKey<'m>, GoFinding> {
    let (union, zero_or_one) = (member.union.as_deref(), member.family == Family::ZeroOrOneOf);
    let is_mode = member.family == Family::Mode;
    let discriminators: Vec<(usize, &Discriminator<'_>)> =
        (0..).zip(discriminators).filter(|(_, discriminator)| discriminator.modes == is_mode).collect();
    if let Some((name, at)) = by.filter(|_| !is_mode) {
        let is_named = |it: &Discriminator<'_>| *it.field.field.name == *name || it.field.name == name;
        let named = discriminators.iter().find(|(_, discriminator)| is_named(discriminator));
        return named.map(|(at, _)| UnionKey::Discriminator(*at)).ok_or_else(|| {
            let message =
                format!("`+unionDiscriminatedBy={name}` names no discriminator of this struct: correct the name");
            GoFinding::left_out(at, FindingKind::ContradictoryMarkers, message)
        });
    }
    if zero_or_one {
        return match discriminators.iter().find(|(_, it)| union.is_some() && it.union == union) {
            None => Ok(UnionKey::Alone { union, zero_or_one }),
            Some((_, discriminator)) => {
                let message = format!(
                    "`+k8s:zeroOrOneOfMember` is for unions without a discriminator, but `{}` is the discriminator of this \
                     union: write `+k8s:unionMember`",
                    discriminator.field.name
                );
                Err(GoFinding::left_out(at, FindingKind::ContradictoryMarkers, message))
            }
        };
    }
    let fitting: Vec<usize> = discriminators.iter().filter(|(_, it)| it.union == union).map(|(at, _)| *at).collect();
    let mode = union.map_or_else(String::new, |name| format!("(modality: \"{name}\")"));
    let mode = format!("`+k8s:modeDiscriminator{mode}`");
    let ambiguous = FindingKind::AmbiguousUnion;
    let (kind, message) = match fitting.as_slice() {
        [only] => return Ok(UnionKey::Discriminator(*only)),
        [] if is_mode => {
            let message = format!("no field of the struct has {mode}: mark the field with the mode");
            (FindingKind::ContradictoryMarkers, message)
        }
        _ if is_mode => (ambiguous, format!("two fields of the struct have {mode}: name their modalities")),
        [] if union.is_some() || discriminators.is_empty() => return Ok(UnionKey::Alone { union, zero_or_one }),
        [] => {
            let message =
                "the member names no union, but every discriminator of this struct does: name the member's union";
            (ambiguous, message.to_owned())
        }
        _ => {
            let message =
                "several discriminators may select the member: add `+unionDiscriminatedBy=Field`, or name the unions";
            (ambiguous, message.to_owned())
        }
    };
    Err(GoFinding::left_out(at, kind, message))
}

impl Discriminator<'_> {
    /// Returns the note that no field depends on the modes of this discriminator.
    fn without_modes(&self) -> GoFinding {
        let message = format!("no field has `+k8s:ifMode` for the modes of `{}`", self.field.name);
        GoFinding::left_out(self.field.at(), FindingKind::DiscriminatorAlone, message)
    }
}

/// Puts the members of each union together. Reports discriminators without members.
fn group_by_key<'m>(
    marked: &'m MarkedStruct<'m, 'm>,
    discriminators: &[Discriminator<'m>],
    members: Vec<(UnionKey<'m>, MarkedMember<'m>)>,
) -> (Vec<UnionGroup<'m>>, Vec<GoFinding>) {
    let mut groups: Vec<(UnionKey<'m>, Vec<MarkedMember<'m>>)> = Vec::new();
    for (key, member) in members {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(member),
            None => groups.push((key, vec![member])),
        }
    }
    let is_alone = |position: usize| !groups.iter().any(|(key, _)| *key == UnionKey::Discriminator(position));
    let alone = discriminators.iter().enumerate().filter(|(position, _)| is_alone(*position));
    let findings = alone.map(|(_, discriminator)| {
        if discriminator.modes {
            return discriminator.without_modes();
        }
        let message = format!(
            "the discriminator `{}` has no members, although other fields of `{}` are marked: mark its members too, or remove \
             its marker",
            discriminator.field.name, marked.title
        );
        GoFinding::left_out(discriminator.field.at(), FindingKind::AmbiguousUnion, message)
    });
    let findings = findings.collect();
    let groups = groups.into_iter().map(|(key, members)| {
        let discriminator = match key {
            UnionKey::Discriminator(position) => discriminators.get(position).map(|discriminator| discriminator.field),
            UnionKey::Alone { .. } => None,
        };
        UnionGroup { discriminator, members: Some(members) }
    });
    (groups.collect(), findings)
}

/// Returns the union of a struct without marked members, or `None` if the struct has no union markers at all.
fn group_by_name<'m>(
    marked: &'m MarkedStruct<'m, 'm>,
    discriminators: &[Discriminator<'m>],
) -> Result<Option<UnionGroup<'m>>, GoFinding> {
    match discriminators {
        [] if !marked.is_union() => Ok(None),
        // The groups of the struct are its unions.
        [] if marked.markers.iter().any(|marker| matches!(marker.meaning, Meaning::OneOf(_))) => Ok(None),
        [] => {
            let message = format!(
                "`{}` has `+union`, but no discriminator and no marked members: mark the members with `+unionMember`",
                marked.title
            );
            Err(GoFinding::left_out(marked.at, FindingKind::UnmarkedUnion, message))
        }
        [only] => Ok(Some(UnionGroup { discriminator: Some(only.field), members: None })),
        [_, second, ..] => {
            let message = format!(
                "`{}` has several discriminators and no marked members: mark the members of each with `+unionMember` and \
                 `+unionDiscriminatedBy=Field`",
                marked.title
            );
            Err(GoFinding::left_out(second.field.at(), FindingKind::AmbiguousUnion, message))
        }
    }
}

fn in_two_unions(members: &[(UnionKey<'_>, MarkedMember<'_>)]) -> Option<GoFinding> {
    let (_, member) = members.iter().enumerate().find_map(|(position, (key, member))| {
        let mut before = members.iter().take(position).filter(|(_, other)| other.field.name == member.field.name);
        before.any(|(other, _)| other != key).then_some((key, member))
    })?;
    let message = format!(
        "the field `{}` is a member of two unions, and no two unions can share a field: remove one of its markers",
        member.field.name
    );
    Some(GoFinding::left_out(member.at, FindingKind::ContradictoryMarkers, message))
}
