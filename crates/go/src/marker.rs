//! Markers: comment lines that begin with `+`, in every spelling that a proposal has or a tool reads.
//!
//! - The proposal of 2019: `+union`, `+unionDiscriminator`, `+unionDeprecated`.
//! - The proposal of 2022: `+unionMember` with a value and `optional`, `+unionDiscriminatedBy`.
//! - Declarative validation of the built-in types: the `+k8s:` family, whose arguments were JSON before they had parentheses.
//! - Validation by controller-gen: `+kubebuilder:validation:ExactlyOneOf` and `AtMostOneOf`.
//!
//! This module knows the text of one comment line. It does not know which declaration the comment belongs to
//! ([`comments`](crate::syntax)), nor what several markers mean together ([`rules`](crate::rules)).

mod arguments;
mod meaning;

pub(super) use self::meaning::{Family, Meaning, MemberMarker, OneOfMarker};

use self::arguments::{listed, proposal_marker, unquoted, validation_marker};
use super::position::Position;
use kube_unions_core::near::nearest;
use std::collections::BTreeSet;

/// The names of the markers that declare a part of a union.
const UNION_MARKERS: [&str; 10] = [
    "union",
    "unionDiscriminator",
    "unionMember",
    "unionDeprecated",
    "unionDiscriminatedBy",
    "k8s:unionDiscriminator",
    "k8s:unionMember",
    "k8s:zeroOrOneOfMember",
    "kubebuilder:validation:ExactlyOneOf",
    "kubebuilder:validation:AtMostOneOf",
];

/// A marker in the sources.
#[derive(Debug, Clone)]
pub(super) struct Marker {
    pub(super) at: Position,
    /// The name as the author spells it, without arguments: `+k8s:unionMember`.
    pub(super) spelling: Box<str>,
    pub(super) meaning: Meaning,
}

/// Parses the text of a comment, without its slashes, into spelling and meaning.
///
/// Returns `None` if the comment is not a marker, or is a marker that has nothing to do with unions.
pub(super) fn parse(comment: &str) -> Option<(Box<str>, Meaning)> {
    let text = comment.trim().strip_prefix('+')?;
    let (name, rest) =
        text.split_at(text.find(|c: char| !(c.is_alphanumeric() || "_-:".contains(c))).unwrap_or(text.len()));
    // controller-gen also reads `Enum:=A;B`.
    let name = name.strip_suffix(':').unwrap_or(name);
    let meaning = match name {
        "union" | "unionDiscriminator" | "unionMember" | "unionDeprecated" | "unionDiscriminatedBy" => {
            proposal_marker(name, rest)
        }
        "k8s:unionDiscriminator" | "k8s:unionMember" | "k8s:zeroOrOneOfMember" => validation_marker(name, rest),
        "k8s:alpha" | "k8s:beta" => return behind_stability(rest),
        "kubebuilder:validation:Enum" => Ok(Meaning::Enum(listed(rest))),
        "kubebuilder:validation:ExactlyOneOf" => Ok(one_of(true, rest)),
        "kubebuilder:validation:AtMostOneOf" => Ok(one_of(false, rest)),
        "kubebuilder:validation:EmbeddedResource" | "kubebuilder:validation:XEmbeddedResource" => {
            Ok(Meaning::EmbeddedResource)
        }
        "kubebuilder:object:root" if rest.trim() == "=true" => Ok(Meaning::Root),
        "genclient" => Ok(Meaning::Root),
        "groupName" => Ok(Meaning::GroupName(unquoted(rest.trim_start_matches('=')))),
        "versionName" => Ok(Meaning::VersionName(unquoted(rest.trim_start_matches('=')))),
        other if other.starts_with("union") || other.starts_with("k8s:union") => {
            Err(misspelt(other).unwrap_or_else(|| format!("unknown marker `+{other}`: correct the name or remove it")))
        }
        other if other.starts_with("k8s:") && has_union_behind(rest) => match other {
            "k8s:item" | "k8s:eachVal" | "k8s:eachKey" | "k8s:subfield" => {
                let message =
                    format!("`+{other}` makes a union of something else than the fields of an object; left out");
                Ok(Meaning::Unsupported(message))
            }
            _ => Err(format!("cannot read a union behind `+{other}`: declare the union by hand")),
        },
        other => Err(misspelt(other)?),
    };
    Some((format!("+{name}").into(), meaning.unwrap_or_else(Meaning::Invalid)))
}

/// Returns the message for a marker that no tool knows, if a marker of unions has almost this name.
fn misspelt(name: &str) -> Option<String> {
    let near = nearest(name, UNION_MARKERS)?;
    Some(format!("unknown marker `+{name}` (did you mean `+{near}`?)"))
}

fn one_of(exactly: bool, rest: &str) -> Meaning {
    let mut fields = listed(rest);
    let mut seen = BTreeSet::new();
    fields.retain(|field| seen.insert(field.clone()));
    Meaning::OneOf(OneOfMarker { exactly, fields })
}

/// Returns true if the value of a marker is a union marker.
fn has_union_behind(rest: &str) -> bool {
    ["=+k8s:union", "=+k8s:zeroOrOneOfMember"].iter().any(|marker| rest.contains(marker))
}

/// Parses the marker behind `+k8s:alpha(since: "1.37")=`.
fn behind_stability(rest: &str) -> Option<(Box<str>, Meaning)> {
    let inner = match rest.strip_prefix('(') {
        Some(_) => rest.split_once(")=")?.1,
        None => rest.strip_prefix('=')?,
    };
    parse(inner)
}

#[cfg(test)]
mod tests {
    use super::meaning::MemberMarker;
    use super::*;

    fn meaning(comment: &str) -> Meaning {
        parse(comment).unwrap().1
    }

    fn named(union: Option<&str>, value: Option<&str>, optional: bool, family: Family) -> Meaning {
        Meaning::Member(MemberMarker { union: union.map(Into::into), value: value.map(Into::into), optional, family })
    }

    #[test]
    fn reads_every_spelling_of_a_member() {
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
    fn reads_every_spelling_of_the_other_markers() {
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
        assert_eq!(meaning("+kubebuilder:validation:Enum=A;B;"), values(&["A", "B"]));
        assert_eq!(meaning(r#"+kubebuilder:validation:Enum=A;"""#), values(&["A", ""]));
        assert_eq!(meaning("+kubebuilder:validation:Enum="), values(&[]));
        let one_of = |exactly, fields: &[&str]| {
            Meaning::OneOf(OneOfMarker { exactly, fields: fields.iter().map(|&field| field.into()).collect() })
        };
        assert_eq!(
            meaning("+kubebuilder:validation:ExactlyOneOf=http;https;grpc"),
            one_of(true, &["http", "https", "grpc"])
        );
        assert_eq!(meaning("+kubebuilder:validation:AtMostOneOf={a, \"b\", a}"), one_of(false, &["a", "b"]));
        assert_eq!(meaning("+kubebuilder:validation:AtMostOneOf=a;b;"), one_of(false, &["a", "b"]));
        assert_eq!(meaning("+kubebuilder:validation:EmbeddedResource"), Meaning::EmbeddedResource);
        assert_eq!(meaning("+kubebuilder:validation:XEmbeddedResource"), Meaning::EmbeddedResource);
        let unsupported = meaning("+k8s:item(type: \"Approved\")=+k8s:zeroOrOneOfMember");
        assert!(matches!(unsupported, Meaning::Unsupported(_)), "{unsupported:?}");
        assert_eq!(meaning("+groupName=fleet.example.com"), Meaning::GroupName("fleet.example.com".into()));
    }

    #[test]
    fn refuses_arguments_that_a_marker_does_not_have() {
        let rows = [
            ("+unionMember,required", "no argument `required`"),
            ("+unionMember=A,B", "no argument `B`"),
            ("+unionMember A", "no argument `A`"),
            ("+unionMember=", "has no value"),
            ("+unionMember(union: \"u\")", "takes no arguments in parentheses"),
            ("+unionMember={\"colour\": \"x\"}", "unknown field `colour`"),
            ("+unionMember={\"union\": 1}", "invalid type"),
            ("+unionDiscriminator=Type", "no argument `Type`"),
            ("+unionDiscriminator={\"memberName\":\"x\"}", "no argument `memberName`"),
            ("+union=x", "no argument `x`"),
            ("+unionDeprecated,optional", "no argument `optional`"),
            ("+unionDiscriminatedBy", "has no field"),
            ("+unionMembers", "unknown marker `+unionMembers` (did you mean `+unionMember`?)"),
            ("+unionSomething", "unknown marker `+unionSomething`: correct the name or remove it"),
            ("+unoin", "unknown marker `+unoin` (did you mean `+union`?)"),
            ("+uniondiscriminator", "did you mean `+unionDiscriminator`?"),
            ("+k8s:uinonMember(union: \"u\")", "did you mean `+k8s:unionMember`?"),
            ("+kubebuilder:validation:ExactlyOneof=a;b", "did you mean `+kubebuilder:validation:ExactlyOneOf`?"),
            ("+k8s:unionMember(colour: \"x\")", "no argument `colour`"),
            ("+k8s:unionMember(union: \"x)", "missing closing quote"),
            ("+k8s:unionMember(union: \"\")", "is empty"),
            ("+k8s:unionMember(union: \"a\", union: \"b\")", "duplicate argument `union`"),
            ("+k8s:unionMember,optional", "no argument `,optional`"),
            ("+k8s:ifEnabled(Gate)=+k8s:unionMember", "cannot read a union behind `+k8s:ifEnabled`"),
        ];
        for (comment, expected) in rows {
            let Meaning::Invalid(message) = meaning(comment) else { panic!("{comment}: no error") };
            assert!(message.contains(expected), "{comment}: {message}");
        }
    }

    #[test]
    fn ignores_other_comments() {
        for comment in [
            "union",
            "a +union",
            "+optional",
            "+k8s:optional",
            "+unique",
            "",
            "+",
            "+k8s:alpha(since: \"1\")",
            "+kubebuilder:validation:AtLeastOneOf=a;b",
        ] {
            assert!(parse(comment).is_none(), "{comment}");
        }
    }
}
