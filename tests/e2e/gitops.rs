//! Applying one manifest again changes nothing: Flux, Argo CD and controllers with controller-runtime, by their own packages.
//!
//! The program in Go of `tests/gitops` plays the [`cases`]: it applies each manifest three times in each way, and asks the tool for the
//! remaining difference. Either every apply is refused with the same reason and nothing is stored, or the first is stored, later ones
//! leave the generation alone, and no difference is left.
//!
//! Policies find unions behind fields alone in the annotation of client-side apply. Elsewhere they take the first apply of a manifest that
//! contradicts itself for a switch, and settle from the second apply on ([`Verdict::Late`]).

mod cases;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use self::cases::{Case, Expected, Stored, install};
use crate::builtin::{BuiltIn, POLICIES, apply_presets};
use crate::registration::with_rights;
use crate::support::cluster::{AnyCluster, Cluster, say};
use crate::support::kubectl::{Kubectl, run};
use crate::support::process::{Workspace, go_gitops};
use crate::support::version::{Feature, lacks};
use crate::support::webhook::kube_unions;
use fixtures::wait::eventually;

/// The deadline of work that the API server does in the background, far above the usual time. The converter of mutating policies
/// reads the schemas of new kinds every five seconds.
const SETTLED: Duration = Duration::from_mins(1);

/// The way of the program that is client-side apply.
const CLIENT_SIDE: &str = "argo-client-side";

/// The number of ways of the program.
const WAYS: usize = 4;

/// A line that the program prints: `tests/gitops/main.go` explains the fields.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Step {
    way: String,
    case: String,
    refusals: [Option<String>; 3],
    generations: [i64; 4],
    resource_versions: [String; 4],
    differences: BTreeMap<String, String>,
    object: Value,
}

/// The result of a step that keeps the law.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy, Debug)]
enum Verdict {
    /// The first apply is stored, and later ones change nothing.
    Stored,
    /// Every apply is refused with the same reason.
    Refused,
    /// The first apply is stored, and later ones are refused with the same reason, or stored with another result that stays.
    Late,
}

#[test]
fn under_the_webhook_every_manifest_of_a_gitops_tool_settles_and_with_conditions_fewer_writes_are_reviewed() {
    let Some(program) = go_gitops() else { return };
    let Some(built_in) = BuiltIn::own() else { return };
    let count = |cluster: &Cluster, cases: &[Case]| {
        let reviews = || cluster.webhook.outcomes().values().sum();
        let (kubeconfig, kubectl) = (cluster.control_plane.admin_kubeconfig(), cluster.control_plane.kubectl("gitops"));
        play(&program, &kubeconfig, &kubectl, cases, false, reviews)
    };
    let cases = install(&built_in.cluster);
    built_in.switch_presets_on();
    let without = count(&built_in.cluster, &cases);

    let Some(cluster) = Cluster::registering(&with_rights(), &["--registration-delay=0s"]) else { return };
    let cases = install(&cluster);
    apply_presets(&cluster);
    let with = count(&cluster, &cases);
    say(&format!("{without} reviews without conditions, {with} with"));
    assert!(with > 0 && with < without, "{without} reviews without conditions, {with} with");
}

#[test]
fn under_policies_every_manifest_of_a_gitops_tool_settles() {
    let Some(program) = go_gitops() else { return };
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let cases = install(&AnyCluster::of_control_plane(&control_plane));
    let kubectl = control_plane.kubectl("gitops");
    let kubeconfig = control_plane.admin_kubeconfig();
    let compile = ["compile", "--to=policies", &format!("--kubeconfig={}", kubeconfig.display())];
    kubectl.apply(&kube_unions(&compile, "").accepted().stdout).accepted();
    kubectl.run(&["apply", "-f", POLICIES]).accepted();
    play(&program, &kubeconfig, &kubectl, &cases, true, || 0);
}

/// Plays the cases by the program, and judges each step. Returns the number of reviews meanwhile.
fn play(
    program: &Path,
    kubeconfig: &Path,
    kubectl: &Kubectl,
    cases: &[Case],
    by_policies: bool,
    reviews: impl Fn() -> u64,
) -> u64 {
    let fresh: Vec<Option<Value>> =
        cases.iter().enumerate().map(|(number, case)| wait_until_enforced(kubectl, number, case)).collect();
    let workspace = Workspace::new("gitops");
    let mut command = Command::new(program);
    command.arg(kubeconfig).env("HOME", workspace.path()).env("TMPDIR", workspace.path());
    let mut input = String::new();
    for case in cases {
        writeln!(input, "{}", case.to_json()).unwrap();
    }
    let before = reviews();
    let output = run(command, "gitops", &input).accepted().stdout;
    let reviewed = reviews() - before;
    let steps: Vec<Step> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(steps.len(), WAYS * cases.len(), "each case has a step for each way");

    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for step in &steps {
        let at = cases.iter().position(|case| case.title == step.case).expect("a step is of a case");
        match step.judge(&cases[at], fresh[at].as_ref(), by_policies) {
            Ok(verdict) => *counts.entry(verdict).or_default() += 1,
            Err(fault) => failures.push(format!("{}, {}: {fault}", step.way, step.case)),
        }
    }
    say(&format!("{} steps, {} of them do not settle: {counts:?}", steps.len(), failures.len()));
    assert!(failures.is_empty(), "{} of {} steps:\n  {}", failures.len(), steps.len(), failures.join("\n  "));
    reviewed
}

impl Step {
    /// Returns the verdict, or the reason why the step does not settle as expected. `fresh` is the spec that is to be stored.
    fn judge(&self, case: &Case, fresh: Option<&Value>, by_policies: bool) -> Result<Verdict, String> {
        let verdict = self.verdict().ok_or_else(|| format!("does not settle: {}", self.summary()))?;
        let expected = match &case.expected {
            Expected::Contradicts(_) if by_policies && self.way == CLIENT_SIDE && case.is_of_collection() => {
                Verdict::Late
            }
            Expected::Stored | Expected::Contradicts(None) => Verdict::Stored,
            Expected::Refused | Expected::Contradicts(Some(_)) => Verdict::Refused,
        };
        if verdict != expected {
            return Err(format!("{expected:?} was expected, not {verdict:?}: {}", self.summary()));
        }
        if fresh.is_some_and(|fresh| unordered(fresh) != unordered(&self.object["spec"])) {
            return Err(format!("another spec was expected: {}", self.summary()));
        }
        match (&case.expected, &self.refusals[0]) {
            (Expected::Contradicts(Some(part)), Some(said)) if !said.contains(part) => {
                Err(format!("refused in other words: {}", self.summary()))
            }
            _ => Ok(verdict),
        }
    }

    /// Returns the verdict. `None`: the step breaks the law.
    fn verdict(&self) -> Option<Verdict> {
        let [_, first, second, third] = &self.generations;
        let [before, after, later @ ..] = &self.resource_versions;
        let unchanged = later.iter().all(|version| version == after);
        match &self.refusals {
            [None, None, None] if !self.differences.is_empty() || second != third => None,
            [None, None, None] => Some(if first == second { Verdict::Stored } else { Verdict::Late }),
            [Some(one), Some(two), Some(three)] if one == two && two == three => {
                (unchanged && before == after).then_some(Verdict::Refused)
            }
            [None, Some(two), Some(three)] if two == three => unchanged.then_some(Verdict::Late),
            _ => None,
        }
    }

    fn summary(&self) -> String {
        let Self { refusals, generations, differences, object, .. } = self;
        format!(
            "refusals {refusals:?}, generations {generations:?}, differences {differences:?}, spec {}",
            object["spec"]
        )
    }
}

/// Waits until the union of a case is enforced, by dry runs. Returns the spec of the manifest as a new object, if it is to be stored.
fn wait_until_enforced(kubectl: &Kubectl, number: usize, case: &Case) -> Option<Value> {
    let as_probe = |object: &Value, name: &str| {
        let mut object = object.clone();
        object["metadata"]["name"] = json!(format!("{name}-{number}"));
        object.to_string()
    };
    let create =
        || kubectl.run_with(&["create", "--dry-run=server", "-o=json", "-f", "-"], &as_probe(&case.manifest, "fresh"));
    if matches!(case.expected, Expected::Refused | Expected::Contradicts(Some(_))) {
        assert!(eventually(SETTLED, || !create().succeeded()), "{}: not enforced", case.title);
        return None;
    }
    let spec = create().accepted().json()["spec"].take();
    if let Stored::Created(object) = &case.stored {
        kubectl.run_with(&["create", "-f", "-"], &as_probe(object, "probe")).accepted();
        let apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-o=json", "-f", "-"];
        let manifest = as_probe(&case.manifest, "probe");
        let enforced = eventually(SETTLED, || {
            let output = kubectl.run_with(&apply, &manifest);
            output.succeeded() && unordered(&output.json()["spec"]) == unordered(&spec)
        });
        assert!(enforced, "{}: not enforced: {:#?}", case.title, kubectl.run_with(&apply, &manifest));
    }
    Some(spec)
}

/// Returns the value with each list sorted: apply decides on the order of items with keys.
fn unordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), unordered(value))).collect(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(unordered).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
