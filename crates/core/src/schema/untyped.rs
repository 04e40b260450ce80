//! Parts of an object that the schema does not describe, below `x-kubernetes-preserve-unknown-fields`.
//!
//! A declaration may name fields in such a part. [`Schema::add_untyped`] adds a node for each of them, so that every later
//! step finds the fields where it finds those that the schema describes. The nodes have no types: the API server stores
//! any value there. Where the schema describes a node, the schema decides.

use super::Schema;
use super::declared::Untyped;
use super::place::{Place, PlaceStep};

/// Most nodes that all declarations of a kind add to the schemas of its versions.
pub(crate) const MOST_UNTYPED_NODES: usize = 8192;

/// A place cannot be added to a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UntypedError {
    /// The schema describes the parent of this place and drops fields that it does not describe.
    Missing(Place),
    /// The place is in an embedded resource.
    Embedded(Place),
    /// The schema or another declaration says that the place is not what this declaration says, for example "a list".
    OtherType(Place, &'static str),
    /// Another declaration gives the items of this list other keys.
    OtherKeys(Place, Box<[Box<str>]>),
    /// The declarations of the kind add too many nodes.
    TooMany,
}

/// The reason why a list cannot have the keys that a declaration gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeysLeftOut {
    /// The schema or another declaration says that the items have these keys.
    Others(Box<[Box<str>]>),
    /// The list is a set, whose items are told apart by their whole value.
    Set,
    /// The items have no field of this name.
    NoField(Box<str>),
}

impl Schema {
    /// Returns the first place on the way that the schema does not describe although it keeps unknown fields there, with
    /// the step that it does not describe.
    pub(crate) fn undescribed<'p>(&self, place: &'p Place) -> Option<(Place, &'p PlaceStep)> {
        let mut node = self;
        let mut at = Place::root();
        for step in place.steps() {
            match node.child(step).filter(|child| !child.untyped) {
                Some(child) => node = child,
                None => return node.preserve_unknown_fields.then_some((at, step)),
            }
            at = at.then(step.clone());
        }
        None
    }

    /// Adds nodes for the object and the fields of a union, where the schema keeps unknown fields. Changes nothing if that is
    /// impossible. `budget` is the number of nodes that may still be added.
    pub(crate) fn add_untyped(&mut self, untyped: &Untyped, budget: &mut usize) -> Result<(), UntypedError> {
        let missing = self.count_missing(untyped)?;
        *budget = budget.checked_sub(missing).ok_or(UntypedError::TooMany)?;
        let mut node = self;
        let mut at = Place::root();
        for step in untyped.object.steps() {
            let inner = at.then(step.clone());
            let keys = untyped.list_keys.get(&at).filter(|_| *step == PlaceStep::Items);
            match keys {
                Some(keys) if !node.describes(step) => {
                    node.list_type = Some("map".into());
                    node.list_map_keys = keys.to_vec();
                }
                Some(keys) if node.keys_left_out(keys).is_none() && node.list_keys().is_empty() => {
                    node.declared_keys.clone_from(keys);
                }
                Some(_) | None => {}
            }
            node = node.child_or_untyped(step);
            if node.untyped {
                keys.into_iter().flatten().for_each(|key| node.add_scalar(key, "string"));
            }
            at = inner;
        }
        if untyped.schemaless && node.keeps_unknown_fields() {
            for member in &untyped.members {
                node.child_or_untyped(&PlaceStep::Property(member.clone()));
            }
            let kind = if untyped.boolean { "boolean" } else { "string" };
            untyped.discriminator.iter().for_each(|name| node.add_scalar(name, kind));
        }
        Ok(())
    }

    /// Checks that a union fits, and returns the largest number of nodes that are added for it.
    fn count_missing(&self, untyped: &Untyped) -> Result<usize, UntypedError> {
        let mut node = self;
        let mut at = Place::root();
        let mut missing: usize = 0;
        for (position, step) in untyped.object.steps().iter().enumerate() {
            if node.embedded_resource {
                return Err(UntypedError::Embedded(at));
            }
            let keys = untyped.list_keys.get(&at).filter(|_| *step == PlaceStep::Items);
            if let Some(keys) = keys {
                let described = node.describes(step);
                match node.keys_left_out(keys) {
                    // With `schemaless`, the declaration may be about releases that describe the list and others.
                    Some(_) if described && untyped.schemaless && node.declared_keys.is_empty() => {}
                    Some(KeysLeftOut::Others(known)) => return Err(UntypedError::OtherKeys(at, known)),
                    Some(KeysLeftOut::Set) => return Err(UntypedError::OtherType(at, "a list with keys")),
                    Some(KeysLeftOut::NoField(key)) => {
                        return Err(UntypedError::OtherType(at.then(step.clone()).property(&key), "a field"));
                    }
                    None => {}
                }
                missing = missing.saturating_add(if described { 0 } else { keys.len() });
            }
            let inner = at.then(step.clone());
            match node.child(step) {
                Some(child) => node = child,
                None if !node.keeps_unknown_fields() => return Err(UntypedError::Missing(inner)),
                None if !node.may_have(step) => return Err(UntypedError::OtherType(at, described(step))),
                None => {
                    let rest = untyped.object.steps().get(position..).unwrap_or_default();
                    let keys: usize = untyped.list_keys.values().map(|keys| keys.len()).sum();
                    return Ok(rest.len().saturating_add(untyped.fields().count()).saturating_add(keys));
                }
            }
            let mismatched =
                |key: &str| node.properties.get(key).is_some_and(|known| known.untyped && !known.is_leaf());
            if let Some(key) = keys.into_iter().flatten().find(|key| mismatched(key)) {
                return Err(UntypedError::OtherType(inner.property(key), SCALAR));
            }
            at = inner;
        }
        if node.embedded_resource {
            return Err(UntypedError::Embedded(at));
        }
        if !untyped.schemaless {
            return Ok(missing);
        }
        let known = untyped.discriminator.as_ref().and_then(|name| Some((name, node.properties.get(name)?)));
        if let Some((name, known)) = known
            && known.untyped
            && !known.is_leaf()
        {
            return Err(UntypedError::OtherType(at.property(name), SCALAR));
        }
        let new = untyped.fields().filter(|field| node.keeps_unknown_fields() && !node.properties.contains_key(*field));
        let new = new.count();
        if new > 0 && !node.takes_untyped_fields() {
            return Err(UntypedError::OtherType(at, OBJECT));
        }
        Ok(missing.saturating_add(new))
    }

    /// Adds a field that has no fields itself, a discriminator or a key.
    fn add_scalar(&mut self, name: &str, kind: &str) {
        let node = self.child_or_untyped(&PlaceStep::Property(name.into()));
        if node.untyped {
            node.type_name = Some(kind.into());
        }
    }

    /// Returns true if a declaration with `schemaless` may add fields here.
    pub(crate) fn takes_untyped_fields(&self) -> bool {
        self.keeps_unknown_fields() && self.may_have(&PlaceStep::Property(Box::default()))
    }

    fn is_leaf(&self) -> bool {
        self.children().next().is_none()
    }

    fn child_or_untyped(&mut self, step: &PlaceStep) -> &mut Self {
        // The API server prunes nulls only from fields that the schema describes.
        let new = || Self { untyped: true, nullable: true, ..Self::default() };
        match step {
            PlaceStep::Property(name) => self.properties.entry(name.clone()).or_insert_with(new),
            PlaceStep::Items => self.items.get_or_insert_with(|| Box::new(new())),
            PlaceStep::Values => self.additional_properties.get_or_insert_with(|| Box::new(new())),
        }
    }

    /// Returns true if the schema of the cluster has this child, rather than a declaration.
    fn describes(&self, step: &PlaceStep) -> bool {
        self.child(step).is_some_and(|child| !child.untyped)
    }

    fn keeps_unknown_fields(&self) -> bool {
        self.preserve_unknown_fields || self.untyped
    }

    /// Returns why these keys cannot be the keys of this list. `None` if they are or can be.
    fn keys_left_out(&self, keys: &[Box<str>]) -> Option<KeysLeftOut> {
        let known = self.list_keys();
        if !known.is_empty() {
            return (known != keys).then(|| KeysLeftOut::Others(known.into()));
        }
        if self.list_type.as_deref() == Some("set") {
            return Some(KeysLeftOut::Set);
        }
        let items = self.items.as_deref()?;
        if items.keeps_unknown_fields() {
            return None;
        }
        keys.iter().find(|key| !items.properties.contains_key(*key)).map(|key| KeysLeftOut::NoField(key.clone()))
    }

    /// Returns the lists that this schema describes, and that cannot have the keys that a declaration gives them.
    pub(crate) fn left_out_keys<'u>(
        &self,
        untyped: &'u Untyped,
    ) -> impl Iterator<Item = (&'u Place, KeysLeftOut)> + use<'u, '_> {
        untyped.list_keys.iter().filter_map(|(place, keys)| {
            let list = self.at(place).filter(|list| list.describes(&PlaceStep::Items))?;
            Some((place, list.keys_left_out(keys)?))
        })
    }

    /// Returns true if the node may have this child. A node with children of one type has none of another.
    fn may_have(&self, step: &PlaceStep) -> bool {
        let object = !self.properties.is_empty();
        let (others, wanted) = match step {
            PlaceStep::Property(_) => (self.items.is_some() || self.additional_properties.is_some(), "object"),
            PlaceStep::Items => (object || self.additional_properties.is_some(), "array"),
            PlaceStep::Values => (object || self.items.is_some(), "object"),
        };
        !others && self.may_be(wanted)
    }

    fn may_be(&self, wanted: &str) -> bool {
        self.type_name.as_deref().is_none_or(|name| name == wanted)
    }
}

impl Untyped {
    fn fields(&self) -> impl Iterator<Item = &Box<str>> {
        self.members.iter().chain(&self.discriminator)
    }
}

const OBJECT: &str = "an object with fields";

const SCALAR: &str = "a value without fields";

/// Returns the type of a node that has this child.
fn described(step: &PlaceStep) -> &'static str {
    match step {
        PlaceStep::Property(_) => OBJECT,
        PlaceStep::Items => "a list",
        PlaceStep::Values => "a map",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn schema(value: Value) -> Schema {
        serde_json::from_value(value).unwrap()
    }

    fn untyped(object: &str, fields: &[&str], keys: &[(&str, &str)]) -> Untyped {
        Untyped {
            object: Place::from_path(object).unwrap(),
            schemaless: true,
            members: fields.iter().map(|field| Box::from(*field)).collect(),
            boolean: false,
            discriminator: None,
            list_keys: keys
                .iter()
                .map(|(list, key)| (Place::from_path(list).unwrap(), Box::from([Box::from(*key)])))
                .collect(),
        }
    }

    fn places(schema: &Schema) -> Vec<String> {
        let mut places = Vec::new();
        schema.walk(&mut |place, node| places.extend(node.untyped.then(|| place.to_string())));
        places
    }

    fn open() -> Schema {
        schema(json!({"type": "object", "properties": {
            "open": {"x-kubernetes-preserve-unknown-fields": true},
            "closed": {"type": "object", "properties": {"a": {"type": "string"}}},
            "partial": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "a": {"type": "string"}, "inner": {"type": "object"}}},
            "whole": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}))
    }

    #[test]
    fn fields_below_a_node_that_keeps_unknown_fields_are_added_with_the_keys_of_lists() {
        let mut schema = open();
        let mut budget = 100;
        schema.add_untyped(&untyped("open.list[*]", &["a", "b"], &[("open.list", "name")]), &mut budget).unwrap();
        assert_eq!(
            places(&schema),
            ["open.list", "open.list[*]", "open.list[*].a", "open.list[*].b", "open.list[*].name"]
        );
        let list = schema.at(&Place::from_path("open.list").unwrap()).unwrap();
        assert_eq!(list.list_keys(), ["name".into()]);
        assert_eq!(budget, 95);
        schema.add_untyped(&untyped("open.list[*]", &["a", "c"], &[("open.list", "name")]), &mut budget).unwrap();
        schema.add_untyped(&untyped("open.list[*]", &["d"], &[]), &mut budget).unwrap();
        assert_eq!(schema.at(&Place::from_path("open.list").unwrap()).unwrap().list_keys(), ["name".into()]);
    }

    #[test]
    fn a_field_beside_those_that_the_schema_describes_is_added_only_if_unknown_fields_are_kept() {
        let mut schema = open();
        schema.add_untyped(&untyped("partial", &["a", "b"], &[]), &mut 10).unwrap();
        schema.add_untyped(&untyped("closed", &["a", "b"], &[]), &mut 10).unwrap();
        assert_eq!(places(&schema), ["partial.b"]);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_the_schema_as_it_is() {
        let mut schema = open();
        schema.add_untyped(&untyped("open.list[*]", &["a"], &[("open.list", "name")]), &mut 10).unwrap();
        schema.add_untyped(&untyped("open.list[*].inner", &["a"], &[]), &mut 10).unwrap();
        let before = places(&schema);
        let place = |path: &str| Place::from_path(path).unwrap();
        let other = |path: &str, wanted| UntypedError::OtherType(place(path), wanted);
        for (wish, error) in [
            (untyped("closed.b", &["a"], &[]), UntypedError::Missing(place("closed.b"))),
            (untyped("partial.inner.x", &["a"], &[]), UntypedError::Missing(place("partial.inner.x"))),
            (untyped("whole.spec", &["a"], &[]), UntypedError::Embedded(place("whole"))),
            (untyped("whole", &["a"], &[]), UntypedError::Embedded(place("whole"))),
            (untyped("partial[*]", &["a"], &[]), other("partial", "a list")),
            (untyped("partial.*", &["a"], &[]), other("partial", "a map")),
            (untyped("open[*]", &["a"], &[]), other("open", "a list")),
            (untyped("open.list", &["a"], &[]), other("open.list", OBJECT)),
            (untyped("open.list.x.y", &["a"], &[]), other("open.list", OBJECT)),
            (
                untyped("open.list[*]", &["a"], &[("open.list", "id")]),
                UntypedError::OtherKeys(place("open.list"), Box::from([Box::from("name")])),
            ),
            (untyped("open.list[*].name.x", &["a"], &[]), other("open.list[*].name", OBJECT)),
            (
                Untyped { discriminator: Some("inner".into()), ..untyped("open.list[*]", &["a"], &[]) },
                other("open.list[*].inner", SCALAR),
            ),
            (
                untyped("open.list[*]", &["a"], &[("open.list", "inner")]),
                UntypedError::OtherKeys(place("open.list"), Box::from([Box::from("name")])),
            ),
            (untyped("open.x.y.z", &["a", "b", "c", "d"], &[]), UntypedError::TooMany),
        ] {
            assert_eq!(schema.add_untyped(&wish, &mut 6), Err(error), "{wish:?}");
            assert_eq!(places(&schema), before, "{wish:?}");
        }
    }

    #[test]
    fn the_first_part_without_a_schema_is_named() {
        let schema = open();
        let part = |path: &str| {
            let place = Place::from_path(path).unwrap();
            schema.undescribed(&place).map(|(at, step)| (at.to_string(), step.clone()))
        };
        assert_eq!(part("open.a[*].b"), Some(("open".to_owned(), PlaceStep::Property("a".into()))));
        assert_eq!(part("open[*]"), Some(("open".to_owned(), PlaceStep::Items)));
        assert_eq!(part("closed.b"), None);
        assert_eq!(part("partial.inner.b"), None);
    }

    #[test]
    fn a_null_stays_where_the_schema_describes_no_field_as_on_the_api_server() {
        let mut schema = open();
        schema.add_untyped(&untyped("partial", &["b"], &[]), &mut 10).unwrap();
        let mut object = json!({"partial": {"a": null, "b": null, "c": null}});
        schema.complete(&mut object).unwrap();
        assert_eq!(object, json!({"partial": {"b": null, "c": null}}));
    }
}
