//! Compiles a schema with declarations into a [`Plan`], and checks every declaration.
//!
//! A declaration that fails a check is left out and reported, without an effect on others. This module must not know
//! objects. `check` has the checks of one declaration.

mod check;
mod fault;
mod misplaced;
mod missing;
mod surroundings;
mod template;

pub use fault::PlaceFault;
pub(crate) use missing::not_beside;

use super::Union;
use super::arena::ObjectCounts;
use super::plan::{
    FieldNode, ItemKeyDefault, KnownFields, ListNode, MapNode, Node, NodeIndex, ObjectNode, Plan, Role, ValueRules,
};
use crate::declaration::FaultKind;
use crate::schema::{Declared, DefaultValue, Extension, Origin, Place, Schema, Severity, Source, WrittenUnion};
use check::{Faults, NO_MEMBERS, PreparedObject};
use fault::Flaw;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use surroundings::{SchemaStep, Surroundings};
use template::TemplateNotes;

/// The result of compiling a schema.
#[derive(Debug, Default)]
pub struct Compiled {
    /// The unions that are in force.
    pub plan: Plan,
    /// The faults of declarations, by place.
    pub faults: Vec<PlaceFault>,
}

/// Compiles the unions declared on a schema.
///
/// With `status_subresource`, the fields below `.status` are a part of their own: only the status subresource changes them,
/// and it changes nothing else.
pub fn compile(schema: &Schema, status_subresource: bool) -> Compiled {
    let mut compiler = UnionCompiler::default();
    let root = Surroundings::default();
    compiler.refuse_outside_properties(schema, &root);
    let main = compiler.object(schema, &root, status_subresource);
    let status = schema.properties.get("status").filter(|_| status_subresource).and_then(|status| {
        let child = compiler.node(status, &root.inwards(SchemaStep::Property("status")))?;
        let field = FieldNode { child: Some(child), ..FieldNode::new("status", Role::Bystander) };
        Some(compiler.add(Node::Object(ObjectNode { fields: Box::new([field]), ..ObjectNode::default() })))
    });
    for (place, origin, flaw) in std::mem::take(&mut compiler.templates).into_flaws() {
        compiler.report(|| place, Source::Declaration, Some(origin), flaw);
    }
    let UnionCompiler { nodes, unions, mut faults, counts, .. } = compiler;
    faults.extend(counts.into_values().filter_map(|(_, more)| more).map(MoreFaults::into_fault));
    faults.sort();
    Compiled { plan: Plan { nodes: nodes.into(), unions: unions.into(), main, status }, faults }
}

/// Most unions of one version. Every write reads each place with a union, and presets for the largest built-in types have a
/// few dozen.
const MOST_UNIONS: usize = 1024;

/// Longest path of a union, in bytes. Every violation repeats it.
const LONGEST_PATH: usize = 4096;

/// Most faults that are reported of the CRD itself, and of each `UnionDeclaration`. The rest is counted.
const MOST_FAULTS: usize = 64;

const NOT_A_PROPERTY: &str = "`fieldMembers` must stand on a string property, beside the fields it names";

#[derive(Default)]
struct UnionCompiler {
    nodes: Vec<Node>,
    unions: Vec<Union>,
    faults: Vec<PlaceFault>,
    /// The number of faults of each `UnionDeclaration`, and under `None` of the CRD itself, with those that are not reported.
    counts: BTreeMap<Option<Arc<str>>, (usize, Option<MoreFaults>)>,
    templates: TemplateNotes,
}

/// Faults that are counted but not reported.
struct MoreFaults {
    first: PlaceFault,
    count: usize,
    severity: Severity,
}

impl MoreFaults {
    fn into_fault(self) -> PlaceFault {
        let PlaceFault { place, source, origin, .. } = self.first;
        Flaw::more(self.severity, self.count).at(place, source, origin)
    }
}

impl UnionCompiler {
    fn add(&mut self, node: Node) -> NodeIndex {
        let id = NodeIndex(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        id
    }

    fn fault(&mut self, place: impl FnOnce() -> Place, declared: &Declared, flaw: Flaw) {
        self.report(place, declared.source, declared.origin.clone(), flaw);
    }

    /// Reports a note. Those that the unions of a pod template share are kept for the end, by the list that they are about.
    fn note(&mut self, place: impl Fn() -> Place, declared: &Declared, list: Option<String>, flaw: Flaw) {
        if let Some(flaw) = self.templates.keep(&place, declared, list, flaw) {
            self.fault(place, declared, flaw);
        }
    }

    /// Reports a fault, or counts it if its declaration has too many. `place` is called only for a reported fault.
    fn report(&mut self, place: impl FnOnce() -> Place, source: Source, origin: Option<Origin>, flaw: Flaw) {
        let of = origin.as_ref().map(|origin| Arc::clone(&origin.declaration));
        let (count, more) = self.counts.entry(of).or_default();
        *count = count.saturating_add(1);
        if *count <= MOST_FAULTS {
            self.faults.push(flaw.at(place(), source, origin));
            return;
        }
        let severity = flaw.kind.severity();
        let more =
            more.get_or_insert_with(|| MoreFaults { first: flaw.at(place(), source, origin), count: 0, severity });
        more.count = more.count.saturating_add(1);
        more.severity = more.severity.min(severity);
    }

    /// Compiles a node and everything below it. Returns `None` if there is no union. A declaration of the 2022 form on the
    /// node itself belongs to the enclosing object and is compiled there.
    fn node(&mut self, schema: &Schema, at: &Surroundings<'_>) -> Option<NodeIndex> {
        if schema.embedded_resource {
            self.report_unreachable(schema, at);
            return None;
        }
        if !schema.properties.is_empty() {
            return self.object(schema, at, false);
        }
        // No declaration can be valid without fields. This reports why.
        self.declare(schema, at, &mut BTreeMap::new());
        if let Some(items) = &schema.items {
            // An item is read with so many keys. With more, it counts as one without keys.
            let keys =
                Some(schema.list_keys()).filter(|keys| keys.len() <= ObjectCounts::MOST_KEYS).unwrap_or_default();
            let keyless = at.keyless.or_else(|| keys.is_empty().then_some(at));
            let inside = Surroundings { keys, keyless, ..at.inwards(SchemaStep::Items) };
            self.refuse_outside_properties(items, &inside);
            let items = self.node(items, &inside)?;
            let list =
                ListNode { items, keyed: !keys.is_empty(), atomic: schema.is_atomic(), nullable: schema.nullable };
            return Some(self.add(Node::List(list)));
        }
        let values = schema.additional_properties.as_deref()?;
        let inside = at.inwards(SchemaStep::Values);
        self.refuse_outside_properties(values, &inside);
        let values = self.node(values, &inside)?;
        Some(self.add(Node::Map(MapNode { values, atomic: schema.is_atomic(), nullable: schema.nullable })))
    }

    fn object(&mut self, schema: &Schema, at: &Surroundings<'_>, without_status: bool) -> Option<NodeIndex> {
        let first_union = u32::try_from(self.unions.len()).unwrap_or(u32::MAX);
        let mut roles = BTreeMap::new();
        self.declare(schema, at, &mut roles);
        let unions = self.unions.get(usize::try_from(first_union).unwrap_or(usize::MAX)..).unwrap_or_default();
        let union_count = unions.len();
        let booleans: Vec<bool> = unions.iter().map(Union::is_boolean).collect();
        let required =
            (0..u8::MAX).zip(unions).filter(|(_, union)| union.is_required()).map(|(number, _)| number).collect();
        let mut fields = BTreeMap::new();
        for (name, role) in &roles {
            let member = match role {
                Role::Member { union, index } => unions.get(usize::from(*union)).and_then(|union| union.member(*index)),
                Role::Bystander | Role::Discriminator { .. } => None,
            };
            let is_boolean =
                matches!(role, Role::Discriminator { union } if booleans.get(usize::from(*union)) == Some(&true));
            let values = member.map(|member| ValueRules {
                empty_is_unset: member.empty_is_unset,
                unowned: member.unowned.clone(),
                nullable: member.nullable,
            });
            let values = values.unwrap_or_default();
            fields.insert(name.clone(), FieldNode { values, is_boolean, ..FieldNode::new(name, *role) });
        }
        let is_other = |name: &str| !roles.contains_key(name) && !at.keys.iter().any(|key| **key == *name);
        let known = if schema.untyped || schema.type_name.is_none() {
            KnownFields::Nothing
        } else if schema.properties.keys().any(|name| is_other(name)) {
            KnownFields::OtherFields
        } else {
            KnownFields::Unions
        };
        for (name, property) in &schema.properties {
            if without_status && &**name == "status" {
                continue;
            }
            if let Some(child) = self.node(property, &at.inwards(SchemaStep::Property(name))) {
                bystander(&mut fields, name).child = Some(child);
            }
        }
        if fields.is_empty() {
            return None;
        }
        let mut key_defaults = Vec::new();
        for (position, key) in (0_u8..).zip(at.keys) {
            let field = bystander(&mut fields, key);
            field.key = Some(position);
            field.is_string = schema.properties.get(key).is_some_and(Schema::is_string);
            key_defaults.extend(schema.properties.get(key).and_then(key_default).map(|default| (position, default)));
        }
        Some(self.add(Node::Object(ObjectNode {
            fields: fields.into_values().collect(),
            first_union,
            union_count: u8::try_from(union_count).unwrap_or(u8::MAX),
            required,
            key_defaults: key_defaults.into(),
            atomic: schema.is_atomic(),
            nullable: schema.nullable,
            known,
        })))
    }

    /// Compiles the unions of one object, those of better sources and then of earlier `UnionDeclaration`s first. If two
    /// declarations use the same field, the first one gets it.
    fn declare(&mut self, schema: &Schema, at: &Surroundings<'_>, roles: &mut BTreeMap<Box<str>, Role>) {
        let own = schema.unions.iter().filter(|declared| !declared.value.is_object()).map(|declared| (None, declared));
        let of_properties = schema.properties.iter().flat_map(|(name, property)| {
            let maps = property.unions.iter().filter(|declared| declared.value.is_object());
            maps.map(move |declared| (Some(&**name), declared))
        });
        let mut all: Vec<_> = own.chain(of_properties).collect();
        if all.is_empty() {
            return;
        }
        all.sort_by(|(_, one), (_, other)| (one.source, &one.origin).cmp(&(other.source, &other.origin)));
        let first = self.unions.len();
        let mut object = PreparedObject::new(schema);
        for (discriminator, declared) in all {
            let place = || discriminator.map_or_else(|| at.place(), |name| at.place().property(name));
            if at.length > LONGEST_PATH {
                let message = "the path of this place has more than 4,096 bytes; a union needs a shorter one";
                self.fault(place, declared, Flaw::new(FaultKind::LongPath, message));
                continue;
            }
            let on = discriminator.and_then(|name| schema.properties.get(name)).filter(|on| on.is_object());
            if let Some(object) = on.filter(|_| declared.source != Source::Declaration) {
                let message = misplaced::on_an_object(&place(), object, declared);
                self.fault(place, declared, Flaw::new(FaultKind::NotAProperty, message));
                continue;
            }
            let parsed = match Extension::parse(&declared.value) {
                Ok(parsed) => parsed,
                Err(error) => {
                    self.fault(place, declared, Flaw::new(FaultKind::MalformedExtension, error.to_string()));
                    continue;
                }
            };
            let unions: Vec<_> = match (parsed, discriminator) {
                (Extension::List(unions), _) if unions.is_empty() => {
                    vec![Err(Faults::of(FaultKind::NoMembers, NO_MEMBERS))]
                }
                (Extension::List(unions), _) => {
                    let malformed = |error| Faults::of(FaultKind::MalformedExtension, format!("{error}"));
                    unions.into_iter().map(|union| union.map_err(malformed)).collect()
                }
                (Extension::Map(union), Some(name)) => {
                    vec![Ok(WrittenUnion { discriminator: Some(name.into()), ..union })]
                }
                (Extension::Map(_), None) => vec![Err(Faults::of(FaultKind::NotAProperty, NOT_A_PROPERTY))],
            };
            for (position, union) in unions.into_iter().enumerate() {
                let union = match union {
                    Ok(union) if declared.source == Source::Declaration => {
                        let (rest, note) = missing::fit(union, &mut object);
                        if let Some(note) = note {
                            self.fault(place, declared, note);
                        }
                        let Some(rest) = rest else { continue };
                        Ok(rest)
                    }
                    other => other,
                };
                let path = || at.place().to_string();
                let checked = union.and_then(|union| check::union(union, declared, &mut object, path));
                let checked = checked.and_then(|union| check::published(union, schema));
                match checked.and_then(|union| check::free(union, roles)) {
                    Ok(union) => {
                        let number = u8::try_from(self.unions.len().saturating_sub(first)).ok();
                        let message = match number.filter(|number| *number < u8::MAX) {
                            None => "more than 255 unions are declared on one object",
                            Some(_) if self.unions.len() >= MOST_UNIONS => {
                                "more than 1,024 unions are declared in this version, and this one is left out; remove \
                                 some, or split the kind"
                            }
                            Some(number) => {
                                self.warn(&union, schema, place, declared, at);
                                claim(&union, number, roles);
                                self.unions.push(union);
                                continue;
                            }
                        };
                        self.fault(place, declared, Flaw::new(FaultKind::TooManyUnions, message));
                    }
                    Err(faults) => {
                        faults
                            .into_flaws()
                            .for_each(|flaw| self.fault(place, declared, flaw.within(declared, position)));
                    }
                }
            }
        }
    }

    /// Reports warnings: declarations that are valid but may surprise.
    fn warn(
        &mut self,
        union: &Union,
        schema: &Schema,
        place: impl Fn() -> Place,
        declared: &Declared,
        at: &Surroundings<'_>,
    ) {
        let of_declaration = declared.source == Source::Declaration;
        let advised = |message: String, advice: &str| if of_declaration { message } else { message + advice };
        if let Some(list) = at.keyless {
            let list = list.place().to_string();
            let (kind, members) = if of_declaration {
                (FaultKind::KeylessListOfTarget, "its members can be rejected but not cleared")
            } else {
                (FaultKind::KeylessList, "members in it can be rejected but not cleared")
            };
            let message = format!("stands inside the list `{list}`, whose items have no keys: {members}");
            let message = advised(message, "; give the list `x-kubernetes-list-type: map`");
            self.note(&place, declared, Some(list), Flaw::new(kind, message));
        }
        let discriminator = check::discriminator_in(union, schema);
        let values = discriminator.and_then(|(_, discriminator)| discriminator.allowed_texts());
        // A discriminator without an enum may have values that select nothing.
        let has_one_value = union.discriminator().is_none() || values.is_some_and(|values| values.len() < 2);
        if let ([choice], true) = (union.choices(), has_one_value)
            && let [member] = choice.members()
        {
            let message = format!(
                "the union has the only member `{}`, so it keeps nothing apart; add the others, or remove the union",
                member.name()
            );
            self.fault(&place, declared, Flaw::new(FaultKind::OnlyMember, message));
        }
        let Some((name, discriminator)) = discriminator else { return };
        if discriminator.default != DefaultValue::Absent {
            let message = format!(
                "the discriminator `{name}` has a default: a client that omits the field chooses the default, which clears the other \
                 members"
            );
            let message = advised(message, "; make it required instead");
            self.fault(&place, declared, Flaw::new(FaultKind::DefaultedDiscriminator, message));
        }
        if !discriminator.has_enum() && !discriminator.untyped && !union.is_boolean() {
            let (kind, rest) = if of_declaration {
                (FaultKind::OpenDiscriminatorOfTarget, ", so that the API server itself accepts every value")
            } else {
                (FaultKind::OpenDiscriminator, "; list its values there so that clients know them")
            };
            let message = format!("the discriminator `{name}` has no enum{rest}");
            self.note(&place, declared, None, Flaw::new(kind, message));
        }
    }

    /// Rejects the 2022 form outside properties: the items of a list and the values of a map have no fields next to them.
    fn refuse_outside_properties(&mut self, schema: &Schema, at: &Surroundings<'_>) {
        for declared in schema.unions.iter().filter(|declared| declared.value.is_object()) {
            let message = if schema.is_object() {
                misplaced::on_an_object(&at.place(), schema, declared)
            } else {
                NOT_A_PROPERTY.to_owned()
            };
            self.fault(|| at.place(), declared, Flaw::new(FaultKind::NotAProperty, message));
        }
    }

    fn report_unreachable(&mut self, schema: &Schema, at: &Surroundings<'_>) {
        schema.walk(&mut |inside, node| {
            let place = || at.place().steps().iter().chain(inside.steps()).cloned().collect();
            for declared in &node.unions {
                let message =
                    "stands inside an embedded resource, where unions have no effect; declare it for the kind of that resource";
                self.fault(place, declared, Flaw::new(FaultKind::EmbeddedResource, message));
            }
        });
    }
}

/// Assigns the fields of a union, which has this number in its object.
fn claim(union: &Union, number: u8, roles: &mut BTreeMap<Box<str>, Role>) {
    for (index, member) in (0_u8..).zip(union.members()) {
        roles.insert(member.into(), Role::Member { union: number, index });
    }
    if let Some(name) = union.discriminator() {
        roles.insert(name.into(), Role::Discriminator { union: number });
    }
}

/// Returns the default of a key that the API server fills in.
fn key_default(key: &Schema) -> Option<ItemKeyDefault> {
    match &key.default {
        DefaultValue::Given(Value::String(text)) => Some(ItemKeyDefault::Text(text.as_str().into())),
        DefaultValue::Given(literal @ (Value::Number(_) | Value::Bool(_))) => {
            Some(ItemKeyDefault::Literal(literal.to_string().into()))
        }
        DefaultValue::Given(_) | DefaultValue::Zero(_) | DefaultValue::Absent => None,
    }
}

fn bystander<'f>(fields: &'f mut BTreeMap<Box<str>, FieldNode>, name: &str) -> &'f mut FieldNode {
    fields.entry(name.into()).or_insert_with(|| FieldNode::new(name, Role::Bystander))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_plan_holds_nothing_but_the_ways_to_unions() {
        let union = json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "object"}, "c": {}},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {"type": "string"}}},
                "list": {"type": "array", "items": union}}},
            "status": union}}))
        .unwrap();
        let Compiled { plan, faults } = compile(&schema, true);
        let places: Vec<_> = plan.unions().iter().map(Union::path).collect();
        assert_eq!(places, ["spec.list[*]", "status"]);
        let names: Vec<Vec<&str>> = plan
            .nodes
            .iter()
            .filter_map(|node| match node {
                Node::Object(node) => Some(node.fields.iter().map(|field| &*field.name).collect()),
                Node::List(_) | Node::Map(_) => None,
            })
            .collect();
        assert_eq!(names, [vec!["a", "b"], vec!["list"], vec!["spec"], vec!["a", "b"], vec!["status"]]);
        assert_eq!(faults.len(), 1, "a keyless list is worth a warning: {faults:?}");
    }

    #[test]
    fn a_schema_without_unions_has_an_empty_plan() {
        let schema: Schema =
            serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object"}}})).unwrap();
        let plan = compile(&schema, true).plan;
        assert!(plan.nodes.is_empty() && plan.unions().is_empty());
    }
}
