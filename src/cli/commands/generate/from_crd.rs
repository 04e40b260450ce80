//! `generate --from-crd`: proposes a `UnionDeclaration` of the unions that the validations of a CRD enforce.
//!
//! The result is printed and never applied. The crate `kube-unions-evidence` finds and confirms the unions. [`text`] and [`json`]
//! print them.

mod json;
mod text;

use super::arguments::GenerateArgs;
use crate::cli::input::crd;
use crate::cli::input::manifest::{self, Document, ManifestFile, Problem};
use crate::cli::input::values::FindingsFormat;
use crate::cli::report::{Verdict, output};
use anyhow::{Context, bail};
use kube_unions_core::declaration::{Definition, DefinitionVersion};
use kube_unions_core::schema::Place;
use kube_unions_evidence::{Evidence, Proposals, ProposedUnion};
use kube_unions_manifests::counts::count;
use serde_json::{Map, Value};
use std::path::Path;

/// The CRDs to search.
#[derive(Default)]
struct SearchedCrds {
    files: Vec<ManifestFile>,
    problems: Vec<Problem>,
}

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
    let SearchedCrds { files, mut problems } = SearchedCrds::read(arguments)?;
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
        FindingsFormat::Json => json::print(&found)?,
        FindingsFormat::Text | FindingsFormat::Sarif => text::print(&found),
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

impl SearchedCrds {
    /// Reads files, or the cluster if there is no path.
    fn read(arguments: &GenerateArgs) -> anyhow::Result<Self> {
        let paths = arguments.paths.all();
        if !paths.is_empty() {
            arguments.cluster.refuse_beside_files()?;
            let manifest::ManifestFiles { files, problems } = manifest::files(&paths);
            return Ok(Self { files, problems });
        }
        let mut found = Self::default();
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
