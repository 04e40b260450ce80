//! Suggests unions that no validation enforces: those that a description states, and enums whose values are names of fields.

use crate::candidates::{VisitedObject, objects};
use crate::exclusion_graph::ExclusionGraph;
use crate::node::SchemaNode;
use crate::place::{Evidence, EvidenceKind, EvidenceState};
use crate::proposal::Proposals;
use crate::proposed_union::{ProposedChoice, ProposedMember, ProposedUnion};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

/// Words in a list of fields that name none.
const FILLERS: [&str; 16] = [
    "a",
    "an",
    "and",
    "any",
    "both",
    "either",
    "field",
    "fields",
    "following",
    "of",
    "option",
    "options",
    "or",
    "other",
    "the",
    "with",
];

/// The forms of sentences that exclude fields. `LIST` is a list of fields.
const EXCLUDES: [(SentenceForm, &str); 5] = [
    (SentenceForm::Others, r"mutually[ -]exclusive (?:with|to)\b"),
    (
        SentenceForm::Others,
        r"(?:can ?not|can't|may not|must not|should not) be (?:set|used|specified|provided|defined|combined|configured)(?: together| along| alongside| in combination| in conjunction| simultaneously| at the same time)? with\b",
    ),
    (SentenceForm::Group, r"(?:at most|exactly|only|just) one (?:of|from)\b"),
    (SentenceForm::GroupBefore, r"\b(?:are|is) mutually[ -]exclusive\s*$"),
    (
        SentenceForm::GroupBefore,
        r"(?:can ?not|can't|may not|must not|should not) (?:both )?be (?:set|used|specified|provided|defined|configured) (?:together|at the same time|simultaneously)",
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentenceForm {
    /// The field with the description excludes those behind the words.
    Others,
    /// The fields behind the words exclude each other.
    Group,
    /// The fields before the words exclude each other.
    GroupBefore,
}

/// Patterns, compiled once for a search.
struct SentenceReader {
    forms: Vec<(SentenceForm, Regex)>,
    end: Regex,
    name: Regex,
}

/// The statements of the descriptions of an object.
struct Statements<'s> {
    node: SchemaNode<'s>,
    graph: ExclusionGraph,
    /// Each with its fields.
    sentences: Vec<(BTreeSet<usize>, Evidence)>,
}

impl Proposals {
    /// Returns unions that descriptions state or that an enum suggests, and that have no member of a union that is proven. A
    /// sentence may be wrong, or may mean something else.
    pub fn suggestions(&self, schema: &Value) -> Vec<ProposedUnion> {
        let Some(reader) = SentenceReader::new() else { return Vec::new() };
        let mut suggested = Vec::new();
        for object in objects(schema).0 {
            let path = object.place.to_string();
            let is_below = |above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(['.', '[']));
            // A controller writes the status. A pod template is declared as a whole.
            if object.odd || path == "status" || is_below("status") || self.pod_templates.iter().any(|it| is_below(it))
            {
                continue;
            }
            let mut used: BTreeSet<String> = self
                .unions
                .iter()
                .filter(|union| union.path == path)
                .flat_map(|union| union.members.iter().chain(&union.discriminator).cloned())
                .collect();
            for union in object.by_enums().into_iter().chain(reader.statements(&object).unions(&object)) {
                if union.members.iter().chain(&union.discriminator).all(|name| !used.contains(name)) {
                    used.extend(union.members.iter().cloned());
                    suggested.push(union);
                }
            }
        }
        suggested
    }
}

impl SentenceReader {
    fn new() -> Option<Self> {
        let forms = EXCLUDES.iter().map(|(form, words)| Some((*form, Regex::new(&format!("(?i){words}")).ok()?)));
        let forms = forms.collect::<Option<_>>()?;
        let [end, name] = [r"[.;:!?)]\s|[.;:!?)]$|\n\s*\n|\n\s*[-*]\s", r"[A-Za-z][A-Za-z0-9_-]*|[^\sA-Za-z]"];
        Some(Self { forms, end: Regex::new(end).ok()?, name: Regex::new(name).ok()? })
    }

    fn statements<'s>(&self, object: &VisitedObject<'s>) -> Statements<'s> {
        let node = object.node;
        let fields: Vec<String> = node.properties().map(|(name, _)| name.to_owned()).collect();
        let mut found = Statements { node, graph: ExclusionGraph::new(fields), sentences: Vec::new() };
        let pointer = object.place.to_pointer();
        self.read(&mut found, None, node.text("description"), &pointer);
        for (position, (name, field)) in node.properties().enumerate() {
            let pointer = object.place.property(name).to_pointer();
            self.read(&mut found, Some(position), field.text("description"), &pointer);
        }
        found
    }

    /// Reads the description of an object, or of its field at a position.
    fn read(&self, found: &mut Statements<'_>, field: Option<usize>, text: Option<&str>, pointer: &str) {
        let Some(text) = text.filter(|_| found.graph.fields.len() > 1) else { return };
        // A colon before a list does not end the sentence.
        let text = text.replace("following:", "following");
        for sentence in self.end.split(&text) {
            let sentence = &*sentence.split_whitespace().collect::<Vec<_>>().join(" ");
            // `at least one` allows several, and `either ... must` requires one.
            let lower = sentence.to_lowercase();
            if lower.contains("at least one") || (lower.contains("either") && lower.contains("must")) {
                continue;
            }
            for (form, words) in &self.forms {
                let Some(at) = words.find(sentence) else { continue };
                let before = sentence.get(..at.start()).unwrap_or_default();
                let behind = sentence.get(at.end()..).unwrap_or_default();
                let mut group = match form {
                    SentenceForm::GroupBefore => self.fields(found, before, true),
                    SentenceForm::Others | SentenceForm::Group => self.fields(found, behind, false),
                };
                let pairs: Vec<(usize, usize)> = if *form == SentenceForm::Others {
                    let Some(field) = field else { continue };
                    group.remove(&field);
                    let pairs = group.iter().map(|&other| (field, other)).collect();
                    group.insert(field);
                    pairs
                } else {
                    group.iter().flat_map(|&one| group.range(..one).map(move |&other| (other, one))).collect()
                };
                if pairs.is_empty() {
                    continue;
                }
                for (one, other) in pairs {
                    found.graph.add(one, other);
                }
                found.sentences.push((group, evidence(EvidenceKind::Description, pointer, sentence)));
            }
        }
    }

    /// Returns the fields of a list at the beginning or at the end of a text.
    fn fields(&self, found: &Statements<'_>, text: &str, at_end: bool) -> BTreeSet<usize> {
        let mut words: Vec<&str> = self.name.find_iter(text).map(|word| word.as_str()).collect();
        if at_end {
            words.reverse();
        }
        let mut fields = BTreeSet::new();
        for word in words {
            let names = &found.graph.fields;
            let exact = names.iter().position(|name| name == word);
            match exact.or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(word))) {
                Some(field) => {
                    fields.insert(field);
                }
                None if matches!(word, "," | "`" | "'" | "\"" | "/" | "&") => {}
                None if FILLERS.contains(&&*word.to_lowercase()) => {}
                None => break,
            }
        }
        fields
    }
}

impl Statements<'_> {
    /// Returns the groups of fields that exclude each other, and nothing else.
    fn unions(&self, object: &VisitedObject<'_>) -> Vec<ProposedUnion> {
        let fields = (0..self.graph.fields.len()).collect();
        let groups = self.graph.cliques(fields).into_iter().filter(|group| self.graph.outside(group).is_empty());
        let unions = groups.filter_map(|group| {
            let members = self.graph.names(&group);
            if members.iter().any(|member| self.node.always_has(member)) {
                return None;
            }
            let about = self.sentences.iter().filter(|(fields, _)| fields.iter().all(|field| group.contains(field)));
            Some(union(object, members, about.map(|(_, evidence)| evidence.clone()).collect()))
        });
        unions.collect()
    }
}

impl VisitedObject<'_> {
    /// Returns the unions whose discriminator has names of fields as its values.
    fn by_enums(&self) -> Vec<ProposedUnion> {
        let discriminators = self.node.properties().filter(|(_, field)| field.may_discriminate());
        let unions = discriminators.filter_map(|(discriminator, field)| {
            let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
            let choices = field.list("enum").iter().filter_map(Value::as_str).map(|value| {
                let named = self.node.properties().map(|(name, _)| name);
                let named = named.filter(|name| *name != discriminator && !self.node.always_has(name));
                let member = named.into_iter().find(|name| plain(name) == plain(value)).map(str::to_owned);
                let members = member.map(|name| ProposedMember { name, optional: true });
                ProposedChoice { value: value.to_owned(), members: members.into_iter().collect() }
            });
            let choices: Vec<ProposedChoice> = choices.collect();
            let members: Vec<String> = choices.iter().flat_map(|it| &it.members).map(|it| it.name.clone()).collect();
            let is_choice = members.len() > 1 && members.iter().collect::<BTreeSet<_>>().len() == members.len();
            let pointer = self.place.property(discriminator).to_pointer();
            let evidence = vec![evidence(EvidenceKind::Keyword("enum".to_owned()), &pointer, "")];
            let union = union(self, members, evidence);
            is_choice.then(|| ProposedUnion { discriminator: Some(discriminator.to_owned()), choices, ..union })
        });
        unions.collect()
    }
}

fn union(object: &VisitedObject<'_>, members: Vec<String>, evidence: Vec<Evidence>) -> ProposedUnion {
    ProposedUnion {
        path: object.place.to_string(),
        keyless: object.keyless,
        discriminator: None,
        choices: ProposedChoice::of_groups(members.iter().map(|member| vec![member.clone()]).collect()),
        members,
        exactly_one: false,
        empty_is_unset: BTreeSet::new(),
        immutable: false,
        evidence,
    }
}

fn evidence(kind: EvidenceKind, pointer: &str, text: &str) -> Evidence {
    let (pointer, text) = (pointer.to_owned(), text.to_owned());
    Evidence { kind, pointer, text, message: None, state: EvidenceState::Elsewhere }
}
