//! The checks of one declaration against its object.

use super::fault::{Flaw, did_you_mean, near_property};
use crate::declaration::{ANNOTATION, FaultKind};
use crate::listed::quoted;
use crate::near::nearest;
use crate::schema::{Declared, DefaultValue, Schema, Severity, Source, Unowned, WrittenUnion};
use crate::union::plan::Role;
use crate::union::{Choice, Form, Member, MemberSet, SelectedMember, Union};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Most faults that are reported of one union. The rest is counted.
const MOST: usize = 16;

/// Most values of one union that are compared with every value of the enum, to find the one that was meant.
const MOST_GUESSED: usize = 4;

/// The message for a union without members.
pub(super) const NO_MEMBERS: &str = "no member is declared; name at least one or remove the declaration";

/// The faults of one union.
#[derive(Debug, Default)]
pub(super) struct Faults {
    reported: Vec<Flaw>,
    more: usize,
}

impl Faults {
    pub(super) fn of(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { reported: vec![Flaw::new(kind, message)], more: 0 }
    }

    /// Returns the reported faults, and the number of the others last.
    pub(super) fn into_flaws(self) -> impl Iterator<Item = Flaw> {
        let more = (self.more > 0).then(|| Flaw::more(Severity::Error, self.more));
        self.reported.into_iter().chain(more)
    }

    /// Adds a fault, of a member if there is one. Its message is built only if it is reported, because it may quote long names.
    fn add(&mut self, kind: FaultKind, member: Option<&str>, message: impl FnOnce() -> String) {
        if self.reported.len() < MOST {
            self.reported.push(Flaw { member: member.map(Into::into), ..Flaw::new(kind, message()) });
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    fn is_empty(&self) -> bool {
        self.reported.is_empty()
    }
}

/// An object with unions. Its required fields and enum values are prepared once: there may be thousands of them, and as
/// many invalid declarations.
pub(super) struct PreparedObject<'s> {
    pub(super) schema: &'s Schema,
    required: HashSet<&'s str>,
    /// The enum values of each property, `None` without an enum.
    values: HashMap<&'s str, Option<BTreeSet<&'s str>>>,
}

impl<'s> PreparedObject<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self { schema, required: schema.required.iter().map(|name| &**name).collect(), values: HashMap::new() }
    }

    /// Returns the enum values of a property, if it has an enum, and those of a boolean.
    pub(super) fn values(&mut self, name: &'s str, property: &'s Schema) -> Option<&BTreeSet<&'s str>> {
        let values = || {
            if is_boolean(property) { Some(BTreeSet::from(["false", "true"])) } else { property.allowed_texts() }
        };
        self.values.entry(name).or_insert_with(values).as_ref()
    }
}

/// Checks a union by itself; [`free`] checks that no other union has its fields. Reports all faults, not only the first. `path` is
/// called for a valid union.
pub(super) fn union(
    union: WrittenUnion,
    declared: &Declared,
    object: &mut PreparedObject<'_>,
    path: impl FnOnce() -> String,
) -> Result<Union, Faults> {
    let schema = object.schema;
    if let Some(key) = union.key_beyond_extension.filter(|_| !declared.source.exceeds_extension()) {
        let message = format!(
            "`x-kubernetes-unions` has no `{key}`; declare the union in the annotation `{ANNOTATION}` or by a UnionDeclaration"
        );
        return Err(Faults::of(FaultKind::MalformedExtension, message));
    }
    if union.form == Form::List && !schema.is_object() {
        let message = format!("a list of unions must stand on an object, this is {}", describe(schema));
        return Err(Faults::of(FaultKind::NotAnObject, message));
    }
    let members: Vec<Box<str>> = union.members().into_iter().map(Into::into).collect();
    if members.len() > MemberSet::CAPACITY {
        let message = format!("{} members are declared; a union can have at most 128", members.len());
        return Err(Faults::of(FaultKind::TooManyMembers, message));
    }
    let mut faults = Faults::default();
    check_values(&union, declared.source, &mut faults);
    check_members(&members, &union, declared, object, &mut faults);
    let WrittenUnion { form, discriminator, choices, required, empty_is_unset, .. } = union;
    let boolean = discriminator.as_ref().and_then(|name| schema.properties.get(name)).is_some_and(is_boolean);
    if let Some(name) = &discriminator
        && let Some(values) = check_discriminator(name, declared.source, object, &mut faults)
    {
        // A `UnionDeclaration` may name a value of a newer release. The API server refuses it in older ones.
        let may_lack =
            |members: &BTreeMap<_, _>| declared.source == Source::Declaration && members.is_empty() && !boolean;
        // The empty value of a boolean says that it is missing.
        let is_known = |value: &str| values.contains(value) || value.is_empty() && boolean;
        let missing = choices.iter().filter(|(value, members)| !is_known(value) && !may_lack(members));
        report_not_in_enum(name, boolean, missing.map(|(value, _)| value), values, declared.source, &mut faults);
        for value in values.iter().filter(|value| form == Form::Map && !choices.contains_key(**value)) {
            faults.add(FaultKind::MissingValue, None, || {
                format!(
                    "the {} of `{name}` has `{value}`, which is not in `fieldMembers`; add it, as an empty member if it \
                     selects no field",
                    enum_or_type(boolean)
                )
            });
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let index = |name: &str| members.binary_search_by(|member| (**member).cmp(name)).ok();
    let set = |names: &mut dyn Iterator<Item = &Box<str>>| {
        let indexes = names.filter_map(|name| u8::try_from(index(name)?).ok());
        indexes.fold(MemberSet::EMPTY, |set, index| set.with(MemberSet::of(index)))
    };
    let choice = |(value, members): (Box<str>, BTreeMap<Box<str>, bool>)| {
        let required = members.iter().filter(|(_, optional)| !**optional).map(|(name, _)| name);
        let (selected, required) = (set(&mut members.keys()), set(&mut { required }));
        let members = members.into_iter().map(|(name, optional)| SelectedMember { name, optional }).collect();
        Choice { value: value.into(), members, selected, required }
    };
    let choices: Box<[Choice]> = choices.into_iter().map(choice).collect();
    let property = |name: &str| object.schema.properties.get(name);
    let mut fields = members.iter().chain(&discriminator);
    let typed = fields.all(|name| property(name).is_some_and(|property| !property.untyped));
    let members = (0_u8..).zip(&members);
    let members: Box<[_]> = members
        .map(|(index, name)| Member {
            nullable: property(name).is_none_or(|property| property.nullable || property.untyped),
            unowned: property(name).and_then(Unowned::of).map(Arc::new),
            ..Member::new(index, name, &choices, empty_is_unset.contains(name))
        })
        .collect();
    let names = || members.iter().map(|member| Arc::clone(&member.name)).collect();
    let nullable_discriminator = discriminator.as_deref().and_then(property).is_some_and(|property| property.nullable);
    let values = choices.iter().map(|choice| &choice.value).filter(|value| !value.is_empty());
    Ok(Union {
        path: path().into(),
        form,
        source: declared.source,
        origin: declared.origin.clone(),
        repeated_by: declared.repeated_by.clone().into(),
        actions: declared.actions,
        normalization: declared.normalization,
        required: required.then(names),
        discriminator: discriminator.map(Into::into),
        boolean,
        nullable_discriminator,
        supported: values.cloned().collect(),
        members,
        choices,
        typed,
    })
}

/// Checks that each group of a union of the 2019 form has a value of its own, and that there are several. A group has one member, unless
/// the source may say more.
fn check_values(union: &WrittenUnion, source: Source, faults: &mut Faults) {
    if union.form == Form::Map {
        return;
    }
    for (value, members) in &union.choices {
        let mut names = members.keys();
        let (first, second) = (names.next(), names.next());
        if let Some(name) = first.filter(|_| value.is_empty()) {
            faults.add(FaultKind::EmptyValue, None, || {
                format!("the value of the member `{name}` is empty, which means no choice; give it a value")
            });
        } else if let Some((one, other)) = first.zip(second).filter(|_| !source.exceeds_extension()) {
            faults.add(FaultKind::DuplicateValue, None, || {
                format!("the members `{one}` and `{other}` have the same value `{value}`; each needs its own")
            });
        } else if let Some((one, other)) = first.zip(second).filter(|_| union.choices.len() == 1) {
            faults.add(FaultKind::DuplicateValue, None, || {
                format!(
                    "all members have the same value `{value}`, for example `{one}` and `{other}`, so nothing is left to choose; \
                     give another value to those that may not be set with them"
                )
            });
        }
    }
}

/// Checks a union that an API server publishes for a built-in type. The generator uses the names of Go fields as values,
/// which are often wrong. Values are trusted only if an enum confirms them.
pub(super) fn published(union: Union, schema: &Schema) -> Result<Union, Faults> {
    match discriminator_in(&union, schema) {
        Some((name, discriminator)) if union.source == Source::Published && !discriminator.has_enum() => {
            let values = quoted(union.choices.iter().map(|choice| &choice.value), usize::MAX);
            let message = format!(
                "the published values {values} are not used because `{name}` has no enum that confirms them; declare the union by a \
                 UnionDeclaration"
            );
            Err(Faults::of(FaultKind::UnconfirmedValues, message))
        }
        _ => Ok(union),
    }
}

/// Checks that no other union of the object has one of the fields.
pub(super) fn free(union: Union, roles: &BTreeMap<Box<str>, Role>) -> Result<Union, Faults> {
    let mut taken = Faults::default();
    for name in union.members().chain(union.discriminator()).filter(|name| roles.contains_key(*name)) {
        taken.add(FaultKind::SharedField, Some(name), || {
            format!(
                "the field `{name}` already belongs to another union of this object; a field can be in one union only"
            )
        });
    }
    if taken.is_empty() { Ok(union) } else { Err(taken) }
}

/// Returns the name and the schema of the discriminator.
pub(super) fn discriminator_in<'s>(union: &Union, schema: &'s Schema) -> Option<(&'s str, &'s Schema)> {
    let (name, schema) = schema.properties.get_key_value(union.discriminator()?)?;
    Some((name, schema))
}

/// Checks the members. The author of a `UnionDeclaration` cannot change the schema, and gets other advice.
fn check_members(
    members: &[Box<str>],
    union: &WrittenUnion,
    declared: &Declared,
    object: &PreparedObject<'_>,
    faults: &mut Faults,
) {
    let of_declaration = declared.source == Source::Declaration;
    if members.is_empty() {
        faults.add(FaultKind::NoMembers, None, || NO_MEMBERS.to_owned());
    }
    for member in members {
        if union.discriminator.as_ref() == Some(member) {
            faults.add(FaultKind::DiscriminatorAsMember, None, || {
                format!("the discriminator `{member}` can't be a member of its own union")
            });
            continue;
        }
        let Some(property) = object.schema.properties.get(member) else {
            faults.add(FaultKind::UnknownMember, Some(member), || {
                let declared: BTreeSet<&str> = members.iter().chain(&union.discriminator).map(|name| &**name).collect();
                let near = near_property(member, object.schema, &declared);
                let question = did_you_mean(near);
                format!(
                    "the member `{member}` is not a property of this object{question}; declare it or correct the name"
                )
            });
            continue;
        };
        if object.required.contains(&**member) {
            let [by, from] = if of_declaration { [" by the schema", "this union"] } else { ["", "`required`"] };
            faults.add(FaultKind::RequiredMember, Some(member), || {
                format!("the member `{member}` is required{by}, so it can never be cleared; take it out of {from}")
            });
        }
        // A default that counts as not set may come back.
        let is_unset = matches!(property.default, DefaultValue::Zero(_)) && union.empty_is_unset.contains(member);
        if property.default != DefaultValue::Absent && !is_unset {
            let remedy = if of_declaration { "take it out of this union" } else { "remove the default" };
            faults.add(FaultKind::DefaultedMember, Some(member), || {
                format!(
                    "the member `{member}` has a default, so the API server would restore it whenever it is cleared; {remedy}"
                )
            });
        }
    }
}

/// Returns the enum values of the discriminator, if it has an enum.
fn check_discriminator<'o, 's>(
    name: &str,
    source: Source,
    object: &'o mut PreparedObject<'s>,
    faults: &mut Faults,
) -> Option<&'o BTreeSet<&'s str>> {
    let Some((name, discriminator)) = object.schema.properties.get_key_value(name) else {
        faults.add(FaultKind::UnknownDiscriminator, None, || {
            let question = did_you_mean(near_property(name, object.schema, &BTreeSet::new()));
            format!(
                "the discriminator `{name}` is not a property of this object{question}; declare it or correct the name"
            )
        });
        return None;
    };
    if discriminator.type_name.as_deref() != Some("string")
        && !(is_boolean(discriminator) && source.exceeds_extension())
    {
        let or_boolean = if source.exceeds_extension() { " or boolean" } else { "" };
        faults.add(FaultKind::DiscriminatorType, None, || {
            format!("the discriminator `{name}` must be of type string{or_boolean}, it is {}", describe(discriminator))
        });
        return None;
    }
    object.values(name, discriminator)
}

/// Reports each declared value that the enum of the discriminator lacks.
fn report_not_in_enum<'f>(
    discriminator: &str,
    boolean: bool,
    missing: impl Iterator<Item = &'f Box<str>>,
    values: &BTreeSet<&str>,
    source: Source,
    faults: &mut Faults,
) {
    let remedy = if source == Source::Declaration { "correct it or remove it" } else { "add it there or correct it" };
    for (position, value) in missing.enumerate() {
        faults.add(FaultKind::UnknownValue, None, || {
            let near = (position < MOST_GUESSED).then(|| nearest(value, values.iter().copied())).flatten();
            if boolean {
                return format!(
                    "the value `{value}` is not one of the boolean `{discriminator}`: write `true` or `false`"
                );
            }
            format!("the value `{value}` is not in the enum of `{discriminator}`{}; {remedy}", did_you_mean(near))
        });
    }
}

/// Returns true if the schema is one of a boolean.
pub(super) fn is_boolean(schema: &Schema) -> bool {
    schema.type_name.as_deref() == Some("boolean")
}

fn enum_or_type(boolean: bool) -> &'static str {
    if boolean { "type" } else { "enum" }
}

fn describe(schema: &Schema) -> String {
    schema.type_name.as_deref().map_or_else(|| "of no declared type".to_owned(), |name| format!("of type {name}"))
}
