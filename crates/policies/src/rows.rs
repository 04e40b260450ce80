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
    Now,
    /// Now, each with its old one from this map.
    NowBeside(&'l str),
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

    /// Returns the walk from a root.
    pub(crate) fn walk(&self, root: &UserValue) -> RowWalk<'p> {
        let mut walk = RowWalk::new(self.root, root, self.facts.purpose);
        (walk.typed, walk.owned_at) = (self.group.typed, self.group.owned_at);
        walk
    }

    /// Returns the single object at the end of fields. One of a type that nobody knows has a variable, whose name has these words.
    pub(crate) fn object_at(
        &self,
        names: &[&str],
        root: &UserValue,
        words: &[&str],
        variables: &mut Variables,
    ) -> UserValue {
        if self.group.typed {
            return root.follow(names);
        }
        let found = format!("{}.filter(o, {})", root.guarded(names), self.is_judged(&UserValue::new("o")));
        let comment = "the object, in a list of at most one: the schema does not say what stands there";
        UserValue::optional(format!("{}[?0]", variables.add(&camel(words), &found, comment)))
    }

    /// Returns the fields that manifests set in the object at the end of a walk. `nested`: a list of lists.
    pub(crate) fn claims(&self, walk: &RowWalk<'p>, nested: bool) -> String {
        manifests::at(&walk.manifests, &walk.field_set(), self.owned_fields().as_deref(), nested)
    }

    /// Returns the fields of the union as field sets name them, if what is around it is owned as a whole.
    fn owned_fields(&self) -> Option<String> {
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
        let mut walk = self.walk(&UserValue::new(*word));
        let Some(outer) = outer else {
            let rows = self.rows_of(walk, steps, tag, Side::Both).replace('\n', "\n  ");
            return format!("{both}.map({word},\n  {rows})");
        };
        let parents = walk.descend(outer, false);
        let parents = format!("{both}.map({word},\n  {})", parents.of(&walk.row(parents.depth())));
        let name = outer.iter().rev().find_map(Step::word).unwrap_or_default();
        let parents = variables.add(&name, &parents, &format!("those of each {word}, with what manifests set in them"));
        let item = walk.item();
        let rest = steps.get(outer.len()..).unwrap_or_default();
        let walk = RowWalk::below(self.root, item, self.facts.purpose);
        let rows = self.rows_of(walk, rest, tag, Side::Both).replace('\n', "\n  ");
        format!("{parents}.map(rows, rows.map({item},\n  {rows}).flatten())")
    }

    /// Returns the rows of the places at the end of a path. `tag` begins their keys.
    pub(crate) fn rows_of(
        &self,
        mut walk: RowWalk<'p>,
        steps: &[Step<'p>],
        tag: Option<String>,
        side: Side<'_>,
    ) -> String {
        walk.tag(tag);
        let mut comprehension = walk.descend(steps, side == Side::OldMap);
        comprehension.condition = if self.group.typed {
            walk.is_there(self.group.nullable)
        } else {
            Some(self.is_judged(&walk.object().or("null")))
        };
        let object = walk.object();
        let is_new = !matches!(side, Side::OldList | Side::OldMap);
        let is_searched = matches!(side, Side::Both | Side::Now | Side::OldList);
        let old = if let Side::NowBeside(old) = side { Some(old) } else { None };
        let value_field = self.value_field();
        let fields = [
            is_new.then(|| (self.path_field(), walk.path())),
            is_searched.then(|| ("key", walk.key())),
            (!self.discriminator().is_empty()).then(|| (&*value_field, self.value(&object))),
            Some(("set", self.members.set_in(&object))),
            (is_new && self.sees_nulls()).then(|| ("nonNull", self.members.non_null_in(&object))),
            old.map(|old| ("old", format!("{old}[?{}].orValue({{}})", walk.key()))),
            (is_new && self.group.has_identity()).then(|| ("claims", self.claims(&walk, false))),
        ];
        comprehension.of(&row_of(fields.into_iter().flatten(), comprehension.depth().saturating_sub(1)))
    }
}
