//! `patch live`: applies a strategic merge patch to an object in a cluster.
//!
//! The API server answers 415 to such a patch of a custom resource. So the command reads the object, patches it, and sends the
//! difference as a JSON Patch that fails if somebody else changed the object meanwhile.

use super::difference::{JsonPatchOperation, difference};
use super::input::{self, PatchInput};
use crate::cli::connection::ContextArgs;
use crate::cli::manifest::{self, Document, Edit};
use crate::cli::output::{self, Paint};
use crate::cli::request::admission_review;
use crate::cli::{Verdict, normalize};
use crate::cluster::live::{KindDescription, Live, LiveError, ObjectPath, PatchResponse, Resource};
use anyhow::{Context, anyhow, bail};
use clap::{ArgGroup, Args, ValueEnum};
use kube_unions_core::admission::{self, Phase, Ratcheting};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::names::GroupVersionKind;
use serde_json::value::RawValue;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;
use strategic_merge_patch::{DocumentRole, PatchError, Patcher};

/// Number of attempts before the command gives up because others keep changing the object.
const TRIES: u32 = 10;

/// The wait before the second attempt. It doubles up to `LONGEST_WAIT`.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Fields that the API server changes with every write.
const BOOKKEEPING: [&str; 3] = ["/metadata/managedFields", "/metadata/resourceVersion", "/metadata/generation"];

/// Arguments of `patch live`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Change one member of a union; the other members are cleared
  kube-unions patch live widget demo -p '{\"spec\": {\"exposure\": {\"type\": \"Internal\"}}}'

  # Show the result of a patch in a file, without changing anything
  kube-unions patch live widget/demo --patch-file patch.yaml --dry-run=client -o yaml

Exit codes:
  0  the object is patched, or already as the patch wants it
  1  the API server rejected the result
  2  usage, an unreadable input, or the cluster could not be reached")]
#[command(group = ArgGroup::new("change").required(true))]
pub(super) struct LiveArgs {
    /// The resource: its plural, singular, short name or kind, alone or with .GROUP or .VERSION.GROUP; or RESOURCE/NAME
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// The name of the object
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The patch, as JSON or YAML
    #[arg(short, long, value_name = "PATCH", group = "change")]
    patch: Option<String>,
    /// A file with the patch; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "change")]
    patch_file: Option<PathBuf>,
    /// The namespace of the object [default: the namespace of the kubeconfig's context]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Do not store the result: `client` sends nothing, `server` has the API server validate it
    #[arg(long, value_enum, default_value_t, num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    dry_run: DryRun,
    /// Print the object or its name instead of a message
    #[arg(short, long, value_enum)]
    output: Option<LiveFormat>,
    /// Field manager name
    #[arg(long, value_name = "NAME", default_value = "kube-unions-patch")]
    field_manager: String,
    #[command(flatten)]
    cluster: ContextArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum DryRun {
    #[default]
    None,
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LiveFormat {
    Json,
    Yaml,
    Name,
}

/// Patches the object. Returns [`Verdict::Rejected`] if the API server refuses the result.
pub(super) fn run(arguments: &LiveArgs) -> anyhow::Result<Verdict> {
    let patch = match (&arguments.patch, &arguments.patch_file) {
        (Some(text), _) => PatchInput::of(Path::new("--patch"), text.clone().into_bytes())?,
        (None, Some(file)) => PatchInput::read(file)?,
        (None, None) => bail!("give --patch or --patch-file"),
    };
    patch.present("patch")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    match runtime.block_on(patch_object(arguments, &patch)) {
        Ok(()) => Ok(Verdict::Accepted),
        Err(error) => match error.downcast_ref::<LiveError>() {
            Some(LiveError::Refused(refusal)) if refusal.is_final() => {
                output::note(refusal);
                Ok(Verdict::Rejected)
            }
            _ => Err(error),
        },
    }
}

async fn patch_object(arguments: &LiveArgs, patch: &PatchInput) -> anyhow::Result<()> {
    let (resource, name) = arguments.target()?;
    let live = arguments.cluster.connect().await?;
    let resource = live.resource(resource).await?;
    let namespace = arguments.namespace.as_deref().unwrap_or_else(|| live.default_namespace());
    let place = ObjectPath::new(&resource, namespace, name)?;
    let task = LivePatch {
        rules: KindPatcher::read(live.described(&resource).await?, &resource)?,
        live,
        place,
        patch,
        field_manager: &arguments.field_manager,
        dry_run: arguments.dry_run,
    };
    let done = task.run().await?;
    let paint = Paint::of(&std::io::stderr());
    for warning in &done.warnings {
        output::note(format_args!("{} {warning}", paint.warning("Warning:")));
    }
    output::print(arguments.printed(&resource.title(name), &done)?)
}

impl LiveArgs {
    /// Returns the resource and the name from either form of the arguments.
    fn target(&self) -> anyhow::Result<(&str, &str)> {
        match (&self.name, self.resource.split_once('/')) {
            (None, Some((resource, name))) => Ok((resource, name)),
            (Some(name), None) => Ok((&self.resource, name)),
            (None, None) => bail!("the name of the object is missing: give RESOURCE NAME or RESOURCE/NAME"),
            (Some(_), Some(_)) => {
                bail!("`{}` has the name in it already: give RESOURCE NAME or RESOURCE/NAME", self.resource)
            }
        }
    }

    /// Returns the output of `kubectl patch`.
    fn printed(&self, title: &str, done: &LivePatchResult) -> anyhow::Result<String> {
        Ok(match self.output {
            Some(LiveFormat::Json) => manifest::pretty(&without_managers(&done.object)?) + "\n",
            Some(LiveFormat::Yaml) => manifest::to_yaml(&without_managers(&done.object)?)?,
            Some(LiveFormat::Name) => format!("{title}\n"),
            None => {
                let unchanged = if done.changed { "" } else { " (no change)" };
                let dry = match self.dry_run {
                    DryRun::None => "",
                    DryRun::Client => " (dry run)",
                    DryRun::Server => " (server dry run)",
                };
                format!("{title} patched{unchanged}{dry}\n")
            }
        })
    }
}

/// Patches and normalises the objects of one kind.
struct KindPatcher {
    patcher: Patcher,
    unions: Catalog,
}

impl KindPatcher {
    fn read(described: KindDescription, resource: &Resource) -> anyhow::Result<Self> {
        let (patcher, definition) = match described {
            KindDescription::Custom(definition) => {
                let version = definition.versions().iter().find(|version| version.name == resource.version);
                let version = version.with_context(|| format!("{resource} has no schema"))?;
                (Patcher::for_resource(&resource.kind, &version.schema)?, definition)
            }
            KindDescription::BuiltIn(document, definition) => {
                let Resource { group, version, kind, .. } = resource.clone();
                (Patcher::from_openapi(&document, &GroupVersionKind { group, version, kind })?, definition)
            }
        };
        let mut builder = Builder::new();
        builder.apply(definition);
        Ok(Self { patcher, unions: builder.build() })
    }

    /// Applies the patch and normalises the unions as the webhook would. Returns the object and the warnings.
    fn patched(&self, before: &str, patch: &PatchInput) -> anyhow::Result<(String, Vec<String>)> {
        let live = PatchInput::of(Path::new("the object in the cluster"), before.as_bytes().to_vec())?;
        let given = [(DocumentRole::Original, &live), (DocumentRole::Patch, patch)];
        let fail = |error: PatchError| input::faulty(&error, &given);
        let after = self.patcher.apply(before, patch.text()).map_err(fail)?;
        if self.unions.union_count() == 0 {
            return Ok((after, Vec::new()));
        }
        let Some(old) = live.document() else { return Ok((after, Vec::new())) };
        let new = PatchInput::of(Path::new("the patched object"), after.clone().into_bytes())?;
        let Some(new) = new.document() else { return Ok((after, Vec::new())) };
        self.normalized(new, old, after.as_str())
    }

    /// Clears the members that were not chosen. Leaves an ambiguous or invalid union to the API server.
    fn normalized(&self, new: &Document, old: &Document, after: &str) -> anyhow::Result<(String, Vec<String>)> {
        let request = admission_review(new, Some(old));
        let review = admission::review(&self.unions, Phase::Mutate, Ratcheting::Enabled, request.as_bytes())?;
        let edits = normalize::edits(new, &review);
        let text = if edits.is_empty() { after.to_owned() } else { manifest::edit(&new.section, &edits)?.text };
        Ok((text, review.warnings().to_vec()))
    }
}

/// A patch to one object in a cluster.
struct LivePatch<'t> {
    live: Live,
    rules: KindPatcher,
    place: ObjectPath,
    patch: &'t PatchInput,
    field_manager: &'t str,
    dry_run: DryRun,
}

/// The patched object.
struct LivePatchResult {
    /// The object as JSON text.
    object: String,
    changed: bool,
    warnings: Vec<String>,
}

impl LivePatch<'_> {
    async fn run(&self) -> anyhow::Result<LivePatchResult> {
        let mut before = self.live.read(&self.place).await?;
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(wait(attempt)).await;
                before = self.live.read(&self.place).await?;
            }
            let (after, mut warnings) = self.rules.patched(&before, self.patch)?;
            let operations = difference(&before, &after)?;
            if operations.is_empty() || self.dry_run == DryRun::Client {
                let changed = !operations.is_empty();
                return Ok(LivePatchResult { object: after, changed, warnings });
            }
            let version = resource_version(&before)?;
            let guarded: Vec<_> = std::iter::once(JsonPatchOperation::test("/metadata/resourceVersion", &version))
                .chain(operations)
                .collect();
            let sent = serde_json::to_string(&guarded)?;
            match self.live.patch(&self.place, sent, self.field_manager, self.dry_run == DryRun::Server).await {
                Ok(PatchResponse { text, warnings: more }) => {
                    warnings.extend(more);
                    let changed = is_another(&before, &text)?;
                    return Ok(LivePatchResult { object: text, changed, warnings });
                }
                Err(LiveError::Refused(refusal)) if refusal.may_be_stale() => {
                    // The answer does not say whether the object changed, so read it again.
                    let now = self.live.read(&self.place).await?;
                    if resource_version(&now)?.get() == version.get() {
                        return Err(LiveError::Refused(refusal).into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(anyhow!("others changed the object during each of {TRIES} attempts: try again"))
    }
}

/// Returns the wait before another attempt: a random time between half and all of the doubled wait, so that two writers that
/// collided do not collide again.
fn wait(attempt: u32) -> Duration {
    let longest = FIRST_WAIT.saturating_mul(1 << attempt.min(16)).min(LONGEST_WAIT);
    // `RandomState` has another key in every process.
    let chance = RandomState::new().hash_one(attempt) % 512;
    longest.mul_f64(0.5 + f64::from(u32::try_from(chance).unwrap_or_default()) / 1024.0)
}

/// Returns the `resourceVersion` of an object as it is written.
fn resource_version(object: &str) -> anyhow::Result<Box<RawValue>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: Box<RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Versioned {
        metadata: Metadata,
    }
    let versioned: Versioned =
        serde_json::from_str(object).context("the API server sent an object without `metadata.resourceVersion`")?;
    Ok(versioned.metadata.resource_version)
}

/// Returns true if anything changed but the fields that the API server changes with every write.
fn is_another(before: &str, after: &str) -> serde_json::Result<bool> {
    let is_bookkeeping =
        |path: &str| BOOKKEEPING.iter().any(|known| path.strip_prefix(known).is_some_and(starts_below));
    Ok(difference(before, after)?.iter().any(|operation| !is_bookkeeping(operation.path())))
}

fn starts_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

/// Removes `metadata.managedFields`, as kubectl does before it prints an object.
fn without_managers(object: &str) -> anyhow::Result<String> {
    let read = PatchInput::of(Path::new("the patched object"), object.as_bytes().to_vec())?;
    let managers = Edit::Remove(["metadata", "managedFields"].map(str::to_owned).into());
    match read.document().filter(|_| object.contains("\"managedFields\"")) {
        Some(document) => Ok(manifest::edit(&document.section, &[managers])?.text),
        None => Ok(object.to_owned()),
    }
}
