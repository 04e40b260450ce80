//! Reads what the sentences of descriptions state about the fields of an object.

use crate::candidates::VisitedObject;
use crate::node::SchemaNode;
use crate::place::{Evidence, EvidenceKind};
use regex::Regex;
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
    /// The fields are set together.
    Together(BTreeSet<usize>),
    /// Only these values of a discriminator select the field.
    Selects {
        /// The values.
        values: Vec<String>,
        /// The position of the discriminator.
        discriminator: usize,
        /// The position of the field.
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
