//! Markers: comment lines that begin with `+`, in every spelling that a proposal has or a tool reads.
//!
//! - The proposal of 2019: `+union`, `+unionDiscriminator`, `+unionDeprecated`.
//! - The proposal of 2022: `+unionMember` with a value and `optional`, `+unionDiscriminatedBy`.
//! - Declarative validation of the built-in types: the `+k8s:` family, whose arguments were JSON before they had parentheses, and which may follow one another.
//! - Validation by controller-gen: `+kubebuilder:validation:ExactlyOneOf` and `AtMostOneOf`.
//!
//! This module knows the text of one comment line. It does not know which declaration the comment belongs to
//! ([`comments`](crate::syntax)), nor what several markers mean together ([`rules`](crate::rules)). [`meaning`] has the
//! names of all markers.

mod arguments;
mod meaning;

pub(super) use self::meaning::{Family, Meaning, MemberMarker, OneOfMarker, Presence};

use self::arguments::{listed, proposal_marker, read_line, split_name, whole};
use self::meaning::{Reader, find, has_union_behind, misspelt, of_another_tool};
use super::finding::Position;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
pub(super) struct Marker {
    pub(super) at: Position,
    /// The name as the author spells it, without arguments: `+k8s:unionMember`.
    pub(super) spelling: Box<str>,
    /// The marker before this one that makes it depend on an option: `+k8s:ifEnabled(Feature)`.
    pub(super) condition: Option<Box<str>>,
    pub(super) meaning: Meaning,
}

impl Marker {
    /// Parses the text of a comment, without its slashes.
    ///
    /// Returns `None` if the comment is not a marker, or is a marker that has nothing to do with unions.
    pub(super) fn parse(comment: &str, at: impl FnOnce() -> Position) -> Option<Self> {
        let text = comment.trim().strip_prefix('+')?;
        let (name, rest) = split_name(text);
        // controller-gen also reads `Enum:=A;B`.
        let name = name.strip_suffix(':').unwrap_or(name);
        let (mut spelling, mut condition) = (name, None);
        let meaning = match find(name).map(|(reader, _)| reader) {
            Some(Reader::Proposal) => proposal_marker(name, rest),
            Some(Reader::Enum) => listed(name, rest).map(Meaning::Enum),
            Some(Reader::ExactlyOneOf) => one_of(true, name, rest),
            Some(Reader::AtMostOneOf) => one_of(false, name, rest),
            Some(Reader::EmbeddedResource) => Ok(Meaning::EmbeddedResource),
            Some(Reader::Root) => Ok((name == "genclient" || rest.trim() == "=true").then_some(Meaning::Root)?),
            Some(Reader::GroupName) => whole(name, rest.trim_start_matches('=')).map(Meaning::GroupName),
            Some(Reader::VersionName) => whole(name, rest.trim_start_matches('=')).map(Meaning::VersionName),
            None if !name.starts_with("k8s:") || !has_union_behind(rest) => match of_another_tool(name) {
                Some(message) => Ok(Meaning::Unsupported(message)),
                None => Err(misspelt(name)?),
            },
            Some(_) | None => match read_line(text, 1) {
                Ok(line) => {
                    (spelling, condition) = (line.name, line.condition.map(Into::into));
                    Ok(line.meaning?)
                }
                Err(error) => Err(error),
            },
        };
        let (spelling, meaning) = (format!("+{spelling}").into(), meaning.unwrap_or_else(Meaning::Invalid));
        Some(Self { at: at(), spelling, condition, meaning })
    }
}

fn one_of(exactly: bool, name: &str, rest: &str) -> Result<Meaning, String> {
    let mut fields = listed(name, rest)?;
    let mut seen = BTreeSet::new();
    fields.retain(|field| seen.insert(field.clone()));
    Ok(Meaning::OneOf(OneOfMarker { exactly, fields }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    fn parse(comment: &str) -> Option<Marker> {
        let file: Arc<Path> = Path::new("a.go").into();
        Marker::parse(comment, || Position { file, line: 1, column: 1 })
    }

    fn meaning(comment: &str) -> Meaning {
        parse(comment).unwrap().meaning
    }

    fn named(union: Option<&str>, value: Option<&str>, optional: bool, family: Family) -> Meaning {
        let presence = if optional { Presence::Optional } else { Presence::Required };
        Meaning::Member(MemberMarker { union: union.map(Into::into), value: value.map(Into::into), presence, family })
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
            ("+k8s:unionMember", None, None, false, Family::Validation),
            (r#"+k8s:unionMember(union: "u", memberName: "M")"#, Some("u"), Some("M"), false, Family::Validation),
            (r#"+k8s:unionMember(memberName:`a, "b"`) // why"#, None, Some("a, \"b\""), false, Family::Validation),
            (r#"+k8s:unionMember={"union": "u"}"#, Some("u"), None, false, Family::Validation),
            ("+k8s:zeroOrOneOfMember", None, None, false, Family::ZeroOrOneOf),
            (r#"+k8s:zeroOrOneOfMember(union: "u") # why"#, Some("u"), None, false, Family::ZeroOrOneOf),
            (r#"+k8s:alpha(since: "1.37")=+k8s:unionMember"#, None, None, false, Family::Validation),
            (r#"+k8s:beta(since: "1.38")=+k8s:unionMember(union: "u")"#, Some("u"), None, false, Family::Validation),
            ("+k8s:alpha=+unionMember=X,optional", None, Some("X"), true, Family::Member),
        ];
        for (comment, union, value, optional, family) in rows {
            assert_eq!(meaning(comment), named(union, value, optional, family), "{comment}");
        }
    }

    #[test]
    fn reads_every_spelling_of_the_other_markers() {
        let discriminator = |union: Option<&str>| Meaning::Discriminator { union: union.map(Into::into), modes: false };
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
            ("+k8s:ifGate(Gate)=+k8s:unionMember", "cannot read a union behind `+k8s:ifGate`"),
            ("+k8s:ifEnabled=+k8s:unionMember", "`+k8s:ifEnabled` has no argument"),
            ("+k8s:alpha=+k8s:unionMembre", "did you mean `+k8s:unionMember`?"),
            ("+k8s:unionMember=+k8s:required", "has no value"),
            ("+k8s:unionMember(union: \"a\"", "missing `)`"),
            ("+k8s:unionMember(union: \"a\" x)", "no argument `x)`"),
            ("+k8s:unionMember(\"a\")", "no argument `a`"),
            ("+k8s:modeDiscriminater", "did you mean `+k8s:modeDiscriminator`?"),
            ("+k8s:modeDiscriminator(mode: \"A\")", "no argument `mode`"),
            ("+k8s:ifMode(\"A\")", "has no marker behind it"),
            ("+k8s:ifMode(modality: \"m\")=+k8s:required", "has no mode"),
            ("+k8s:ifMode(\"A\", modality: \"m\")=+k8s:required", "without a name beside others"),
            ("+k8s:dependentForbidden", "`+k8s:dependentForbidden` has no argument"),
            ("+k8s:dependentForbidden=b", "has no value"),
            ("+k8s:subfield(a)=+k8s:subfield(b)=+k8s:unionMember", "is behind another one"),
        ];
        for (comment, expected) in rows {
            let Meaning::Invalid(message) = meaning(comment) else { panic!("{comment}: no error") };
            assert!(message.contains(expected), "{comment}: {message}");
        }
    }

    /// Every family reads quotes in one place.
    #[test]
    fn a_quote_that_is_not_closed_is_one_fault() {
        for comment in [
            "+unionMember=\"A",
            "+unionMember=`A,optional",
            "+unionDiscriminatedBy=\"Kind",
            "+k8s:unionMember(union: \"a)",
            "+k8s:unionDiscriminator(union: `a)",
            "+k8s:zeroOrOneOfMember(memberName: 'a)",
            "+k8s:modeDiscriminator(modality: \"a)",
            "+k8s:ifMode(\"A)=+k8s:required",
            "+k8s:ifMode(\"A\")=+k8s:pattern=\"a",
            "+k8s:dependentForbidden(\"a)",
            "+k8s:subfield(\"a)=+k8s:unionMember",
            "+k8s:item(type: \"a)=+k8s:unionMember",
            "+k8s:ifEnabled(\"a)=+k8s:unionMember",
            "+k8s:alpha(since: \"1.37)=+k8s:unionMember",
            "+k8s:else(\"a)=+k8s:unionMember",
            "+kubebuilder:validation:Enum=A;\"B",
            "+kubebuilder:validation:ExactlyOneOf={a,`b}",
            "+kubebuilder:validation:AtMostOneOf=a;'b",
            "+groupName=\"fleet.example.com",
            "+versionName=`v1",
        ] {
            let Meaning::Invalid(message) = meaning(comment) else { panic!("{comment}: no error") };
            assert!(message.starts_with("missing closing quote in `+"), "{comment}: {message}");
        }
        let Meaning::Invalid(message) = meaning(r#"+k8s:unionMember(union: "\q")"#) else { panic!("no error") };
        assert_eq!(message, "invalid escape between quotes in `+k8s:unionMember`");
    }

    #[test]
    fn reads_markers_before_others() {
        let member = || named(None, None, false, Family::Validation);
        let mode = |union: Option<&str>, presence| {
            let (union, value) = (union.map(Into::into), Some("A".into()));
            Meaning::Member(MemberMarker { union, value, presence, family: Family::Mode })
        };
        let within = |meaning| Meaning::Subfield("a".into(), Box::new(meaning));
        let modes = |union: Option<&str>| Meaning::Discriminator { union: union.map(Into::into), modes: true };
        let rows = [
            ("+k8s:ifEnabled(Gate)=+k8s:unionMember", Some("+k8s:ifEnabled(Gate)"), member()),
            ("+k8s:ifDisabled(\"Gate\")=+k8s:beta=+k8s:unionMember", Some("+k8s:ifDisabled(Gate)"), member()),
            ("+k8s:subfield(a)=+k8s:unionMember", None, within(member())),
            ("+k8s:alpha=+k8s:subfield(\"a\")=+k8s:unionMember", None, within(member())),
            ("+k8s:modeDiscriminator", None, modes(None)),
            ("+k8s:modeDiscriminator(modality:\"M\")", None, modes(Some("M"))),
            ("+k8s:ifMode(\"A\")=+k8s:required", None, mode(None, Presence::Required)),
            ("+k8s:ifMode(A)=+k8s:optional # why", None, mode(None, Presence::Optional)),
            ("+k8s:ifMode(mode: \"A\", modality: \"M\")=+k8s:required", None, mode(Some("M"), Presence::Required)),
            ("+k8s:beta=+k8s:ifMode(\"A\")=+k8s:alpha=+k8s:required", None, mode(None, Presence::Required)),
            (
                "+k8s:ifMode(A)=+k8s:ifEnabled(F)=+k8s:required",
                Some("+k8s:ifEnabled(F)"),
                mode(None, Presence::Required),
            ),
            ("+k8s:ifMode(\"A\")=+k8s:maxLength=5", None, mode(None, Presence::Optional)),
            ("+k8s:ifMode(\"A\")=+k8s:eachVal=+k8s:required", None, mode(None, Presence::Optional)),
            ("+k8s:ifMode(\"A\")=+k8s:forbidden", None, mode(None, Presence::Forbidden)),
            ("+k8s:dependentForbidden(\"b\")", None, Meaning::Excludes("b".into())),
        ];
        for (comment, condition, meaning) in rows {
            let marker = parse(comment).unwrap();
            assert_eq!((marker.condition.as_deref(), marker.meaning), (condition, meaning), "{comment}");
        }
        for comment in [
            "+k8s:ifEnabled(Gate)=+k8s:item(a: \"b\")=+k8s:zeroOrOneOfMember",
            "+k8s:eachVal=+k8s:subfield(a)=+k8s:unionMember",
            "+k8s:subfield(a)=+k8s:eachVal=+k8s:unionMember",
            "+k8s:ifMode(\"A\")=+k8s:unionMember",
        ] {
            assert!(matches!(meaning(comment), Meaning::Unsupported(_)), "{comment}");
        }
        let deep = format!("+{}k8s:unionMember", "k8s:alpha=+".repeat(100_000));
        assert!(matches!(meaning(&deep), Meaning::Invalid(_)));
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
            "+k8s:dependentRequired(\"a\")",
            "+k8s:subfield(a)=+k8s:minimum=5",
            "+k8s:item(a: \"b\", c: true)=+k8s:immutable",
            "+k8s:validateFalse=\"x=+k8s:unionMember\"",
        ] {
            assert!(parse(comment).is_none(), "{comment}");
        }
    }
}
