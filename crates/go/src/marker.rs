//! Markers: comment lines that begin with `+`, in every spelling that was proposed or shipped.
//!
//! The proposal of 2019 has `+union`, `+unionDiscriminator` and `+unionDeprecated`; that of 2022 `+unionMember` with a name and
//! `optional`, and `+unionDiscriminatedBy`; declarative validation of built-in types has the `+k8s:` family, and spelled its
//! arguments as JSON before it had parentheses.

use super::types::Position;
use serde::Deserialize;

/// A marker that counts, where it stands.
#[derive(Debug, Clone)]
pub(super) struct Marker {
    pub(super) at: Position,
    /// As it is spelled, without arguments: `+k8s:unionMember`.
    pub(super) spelling: Box<str>,
    pub(super) meaning: Meaning,
}

/// What a marker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The struct is a union.
    Union,
    /// The field is the discriminator, of the union of that name if it has one.
    Discriminator {
        union: Option<Box<str>>,
    },
    /// The field is a member.
    Member(MemberMarker),
    /// The Go name of the discriminator that the member goes with.
    DiscriminatedBy(Box<str>),
    /// The values that the field, or the type, may have.
    Enum(Vec<Box<str>>),
    /// The struct is a kind of its own.
    Root,
    GroupName(Box<str>),
    VersionName(Box<str>),
    /// A union that is not one of fields beside each other: what to say of it.
    Elsewhere(String),
    /// A marker of unions that can't be read, and why.
    Faulty(String),
}

/// What a marker says of a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct MemberMarker {
    /// The name of the union, where a struct has several.
    pub(super) union: Option<Box<str>>,
    /// The discriminator's value.
    pub(super) value: Option<Box<str>>,
    /// Whether the value may be chosen without the field being set.
    pub(super) optional: bool,
    pub(super) family: Family,
}

/// Which proposal a member's marker is of, as far as it decides the form of the union.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub(super) enum Family {
    #[default]
    Member,
    /// `+unionDeprecated`: the form of 2019.
    Deprecated,
    /// `+k8s:zeroOrOneOfMember`: has no discriminator.
    ZeroOrOneOf,
}

impl Meaning {
    /// Whether it is about unions at all.
    pub(super) fn is_about_unions(&self) -> bool {
        match self {
            Self::Union | Self::Discriminator { .. } | Self::Member(_) | Self::DiscriminatedBy(_) | Self::Faulty(_) => {
                true
            }
            Self::Enum(_) | Self::Root | Self::GroupName(_) | Self::VersionName(_) | Self::Elsewhere(_) => false,
        }
    }
}

/// Reads a comment, without the slashes. `None` where it is no marker, or one that nobody here asks for.
pub(super) fn read(comment: &str) -> Option<(Box<str>, Meaning)> {
    let text = comment.trim().strip_prefix('+')?;
    let (name, rest) =
        text.split_at(text.find(|c: char| !(c.is_alphanumeric() || "_-:".contains(c))).unwrap_or(text.len()));
    // `Enum:=A;B` is spelled with a colon of its own.
    let name = name.strip_suffix(':').unwrap_or(name);
    let meaning = match name {
        "union" | "unionDiscriminator" | "unionMember" | "unionDeprecated" | "unionDiscriminatedBy" => {
            plain(name, rest)
        }
        "k8s:unionDiscriminator" | "k8s:unionMember" | "k8s:zeroOrOneOfMember" => validation(name, rest),
        "k8s:alpha" | "k8s:beta" => return behind(rest),
        "kubebuilder:validation:Enum" => Ok(Meaning::Enum(enumeration(rest))),
        "kubebuilder:object:root" => return (rest.trim() == "=true").then(|| (spelled(name), Meaning::Root)),
        "genclient" => Ok(Meaning::Root),
        "groupName" => Ok(Meaning::GroupName(unquoted(rest.trim_start_matches('=')))),
        "versionName" => Ok(Meaning::VersionName(unquoted(rest.trim_start_matches('=')))),
        other if other.starts_with("union") || other.starts_with("k8s:union") => {
            Err(format!("there is no marker `+{other}`; correct the name or remove it"))
        }
        other if other.starts_with("k8s:") && has_union_behind(rest) => match other {
            // Of a list's items, or of what stands deeper.
            "k8s:item" | "k8s:eachVal" | "k8s:eachKey" | "k8s:subfield" => {
                let message = format!("a union behind `+{other}` is not one of fields of an object, and is left out");
                Ok(Meaning::Elsewhere(message))
            }
            _ => Err(format!("nothing is known of unions behind `+{other}`; declare the union by hand")),
        },
        _ => return None,
    };
    Some((spelled(name), meaning.unwrap_or_else(Meaning::Faulty)))
}

/// Whether another marker has one of unions as its value.
fn has_union_behind(rest: &str) -> bool {
    ["=+k8s:union", "=+k8s:zeroOrOneOfMember"].iter().any(|marker| rest.contains(marker))
}

fn spelled(name: &str) -> Box<str> {
    format!("+{name}").into()
}

/// The marker behind `+k8s:alpha(since: "1.37")=`.
fn behind(rest: &str) -> Option<(Box<str>, Meaning)> {
    let inner = match rest.strip_prefix('(') {
        Some(_) => rest.split_once(")=")?.1,
        None => rest.strip_prefix('=')?,
    };
    read(inner)
}

/// The spellings of the two proposals, and JSON where declarative validation had it.
fn plain(name: &str, rest: &str) -> Result<Meaning, String> {
    let rest = rest.trim_end();
    if let Some(json) = rest.strip_prefix('=').filter(|value| value.starts_with('{')) {
        return with_arguments(name, json_arguments(name, json)?);
    }
    if rest.starts_with('(') {
        return Err(format!("`+{name}` takes no arguments in parentheses; that is `+k8s:{name}`"));
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
        return Err(format!("`+{name}=` names nothing; write the name behind it or remove the `=`"));
    }
    match (name, value, options) {
        ("union", None, None) => Ok(Meaning::Union),
        ("unionDiscriminator", None, None) => Ok(Meaning::Discriminator { union: None }),
        ("unionDeprecated", None, None) => Ok(member(Family::Deprecated)),
        ("unionDiscriminatedBy", Some(field), None) => Ok(Meaning::DiscriminatedBy(field)),
        ("unionDiscriminatedBy", None, None) => {
            Err("`+unionDiscriminatedBy` names no field; write `+unionDiscriminatedBy=Field`".to_owned())
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

/// The spellings of declarative validation.
fn validation(name: &str, rest: &str) -> Result<Meaning, String> {
    let rest = without_comment(rest).trim_end();
    if rest.is_empty() {
        return with_arguments(name, Arguments::default());
    }
    if let Some(json) = rest.strip_prefix('=') {
        return with_arguments(name, json_arguments(name, json)?);
    }
    let inner = rest.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    let inner = inner.ok_or_else(|| unknown(name, rest.trim()))?;
    with_arguments(name, named_arguments(name, inner)?)
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    union: Option<Box<str>>,
    member_name: Option<Box<str>>,
}

fn with_arguments(name: &str, Arguments { union, member_name }: Arguments) -> Result<Meaning, String> {
    if [&union, &member_name].into_iter().any(|argument| argument.as_deref().is_some_and(str::is_empty)) {
        return Err(format!("an argument of `+{name}` is empty; give it a value or leave it out"));
    }
    match (name, member_name) {
        ("unionDiscriminator" | "k8s:unionDiscriminator", None) => Ok(Meaning::Discriminator { union }),
        ("unionMember" | "k8s:unionMember", value) => {
            Ok(Meaning::Member(MemberMarker { union, value, ..MemberMarker::default() }))
        }
        ("k8s:zeroOrOneOfMember", value) => {
            Ok(Meaning::Member(MemberMarker { union, value, family: Family::ZeroOrOneOf, optional: false }))
        }
        (_, Some(_)) => Err(unknown(name, "memberName")),
        (_, None) => Err(unknown(name, "{…}")),
    }
}

fn json_arguments(name: &str, json: &str) -> Result<Arguments, String> {
    serde_json::from_str(json).map_err(|error| {
        let error = error.to_string();
        let what = error.split(" at line ").next().unwrap_or_default();
        format!(
            "the arguments of `+{name}` can't be read: {what}; write `={{\"union\": \"u\", \"memberName\": \"M\"}}`"
        )
    })
}

/// `union: "u", memberName: "M"`.
fn named_arguments(name: &str, mut text: &str) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    text = text.trim();
    while !text.is_empty() {
        let (key, rest) = text.split_once(':').ok_or_else(|| unknown(name, text))?;
        let rest = rest.trim_start();
        let (value, rest) = match rest.chars().next() {
            Some(quote @ ('"' | '`')) => {
                let inner = rest.get(1..).unwrap_or_default();
                inner.split_once(quote).ok_or_else(|| format!("a quote in the arguments of `+{name}` is not closed"))?
            }
            _ => rest.split_at(rest.find(',').unwrap_or(rest.len())),
        };
        let slot = match key.trim() {
            "union" => &mut arguments.union,
            "memberName" => &mut arguments.member_name,
            other => return Err(unknown(name, other)),
        };
        if slot.replace(value.trim().into()).is_some() {
            return Err(format!("`+{name}` has the argument `{}` twice", key.trim()));
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
    format!("`+{name}` has no argument `{argument}`; correct or remove it")
}

fn member(family: Family) -> Meaning {
    Meaning::Member(MemberMarker { family, ..MemberMarker::default() })
}

/// Without ` // …` or ` # …` at the end, which declarative validation allows.
fn without_comment(text: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (position, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '`') => quote = Some(character),
            (None, '#') if before.is_whitespace() => return text.get(..position).unwrap_or(text),
            (None, '/')
                if before.is_whitespace() && text.get(position..).is_some_and(|rest| rest.starts_with("//")) =>
            {
                return text.get(..position).unwrap_or(text);
            }
            _ => {}
        }
        before = character;
    }
    text
}

/// `=A;B;"C"`, `={A,B}` and `:=A;B`.
fn enumeration(rest: &str) -> Vec<Box<str>> {
    let text = rest.trim().trim_start_matches([':', '=']).trim();
    let (text, separator) = match text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
        Some(inner) => (inner, ','),
        None => (text, ';'),
    };
    let (mut values, mut value, mut quote) = (Vec::new(), String::new(), None);
    for character in text.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            None if matches!(character, '"' | '`' | '\'') => quote = Some(character),
            None if character == separator => values.push(std::mem::take(&mut value).trim().into()),
            Some(_) | None => value.push(character),
        }
    }
    values.push(value.trim().into());
    values
}

fn unquoted(text: &str) -> Box<str> {
    let text = text.trim();
    let inner = ['"', '`'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(comment: &str) -> Meaning {
        read(comment).unwrap().1
    }

    fn named(union: Option<&str>, value: Option<&str>, optional: bool, family: Family) -> Meaning {
        Meaning::Member(MemberMarker { union: union.map(Into::into), value: value.map(Into::into), optional, family })
    }

    #[test]
    fn every_spelling_of_a_member_is_read() {
        let rows = [
            ("+unionMember", None, None, false, Family::Member),
            ("  +unionMember  ", None, None, false, Family::Member),
            ("+unionMember,optional", None, None, true, Family::Member),
            ("+unionMember=Canary", None, Some("Canary"), false, Family::Member),
            ("+unionMember=Canary,optional", None, Some("Canary"), true, Family::Member),
            ("+unionMember=\"Blue Green\", optional", None, Some("Blue Green"), true, Family::Member),
            (r#"+unionMember={"memberName": "X"}"#, None, Some("X"), false, Family::Member),
            (r#"+unionMember={"union": "u"}"#, Some("u"), None, false, Family::Member),
            (r#"+unionMember={"union": "u", "memberName": "X"}"#, Some("u"), Some("X"), false, Family::Member),
            ("+unionDeprecated", None, None, false, Family::Deprecated),
            ("+k8s:unionMember", None, None, false, Family::Member),
            (r#"+k8s:unionMember(union: "u", memberName: "M")"#, Some("u"), Some("M"), false, Family::Member),
            (r#"+k8s:unionMember(memberName:`a, "b"`) // why"#, None, Some("a, \"b\""), false, Family::Member),
            (r#"+k8s:unionMember={"union": "u"}"#, Some("u"), None, false, Family::Member),
            ("+k8s:zeroOrOneOfMember", None, None, false, Family::ZeroOrOneOf),
            (r#"+k8s:zeroOrOneOfMember(union: "u") # why"#, Some("u"), None, false, Family::ZeroOrOneOf),
            (r#"+k8s:alpha(since: "1.37")=+k8s:unionMember"#, None, None, false, Family::Member),
            (r#"+k8s:beta(since: "1.38")=+k8s:unionMember(union: "u")"#, Some("u"), None, false, Family::Member),
            ("+k8s:alpha=+unionMember=X,optional", None, Some("X"), true, Family::Member),
        ];
        for (comment, union, value, optional, family) in rows {
            assert_eq!(meaning(comment), named(union, value, optional, family), "{comment}");
        }
    }

    #[test]
    fn every_spelling_around_members_is_read() {
        let discriminator = |union: Option<&str>| Meaning::Discriminator { union: union.map(Into::into) };
        assert_eq!(meaning("+union"), Meaning::Union);
        assert_eq!(meaning("+unionDiscriminator"), discriminator(None));
        assert_eq!(meaning(r#"+unionDiscriminator={"union":"u"}"#), discriminator(Some("u")));
        assert_eq!(meaning("+k8s:unionDiscriminator"), discriminator(None));
        assert_eq!(meaning(r#"+k8s:unionDiscriminator(union: "u")"#), discriminator(Some("u")));
        assert_eq!(meaning("+unionDiscriminatedBy=Kind"), Meaning::DiscriminatedBy("Kind".into()));
        let values = |values: &[&str]| Meaning::Enum(values.iter().map(|&value| value.into()).collect());
        assert_eq!(meaning("+kubebuilder:validation:Enum=A;B"), values(&["A", "B"]));
        assert_eq!(meaning(r#"+kubebuilder:validation:Enum:="";A B;"c;d""#), values(&["", "A B", "c;d"]));
        assert_eq!(meaning("+kubebuilder:validation:Enum={A, B}"), values(&["A", "B"]));
        let elsewhere = meaning("+k8s:item(type: \"Approved\")=+k8s:zeroOrOneOfMember");
        assert!(matches!(elsewhere, Meaning::Elsewhere(_)), "{elsewhere:?}");
        assert_eq!(meaning("+groupName=fleet.example.com"), Meaning::GroupName("fleet.example.com".into()));
    }

    #[test]
    fn what_a_marker_does_not_know_is_said() {
        let rows = [
            ("+unionMember,required", "no argument `required`"),
            ("+unionMember=A,B", "no argument `B`"),
            ("+unionMember A", "no argument `A`"),
            ("+unionMember=", "names nothing"),
            ("+unionMember(union: \"u\")", "takes no arguments in parentheses"),
            ("+unionMember={\"colour\": \"x\"}", "unknown field `colour`"),
            ("+unionMember={\"union\": 1}", "invalid type"),
            ("+unionDiscriminator=Type", "no argument `Type`"),
            ("+unionDiscriminator={\"memberName\":\"x\"}", "no argument `memberName`"),
            ("+union=x", "no argument `x`"),
            ("+unionDeprecated,optional", "no argument `optional`"),
            ("+unionDiscriminatedBy", "names no field"),
            ("+unionMembers", "no marker `+unionMembers`"),
            ("+k8s:unionMember(colour: \"x\")", "no argument `colour`"),
            ("+k8s:unionMember(union: \"x)", "not closed"),
            ("+k8s:unionMember(union: \"\")", "is empty"),
            ("+k8s:unionMember(union: \"a\", union: \"b\")", "twice"),
            ("+k8s:unionMember,optional", "no argument `,optional`"),
            ("+k8s:ifEnabled(Gate)=+k8s:unionMember", "nothing is known of unions behind `+k8s:ifEnabled`"),
        ];
        for (comment, expected) in rows {
            let Meaning::Faulty(message) = meaning(comment) else { panic!("{comment}: can be read") };
            assert!(message.contains(expected), "{comment}: {message}");
        }
    }

    #[test]
    fn other_comments_are_none() {
        for comment in
            ["union", "a +union", "+optional", "+k8s:optional", "+unique", "", "+", "+k8s:alpha(since: \"1\")"]
        {
            assert!(read(comment).is_none(), "{comment}");
        }
    }
}
