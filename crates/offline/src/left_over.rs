//! Finds variables and templates that a tool was to replace, where they are a choice of a union. Such a union cannot be judged.

use crate::each_at;
use crate::invalid_union::{InvalidUnion, UnionAddress};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::union::{Part, Union, Violation};
use kube_unions_manifests::{left_over, left_over_whole};
use serde_json::Value;

/// A variable or a template in place of the value of a discriminator, of a member, or of an object on the way to a union. The union cannot be
/// judged.
#[derive(Debug)]
pub struct LeftOver<'c> {
    /// Its field.
    pub path: FieldPath,
    /// The advice of [`left_over`].
    pub advice: &'static str,
    /// True for a member, which matters only if the union is invalid with it.
    pub is_member: bool,
    union: &'c Union,
    address: UnionAddress,
}

impl<'c> LeftOver<'c> {
    /// Returns those of an object, in the order of its unions.
    pub fn all(entry: &'c CatalogEntry, object: &Value) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for place in entry.plan().places(Part::Main) {
            each_at(&place.steps, object, &FieldPath::root(), &mut |path, value| {
                for union in place.unions {
                    for (name, is_member, advice) in of_union(union, value) {
                        let mut field = path.clone();
                        if let Some(name) = name {
                            field.push(Segment::Field(name.into()));
                        }
                        let address = UnionAddress::of(path.segments(), &place.steps, object);
                        found.push(Self { path: field, advice, is_member, union, address });
                    }
                }
            });
        }
        // Several unions may be of one object.
        found.dedup_by(|one, other| one.path == other.path && one.union.discriminator() == other.union.discriminator());
        found
    }

    /// Returns those that keep a union from being judged. A member does so only if its union is among the invalid ones.
    pub fn deciding(mut all: Vec<Self>, invalid: &[InvalidUnion<'_>]) -> Vec<Self> {
        all.retain(|it| !it.is_member || invalid.iter().any(|other| it.is_of(other.union, &other.address)));
        all
    }

    /// Returns true if it is a choice of this union.
    pub fn is_of(&self, union: &Union, address: &UnionAddress) -> bool {
        std::ptr::eq(self.union, union) && self.address == *address
    }

    /// Returns the path of the union's object.
    pub fn tokens(&self, object: &Value) -> Vec<String> {
        self.address.tokens(object)
    }
}

/// The unions of an object that cannot be judged.
#[derive(Debug)]
pub struct UndecidedUnions<'c> {
    entry: &'c CatalogEntry,
    object: Value,
    /// The reasons, in the order of the unions.
    pub left_over: Vec<LeftOver<'c>>,
}

impl<'c> UndecidedUnions<'c> {
    /// Returns those of an object, as JSON text with defaults, that has these violations.
    pub fn of<'v>(entry: &'c CatalogEntry, text: &str, violations: impl Iterator<Item = &'v Violation>) -> Self {
        let may_have = ["${", "{{"].iter().any(|start| text.contains(start));
        let object = if may_have { serde_json::from_str(text).unwrap_or_default() } else { Value::Null };
        let all = LeftOver::all(entry, &object);
        let invalid = |violation| InvalidUnion::of(entry, violation, &object);
        let invalid: Vec<_> = if all.is_empty() { Vec::new() } else { violations.filter_map(invalid).collect() };
        Self { left_over: LeftOver::deciding(all, &invalid), entry, object }
    }

    /// Returns true for a violation of one of them.
    pub fn has(&self, violation: &Violation) -> bool {
        let invalid = || InvalidUnion::of(self.entry, violation, &self.object);
        !self.left_over.is_empty()
            && invalid().is_some_and(|it| self.left_over.iter().any(|left| left.is_of(it.union, &it.address)))
    }

    /// Returns true for a field in the object of one of them.
    pub fn has_path(&self, path: &FieldPath) -> bool {
        !self.left_over.is_empty() && self.has_field(&path.segments().iter().map(Segment::to_token).collect::<Vec<_>>())
    }

    /// Returns true for the path of a field in the object of one of them.
    pub fn has_field(&self, path: &[String]) -> bool {
        self.left_over.iter().any(|it| path.starts_with(&it.tokens(&self.object)))
    }
}

/// Returns the fields of a union that are left over, true for members, and the advice. `None`: the value in place of its object.
fn of_union<'u>(union: &'u Union, value: &Value) -> Vec<(Option<&'u str>, bool, &'static str)> {
    if let Some(text) = value.as_str() {
        return left_over_whole(text).map(|advice| (None, false, advice)).into_iter().collect();
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let discriminator = union.discriminator().and_then(|name| Some((Some(name), false, left_over(text(name)?)?)));
    // A member may be a text that has such a part and means it.
    let members = union.members().filter_map(|name| Some((Some(name), true, left_over_whole(text(name)?)?)));
    discriminator.into_iter().chain(members).collect()
}
