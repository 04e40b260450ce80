//! The checks of one declaration against its object.

use super::fault::Flaw;
use super::missing::guess;
use crate::declaration::FaultKind;
use crate::listed::quoted;
use crate::near::nearest;
use crate::schema::{Declared, DefaultValue, ListUnion, MapUnion, Schema, Severity, Source};
use crate::union::plan::Role;
use crate::union::{Choice, Form, Member, MemberSet, Selected, Union};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A declaration that is valid by itself. [`free`] checks that no other union has its fields.
pub(super) struct Checked {
    form: Form,
    discriminator: Option<Box<str>>,
    members: Vec<Box<str>>,
    choices: Vec<Choice>,
}

/// Most faults that are reported of one union. The rest is counted.
const MOST: usize = 16;

/// Most values of one union that are compared with every value of the enum, to find the one that was meant.
const MOST_GUESSED: usize = 4;

/// The message for a union without members.
pub(super) const NO_MEMBERS: &str = "no member is declared; name at least one or remove the declaration";

/// The faults of one union.
#[derive(Debug, Default)]
pub(super) struct Faults {
    told: Vec<Flaw>,
    more: usize,
}

impl Faults {
    pub(super) fn of(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { told: vec![Flaw::new(kind, message)], more: 0 }
    }

    /// Returns the reported faults, and the number of the others last.
    pub(super) fn into_flaws(self) -> impl Iterator<Item = Flaw> {
        let more = (self.more > 0).then(|| Flaw::more(Severity::Error, self.more));
        self.told.into_iter().chain(more)
    }

    /// Adds a fault. Its message is built only if it is reported, because it may quote long names.
    fn add(&mut self, kind: FaultKind, message: impl FnOnce() -> String) {
        self.add_flaw(|| Flaw::new(kind, message()));
    }

    /// Adds a fault of a member.
    fn add_of_member(&mut self, kind: FaultKind, member: &str, message: impl FnOnce() -> String) {
        self.add_flaw(|| Flaw::of_member(kind, member, message()));
    }

    fn add_flaw(&mut self, flaw: impl FnOnce() -> Flaw) {
        if self.told.len() < MOST {
            self.told.push(flaw());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    fn is_empty(&self) -> bool {
        self.told.is_empty()
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

    /// Returns the enum values of a property, if it has an enum.
    pub(super) fn values(&mut self, name: &'s str, property: &'s Schema) -> Option<&BTreeSet<&'s str>> {
        self.values.entry(name).or_insert_with(|| property.allowed_texts()).as_ref()
    }
}

/// Checks a union of the 2019 form. Reports all faults, not only the first.
pub(super) fn list(union: &ListUnion, declared: &Declared, object: &mut PreparedObject<'_>) -> Result<Checked, Faults> {
    let schema = object.schema;
    if !schema.is_object() {
        let message = format!("a list of unions must stand on an object, this is {}", describe(schema));
        return Err(Faults::of(FaultKind::NotAnObject, message));
    }
    check_count(union.fields.len())?;
    let mut faults = Faults::default();
    let discriminator = union.discriminator.as_deref();
    let mut by_value: BTreeMap<&str, &str> = BTreeMap::new();
    for (member, value) in &union.fields {
        if value.is_empty() {
            faults.add(FaultKind::EmptyValue, || {
                format!("the value of the member `{member}` is empty, which means no choice; give it a value")
            });
        } else if let Some(one) = by_value.insert(value, member) {
            faults.add(FaultKind::DuplicateValue, || {
                format!("the members `{one}` and `{member}` have the same value `{value}`; each needs its own")
            });
        }
    }
    let members: Vec<_> = union.fields.keys().cloned().collect();
    check_members(&members, discriminator, declared, object, &mut faults);
    if let Some(name) = discriminator
        && let Some(values) = check_discriminator(name, object, &mut faults)
    {
        let missing = union.fields.values().filter(|value| !values.contains(&***value));
        report_not_in_enum(name, missing, values, declared.source, &mut faults);
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let choices = by_value.into_iter().map(|(value, member)| choice(&members, value, Some((member, true)))).collect();
    Ok(Checked { form: Form::List, discriminator: union.discriminator.clone(), members, choices })
}

/// Checks a union of the 2022 form on the property `discriminator` of the object.
pub(super) fn map(
    union: &MapUnion,
    discriminator: &str,
    declared: &Declared,
    object: &mut PreparedObject<'_>,
) -> Result<Checked, Faults> {
    let mut members: Vec<_> = union.members.values().flatten().map(|member| member.name.clone()).collect();
    members.sort();
    // Several values may select the same field.
    members.dedup();
    check_count(members.len())?;
    let mut faults = Faults::default();
    check_members(&members, Some(discriminator), declared, object, &mut faults);
    if let Some(values) = check_discriminator(discriminator, object, &mut faults) {
        // A `UnionDeclaration` may name a value of a newer release. The API server refuses it in older ones.
        let may_lack = |member: &Option<_>| declared.source == Source::Declaration && member.is_none();
        let missing = union.members.iter().filter(|(value, member)| !values.contains(&***value) && !may_lack(member));
        let missing = missing.map(|(value, _)| value);
        report_not_in_enum(discriminator, missing, values, declared.source, &mut faults);
        for value in values.iter().filter(|value| !union.members.contains_key(**value)) {
            faults.add(FaultKind::MissingValue, || {
                format!(
                    "the enum of `{discriminator}` has `{value}`, which is not in `fieldMembers`; add it, as an empty \
                     member if it selects no field"
                )
            });
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let choices = union
        .members
        .iter()
        .map(|(value, member)| choice(&members, value, member.as_ref().map(|member| (&*member.name, member.optional))))
        .collect();
    Ok(Checked { form: Form::Map, discriminator: Some(discriminator.into()), members, choices })
}

/// Checks a union that an API server publishes for a built-in type. The generator uses the names of Go fields as values,
/// which are often wrong. Values are trusted only if an enum confirms them.
pub(super) fn published(checked: Checked, source: Source, schema: &Schema) -> Result<Checked, Faults> {
    match checked.discriminator_in(schema) {
        Some((name, discriminator)) if source == Source::Published && !discriminator.has_enum() => {
            let values = quoted(checked.choices.iter().map(|choice| &choice.value), usize::MAX);
            let message = format!(
                "the published values {values} are not used because `{name}` has no enum that confirms them; declare the union by a \
                 UnionDeclaration"
            );
            Err(Faults::of(FaultKind::UnconfirmedValues, message))
        }
        _ => Ok(checked),
    }
}

/// Checks that no other union of the object has one of the fields.
pub(super) fn free(checked: &Checked, roles: &BTreeMap<Box<str>, Role>) -> Result<(), Faults> {
    let fields = checked.members.iter().chain(&checked.discriminator);
    let mut taken = Faults::default();
    for name in fields.filter(|name| roles.contains_key(*name)) {
        taken.add_of_member(FaultKind::SharedField, name, || {
            format!(
                "the field `{name}` already belongs to another union of this object; a field can be in one union only"
            )
        });
    }
    if taken.is_empty() { Ok(()) } else { Err(taken) }
}

impl Checked {
    /// Assigns the fields to the union with this number in its object.
    pub(super) fn claim(&self, number: u8, roles: &mut BTreeMap<Box<str>, Role>) {
        for (index, member) in (0_u8..).zip(&self.members) {
            roles.insert(member.clone(), Role::Member { union: number, index });
        }
        if let Some(name) = &self.discriminator {
            roles.insert(name.clone(), Role::Discriminator { union: number });
        }
    }

    /// Returns the name and the schema of the discriminator.
    pub(super) fn discriminator_in<'s>(&'s self, schema: &'s Schema) -> Option<(&'s str, &'s Schema)> {
        let (name, schema) = schema.properties.get_key_value(self.discriminator.as_ref()?)?;
        Some((name, schema))
    }

    pub(super) fn into_union(self, path: String, declared: &Declared) -> Union {
        let Declared { options, .. } = declared;
        let members = (0_u8..).zip(&self.members);
        let members: Box<[_]> = members
            .map(|(index, name)| Member::new(index, name, &self.choices, options.is_unset_if_empty(name)))
            .collect();
        let names = || members.iter().map(|member| Arc::clone(&member.name)).collect();
        let values = self.choices.iter().map(|choice| &choice.value).filter(|value| !value.is_empty());
        Union {
            path: path.into(),
            form: self.form,
            source: declared.source,
            origin: declared.origin.clone(),
            repeated_by: declared.repeated_by.clone().into(),
            actions: declared.actions,
            normalization: declared.normalization,
            required: options.required.then(names),
            discriminator: self.discriminator.map(Into::into),
            members,
            supported: values.cloned().collect(),
            choices: self.choices.into(),
        }
    }
}

fn check_count(members: usize) -> Result<(), Faults> {
    if members <= MemberSet::CAPACITY {
        return Ok(());
    }
    let message = format!("{members} members are declared; a union can have at most 128");
    Err(Faults::of(FaultKind::TooManyMembers, message))
}

/// Checks the members. The author of a `UnionDeclaration` cannot change the schema, and gets other advice.
fn check_members(
    members: &[Box<str>],
    discriminator: Option<&str>,
    declared: &Declared,
    object: &PreparedObject<'_>,
    faults: &mut Faults,
) {
    let of_declaration = declared.source == Source::Declaration;
    if members.is_empty() {
        faults.add(FaultKind::NoMembers, || NO_MEMBERS.to_owned());
    }
    for member in members {
        if Some(&**member) == discriminator {
            faults.add(FaultKind::DiscriminatorAsMember, || {
                format!("the discriminator `{member}` can't be a member of its own union")
            });
            continue;
        }
        let Some(property) = object.schema.properties.get(member) else {
            faults.add_of_member(FaultKind::UnknownMember, member, || {
                format!("the member `{member}` is not a property of this object; declare it or correct the name")
            });
            continue;
        };
        if object.required.contains(&**member) {
            let [by, from] = if of_declaration { [" by the schema", "this union"] } else { ["", "`required`"] };
            faults.add_of_member(FaultKind::RequiredMember, member, || {
                format!("the member `{member}` is required{by}, so it can never be cleared; take it out of {from}")
            });
        }
        // A default that counts as not set may come back.
        let is_unset = matches!(property.default, DefaultValue::Zero(_)) && declared.options.is_unset_if_empty(member);
        if property.default != DefaultValue::Absent && !is_unset {
            let remedy = if of_declaration { "take it out of this union" } else { "remove the default" };
            faults.add_of_member(FaultKind::DefaultedMember, member, || {
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
    object: &'o mut PreparedObject<'s>,
    faults: &mut Faults,
) -> Option<&'o BTreeSet<&'s str>> {
    let Some((name, discriminator)) = object.schema.properties.get_key_value(name) else {
        faults.add(FaultKind::UnknownDiscriminator, || {
            format!("the discriminator `{name}` is not a property of this object; declare it or correct the name")
        });
        return None;
    };
    if discriminator.type_name.as_deref() != Some("string") {
        faults.add(FaultKind::DiscriminatorType, || {
            format!("the discriminator `{name}` must be of type string, it is {}", describe(discriminator))
        });
        return None;
    }
    object.values(name, discriminator)
}

/// Reports each declared value that the enum of the discriminator lacks.
fn report_not_in_enum<'f>(
    discriminator: &str,
    missing: impl Iterator<Item = &'f Box<str>>,
    values: &BTreeSet<&str>,
    source: Source,
    faults: &mut Faults,
) {
    let remedy = if source == Source::Declaration { "correct it or remove it" } else { "add it there or correct it" };
    for (position, value) in missing.enumerate() {
        faults.add(FaultKind::UnknownValue, || {
            let near = (position < MOST_GUESSED).then(|| nearest(value, values.iter().copied())).flatten();
            format!("the value `{value}` is not in the enum of `{discriminator}`{}; {remedy}", guess(near))
        });
    }
}

/// Returns the choice of a value. `selects` has the name of the member, and true if it is optional. `members` is sorted and
/// contains the member.
fn choice(members: &[Box<str>], value: &str, selects: Option<(&str, bool)>) -> Choice {
    let selected = selects.and_then(|(name, optional)| {
        let found = members.binary_search_by(|member| (**member).cmp(name)).ok()?;
        Some(Selected { index: u8::try_from(found).ok()?, name: name.into(), optional })
    });
    Choice { value: value.into(), selected }
}

fn describe(schema: &Schema) -> String {
    schema.type_name.as_deref().map_or_else(|| "of no declared type".to_owned(), |name| format!("of type {name}"))
}
