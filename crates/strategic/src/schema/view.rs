//! A schema as one value sees it: with the schemas that its references and `allOf` add.

use super::SchemaShape;
use kube_unions_core::schema::{Definitions, Extension, Place, Schema};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A schema that does not define how its fields merge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum SchemaError {
    /// A reference does not resolve.
    #[error("{}the reference `{reference}` does not resolve to a schema in the document", PlacePrefix(place))]
    Dangling {
        /// The place in the schema.
        place: Place,
        reference: Box<str>,
    },
    /// References form a cycle without a schema in it.
    #[error("{}the reference `{reference}` resolves only to itself", PlacePrefix(place))]
    Circular {
        /// The place in the schema.
        place: Place,
        reference: Box<str>,
    },
    /// The patch strategy is unknown.
    #[error(
        "{}unexpected patch strategy `{strategy}`: write `merge`, `replace` or `retainKeys`, or `retainKeys` beside another",
        PlacePrefix(place)
    )]
    Strategy {
        /// The place in the schema.
        place: Place,
        strategy: Box<str>,
    },
    /// The merge keys contradict each other.
    #[error(
        "{}the recommended merge keys `{recommended}` must be distinct, few, and start with the merge key `{key}`",
        PlacePrefix(place)
    )]
    MergeKeys {
        /// The place in the schema.
        place: Place,
        recommended: Box<str>,
        key: Box<str>,
    },
    /// The type of a list or of a map is unknown.
    #[error("{}unexpected {keyword} `{found}`: write {allowed}", PlacePrefix(place))]
    Keyword {
        /// The place in the schema.
        place: Place,
        keyword: &'static str,
        found: Box<str>,
        allowed: &'static str,
    },
}

impl SchemaError {
    /// Returns the place of the error in the schema.
    pub fn place(&self) -> &Place {
        match self {
            Self::Dangling { place, .. }
            | Self::Circular { place, .. }
            | Self::Strategy { place, .. }
            | Self::MergeKeys { place, .. }
            | Self::Keyword { place, .. } => place,
        }
    }
}

struct PlacePrefix<'p>(&'p Place);

impl std::fmt::Display for PlacePrefix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.steps().is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// Resolves the references of one schema document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaReader<'s> {
    pub(crate) root: &'s Schema,
    pub(crate) definitions: &'s Definitions,
}

/// A schema with the schemas that its references and `allOf` add.
#[derive(Debug, Clone)]
pub(crate) struct View<'s> {
    /// The address that identifies the type.
    pub(crate) identity: *const Schema,
    /// The schema first, then the schemas that it refers to. The first one that defines a keyword wins.
    pub(crate) parts: Vec<&'s Schema>,
    pub(crate) place: Place,
    /// The name of the type, or of the type around it.
    pub(crate) name: Rc<str>,
}

impl<'s> View<'s> {
    pub(crate) fn find<T>(&self, get: impl Fn(&'s Schema) -> Option<T>) -> Option<T> {
        self.parts.iter().find_map(|part| get(part))
    }

    pub(crate) fn any(&self, is: impl Fn(&'s Schema) -> bool) -> bool {
        self.parts.iter().any(|part| is(part))
    }

    pub(crate) fn properties(&self) -> BTreeMap<&'s str, &'s Schema> {
        let mut all = BTreeMap::new();
        for (name, property) in self.parts.iter().flat_map(|part| &part.properties) {
            all.entry(&**name).or_insert(property);
        }
        all
    }

    /// Returns true if the object or its discriminator declares a union.
    pub(crate) fn declares_union(&self) -> bool {
        let declares = |schema: &Schema, is: fn(&Extension) -> bool| {
            schema.unions.iter().any(|declared| Extension::parse(&declared.value).is_ok_and(|form| is(&form)))
        };
        let list = |form: &Extension| matches!(form, Extension::List(unions) if unions.iter().any(Result::is_ok));
        let map = |form: &Extension| matches!(form, Extension::Map(_));
        self.any(|part| declares(part, list)) || self.properties().values().any(|property| declares(property, map))
    }

    /// Returns the declared type. A place that only a `UnionDeclaration` names has none: the API server stores any value there.
    pub(crate) fn shape(&self) -> Option<SchemaShape> {
        if self.any(|part| part.untyped) {
            return None;
        }
        match self.find(|part| part.type_name.as_deref()) {
            Some("object") => Some(SchemaShape::Object),
            Some("array") => Some(SchemaShape::List),
            Some("string" | "integer" | "number" | "boolean") => Some(SchemaShape::Scalar),
            _ if self.any(|part| !part.properties.is_empty()) => Some(SchemaShape::Object),
            _ => None,
        }
    }
}

impl<'s> SchemaReader<'s> {
    /// Collects the schemas that describe one value: a schema, its references and its `allOf`.
    pub(crate) fn view(&self, schema: &'s Schema, place: &Place, around: &Rc<str>) -> Result<View<'s>, SchemaError> {
        let mut parts: Vec<&'s Schema> = vec![schema];
        let mut name = None;
        let mut circular = None;
        let mut next = 0;
        while let Some(part) = parts.get(next).copied() {
            next += 1;
            if let Some(reference) = part.reference.as_deref() {
                let target = if reference == "#" {
                    self.root
                } else {
                    let dangling = || SchemaError::Dangling { place: place.clone(), reference: reference.into() };
                    let (found, target) = self.definitions.get(reference).ok_or_else(dangling)?;
                    name.get_or_insert(found);
                    target
                };
                if parts.iter().any(|known| std::ptr::eq(*known, target)) {
                    circular.get_or_insert(reference);
                } else {
                    parts.push(target);
                }
            }
            parts.extend(&part.all_of);
        }
        if let Some(reference) = circular
            && !parts.iter().any(|part| part.type_name.is_some() || part.items.is_some() || describes(part))
        {
            return Err(SchemaError::Circular { place: place.clone(), reference: reference.into() });
        }
        let mut describing = parts.iter().filter(|part| describes(part));
        let identity: *const Schema = match (describing.next(), describing.next()) {
            (Some(only), None) => *only,
            _ => schema,
        };
        let name = name.map_or_else(|| Rc::clone(around), |name| Rc::from(name.rsplit('.').next().unwrap_or(name)));
        Ok(View { identity, parts, place: place.clone(), name })
    }
}

/// Returns true if a schema describes the fields of an object.
fn describes(part: &Schema) -> bool {
    !part.properties.is_empty() || part.additional_properties.is_some() || part.preserve_unknown_fields
}
