//! `propose`: proposes a `UnionDeclaration` of the unions that the validations of a CRD enforce.
//!
//! The result is printed and never applied. The crate `kube-unions-evidence` finds and confirms the unions. Text has their
//! evidence as comments, which [`declarations`] writes. [`annotation`] has them as the annotation of their CRD, for `annotate`.

mod annotation;
mod declarations;

pub(super) use self::annotation::ProposedContent;

use crate::input::connection::ClusterArgs;
use crate::input::crd;
use crate::input::definitions::DefinitionArgs;
use crate::input::manifest::{self, Document, ManifestFile, ManifestFiles, Problem};
use crate::input::require::RequireArg;
use crate::input::values::{ReportFormat, only};
use crate::report::conclusion::Conclusion;
use crate::report::json_list;
use crate::report::tree::{ChoiceItem, MemberItem};
use crate::report::{Verdict, output};
use anyhow::{Context, bail};
use clap::Args;
use kube_unions_core::declaration::{Definition, DefinitionVersion};
use kube_unions_core::schema::Place;
use kube_unions_evidence::{DoubtfulGroup, Evidence, EvidenceKind, Proposals, ProposedChoice, ProposedUnion};
use kube_unions_manifests::counts::count;
use serde_json::{Map, Value, json};
use std::path::Path;

#[derive(Debug, Args)]
#[command(mut_args(only("paths", |paths| paths.help(PATHS))), after_help = "\
Prints the unions that CEL rules, `oneOf`, `not` or `maxProperties` enforce already, each with its evidence as a comment, and the \
pod templates. Changes no CRD. Look through the declarations before you apply them.

Examples:
  # Propose a UnionDeclaration for CRDs whose Go types are not at hand
  kube-unions propose crds/ > declarations.yaml

  # Propose for one CRD of the cluster, and suggest what its descriptions say
  kube-unions propose --suggest --kind certificates.cert-manager.io

Exit codes:
  0  the proposals are complete
  1  with --require: there is nothing to propose
  2  an input could not be read; the rest was processed")]
pub(crate) struct ProposeArgs {
    /// Also print unions that no validation enforces: those that descriptions state, of enums whose values name fields, and of types
    /// of Kubernetes
    ///
    /// They come in declarations of their own, which only observe: with `normalization: Disabled` and `validationActions: [Audit]`.
    /// Each quotes its sentence. A sentence may be wrong.
    #[arg(long)]
    suggest: bool,
    #[command(flatten)]
    crds: DefinitionArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
    #[command(flatten)]
    require: RequireArg,
    #[command(flatten)]
    cluster: ClusterArgs,
}

const PATHS: &str = "Files and folders with CRDs, `-` is standard input [default: the cluster]";

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

pub(super) fn run(arguments: &ProposeArgs) -> anyhow::Result<Verdict> {
    let ManifestFiles { files, mut problems } = read(arguments)?;
    let selected = match arguments.crds.selected(&files) {
        Err(_) if !problems.is_empty() => return manifest::fail_on(&problems).map(|()| Verdict::Accepted),
        selected => selected?,
    };
    let mut documents = Vec::new();
    for document in files.iter().flat_map(ManifestFile::documents) {
        document.definitions().map_or_else(|problem| problems.push(problem), |made| documents.extend(made));
    }
    let mut definitions = Vec::new();
    for document in documents {
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
        bail!("{}", arguments.crds.nothing_to_do(&files));
    }
    let is_on_cluster = arguments.crds.paths().is_empty();
    let found = definitions
        .iter()
        .flat_map(|(document, definition, json)| propose(document, definition, json, arguments.suggest, is_on_cluster));
    let found: Vec<VersionProposals<'_>> = found.collect();
    output::print(match arguments.output {
        ReportFormat::Json => json_list::pretty(&found.iter().map(VersionProposals::json).collect::<Vec<Value>>())?,
        ReportFormat::Text => declarations::print(&found),
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
    let is_nothing = unions + doubts + templates + suggested == 0 && problems.is_empty();
    let nothing = is_nothing.then(|| format!("nothing to propose: {summary}"));
    let summary = format!("{summary}; look through the declarations before you apply them");
    let failure = manifest::fail_on(&problems).err();
    Conclusion::new(arguments.require, nothing, false, summary).beside(Vec::new(), failure).end()
}

/// Reads the CRDs to search: those of files, or of the cluster if there is no path.
fn read(arguments: &ProposeArgs) -> anyhow::Result<ManifestFiles> {
    let paths = arguments.crds.paths();
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
    suggest: bool,
    is_on_cluster: bool,
) -> Vec<VersionProposals<'d>> {
    let served: Vec<&DefinitionVersion> = definition.versions().iter().filter(|version| version.served).collect();
    let mut alike: Vec<VersionProposals<'_>> = Vec::new();
    for (index, name, schema) in crd::schemas(crd) {
        if !served.iter().any(|version| &*version.name == name) {
            continue;
        }
        let pointer = format!("/spec/versions/{index}/schema/openAPIV3Schema");
        let mut proposals = Proposals::of(schema);
        proposals.doubts.extend(dropped(document, &pointer));
        let suggestions = if suggest { proposals.suggestions(schema) } else { Vec::new() };
        let same = |known: &&mut VersionProposals<'_>| {
            shapes(&known.proposals.unions) == shapes(&proposals.unions)
                && known.proposals.pod_templates == proposals.pod_templates
                && shapes(&known.suggestions) == shapes(&suggestions)
        };
        if let Some(known) = alike.iter_mut().find(same) {
            known.versions.push(name);
            continue;
        }
        let versions = vec![name];
        alike.push(VersionProposals { document, definition, versions, pointer, proposals, suggestions, is_on_cluster });
    }
    if let [all] = &mut *alike
        && all.versions.len() == served.len()
    {
        all.versions.clear();
    }
    alike
}

/// Returns a doubt about each validation of a schema that Crossplane drops.
fn dropped(document: &Document, schema: &str) -> Vec<DoubtfulGroup> {
    let dropped = document.made.iter().flat_map(|made| &made.dropped);
    let dropped =
        dropped.filter_map(|pointer| pointer.strip_prefix(schema)?.rsplit_once('/')).map(|(object, keyword)| {
            let why = match (object, keyword) {
                ("", "x-kubernetes-validations") => {
                    format!(
                        "Crossplane before 2.2 drops `{keyword}` at the root of the schema: write the rules in `spec`"
                    )
                }
                _ => format!("Crossplane drops `{keyword}` here: write a rule in `x-kubernetes-validations` of `spec`"),
            };
            let path = Place::from_pointer(object).map(|place| place.to_string()).unwrap_or_default();
            DoubtfulGroup { path, fields: Vec::new(), why }
        });
    dropped.collect()
}

/// The unions that the validations of a CRD enforce.
pub(super) struct EnforcedUnions {
    /// The `UnionDeclarations` of those that are sure.
    pub(super) declarations: Vec<Document>,
    /// True if a group of fields is in doubt.
    pub(super) is_doubtful: bool,
}

impl EnforcedUnions {
    /// Finds the unions of a CRD, `crd` as JSON.
    pub(super) fn find(document: &Document, definition: &Definition, crd: &Value) -> anyhow::Result<Self> {
        let found = propose(document, definition, crd, false, false);
        let declarations = manifest::parse(&document.file, declarations::enforced(&found).into_bytes())?;
        Ok(Self { declarations, is_doubtful: found.iter().any(|found| !found.proposals.doubts.is_empty()) })
    }
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
            EvidenceKind::Shape => ("shape", &evidence.text),
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
