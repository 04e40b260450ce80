//! Proposals as `UnionDeclaration`s in YAML, with their evidence as comments.

use super::{VersionProposals, path};
use kube_unions_core::field_path::Printable;
use kube_unions_evidence::{Evidence, EvidenceKind, ProposedMember, ProposedUnion};
use serde_json::Value;
use std::fmt::Write;

/// Most unions of a `UnionDeclaration`.
const MOST_UNIONS: usize = 256;

/// Longest text of a rule in a comment, in bytes.
const LONGEST_RULE: usize = 120;

/// Words that YAML does not read as a string.
const NO_STRINGS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A `UnionDeclaration` to print.
struct DeclarationPart {
    /// The end of the name.
    suffix: &'static str,
    /// The origin of its content, and what to know about it.
    heading: &'static str,
    /// The fields of the declaration beside its unions.
    settings: &'static str,
}

/// Unions that validations enforce.
const PROVEN: DeclarationPart = DeclarationPart {
    suffix: "",
    heading: "Proposed from the validations in",
    settings: "  validationActions: [Warn]\n",
};

/// Unions that validations enforce, and keep from changing.
const IMMUTABLE: DeclarationPart = DeclarationPart {
    suffix: "-immutable",
    heading: "Rules compare these unions with the old object, so nothing is cleared. Proposed from the validations in",
    settings: "  normalization: Disabled\n  validationActions: [Warn]\n",
};

const POD_TEMPLATES: DeclarationPart = DeclarationPart {
    suffix: "-pod-templates",
    heading: "Pod templates, known by their shape. The API server enforces their unions in pods. Proposed from",
    settings: "  validationActions: [Warn]\n",
};

/// Unions that no validation enforces.
const SUGGESTED: DeclarationPart = DeclarationPart {
    suffix: "-suggested",
    heading: "No validation enforces these unions, and a sentence may be wrong. Suggested from the texts and names in",
    settings: "  normalization: Disabled\n  validationActions: [Audit]\n",
};

/// Returns the declarations: first those of what is enforced, then the suggestions.
pub(super) fn print(all: &[VersionProposals<'_>]) -> String {
    let mut text = String::new();
    for found in all {
        found.declare_enforced(&mut text);
        let templates: Vec<String> = found.proposals.pod_templates.iter().map(|path| scalar(path)).collect();
        if !templates.is_empty() {
            found.head(&mut text, &POD_TEMPLATES, 1);
            let _ = writeln!(text, "  podTemplates: [{}]", templates.join(", "));
        }
        for doubt in &found.proposals.doubts {
            let fields: Vec<String> = doubt.fields.iter().map(|field| scalar(field)).collect();
            let place = match &*doubt.path {
                "" => found.definition.kind().to_owned(),
                path => format!("{} {}", found.definition.kind(), scalar(path)),
            };
            let fields = if fields.is_empty() { String::new() } else { format!("{}: ", fields.join(", ")) };
            let _ = writeln!(text, "# {place}: not proposed: {fields}{}", comment(&doubt.why));
        }
    }
    for found in all {
        found.declare(&mut text, &SUGGESTED, &found.suggestions.iter().collect::<Vec<_>>());
    }
    text
}

/// Returns the declarations of the unions that validations enforce.
pub(super) fn enforced(all: &[VersionProposals<'_>]) -> String {
    let mut text = String::new();
    for found in all {
        found.declare_enforced(&mut text);
    }
    text
}

impl VersionProposals<'_> {
    fn declare_enforced(&self, text: &mut String) {
        let (immutable, others): (Vec<_>, Vec<_>) = self.proposals.unions.iter().partition(|union| union.immutable);
        self.declare(text, &PROVEN, &others);
        self.declare(text, &IMMUTABLE, &immutable);
    }

    /// Appends the `UnionDeclarations` of unions.
    fn declare(&self, text: &mut String, part: &DeclarationPart, unions: &[&ProposedUnion]) {
        for (number, unions) in (1_usize..).zip(unions.chunks(MOST_UNIONS)) {
            self.head(text, part, number);
            text.push_str("  unions:\n");
            for union in unions {
                self.append(text, union);
            }
        }
    }

    /// Appends everything before the unions.
    fn head(&self, text: &mut String, part: &DeclarationPart, number: usize) {
        let (versions, definition) = (&self.versions, self.definition);
        let mut name = definition.name().to_owned();
        if let Some(first) = versions.first() {
            name.extend(["-", first]);
        }
        name.push_str(part.suffix);
        if number > 1 {
            name.extend([format!("-{number}")]);
        }
        let versions: Vec<String> = versions.iter().map(|version| scalar(version)).collect();
        let versions =
            if versions.is_empty() { String::new() } else { format!(", versions: [{}]", versions.join(", ")) };
        let (group, kind) = (scalar(definition.group()), scalar(definition.kind()));
        let source =
            if self.is_on_cluster { "the cluster".to_owned() } else { self.document.file.display().to_string() };
        let DeclarationPart { heading, settings, .. } = part;
        let _ = write!(
            text,
            "---
# {heading} {}. Look through it before you apply it.
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata:
  name: {}
spec:
  target: {{group: {group}, kind: {kind}{versions}}}
{settings}",
            comment(&source),
            scalar(&name)
        );
    }

    fn append(&self, text: &mut String, union: &ProposedUnion) {
        for evidence in &union.evidence {
            let _ = writeln!(text, "  # {}", self.source(evidence));
        }
        if union.keyless {
            text.push_str("  # in a list without keys: nothing is cleared here, objects are only judged\n");
        }
        let _ = writeln!(text, "  - path: {}", scalar(&union.path));
        if union.exactly_one {
            text.push_str("    required: true\n");
        }
        if !union.empty_is_unset.is_empty() {
            let members: Vec<String> = union.empty_is_unset.iter().map(|member| scalar(member)).collect();
            let _ = writeln!(text, "    emptyIsUnset: [{}]", members.join(", "));
        }
        if let Some(discriminator) = &union.discriminator {
            let _ = writeln!(text, "    discriminator: {}\n    fieldMembers:", scalar(discriminator));
            for choice in &union.choices {
                let _ = writeln!(text, "      {}: {{{}}}", scalar(&choice.value), selected(&choice.members));
            }
        } else {
            text.push_str("    fieldsToDiscriminateBy:\n");
            for choice in &union.choices {
                for member in &choice.members {
                    let _ = writeln!(text, "      {}: {}", scalar(&member.name), scalar(&choice.value));
                }
            }
        }
    }

    /// Describes a piece of evidence: its place in the file, the CRD, the path of its field, and its text.
    fn source(&self, evidence: &Evidence) -> String {
        let file = self.document.file.display();
        let position = self.position(evidence).map(|(line, column)| format!("{file}:{line}:{column}: "));
        let path = path(evidence);
        let space = if path.is_empty() { "" } else { " " };
        let what = match &evidence.kind {
            EvidenceKind::Rule(_) => comment(&evidence.text),
            EvidenceKind::Keyword(keyword) => keyword.clone(),
            EvidenceKind::Description => format!("\"{}\"", comment(&evidence.text)),
            EvidenceKind::Shape => format!("has the fields of the type {} of Kubernetes", evidence.text),
        };
        comment(&format!("{}{}{space}{path}: {what}", position.unwrap_or_default(), self.definition.name()))
    }
}

/// Returns the fields that a value selects.
fn selected(members: &[ProposedMember]) -> String {
    let optional = |member: &ProposedMember| if member.optional { "optional: true" } else { "" };
    match members {
        [] => String::new(),
        [one] if one.optional => format!("name: {}, optional: true", scalar(&one.name)),
        [one] => format!("name: {}", scalar(&one.name)),
        several => {
            let fields = several.iter().map(|member| format!("{}: {{{}}}", scalar(&member.name), optional(member)));
            format!("fields: {{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns a text on one line.
fn comment(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Printable::new(&line, LONGEST_RULE * 2).to_string()
}

/// Returns a string as a scalar of YAML.
fn scalar(text: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_' | '/');
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(plain)
        && !NO_STRINGS.contains(&text.to_ascii_lowercase().as_str());
    // A JSON string is a scalar of YAML.
    if is_plain { text.to_owned() } else { Value::String(text.to_owned()).to_string() }
}
