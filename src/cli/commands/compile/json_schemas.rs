//! `--to json-schema`: a JSON schema for each kind and version that a CRD serves.
//!
//! Files have the names that kubeconform and the catalogues of schemas use: `example.com/widget_v1.json`.

use super::arguments::CompileArgs;
use super::crds::{NO_UNIONS, kinds_without_crd, served_versions};
use super::source::CompileSource;
use crate::cli::input::crd;
use crate::cli::input::manifest::{Document, ManifestFile};
use crate::cli::report::{Verdict, output};
use anyhow::{Context, bail};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::{GroupVersionKind, is_dns_label, is_dns_subdomain};
use kube_unions_core::union::Plan;
use kube_unions_manifests::counts::count;
use kube_unions_policies::{PolicyOptions, Refusal, RulesTarget, json_schema};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Writes the schemas of the CRDs of files or of a cluster to a directory, or prints the only one.
pub(super) async fn run(
    arguments: &CompileArgs,
    source: &CompileSource,
    options: &PolicyOptions,
) -> anyhow::Result<Verdict> {
    let mut schemas = JsonSchemas { catalog: &source.catalog, options, files: BTreeMap::new(), refusals: Vec::new() };
    if let Some(client) = &source.client {
        crd::for_each_stored(client, |object| {
            let crd = serde_json::from_str(object.text);
            schemas.add(&crd.with_context(|| format!("cannot read the CRD `{}`", object.name))?)
        })
        .await?;
    }
    let documents = source.files.iter().flat_map(ManifestFile::documents);
    for document in documents.filter(Document::is_definition) {
        let crd = serde_json::from_str(&document.text);
        schemas.add(&crd.with_context(|| format!("{}: cannot be read", document.file.display()))?)?;
    }
    let JsonSchemas { files, mut refusals, .. } = schemas;
    let seen: BTreeSet<_> = files.values().map(|(gvk, _)| gvk.clone()).collect();
    refusals.extend(kinds_without_crd(&source.catalog, &seen));
    refusals.sort();
    Refusal::lines(&refusals).iter().for_each(output::note);
    match (&arguments.output_dir, files.values().next()) {
        (Some(directory), _) => {
            for (name, (_, schema)) in &files {
                write(&directory.join(name), schema)?;
            }
            output::note(format_args!("wrote {} to {}", count(files.len(), "schema"), directory.display()));
        }
        (None, Some((_, schema))) if files.len() == 1 => output::print(text(schema)?)?,
        (None, None) => {}
        (None, Some(_)) => bail!(
            "{} are more than one document: name a directory with --output-dir",
            count(files.len(), "version of a kind")
        ),
    }
    let nothing = source.catalog.entries().is_empty();
    if nothing {
        output::note(NO_UNIONS);
    }
    let partial = !refusals.is_empty() || source.has_errors;
    Ok(Verdict::rejected_if(nothing || (partial && !arguments.allow_partial)))
}

struct JsonSchemas<'c> {
    catalog: &'c Catalog,
    options: &'c PolicyOptions,
    /// By the path of the file.
    files: BTreeMap<String, (GroupVersionKind, Value)>,
    refusals: Vec<Refusal>,
}

impl JsonSchemas<'_> {
    /// Adds the versions of a CRD.
    fn add(&mut self, crd: &Value) -> anyhow::Result<()> {
        let without_unions = Plan::default();
        for (_, gvk, schema) in served_versions(crd) {
            let kind = gvk.kind.to_lowercase();
            // Names become paths.
            if !is_dns_subdomain(&gvk.group) || !is_dns_label(&kind) || !is_dns_label(&gvk.version) {
                bail!("{gvk}: no API server takes a CRD with such names");
            }
            let entry = self.catalog.lookup(&gvk.group, &gvk.version, &gvk.kind);
            let plan = entry.map_or(&without_unions, |entry| entry.plan());
            let (document, refusals) = json_schema(&RulesTarget { gvk: &gvk, plan, schema }, self.options);
            self.refusals.extend(refusals);
            let name = format!("{}/{kind}_{}.json", gvk.group, gvk.version);
            if let Some((known, _)) = self.files.insert(name, (gvk, document)) {
                bail!("{known}: defined more than once");
            }
        }
        Ok(())
    }
}

fn text(schema: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(schema)? + "\n")
}

fn write(path: &Path, schema: &Value) -> anyhow::Result<()> {
    let text = text(schema)?;
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.with_context(|| format!("cannot write `{}`", path.display()))
}
