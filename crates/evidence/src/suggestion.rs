//! Suggests unions that no validation enforces: those that a description states, and enums whose values are names of fields.

use crate::answer::{Evidence, EvidenceKind, ProposedChoice, ProposedMember, ProposedUnion};
use crate::candidates::{VisitedObject, objects};
use crate::exclusions::ExclusionGraph;
use crate::node::SchemaNode;
use crate::proposal::Proposals;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

/// Words in a list of names that name none.
const FILLERS: &str = "a an and any both either field fields following of option options or other the with";

/// The forms of sentences. A list of fields is behind the words, or where the words have a group. `NOT` is a prohibition, `SET` a
/// participle, and `IS` a discriminator, with what is between it and a list of its values.
const FORMS: [(SentenceForm, &str); 10] = [
    (SentenceForm::Others, r"mutually[ -]exclusive (?:with|to)\b"),
    (
        SentenceForm::Others,
        r"NOT be (?:SET|combined)(?: together| along| alongside| in combination| in conjunction| simultaneously)? with\b",
    ),
    (SentenceForm::Others, r"NOT be SET at the same time (?:as|with)\b"),
    (SentenceForm::Others, r"NOT be SET (?:if|when) (.*?) (?:is|are) (?:also )?(?:SET|present|not empty)"),
    (SentenceForm::Others, r"^(?:if|when) (?:this (?:field )?is )?SET,? (.*?) NOT be SET$"),
    (SentenceForm::Group, r"(?:at most|no more than|exactly|only|just) one (?:of|from)\b"),
    (
        SentenceForm::GroupBefore,
        r"\b(?:are|is) mutually[ -]exclusive\s*$|NOT (?:both )?be SET (?:together|at the same time|simultaneously)",
    ),
    (SentenceForm::Together, r"(?:must|should|have to) (?:(?:all |both )?be SET together|also be SET)"),
    (SentenceForm::Only, r"(?:\bonly\b[^,]* (?:if|when)|\brequires) (?:the )?IS"),
    (SentenceForm::Except, r"NOT be SET (?:if|when) (?:the )?IS"),
];

/// The parts of the patterns of [`FORMS`].
const PARTS: [(&str, &str); 3] = [
    ("NOT", "(?:can ?not|can't|may not|must not|should not)"),
    ("SET", "(?:set|used|specified|provided|defined|configured)"),
    ("IS", r#"[`'"]?(?:\w*\.)*(\w+)[`'"]?(?: field)? ?(?:=+|(?:is|to be)(?: set to| equal to)?\b|equals\b)"#),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentenceForm {
    /// The field with the description excludes those of the list.
    Others,
    /// The fields behind the words exclude each other.
    Group,
    /// The fields before the words exclude each other.
    GroupBefore,
    /// The field with the description and those before the words are set together.
    Together,
    /// The values behind the words select the field with the description.
    Only,
    /// All values but those behind the words select it.
    Except,
}

/// A statement of a sentence about fields, by their positions in the schema.
#[derive(Debug)]
pub(crate) enum Statement {
    /// Each field of one set excludes each other field of the other set.
    Excludes(BTreeSet<usize>, BTreeSet<usize>),
    Together(BTreeSet<usize>),
    /// Only these values of a discriminator select the field.
    Selects {
        values: Vec<String>,
        discriminator: usize,
        field: usize,
    },
}

/// Patterns, compiled once for a search.
pub(crate) struct SentenceReader {
    forms: Vec<(SentenceForm, Regex)>,
    end: Regex,
    name: Regex,
}

impl SentenceReader {
    pub(crate) fn new() -> Option<Self> {
        let whole = |words: &str| PARTS.iter().fold(words.to_owned(), |words, (part, text)| words.replace(part, text));
        let forms = FORMS.iter().map(|(form, words)| Some((*form, Regex::new(&format!("(?i){}", whole(words))).ok()?)));
        let forms = forms.collect::<Option<_>>()?;
        let [end, name] = [r"[.;:!?)]\s|[.;:!?)]$|\n\s*\n|\n\s*[-*]\s", r"[A-Za-z][A-Za-z0-9_-]*|[^\sA-Za-z]"];
        Some(Self { forms, end: Regex::new(end).ok()?, name: Regex::new(name).ok()? })
    }

    /// Returns the statements of the descriptions of an object and of its fields, with their evidence.
    pub(crate) fn statements(&self, object: &VisitedObject<'_>) -> Vec<(Statement, Evidence)> {
        let (node, mut found) = (object.node, Vec::new());
        let fields = node.properties().enumerate();
        let fields = fields.map(|(position, (name, field))| (Some(position), field, object.place.property(name)));
        for (field, described, place) in [(None, node, object.place.clone())].into_iter().chain(fields) {
            // A colon before a list does not end the sentence.
            let text = described.text("description").unwrap_or_default().replace("following:", "following");
            for sentence in self.end.split(&text) {
                let sentence = &*sentence.split_whitespace().collect::<Vec<_>>().join(" ");
                // `at least one` allows several, and `either ... must` requires one.
                let lower = sentence.to_lowercase();
                if lower.contains("at least one") || (lower.contains("either") && lower.contains("must")) {
                    continue;
                }
                let statements = self.forms.iter().filter_map(|form| self.statement(node, field, sentence, form));
                found.extend(statements.map(|statement| {
                    (statement, Evidence::stated(EvidenceKind::Description, place.to_pointer(), sentence))
                }));
            }
        }
        found
    }

    /// Returns the statement of a sentence about an object, or about its field at a position.
    fn statement(
        &self,
        node: SchemaNode<'_>,
        field: Option<usize>,
        sentence: &str,
        (form, words): &(SentenceForm, Regex),
    ) -> Option<Statement> {
        let found = words.captures(sentence)?;
        let at = found.get(0)?;
        let (before, behind) = (sentence.get(..at.start())?, sentence.get(at.end()..)?);
        let inside = found.get(1).map(|inside| inside.as_str());
        let names: Vec<&str> = node.properties().map(|(name, _)| name).collect();
        let is_before = matches!(form, SentenceForm::GroupBefore | SentenceForm::Together);
        let listed = if is_before { before } else { inside.unwrap_or(behind) };
        let fields = || self.listed(&names, listed, is_before);
        match form {
            SentenceForm::Others => Some(Statement::Excludes(BTreeSet::from([field?]), fields())),
            SentenceForm::Group | SentenceForm::GroupBefore => {
                let group = fields();
                Some(Statement::Excludes(group.clone(), group))
            }
            SentenceForm::Together => Some(Statement::Together(fields().into_iter().chain(field).collect())),
            SentenceForm::Only | SentenceForm::Except => {
                let discriminator = position(&names, inside?)?;
                let values = node.properties().nth(discriminator)?.1.discriminator_values();
                let listed = self.listed(&values.iter().map(String::as_str).collect::<Vec<_>>(), behind, false);
                let field = field.filter(|field| *field != discriminator && !listed.is_empty())?;
                let values = values.into_iter().enumerate();
                let values = values.filter(|(at, _)| listed.contains(at) == (*form == SentenceForm::Only));
                Some(Statement::Selects { values: values.map(|(_, value)| value).collect(), discriminator, field })
            }
        }
    }

    /// Returns the positions of names in a list at the beginning or at the end of a text.
    fn listed(&self, names: &[&str], text: &str, at_end: bool) -> BTreeSet<usize> {
        let mut words: Vec<&str> = self.name.find_iter(text).map(|word| word.as_str()).collect();
        if at_end {
            words.reverse();
        }
        let mut listed = BTreeSet::new();
        for word in words {
            match position(names, word) {
                Some(position) => {
                    listed.insert(position);
                }
                None if matches!(word, "," | "`" | "'" | "\"" | "/" | "&") => {}
                None if FILLERS.split(' ').any(|filler| filler.eq_ignore_ascii_case(word)) => {}
                None => break,
            }
        }
        listed
    }
}

/// Returns the position of a name, whatever its case if there is none in this case.
fn position(names: &[&str], word: &str) -> Option<usize> {
    let exact = names.iter().position(|name| *name == word);
    exact.or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(word)))
}

type Statements = [(Statement, Evidence)];

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
            let statements = reader.statements(&object);
            for union in object.by_values(&statements).into_iter().chain(object.by_exclusion(&statements)) {
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
        for (statement, evidence) in statements {
            if let Statement::Excludes(ones, others) = statement {
                let pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (*one, *other)));
                pairs.filter(|(one, other)| one != other).for_each(|(one, other)| graph.add(one, other));
                about.push((ones | others, evidence));
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
            let groups = graph.split(&connected)?.iter().map(|group| graph.names(group)).collect();
            let members = graph.names(&connected);
            let is_inside = |fields: &BTreeSet<usize>| fields.iter().all(|field| connected.contains(field));
            let evidence = about.iter().filter(|(fields, _)| is_inside(fields)).map(|(_, it)| (*it).clone());
            let is_free = members.iter().all(|member| !self.node.always_has(member));
            is_free.then(|| self.union(None, ProposedChoice::of_groups(groups), evidence.collect()))
        });
        unions.collect()
    }

    /// Returns the unions whose discriminator selects fields: its values are their names, or descriptions state the values.
    fn by_values(&self, statements: &Statements) -> Vec<ProposedUnion> {
        let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
        let discriminators = self.node.properties().enumerate().filter(|(_, (_, field))| field.may_discriminate());
        let unions = discriminators.filter_map(|(position, (discriminator, field))| {
            let fields = || self.node.properties().map(|(name, _)| name).enumerate();
            let free: Vec<(usize, &str)> =
                fields().filter(|(at, name)| *at != position && !self.node.always_has(name)).collect();
            let values = field.discriminator_values();
            let named = values.iter().map(|value| free.iter().find(|(_, name)| plain(name) == plain(value)));
            let named: Vec<Option<&(usize, &str)>> = named.collect();
            let distinct = named.iter().flatten().collect::<BTreeSet<_>>().len();
            let are_names = distinct > 1 && distinct == named.iter().flatten().count();
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
            let union = self.union(Some(discriminator), choices, evidence);
            (!union.members.is_empty()).then_some(union)
        });
        unions.collect()
    }
}
