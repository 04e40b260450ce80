//! Arguments of markers, in the syntax of each family.

use super::meaning::{Family, Meaning, MemberMarker};
use serde::Deserialize;

/// Parses a marker of the two proposals: `=value`, `,optional`, or JSON, which declarative validation once used.
pub(super) fn proposal_marker(name: &str, rest: &str) -> Result<Meaning, String> {
    let rest = rest.trim_end();
    if let Some(json) = rest.strip_prefix('=').filter(|value| value.starts_with('{')) {
        return with_arguments(name, json_arguments(name, json)?);
    }
    if rest.starts_with('(') {
        return Err(format!("`+{name}` takes no arguments in parentheses: only the `+k8s:` markers do"));
    }
    let (value, options) = match rest.strip_prefix('=') {
        Some(value) => {
            value.split_once(',').map_or((Some(value), None), |(value, options)| (Some(value), Some(options)))
        }
        None => match rest.strip_prefix(',') {
            Some(options) => (None, Some(options)),
            None if rest.is_empty() => (None, None),
            None => return Err(unknown(name, rest.trim())),
        },
    };
    let value = value.map(unquoted);
    if value.as_deref().is_some_and(str::is_empty) {
        return Err(format!("`+{name}=` has no value: write one or remove the `=`"));
    }
    match (name, value, options) {
        ("union", None, None) => Ok(Meaning::Union),
        ("unionDiscriminator", None, None) => Ok(Meaning::Discriminator { union: None }),
        ("unionDeprecated", None, None) => {
            Ok(Meaning::Member(MemberMarker { family: Family::Deprecated, ..MemberMarker::default() }))
        }
        ("unionDiscriminatedBy", Some(field), None) => Ok(Meaning::DiscriminatedBy(field)),
        ("unionDiscriminatedBy", None, None) => {
            Err("`+unionDiscriminatedBy` has no field: write `+unionDiscriminatedBy=Field`".to_owned())
        }
        ("unionMember", value, options) => {
            let optional = match options.map(str::trim) {
                None => false,
                Some("optional") => true,
                Some(other) => return Err(unknown(name, other)),
            };
            Ok(Meaning::Member(MemberMarker { value, optional, ..MemberMarker::default() }))
        }
        (_, Some(value), _) => Err(unknown(name, &value)),
        (_, None, options) => Err(unknown(name, options.unwrap_or_default().trim())),
    }
}

/// Parses a marker of declarative validation: `(union: "u", memberName: "M")` or JSON, and a comment behind it.
pub(super) fn validation_marker(name: &str, rest: &str) -> Result<Meaning, String> {
    let rest = without_comment(rest).trim_end();
    let arguments = if rest.is_empty() {
        Arguments::default()
    } else if let Some(json) = rest.strip_prefix('=') {
        json_arguments(name, json)?
    } else {
        let inner = rest.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
        named_arguments(name, inner.ok_or_else(|| unknown(name, rest.trim()))?)?
    };
    with_arguments(name, arguments)
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    union: Option<Box<str>>,
    member_name: Option<Box<str>>,
}

fn with_arguments(name: &str, Arguments { union, member_name }: Arguments) -> Result<Meaning, String> {
    if [&union, &member_name].into_iter().any(|argument| argument.as_deref().is_some_and(str::is_empty)) {
        return Err(format!("an argument of `+{name}` is empty: give it a value or remove it"));
    }
    let member = |union, value, family| Meaning::Member(MemberMarker { union, value, family, optional: false });
    match (name, member_name) {
        ("unionDiscriminator" | "k8s:unionDiscriminator", None) => Ok(Meaning::Discriminator { union }),
        ("unionMember" | "k8s:unionMember", value) => Ok(member(union, value, Family::Member)),
        ("k8s:zeroOrOneOfMember", value) => Ok(member(union, value, Family::ZeroOrOneOf)),
        (_, Some(_)) => Err(unknown(name, "memberName")),
        (_, None) => Err(unknown(name, "{…}")),
    }
}

fn json_arguments(name: &str, json: &str) -> Result<Arguments, String> {
    serde_json::from_str(json).map_err(|error| {
        let error = error.to_string();
        let problem = error.split(" at line ").next().unwrap_or_default();
        format!("invalid arguments of `+{name}`: {problem}; write `={{\"union\": \"u\", \"memberName\": \"M\"}}`")
    })
}

/// Parses `union: "u", memberName: "M"`.
fn named_arguments(name: &str, mut text: &str) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    text = text.trim();
    while !text.is_empty() {
        let (key, rest) = text.split_once(':').ok_or_else(|| unknown(name, text))?;
        let rest = rest.trim_start();
        let (value, rest) = match rest.chars().next() {
            Some(quote @ ('"' | '`')) => {
                let inner = rest.get(1..).unwrap_or_default();
                inner.split_once(quote).ok_or_else(|| format!("missing closing quote in the arguments of `+{name}`"))?
            }
            _ => rest.split_at(rest.find(',').unwrap_or(rest.len())),
        };
        let slot = match key.trim() {
            "union" => &mut arguments.union,
            "memberName" => &mut arguments.member_name,
            other => return Err(unknown(name, other)),
        };
        if slot.replace(value.trim().into()).is_some() {
            return Err(format!("duplicate argument `{}` of `+{name}`: keep one", key.trim()));
        }
        let rest = rest.trim_start();
        text = match rest.strip_prefix(',') {
            Some(rest) => rest.trim(),
            None if rest.is_empty() => rest,
            None => return Err(unknown(name, rest)),
        };
    }
    Ok(arguments)
}

fn unknown(name: &str, argument: &str) -> String {
    format!("`+{name}` has no argument `{argument}`: correct or remove it")
}

/// Removes a trailing ` // comment` or ` # comment`, which declarative validation allows.
fn without_comment(text: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (position, character) in text.char_indices() {
        let starts_comment = || {
            before.is_whitespace()
                && text.get(position..).is_some_and(|rest| rest.starts_with('#') || rest.starts_with("//"))
        };
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '`') => quote = Some(character),
            (None, '#' | '/') if starts_comment() => return text.get(..position).unwrap_or(text),
            _ => {}
        }
        before = character;
    }
    text
}

/// Parses a list of texts: `=A;B;"C"`, `={A,B}` or `:=A;B`. As for controller-gen, a separator at the end adds nothing.
pub(super) fn listed(rest: &str) -> Vec<Box<str>> {
    let text = rest.trim().trim_start_matches([':', '=']).trim();
    let (text, separator) = match text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
        Some(inner) => (inner, ','),
        None => (text, ';'),
    };
    let (mut values, mut value, mut quote) = (Vec::new(), String::new(), None);
    // A quoted empty text is a value, the nothing behind the last separator is not.
    let mut quoted = false;
    for character in text.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            None if matches!(character, '"' | '`' | '\'') => {
                quoted = true;
                quote = Some(character);
            }
            None if character == separator => {
                values.push(std::mem::take(&mut value).trim().into());
                quoted = false;
            }
            Some(_) | None => value.push(character),
        }
    }
    if quoted || !value.trim().is_empty() {
        values.push(value.trim().into());
    }
    values
}

pub(super) fn unquoted(text: &str) -> Box<str> {
    let text = text.trim();
    let inner = ['"', '`'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(text).into()
}
