//! `patch live`: applies a strategic merge patch to an object in a cluster.
//!
//! The API server answers 415 to such a patch of a custom resource. So the command reads the object, patches it, and sends the
//! difference as a JSON Patch that fails if somebody else changed the object meanwhile.

use super::kind_patcher::{self, ChangeArgs, KindPatcher, PatchInput, RejectedPatch};
use crate::input::connection::{ClusterArgs, block_on};
use crate::input::manifest::{self, Edit};
use crate::input::values::Subresource;
use crate::report::{Verdict, output};
use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use kube::Client;
use kube_unions_api::{self as api, ApiAnswer, DiscoveredResource, LiveError, ObjectPath};
use kube_unions_core::admission::{Phase, Review};
use kube_unions_core::field_path::pointer;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_webhook::follow::{self, KindDescription};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;
use strategic_merge_patch::Patcher;

/// Number of attempts before the command gives up because others keep changing the object.
const TRIES: u32 = 10;

/// The wait before the second attempt. It doubles up to `LONGEST_WAIT`.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Fields that the API server changes with every write.
const BOOKKEEPING: [&str; 3] = ["/metadata/managedFields", "/metadata/resourceVersion", "/metadata/generation"];

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Change one member of a union; the other members are cleared
  kube-unions patch live widget demo \\
    -p '{\"spec\": {\"exposure\": {\"type\": \"Internal\"}}}'

  # Show the result of a patch in a file, without changing anything
  kube-unions patch live widget/demo --patch-file patch.yaml \\
    --dry-run=client -o yaml

Exit codes:
  0  the object is patched, or already as the patch wants it
  1  the API server rejected the result
  2  usage, an unreadable input, or the cluster could not be reached")]
pub(crate) struct LiveArgs {
    /// The resource: its plural, singular, short name or kind, alone or with .GROUP or .VERSION.GROUP; or RESOURCE/NAME
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// The name of the object
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
    /// The subresource to patch
    #[arg(long, value_enum)]
    subresource: Option<Subresource>,
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
    cluster: ClusterArgs,
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
    let patch = arguments.change.read()?;
    match block_on(patch_object(arguments, &patch)) {
        Ok(()) => Ok(Verdict::Accepted),
        Err(error) => match error.downcast_ref::<LiveError>() {
            Some(error @ LiveError::Request(refusal)) if refusal.is_final() => {
                output::note(error);
                Ok(Verdict::Rejected)
            }
            _ if error.is::<RejectedPatch>() => Ok(kind_patcher::reject(error)),
            _ => Err(error),
        },
    }
}

async fn patch_object(arguments: &LiveArgs, patch: &PatchInput) -> anyhow::Result<()> {
    let (resource, name) = arguments.target()?;
    let client = arguments.cluster.connect().await?;
    let resource = api::resource(&client, resource).await?;
    let namespace = arguments.namespace.as_deref().unwrap_or_else(|| client.default_namespace());
    let subresource = arguments.subresource.map(Subresource::name);
    let place = ObjectPath::of(&resource, namespace, name)?;
    let place = subresource.into_iter().fold(place, ObjectPath::with_subresource);
    let task = LivePatch {
        patcher: patcher(follow::described(&client, &resource).await?, &resource)?,
        subresource,
        client,
        place,
        patch,
        field_manager: &arguments.field_manager,
        dry_run: arguments.dry_run,
    };
    let done = task.run().await?;
    for warning in &done.warnings {
        output::warn(warning);
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

/// Returns the patcher of a kind in the cluster. Its objects are stored with their defaults, and the API server validates them.
fn patcher(described: KindDescription, resource: &DiscoveredResource) -> anyhow::Result<KindPatcher> {
    let DiscoveredResource { group, version, kind, .. } = resource.clone();
    let kind = GroupVersionKind { group, version, kind };
    let (patcher, definition) = match described {
        KindDescription::Custom(definition) => {
            let version = definition.versions().iter().find(|version| version.name == resource.version);
            let version = version.with_context(|| format!("{resource} has no schema"))?;
            (Patcher::for_resource(&resource.kind, &version.schema)?, definition)
        }
        KindDescription::BuiltIn(document, definition) => (Patcher::from_openapi(&document, &kind)?, definition),
    };
    Ok(KindPatcher::new(kind, patcher, Some(definition), None))
}

/// A patch to one object in a cluster.
struct LivePatch<'t> {
    client: Client,
    patcher: KindPatcher,
    subresource: Option<&'static str>,
    place: ObjectPath,
    patch: &'t PatchInput,
    field_manager: &'t str,
    dry_run: DryRun,
}

/// Returns an error for a patch that sets fields of a union that may not be set together. The API server does not know the patch, and
/// would switch the union at each attempt.
fn contradiction(review: &Review) -> Option<RejectedPatch> {
    let contradicts = review.violations().kept().iter().any(|violation| violation.kind.is_about_manifest());
    review.denial().filter(|_| contradicts).map(|denial| RejectedPatch(denial.to_owned()))
}

struct LivePatchResult {
    /// The object as JSON text.
    object: String,
    changed: bool,
    warnings: Vec<String>,
}

impl LivePatch<'_> {
    /// Returns the object as it is stored now.
    async fn read(&self) -> Result<String, LiveError> {
        Ok(self.place.text(&self.client).await?)
    }

    async fn run(&self) -> anyhow::Result<LivePatchResult> {
        let mut before = self.read().await?;
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(wait(attempt)).await;
                before = self.read().await?;
            }
            let original = PatchInput::of(Path::new("the object in the cluster"), before.as_bytes().to_vec())?;
            // The API server answers for a union that is ambiguous or invalid.
            let patched = self.patcher.patched(&original, self.patch, Phase::Mutate, self.subresource)?;
            let (after, review, mut warnings) = (patched.text, patched.review, patched.warnings);
            if let Some(contradiction) = review.as_ref().and_then(contradiction) {
                return Err(contradiction.into());
            }
            warnings.extend(review.iter().flat_map(Review::warnings).cloned());
            // Written by the engine, equal values are equal texts.
            let stored = self.patcher.engine.apply(before.as_str(), "{}")?;
            let operations = difference(&stored, &after)?;
            if operations.is_empty() || self.dry_run == DryRun::Client {
                let changed = !operations.is_empty();
                return Ok(LivePatchResult { object: after, changed, warnings });
            }
            let version = resource_version(&before)?;
            let path = "/metadata/resourceVersion".to_owned();
            let guard = JsonPatchOperation { op: "test", path, value: Some(&version) };
            let sent = serde_json::to_string(&std::iter::once(guard).chain(operations).collect::<Vec<_>>())?;
            match self.place.patch(&self.client, sent, self.field_manager, self.dry_run == DryRun::Server).await {
                Ok(ApiAnswer { text, warnings: more }) => {
                    warnings.extend(more);
                    let changed = is_another(&before, &text)?;
                    return Ok(LivePatchResult { object: text, changed, warnings });
                }
                Err(refusal) if refusal.may_be_stale() => {
                    // The answer does not say whether the object changed, so read it again.
                    let now = self.read().await?;
                    if resource_version(&now)?.get() == version.get() {
                        return Err(LiveError::Request(refusal).into());
                    }
                }
                Err(refusal) => return Err(LiveError::Request(refusal).into()),
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
    struct VersionMetadata {
        resource_version: Box<RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Versioned {
        metadata: VersionMetadata,
    }
    let versioned: Versioned =
        serde_json::from_str(object).context("the API server sent an object without `metadata.resourceVersion`")?;
    Ok(versioned.metadata.resource_version)
}

/// Returns true if anything changed but the fields that the API server changes with every write.
fn is_another(before: &str, after: &str) -> serde_json::Result<bool> {
    let is_bookkeeping =
        |path: &str| BOOKKEEPING.iter().any(|known| path.strip_prefix(known).is_some_and(starts_below));
    Ok(difference(before, after)?.iter().any(|operation| !is_bookkeeping(&operation.path)))
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

/// Number of levels to compare. Deeper values are replaced as a whole.
const DEEPEST: usize = 64;

#[derive(Debug, Serialize)]
struct JsonPatchOperation<'t> {
    op: &'static str,
    /// The JSON Pointer of the value.
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'t RawValue>,
}

/// Returns the operations that turn `before` into `after`. Everything but an object is replaced as a whole. Equal values must be equal
/// texts, or they are replaced as well.
fn difference<'t>(before: &'t str, after: &'t str) -> serde_json::Result<Vec<JsonPatchOperation<'t>>> {
    let mut operations = Vec::new();
    // The pairs are at different paths, so the operations of one do not move another.
    let mut pairs = vec![(String::new(), 0, serde_json::from_str(before)?, serde_json::from_str(after)?)];
    while let Some((path, depth, before, after)) = pairs.pop() {
        let (before, after): (&RawValue, &RawValue) = (before, after);
        if before.get() == after.get() {
            continue;
        }
        if depth == DEEPEST || [before, after].iter().any(|value| !value.get().starts_with('{')) {
            operations.push(JsonPatchOperation { op: "replace", path, value: Some(after) });
            continue;
        }
        let before: BTreeMap<String, &RawValue> = serde_json::from_str(before.get())?;
        let after: BTreeMap<String, &RawValue> = serde_json::from_str(after.get())?;
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        operations.extend(gone.map(|name| JsonPatchOperation { op: "remove", path: below(&path, name), value: None }));
        for (name, value) in after {
            let path = below(&path, &name);
            match before.get(&name) {
                Some(before) => pairs.push((path, depth + 1, *before, value)),
                None => operations.push(JsonPatchOperation { op: "add", path, value: Some(value) }),
            }
        }
    }
    Ok(operations)
}

fn below(path: &str, name: &str) -> String {
    format!("{path}{}", pointer([name]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn patch(before: &str, after: &str) -> Value {
        serde_json::to_value(difference(before, after).unwrap()).unwrap()
    }

    #[test]
    fn the_patch_contains_only_changes() {
        let before = r#"{"a": {"b/c~": [1, 2], "l": [1], "x": 1}, "gone": null}"#;
        let after = r#"{"a": {"b/c~": [1,{}], "l": [1], "x": 1, "n": 18446744073709551617}}"#;
        let mut operations = difference(before, after).unwrap();
        operations.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(
            serde_json::to_string(&operations).unwrap(),
            r#"[{"op":"replace","path":"/a/b~1c~0","value":[1,{}]},{"op":"add","path":"/a/n","value":18446744073709551617},{"op":"remove","path":"/gone"}]"#
        );
        assert_eq!(patch("[]", "{}"), json!([{"op": "replace", "path": "", "value": {}}]));
    }

    #[test]
    fn a_deep_difference_replaces_a_value_at_the_depth_limit() {
        let deep = |inner: &str| format!("{}{inner}{}", r#"{"a":"#.repeat(9000), "}".repeat(9000));
        let (before, after) = (deep("1"), deep("2"));
        let operations = difference(&before, &after).unwrap();
        let [JsonPatchOperation { op: "replace", path, .. }] = operations.as_slice() else { panic!("{operations:?}") };
        assert_eq!(path.len(), 2 * DEEPEST);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..4u8).prop_map(Value::from)];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[abc~/]", inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn applying_the_operations_gives_the_other_text(before in value(), after in value()) {
            let patch: json_patch::Patch = serde_json::from_value(patch(&before.to_string(), &after.to_string())).unwrap();
            let mut patched = before;
            json_patch::patch(&mut patched, &patch).unwrap();
            prop_assert_eq!(patched, after);
        }
    }
}
