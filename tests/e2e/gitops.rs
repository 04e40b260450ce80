//! Applying one manifest again changes nothing: Flux, Argo CD and controllers with controller-runtime, by their own packages.
//!
//! The program in Go of `tests/gitops` plays [`Case`]s of the samples and of `gitops/presets.yaml`: it applies each manifest three
//! times in each way, and asks the tool for the remaining difference. In each way either every apply is refused with the same reason
//! and nothing is stored, or the first is stored, later ones leave the generation alone, and no difference is left.
//!
//! Policies cannot read the annotation of client-side apply. They store the first apply of a manifest that contradicts itself, and
//! refuse every later one ([`Verdict::Late`]).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::{BuiltIn, POLICIES, PRESETS};
use crate::cluster::{AnyCluster, Cluster, say};
use crate::contrib::definitions_of;
use crate::kind::{Kind, SAMPLES_GROUP, parse};
use crate::kubectl::{Kubectl, run};
use crate::process::{Workspace, go_gitops};
use crate::version::{Feature, lacks};
use crate::webhook::kube_unions;
use fixtures::wait::eventually;

/// The deadline of work that the API server does in the background, far above the usual time. The converter of mutating policies
/// reads the schemas of new kinds every five seconds.
const SETTLED: Duration = Duration::from_mins(1);

/// The samples whose CRDs declare unions.
const SAMPLES: [&str; 7] = ["backup", "gateway", "monitor", "pipeline", "rollout", "route", "source"];

/// The contributed presets, and the groups of their kinds.
const CONTRIBUTED: [(&str, &[&str]); 2] = [
    ("cert-manager", &["cert-manager.io"]),
    (
        "flux",
        &[
            "helm.toolkit.fluxcd.io",
            "image.toolkit.fluxcd.io",
            "kustomize.toolkit.fluxcd.io",
            "source.toolkit.fluxcd.io",
        ],
    ),
];

/// The way of the program that is client-side apply.
const CLIENT_SIDE: &str = "argo-client-side";

/// The number of ways of the program.
const WAYS: usize = 4;

/// A stored object, and a manifest that is applied over it.
struct Case {
    title: String,
    stored: Stored,
    manifest: Value,
    expected: Expected,
}

/// The origin of the stored object.
enum Stored {
    /// Another client created it.
    Created(Value),
    /// The tool applied it before.
    Applied(Value),
}

/// The expected answer to each apply.
enum Expected {
    /// It is stored as it is.
    Stored,
    /// It is refused.
    Refused,
    /// It contradicts itself, and is refused with a message that has this part.
    Contradicts(String),
}

/// A row of `gitops/presets.yaml`, which explains the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    title: String,
    object: Value,
    from: Value,
    to: Value,
    both: Value,
    refusal: Option<String>,
}

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
    /// The first apply is stored, and every later one is refused with the same reason.
    Late,
}

#[test]
fn under_the_webhook_every_manifest_of_a_gitops_tool_settles() {
    let Some(program) = go_gitops() else { return };
    let Some(built_in) = BuiltIn::own() else { return };
    let cluster = &built_in.cluster;
    let cases = install(cluster);
    built_in.switch_presets_on();
    play(&program, &cluster.control_plane.admin_kubeconfig(), &built_in.kubectl, &cases, false);
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
    play(&program, &kubeconfig, &kubectl, &cases, true);
}

/// Installs the kinds of the samples and of the contributed presets with their declarations, and returns the cases.
fn install(cluster: &AnyCluster) -> Vec<Case> {
    let mut cases = Vec::new();
    let kubectl = cluster.kubectl("gitops");
    let register = |group: &str| {
        if let Some(registration) = cluster.registration(group) {
            kubectl.apply(&registration.to_string()).accepted();
        }
    };
    for sample in SAMPLES {
        let kind = Kind::new(cluster, sample);
        kind.apply_definition();
        register(kind.group());
        cases.extend(cases_of_sample(&kind));
    }
    let declared = Kind::in_group(cluster, "declared", SAMPLES_GROUP.to_owned());
    declared.apply_definition_text(&declared.authored());
    kubectl.apply(&declared.read("declaration.yaml")).accepted();
    register(declared.group());
    cases.extend(cases_of_sample(&declared));

    for (preset, groups) in CONTRIBUTED {
        for group in groups {
            for definition in definitions_of(group) {
                kubectl.apply(&definition.to_string()).accepted();
                let name = definition["metadata"]["name"].as_str().unwrap();
                kubectl.run(&["wait", "--for=condition=Established", "crd", name]).accepted();
            }
            register(group);
        }
        kubectl.run(&["apply", "-f", &format!("{PRESETS}/contrib/{preset}.yaml")]).accepted();
    }
    let rows: Vec<Row> = serde_json::from_value(parse(include_str!("gitops/presets.yaml"))).unwrap();
    cases.extend(rows.into_iter().flat_map(cases_of_row));
    cases
}

/// Returns the cases of a sample's files: a valid object that is kept, and, of each object that is normalised, the switch, and the
/// manifest with the old member beside the new one.
fn cases_of_sample(kind: &Kind<'_>) -> Vec<Case> {
    let files = kind.files();
    let read = |file: &str| files.iter().any(|it| it == file).then(|| named(parse(&kind.read(file))));
    let case = |title: &str, stored, manifest, expected| {
        let title = format!("{}: {title}", kind.sample());
        Case { title, stored, manifest, expected }
    };
    let valid = files.iter().find(|file| file.starts_with("valid-")).expect("a sample has a valid object");
    let kept = read(valid).unwrap();
    let mut cases = vec![case("kept", Stored::Applied(kept.clone()), kept, Expected::Stored)];
    for stem in files.iter().filter_map(|file| file.strip_suffix(".new.yaml")) {
        let [old, new, want] = ["old", "new", "want"].map(|part| read(&format!("{stem}.{part}.yaml")));
        let (new, want) = (new.unwrap(), want.unwrap());
        match old {
            Some(old) if stem.starts_with("rejected-") => {
                cases.push(case(stem, Stored::Applied(old), new, Expected::Refused));
            }
            Some(old) => {
                let contradicts = (new != want).then(|| {
                    let expected = Expected::Contradicts("the applied manifest sets ".to_owned());
                    case(&format!("{stem}, contradiction"), Stored::Applied(old.clone()), new, expected)
                });
                cases.push(case(&format!("{stem}, switch"), Stored::Created(old), want, Expected::Stored));
                cases.extend(contradicts);
            }
            None if stem.starts_with("normalized-") => {
                cases.push(case(stem, Stored::Created(want), new, Expected::Stored));
            }
            None => {}
        }
    }
    cases
}

fn cases_of_row(row: Row) -> [Case; 3] {
    let [from, to, both] = [&row.from, &row.to, &row.both].map(|part| {
        let mut object = named(row.object.clone());
        json_patch::merge(&mut object, part);
        object
    });
    let case = |title: &str, stored, manifest, expected| {
        let title = format!("{}: {title}", row.title);
        Case { title, stored, manifest, expected }
    };
    let expected = row.refusal.clone().map_or(Expected::Stored, Expected::Contradicts);
    [
        case("switch over another client", Stored::Created(from.clone()), to.clone(), Expected::Stored),
        case("switch", Stored::Applied(from.clone()), to, Expected::Stored),
        case("contradiction", Stored::Applied(from), both, expected),
    ]
}

/// Returns the object with a name that the program replaces.
fn named(mut object: Value) -> Value {
    object["metadata"] = json!({"name": "x", "namespace": "default"});
    object
}

/// Plays the cases by the program, and judges each step.
fn play(program: &Path, kubeconfig: &Path, kubectl: &Kubectl, cases: &[Case], by_policies: bool) {
    let fresh: Vec<Option<Value>> =
        cases.iter().enumerate().map(|(number, case)| wait_until_enforced(kubectl, number, case)).collect();
    let workspace = Workspace::new("gitops");
    let mut command = Command::new(program);
    command.arg(kubeconfig).env("HOME", workspace.path()).env("TMPDIR", workspace.path());
    let mut input = String::new();
    for case in cases {
        writeln!(input, "{}", case.to_json()).unwrap();
    }
    let output = run(command, "gitops", &input).accepted().stdout;
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
    if !matches!(case.expected, Expected::Stored) {
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

impl Case {
    fn to_json(&self) -> Value {
        let (field, stored) = match &self.stored {
            Stored::Created(object) => ("stored", object),
            Stored::Applied(object) => ("storedByApply", object),
        };
        json!({"case": self.title, field: stored, "manifest": self.manifest})
    }
}

impl Step {
    /// Returns the verdict, or the reason why the step does not settle as expected.
    fn judge(&self, case: &Case, fresh: Option<&Value>, by_policies: bool) -> Result<Verdict, String> {
        let verdict = self.settled().ok_or_else(|| format!("does not settle: {self:?}"))?;
        let expected = match &case.expected {
            Expected::Stored => Verdict::Stored,
            Expected::Refused => Verdict::Refused,
            Expected::Contradicts(_) if by_policies && self.way == CLIENT_SIDE => Verdict::Late,
            Expected::Contradicts(_) => Verdict::Refused,
        };
        if verdict != expected {
            return Err(format!("{expected:?} was expected, not {verdict:?}: {self:?}"));
        }
        let said = self.refusals[2].as_deref().unwrap_or_default();
        match &case.expected {
            Expected::Contradicts(part) if verdict == Verdict::Refused && !said.contains(part) => {
                Err(format!("refused in other words: {said}"))
            }
            Expected::Stored if fresh.map(unordered) != Some(unordered(&self.object["spec"])) => {
                Err(format!("stored is {}, not {fresh:?}", self.object["spec"]))
            }
            _ => Ok(verdict),
        }
    }

    /// Returns the verdict. `None`: the step breaks the law.
    fn settled(&self) -> Option<Verdict> {
        let [_, first, later @ ..] = &self.generations;
        let [before, after, stored @ ..] = &self.resource_versions;
        let unchanged = stored.iter().all(|version| version == after);
        match &self.refusals {
            [None, None, None] => {
                let kept = later.iter().all(|generation| generation == first) && self.differences.is_empty();
                kept.then_some(Verdict::Stored)
            }
            [Some(first), rest @ ..] if rest.iter().all(|it| it.as_ref() == Some(first)) => {
                (unchanged && before == after).then_some(Verdict::Refused)
            }
            [None, Some(second), Some(third)] => (unchanged && second == third).then_some(Verdict::Late),
            _ => None,
        }
    }
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
        other => other.clone(),
    }
}
