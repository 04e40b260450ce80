//! The rows of the places of a union, as expressions.

use crate::cel;
use crate::group::{PlaceGroup, Step};
use crate::manifests;
use crate::members::Members;
use crate::root::{Purpose, Root};
use crate::value::UserValue;
use crate::variables::Variables;
use crate::walk::{FieldRef, RowWalk};
use kube_unions_core::union::Part;

/// The facts about a policy that decide how its objects are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PolicyFacts {
    pub(crate) purpose: Purpose,
    pub(crate) part: Part,
    /// True if a CRD defines the kind, so that the API server refuses list items with the same keys.
    pub(crate) custom: bool,
    /// The API server knows `flatten`. Where it does not, nothing is in lists and maps.
    pub(crate) list_functions: bool,
    /// True if the policy has several unions, so that the names of variables have to tell them apart.
    pub(crate) several: bool,
}

/// The rows of objects in which there are several groups of unions.
#[derive(Debug)]
pub(crate) struct ParentRows<'p> {
    /// The path to them.
    pub(crate) steps: Vec<Step<'p>>,
    /// Their variable: a list of two lists.
    all: String,
    /// The name of one of them.
    item: String,
}

/// The objects that rows are about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side<'l> {
    /// `is_map`: the rows are a map by key, otherwise a list.
    Old { is_map: bool },
    /// `lookup`: the variable of the old rows, if they are a map by key.
    New { lookup: Option<&'l str> },
}

/// Builds the expressions about the objects of a union.
pub(crate) struct ObjectsBuilder<'b, 'p> {
    pub(crate) group: &'b PlaceGroup<'p>,
    pub(crate) members: Members<'p>,
    pub(crate) root: &'b Root<'p>,
    pub(crate) facts: PolicyFacts,
    /// Begins the names of variables.
    pub(crate) prefix: String,
}

impl<'p> ObjectsBuilder<'_, 'p> {
    pub(crate) fn discriminator(&self) -> &str {
        self.members.union.discriminator().unwrap_or_default()
    }

    pub(crate) fn value(&self, object: &UserValue) -> String {
        self.members.value_in(object, self.group.typed, self.is_before_schema())
    }

    /// Returns true if nulls of members matter beside a member without an owner.
    pub(crate) fn sees_nulls(&self) -> bool {
        self.is_before_schema() && self.members.ownerless().is_some()
    }

    /// Returns true if a server-side apply can have written a null that the schema refuses only after the mutation.
    fn is_before_schema(&self) -> bool {
        self.facts.custom && self.facts.purpose == Purpose::Mutation
    }

    /// Returns the condition of an object of a type that nobody knows: it can be judged by its discriminator.
    pub(crate) fn is_judged(&self, object: &UserValue) -> String {
        let is_map = format!("type({}) == map", object.text());
        if self.discriminator().is_empty() {
            return is_map;
        }
        let value = object.find(self.discriminator()).or("null");
        let kind = if self.members.union.is_boolean() { "bool" } else { "string" };
        format!("{is_map} && [{}].all(v, v == null || type(v) == {kind})", value.text())
    }

    /// Returns the path from the root.
    pub(crate) fn walk(&self, object: &UserValue) -> RowWalk<'p> {
        let mut walk = RowWalk::new(self.root, object, self.facts.purpose);
        walk.owned_at = self.group.owned_at;
        walk
    }

    /// Returns the fields of the union as field sets name them, if what is around it is owned as a whole.
    pub(crate) fn owned_fields(&self) -> Option<String> {
        self.group.owned_at?;
        let union = self.members.union;
        let names = union.discriminator().into_iter().chain(union.members()).map(|name| format!("f:{name}"));
        Some(cel::texts(names.collect::<Vec<_>>().iter().map(String::as_str)))
    }

    /// Returns the field of a row with the value of the discriminator.
    pub(crate) fn value_field(&self) -> String {
        let name = self.discriminator();
        let is_free = cel::is_name(name) && !["at", "claims", "key", "nonNull", "old", "path", "set"].contains(&name);
        if is_free { name } else { "value" }.to_owned()
    }

    pub(crate) fn path_field(&self) -> &'static str {
        match self.facts.purpose {
            Purpose::Mutation => "path",
            Purpose::Validation => "at",
        }
    }

    /// Returns the rows of the places at the end of a path now and before: a list of two lists. `parents`: the rows of the objects around them.
    pub(crate) fn rows_of_both(&self, steps: &[Step<'p>], tag: &str, parents: Option<&ParentRows<'p>>) -> String {
        let Root { both, word, .. } = self.root;
        let (walk, steps) = match parents {
            None => (self.walk(&UserValue::new(*word)), steps),
            Some(parents) => {
                let rest = steps.get(parents.steps.len()..).unwrap_or_default();
                (RowWalk::below(self.root, &parents.item, self.facts.purpose), rest)
            }
        };
        let rows = self.rows_of(walk, steps, tag, Side::New { lookup: None }).replace('\n', "\n  ");
        match parents {
            None => format!("{both}.map({word},\n  {rows})"),
            Some(ParentRows { all, item, .. }) => format!("{all}.map(rows, rows.map({item},\n  {rows}).flatten())"),
        }
    }

    /// Adds the variable of the rows of the objects at the end of a path, now and before, from which other paths go on.
    pub(crate) fn parents(&self, steps: &[Step<'p>], variables: &mut Variables) -> ParentRows<'p> {
        let Root { both, word, .. } = self.root;
        let mut walk = RowWalk::new(self.root, &UserValue::new(*word), self.facts.purpose);
        let (code, depth, _) = walk.descend(steps, false, true);
        let row = walk.row(&"  ".repeat(depth));
        let flatten = if depth > 1 { ".flatten()" } else { "" };
        let rows = format!("{both}.map({word},\n  {code}{row}{}{flatten})", ")".repeat(depth));
        let name = steps.iter().rev().find_map(Step::word).unwrap_or_default();
        let item = walk.object.text().to_owned();
        let all = variables.add(&name, &rows, &format!("those of each {word}, with what manifests set in them"));
        ParentRows { steps: steps.to_vec(), all, item }
    }

    /// Returns the rows of the places at the end of a path. `tag` begins their keys.
    pub(crate) fn rows_of(&self, mut walk: RowWalk<'p>, steps: &[Step<'p>], tag: &str, side: Side<'_>) -> String {
        let typed = self.group.typed;
        walk.begin.splice(..0, (!tag.is_empty()).then(|| tag.to_owned()));
        let is_map = matches!(side, Side::Old { is_map: true });
        let (mut code, depth, has_entries) = walk.descend(steps, is_map, typed);
        let object = walk.object();
        let claimed = walk.steps_claimed();
        if !typed {
            code.extend([format!("{}, ", self.is_judged(&object.or("null")))]);
        } else if !walk.fields.is_empty() {
            let is_there = match &walk.fields[..] {
                [FieldRef::AnyOf(..)] if self.group.nullable => format!("{} && {} != null", walk.has(), object.text()),
                _ if self.group.nullable => object.is_not_null(),
                _ => walk.has(),
            };
            let end = if depth == 0 { " ? [" } else { ", " };
            code.extend([format!("{is_there}{end}")]);
        }
        let mut fields: Vec<String> = Vec::new();
        let key = walk.key();
        if let Side::New { .. } = side {
            fields.push(format!("\"{}\": dyn({})", self.path_field(), walk.path()));
        }
        if matches!(side, Side::New { lookup: None } | Side::Old { is_map: false }) {
            fields.push(format!("\"key\": dyn({key})"));
        }
        if !self.discriminator().is_empty() {
            fields.push(format!("\"{}\": dyn({})", self.value_field(), self.value(&object)));
        }
        fields.push(format!("\"set\": dyn({})", self.members.set_in(&object)));
        if let Side::New { lookup } = side {
            if self.sees_nulls() {
                fields.push(format!("\"nonNull\": dyn({})", self.members.non_null_in(&object)));
            }
            if let Some(old) = lookup {
                fields.push(format!("\"old\": dyn({old}[?{key}].orValue({{}}))"));
            }
            if self.group.has_identity() {
                fields.push(format!(
                    "\"claims\": dyn({})",
                    manifests::at(&walk.manifests, &claimed, self.owned_fields().as_deref(), false)
                ));
            }
        }
        let indent = "  ".repeat(depth.max(1));
        let outer = indent.get(2..).unwrap_or_default();
        let row = format!("{{\n{indent}{}\n{outer}}}", fields.join(&format!(",\n{indent}")));
        if depth == 0 {
            return format!("({code}{row}] : [])");
        }
        code.extend([if has_entries { format!("{{{key}: {row}}})") } else { format!("{row})") }]);
        code.push_str(&")".repeat(depth.saturating_sub(1)));
        match depth {
            0 | 1 => code,
            2 => code + ".flatten()",
            depth => format!("{code}.flatten({})", depth.saturating_sub(1)),
        }
    }
}
