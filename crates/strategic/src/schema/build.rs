//! Builds a [`MergeSchema`] from a schema: reads each type once and follows references, without recursion.

use super::{FieldSchema, KeyDefault, MergeKey, MergeKeys, MergeSchema, NodeId, ObjectSchema, SchemaShape, Strategy};
use hashbrown::HashMap;
use kube_unions_core::schema::{DefaultValue, Definitions, Extension, Place, PlaceStep, Schema};
use serde_json::Value as Json;
use std::collections::{BTreeMap, VecDeque};
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
}

impl SchemaError {
    /// Returns the place of the error in the schema.
    pub fn place(&self) -> &Place {
        match self {
            Self::Dangling { place, .. }
            | Self::Circular { place, .. }
            | Self::Strategy { place, .. }
            | Self::MergeKeys { place, .. } => place,
        }
    }
}

struct PlacePrefix<'p>(&'p Place);

impl std::fmt::Display for PlacePrefix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.steps().is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// The source of the fields that every Kubernetes object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootKind {
    /// An object of a CRD has `apiVersion`, `kind` and `metadata`, whatever its schema says about them.
    Resource,
    /// The schema describes all fields.
    Plain,
}

impl MergeSchema {
    /// Reads the merge rules of a kind.
    pub(crate) fn build(
        kind: &str,
        root: RootKind,
        schema: &Schema,
        definitions: &Definitions,
    ) -> Result<Self, SchemaError> {
        let mut builder = SchemaBuilder {
            root: schema,
            definitions,
            nodes: vec![ObjectSchema { open: true, ..ObjectSchema::default() }, ObjectSchema::default()],
            ids: HashMap::new(),
            queue: VecDeque::new(),
            metadata: None,
        };
        let mut view = builder.view(schema, &Place::root(), &Rc::from(kind))?;
        view.name = Rc::from(kind);
        let union_at_root = view.declares_union();
        builder.ids.insert(view.identity, NodeId::ROOT);
        builder.queue.push_back((NodeId::ROOT, view, root));
        while let Some((id, view, root)) = builder.queue.pop_front() {
            let node = builder.node(&view, root)?;
            if let Some(place) = builder.nodes.get_mut(id.0) {
                *place = node;
            }
        }
        Ok(Self { nodes: builder.nodes, union_at_root })
    }
}

struct SchemaBuilder<'s> {
    root: &'s Schema,
    definitions: &'s Definitions,
    nodes: Vec<ObjectSchema>,
    /// The types so far, by the address of their schema.
    ids: HashMap<*const Schema, NodeId>,
    queue: VecDeque<(NodeId, View<'s>, RootKind)>,
    /// The type of `metadata` in an object of a CRD.
    metadata: Option<NodeId>,
}

/// A schema with the schemas that its references and `allOf` add.
#[derive(Debug, Clone)]
struct View<'s> {
    /// The address that identifies the type.
    identity: *const Schema,
    /// The schema first, then the schemas that it refers to. The first one that defines a keyword wins.
    parts: Vec<&'s Schema>,
    place: Place,
    /// The name of the type, or of the type around it.
    name: Rc<str>,
}

impl<'s> View<'s> {
    fn find<T>(&self, get: impl Fn(&'s Schema) -> Option<T>) -> Option<T> {
        self.parts.iter().find_map(|part| get(part))
    }

    fn any(&self, is: impl Fn(&'s Schema) -> bool) -> bool {
        self.parts.iter().any(|part| is(part))
    }

    fn properties(&self) -> BTreeMap<&'s str, &'s Schema> {
        let mut all = BTreeMap::new();
        for (name, property) in self.parts.iter().flat_map(|part| &part.properties) {
            all.entry(&**name).or_insert(property);
        }
        all
    }

    /// Returns true if the object or its discriminator declares a union.
    fn declares_union(&self) -> bool {
        let declares = |schema: &Schema, is: fn(&Extension) -> bool| {
            schema.unions.iter().any(|declared| Extension::parse(&declared.value).is_ok_and(|form| is(&form)))
        };
        let list = |form: &Extension| matches!(form, Extension::List(unions) if unions.iter().any(Result::is_ok));
        let map = |form: &Extension| matches!(form, Extension::Map(_));
        self.any(|part| declares(part, list)) || self.properties().values().any(|property| declares(property, map))
    }

    /// Returns the declared type. A place that only a `UnionDeclaration` names has none: the API server stores any value there.
    fn shape(&self) -> Option<SchemaShape> {
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

impl<'s> SchemaBuilder<'s> {
    /// Collects the schemas that describe one value: a schema, its references and its `allOf`.
    fn view(&self, schema: &'s Schema, place: &Place, around: &Rc<str>) -> Result<View<'s>, SchemaError> {
        let mut parts: Vec<&'s Schema> = vec![schema];
        let mut name = None;
        let mut circular = None;
        let mut next = 0;
        while let Some(part) = parts.get(next).copied() {
            next += 1;
            if let Some(reference) = part.reference() {
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
            parts.extend(part.all_of());
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

    /// Returns the type of an object, and queues a new type.
    fn id(&mut self, view: View<'s>) -> NodeId {
        let embedded = view.any(|part| part.embedded_resource);
        if !embedded && !view.any(|part| !part.properties.is_empty() || part.additional_properties.is_some()) {
            return NodeId::OPEN;
        }
        if let Some(id) = self.ids.get(&view.identity) {
            return *id;
        }
        let id = NodeId(self.nodes.len());
        self.nodes.push(ObjectSchema::default());
        self.ids.insert(view.identity, id);
        self.queue.push_back((id, view, if embedded { RootKind::Resource } else { RootKind::Plain }));
        id
    }

    fn node(&mut self, view: &View<'s>, root: RootKind) -> Result<ObjectSchema, SchemaError> {
        let mut fields = HashMap::new();
        for (name, property) in view.properties() {
            let inner = self.view(property, &view.place.property(name), &view.name)?;
            fields.insert(Box::from(name), self.field(inner)?);
        }
        let values = match view.find(|part| part.additional_properties.as_deref()) {
            Some(values) => {
                let inner = self.view(values, &view.place.then(PlaceStep::Values), &view.name)?;
                Some(Box::new(self.field(inner)?))
            }
            None => None,
        };
        let described = !fields.is_empty() || values.is_some();
        if root == RootKind::Resource {
            for name in ["apiVersion", "kind"] {
                fields.insert(
                    Box::from(name),
                    FieldSchema { shape: Some(SchemaShape::Scalar), ..FieldSchema::default() },
                );
            }
            let object = self.metadata();
            let metadata = FieldSchema { shape: Some(SchemaShape::Object), object, ..FieldSchema::default() };
            fields.insert(Box::from("metadata"), metadata);
        }
        let open = !described || view.any(|part| part.preserve_unknown_fields || part.untyped);
        Ok(ObjectSchema { name: view.name.as_ref().into(), fields, values, open })
    }

    fn field(&mut self, view: View<'s>) -> Result<FieldSchema, SchemaError> {
        let shape = view.shape();
        let items = match view.find(|part| part.items.as_deref()) {
            Some(items) => Some(self.view(items, &view.place.then(PlaceStep::Items), &view.name)?),
            None => None,
        };
        let keys = keys(&view, items.as_ref(), self.definitions)?;
        let (strategy, retain_keys) = match view.find(|part| part.patch_strategy.as_deref()) {
            Some(said) => strategy(said)
                .ok_or_else(|| SchemaError::Strategy { place: view.place.clone(), strategy: said.into() })?,
            None if self.definitions.is_tagged() => (Strategy::Unsaid, false),
            None => derived(&view, items.as_ref(), keys.is_some()),
        };
        let items = items.map_or(NodeId::OPEN, |items| self.id(items));
        let object = if shape == Some(SchemaShape::List) { NodeId::OPEN } else { self.id(view) };
        Ok(FieldSchema { shape, strategy, retain_keys, keys, object, items })
    }

    /// Returns the type of `metadata`, with the merge rules of the API server.
    fn metadata(&mut self) -> NodeId {
        if let Some(id) = self.metadata {
            return id;
        }
        let id = NodeId(self.nodes.len());
        let owner = NodeId(self.nodes.len() + 1);
        let uid = MergeKeys { all: Box::new([MergeKey { name: "uid".into(), default: None }]) };
        let list = |keys, items| {
            let strategy = Strategy::Merge;
            FieldSchema { shape: Some(SchemaShape::List), strategy, keys, items, ..FieldSchema::default() }
        };
        let fields = [("finalizers", list(None, NodeId::OPEN)), ("ownerReferences", list(Some(uid), owner))];
        let fields = fields.into_iter().map(|(name, field)| (Box::from(name), field)).collect();
        self.nodes.push(ObjectSchema { name: "ObjectMeta".into(), fields, values: None, open: true });
        self.nodes.push(ObjectSchema { name: "OwnerReference".into(), open: true, ..ObjectSchema::default() });
        self.metadata = Some(id);
        id
    }
}

/// Returns true if a schema describes the fields of an object.
fn describes(part: &Schema) -> bool {
    !part.properties.is_empty() || part.additional_properties.is_some() || part.preserve_unknown_fields
}

/// Parses `x-kubernetes-patch-strategy` into the strategy and true for retainKeys.
fn strategy(said: &str) -> Option<(Strategy, bool)> {
    let mut found = (Strategy::Unsaid, false);
    for one in said.split(',').map(str::trim) {
        match one {
            "retainKeys" if !found.1 => found.1 = true,
            "merge" if found.0 == Strategy::Unsaid => found.0 = Strategy::Merge,
            "replace" if found.0 == Strategy::Unsaid => found.0 = Strategy::Replace,
            _ => return None,
        }
    }
    Some(found)
}

/// Derives the strategy of a field without `x-kubernetes-patch-strategy`, and true for retainKeys.
fn derived(view: &View<'_>, items: Option<&View<'_>>, keyed: bool) -> (Strategy, bool) {
    let of_containers =
        items.is_some_and(|items| matches!(items.shape(), Some(SchemaShape::Object | SchemaShape::List)));
    let strategy = match view.find(|part| part.list_type.as_deref()) {
        Some("map") if keyed => Strategy::Merge,
        Some("set") if !of_containers => Strategy::Merge,
        _ if view.find(|part| part.map_type.as_deref()) == Some("atomic") => Strategy::Replace,
        _ => Strategy::Unsaid,
    };
    let of_union = match items {
        Some(items) => items.declares_union(),
        None => view.shape() != Some(SchemaShape::List) && view.declares_union(),
    };
    (strategy, of_union)
}

/// Returns the merge keys of a list: the explicit ones, or the keys of a list of type `map`.
fn keys(
    view: &View<'_>,
    items: Option<&View<'_>>,
    definitions: &Definitions,
) -> Result<Option<MergeKeys>, SchemaError> {
    let of_map: &[Box<str>] = if view.find(|part| part.list_type.as_deref()) == Some("map") {
        view.find(|part| (!part.list_map_keys.is_empty()).then_some(&*part.list_map_keys)).unwrap_or_default()
    } else {
        &[]
    };
    let of_map: Vec<&str> = of_map.iter().map(|key| &**key).collect();
    let recommended = view.find(|part| part.recommended_patch_merge_key.as_deref());
    let all: Vec<&str> = recommended.map(|all| all.split(',').map(str::trim).collect()).unwrap_or_default();
    let said = view.find(|part| part.patch_merge_key.as_deref());
    let derived = of_map.first().copied().filter(|_| !definitions.is_tagged());
    let Some(default) = said.or(all.first().copied()).or(derived) else { return Ok(None) };
    let distinct = |all: &[&str]| {
        let mut names = all.to_vec();
        names.sort_unstable();
        names.dedup();
        names.len() == all.len() && all.len() <= MergeKeys::MOST
    };
    let names = if let Some(text) = recommended {
        if all.first() != Some(&default) || !distinct(&all) {
            return Err(SchemaError::MergeKeys {
                place: view.place.clone(),
                recommended: text.into(),
                key: default.into(),
            });
        }
        all
    } else if of_map.contains(&default) && distinct(&of_map) {
        std::iter::once(default).chain(of_map.into_iter().filter(|key| *key != default)).collect()
    } else {
        vec![default]
    };
    let key = |(position, name): (usize, &str)| {
        let property = items.and_then(|items| items.find(|part| part.properties.get(name)));
        let required = items.is_some_and(|items| items.any(|part| part.required.iter().any(|field| **field == *name)));
        let property = property.filter(|_| position > 0 && !required);
        MergeKey {
            name: name.into(),
            default: property.and_then(|property| key_default(&property.default, definitions.is_published())),
        }
    };
    Ok(Some(MergeKeys { all: names.into_iter().enumerate().map(key).collect() }))
}

fn key_default(default: &DefaultValue, published: bool) -> Option<KeyDefault> {
    let value = match default {
        DefaultValue::Given(value) => value,
        DefaultValue::Zero(value) if !published => value,
        DefaultValue::Absent | DefaultValue::Zero(_) => return None,
    };
    match value {
        Json::Bool(value) => Some(KeyDefault::Bool(*value)),
        Json::Number(value) => Some(KeyDefault::Number(value.to_string().into())),
        Json::String(value) => Some(KeyDefault::String(value.as_str().into())),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}
