//! The fields of a union, a union that is proposed or suggested, and the validations that say something about one.

use crate::facts::Content;
use crate::rule::RULES;
use std::collections::BTreeSet;

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnionFields {
    /// The discriminator, if the union has one.
    pub discriminator: Option<String>,
    /// The values of the discriminator. Without a discriminator, they are ignored.
    pub values: Vec<String>,
    pub members: Vec<String>,
    /// The members whose `false`, `0`, `""`, `{}` and `[]` count as not set.
    pub empty_is_unset: BTreeSet<String>,
}

impl UnionFields {
    /// Returns the fields of a union without a discriminator.
    pub(crate) fn of_members(members: &[impl AsRef<str>]) -> Self {
        Self { members: members.iter().map(|member| member.as_ref().to_owned()).collect(), ..Self::default() }
    }

    /// Returns the content of a member that is set.
    pub(crate) fn content(&self, member: &str) -> Content {
        if self.empty_is_unset.contains(member) { Content::NotEmpty } else { Content::Any }
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.discriminator.iter().chain(&self.members).map(String::as_str)
    }
}

/// A union that validations enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedUnion {
    /// The path of the object, as in a `UnionDeclaration`: `spec.filters[*]`. Empty for the root.
    pub path: String,
    /// True if the place is in a list whose items have no keys.
    pub keyless: bool,
    /// The discriminator, if the validations have one.
    pub discriminator: Option<String>,
    /// The values of the discriminator. Without one, a group of members that may be set together has a value, which is only its
    /// name.
    pub choices: Vec<ProposedChoice>,
    /// The members, in the order of the schema.
    pub members: Vec<String>,
    /// True if an object without a member is rejected.
    pub exactly_one: bool,
    /// The members whose `false`, `0`, `""`, `{}` and `[]` count as not set.
    pub empty_is_unset: BTreeSet<String>,
    /// True if a rule compares the object or a field of the union with the old object, so that a change may be refused.
    pub immutable: bool,
    /// The validations that reject other combinations. Their pointers begin at the schema that was searched.
    pub evidence: Vec<Evidence>,
}

/// A value of a proposed union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedChoice {
    pub value: String,
    /// The members that may be set with it.
    pub members: Vec<ProposedMember>,
}

/// A member that a value selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedMember {
    pub name: String,
    /// True if the member may be missing.
    pub optional: bool,
}

impl ProposedChoice {
    /// Returns a choice for each group of a union without a discriminator.
    pub(crate) fn of_groups(groups: Vec<Vec<String>>) -> Vec<Self> {
        let capital = |name: &str| {
            let mut letters = name.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        };
        let names = || groups.iter().filter_map(|group| group.first().cloned());
        let capitals: BTreeSet<String> = names().map(|name| capital(&name)).collect();
        let are_distinct = capitals.len() == names().count();
        let value = |name: String| if are_distinct { capital(&name) } else { name };
        let member = |name| ProposedMember { name, optional: true };
        let names: Vec<String> = names().map(value).collect();
        names
            .into_iter()
            .zip(groups)
            .map(|(value, group)| Self { value, members: group.into_iter().map(member).collect() })
            .collect()
    }
}

/// A validation that may say something about a union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    pub kind: EvidenceKind,
    /// The JSON Pointer of the schema node, from the schema that the table was made of.
    pub pointer: String,
    /// The text of a rule, the sentence of a description or the name of a type, empty for a keyword.
    pub text: String,
    /// The message of a rule.
    pub message: Option<String>,
    /// The meaning of the validation for the union.
    pub state: EvidenceState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvidenceKind {
    /// The rule of `x-kubernetes-validations` at this position.
    Rule(usize),
    /// A keyword of OpenAPI, for example `oneOf`.
    Keyword(String),
    /// A sentence of a description, which no validation enforces.
    Description,
    /// The fields of a type of Kubernetes, whose name is the text.
    Shape,
}

/// The meaning of a validation for a union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvidenceState {
    /// The validation rejects some combination.
    Decides,
    /// The validation rejects no combination for its members alone.
    Elsewhere,
    /// The rule compares with the old object, so it does not apply to a create.
    Transition,
    /// The rule cannot be read, for this reason.
    Unreadable(String),
    /// The validation cannot be evaluated for some combination, for this reason.
    Beyond(String),
}

impl Evidence {
    /// Makes evidence of a text that no validation enforces.
    pub(crate) fn stated(kind: EvidenceKind, pointer: String, text: &str) -> Self {
        Self { kind, pointer, text: text.to_owned(), message: None, state: EvidenceState::Elsewhere }
    }

    /// Returns the JSON Pointer of the validation itself.
    pub fn position(&self) -> String {
        match &self.kind {
            EvidenceKind::Rule(index) => format!("{}/{}/{index}", self.pointer, RULES),
            EvidenceKind::Keyword(keyword) => format!("{}/{keyword}", self.pointer),
            EvidenceKind::Description => format!("{}/description", self.pointer),
            EvidenceKind::Shape => self.pointer.clone(),
        }
    }

    /// Returns true for a rule or keyword that somebody wrote about several fields, unlike `required` and `enum`.
    pub fn is_about_fields(&self) -> bool {
        !matches!(&self.kind, EvidenceKind::Keyword(keyword) if matches!(keyword.as_str(), "required" | "enum" | "type"))
    }

    /// Returns evidence with more, each piece once.
    pub(crate) fn with_others(mut evidence: Vec<Self>, others: impl Iterator<Item = Self>) -> Vec<Self> {
        for other in others {
            if evidence.iter().all(|known| known.position() != other.position()) {
                evidence.push(other);
            }
        }
        evidence
    }
}
