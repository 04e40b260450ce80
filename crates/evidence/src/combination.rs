//! Combinations of a discriminator value and members, and those that a table has.

use crate::answer::UnionFields;
use crate::limits::{MOST_COMBINATIONS, MOST_FREE_MEMBERS, MOST_PAIRED_MEMBERS};
use crate::node::SchemaNode;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Values for a discriminator without an `enum`. The first that the union does not name stands for all that it does not name.
const OTHER_VALUES: [&str; 2] = ["Other", "other"];

/// A value of the discriminator and a set of members.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Combination {
    /// The value of the discriminator. `None` if it is not set, or the union has none.
    pub value: Option<String>,
    /// The members that are set.
    pub members: BTreeSet<String>,
    /// The fields of the union that are there, with a value that counts as not set.
    pub unset: BTreeMap<String, UnsetValue>,
}

/// A value that counts as not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnsetValue {
    Null,
    /// `false`, `0`, `""`, `{}` or `[]` of a member that counts as not set then.
    Empty,
}

impl UnsetValue {
    /// Returns the value for a field with this schema.
    pub fn of(self, field: Option<&Value>) -> Value {
        match (self, field.map(SchemaNode).and_then(SchemaNode::type_name)) {
            (Self::Null, _) => Value::Null,
            (Self::Empty, Some("boolean")) => json!(false),
            (Self::Empty, Some("integer" | "number")) => json!(0),
            (Self::Empty, Some("string")) => json!(""),
            (Self::Empty, Some("array")) => json!([]),
            (Self::Empty, Some("object")) => json!({}),
            (Self::Empty, _) if field.is_some_and(|it| SchemaNode(it).flag("x-kubernetes-int-or-string")) => json!(""),
            (Self::Empty, _) => json!({}),
        }
    }
}

impl UnionFields {
    /// Returns the combinations, smallest first, and true if none was left out.
    pub(crate) fn combinations(&self) -> (Vec<Combination>, bool) {
        let mut all = BTreeSet::new();
        let values: Vec<Option<&String>> = match &self.discriminator {
            Some(_) => [None].into_iter().chain(self.values.iter().map(Some)).collect(),
            None => vec![None],
        };
        let pairs_of_all = self.discriminator.is_none() || self.members.len() <= MOST_PAIRED_MEMBERS;
        for value in values {
            let mut add = |members: &[&String]| {
                let members = members.iter().map(|&member| member.clone()).collect();
                all.insert(Combination { value: value.cloned(), members, unset: BTreeMap::new() });
            };
            if self.members.len() <= MOST_FREE_MEMBERS {
                for subset in subsets(&self.members) {
                    add(&subset);
                }
                continue;
            }
            add(&[]);
            add(&self.members.iter().collect::<Vec<_>>());
            for (position, one) in self.members.iter().enumerate() {
                add(&[one]);
                if pairs_of_all {
                    self.members.iter().skip(position.saturating_add(1)).for_each(|other| add(&[one, other]));
                }
            }
        }
        let mut all: Vec<Combination> = all.into_iter().collect();
        all.sort_by_key(|it| it.members.len());
        let complete = pairs_of_all && all.len() <= MOST_COMBINATIONS;
        all.truncate(MOST_COMBINATIONS);
        (all, complete)
    }

    /// Returns the same fields with the values that the schema accepts and the union does not name.
    pub(crate) fn with_other_values<'s>(
        &self,
        node: SchemaNode<'s>,
        accepts: &mut impl FnMut(SchemaNode<'s>, &Value) -> bool,
    ) -> Self {
        let mut union = self.clone();
        let field = self.discriminator.as_ref().and_then(|name| node.property(name));
        let Some(field) = field.filter(|field| field.type_name() == Some("string")) else { return union };
        let mut is_other = |value: &String| !self.values.contains(value) && accepts(field, &json!(value));
        if field.values().is_some() {
            union.values.extend(field.discriminator_values().into_iter().filter(is_other));
        } else {
            union.values.extend(Some(String::new()).filter(&mut is_other));
            union.values.extend(OTHER_VALUES.map(str::to_owned).into_iter().find(is_other));
        }
        union
    }

    /// Returns the combinations with fields that are there and not set, as far as the schema accepts them: every set of them, or, if these
    /// were too many, each alone and all together.
    pub(crate) fn with_unset<'s>(
        &self,
        node: SchemaNode<'s>,
        accepts: &mut impl FnMut(SchemaNode<'s>, &Value) -> bool,
        plain: Vec<Combination>,
    ) -> Vec<Combination> {
        let mut unset_values: Vec<(&String, UnsetValue)> = Vec::new();
        for name in self.members.iter().chain(&self.discriminator) {
            let field = node.property(name);
            let mut keeps = |unset: UnsetValue| {
                field.is_some_and(|it| it.default().is_none() && accepts(it, &unset.of(Some(it.0))))
            };
            let is_null = keeps(UnsetValue::Null);
            let is_empty = self.empty_is_unset.contains(name) && keeps(UnsetValue::Empty);
            unset_values.extend(is_null.then_some((name, UnsetValue::Null)));
            unset_values.extend(is_empty.then_some((name, UnsetValue::Empty)));
        }
        if unset_values.is_empty() {
            return plain;
        }
        let bits = u32::try_from(unset_values.len()).unwrap_or(u32::MAX);
        let is_every = 1_usize.checked_shl(bits).and_then(|sets| sets.checked_mul(plain.len()));
        let is_every = is_every.is_some_and(|all| all <= MOST_COMBINATIONS);
        let mut all = BTreeSet::new();
        for combination in plain {
            let is_free = |(name, _): &&(&String, UnsetValue)| {
                let is_set = Some(*name) == self.discriminator.as_ref() && combination.value.is_some();
                !is_set && !combination.members.contains(*name)
            };
            let free: Vec<&(&String, UnsetValue)> = unset_values.iter().filter(is_free).collect();
            let sets = if is_every {
                subsets(&free)
            } else {
                free.iter().map(|one| vec![one]).chain([Vec::new(), free.iter().collect()]).collect()
            };
            for set in sets {
                // A field has one value.
                let unset = set.into_iter().map(|(name, unset)| ((*name).clone(), *unset)).collect();
                all.insert(Combination { unset, ..combination.clone() });
            }
        }
        let mut all: Vec<Combination> = all.into_iter().collect();
        all.sort_by_key(|it| it.members.len());
        all
    }
}

/// Returns every subset, in the order of counting.
fn subsets<T>(all: &[T]) -> Vec<Vec<&T>> {
    let mut subsets = vec![Vec::new()];
    for one in all {
        let with_one: Vec<Vec<&T>> =
            subsets.iter().map(|subset| subset.iter().copied().chain([one]).collect()).collect();
        subsets.extend(with_one);
    }
    subsets
}
