//! A union that is invalid in an object, and its place there and in other objects.

use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::Segment;
use kube_unions_core::union::{
    Part, SelectedMember, Union, UnionPlace, UnionStep, Violation, ViolationKind, is_empty_value,
};
use serde_json::{Map, Value};

/// A union that is invalid in an object.
#[derive(Debug)]
pub struct InvalidUnion<'c> {
    pub union: &'c Union,
    /// The steps to the union's object.
    pub steps: Vec<UnionStep<'c>>,
    pub address: UnionAddress,
    pub violation: Violation,
    /// The members that the object has.
    pub present: Vec<&'c str>,
    /// Those of them that are set: an empty one may count as not set.
    pub members: Vec<&'c str>,
    /// The value of the discriminator.
    pub value: Option<String>,
}

/// The way to a union's object. It leads to the same object of another state, where lists may have other items.
#[derive(Debug, Clone, PartialEq)]
pub struct UnionAddress(Vec<AddressStep>);

#[derive(Debug, Clone, PartialEq)]
enum AddressStep {
    /// A field, or a value of a map.
    Name(String),
    /// The item of a list with these keys. A missing key is null.
    Keys(Map<String, Value>),
    /// An item of a list without keys.
    Position(usize),
}

impl<'c> InvalidUnion<'c> {
    /// Returns the union of a violation in an object of a kind: the path of the violation is that of the union's object, or of a field in it.
    pub fn of(entry: &'c CatalogEntry, violation: &Violation, object: &Value) -> Option<Self> {
        let path = violation.path.segments();
        let union_of = |place: UnionPlace<'c>| {
            let own = path.get(place.steps.len()).map(Segment::to_token);
            let field = own.or_else(|| member_of(&violation.kind).map(str::to_owned));
            let is_of = |union: &&Union| {
                let mut fields = union.discriminator().into_iter().chain(union.members());
                field.as_deref().is_none_or(|field| fields.any(|it| it == field))
            };
            Some((place.unions.iter().find(is_of)?, place.steps))
        };
        let mut places = entry.plan().places(Part::Main).into_iter().filter(|place| leads_to(&place.steps, path));
        let (union, steps) = places.find_map(union_of)?;
        let address = UnionAddress::of(path, &steps, object);
        let found = address.find(object);
        let value = union.discriminator().and_then(|name| found?.get(name));
        let present: Vec<&str> = union.members().filter(|name| sets(found, name)).collect();
        let is_unset = |name: &str| {
            union.empty_is_unset().any(|it| it == name) && found.and_then(|it| it.get(name)).is_some_and(is_empty_value)
        };
        Some(Self {
            members: present.iter().copied().filter(|name| !is_unset(name)).collect(),
            present,
            value: value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            violation: violation.clone(),
            address,
            steps,
            union,
        })
    }

    /// Returns true if both are one union, of one object or of two states of it. An object can have several unions.
    pub fn is_same(&self, other: &InvalidUnion<'_>) -> bool {
        std::ptr::eq(self.union, other.union) && self.address == other.address
    }

    /// Returns true if several members are set, and nothing tells which one counts.
    pub fn is_too_many(&self) -> bool {
        matches!(self.violation.kind, ViolationKind::TooMany { .. })
    }

    /// Returns true if the union has a member too many, or one that does not fit.
    pub fn has_too_many(&self) -> bool {
        match self.violation.kind {
            ViolationKind::TooMany { .. }
            | ViolationKind::NotSelected { .. }
            | ViolationKind::SeveralApplied { .. }
            | ViolationKind::NotSelectedApplied { .. }
            | ViolationKind::Contested { .. } => true,
            ViolationKind::OneRequired { .. }
            | ViolationKind::UnknownValue { .. }
            | ViolationKind::DiscriminatorRequired { .. }
            | ViolationKind::ChoiceRequired { .. }
            | ViolationKind::MemberRequired { .. } => false,
        }
    }

    /// Returns true if the union has no member, or no value of its discriminator, although it must.
    pub fn lacks_choice(&self) -> bool {
        matches!(
            self.violation.kind,
            ViolationKind::OneRequired { .. }
                | ViolationKind::ChoiceRequired { .. }
                | ViolationKind::DiscriminatorRequired { .. }
        )
    }

    /// Returns true if the discriminator selects a member that must be set and is not.
    pub fn lacks_selected(&self) -> bool {
        let is_lacking =
            |member: &SelectedMember| !member.is_optional() && !self.members.iter().any(|set| *set == member.name());
        let mut choices = self.union.choices().iter();
        let chosen = choices.find(|choice| self.value.as_deref() == Some(choice.value()));
        chosen.is_some_and(|chosen| chosen.members().iter().any(is_lacking))
    }

    /// Returns true if the violation may be due to a member. A member that the discriminator does not select is blamed alone.
    pub fn blames(&self, member: &str) -> bool {
        !matches!(self.violation.kind, ViolationKind::NotSelected { .. })
            || self.blamed().is_none_or(|blamed| blamed == member)
    }

    /// Returns the field of the union that the violation is about. `None`: its object.
    pub fn blamed(&self) -> Option<String> {
        self.violation.path.segments().get(self.steps.len()).map(Segment::to_token)
    }
}

/// Returns a member of the union of a violation whose path is the object. An object can have several unions.
fn member_of(kind: &ViolationKind) -> Option<&str> {
    match kind {
        ViolationKind::OneRequired { members }
        | ViolationKind::TooMany { set: members }
        | ViolationKind::SeveralApplied { members }
        | ViolationKind::NotSelectedApplied { members, .. } => members.first().map(|member| &**member),
        ViolationKind::Contested { member, .. } => Some(member),
        ViolationKind::UnknownValue { .. }
        | ViolationKind::DiscriminatorRequired { .. }
        | ViolationKind::ChoiceRequired { .. }
        | ViolationKind::MemberRequired { .. }
        | ViolationKind::NotSelected { .. } => None,
    }
}

/// Returns true if an object has a field.
pub fn sets(object: Option<&Value>, name: &str) -> bool {
    object.and_then(|object| object.get(name)).is_some_and(|value| !value.is_null())
}

fn leads_to(steps: &[UnionStep<'_>], path: &[Segment]) -> bool {
    let fits = |(step, segment): (&UnionStep<'_>, &Segment)| match (step, segment) {
        (UnionStep::Field(name), Segment::Field(field)) => *name == &**field,
        (UnionStep::Items { .. }, Segment::Index(_)) | (UnionStep::Values, Segment::Key(_)) => true,
        _ => false,
    };
    (steps.len() == path.len() || steps.len() + 1 == path.len()) && steps.iter().zip(path).all(fits)
}

impl UnionAddress {
    /// Returns the way along a path in an object, with the keys that the steps name.
    pub fn of(path: &[Segment], steps: &[UnionStep<'_>], object: &Value) -> Self {
        let mut at = Some(object);
        let step = |(segment, step): (&Segment, &UnionStep<'_>)| {
            let next = match segment {
                Segment::Field(name) | Segment::Key(name) => at.and_then(|value| value.get(&**name)),
                Segment::Index(index) => at.and_then(|value| value.get(*index)),
            };
            at = next;
            match (step, segment) {
                (UnionStep::Items { keys }, _) if !keys.is_empty() => {
                    let value = |name: &str| next.and_then(|item| item.get(name)).cloned().unwrap_or_default();
                    AddressStep::Keys(keys.iter().map(|key| (key.name.to_owned(), value(key.name))).collect())
                }
                (_, Segment::Index(index)) => AddressStep::Position(*index),
                (_, Segment::Field(name) | Segment::Key(name)) => AddressStep::Name(name.to_string()),
            }
        };
        Self(path.iter().zip(steps).map(step).collect())
    }

    /// Returns the union's object.
    pub fn find<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, step| Some(step.child(value)?.1))
    }

    /// Returns the path of the union's object in an object, as far as the object has it.
    pub fn tokens(&self, object: &Value) -> Vec<String> {
        let mut at = object;
        let next = |step: &AddressStep| {
            let (token, value) = step.child(at)?;
            at = value;
            Some(token)
        };
        self.0.iter().map_while(next).collect()
    }

    /// Returns the union's object in a manifest, and makes what the manifest lacks of it. `completed` is the manifest with defaults.
    /// `None`: the manifest has another value there, or the item of a list without keys is missing.
    pub fn make<'v>(&self, manifest: &'v mut Value, completed: &Value) -> Option<&'v mut Map<String, Value>> {
        let (mut at, mut twin) = (manifest, Some(completed));
        for step in &self.0 {
            let position = twin.and_then(|twin| step.position(twin));
            twin = twin.and_then(|twin| Some(step.child(twin)?.1));
            at = match step {
                AddressStep::Name(name) => fields(at)?.entry(name).or_insert(Value::Null),
                AddressStep::Position(_) => at.get_mut(position?)?,
                AddressStep::Keys(keys) => {
                    if at.is_null() {
                        *at = Value::Array(Vec::new());
                    }
                    let items = at.as_array_mut()?;
                    if position.is_none() {
                        let given = keys.iter().filter(|(_, value)| !value.is_null());
                        items.push(given.map(|(name, value)| (name.clone(), value.clone())).collect());
                    }
                    let last = items.len().checked_sub(1)?;
                    items.get_mut(position.unwrap_or(last))?
                }
            };
        }
        fields(at)
    }
}

impl AddressStep {
    /// Returns the position of the item in a list.
    fn position(&self, list: &Value) -> Option<usize> {
        let has = |item: &Value, (name, value): (&String, &Value)| item.get(name).unwrap_or(&Value::Null) == value;
        match self {
            Self::Name(_) => None,
            Self::Position(position) => Some(*position),
            Self::Keys(keys) => list.as_array()?.iter().position(|item| keys.iter().all(|key| has(item, key))),
        }
    }

    fn child<'v>(&self, value: &'v Value) -> Option<(String, &'v Value)> {
        match self {
            Self::Name(name) => Some((name.clone(), value.get(name)?)),
            Self::Keys(_) | Self::Position(_) => {
                let position = self.position(value)?;
                Some((position.to_string(), value.get(position)?))
            }
        }
    }
}

/// Returns the fields of a value. A null becomes an object.
fn fields(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}
