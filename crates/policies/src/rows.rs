//! The rows of the places of a union, as expressions.

use crate::cel;
use crate::comprehension::row_of;
use crate::group::{PlaceGroup, Step};
use crate::manifests;
use crate::members::Members;
use crate::root::{Purpose, Root};
use crate::value::UserValue;
use crate::variables::{Variables, camel};
use crate::walk::RowWalk;
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

/// The rows of one side of a write, by how a row finds its old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side<'l> {
    /// Now and before, a list of two lists.
    Both,
    /// Before, a list.
    OldList,
    /// Before, a map by key.
    OldMap,
    /// Now. With a map of old rows, each has its own.
    Now(Option<&'l str>),
}

impl Side<'_> {
    /// Returns the word that begins the names of its variables.
    pub(crate) fn word(self) -> &'static str {
        if matches!(self, Self::OldList | Self::OldMap) { "old" } else { "" }
    }
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

    /// Returns the walk from a root. `tag` tells the objects at the end of several paths apart.
    pub(crate) fn walk(&self, root: &UserValue, tag: Option<String>) -> RowWalk<'p> {
        let mut walk = RowWalk::new(self.root, root, tag, self.facts.purpose);
        (walk.typed, walk.owned_at) = (self.group.typed, self.group.owned_at);
        walk
    }

    /// Returns the single object at the end of fields. One of a type that nobody knows has a variable, whose name has these words.
    pub(crate) fn at(&self, names: &[&str], root: &UserValue, words: &[&str], variables: &mut Variables) -> UserValue {
        if self.group.typed {
            return root.follow(names);
        }
        let found = format!("{}.filter(o, {})", root.guarded(names), self.is_judged(&UserValue::new("o")));
        let comment = "the object, in a list of at most one: the schema does not say what stands there";
        UserValue::optional(format!("{}[?0]", variables.add(&camel(words), &found, comment)))
    }

    /// Returns the fields that manifests set in an object, which is at the end of a walk. `nested`: a list of lists.
    pub(crate) fn claims(&self, walk: &RowWalk<'p>, object: &UserValue, nested: bool) -> String {
        if self.group.owned_at.is_none() {
            return manifests::of_fields(&walk.manifests, &walk.field_set(), nested);
        }
        let named = self.members.union.discriminator().map(|name| (name, object.find(name).is_there()));
        let named = named.as_ref().map(|(name, is_there)| (*name, &**is_there));
        manifests::of_whole(&walk.manifests, &walk.field_set(), named, nested)
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

    /// Returns the rows of the places at the end of a path, now and before. `outer`: the beginning of the path to objects from which other
    /// paths go on, which have a variable.
    pub(crate) fn rows_of_both(
        &self,
        steps: &[Step<'p>],
        outer: Option<&[Step<'p>]>,
        tag: Option<String>,
        variables: &mut Variables,
    ) -> String {
        let Root { both, word, .. } = self.root;
        let root = UserValue::new(*word);
        let Some(outer) = outer else {
            let rows = self.rows_of(self.walk(&root, tag), steps, Side::Both).replace('\n', "\n  ");
            return format!("{both}.map({word},\n  {rows})");
        };
        let mut walk = self.walk(&root, None);
        let parents = walk.descend(outer, false);
        let parents = format!("{both}.map({word},\n  {})", parents.of(&walk.row(parents.calls.len())));
        let name = outer.iter().rev().find_map(Step::word).unwrap_or_default();
        let parents = variables.add(&name, &parents, &format!("those of each {word}, with what manifests set in them"));
        let parent = walk.object();
        let walk = RowWalk::below(self.root, parent.text(), tag, self.facts.purpose);
        let rest = steps.get(outer.len()..).unwrap_or_default();
        let rows = self.rows_of(walk, rest, Side::Both).replace('\n', "\n  ");
        format!("{parents}.map(rows, rows.map({},\n  {rows}).flatten())", parent.text())
    }

    /// Returns the rows of the places at the end of a path.
    pub(crate) fn rows_of(&self, mut walk: RowWalk<'p>, steps: &[Step<'p>], side: Side<'_>) -> String {
        let mut comprehension = walk.descend(steps, side == Side::OldMap);
        let object = walk.object();
        comprehension.condition = if self.group.typed {
            walk.is_there(self.group.nullable)
        } else {
            Some(self.is_judged(&object.or("null")))
        };
        let is_new = side.word().is_empty();
        let old = if let Side::Now(old) = side { old } else { None };
        let is_searched = old.is_none() && side != Side::OldMap;
        let value_field = self.value_field();
        let fields = [
            is_new.then(|| (self.path_field(), walk.path())),
            is_searched.then(|| ("key", walk.key())),
            (!self.discriminator().is_empty()).then(|| (&*value_field, self.value(&object))),
            Some(("set", self.members.set_in(&object))),
            (is_new && self.sees_nulls()).then(|| ("nonNull", self.members.non_null_in(&object))),
            old.map(|old| ("old", format!("{old}[?{}].orValue({{}})", walk.key()))),
            (is_new && self.group.has_identity()).then(|| ("claims", self.claims(&walk, &object, false))),
        ];
        comprehension.of(&row_of(fields.into_iter().flatten(), comprehension.calls.len().saturating_sub(1)))
    }
}
