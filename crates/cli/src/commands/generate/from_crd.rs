//! `generate --from-crd`: proposes a `UnionDeclaration` of the unions that the validations of a CRD enforce.
//!
//! The result is printed and never applied. The crate `kube-unions-evidence` finds and confirms the unions. Text has their
//! evidence as comments.

use super::arguments::GenerateArgs;
use crate::input::crd;
use crate::input::manifest::{self, Document, ManifestFile, ManifestFiles, Problem};
use crate::input::values::FindingsFormat;
use crate::report::tree::{ChoiceItem, MemberItem};
use crate::report::{Verdict, output};
use anyhow::{Context, bail};
use kube_unions_core::declaration::{Definition, DefinitionVersion};
use kube_unions_core::field_path::Printable;
use kube_unions_core::schema::Place;
use kube_unions_evidence::{Evidence, EvidenceKind, Proposals, ProposedChoice, ProposedMember, ProposedUnion};
use kube_unions_manifests::counts::count;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;

/// The proposals of the versions of a CRD that are alike.
struct VersionProposals<'d> {
    document: &'d Document,
    definition: &'d Definition,
    /// The names of the versions, empty for all that are served.
    versions: Vec<&'d str>,
    /// The JSON Pointer of the first version's schema.
    pointer: String,
    proposals: Proposals,
    /// The unions that no validation enforces.
    suggestions: Vec<ProposedUnion>,
    is_on_cluster: bool,
}

pub(super) fn run(arguments: &GenerateArgs) -> anyhow::Result<Verdict> {
    if arguments.output == FindingsFormat::Sarif {
        bail!("--from-crd has no findings: use -o text or -o json");
    }
    let ManifestFiles { files, mut problems } = read(arguments)?;
    let selected = match arguments.selected(&files) {
        Err(_) if !problems.is_empty() => return manifest::fail_on(&problems).map(|()| Verdict::Accepted),
        selected => selected?,
    };
    let mut definitions = Vec::new();
    for document in files.iter().flat_map(ManifestFile::documents).filter(Document::is_definition) {
        match Definition::from_json(&document.text) {
            Ok(it) if selected.as_ref().is_some_and(|selected| !selected.contains(it.group_kind())) => {}
            Ok(definition) => {
                let json: Value = serde_json::from_str(&document.text)?;
                definitions.push((document, definition, json));
            }
            Err(error) => problems.push(Problem::of_document(&document, "", error.to_string())),
        }
    }
    if definitions.is_empty() && problems.is_empty() {
        bail!("{}", arguments.nothing_to_do(&files));
    }
    let found =
        definitions.iter().flat_map(|(document, definition, json)| propose(document, definition, json, arguments));
    let found: Vec<VersionProposals<'_>> = found.collect();
    output::print(match arguments.output {
        FindingsFormat::Json => print_json(&found)?,
        FindingsFormat::Text | FindingsFormat::Sarif => print_declarations(&found),
    })?;

    if found.iter().any(|found| !found.proposals.complete) {
        output::note("some objects were not searched, because the schema has too many");
    }
    let sum = |number: fn(&VersionProposals<'_>) -> usize| found.iter().map(number).sum::<usize>();
    let (unions, doubts) = (sum(|it| it.proposals.unions.len()), sum(|it| it.proposals.doubts.len()));
    let (templates, suggested) = (sum(|it| it.proposals.pod_templates.len()), sum(|it| it.suggestions.len()));
    let mut summary = format!("{}: {} proposed", count(definitions.len(), "CRD"), count(unions, "union"));
    if templates > 0 {
        summary.extend([format!(", {}", count(templates, "pod template"))]);
    }
    summary.extend([format!(", {} of fields in doubt", count(doubts, "group"))]);
    if arguments.suggest {
        summary.extend([format!(", {} suggested that nothing enforces", count(suggested, "union"))]);
    }
    if unions + doubts + templates + suggested == 0 && problems.is_empty() {
        return Ok(arguments.require.warn(format_args!("nothing to propose: {summary}")));
    }
    output::note(format_args!("{summary}; look through the declarations before you apply them"));
    manifest::fail_on(&problems)?;
    Ok(Verdict::Accepted)
}

/// Reads the CRDs to search: those of files, or of the cluster if there is no path.
fn read(arguments: &GenerateArgs) -> anyhow::Result<ManifestFiles> {
    let paths = arguments.paths.all();
    if !paths.is_empty() {
        arguments.cluster.refuse_beside_files()?;
        return Ok(manifest::files(&paths));
    }
    let mut found = ManifestFiles::default();
    arguments.cluster.run(async |client| {
        crd::for_each_stored(&client, |object| {
            let read = || format!("cannot read the CRD `{}`", object.name);
            let mut fields: Map<String, Value> = serde_json::from_str(object.text).with_context(read)?;
            crd::add_type(&mut fields);
            let text = Value::Object(fields).to_string();
            found.files.push(manifest::file(Path::new(object.name), text.into_bytes())?);
            Ok(())
        })
        .await
    })?;
    Ok(found)
}

/// Returns the proposals for the served versions of a CRD.
fn propose<'d>(
    document: &'d Document,
    definition: &'d Definition,
    crd: &'d Value,
    arguments: &GenerateArgs,
) -> Vec<VersionProposals<'d>> {
    let served: Vec<&DefinitionVersion> = definition.versions().iter().filter(|version| version.served).collect();
    let mut alike: Vec<VersionProposals<'_>> = Vec::new();
    for (index, name, schema) in crd::schemas(crd) {
        if !served.iter().any(|version| &*version.name == name) {
            continue;
        }
        let proposals = Proposals::of(schema);
        let suggestions = if arguments.suggest { proposals.suggestions(schema) } else { Vec::new() };
        let same = |known: &&mut VersionProposals<'_>| {
            shapes(&known.proposals.unions) == shapes(&proposals.unions)
                && known.proposals.pod_templates == proposals.pod_templates
                && shapes(&known.suggestions) == shapes(&suggestions)
        };
        if let Some(known) = alike.iter_mut().find(same) {
            known.versions.push(name);
            continue;
        }
        let pointer = format!("/spec/versions/{index}/schema/openAPIV3Schema");
        let (versions, is_on_cluster) = (vec![name], arguments.paths.all().is_empty());
        alike.push(VersionProposals { document, definition, versions, pointer, proposals, suggestions, is_on_cluster });
    }
    if let [all] = &mut *alike
        && all.versions.len() == served.len()
    {
        all.versions.clear();
    }
    alike
}

/// Returns unions without their evidence.
fn shapes(unions: &[ProposedUnion]) -> Vec<ProposedUnion> {
    unions.iter().map(|union| ProposedUnion { evidence: Vec::new(), ..union.clone() }).collect()
}

impl VersionProposals<'_> {
    /// Returns the line and the column of a piece of evidence in its file.
    fn position(&self, evidence: &Evidence) -> Option<(usize, usize)> {
        let pointer = format!("{}{}", self.pointer, evidence.position());
        if self.is_on_cluster { None } else { self.document.position(&pointer) }
    }
}

/// Returns the path of the field with a piece of evidence.
fn path(evidence: &Evidence) -> String {
    Place::from_pointer(&evidence.pointer).map(|place| place.to_string()).unwrap_or_default()
}

/// Returns a list with an item for the versions of each CRD that are alike.
fn print_json(all: &[VersionProposals<'_>]) -> anyhow::Result<String> {
    let all: Vec<Value> = all.iter().map(VersionProposals::json).collect();
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

impl VersionProposals<'_> {
    fn json(&self) -> Value {
        let unions = |unions: &[ProposedUnion]| unions.iter().map(|union| self.union(union)).collect::<Vec<_>>();
        let doubts = self.proposals.doubts.iter();
        let doubts = doubts.map(|it| json!({"path": it.path, "fields": it.fields, "why": it.why})).collect::<Vec<_>>();
        json!({
            "file": (!self.is_on_cluster).then_some(&self.document.file),
            "definition": self.definition.name(),
            "group": self.definition.group(),
            "kind": self.definition.kind(),
            // Empty for all that are served.
            "versions": self.versions,
            "unions": unions(&self.proposals.unions),
            "podTemplates": self.proposals.pod_templates,
            "doubts": doubts,
            // Unions that no validation enforces.
            "suggestions": unions(&self.suggestions),
        })
    }

    fn union(&self, union: &ProposedUnion) -> Value {
        let choices = union.choices.iter().map(choice).collect::<Vec<_>>();
        json!({
            "path": union.path,
            "discriminator": union.discriminator,
            "members": union.members,
            "choices": choices,
            "required": union.exactly_one,
            "emptyIsUnset": union.empty_is_unset,
            // True in a list whose items have no keys: nothing is cleared there.
            "keyless": union.keyless,
            // True if a rule compares the union with the old object.
            "immutable": union.immutable,
            "evidence": union.evidence.iter().map(|it| self.evidence(it)).collect::<Vec<_>>(),
        })
    }

    fn evidence(&self, evidence: &Evidence) -> Value {
        let (line, column) = self.position(evidence).unzip();
        let (kind, text) = match &evidence.kind {
            EvidenceKind::Rule(_) => ("rule", &evidence.text),
            EvidenceKind::Keyword(keyword) => ("keyword", keyword),
            EvidenceKind::Description => ("description", &evidence.text),
        };
        json!({
            "line": line,
            "column": column,
            "path": path(evidence),
            "pointer": format!("{}{}", self.pointer, evidence.position()),
            "kind": kind,
            "text": text,
            "message": evidence.message,
        })
    }
}

fn choice(choice: &ProposedChoice) -> ChoiceItem<'_> {
    let members = choice.members.iter();
    let members = members.map(|it| MemberItem { name: &it.name, optional: it.optional, evidence: None });
    ChoiceItem { value: &choice.value, members: members.collect() }
}

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

/// Pod templates.
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
fn print_declarations(all: &[VersionProposals<'_>]) -> String {
    let mut text = String::new();
    for found in all {
        let (immutable, others): (Vec<_>, Vec<_>) = found.proposals.unions.iter().partition(|union| union.immutable);
        found.declare(&mut text, &PROVEN, &others);
        found.declare(&mut text, &IMMUTABLE, &immutable);
        let templates: Vec<String> = found.proposals.pod_templates.iter().map(|path| scalar(path)).collect();
        if !templates.is_empty() {
            found.head(&mut text, &POD_TEMPLATES, 1);
            let _ = writeln!(text, "  podTemplates: [{}]", templates.join(", "));
        }
        for doubt in &found.proposals.doubts {
            let fields: Vec<String> = doubt.fields.iter().map(|field| scalar(field)).collect();
            let (kind, path) = (found.definition.kind(), scalar(&doubt.path));
            let _ = writeln!(text, "# {kind} {path}: not proposed: {}: {}", fields.join(", "), comment(&doubt.why));
        }
    }
    for found in all {
        found.declare(&mut text, &SUGGESTED, &found.suggestions.iter().collect::<Vec<_>>());
    }
    text
}

impl VersionProposals<'_> {
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
