//! Places in a schema.

use crate::field_path::{pointer, pointer_tokens};
use std::fmt;

/// A place in a schema: a property, the items of a list or the values of a map.
///
/// Displays like `spec.filters[*].type`, with `.*` for the values of a map. The root displays as the empty string.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub(super) Vec<PlaceStep>);

/// One step of a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceStep {
    /// A named field, `.name`.
    Property(Box<str>),
    /// The items of a list, `[*]`.
    Items,
    /// The values of a map, `.*`.
    Values,
}

/// A text is not a place in a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlaceError(String);

impl Place {
    /// Returns the place of the schema itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a JSON Pointer (RFC 6901) into a schema, for example `/properties/spec/items`.
    pub fn from_pointer(pointer: &str) -> Result<Self, PlaceError> {
        let tokens = pointer_tokens(pointer).ok_or_else(|| {
            PlaceError(format!(
                "`{pointer}` is not a JSON Pointer: it must be empty or start with `/`, and `~` must be written `~0`"
            ))
        })?;
        let mut steps = Vec::new();
        let mut tokens = tokens.into_iter();
        while let Some(token) = tokens.next() {
            let step = match token.as_str() {
                "properties" => tokens.next().map(|name| PlaceStep::Property(name.into())),
                "items" => Some(PlaceStep::Items),
                "additionalProperties" => Some(PlaceStep::Values),
                _ => None,
            };
            steps.push(step.ok_or_else(|| {
                PlaceError(format!(
                    "`{pointer}` does not lead to a schema: `{token}` stands where `properties/NAME`, `items` or \
                     `additionalProperties` is due"
                ))
            })?);
        }
        Ok(Self(steps))
    }

    /// Reads a path, for example `spec.filters[*].type`. `.*` stands for the values of a map, `["a.b"]` for a name with a
    /// dot, the empty string for the root.
    pub fn from_path(path: &str) -> Result<Self, PlaceError> {
        let error = |at: &str| {
            PlaceError(format!(
                "`{path}` is not a path, from `{at}` on: write `spec.field`, `[*]` for the items of a list, `.*` for the values \
                 of a map"
            ))
        };
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

    /// Returns the place as a JSON Pointer into the schema.
    pub fn to_pointer(&self) -> String {
        let tokens = self.0.iter().map(|step| match step {
            PlaceStep::Property(name) => pointer(["properties", name]),
            PlaceStep::Items => "/items".to_owned(),
            PlaceStep::Values => "/additionalProperties".to_owned(),
        });
        tokens.collect()
    }

    /// Returns the steps, outermost first.
    pub fn steps(&self) -> &[PlaceStep] {
        &self.0
    }

    /// Returns the place after another step.
    #[must_use]
    pub fn then(&self, step: PlaceStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Returns the place without its last step, `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, around) = self.0.split_last()?;
        Some(Self(around.to_vec()))
    }

    /// Returns the innermost place that has both places in it.
    #[must_use]
    pub(crate) fn shared_with(&self, other: &Self) -> Self {
        let both = self.0.iter().zip(&other.0);
        Self(both.take_while(|(one, other)| one == other).map(|(step, _)| step.clone()).collect())
    }

    /// Returns the place of a property of this object.
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

#[cfg(test)]
mod tests {
    use super::*;

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
            let message = Place::from_pointer(pointer).unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{pointer}` does not lead to a schema: `{token}`")), "{message}");
        }
        let message = Place::from_pointer("spec").unwrap_err().to_string();
        assert!(message.starts_with("`spec` is not a JSON Pointer"), "{message}");
    }

    #[test]
    fn paths_are_read_as_they_are_written() {
        for path in ["", "spec", "spec.filters[*].type", "steps.*", "m.*.*", "spec.a[*][*].b"] {
            assert_eq!(Place::from_path(path).unwrap().to_string(), path);
        }
        assert_eq!(Place::from_path("a[\"x.y\"].b").unwrap().to_pointer(), "/properties/a/properties/x.y/properties/b");
        for path in [".", ".spec", "spec.", "spec..a", "spec[0]", "spec[*]a", "a b", "spec[*", "a]"] {
            let message = Place::from_path(path).unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{path}` is not a path, from `")), "{message}");
        }
    }
}
