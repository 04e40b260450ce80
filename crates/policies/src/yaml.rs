//! Policies as YAML that a person reads: fields in the order in which a reader needs them, expressions as blocks, and the words that
//! explain a policy. An API server does not see them.

use crate::group::PlaceGroup;
use crate::members::Algorithm;
use kube_unions_core::union::{Choice, Form, SelectedMember, Union};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The order of fields. Others follow in alphabetical order.
const ORDER: [&str; 21] = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "name",
    "policyName",
    "matchConstraints",
    "matchConditions",
    "variables",
    "mutations",
    "validations",
    "patchType",
    "expression",
    "messageExpression",
    "message",
    "reason",
    "failurePolicy",
    "reinvocationPolicy",
    "apiGroups",
    "resourceRules",
    "namespaceSelector",
];

/// The longest list or map on one line, in characters.
const WIDTH: usize = 100;

/// Returns an object as YAML, with comments if it is a policy.
pub(crate) fn write(object: &Value, comments: Option<&PolicyComments>) -> String {
    let mut writer = Writer { text: String::new(), comments };
    for line in comments.map_or(&[][..], |comments| &comments.head) {
        writer.text.push_str(&comment(line));
    }
    if let Value::Object(fields) = object {
        writer.map(fields, 0, "");
    }
    writer.text
}

struct Writer<'c> {
    text: String,
    comments: Option<&'c PolicyComments>,
}

impl Writer<'_> {
    /// Writes the fields of a map that is the value of the field `parent`. The first line has its indentation already.
    fn map(&mut self, fields: &Map<String, Value>, indent: usize, parent: &str) {
        let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
        let rank = |name: &str| ORDER.iter().position(|it| *it == name).unwrap_or(ORDER.len());
        sorted.sort_by(|(one, _), (other, _)| (rank(one), one).cmp(&(rank(other), other)));
        for (position, (name, value)) in sorted.into_iter().enumerate() {
            if position > 0 {
                self.indent(indent);
            }
            self.text.push_str(&scalar(name));
            self.text.push(':');
            self.value(value, indent, name);
            if let Some(comments) = self.comments.filter(|_| name == "failurePolicy" && parent == "spec") {
                let _ = self.text.pop();
                self.text.extend([format!(" # {}\n", comments.failure)]);
            }
        }
    }

    /// Writes a value behind the colon of its field.
    fn value(&mut self, value: &Value, indent: usize, name: &str) {
        match value {
            _ if flow(value).is_some_and(|line| line.chars().count() <= WIDTH) => {
                self.text.extend([format!(" {}\n", flow(value).unwrap_or_default())]);
            }
            Value::Object(fields) => {
                self.text.push('\n');
                self.indent(indent.saturating_add(2));
                self.map(fields, indent.saturating_add(2), name);
            }
            Value::Array(items) => {
                self.text.push('\n');
                for item in items {
                    if name == "variables" {
                        self.comment_on(item, indent);
                    }
                    self.indent(indent);
                    self.text.push('-');
                    if let (Value::Object(fields), None) = (item, flow(item)) {
                        self.text.push(' ');
                        self.map(fields, indent.saturating_add(2), name);
                    } else {
                        self.value(item, indent, name);
                    }
                }
            }
            Value::String(text) if is_block(text) && (text.contains('\n') || scalar(text).starts_with('"')) => {
                self.text.push_str(" |-\n");
                for line in text.lines() {
                    self.indent(indent.saturating_add(2));
                    self.text.push_str(line);
                    self.text.push('\n');
                }
            }
            Value::String(text) => self.text.extend([format!(" {}\n", scalar(text))]),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.text.extend([format!(" {value}\n")]),
        }
    }

    fn comment_on(&mut self, variable: &Value, indent: usize) {
        let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(words) = self.comments.and_then(|comments| comments.variables.get(name)) else { return };
        let mut letters = words.chars();
        let sentence: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        for line in format!("{sentence}.").lines() {
            self.indent(indent);
            self.text.push_str(&comment(line));
        }
    }

    fn indent(&mut self, indent: usize) {
        self.text.push_str(&" ".repeat(indent));
    }
}

/// Returns a value on one line: an empty one, a list of scalars, or a selector's requirement.
fn flow(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(|item| Some(scalar(item.as_str()?))).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        Value::Object(fields) if fields.is_empty() => Some("{}".to_owned()),
        Value::Object(fields) if fields.contains_key("operator") => {
            let field = |(name, value): (&String, &Value)| {
                let text = value.as_str().map(scalar).or_else(|| flow(value))?;
                Some(format!("{name}: {text}"))
            };
            Some(format!("{{{}}}", fields.iter().map(field).collect::<Option<Vec<_>>>()?.join(", ")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    }
}

/// Returns true if a text can stand in a block as it is.
fn is_block(text: &str) -> bool {
    let is_printable = |it: char| it == '\n' || !may_end_a_line(it);
    !text.is_empty()
        && !text.starts_with([' ', '\n'])
        && !text.ends_with('\n')
        && text.chars().all(is_printable)
        && text.lines().all(|line| !line.ends_with(' '))
}

/// Returns a text of one line: plain if YAML reads it as a text, otherwise in quotes.
fn scalar(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let is_word = matches!(&*lower, "" | "~" | "false" | "n" | "no" | "null" | "off" | "on" | "true" | "y" | "yes");
    // An expression with a call may have the characters of lists and maps: it stands in none.
    let is_plain = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '(' || it == '/')
        && !is_word
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && (text.contains('(') || !text.contains(['"', '{', '}', '[', ']', ',']));
    if text.chars().any(may_end_a_line) || !is_plain && text.contains('\'') {
        return quoted(text);
    }
    if is_plain { text.to_owned() } else { format!("'{text}'") }
}

/// Returns true for a character that ends a line in some version of YAML, or that nobody sees.
fn may_end_a_line(it: char) -> bool {
    it.is_control() || matches!(it, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

/// Returns a text in double quotes, on one line in every version of YAML.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let escaped = |it: char| if may_end_a_line(it) { format!("\\u{:04x}", u32::from(it)) } else { it.to_string() };
    json.chars().map(escaped).collect()
}

/// Returns a line of a comment. No name of a CRD ends it.
fn comment(line: &str) -> String {
    let line: String =
        line.chars().map(|it| if may_end_a_line(it) { char::REPLACEMENT_CHARACTER } else { it }).collect();
    format!("# {line}").trim_end().to_owned() + "\n"
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PolicyComments {
    /// The lines before the policy: what it does, and its unions.
    pub(crate) head: Vec<String>,
    /// The meaning of each variable, by its name. Line breaks separate several lines.
    pub(crate) variables: BTreeMap<String, String>,
    /// The reason of `failurePolicy`.
    pub(crate) failure: &'static str,
}

/// Most members that are named. The expressions name all.
const MOST: usize = 16;

/// The longest line of names, in characters.
const COMMENT_WIDTH: usize = 110;

/// Returns the lines about the unions of a kind, after the sentence of what a policy does about them.
pub(crate) fn head(whose: &str, does: &str, unions: &[(&PlaceGroup<'_>, &Union)]) -> Vec<String> {
    let mut lines: Vec<String> = wrapped(&format!("Unions of {whose}. {does}"), "").collect();
    lines.push(String::new());
    lines.extend(unions.iter().flat_map(|(group, union)| describe(group, union)));
    lines
}

fn describe(group: &PlaceGroup<'_>, union: &Union) -> Vec<String> {
    let path = group.text_path();
    let place = if path.is_empty() { "the object" } else { &path };
    let groups: Vec<Vec<&str>> =
        if union.form() == Form::List { union.groups().map(Iterator::collect).collect() } else { Vec::new() };
    let group = |names: &Vec<&str>| names.join(" with ");
    let names = if groups.len() > MOST {
        format!("{} members", groups.len())
    } else {
        groups.iter().map(group).collect::<Vec<_>>().join(", ")
    };
    let required = if union.is_required() { "exactly one" } else { "at most one" };
    let one_of = |end: &str| wrapped(&format!("{place}: {required} of {names}{end}"), "  ");
    match Algorithm::of(union) {
        Algorithm::Map(discriminator) => {
            let head = format!("{place}: `{discriminator}` selects what may be set beside it:");
            wrapped(&head, "  ").chain(table(union, true)).collect()
        }
        Algorithm::Discriminated(discriminator) => {
            one_of(&format!(" is set, and `{discriminator}` names it:")).chain(table(union, false)).collect()
        }
        Algorithm::Undiscriminated => one_of(" is set.").collect(),
    }
}

/// Returns a line for each value of the discriminator.
fn table<'u>(union: &'u Union, tells_optional: bool) -> impl Iterator<Item = String> + 'u {
    let shown = |choice: &'u Choice| if choice.value().is_empty() { "\"\"" } else { choice.value() };
    let width = union.choices().iter().map(|choice| shown(choice).chars().count()).max().unwrap_or_default();
    union.choices().iter().map(move |choice| {
        let told = |member: &SelectedMember| match (tells_optional, member.is_optional()) {
            (false, _) => member.name().to_owned(),
            (true, false) => format!("{} (required)", member.name()),
            (true, true) => format!("{} (optional)", member.name()),
        };
        let members: Vec<String> = choice.members().iter().map(told).collect();
        let members = if members.is_empty() { "none".to_owned() } else { members.join(", ") };
        format!("  {:width$}  {members}", shown(choice))
    })
}

fn wrapped(text: &str, hanging: &'static str) -> impl Iterator<Item = String> + use<> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count().saturating_add(word.chars().count()) < COMMENT_WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{hanging}{word}"));
        }
    }
    lines.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_policy_reads_from_what_it_is_about_to_what_it_does() {
        let object = json!({"kind": "P", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {
            "failurePolicy": "Fail",
            "validations": [{"reason": "Invalid", "expression": "variables.faults.size() == 0", "message": "it's: \"\t\""}],
            "variables": [
                {"name": "set", "expression": "[\"a\"].filter(m,\n  object[?m].hasValue())"},
                {"name": "on", "expression": "{\"a\": \"b\"}"}],
            "matchConstraints": {
                "objectSelector": {}, "matchPolicy": "Exact",
                "resourceRules": [{"apiGroups": ["", "a.b"], "resources": ["x/status"], "scope": "*"}],
                "namespaceSelector": {"matchExpressions": [{"key": "k/e", "operator": "NotIn", "values": ["no"]}]}}}});
        let comments = PolicyComments {
            head: vec!["Does it.".to_owned(), String::new(), "  A  a".to_owned()],
            variables: [("set".to_owned(), "those that\nare set".to_owned())].into(),
            failure: "why",
        };
        let text = write(&object, Some(&comments));
        assert_eq!(
            text,
            r#"# Does it.
#
#   A  a
apiVersion: v1
kind: P
metadata:
  name: p
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: ['', a.b]
      resources: [x/status]
      scope: '*'
    namespaceSelector:
      matchExpressions:
      - {key: k/e, operator: NotIn, values: ['no']}
    matchPolicy: Exact
    objectSelector: {}
  variables:
  # Those that
  # are set.
  - name: set
    expression: |-
      ["a"].filter(m,
        object[?m].hasValue())
  - name: 'on'
    expression: '{"a": "b"}'
  validations:
  - expression: variables.faults.size() == 0
    message: "it's: \"\t\""
    reason: Invalid
  failurePolicy: Fail # why
"#
        );
        assert!(!write(&object, None).contains('#'));
    }

    #[test]
    fn no_name_of_a_crd_begins_a_line() {
        let comments = PolicyComments {
            head: vec!["a\u{2028}kind: B\nkind: C".to_owned()],
            variables: [("v".to_owned(), "`a\u{2029}b`".to_owned())].into(),
            failure: "",
        };
        let expression = "f(\"a\u{2028}b\u{85}\")";
        let object = json!({"kind": "A", "variables": [{"name": "v", "expression": expression}]});
        let text = write(&object, Some(&comments));
        assert_eq!(
            text,
            "# a\u{fffd}kind: B\u{fffd}kind: C\nkind: A\nvariables:\n# `a\u{fffd}b`.\n- name: v\n  expression: \"f(\\\"a\\u2028b\\u0085\\\")\"\n"
        );
    }
}
