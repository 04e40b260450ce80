//! Reads [`ApplyTypes`] from a schema as the API server does: each type once, and without recursion.

use super::{ApplyType, ApplyTypes, ListTopology, ListType, MapType, ScalarType, TypeRef};
use crate::schema::{RootKind, SchemaError, SchemaReader, View};
use crate::server_side_apply::path::Literal;
use hashbrown::HashMap;
use kube_unions_core::schema::{DefaultValue, Definitions, Place, PlaceStep, Schema};
use std::collections::VecDeque;
use std::rc::Rc;

/// The types that the API server does not read from their schemas.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The fields of `metadata` that hold a scalar.
const METADATA_SCALARS: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

struct TypeBuilder<'s> {
    reader: SchemaReader<'s>,
    types: Vec<ApplyType>,
    /// The types so far: the address of the schema, the type of the map where it is used, and true if unknown fields are kept.
    ids: HashMap<(*const Schema, Option<&'s str>, bool), TypeRef>,
    queue: VecDeque<(TypeRef, View<'s>, RootKind, bool)>,
    metadata: Option<TypeRef>,
}

impl ApplyTypes {
    pub(in super::super) fn build(
        kind: &str,
        root: RootKind,
        schema: &Schema,
        definitions: &Definitions,
    ) -> Result<Self, SchemaError> {
        let any = |values, atomic| ApplyType {
            scalar: Some(ScalarType::Any),
            list: Some(ListType { items: TypeRef::ATOMIC, topology: ListTopology::Atomic }),
            map: Some(MapType { fields: HashMap::new(), values: Some(values), atomic }),
        };
        // INVARIANT: in the order of the constants of `TypeRef`.
        let types = vec![
            any(TypeRef::ATOMIC, true),
            any(TypeRef::DEDUCED, false),
            ApplyType::of_scalar(ScalarType::Any),
            ApplyType::of_scalar(ScalarType::String),
            ApplyType::default(),
        ];
        let reader = SchemaReader { root: schema, definitions };
        let mut builder = TypeBuilder { reader, types, ids: HashMap::new(), queue: VecDeque::new(), metadata: None };
        let view = reader.view(schema, &Place::root(), &Rc::from(kind))?;
        let keeps_unknown = view.any(|part| part.preserve_unknown_fields);
        builder.queue.push_back((TypeRef::ROOT, view, root, keeps_unknown));
        while let Some((of, view, root, keeps_unknown)) = builder.queue.pop_front() {
            let read = builder.read(&view, root, keeps_unknown)?;
            if let Some(place) = builder.types.get_mut(of.0) {
                *place = read;
            }
        }
        Ok(Self { types: builder.types })
    }
}

impl ApplyType {
    fn of_scalar(scalar: ScalarType) -> Self {
        Self { scalar: Some(scalar), ..Self::default() }
    }

    fn of_map<'n>(fields: impl IntoIterator<Item = (&'n str, TypeRef)>, values: Option<TypeRef>) -> Self {
        let fields = fields.into_iter().map(|(name, of)| (Box::from(name), of)).collect();
        Self { map: Some(MapType { fields, values, atomic: false }), ..Self::default() }
    }

    fn of_list(items: TypeRef, topology: ListTopology) -> Self {
        Self { list: Some(ListType { items, topology }), ..Self::default() }
    }
}

impl<'s> TypeBuilder<'s> {
    fn push(&mut self, new: ApplyType) -> TypeRef {
        self.types.push(new);
        TypeRef(self.types.len() - 1)
    }

    /// Returns the type of a schema inside another one, and queues a new type.
    fn id(
        &mut self,
        schema: &'s Schema,
        step: PlaceStep,
        around: &View<'s>,
        kept: bool,
    ) -> Result<TypeRef, SchemaError> {
        let view = self.reader.view(schema, &around.place.then(step), &around.name)?;
        let refers_to =
            |name: &str| view.any(|part| part.reference.as_deref().is_some_and(|reference| reference.ends_with(name)));
        if view.any(|part| part.untyped) {
            return Ok(TypeRef::DEDUCED);
        } else if refers_to(QUANTITY) {
            return Ok(TypeRef::SCALAR);
        } else if refers_to(RAW_EXTENSION) {
            return Ok(TypeRef::ATOMIC);
        }
        // A type of its own does not keep unknown fields because the schema around the reference does.
        let kept = kept && std::ptr::eq(view.identity, schema) || view.any(|part| part.preserve_unknown_fields);
        let key = (view.identity, view.find(|part| part.map_type.as_deref()), kept);
        if let Some(known) = self.ids.get(&key) {
            return Ok(*known);
        }
        let new = self.push(ApplyType::default());
        self.ids.insert(key, new);
        let root = if view.any(|part| part.embedded_resource) { RootKind::Resource } else { RootKind::Plain };
        self.queue.push_back((new, view, root, kept));
        Ok(new)
    }

    fn read(&mut self, view: &View<'s>, root: RootKind, kept: bool) -> Result<ApplyType, SchemaError> {
        let named = view.find(|part| part.type_name.as_deref());
        Ok(match named {
            Some("object") => ApplyType { map: Some(self.map(view, root, kept)?), ..ApplyType::default() },
            Some("array") => ApplyType { list: Some(self.list(view, kept)?), ..ApplyType::default() },
            Some("integer" | "number") => ApplyType::of_scalar(ScalarType::Number),
            Some("boolean") => ApplyType::of_scalar(ScalarType::Boolean),
            Some("string") => match view.find(|part| part.format.as_deref()) {
                None | Some("byte") => ApplyType::of_scalar(ScalarType::String),
                Some(_) => ApplyType::of_scalar(ScalarType::Any),
            },
            Some(_) => ApplyType::of_scalar(ScalarType::Any),
            None => ApplyType {
                scalar: Some(ScalarType::Any),
                list: Some(self.list(view, kept)?),
                map: Some(self.map(view, root, kept)?),
            },
        })
    }

    fn map(&mut self, view: &View<'s>, root: RootKind, kept: bool) -> Result<MapType, SchemaError> {
        let mut fields = HashMap::new();
        for (name, property) in view.properties() {
            // Only a `UnionDeclaration` names an untyped property.
            if !property.untyped {
                let step = PlaceStep::Property(name.into());
                fields.insert(Box::from(name), self.id(property, step, view, kept)?);
            }
        }
        if root == RootKind::Resource {
            fields.insert("apiVersion".into(), TypeRef::STRING);
            fields.insert("kind".into(), TypeRef::STRING);
            fields.insert("metadata".into(), self.metadata());
        }
        let values = match view.find(|part| part.additional_properties.as_deref()) {
            Some(values) => Some(self.id(values, PlaceStep::Values, view, kept)?),
            None => (kept || fields.is_empty()).then_some(TypeRef::DEDUCED),
        };
        let atomic = match view.find(|part| part.map_type.as_deref()) {
            None | Some("granular") => false,
            Some("atomic") => true,
            Some(found) => return Err(keyword(view, "x-kubernetes-map-type", found, "`atomic` or `granular`")),
        };
        Ok(MapType { fields, values, atomic })
    }

    fn list(&mut self, view: &View<'s>, kept: bool) -> Result<ListType, SchemaError> {
        let schema = view.find(|part| part.items.as_deref());
        let items = match schema {
            Some(items) => self.id(items, PlaceStep::Items, view, kept)?,
            None => TypeRef::ATOMIC,
        };
        let strategy = view.find(|part| part.patch_strategy.as_deref()).unwrap_or_default();
        let merges = strategy.split(',').any(|one| one.trim() == "merge");
        let own_keys: Vec<&str> = view.parts.iter().flat_map(|part| &part.list_map_keys).map(|key| &**key).collect();
        let keys = match view.find(|part| part.list_type.as_deref()) {
            Some("set") => Vec::new(),
            Some("map") if !own_keys.is_empty() => own_keys,
            None if merges => view.find(|part| part.patch_merge_key.as_deref()).into_iter().collect(),
            None | Some("atomic") => return Ok(ListType { items, topology: ListTopology::Atomic }),
            Some(found) => {
                let allowed = "`atomic`, `set`, or `map` with x-kubernetes-list-map-keys";
                return Err(keyword(view, "x-kubernetes-list-type", found, allowed));
            }
        };
        if keys.is_empty() {
            return Ok(ListType { items, topology: ListTopology::Set });
        }
        let of_items = match schema {
            Some(items) => Some(self.reader.view(items, &view.place.then(PlaceStep::Items), &view.name)?),
            None => None,
        };
        let key = |name: &str| {
            let property = of_items.as_ref().and_then(|items| items.find(|part| part.properties.get(name)));
            let default = property.and_then(|property| match &property.default {
                DefaultValue::Given(value) | DefaultValue::Zero(value) => Literal::from_json(value),
                DefaultValue::Absent => None,
            });
            (Box::from(name), default.filter(|default| *default != Literal::Null))
        };
        Ok(ListType { items, topology: ListTopology::Map(keys.into_iter().map(key).collect()) })
    }

    /// Returns the type of `metadata`, whatever a CRD says about it.
    fn metadata(&mut self) -> TypeRef {
        if let Some(known) = self.metadata {
            return known;
        }
        let texts = self.push(ApplyType::of_map([], Some(TypeRef::STRING)));
        let finalizers = self.push(ApplyType::of_list(TypeRef::STRING, ListTopology::Set));
        let uid = vec![(Box::from("uid"), Some(Literal::String(Box::default())))];
        let owners = self.push(ApplyType::of_list(TypeRef::ATOMIC, ListTopology::Map(uid)));
        let managed = self.push(ApplyType::of_list(TypeRef::ATOMIC, ListTopology::Atomic));
        let fields = [
            ("annotations", texts),
            ("labels", texts),
            ("finalizers", finalizers),
            ("ownerReferences", owners),
            ("managedFields", managed),
        ];
        let scalars = METADATA_SCALARS.map(|name| (name, TypeRef::SCALAR));
        let metadata = self.push(ApplyType::of_map(fields.into_iter().chain(scalars), None));
        *self.metadata.insert(metadata)
    }
}

fn keyword(view: &View<'_>, keyword: &'static str, found: &str, allowed: &'static str) -> SchemaError {
    SchemaError::Keyword { place: view.place.clone(), keyword, found: found.into(), allowed }
}
