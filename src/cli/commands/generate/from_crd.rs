//! `generate --from-crd`: proposes a `UnionDeclaration` of the unions that the validations of a CRD enforce.
//!
//! The result is printed and never applied. The crate `kube-unions-evidence` finds and confirms the unions.

use super::arguments::GenerateArgs;
use crate::cli::input::crd;
use crate::cli::input::manifest::{self, Document};
use crate::cli::report::{Verdict, output};
use anyhow::bail;
use kube_unions_core::declaration::{Definition, DefinitionVersion};
use kube_unions_core::field_path::Printable;
use kube_unions_evidence::{Evidence, EvidenceKind, Proposals, ProposedUnion};
use kube_unions_manifests::counts::count;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Most unions of a `UnionDeclaration`.
const MOST_UNIONS: usize = 256;

/// Longest text of a rule in a comment, in bytes.
const LONGEST_RULE: usize = 120;

/// Words that YAML does not read as a string.
const NO_STRINGS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// The proposals of the versions of a CRD that are alike.
struct VersionProposals<'d> {
    versions: Vec<&'d str>,
    /// The JSON Pointer of the first version's schema.
    pointer: String,
    proposals: Proposals,
}

/// The number of things proposed.
#[derive(Default)]
struct ProposalCounts {
    definitions: usize,
    unions: usize,
    doubts: usize,
    /// False if places were left out, because of a limit.
    complete: bool,
}

pub(super) fn run(arguments: &GenerateArgs) -> anyhow::Result<Verdict> {
    let manifests = manifest::files(&arguments.paths);
    let mut problems = manifests.problems.clone();
    let selected = match arguments.selected(&manifests.files) {
        Err(_) if !problems.is_empty() => return manifest::fail_on(&problems).map(|()| Verdict::Accepted),
        selected => selected?,
    };
    let is_selected =
        |definition: &Definition| selected.as_ref().is_none_or(|selected| selected.contains(definition.group_kind()));
    let mut counts = ProposalCounts { complete: true, ..ProposalCounts::default() };
    let mut text = String::new();
    for document in manifests.documents().filter(Document::is_definition) {
        match Definition::from_json(&document.text) {
            Ok(definition) if is_selected(&definition) => {
                propose(&document, &definition, &mut text, &mut counts)?;
            }
            Ok(_) => {}
            Err(error) => problems.push(manifest::Problem::of_document(&document, "", error.to_string())),
        }
    }
    if counts.definitions == 0 && problems.is_empty() {
        bail!("{}", arguments.nothing_to_do(&manifests.files));
    }
    output::print(text)?;
    let ProposalCounts { definitions, unions, doubts, complete } = counts;
    if !complete {
        output::note("some objects were not searched, because the schema has too many");
    }
    let (definitions, proposed) = (count(definitions, "CRD"), count(unions, "union"));
    let summary = format!("{definitions}: {proposed} proposed, {} of fields in doubt", count(doubts, "group"));
    if unions == 0 && doubts == 0 && problems.is_empty() {
        return Ok(arguments.require.warn(format_args!("nothing to propose: {summary}")));
    }
    output::note(format_args!("{summary}; look through the declarations before you apply them"));
    manifest::fail_on(&problems)?;
    Ok(Verdict::Accepted)
}

/// Appends the declarations of a CRD.
fn propose(
    document: &Document,
    definition: &Definition,
    text: &mut String,
    counts: &mut ProposalCounts,
) -> anyhow::Result<()> {
    counts.definitions += 1;
    let crd: Value = serde_json::from_str(&document.text)?;
    let served: Vec<&DefinitionVersion> = definition.versions().iter().filter(|version| version.served).collect();
    let mut alike: Vec<VersionProposals<'_>> = Vec::new();
    for (index, name, schema) in crd::schemas(&crd) {
        if !served.iter().any(|version| &*version.name == name) {
            continue;
        }
        let proposals = Proposals::of(schema);
        let same = |known: &&mut VersionProposals<'_>| shapes(&known.proposals.unions) == shapes(&proposals.unions);
        if let Some(known) = alike.iter_mut().find(same) {
            known.versions.push(name);
        } else {
            let pointer = format!("/spec/versions/{index}/schema/openAPIV3Schema");
            alike.push(VersionProposals { versions: vec![name], pointer, proposals });
        }
    }
    for found in &alike {
        counts.complete &= found.proposals.complete;
        counts.unions += found.proposals.unions.len();
        counts.doubts += found.proposals.doubts.len();
        let mut name = definition.name().to_owned();
        let all = found.versions.len() == served.len();
        if let ([first, ..], false) = (&*found.versions, all) {
            let _ = write!(name, "-{first}");
        }
        let versions = if all { &[][..] } else { &found.versions };
        for (number, unions) in (1_usize..).zip(found.proposals.unions.chunks(MOST_UNIONS)) {
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            declare(text, document, definition, &name, versions, &found.pointer, unions);
        }
        for doubt in &found.proposals.doubts {
            let fields: Vec<String> = doubt.fields.iter().map(|field| scalar(field)).collect();
            let (kind, path) = (definition.kind(), scalar(&doubt.path));
            let _ = writeln!(text, "# {kind} {path}: not proposed: {}: {}", fields.join(", "), comment(&doubt.why));
        }
    }
    Ok(())
}

/// Returns unions without their evidence.
fn shapes(unions: &[ProposedUnion]) -> Vec<ProposedUnion> {
    unions.iter().map(|union| ProposedUnion { evidence: Vec::new(), ..union.clone() }).collect()
}

/// Appends a `UnionDeclaration`.
fn declare(
    text: &mut String,
    document: &Document,
    definition: &Definition,
    name: &str,
    versions: &[&str],
    pointer: &str,
    unions: &[ProposedUnion],
) {
    let versions: Vec<String> = versions.iter().map(|version| scalar(version)).collect();
    let versions = if versions.is_empty() { String::new() } else { format!(", versions: [{}]", versions.join(", ")) };
    let (group, kind) = (scalar(definition.group()), scalar(definition.kind()));
    let file = document.file.display().to_string();
    let _ = write!(
        text,
        "---
# Proposed from the validations in {}. Look through it before you apply it.
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata:
  name: {}
spec:
  target: {{group: {group}, kind: {kind}{versions}}}
  validationActions: [Warn]
  unions:
",
        comment(&file),
        scalar(name)
    );
    for union in unions {
        for evidence in &union.evidence {
            let _ = writeln!(text, "  # {}", source(document, pointer, evidence));
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
                let member = choice.member.as_ref().map_or_else(String::new, |member| {
                    let optional = if choice.optional { ", optional: true" } else { "" };
                    format!("name: {}{optional}", scalar(member))
                });
                let _ = writeln!(text, "      {}: {{{member}}}", scalar(&choice.value));
            }
        } else {
            text.push_str("    fieldsToDiscriminateBy:\n");
            for (member, value) in union.members.iter().zip(values(&union.members)) {
                let _ = writeln!(text, "      {}: {}", scalar(member), scalar(&value));
            }
        }
    }
}

/// Returns a value for each member: its name with a capital letter, or the names as they are if two values would be equal.
fn values(members: &[String]) -> Vec<String> {
    let capital = |member: &String| {
        let mut letters = member.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    };
    let values: Vec<String> = members.iter().map(capital).collect();
    if values.iter().collect::<BTreeSet<_>>().len() == values.len() { values } else { members.to_vec() }
}

/// Describes a validation and its place in the file.
fn source(document: &Document, pointer: &str, evidence: &Evidence) -> String {
    let position = document.position(&format!("{pointer}{}", evidence.position()));
    let position = position.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
    let what = match &evidence.kind {
        EvidenceKind::Rule(_) => comment(&evidence.text),
        EvidenceKind::Keyword(keyword) => keyword.clone(),
    };
    comment(&format!("{}{position}: {what}", document.file.display()))
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
