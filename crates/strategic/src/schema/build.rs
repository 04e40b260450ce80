//! Builds a [`MergeSchema`] from a schema: reads each type once and follows references, without recursion.

use super::view::{SchemaError, SchemaReader, View};
use super::{FieldSchema, KeyDefault, MergeKey, MergeKeys, MergeSchema, NodeId, ObjectSchema, SchemaShape, Strategy};
use hashbrown::HashMap;
use kube_unions_core::schema::{DefaultValue, Definitions, Place, PlaceStep, Schema};
use serde_json::Value as Json;
use std::collections::VecDeque;
use std::rc::Rc;

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
            reader: SchemaReader { root: schema, definitions },
            nodes: vec![ObjectSchema { open: true, ..ObjectSchema::default() }, ObjectSchema::default()],
            ids: HashMap::new(),
            queue: VecDeque::new(),
            metadata: None,
        };
        let mut view = builder.reader.view(schema, &Place::root(), &Rc::from(kind))?;
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
    reader: SchemaReader<'s>,
    nodes: Vec<ObjectSchema>,
    /// The types so far, by the address of their schema.
    ids: HashMap<*const Schema, NodeId>,
    queue: VecDeque<(NodeId, View<'s>, RootKind)>,
    /// The type of `metadata` in an object of a CRD.
    metadata: Option<NodeId>,
}

impl<'s> SchemaBuilder<'s> {
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
            let inner = self.reader.view(property, &view.place.property(name), &view.name)?;
            fields.insert(Box::from(name), self.field(inner)?);
        }
        let values = match view.find(|part| part.additional_properties.as_deref()) {
            Some(values) => {
                let inner = self.reader.view(values, &view.place.then(PlaceStep::Values), &view.name)?;
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
            Some(items) => Some(self.reader.view(items, &view.place.then(PlaceStep::Items), &view.name)?),
            None => None,
        };
        let keys = keys(&view, items.as_ref(), self.reader.definitions)?;
        let (strategy, retain_keys) = match view.find(|part| part.patch_strategy.as_deref()) {
            Some(said) => strategy(said)
                .ok_or_else(|| SchemaError::Strategy { place: view.place.clone(), strategy: said.into() })?,
            None if self.reader.definitions.is_tagged() => (Strategy::Unsaid, false),
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
        let uid = MergeKeys { all: Box::new([MergeKey { name: "uid".into(), default: None }]), published: None };
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
        _ if keyed && view.any(|part| !part.declared_keys.is_empty()) => Strategy::Merge,
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
    let declared = view.find(|part| (!part.declared_keys.is_empty()).then_some(&*part.declared_keys));
    let of_map: &[Box<str>] = if let Some(declared) = declared {
        declared
    } else if view.find(|part| part.list_type.as_deref()) == Some("map") {
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
    let all: Box<[MergeKey]> = names.into_iter().enumerate().map(key).collect();
    let published = (said.is_some() && recommended.is_none() && all.len() > 1).then(|| {
        let alone = MergeKey { name: default.into(), default: None };
        Box::new(MergeKeys { all: Box::new([alone]), published: None })
    });
    Ok(Some(MergeKeys { all, published }))
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
