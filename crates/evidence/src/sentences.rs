//! Reads what descriptions say of fields: which exclude each other, which go together, and which values of a discriminator select one.

mod forms;

use self::forms::{FORMS, PARTS, SentenceForm};
use crate::answer::{Evidence, EvidenceKind};
use crate::candidates::VisitedObject;
use crate::node::SchemaNode;
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Words in a list of names that name none.
const FILLERS: &str = "a an and any as both either field fields following of option options or other parameters properties settings \
    the well with";

/// Words before the first name of a list.
const VERBS: &str = "be can may must provided reference return set should specified used";

/// Words that say, beside *only*, that a field is ignored otherwise, so that it may be set with every value.
const IGNORED: &str =
    "considered|effective|enforced|honou?red|processed|relevant|respected|taken into account|takes effect";

/// Words that deny the statement behind them, or say that it held once.
const NEGATED: &str = r"(?i)(?:\b(?:not|no|never|no longer|previously|formerly|whether (?:it|this) is)|n't)(?:[ -](?:an?|the|necessarily|mutually|only))*[ -]*$|^before [^ ,]+,\s*$";

/// A field with a value, with which another one is incompatible.
const VALUED: &str = r#"(?i)^ (?:an? |the )?[`'"]?[\w.]+[`'"]? (?:of|being|equal to|set to|with value) "#;

/// Words with which a line begins a sentence, although the line before has no full stop.
const STARTS: &str = r"(?:At most|Can only|Cannot|Exactly|May only|Must|Mutually|Only)\b";

/// Most words before those of a sentence about a value. More of them have another subject than the field.
const MOST_WORDS: usize = 8;

/// Ends of names of fields that say where to find the value of the field without it.
const SOURCES: [&str; 12] = [
    "ConfigMapRef",
    "File",
    "From",
    "FromSecret",
    "KeyRef",
    "Ref",
    "Secret",
    "SecretKeyRef",
    "SecretKeySelector",
    "SecretRef",
    "Selector",
    "ValueFrom",
];

/// Words of a sentence about a field and its source.
const ALTERNATIVES: &str = r"(?i)\b(?:or|either|instead|alternatively|precedence|ignored)\b";

/// Words of sentences about fields that are used together.
const MERGED: [&str; 2] = ["and/or", "merge"];

/// A statement of a sentence about fields, by their positions in the schema.
#[derive(Debug)]
pub(crate) enum Statement {
    /// Each field of one set excludes each other field of the other set.
    Excludes(BTreeSet<usize>, BTreeSet<usize>),
    /// Each field of the first set is used in place of each field of the second one.
    Precedes(BTreeSet<usize>, BTreeSet<usize>),
    /// The field is in the group of this name. The fields of a group exclude each other.
    Member(String, usize),
    Together(BTreeSet<usize>),
    /// Only these values of a discriminator select the field.
    Selects {
        values: Vec<String>,
        discriminator: usize,
        field: usize,
    },
}

/// Patterns, compiled once.
pub(crate) struct SentenceReader {
    forms: Vec<(SentenceForm, Regex)>,
    colon: Regex,
    end: Regex,
    name: Regex,
    start: Regex,
    ignored: Regex,
    negated: Regex,
    valued: Regex,
    alternatives: Regex,
}

/// A sentence, and the position of the field that it describes. `None`: it describes the object.
struct DescribedField<'t> {
    field: Option<usize>,
    sentence: &'t str,
}

impl SentenceReader {
    /// Returns the reader, `None` if a pattern has a fault.
    pub(crate) fn find() -> Option<&'static Self> {
        static READER: LazyLock<Option<SentenceReader>> = LazyLock::new(SentenceReader::new);
        READER.as_ref()
    }

    fn new() -> Option<Self> {
        let whole = |words: &str| PARTS.iter().fold(words.to_owned(), |words, (part, text)| words.replace(part, text));
        let forms = FORMS.iter().map(|(form, words)| Some((*form, Regex::new(&format!("(?i){}", whole(words))).ok()?)));
        let forms = forms.collect::<Option<_>>()?;
        let [end, name] =
            [r"[.;:!?)]\s|[.;:!?)]$|\n\s*\n|\n\s*[-*]\s", r"(?:\w*\.)*([A-Za-z][A-Za-z0-9_-]*)|([^\sA-Za-z])"];
        let colon = r"(?i)(\b(?:exclusive with|following|one of|these|together with)\b[^.;:\n]*):";
        let start = format!(r"([^.,;:\s])\s*\n\s*({STARTS})");
        let ignored = format!(r"(?i)\bonly (?:be )?(?:{IGNORED})|\b(?:{IGNORED}) only");
        let [colon, end, name, start, ignored, negated, valued, alternatives] =
            [colon, end, name, &start, &ignored, NEGATED, VALUED, ALTERNATIVES].map(|pattern| Regex::new(pattern).ok());
        Some(Self {
            forms,
            colon: colon?,
            end: end?,
            name: name?,
            start: start?,
            ignored: ignored?,
            negated: negated?,
            valued: valued?,
            alternatives: alternatives?,
        })
    }

    /// Returns the statements of the descriptions of an object and of its fields, with their evidence.
    pub(crate) fn statements(&self, object: &VisitedObject<'_>) -> Vec<(Statement, Evidence)> {
        let (node, mut found) = (object.node, Vec::new());
        let names: Vec<&str> = node.properties().map(|(name, _)| name).collect();
        let fields = node.properties().enumerate();
        let fields = fields.map(|(position, (name, field))| (Some(position), field, object.place.property(name)));
        for (field, described, place) in [(None, node, object.place.clone())].into_iter().chain(fields) {
            // A colon before a list does not end the sentence.
            let text = self.colon.replace_all(described.text("description").unwrap_or_default(), "$1");
            let text = self.start.replace_all(&text, "$1. $2");
            for sentence in self.end.split(&text) {
                let sentence = &*sentence.split_whitespace().collect::<Vec<_>>().join(" ");
                // It allows several.
                let lower = sentence.to_lowercase();
                if lower.contains("at least one") {
                    continue;
                }
                let described = DescribedField { field, sentence };
                // A combination of fields is one alternative.
                let is_combination = lower.contains("combination of");
                let forms = self.forms.iter().filter(|it| (it.0 == SentenceForm::Combination) == is_combination);
                let statements = forms.filter_map(|form| self.statement(node, &names, &described, form));
                let others = if is_combination { Vec::new() } else { self.alternatives(node, &names, &described) };
                let statements = statements.chain(others);
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
        names: &[&str],
        &DescribedField { field, sentence }: &DescribedField<'_>,
        (form, words): &(SentenceForm, Regex),
    ) -> Option<Statement> {
        let found = words.captures(sentence)?;
        let at = found.get(0)?;
        let (before, behind) = (sentence.get(..at.start())?, sentence.get(at.end()..)?);
        if self.negated.is_match(before) {
            return None;
        }
        let inside = found.get(1).map(|inside| inside.as_str());
        let is_before = matches!(form, SentenceForm::GroupBefore | SentenceForm::Together);
        let listed = if is_before { before } else { inside.unwrap_or(behind) };
        let fields = || self.listed(names, listed, field, is_before);
        match form {
            // `incompatible with a type of X` is about a value.
            SentenceForm::Others if self.valued.is_match(listed) => None,
            // `if X is set to` is about a value as well.
            SentenceForm::Others if at.as_str().ends_with("set") && behind.starts_with(" to ") => None,
            SentenceForm::Others => Some(Statement::Excludes(BTreeSet::from([field?]), fields())),
            // `either ... must` requires one.
            SentenceForm::Group | SentenceForm::GroupBefore | SentenceForm::Structs if requires_one(sentence) => None,
            SentenceForm::Group | SentenceForm::GroupBefore => {
                let mut group = fields();
                // `X and Y formatting are` is about X and Y.
                if let Some((list, _)) = before.trim_end().rsplit_once(' ').filter(|_| is_before && group.len() < 2) {
                    group = self.listed(names, list, field, true);
                }
                Some(Statement::Excludes(group.clone(), group))
            }
            SentenceForm::Structs => {
                let group = fields();
                let is_struct = |(_, field): (&str, SchemaNode<'_>)| field.type_name() == Some("object");
                let are_structs = group.iter().all(|at| node.properties().nth(*at).is_some_and(is_struct));
                are_structs.then(|| Statement::Excludes(group.clone(), group))
            }
            // The name of a field is that of the other one.
            SentenceForm::Member => {
                let name = inside.filter(|name| position(names, name).is_none())?;
                Some(Statement::Member(name.to_lowercase(), field?))
            }
            SentenceForm::Combination => {
                let parts = found.get(2)?.as_str();
                Some(Statement::Excludes(fields(), self.listed(names, parts, field, false)))
            }
            SentenceForm::Whole => {
                // An object with other fields than structs has more than members, if they may be missing.
                let is_member = |(_, (name, field)): &(usize, (&str, SchemaNode<'_>))| {
                    field.type_name() == Some("object") && !node.requires(name)
                };
                let (members, others): (Vec<_>, Vec<_>) = node.properties().enumerate().partition(is_member);
                let is_whole = field.is_none() && others.iter().all(|(_, (name, _))| node.requires(name));
                let members: BTreeSet<usize> = members.into_iter().map(|(position, _)| position).collect();
                is_whole.then(|| Statement::Excludes(members.clone(), members))
            }
            SentenceForm::Precedence => {
                let own = || field.into_iter().collect::<BTreeSet<usize>>();
                let first = self.listed(names, before, field, true);
                // Both are used, or the words have another object than a field.
                if MERGED.iter().any(|words| sentence.contains(words)) || (first.is_empty() && inside.is_none()) {
                    return None;
                }
                let second = if inside.is_some() { self.listed(names, behind, field, false) } else { own() };
                Some(Statement::Precedes(if first.is_empty() { own() } else { first }, second))
            }
            SentenceForm::Together => Some(Statement::Together(fields().into_iter().chain(field).collect())),
            SentenceForm::Only | SentenceForm::Except => {
                let discriminator = position(names, inside?)?;
                let chooser = node.properties().nth(discriminator)?.1;
                let needs = at.as_str().to_lowercase().starts_with("requires");
                // A field that needs another one to be true is no choice.
                let is_choice = !(needs && chooser.type_name() == Some("boolean"));
                if !is_choice || before.split(' ').count() > MOST_WORDS || self.ignored.is_match(sentence) {
                    return None;
                }
                let values = chooser.discriminator_values();
                let known: Vec<&str> = values.iter().map(String::as_str).collect();
                let listed = self.listed(&known, behind, None, false);
                // An enum may have a value twice, in other letters.
                let is_listed = |value: &str| {
                    listed.iter().filter_map(|at| known.get(*at)).any(|listed| listed.eq_ignore_ascii_case(value))
                };
                let field = field.filter(|field| *field != discriminator && !listed.is_empty())?;
                let selecting = known.iter().filter(|value| is_listed(value) == (*form == SentenceForm::Only));
                let values = selecting.map(|value| (*value).to_owned()).collect();
                Some(Statement::Selects { values, discriminator, field })
            }
        }
    }

    /// Returns statements about a field and the fields that say where to find its value: a sentence of one of them names another one
    /// as an alternative.
    fn alternatives(
        &self,
        node: SchemaNode<'_>,
        names: &[&str],
        &DescribedField { field, sentence }: &DescribedField<'_>,
    ) -> Vec<Statement> {
        let own = field.and_then(|field| Some((field, *names.get(field)?)));
        let are_both = MERGED.iter().any(|words| sentence.contains(words));
        let Some((field, own)) = own.filter(|_| self.alternatives.is_match(sentence) && !are_both) else {
            return Vec::new();
        };
        let words = self.words(sentence);
        let is_named = |other: &str| words.iter().any(|word| word.eq_ignore_ascii_case(other));
        let is_collection = |name: &str| node.property(name).is_some_and(SchemaNode::is_collection);
        let are_one = |other: &str| is_resolved(own, other) || (is_collection(own) && is_collection(other));
        let others = names.iter().enumerate();
        let others = others.filter(|(_, other)| is_source(own, other) && is_named(other) && !are_one(other));
        others.map(|(other, _)| Statement::Excludes(BTreeSet::from([field]), BTreeSet::from([other]))).collect()
    }

    /// Returns the words of a text, names without their paths, and punctuation.
    fn words<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let words = self.name.captures_iter(text).filter_map(|it| it.get(1).or(it.get(2)));
        words.map(|word| word.as_str()).collect()
    }

    /// Returns the positions of names in a list at the beginning or at the end of a text. `this` is the field itself.
    fn listed(&self, names: &[&str], text: &str, field: Option<usize>, at_end: bool) -> BTreeSet<usize> {
        let mut words = self.words(text);
        if at_end {
            words.reverse();
        }
        let mut listed = BTreeSet::new();
        let has = |words: &str, word: &str| words.split(' ').any(|filler| filler.eq_ignore_ascii_case(word));
        for word in words {
            match position(names, word).or(field.filter(|_| word.eq_ignore_ascii_case("this"))) {
                Some(position) => {
                    listed.insert(position);
                }
                None if matches!(word, "," | "`" | "'" | "\"" | "/" | "&" | "(" | "[" | "]") => {}
                None if has(FILLERS, word) || (listed.is_empty() && has(VERBS, word)) => {}
                None => break,
            }
        }
        listed
    }
}

/// Returns true for `either ... must`, which may allow both, unless it says that it does not, and for `either or both`. What must be either
/// is one of them.
fn requires_one(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase();
    if sentence.contains("or both") {
        return true;
    }
    let allows_one = ["not both", "must be either"].iter().any(|words| sentence.contains(words));
    sentence.contains("either") && sentence.contains("must") && !allows_one
}

/// Returns true if one name is the other one with an end that says where its value is, or if both are so of a third name.
fn is_source(one: &str, other: &str) -> bool {
    let of = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|end| SOURCES.contains(&end));
    let stems =
        |name: &str| SOURCES.iter().filter_map(|end| name.strip_suffix(end).map(str::to_owned)).collect::<Vec<_>>();
    of(one, other) || of(other, one) || stems(one).iter().any(|stem| !stem.is_empty() && stems(other).contains(stem))
}

/// Returns true for a reference and a selector. A controller writes the reference to what the selector selects.
fn is_resolved(one: &str, other: &str) -> bool {
    let are = |reference: &str, selector: &str| reference.ends_with("Ref") && selector.ends_with("Selector");
    are(one, other) || are(other, one)
}

/// Returns the position of a name, whatever its case and underscores if there is none with these.
fn position(names: &[&str], word: &str) -> Option<usize> {
    let exact = names.iter().position(|name| *name == word);
    let plain = word.replace('_', "");
    let is_alike = |name: &&str| name.eq_ignore_ascii_case(word) || name.eq_ignore_ascii_case(&plain);
    exact.or_else(|| names.iter().position(is_alike))
}
