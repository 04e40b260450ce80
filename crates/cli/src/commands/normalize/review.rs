//! `normalize -o review`: answers an `AdmissionReview` with the code of the webhook.

use crate::input::builtin::{PresetsArg, SourceFiles};
use crate::input::kinds::SourceArgs;
use crate::input::kinds::asked::list;
use crate::input::manifest;
use crate::input::values::RatchetingArg;
use crate::report::{Verdict, output};
use anyhow::{Context, bail};
use clap::ValueEnum;
use kube_unions_core::admission::{self, Phase, ReviewOutcome};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::{Assembly, is_built_in_group};
use kube_unions_offline::RefusedField;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum ReviewPhase {
    /// Normalise: the answer may have a patch
    Mutate,
    /// Validate: the answer allows or denies
    Validate,
}

/// Prints the answer to the `AdmissionReview` in a file. Without a phase, it is that of both.
pub(in crate::commands) fn run(
    sources: &SourceArgs,
    presets: PresetsArg,
    path: &Path,
    phase: Option<ReviewPhase>,
    ratcheting: RatchetingArg,
) -> anyhow::Result<Verdict> {
    let sources = SourceFiles::read(sources)?;
    manifest::fail_on(&sources.unread)?;
    let phase = match phase {
        None => Phase::Both,
        Some(ReviewPhase::Mutate) => Phase::Mutate,
        Some(ReviewPhase::Validate) => Phase::Validate,
    };
    let body = match body(path) {
        Ok(body) => body,
        // A fault of the sources comes first.
        Err(error) => return Err(sources.assemble(presets, &BTreeSet::new()).err().unwrap_or(error)),
    };
    let asked = serde_json::from_slice::<AskedReview>(&body).map(|review| review.request).ok();
    let kind = asked.as_ref().map(|asked| &asked.kind);
    let offline = sources.assemble(presets, &kind.into_iter().cloned().collect())?;
    let catalog = &offline.assembly.catalog;
    if let Some(kind) = kind.filter(|kind| is_built_in_group(&kind.group))
        && catalog.lookup(&kind.group, &kind.version, &kind.kind).is_none()
    {
        output::hint(format_args!("no union is known of {}: the object is not judged", list(std::iter::once(kind))));
    }
    let body = match &asked {
        Some(asked) if is_built_in_group(&asked.kind.group) => completed(body, asked, &offline.assembly)?,
        Some(_) | None => body,
    };
    // The API server validates the object after its mutation, and a subresource by other rules.
    let is_whole = |asked: &AskedRequest| asked.sub_resource.as_deref().is_none_or(str::is_empty);
    let whole = asked.filter(|asked| phase != Phase::Mutate && is_whole(asked));
    let ratcheting = ratcheting.into();
    let ratcheting = whole.as_ref().map_or(ratcheting, |asked| offline.ratcheting(&asked.kind, ratcheting));
    let mut review = admission::review(catalog, phase, ratcheting, &body)
        .with_context(|| format!("{} cannot be answered", manifest::list(&[path.to_owned()])))?;
    if let Some(asked) = whole {
        let refused = offline.refused_fields(&asked.kind, asked.old_object.as_ref(), &asked.object);
        review = review.refused(
            &asked.kind,
            asked.name.as_deref().unwrap_or_default(),
            refused.iter().map(RefusedField::cause).collect(),
        );
    }
    let mut answer = review.to_json();
    answer.push(b'\n');
    output::print(answer)?;
    Ok(Verdict::rejected_if(review.outcome() == ReviewOutcome::Denied))
}

/// The part of a review that tells its objects.
#[derive(Deserialize)]
struct AskedReview {
    request: AskedRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedRequest {
    kind: GroupVersionKind,
    name: Option<String>,
    sub_resource: Option<String>,
    #[serde(default)]
    object: Value,
    old_object: Option<Value>,
}

/// Completes the object of a review that was written by hand. An API server sends an object that is complete, which stays byte for byte.
fn completed(body: Vec<u8>, asked: &AskedRequest, assembly: &Assembly) -> anyhow::Result<Vec<u8>> {
    let mut object = asked.object.clone();
    assembly.complete(&asked.kind, &mut object)?;
    if object == asked.object {
        return Ok(body);
    }
    let mut review: Value = serde_json::from_slice(&body)?;
    if let Some(sent) = review.pointer_mut("/request/object") {
        *sent = object;
    }
    Ok(review.to_string().into_bytes())
}

/// Reads the body of the request: JSON byte for byte, faults included; YAML as JSON.
fn body(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = manifest::bytes(path)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
    let mut documents = match first {
        Some(b'{') => return Ok(bytes),
        Some(_) => manifest::parse(path, bytes)?,
        None => Vec::new(),
    };
    match (documents.pop(), documents.len()) {
        (Some(review), 0) => Ok(review.text.into_bytes()),
        (None, _) => bail!("{}", manifest::empty(&[path.to_owned()])),
        (Some(_), more) => {
            let path = manifest::list(&[path.to_owned()]);
            bail!("{path} has {} documents: give one AdmissionReview", more + 1)
        }
    }
}
