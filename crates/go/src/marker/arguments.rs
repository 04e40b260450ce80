//! Arguments of markers: of the two proposals, of controller-gen, and of declarative validation: `+k8s:name(arguments)=value`, where
//! the value may be another marker.
//!
//! The syntax of the last is that of `k8s.io/gengo/v2/codetags`, the meaning that of validation-gen in `k8s.io/code-generator`.

use super::meaning::{Family, Meaning, MemberMarker, Presence, Reader, find, misspelt};
use crate::quoting::quoted;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Parses a marker of the two proposals: `=value`, `,optional`, or JSON, which declarative validation once used.
pub(super) fn proposal_marker(name: &str, rest: &str) -> Result<Meaning, String> {
    let rest = rest.trim_end();
    if rest.starts_with("={") {
        return with_json(name, rest);
    }
    if rest.starts_with('(') {
        return Err(format!("`+{name}` takes no arguments in parentheses: only the `+k8s:` markers do"));
    }
    let (value, rest) = match rest.strip_prefix('=') {
        Some(rest) => {
            let (value, rest) = leading_text(name, rest.trim_start(), &[','])?;
            (Some(value), rest)
        }
        None => (None, rest),
    };
    let options = match rest.strip_prefix(',') {
        Some(options) => Some(options),
        None if rest.is_empty() => None,
        None => return Err(unknown(name, rest.trim())),
    };
    if value.as_deref().is_some_and(str::is_empty) {
        return Err(format!("`+{name}=` has no value: write one or remove the `=`"));
    }
    match (name, value, options) {
        ("union", None, None) => Ok(Meaning::Union),
        ("unionDiscriminator", None, None) => Ok(Meaning::Discriminator { union: None, modes: false }),
        ("unionDeprecated", None, None) => {
            Ok(Meaning::Member(MemberMarker { family: Family::Deprecated, ..MemberMarker::default() }))
        }
        ("unionDiscriminatedBy", Some(field), None) => Ok(Meaning::DiscriminatedBy(field)),
        ("unionDiscriminatedBy", None, None) => {
            Err("`+unionDiscriminatedBy` has no field: write `+unionDiscriminatedBy=Field`".to_owned())
        }
        ("unionMember", value, options) => {
            let presence = match options.map(str::trim) {
                None => Presence::Required,
                Some("optional") => Presence::Optional,
                Some(other) => return Err(unknown(name, other)),
            };
            Ok(Meaning::Member(MemberMarker { value, presence, ..MemberMarker::default() }))
        }
        (_, Some(value), _) => Err(unknown(name, &value)),
        (_, None, options) => Err(unknown(name, options.unwrap_or_default().trim())),
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JsonArguments {
    union: Option<Box<str>>,
    member_name: Option<Box<str>>,
}

/// Parses a marker with the arguments `={"union": "u", "memberName": "M"}`.
fn with_json(name: &str, rest: &str) -> Result<Meaning, String> {
    let JsonArguments { union, member_name } = serde_json::from_str(rest.trim_start_matches('=')).map_err(|error| {
        let error = error.to_string();
        let problem = error.split(" at line ").next().unwrap_or_default();
        format!("invalid arguments of `+{name}`: {problem}; write `={{\"union\": \"u\", \"memberName\": \"M\"}}`")
    })?;
    with_names(name, union, member_name)
}

/// Returns the meaning of a marker with the names of its union and of its value.
fn with_names(name: &str, union: Option<Box<str>>, member_name: Option<Box<str>>) -> Result<Meaning, String> {
    if [&union, &member_name].into_iter().any(|argument| argument.as_deref().is_some_and(str::is_empty)) {
        return Err(format!("an argument of `+{name}` is empty: give it a value or remove it"));
    }
    let member =
        |union, value, family| Ok(Meaning::Member(MemberMarker { union, value, family, presence: Presence::Required }));
    match (name, member_name) {
        ("unionDiscriminator" | "k8s:unionDiscriminator", None) => Ok(Meaning::Discriminator { union, modes: false }),
        ("unionMember", value) => member(union, value, Family::Member),
        ("k8s:unionMember", value) => member(union, value, Family::Validation),
        ("k8s:zeroOrOneOfMember", value) => member(union, value, Family::ZeroOrOneOf),
        (_, Some(_)) => Err(unknown(name, "memberName")),
        (_, None) => Err(unknown(name, "{…}")),
    }
}

/// Parses a list of texts: `=A;B;"C"`, `={A,B}` or `:=A;B`. As for controller-gen, a separator at the end adds nothing.
pub(super) fn listed(name: &str, rest: &str) -> Result<Vec<Box<str>>, String> {
    let text = rest.trim().trim_start_matches([':', '=']).trim();
    let (mut text, separator) = match text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
        Some(inner) => (inner.trim(), ','),
        None => (text, ';'),
    };
    let mut values = Vec::new();
    while !text.is_empty() {
        let (value, rest) = leading_text(name, text, &[separator])?;
        values.push(value);
        text = match rest.strip_prefix(separator) {
            Some(rest) => rest.trim_start(),
            None if rest.is_empty() => rest,
            None => return Err(unknown(name, rest)),
        };
    }
    Ok(values)
}

/// Returns the text of a whole value, which may be in quotes.
pub(super) fn whole(name: &str, text: &str) -> Result<Box<str>, String> {
    match leading_text(name, text.trim(), &[])? {
        (value, "") => Ok(value),
        (_, rest) => Err(unknown(name, rest)),
    }
}

/// Splits a text in quotes, or the one before the next of the separators, from what follows it.
fn leading_text<'t>(name: &str, text: &'t str, separators: &[char]) -> Result<(Box<str>, &'t str), String> {
    if let Some(read) = quoted(text) {
        let (value, rest) = read.map_err(|error| format!("{error} in `+{name}`"))?;
        return Ok((value.into(), rest.trim_start()));
    }
    let (value, rest) = text.split_at(text.find(separators).unwrap_or(text.len()));
    Ok((value.trim_end().into(), rest))
}

pub(super) fn unknown(name: &str, argument: &str) -> String {
    format!("`+{name}` has no argument `{argument}`: correct or remove it")
}

/// The arguments of a marker, each with its name. The name of one without is empty.
type Arguments<'t> = Vec<(&'t str, Box<str>)>;

/// Most markers in one line.
const MOST_MARKERS: usize = 16;

/// A line of markers, each but the last with another one behind it.
#[derive(Default)]
pub(super) struct Line<'t> {
    /// The name of the marker that counts: the last one, or one that changes what the last one is about.
    pub(super) name: &'t str,
    /// The marker before it that makes it depend on an option.
    pub(super) condition: Option<String>,
    /// `None` if the line has nothing to do with unions.
    pub(super) meaning: Option<Meaning>,
}

/// Splits a text into the name of a marker and what follows it.
pub(super) fn split_name(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !(c.is_alphanumeric() || "_-.:".contains(c))).unwrap_or(text.len()))
}

/// Reads the marker behind another one, or a text whose quotes have to be right.
fn read_value<'t>(name: &str, value: &'t str, number: usize) -> Result<Line<'t>, String> {
    if let Some(next) = value.strip_prefix('+').filter(|next| next.starts_with(char::is_alphabetic)) {
        return read_line(next, number + 1);
    }
    leading_text(name, value, &[])?;
    Ok(Line::default())
}

/// Reads a line of markers, without the `+` of the first. `number` is its place in the line, counted from 1.
pub(super) fn read_line(text: &str, number: usize) -> Result<Line<'_>, String> {
    let (name, rest) = split_name(text);
    if number > MOST_MARKERS {
        return Err(format!("more than {MOST_MARKERS} markers in one line"));
    }
    let known = find(name);
    let line = |meaning| Ok(Line { name, condition: None, meaning });
    match known {
        Some((Reader::Proposal, _)) => return line(Some(proposal_marker(name, rest)?)),
        Some((Reader::Union, _)) if rest.starts_with("={") => return line(Some(with_json(name, rest.trim_end())?)),
        _ => {}
    }
    let (arguments, rest) = match rest.strip_prefix('(') {
        Some(inside) => arguments(name, inside)?,
        None => (Vec::new(), rest),
    };
    let behind = match rest.strip_prefix('=') {
        None if is_end(rest) => None,
        None => return Err(unknown(name, rest.trim())),
        Some(value) => Some(read_value(name, value, number)?),
    };
    let Some((reader, names)) = known else {
        return match (misspelt(name), behind.and_then(|behind| behind.meaning)) {
            (Some(message), _) => Err(message),
            (None, Some(_)) => Err(format!("cannot read a union behind `+{name}`: declare the union by hand")),
            (None, None) => line(None),
        };
    };
    if reader != Reader::Items {
        check(name, &arguments, names)?;
    }
    let mut arguments: BTreeMap<_, _> = arguments.into_iter().collect();
    let mut argument = |key: &str| arguments.remove(key);
    let missing = || format!("`+{name}` has no argument: write `+{name}(…)`");
    match (reader, behind) {
        (Reader::Level, Some(behind)) => Ok(behind),
        (Reader::Condition, Some(behind)) => {
            let option = argument("").ok_or_else(missing)?;
            Ok(Line { condition: Some(format!("+{name}({option})")), ..behind })
        }
        (Reader::Subfield, Some(Line { name: inner, condition, meaning: Some(meaning) })) => {
            let field = argument("").ok_or_else(missing)?;
            if matches!(meaning, Meaning::Subfield(..)) {
                return Err(format!("`+{name}` is behind another one, which declarative validation refuses"));
            }
            let is_left_out = matches!(meaning, Meaning::Unsupported(_));
            let meaning = if is_left_out { meaning } else { Meaning::Subfield(field, Box::new(meaning)) };
            Ok(Line { name: inner, condition, meaning: Some(meaning) })
        }
        (Reader::Items, Some(Line { name: inner, meaning: Some(_), .. })) => line(Some(Meaning::Unsupported(format!(
            "`+{inner}` behind `+{name}` is about the items of a list or map, and a union has fields of an object: the \
                 union is left out"
        )))),
        (Reader::Level | Reader::Condition | Reader::Subfield | Reader::Items, _) => line(None),
        (Reader::IfMode, Some(Line { name: inner, meaning: Some(_), .. })) => line(Some(Meaning::Unsupported(
            format!("`+{inner}` behind `+{name}` makes a union in one mode only: the union is left out"),
        ))),
        (Reader::IfMode, Some(Line { name: inner, condition, .. })) => {
            let (union, value) = (argument("modality"), argument("").or_else(|| argument("mode")));
            let value = Some(value.ok_or_else(|| format!("`+{name}` has no mode: write `+{name}(\"…\")`"))?);
            let presence = match inner {
                "k8s:required" => Presence::Required,
                "k8s:forbidden" => Presence::Forbidden,
                _ => Presence::Optional,
            };
            let meaning = Meaning::Member(MemberMarker { union, value, presence, family: Family::Mode });
            Ok(Line { name, condition, meaning: Some(meaning) })
        }
        (Reader::IfMode, None) => Err(format!("`+{name}` has no marker behind it: write `+{name}(…)=+k8s:optional`")),
        (_, Some(_)) => Err(format!("`+{name}` has no value: remove what follows `=`")),
        (Reader::ModeDiscriminator, None) => {
            line(Some(Meaning::Discriminator { union: argument("modality"), modes: true }))
        }
        (Reader::DependentForbidden, None) => line(Some(Meaning::Excludes(argument("").ok_or_else(missing)?))),
        (_, None) => line(Some(with_names(name, argument("union"), argument("memberName"))?)),
    }
}

/// Returns true for the end of a line, or a comment behind whitespace.
fn is_end(text: &str) -> bool {
    let comment = text.trim_start();
    comment.is_empty() || (comment.len() < text.len() && (comment.starts_with('#') || comment.starts_with("//")))
}

/// Reads `union: "u", memberName: "M")`. The name of an argument may be missing.
fn arguments<'t>(name: &str, mut text: &'t str) -> Result<(Arguments<'t>, &'t str), String> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        if let Some(rest) = text.strip_prefix(')') {
            return Ok((found, rest));
        }
        let named = text.split_once(':').filter(|(key, _)| !key.contains([',', ')', '"', '`', '\'']));
        let (key, value) = named.unwrap_or(("", text));
        let (value, rest) = leading_text(name, value.trim_start(), &[',', ')'])?;
        found.push((key.trim_end(), value));
        text = match rest.strip_prefix(',') {
            Some(rest) => rest,
            None if rest.starts_with(')') => rest,
            None if rest.is_empty() => return Err(format!("missing `)` in `+{name}`")),
            None => return Err(unknown(name, rest)),
        };
    }
}

/// Refuses arguments that a marker does not have, and an argument without a name beside others.
fn check(name: &str, arguments: &Arguments<'_>, names: &[&str]) -> Result<(), String> {
    for (position, (key, value)) in arguments.iter().enumerate() {
        if !names.contains(key) {
            return Err(unknown(name, if key.is_empty() { value } else { key }));
        }
        if arguments.iter().take(position).any(|(known, _)| known == key) {
            return Err(format!("duplicate argument `{key}` of `+{name}`: keep one"));
        }
    }
    if arguments.len() > 1 && arguments.iter().any(|(key, _)| key.is_empty()) {
        return Err(format!("`+{name}` has an argument without a name beside others: name every argument"));
    }
    Ok(())
}
