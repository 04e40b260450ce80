//! Properties: an ordinary field is never a member, because clearing it would delete a user's data.

use super::{derive, packages};
use kube_unions_core::union::Form;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The markers of the members.
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

/// A type of Go and its schema.
type Type = (&'static str, &'static str);

const TEXT_POINTER: Type = ("*string", "{type: string}");
const STRUCT: Type = ("Detail", "{type: object, properties: {text: {type: string}}}");
const STRUCT_POINTER: Type = ("*Detail", STRUCT.1);
const LIST: Type = ("[]string", "{type: array, items: {type: string}}");

const TYPES: [Type; 11] = [
    ("string", "{type: string}"),
    TEXT_POINTER,
    STRUCT,
    STRUCT_POINTER,
    ("*metav1.Duration", "{type: string}"),
    ("*intstr.IntOrString", "{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}"),
    LIST,
    ("[]*Detail", "{type: array, items: {type: object, properties: {text: {type: string}}}}"),
    ("map[string]Detail", "{type: object, additionalProperties: {type: object, properties: {text: {type: string}}}}"),
    ("*int64", "{type: integer, format: int64}"),
    ("bool", "{type: boolean}"),
];

#[derive(Debug, Clone)]
enum Field {
    Discriminator,
    Member { value: usize, kind: Type },
    Ordinary { name: &'static str, kind: Type, comment: Comment },
}

/// The comments of an ordinary field: above it, and at the end of its line.
type Comment = (&'static str, &'static str);

const WORDS: Comment = ("\t// Some words.\n", "");

/// Comments with a marker that has no effect, which is reported.
const MISPLACED: [Comment; 2] = [("\t/*\n\t+unionMember\n\t*/\n", ""), ("", " // +unionMember")];

const COMMENTS: [Comment; 6] = [
    ("", ""),
    WORDS,
    ("\t// No marker: +unionMember, since it is not alone.\n", ""),
    ("\t// As was once written:\n\t//\n\t//\t// +unionMember\n\t//\n", ""),
    MISPLACED[0],
    MISPLACED[1],
];

/// Values. Each may have a member.
const VALUES: [&str; 5] = ["Alpha", "HttpGet", "Gamma", "DELTA", "Epsilon"];
/// Go names of the members.
const NAMES: [&str; 5] = ["Alpha", "HTTPGet", "Gamma", "Delta", "Epsilon"];
/// Names of ordinary fields. Some are similar to those of members.
const ORDINARY: [&str; 10] =
    ["Alphas", "AlphaRef", "Http", "Get", "NoGamma", "Delta2", "Timeout", "DisplayName", "Members", "Union"];

/// A struct with one union and its fields in any order.
fn structs() -> impl Strategy<Value = (Marking, Vec<Field>)> {
    let marking = select(&[Marking::Implicit, Marking::Explicit, Marking::Kubernetes, Marking::Deprecated][..]);
    let members = subsequence((0..VALUES.len()).collect::<Vec<_>>(), 1..=VALUES.len());
    let ordinary = subsequence(ORDINARY.to_vec(), 0..=ORDINARY.len());
    (
        marking,
        members,
        vec(any::<bool>(), VALUES.len()),
        ordinary,
        vec((select(&TYPES[..]), select(&COMMENTS[..])), ORDINARY.len()),
    )
        .prop_flat_map(|(marking, members, pointers, ordinary, kinds)| {
            let member = |(value, pointer): (usize, bool)| Field::Member {
                value,
                kind: if pointer { STRUCT_POINTER } else { TEXT_POINTER },
            };
            let mut fields: Vec<Field> = members.into_iter().zip(pointers).map(member).collect();
            fields.extend(ordinary.into_iter().zip(kinds).map(|(name, (kind, comment))| {
                // Beside unmarked members, such a field is ambiguous; the other property tests that.
                let doubtful = marking == Marking::Implicit && kind == STRUCT_POINTER;
                Field::Ordinary { name, kind: if doubtful { STRUCT } else { kind }, comment }
            }));
            fields.push(Field::Discriminator);
            (Just(marking), Just(fields).prop_shuffle())
        })
}

/// Returns true for an ordinary field with a marker that has no effect.
fn is_odd(field: &Field) -> bool {
    matches!(field, Field::Ordinary { comment, .. } if MISPLACED.contains(comment))
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
                format!("{marker}\t// +optional\n\t{name} {} `json:\"{},omitempty\"`\n\n", kind.0, name.to_lowercase())
            }
            Self::Ordinary { name, kind, comment } => {
                let json = name.to_lowercase();
                let (before, after) = comment;
                format!("{before}\t// +optional\n\t{name} {} `json:\"{json},omitempty\"`{after}\n\n", kind.0)
            }
        }
    }

    fn schema(&self) -> String {
        match self {
            Self::Discriminator => format!("type: {{type: string, enum: [{}]}}", VALUES.join(", ")),
            Self::Member { value, kind } => format!("{}: {}", NAMES[*value].to_lowercase(), kind.1),
            Self::Ordinary { name, kind, .. } => format!("{}: {}", name.to_lowercase(), kind.1),
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
        let packages = packages(&[("v1/setting.go", &go)]);
        let derivation = derive(&packages, &crd);
        prop_assert_eq!(derivation.unions.len(), 1, "{}\n{:#?}", go, derivation);
        let union = &derivation.unions[0];
        let found: BTreeSet<&str> = union.members().into_iter().collect();
        let is_member = |field: &Field| match field {
            Field::Member { value, .. } => Some(NAMES[*value].to_lowercase()),
            Field::Discriminator | Field::Ordinary { .. } => None,
        };
        let members: Vec<String> = fields.iter().filter_map(is_member).collect();
        let wanted: BTreeSet<&str> = members.iter().map(String::as_str).collect();
        prop_assert_eq!(&found, &wanted, "{}", go);

        prop_assert_eq!(union.form, if marking == Marking::Deprecated { Form::List } else { Form::Map });
        // Each value has the spelling of the enum. In the 2022 form, values without a field are empty members.
        for (value, selected) in &union.choices {
            let position = VALUES.iter().position(|known| **known == **value);
            prop_assert!(position.is_some(), "{}: {:?}", go, value);
            let member = position.map(|at| NAMES[at].to_lowercase()).filter(|name| wanted.contains(&**name));
            prop_assert_eq!(selected.first().map(|selected| selected.name.to_string()), member, "{}", go);
        }
        // A marker without effect is reported.
        let misplaced = packages.misplaced_markers(Some(&[&derivation]));
        prop_assert_eq!(!misplaced.is_empty(), fields.iter().any(is_odd), "{}\n{:#?}", go, misplaced);
    }

    /// A pointer to a struct that has no value's name is ambiguous, so there is no union.
    #[test]
    fn a_field_that_is_left_over_makes_no_union(
        (_, fields) in structs(),
        name in select(&["Leftover", "Alphabet", "Deltas"][..]),
        at in any::<proptest::sample::Index>(),
    ) {
        let mut fields = fields;
        fields.retain(|field| !is_odd(field));
        for field in &mut fields {
            if let Field::Ordinary { kind, .. } = field && *kind == STRUCT_POINTER {
                *kind = LIST;
            }
        }
        let left = Field::Ordinary { name, kind: STRUCT_POINTER, comment: WORDS };
        fields.insert(at.index(fields.len() + 1), left);
        let (go, crd) = sources(Marking::Implicit, &fields);
        let derivation = derive(&packages(&[("v1/setting.go", &go)]), &crd);
        prop_assert!(derivation.unions.is_empty() && derivation.declarations().is_empty(), "{}\n{:#?}", go, derivation);
        let line = 1 + go.lines().position(|line| line.trim_start().starts_with(&format!("{name} *Detail"))).unwrap();
        let is_reported = derivation.findings.iter().any(|finding| {
            finding.kind.is_ambiguous()
                && finding.position.line == line
                && finding.message.contains(&name.to_lowercase())
        });
        prop_assert!(is_reported, "{} at {}\n{:#?}", go, line, derivation.findings);
    }
}
