//! Arguments of the markers of the two proposals and of controller-gen.

use super::meaning::{Family, Meaning, MemberMarker, Presence};
use crate::quoting::quoted;
use serde::Deserialize;

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
pub(super) fn with_json(name: &str, rest: &str) -> Result<Meaning, String> {
    let JsonArguments { union, member_name } = serde_json::from_str(rest.trim_start_matches('=')).map_err(|error| {
        let error = error.to_string();
        let problem = error.split(" at line ").next().unwrap_or_default();
        format!("invalid arguments of `+{name}`: {problem}; write `={{\"union\": \"u\", \"memberName\": \"M\"}}`")
    })?;
    with_names(name, union, member_name)
}

/// Returns the meaning of a marker with the names of its union and of its value.
pub(super) fn with_names(
    name: &str,
    union: Option<Box<str>>,
    member_name: Option<Box<str>>,
) -> Result<Meaning, String> {
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
pub(super) fn leading_text<'t>(name: &str, text: &'t str, separators: &[char]) -> Result<(Box<str>, &'t str), String> {
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
