//! The rows of the places of a union, as expressions.

use crate::cel::{self, text};
use crate::comprehension::row_of;
use crate::group::{PlaceGroup, Step};
use crate::manifests;
use crate::members::Members;
use crate::root::{Purpose, Root};
use crate::value::UserValue;
use crate::variables::{Variables, camel};
use crate::walk::RowWalk;
use kube_unions_core::union::Part;

/// Most fields that hold the same and of which each has a variable.
const MOST_ALIKE: usize = 8;

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

    /// Returns the fields that manifests set in an object, which is at the end of a walk. `nested`: a list of lists. `of_text`: what the text of
    /// a client-side apply sets.
    pub(crate) fn claims(&self, walk: &RowWalk<'p>, object: &UserValue, nested: bool, of_text: Option<&str>) -> String {
        let claims = if self.group.owned_at.is_none() {
            manifests::of_fields(&walk.manifests, &walk.field_set(), nested)
        } else {
            let named = self.members.union.discriminator().map(|name| (name, object.find(name).is_there()));
            let named = named.as_ref().map(|(name, is_there)| (*name, &**is_there));
            manifests::of_whole(&walk.manifests, &walk.field_set(), named, nested)
        };
        match of_text {
            Some(of_text) if nested => format!("{claims} + [{of_text}]"),
            Some(of_text) => format!("{claims} + {of_text}"),
            None => claims,
        }
    }

    /// Returns what the text of a client-side apply sets in the object at the end of a walk along a path, as an expression. `None`: the path is
    /// not one of fields from the object on, so that the text alone does not say what is there.
    pub(crate) fn claims_of_text(
        &self,
        steps: &[Step<'p>],
        walk: &RowWalk<'p>,
        variables: &mut Variables,
    ) -> Option<String> {
        let paths = if walk.begins_at_object() { self.paths_in_text(steps) } else { Vec::new() };
        let of_path = |(name, path): (Option<&str>, Vec<&str>)| {
            let claims = manifests::of_text(&path, variables)?;
            Some(if let Some(name) = name { format!("{}: {claims}", text(name)) } else { claims })
        };
        let all: Vec<String> = paths.into_iter().map(of_path).collect::<Option<_>>()?;
        match walk.any_of() {
            None => all.into_iter().next(),
            Some(field) => (!all.is_empty()).then(|| format!("{{{}}}[?{field}].orValue([])", all.join(", "))),
        }
    }

    /// Returns true if the text of a client-side apply says what it sets in an object.
    pub(crate) fn has_claims_of_text(&self) -> bool {
        let has = |steps: &Vec<Step<'p>>| !self.paths_in_text(steps).is_empty();
        self.group.has_identity() && self.group.paths.iter().any(has)
    }

    /// Returns the fields to the places at the end of a path, each with its own one if there are several. Empty: the text does not tell them.
    fn paths_in_text(&self, steps: &[Step<'p>]) -> Vec<(Option<&'p str>, Vec<&'p str>)> {
        let mut paths = vec![(None, Vec::new())];
        if self.root.path.is_some() || self.facts.part == Part::Status {
            return Vec::new();
        }
        for step in steps {
            match step {
                Step::Field(name) => paths.iter_mut().for_each(|(_, path)| path.push(*name)),
                Step::AnyOf(names) if paths.len() == 1 && names.len() <= MOST_ALIKE => {
                    let (_, path) = paths.remove(0);
                    paths.extend(names.iter().map(|name| (Some(*name), [&path[..], &[*name]].concat())));
                }
                Step::AnyOf(_) | Step::Items(_) | Step::Values => return Vec::new(),
            }
        }
        paths.retain(|(_, path)| manifests::longest_text(path).is_some());
        paths
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
            let rows = self.rows_of(self.walk(&root, tag), steps, Side::Both, variables).replace('\n', "\n  ");
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
        let rows = self.rows_of(walk, rest, Side::Both, variables).replace('\n', "\n  ");
        format!("{parents}.map(rows, rows.map({},\n  {rows}).flatten())", parent.text())
    }

    /// Returns the rows of the places at the end of a path.
    pub(crate) fn rows_of(
        &self,
        mut walk: RowWalk<'p>,
        steps: &[Step<'p>],
        side: Side<'_>,
        variables: &mut Variables,
    ) -> String {
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
        let has_claims = is_new && self.group.has_identity();
        let of_text = has_claims.then(|| self.claims_of_text(steps, &walk, variables)).flatten();
        let fields = [
            is_new.then(|| (self.path_field(), walk.path())),
            is_searched.then(|| ("key", walk.key())),
            (!self.discriminator().is_empty()).then(|| (&*value_field, self.value(&object))),
            Some(("set", self.members.set_in(&object))),
            (is_new && self.sees_nulls()).then(|| ("nonNull", self.members.non_null_in(&object))),
            old.map(|old| ("old", format!("{old}[?{}].orValue({{}})", walk.key()))),
            has_claims.then(|| ("claims", self.claims(&walk, &object, false, of_text.as_deref()))),
        ];
        comprehension.of(&row_of(fields.into_iter().flatten(), comprehension.calls.len().saturating_sub(1)))
    }
}
