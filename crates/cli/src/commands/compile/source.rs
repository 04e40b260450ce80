//! Learns the unions to compile, from files or from a cluster.

use super::arguments::CompileArgs;
use crate::input::kinds;
use crate::input::learn::learn;
use crate::input::manifest::{self, Document, ManifestFile};
use crate::report::diagnostic::{self, painted};
use crate::report::output::{self, Paint};
use anyhow::{Context, bail};
use kube::Client;
use kube_unions_api::LiveError;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::FaultOfVersions;
use kube_unions_offline::{AddedUnions, BuiltInKinds, FILE};
use kube_unions_policies::KubernetesVersion;
use std::collections::BTreeSet;
use std::path::Path;

pub(super) struct CompileSource {
    pub(super) catalog: Catalog,
    /// The documents that describe built-in kinds.
    pub(super) openapi: Vec<Document>,
    /// The files of `--from`, empty if the unions come from a cluster.
    pub(super) files: Vec<ManifestFile>,
    /// The cluster, if the command needs one.
    pub(super) client: Option<Client>,
    /// The version of the cluster.
    pub(super) version: Option<KubernetesVersion>,
    /// The faults of declarations and the gaps in what the cluster tells, each a line.
    pub(super) faults: Vec<String>,
    /// True if a declaration has an error, or the cluster kept something back.
    pub(super) has_errors: bool,
}

impl CompileSource {
    /// Reads the unions of the files of `--from`, or of the cluster.
    pub(super) async fn read(arguments: &CompileArgs) -> anyhow::Result<Self> {
        if !arguments.needs_cluster() {
            arguments.cluster.refuse_beside_files()?;
        }
        // Unreadable files are reported before a cluster is asked.
        let offline = if arguments.sources.from.is_empty() && !arguments.is_about_built_in() {
            None
        } else {
            Some(Self::of_files(arguments)?)
        };
        if !arguments.needs_cluster() {
            return offline.context("no input");
        }
        let client = arguments.cluster.connect().await?;
        let version = client.apiserver_version().await.map_err(LiveError::from)?.git_version.parse().ok();
        let source = match offline {
            Some(source) => source,
            None => Self::of_cluster(arguments, &client).await?,
        };
        Ok(Self { client: Some(client), version, ..source })
    }

    fn of_files(arguments: &CompileArgs) -> anyhow::Result<Self> {
        let manifests = manifest::files(&arguments.sources.from);
        manifest::fail_on(&manifests.problems)?;
        let documents = manifests.documents().collect();
        let published = arguments.sources.builtin_unions;
        let documents = if arguments.is_about_built_in() {
            BuiltInKinds::read()?.in_schemas(
                documents,
                AddedUnions { published: published.into(), presets: arguments.presets.are_used() },
            )
        } else {
            documents
        };
        let assembly = kinds::assemble(documents, published);
        manifest::fail_on(&assembly.problems)?;
        assembly.without_effect().iter().for_each(output::hint);
        let missing = assembly.missing(&arguments.sources.from);
        if let Some(missing) = missing.filter(|_| !arguments.is_about_built_in()) {
            bail!(missing);
        }
        let paint = Paint::of(&std::io::stderr());
        let mut diagnostics = diagnostic::diagnose(&assembly);
        // A user cannot mend a preset.
        diagnostics.retain(|diagnostic| diagnostic.file != Path::new(FILE));
        Ok(Self {
            has_errors: diagnostics.iter().any(diagnostic::Diagnostic::is_error),
            faults: diagnostics.iter().map(|diagnostic| diagnostic::line(diagnostic, paint)).collect(),
            openapi: assembly.openapi().map(|(document, _)| document.clone()).collect(),
            catalog: assembly.catalog,
            files: manifests.files,
            client: None,
            version: None,
        })
    }

    async fn of_cluster(arguments: &CompileArgs, client: &Client) -> anyhow::Result<Self> {
        let learnt = learn(client, arguments.sources.builtin_unions).await?;
        let paint = Paint::of(&std::io::stderr());
        let gaps =
            learnt.lacking.iter().map(|(subject, reason)| format!("{} {subject}: {reason}", paint.error("error:")));
        let groups = FaultOfVersions::group(learnt.catalog.faults());
        let faults: BTreeSet<String> = groups.iter().map(|group| line(group, paint)).collect();
        Ok(Self {
            has_errors: !learnt.lacking.is_empty() || learnt.catalog.errors() > 0,
            faults: gaps.chain(faults).collect(),
            openapi: Vec::new(),
            catalog: learnt.catalog,
            files: Vec::new(),
            client: None,
            version: None,
        })
    }
}

/// Describes a fault of a declaration in the cluster: its object, and otherwise as `lint`.
fn line(group: &FaultOfVersions<'_>, paint: Paint) -> String {
    let FaultOfVersions { fault, versions } = group;
    let object = match &fault.declaration {
        Some(name) => format!("uniondeclaration/{name}:"),
        None => format!("{}:", fault.definition),
    };
    let path = if fault.path.is_empty() { String::new() } else { format!("{}: ", fault.path) };
    let versions = if versions.is_empty() { String::new() } else { format!("{}: ", group.versions_text()) };
    format!("{} {path}{} {versions}{}", paint.strong(&object), painted(fault.severity(), paint), fault.message)
}
