//! Places in a schema, and how to get there.

use super::Schema;
use crate::field_path::{pointer_tokens, push_token};
use std::fmt;

/// A place in a schema: the property, list item or map value that a node describes.
///
/// Displays as people write paths, `spec.filters[*].type`, `.*` for the values of a map; the root is the empty string.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(Vec<PlaceStep>);

/// One step into a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceStep {
    /// A named field, `.name`.
    Property(Box<str>),
    /// The items of a list, `[*]`.
    Items,
    /// The values of a map, `.*`.
    Values,
}

/// Why a JSON Pointer names no place that a schema can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// Not RFC 6901.
    #[error("`{0}` is not a JSON Pointer: it must be empty or start with `/`, and `~` must be written `~0`")]
    NotAPointer(String),
    /// Not a path.
    #[error(
        "`{path}` is not a path, from `{rest}` on: write `spec.field`, `[*]` for the items of a list, `.*` for the values of a map"
    )]
    NotAPath {
        /// The path as it was given.
        path: String,
        /// Where it went astray.
        rest: String,
    },
    /// Stands on something that is not a schema node.
    #[error(
        "`{pointer}` does not lead to a schema: `{token}` stands where `properties/NAME`, `items` or `additionalProperties` is due"
    )]
    NotASchema {
        /// The pointer as it was given.
        pointer: String,
        /// Where it went astray.
        token: String,
    },
}

impl Place {
    /// The schema itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a JSON Pointer (RFC 6901) into a schema, such as `/properties/spec/items`.
    pub(crate) fn from_pointer(pointer: &str) -> Result<Self, PlaceError> {
        let tokens = pointer_tokens(pointer).ok_or_else(|| PlaceError::NotAPointer(pointer.to_owned()))?;
        let mut steps = Vec::new();
        let mut tokens = tokens.into_iter();
        while let Some(token) = tokens.next() {
            let step = match token.as_str() {
                "properties" => tokens.next().map(|name| PlaceStep::Property(name.into())),
                "items" => Some(PlaceStep::Items),
                "additionalProperties" => Some(PlaceStep::Values),
                _ => None,
            };
            steps.push(step.ok_or(PlaceError::NotASchema { pointer: pointer.to_owned(), token })?);
        }
        Ok(Self(steps))
    }

    /// Reads a path as people write it: `spec.filters[*].type`, `.*` for the values of a map, `["a.b"]` for a name with a dot in
    /// it; the empty string is the root.
    pub fn from_path(path: &str) -> Result<Self, PlaceError> {
        let error = |at: &str| PlaceError::NotAPath { path: path.to_owned(), rest: at.to_owned() };
        let mut steps = Vec::new();
        let mut rest = path;
        while !rest.is_empty() {
            let after = if let Some(after) = rest.strip_prefix("[*]") {
                steps.push(PlaceStep::Items);
                after
            } else if let Some((name, after)) = rest.strip_prefix("[\"").and_then(|quoted| quoted.split_once("\"]")) {
                steps.push(PlaceStep::Property(name.into()));
                after
            } else {
                let named = if steps.is_empty() { Some(rest) } else { rest.strip_prefix('.') };
                let named = named.ok_or_else(|| error(rest))?;
                let (name, after) = named.split_at(named.find(['.', '[']).unwrap_or(named.len()));
                if name.is_empty() || name.contains([']', '"', ' ']) {
                    return Err(error(rest));
                }
                steps.push(if name == "*" { PlaceStep::Values } else { PlaceStep::Property(name.into()) });
                after
            };
            rest = after;
        }
        Ok(Self(steps))
    }

    /// The place as a JSON Pointer into the schema.
    pub fn to_pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.0 {
            match step {
                PlaceStep::Property(name) => {
                    pointer.push_str("/properties/");
                    push_token(&mut pointer, name);
                }
                PlaceStep::Items => pointer.push_str("/items"),
                PlaceStep::Values => pointer.push_str("/additionalProperties"),
            }
        }
        pointer
    }

    /// The steps, outermost first.
    pub fn steps(&self) -> &[PlaceStep] {
        &self.0
    }

    /// The place one step further in.
    #[must_use]
    pub fn then(&self, step: PlaceStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The place around this one; none around the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, around) = self.0.split_last()?;
        Some(Self(around.to_vec()))
    }

    /// The place of a property of the object here.
    #[must_use]
    pub fn property(&self, name: &str) -> Self {
        self.then(PlaceStep::Property(name.into()))
    }
}

impl FromIterator<PlaceStep> for Place {
    fn from_iter<I: IntoIterator<Item = PlaceStep>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                PlaceStep::Property(name) if position == 0 => f.write_str(name)?,
                PlaceStep::Property(name) => write!(f, ".{name}")?,
                PlaceStep::Items => f.write_str("[*]")?,
                PlaceStep::Values => f.write_str(".*")?,
            }
        }
        Ok(())
    }
}

impl Schema {
    /// The node at a place, if the schema has it.
    pub fn at(&self, place: &Place) -> Option<&Schema> {
        place.0.iter().try_fold(self, |node, step| match step {
            PlaceStep::Property(name) => node.properties.get(name),
            PlaceStep::Items => node.items.as_deref(),
            PlaceStep::Values => node.additional_properties.as_deref(),
        })
    }

    /// The node at a place, to graft on.
    pub(crate) fn at_mut(&mut self, place: &Place) -> Option<&mut Schema> {
        place.0.iter().try_fold(self, |node, step| match step {
            PlaceStep::Property(name) => node.properties.get_mut(name),
            PlaceStep::Items => node.items.as_deref_mut(),
            PlaceStep::Values => node.additional_properties.as_deref_mut(),
        })
    }

    /// The nodes one step further in, with the step.
    pub fn children(&self) -> impl Iterator<Item = (PlaceStep, &Schema)> {
        let properties = self.properties.iter().map(|(name, node)| (PlaceStep::Property(name.clone()), node));
        let items = self.items.as_deref().map(|node| (PlaceStep::Items, node));
        let values = self.additional_properties.as_deref().map(|node| (PlaceStep::Values, node));
        properties.chain(items).chain(values)
    }

    /// Calls `visit` for this node and every node below, outermost first.
    pub fn walk(&self, visit: &mut impl FnMut(&Place, &Schema)) {
        fn step(node: &Schema, place: &mut Place, visit: &mut impl FnMut(&Place, &Schema)) {
            visit(place, node);
            for (inwards, child) in node.children() {
                place.0.push(inwards);
                step(child, place, visit);
                place.0.pop();
            }
        }
        step(self, &mut Place::root(), visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_and_places_are_one_thing() {
        for (pointer, path) in [
            ("", ""),
            ("/properties/spec", "spec"),
            ("/properties/spec/properties/filters/items/properties/type", "spec.filters[*].type"),
            ("/properties/steps/additionalProperties", "steps.*"),
            ("/properties/a~1b/properties/items", "a/b.items"),
        ] {
            let place = Place::from_pointer(pointer).unwrap();
            assert_eq!((place.to_pointer().as_str(), place.to_string().as_str()), (pointer, path));
        }
    }

    #[test]
    fn a_pointer_that_leaves_the_schema_is_refused_with_the_token() {
        for (pointer, token) in [("/spec", "spec"), ("/properties", "properties"), ("/properties/a/enum/0", "enum")] {
            let error = Place::from_pointer(pointer).unwrap_err();
            assert_eq!(error, PlaceError::NotASchema { pointer: pointer.into(), token: token.into() });
        }
        assert!(matches!(Place::from_pointer("spec"), Err(PlaceError::NotAPointer(_))));
    }

    #[test]
    fn paths_are_read_as_they_are_written() {
        for path in ["", "spec", "spec.filters[*].type", "steps.*", "m.*.*", "spec.a[*][*].b"] {
            assert_eq!(Place::from_path(path).unwrap().to_string(), path);
        }
        assert_eq!(Place::from_path("a[\"x.y\"].b").unwrap().to_pointer(), "/properties/a/properties/x.y/properties/b");
        for path in [".", ".spec", "spec.", "spec..a", "spec[0]", "spec[*]a", "a b", "spec[*", "a]"] {
            assert!(matches!(Place::from_path(path), Err(PlaceError::NotAPath { .. })), "{path}");
        }
    }

    #[test]
    fn every_node_is_found_at_its_place() {
        let schema: Schema = serde_json::from_value(json!({"properties": {
            "a": {"items": {"properties": {"b": {}}}}, "m": {"additionalProperties": {"type": "string"}}}}))
        .unwrap();
        let mut places = Vec::new();
        schema.walk(&mut |place, node| {
            assert!(std::ptr::eq(schema.at(place).unwrap(), node));
            places.push(place.to_string());
        });
        assert_eq!(places, ["", "a", "a[*]", "a[*].b", "m", "m.*"]);
    }
}
