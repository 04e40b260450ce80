//! Suggests unions that no validation enforces: those of types of Kubernetes, those that a description states, and enums whose values
//! are names of fields.

use crate::answer::{Evidence, EvidenceKind, ProposedChoice, ProposedMember, ProposedUnion};
use crate::candidates::{VisitedObject, objects};
use crate::embedded::EmbeddedTypes;
use crate::exclusions::ExclusionGraph;
use crate::node::SchemaNode;
use crate::proposal::Proposals;
use crate::sentences::{SentenceReader, Statement};
use kube_unions_core::union::is_empty_value;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Statements = [(Statement, Evidence)];

impl Proposals {
    /// Returns unions that descriptions state or that an enum suggests, and that have no member of a union that is proven. A
    /// sentence may be wrong, or may mean something else.
    pub fn suggestions(&self, schema: &Value) -> Vec<ProposedUnion> {
        let Some(reader) = SentenceReader::find() else { return Vec::new() };
        let (types, mut suggested) = (EmbeddedTypes::new(), Vec::new());
        for object in objects(schema).0 {
            let path = object.place.to_string();
            let is_below = |above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(['.', '[']));
            // A controller writes the status.
            if object.odd || path == "status" || is_below("status") {
                continue;
            }
            // Most of a pod template is declared as a whole.
            if self.pod_templates.iter().any(|it| is_below(it)) {
                suggested.extend(types.beside_templates(&object));
                continue;
            }
            let mut used: BTreeSet<String> = self
                .unions
                .iter()
                .filter(|union| union.path == path)
                .flat_map(|union| union.members.iter().chain(&union.discriminator).cloned())
                .collect();
            let statements = reader.statements(&object);
            let stated = object.by_values(&statements).into_iter().chain(object.by_exclusion(&statements));
            for union in types.union(&object).into_iter().chain(stated) {
                if union.members.iter().chain(&union.discriminator).all(|name| !used.contains(name)) {
                    used.extend(union.members.iter().cloned());
                    suggested.push(union);
                }
            }
        }
        suggested
    }
}

impl VisitedObject<'_> {
    /// Returns the groups of fields that exclude each other, and nothing else.
    fn by_exclusion(&self, statements: &Statements) -> Vec<ProposedUnion> {
        let mut graph = ExclusionGraph::new(self.node.properties().map(|(name, _)| name.to_owned()).collect());
        let mut about: Vec<(BTreeSet<usize>, &Evidence)> = Vec::new();
        let mut groups: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (statement, _) in statements {
            if let Statement::Member(group, field) = statement {
                groups.entry(group).or_default().insert(*field);
            }
        }
        for (statement, evidence) in statements {
            let sides = if let Statement::Excludes(ones, others) = statement {
                Some((ones, others))
            } else if let Statement::Member(group, _) = statement {
                groups.get(&**group).map(|members| (members, members))
            } else {
                None
            };
            let Some((ones, others)) = sides else { continue };
            let pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (*one, *other)));
            pairs.filter(|(one, other)| one != other).for_each(|(one, other)| graph.add(one, other));
            about.push((ones | others, evidence));
        }
        for (one, other) in self.precedence(statements, &mut about) {
            graph.add(one, other);
        }
        about.retain(|(fields, _)| fields.len() > 1);
        // A sentence may leave out that the fields of its list exclude each other.
        let mut whole = graph.clone();
        for (fields, _) in &about {
            for field in fields {
                fields.iter().filter(|other| *other != field).for_each(|other| whole.add(*field, *other));
            }
        }
        // A field that is set with others excludes what they exclude.
        for (statement, evidence) in statements {
            let Statement::Together(fields) = statement else { continue };
            let excludes = |other: &usize| fields.iter().any(|field| graph.has(*field, *other));
            let others: Vec<usize> = (0..graph.fields.len()).filter(excludes).collect();
            for field in fields {
                for other in &others {
                    graph.add(*field, *other);
                }
            }
            about.push((fields.clone(), evidence));
        }
        let unions = graph.connected().into_iter().filter_map(|connected| {
            let groups = graph.split(&connected).or_else(|| whole.split(&connected))?;
            let groups = groups.iter().map(|group| graph.names(group)).collect();
            let members = graph.names(&connected);
            let is_inside = |fields: &BTreeSet<usize>| fields.iter().all(|field| connected.contains(field));
            let mut evidence: Vec<Evidence> = Vec::new();
            for (_, stated) in about.iter().filter(|(fields, _)| is_inside(fields)) {
                evidence.extend((!evidence.contains(stated)).then(|| (*stated).clone()));
            }
            let is_free = members.iter().all(|member| self.is_free(member));
            is_free.then(|| self.suggested(None, ProposedChoice::of_groups(groups), evidence))
        });
        unions.collect()
    }

    /// Returns the pairs of fields of which one is used in place of the other one, also by way of a third one. Lists and maps may be
    /// merged.
    fn precedence<'t>(
        &self,
        statements: &'t Statements,
        about: &mut Vec<(BTreeSet<usize>, &'t Evidence)>,
    ) -> BTreeSet<(usize, usize)> {
        let is_collection = |at: usize| self.node.properties().nth(at).is_some_and(|(_, field)| field.is_collection());
        let mut pairs = BTreeSet::new();
        for (statement, evidence) in statements {
            let Statement::Precedes(ones, others) = statement else { continue };
            let of_sentence = ones.iter().flat_map(|one| others.iter().map(move |other| (*one, *other)));
            let of_sentence = of_sentence.filter(|(one, other)| one != other);
            pairs.extend(of_sentence.filter(|(one, other)| !(is_collection(*one) && is_collection(*other))));
            about.push((ones | others, evidence));
        }
        // Each pass leads over twice as many fields.
        for _ in 0..usize::BITS {
            let behind = |it: usize| pairs.range((it, 0)..=(it, usize::MAX)).map(|(_, other)| *other);
            let over = pairs.iter().flat_map(|(one, other)| behind(*other).map(move |last| (*one, last)));
            let more: Vec<(usize, usize)> = over.filter(|pair| pair.0 != pair.1 && !pairs.contains(pair)).collect();
            if more.is_empty() {
                break;
            }
            pairs.extend(more);
        }
        pairs
    }

    /// Returns the unions whose discriminator selects fields: its values are their names, or descriptions state the values.
    fn by_values(&self, statements: &Statements) -> Vec<ProposedUnion> {
        let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
        let discriminators = self.node.properties().enumerate().filter(|(_, (_, field))| field.may_discriminate());
        let unions = discriminators.filter_map(|(position, (discriminator, field))| {
            let fields = || self.node.properties().map(|(name, _)| name).enumerate();
            let free: Vec<(usize, &str)> =
                fields().filter(|(at, name)| *at != position && self.is_free(name)).collect();
            let values = field.discriminator_values();
            let named = values.iter().map(|value| free.iter().find(|(_, name)| plain(name) == plain(value)));
            let named: Vec<Option<&(usize, &str)>> = named.collect();
            let distinct = named.iter().flatten().collect::<BTreeSet<_>>().len();
            let is_struct = |name: &str| self.node.property(name).and_then(SchemaNode::type_name) == Some("object");
            // A few names of fields that are no structs may be those of something else.
            let is_type = ["kind", "type"].iter().any(|end| discriminator.to_lowercase().ends_with(end));
            let are_most = distinct.saturating_mul(2) >= values.len();
            let are_structs = named.iter().flatten().all(|(_, name)| is_struct(name));
            let are_fields = distinct > 1 && distinct == named.iter().flatten().count();
            // The default among several fields that are set together, and a choice of earlier versions.
            let is_choice = !discriminator.to_lowercase().starts_with("default") && !field.is_deprecated();
            let are_names = are_fields && is_choice && (is_type || are_most || are_structs);
            let stated = statements.iter().filter_map(|(statement, evidence)| {
                let Statement::Selects { values, discriminator, field } = statement else { return None };
                let is_free = free.iter().any(|(at, _)| at == field);
                (*discriminator == position && is_free).then_some((*field, values, evidence))
            });
            let stated: Vec<(usize, &Vec<String>, &Evidence)> = stated.collect();
            let choices = values.iter().zip(named).map(|(value, named)| {
                let is_selected = |field: &&(usize, &str)| {
                    let is_stated = stated.iter().any(|(at, values, _)| *at == field.0 && values.contains(value));
                    is_stated || (are_names && named == Some(*field))
                };
                let members = free.iter().filter(is_selected);
                let members = members.map(|(_, name)| ProposedMember { name: (*name).to_owned(), optional: true });
                ProposedChoice { value: value.clone(), members: members.collect() }
            });
            let mut choices: Vec<ProposedChoice> = choices.collect();
            // A missing boolean is as `false`.
            let of_false = choices.first().filter(|it| field.type_name() == Some("boolean") && !it.members.is_empty());
            if let Some(missing) = of_false.map(|of_false| ProposedChoice { value: String::new(), ..of_false.clone() })
            {
                choices.insert(0, missing);
            }
            let pointer = self.place.property(discriminator).to_pointer();
            let by_name = are_names.then(|| Evidence::stated(EvidenceKind::Keyword("enum".to_owned()), pointer, ""));
            let evidence: Vec<Evidence> = by_name.into_iter().chain(stated.iter().map(|it| it.2.clone())).collect();
            let union = self.suggested(Some(discriminator), choices, evidence);
            (!union.members.is_empty()).then_some(union)
        });
        unions.collect()
    }

    /// Returns true if a field can be cleared.
    fn is_free(&self, name: &str) -> bool {
        let default = self.node.property(name).and_then(SchemaNode::default);
        !self.node.requires(name) && default.is_none_or(is_empty_value)
    }

    /// Returns a union that nothing enforces. An empty default and false are the same as a missing field, so they count as not set.
    pub(crate) fn suggested(
        &self,
        discriminator: Option<&str>,
        choices: Vec<ProposedChoice>,
        evidence: Vec<Evidence>,
    ) -> ProposedUnion {
        let union = self.union(discriminator, choices, evidence);
        let is_unset = |member: &&String| {
            let field = self.node.property(member);
            field.is_some_and(|field| field.type_name() == Some("boolean") || field.default().is_some())
        };
        let empty_is_unset = union.members.iter().filter(is_unset).cloned().collect();
        ProposedUnion { empty_is_unset, ..union }
    }
}
