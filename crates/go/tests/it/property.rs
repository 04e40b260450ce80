//! Ordinary fields are never members, whatever they look like and wherever they stand: clearing one would lose a user's data.

use super::super::Folder;
use super::{Form, Report};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How the author says which fields are members.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Marking {
    /// `+union` alone.
    Implicit,
    /// `+unionMember` on each.
    Explicit,
    /// `+k8s:unionMember` on each.
    Kubernetes,
    /// `+unionDeprecated` on each.
    Deprecated,
}

/// What a field is in Go, and in the schema.
#[derive(Debug, Clone, Copy)]
enum Type {
    Text,
    TextPointer,
    Struct,
    StructPointer,
    Duration,
    IntOrString,
    List,
    ListOfPointers,
    Map,
    Number,
    Flag,
}

#[derive(Debug, Clone)]
enum Field {
    Discriminator,
    Member { value: usize, kind: Type },
    Ordinary { name: String, kind: Type, comment: Comment },
}

/// What stands before an ordinary field.
#[derive(Debug, Clone, Copy)]
enum Comment {
    None,
    Words,
    InTheMiddle,
    Indented,
    Block,
    EndOfLine,
}

/// The values; each may have a member.
const VALUES: [&str; 5] = ["Alpha", "HttpGet", "Gamma", "DELTA", "Epsilon"];
/// The names of their Go fields.
const NAMES: [&str; 5] = ["Alpha", "HTTPGet", "Gamma", "Delta", "Epsilon"];
/// The names of ordinary fields, some of them all but those of members.
const ORDINARY: [&str; 10] =
    ["Alphas", "AlphaRef", "Http", "Get", "NoGamma", "Delta2", "Timeout", "DisplayName", "Members", "Union"];

fn kind() -> impl Strategy<Value = Type> {
    prop_oneof![
        Just(Type::Text),
        Just(Type::TextPointer),
        Just(Type::Struct),
        Just(Type::StructPointer),
        Just(Type::Duration),
        Just(Type::IntOrString),
        Just(Type::List),
        Just(Type::ListOfPointers),
        Just(Type::Map),
        Just(Type::Number),
        Just(Type::Flag),
    ]
}

fn comment() -> impl Strategy<Value = Comment> {
    prop_oneof![
        Just(Comment::None),
        Just(Comment::Words),
        Just(Comment::InTheMiddle),
        Just(Comment::Indented),
        Just(Comment::Block),
        Just(Comment::EndOfLine),
    ]
}

/// A struct with one union, its fields in any order.
fn structs() -> impl Strategy<Value = (Marking, Vec<Field>)> {
    let marking = prop_oneof![
        Just(Marking::Implicit),
        Just(Marking::Explicit),
        Just(Marking::Kubernetes),
        Just(Marking::Deprecated),
    ];
    let members = proptest::sample::subsequence((0..VALUES.len()).collect::<Vec<_>>(), 1..=VALUES.len());
    let ordinary = proptest::sample::subsequence(ORDINARY.to_vec(), 0..=ORDINARY.len());
    (marking, members, vec(any::<bool>(), VALUES.len()), ordinary, vec((kind(), comment()), ORDINARY.len()))
        .prop_flat_map(|(marking, members, pointers, ordinary, kinds)| {
            let member = |(value, pointer): (usize, bool)| Field::Member {
                value,
                kind: if pointer { Type::StructPointer } else { Type::TextPointer },
            };
            let mut fields: Vec<Field> = members.into_iter().zip(pointers).map(member).collect();
            fields.extend(ordinary.into_iter().zip(kinds).map(|(name, (kind, comment))| {
                // Left over beside members that nothing marks, such a field is a doubt; that has a test of its own.
                let doubtful = marking == Marking::Implicit && matches!(kind, Type::StructPointer);
                let kind = if doubtful { Type::Struct } else { kind };
                Field::Ordinary { name: name.to_owned(), kind, comment }
            }));
            fields.push(Field::Discriminator);
            (Just(marking), Just(fields).prop_shuffle())
        })
}

impl Type {
    fn go(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::TextPointer => "*string",
            Self::Struct => "Detail",
            Self::StructPointer => "*Detail",
            Self::Duration => "*metav1.Duration",
            Self::IntOrString => "*intstr.IntOrString",
            Self::List => "[]string",
            Self::ListOfPointers => "[]*Detail",
            Self::Map => "map[string]Detail",
            Self::Number => "*int64",
            Self::Flag => "bool",
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Self::Text | Self::TextPointer | Self::Duration => "{type: string}",
            Self::Struct | Self::StructPointer => "{type: object, properties: {text: {type: string}}}",
            Self::IntOrString => "{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}",
            Self::List => "{type: array, items: {type: string}}",
            Self::ListOfPointers => "{type: array, items: {type: object, properties: {text: {type: string}}}}",
            Self::Map => "{type: object, additionalProperties: {type: object, properties: {text: {type: string}}}}",
            Self::Number => "{type: integer, format: int64}",
            Self::Flag => "{type: boolean}",
        }
    }
}

impl Comment {
    fn before(self) -> &'static str {
        match self {
            Self::None | Self::EndOfLine => "",
            Self::Words => "\t// Some words.\n",
            Self::InTheMiddle => "\t// No marker: +unionMember, since it is not alone.\n",
            Self::Indented => "\t// As was once written:\n\t//\n\t//\t// +unionMember\n\t//\n",
            Self::Block => "\t/*\n\t+unionMember\n\t*/\n",
        }
    }

    fn after(self) -> &'static str {
        match self {
            Self::EndOfLine => " // +unionMember",
            Self::None | Self::Words | Self::InTheMiddle | Self::Indented | Self::Block => "",
        }
    }
}

impl Field {
    fn go(&self, marking: Marking) -> String {
        match self {
            Self::Discriminator => {
                let stage = if marking == Marking::Kubernetes { "k8s:" } else { "" };
                format!(
                    "\t// +{stage}unionDiscriminator\n\t// +optional\n\tType SettingType `json:\"type,omitempty\"`\n\n"
                )
            }
            Self::Member { value, kind } => {
                let marker = match marking {
                    Marking::Implicit => "",
                    Marking::Explicit => "\t// +unionMember\n",
                    Marking::Kubernetes => "\t// +k8s:unionMember\n",
                    Marking::Deprecated => "\t// +unionDeprecated\n",
                };
                let name = NAMES[*value];
                format!(
                    "{marker}\t// +optional\n\t{name} {} `json:\"{},omitempty\"`\n\n",
                    kind.go(),
                    name.to_lowercase()
                )
            }
            Self::Ordinary { name, kind, comment } => {
                let json = name.to_lowercase();
                let (before, after) = (comment.before(), comment.after());
                format!("{before}\t// +optional\n\t{name} {} `json:\"{json},omitempty\"`{after}\n\n", kind.go())
            }
        }
    }

    fn schema(&self) -> String {
        match self {
            Self::Discriminator => format!("type: {{type: string, enum: [{}]}}", VALUES.join(", ")),
            Self::Member { value, kind } => format!("{}: {}", NAMES[*value].to_lowercase(), kind.schema()),
            Self::Ordinary { name, kind, .. } => format!("{}: {}", name.to_lowercase(), kind.schema()),
        }
    }
}

fn sources(marking: Marking, fields: &[Field]) -> (String, String) {
    let mut go = String::from(
        "// +groupName=settings.example.com\npackage v1\n\nimport (\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\t\"k8s.io/apimachinery/pkg/util/intstr\"\n)\n\n\
         // +kubebuilder:object:root=true\ntype Setting struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\n\tSpec SettingSpec `json:\"spec,omitempty\"`\n}\n\n\
         type Detail struct {\n\tText string `json:\"text,omitempty\"`\n}\n\n",
    );
    writeln!(go, "// +kubebuilder:validation:Enum={}\ntype SettingType string\n", VALUES.join(";")).unwrap();
    go.push_str("// SettingSpec is under test.\n");
    if marking == Marking::Implicit {
        go.push_str("//\n// +union\n");
    }
    go.push_str("type SettingSpec struct {\n");
    go.extend(fields.iter().map(|field| field.go(marking)));
    go.push_str("}\n");

    let mut crd = String::from(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: settings.settings.example.com\nspec:\n  group: settings.example.com\n  \
         names: {kind: Setting, listKind: SettingList, plural: settings, singular: setting}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    \
         schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n",
    );
    for field in fields {
        writeln!(crd, "              {}", field.schema()).unwrap();
    }
    (go, crd)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn ordinary_fields_are_never_members((marking, fields) in structs()) {
        let (go, crd) = sources(marking, &fields);
        let folder = Folder::new(&[("go/setting.go", &go), ("crd.yaml", &crd)]);
        let run = folder.run(&["generate", "--go", "go", "--check", "-o", "json", "crd.yaml"]);
        prop_assert_eq!(run.code, 1, "{}\n{:#?}", go, run);
        let report = Report::parse(&run.stdout);
        let unions: Vec<_> = report.unions().map(|(_, union)| union).collect();
        prop_assert_eq!(unions.len(), 1, "{}\n{:#?}", go, report);
        let found: BTreeSet<&str> = unions[0].members.iter().map(String::as_str).collect();
        let is_member = |field: &Field| match field {
            Field::Member { value, .. } => Some(NAMES[*value].to_lowercase()),
            Field::Discriminator | Field::Ordinary { .. } => None,
        };
        let members: Vec<String> = fields.iter().filter_map(is_member).collect();
        let wanted: BTreeSet<&str> = members.iter().map(String::as_str).collect();
        prop_assert_eq!(&found, &wanted, "{}", go);

        let is_deprecated = marking == Marking::Deprecated;
        prop_assert_eq!(unions[0].form, if is_deprecated { Form::List } else { Form::Map });
        // Each value by the spelling of the enum; those without a field are empty, where the form has that.
        for choice in &unions[0].choices {
            let position = VALUES.iter().position(|value| *value == choice.value);
            prop_assert!(position.is_some(), "{}: {:?}", go, choice);
            let member = position.map(|at| NAMES[at].to_lowercase()).filter(|name| wanted.contains(&**name));
            prop_assert_eq!(&choice.member, &member, "{}", go);
        }
        // A marker that has no effect where it stands is worth a word.
        let is_odd = |field: &Field| matches!(field, Field::Ordinary { comment: Comment::Block | Comment::EndOfLine, .. });
        let generated = folder.run(&["generate", "--go", "go", "crd.yaml"]);
        prop_assert_eq!(generated.code == 0, !fields.iter().any(is_odd), "{}\n{:#?}", go, generated);
    }

    /// A pointer to a struct that no value names is a doubt, wherever it stands, and then there is no union at all.
    #[test]
    fn a_field_that_is_left_over_makes_no_union(
        (_, fields) in structs(),
        name in proptest::sample::select(&["Leftover", "Alphabet", "Deltas"][..]),
        at in any::<proptest::sample::Index>(),
    ) {
        let mut fields: Vec<Field> = fields
            .into_iter()
            .map(|field| {
                if let Field::Ordinary { name, kind: Type::StructPointer, comment } = field {
                    Field::Ordinary { name, kind: Type::List, comment }
                } else {
                    field
                }
            })
            .collect();
        fields.retain(|field| !matches!(field, Field::Ordinary { comment: Comment::Block | Comment::EndOfLine, .. }));
        let left = Field::Ordinary { name: name.to_owned(), kind: Type::StructPointer, comment: Comment::Words };
        fields.insert(at.index(fields.len() + 1), left);
        let (go, crd) = sources(Marking::Implicit, &fields);
        let folder = Folder::new(&[("go/setting.go", &go), ("crd.yaml", &crd)]);
        let run = folder.run(&["generate", "--go", "go", "--check", "-o", "json", "crd.yaml"]);
        prop_assert_eq!(run.code, 1, "{}", go);
        let report = Report::parse(&run.stdout);
        prop_assert_eq!(report.unions().count(), 0, "{}\n{:#?}", go, report);
        let line = 1 + go.lines().position(|line| line.trim_start().starts_with(&format!("{name} *Detail"))).unwrap();
        let said = report.findings.iter().any(|finding| {
            finding.reason == "ambiguous" && finding.message.to_lowercase().contains(&name.to_lowercase())
        });
        prop_assert!(said, "{} at {}\n{:#?}", go, line, report);
        let allowing = folder.run(&["generate", "--go", "go", "--allow-ambiguous", "crd.yaml"]);
        prop_assert_eq!((allowing.code, &*allowing.stdout), (0, &*crd), "{:?}", allowing.stderr);
    }
}
