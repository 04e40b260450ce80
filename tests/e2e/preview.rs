//! `preview` against a real API server: each prediction equals its answer, without kube-unions, and with its webhook or its policies.

mod clients;
mod hooks;

use std::collections::BTreeMap;

use kube_unions::with_built_in_defaults;
use serde_json::{Value, json};

use crate::applied::helm::Helm;
use crate::builtin::{BuiltIn, Objects, collection, path};
use crate::presets::{Row, Then, is_validated, list, rows};
use crate::support::cluster::{AnyCluster, Cluster, say, some_or_all};
use crate::support::process::Workspace;
use crate::support::version::is_served;
use crate::support::webhook::kube_unions;
use fixtures::wait::{SETTLED, eventually};

const INCIDENTS: &str = include_str!("preview/incidents.yaml");

/// The API group of the custom resources in the incidents.
const GROUP: &str = "preview.example.com";

/// The clients that apply renderings, and the way of `preview` that predicts each.
const CLIENTS: [(&str, &str); 6] =
    [("ssa", "ssa"), ("csa", "csa"), ("merge", "merge"), ("replace", "replace"), ("helm", "helm"), ("helm4", "ssa")];

/// Whether the old and the new rendering of an object have its namespace. A chart may begin to write it, or cease.
const NAMESPACES: [[bool; 2]; 4] = [[false, true], [true, false], [false, false], [true, true]];

/// The label of objects in a new rendering.
const NEW: &str = "preview.example.com/new";

/// The way in which the cluster enforces unions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EnforcedBy {
    Nothing,
    Webhook,
    Policies,
}

/// A change of an object from one rendering to the next.
#[derive(Clone)]
pub(crate) struct Upgrade {
    pub(crate) title: String,
    pub(crate) old: Value,
    pub(crate) new: Value,
}

/// The prediction for an object: what the API server does without kube-unions, and with it.
#[derive(Debug, Clone)]
pub(crate) struct Predicted {
    /// The rule of the finding. `None` if every union is valid.
    pub(crate) rule: Option<&'static str>,
    pub(crate) is_refused_with_kube_unions: bool,
    /// What the API server says, if the finding tells it.
    pub(crate) words: Option<String>,
}

impl Predicted {
    fn is_stored(&self, by: EnforcedBy) -> bool {
        match by {
            EnforcedBy::Nothing => !matches!(self.rule, Some("union-refused" | "immutable-refused" | "null-refused")),
            EnforcedBy::Webhook | EnforcedBy::Policies => !self.is_refused_with_kube_unions,
        }
    }
}

/// Returns the predictions of `preview` for upgrades, in their order. `from` are CRDs and `UnionDeclarations`.
pub(crate) fn predict(workspace: &Workspace, way: &str, upgrades: &[Upgrade], from: &[Value]) -> Vec<Predicted> {
    let old = workspace.write("old.json", &items(upgrades.iter().map(|it| &it.old)));
    predict_after(workspace, way, Some(old.to_str().unwrap()), upgrades, from)
}

/// Returns the predictions for the new objects after the rendering `old`. Without one, they are created.
pub(crate) fn predict_after(
    workspace: &Workspace,
    way: &str,
    old: Option<&str>,
    upgrades: &[Upgrade],
    from: &[Value],
) -> Vec<Predicted> {
    let files = [
        workspace.write("new.json", &items(upgrades.iter().map(|it| &it.new))),
        workspace.write("from.json", &items(from)),
    ];
    let [new, from] = files.each_ref().map(|file| file.to_str().unwrap());
    let arguments = ["preview", "--new", new, "--from", from, "--as", way, "-o", "json"];
    let earlier = old.as_ref().map(|old| ["--old", *old]);
    let output = kube_unions(&[&arguments[..], earlier.as_ref().map_or(&[], |it| it)].concat(), "");
    let report = output.json();
    let mut found: BTreeMap<(&str, &str), Predicted> = BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        let rules = ["union-refused", "union-stored-invalid", "union-undecided", "immutable-refused", "null-refused"];
        let rule = rules.into_iter().find(|rule| finding["rule"] == *rule).unwrap_or_else(|| panic!("{finding}"));
        let is_refused = finding["withKubeUnions"] == "refused";
        let key = (finding["kind"].as_str().unwrap(), finding["name"].as_str().unwrap());
        let words = finding["note"].as_str().and_then(|note| note.strip_prefix("the API server says: "));
        let words = words.map(str::to_owned);
        let own = Predicted { rule: Some(rule), is_refused_with_kube_unions: is_refused, words };
        let known = found.entry(key).or_insert(own);
        known.rule = known.rule.min(Some(rule));
        known.is_refused_with_kube_unions |= is_refused;
    }
    let judged = if old.is_some() { "compared" } else { "onlyInNew" };
    assert_eq!(report["summary"][judged], json!(upgrades.len()), "{output:?}");
    let of = |Upgrade { new, .. }: &Upgrade| {
        let key = (new["kind"].as_str().unwrap(), new["metadata"]["name"].as_str().unwrap());
        let valid = Predicted { rule: None, is_refused_with_kube_unions: false, words: None };
        found.get(&key).cloned().unwrap_or(valid)
    };
    upgrades.iter().map(of).collect()
}

fn items<'v>(objects: impl IntoIterator<Item = &'v Value>) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects.into_iter().collect::<Vec<_>>()}).to_string()
}

/// The titles of upgrades of unions in lists.
const IN_LISTS: [&str; 1] = ["deployment-handlers"];

/// A cluster, and every upgrade that is applied to it.
struct Upgrades {
    by: EnforcedBy,
    objects: Objects,
    helm: Helm,
    workspace: Workspace,
    crds: Vec<Value>,
    all: Vec<Upgrade>,
}

impl Upgrades {
    /// Installs the kinds of the incidents in a cluster with every preset, or without any.
    fn of(cluster: &AnyCluster, by: EnforcedBy) -> Self {
        let objects = Objects::of(cluster);
        let mut incidents = list(INCIDENTS);
        incidents.retain(|incident| is_served(&incident["old"]));
        let crds: Vec<Value> = incidents.iter().filter_map(|it| it.get("crd").cloned()).collect();
        for crd in &crds {
            objects.kubectl.apply(&crd.to_string()).accepted();
            let name = crd["metadata"]["name"].as_str().unwrap();
            objects.kubectl.run(&["wait", "--for=condition=Established", &format!("crd/{name}")]).accepted();
        }
        let of_incidents = incidents.iter().map(|incident| Upgrade {
            title: incident["incident"].as_str().unwrap().to_owned(),
            old: incident["old"].clone(),
            new: incident["new"].clone(),
        });
        // The pod templates of a kind of each group and depth stand for those of all: `presets` switches each.
        let kinds: &[&str] = match by {
            EnforcedBy::Nothing => &["CronJob", "Deployment", "PodTemplate"],
            EnforcedBy::Webhook | EnforcedBy::Policies => &["Deployment"],
        };
        let is_played = |row: &Row| {
            let is_of_some = row.object["kind"].as_str().is_some_and(|kind| kinds.contains(&kind));
            some_or_all(!row.is_of_template || is_of_some, true)
        };
        let validated = rows().into_iter().filter(|row| is_validated(row.object["kind"].as_str().unwrap()));
        let validated = validated.filter(is_played);
        let of_presets = validated.filter_map(|row| match row.then {
            Then::Stored(at, after) => {
                let mut new = row.object.clone();
                set(&mut new, &at, after);
                Some(Upgrade { title: row.preset, old: row.object, new })
            }
            Then::Refused(_) => None,
        });
        let all = of_incidents.chain(of_presets).collect();
        let workspace = Workspace::new("preview");
        Self { by, objects, helm: Helm::new(cluster.kubeconfig()), workspace, crds, all }
    }

    /// The clients that differ in what they send: `helm` sends no annotation, which policies cannot read, and `helm4` applies server-side.
    fn clients(&self) -> &'static [(&'static str, &'static str)] {
        let some = match self.by {
            EnforcedBy::Nothing => &CLIENTS[..],
            EnforcedBy::Webhook => &CLIENTS[..5],
            EnforcedBy::Policies => &CLIENTS[..4],
        };
        some_or_all(some, &CLIENTS)
    }

    /// Applies every upgrade by every client. Fails the test if an answer is not as predicted, or if nothing was refused.
    fn play(&self) {
        let by = self.by;
        let (mut refused, mut failures): (BTreeMap<_, usize>, Vec<_>) = (BTreeMap::new(), Vec::new());
        let mut told = 0;
        for (turn, &(client, way)) in self.clients().iter().enumerate() {
            let named = |(number, upgrade): (usize, &Upgrade)| {
                let mut upgrade = upgrade.clone();
                let name = format!("{}-{number}-{client}", upgrade.old["metadata"]["name"].as_str().unwrap());
                let name = format!("{name}-{by:?}").to_lowercase();
                let namespaces = NAMESPACES[(number + turn) % NAMESPACES.len()];
                for (object, has_namespace) in [&mut upgrade.old, &mut upgrade.new].into_iter().zip(namespaces) {
                    rename(object, &name);
                    if has_namespace && collection_of(object).contains("/namespaces/") {
                        object["metadata"]["namespace"] = json!("default");
                    }
                }
                upgrade.new["metadata"]["labels"][NEW] = json!("");
                upgrade
            };
            let upgrades: Vec<Upgrade> = self.all.iter().enumerate().map(named).collect();
            let mut predicted = predict(&self.workspace, way, &upgrades, &self.crds);
            if by == EnforcedBy::Policies && way == "csa" {
                // Policies find nothing in lists of the manifest of a first client-side apply, as if there were none.
                let without_manifest = predict(&self.workspace, "helm", &upgrades, &self.crds);
                let all = predicted.iter_mut().zip(without_manifest).zip(&upgrades);
                all.filter(|(_, upgrade)| IN_LISTS.contains(&&*upgrade.title)).for_each(|((own, it), _)| *own = it);
            }
            let said = self.apply(client, &format!("{client}-{by:?}").to_lowercase(), &upgrades);
            let get = ["get", "-f", "-", "-o", "json"];
            let held = self.objects.kubectl.run_with(&get, &items(upgrades.iter().map(|it| &it.new))).accepted().json();
            let held = held["items"].as_array().unwrap();
            assert_eq!(held.len(), upgrades.len());
            for ((upgrade, predicted), held) in upgrades.iter().zip(predicted).zip(held) {
                assert_eq!(held["metadata"]["name"], upgrade.new["metadata"]["name"]);
                let is_stored = held["metadata"]["labels"].get(NEW).is_some();
                *refused.entry(client).or_default() += usize::from(!is_stored);
                // Helm tells the first error.
                if let (Some(words), false, "ssa" | "csa" | "merge" | "replace") = (&predicted.words, is_stored, client)
                {
                    let name = upgrade.new["metadata"]["name"].as_str().unwrap();
                    let own = said.split("The ").find(|part| part.contains(name)).unwrap_or_default();
                    assert!(by != EnforcedBy::Nothing || own.contains(words), "{name}: {words}: {own}");
                    told += usize::from(by == EnforcedBy::Nothing);
                }
                if is_stored != predicted.is_stored(by) {
                    let name = upgrade.new["metadata"]["name"].as_str().unwrap();
                    let said = said.lines().find(|line| line.contains(name)).unwrap_or_default();
                    failures.push(format!("{}, {name}: stored: {is_stored}: {said}", upgrade.title));
                }
            }
        }
        say(&format!(
            "{} upgrades by each client, {by:?}, refused: {refused:?}, in these words: {told}",
            self.all.len()
        ));
        assert!(by != EnforcedBy::Nothing || told > 0);
        assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
        let some = |refused: usize| (1..self.all.len()).contains(&refused);
        assert!(by != EnforcedBy::Nothing || refused.values().all(|refused| some(*refused)), "{refused:?}");
        assert!(refused.values().any(|refused| *refused > 0), "{refused:?}");
    }

    /// Creates the new object of every upgrade, and one in which the new fields stand beside the old ones. Fails the test if an answer is not as
    /// predicted, or if all answers are the same.
    fn play_creates(&self) {
        let both = |upgrade: &Upgrade| {
            let mut new = upgrade.old.clone();
            json_patch::merge(&mut new, &upgrade.new);
            Upgrade { new, ..upgrade.clone() }
        };
        // What the new rendering drops is null. Only a server-side apply of a custom resource keeps that.
        let with_nulls = |upgrade: &Upgrade| {
            let mut upgrade = upgrade.clone();
            let fields = upgrade.new.get_mut("spec").and_then(Value::as_object_mut);
            if let (Some(old), Some(new)) = (upgrade.old["spec"].as_object(), fields) {
                for name in old.keys() {
                    new.entry(name).or_insert(Value::Null);
                }
            }
            upgrade
        };
        let all = self.all.iter().flat_map(|upgrade| [upgrade.clone(), both(upgrade), with_nulls(upgrade)]);
        let mut creates: Vec<Upgrade> = all.collect();
        for (number, create) in creates.iter_mut().enumerate() {
            let name = format!("{}-{number}-create-{:?}", create.new["metadata"]["name"].as_str().unwrap(), self.by);
            rename(&mut create.new, &name.to_lowercase());
        }
        let mut refused = 0;
        for way in ["csa", "ssa", "helm"] {
            let predicted = predict_after(&self.workspace, way, None, &creates, &self.crds);
            for (create, predicted) in creates.iter().zip(predicted) {
                let collection = collection_of(&create.new);
                let (method, path, media_type) = match way {
                    "ssa" => {
                        let name = create.new["metadata"]["name"].as_str().unwrap();
                        (
                            "PATCH",
                            format!("{collection}/{name}?fieldManager=kubectl&dryRun=All"),
                            "application/apply-patch+yaml",
                        )
                    }
                    _ => ("POST", format!("{collection}?dryRun=All"), "application/json"),
                };
                let answer = self.objects.send(method, &path, media_type, &create.new);
                assert!([200, 201, 403, 422].contains(&answer.status), "{path}: {answer:?}");
                refused += usize::from(!answer.is_success());
                assert_eq!(
                    answer.is_success(),
                    predicted.is_stored(self.by),
                    "{} by {way}: {:?} {answer:?}",
                    create.title,
                    predicted
                );
            }
        }
        say(&format!("{} creates by each of three ways, {:?}, refused: {refused}", creates.len(), self.by));
        assert!((1..creates.len() * 3).contains(&refused), "{refused}");
    }

    /// Has a client apply all old objects, then all new ones. Returns what it says about the new ones.
    fn apply(&self, client: &str, release: &str, upgrades: &[Upgrade]) -> String {
        let [old, new] = [|it: &Upgrade| it.old.clone(), |it: &Upgrade| it.new.clone()]
            .map(|side| upgrades.iter().map(side).collect::<Vec<Value>>());
        let kubectl = |arguments: &[&str], objects: &[Value]| self.objects.kubectl.run_with(arguments, &items(objects));
        let (first, second): (&[&str], &[&str]) = match client {
            "ssa" => (&["apply", "--server-side", "-f", "-"], &["apply", "--server-side", "-f", "-"]),
            "csa" => (&["apply", "-f", "-"], &["apply", "-f", "-"]),
            "merge" => (&["create", "-f", "-"], &[]),
            "replace" => (&["create", "-f", "-"], &["replace", "-f", "-"]),
            helm => {
                assert_eq!(self.helm.upgrade(helm, release, &old), None);
                return self.helm.upgrade(helm, release, &new).unwrap_or_default();
            }
        };
        kubectl(first, &old).accepted();
        if !second.is_empty() {
            return kubectl(second, &new).stderr;
        }
        let patch = |object: &Value| {
            let answer = self.objects.send("PATCH", &path_of(object), "application/merge-patch+json", object);
            format!("{} {}: {}\n", path_of(object), answer.status, answer.body["message"])
        };
        new.iter().map(patch).collect()
    }

    /// Waits until an object with two members is refused, and one with one member is not: policies answer 503 until they know a new kind.
    fn wait_until_enforced(&self) {
        let is_accepted = |spec: Value| {
            let probe = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Shifter", "metadata": {"name": "probe"}, "spec": spec});
            self.objects.kubectl.run_with(&["create", "--dry-run=server", "-f", "-"], &probe.to_string()).succeeded()
        };
        let refused = || is_accepted(json!({"disk": {}})) && !is_accepted(json!({"disk": {}, "net": {}}));
        assert!(eventually(SETTLED, refused), "{:?} does not enforce the unions of {GROUP}", self.by);
    }
}

#[test]
fn every_upgrade_is_predicted_without_kube_unions() {
    let Some(cluster) = Cluster::shared() else { return };
    Upgrades::of(cluster, EnforcedBy::Nothing).play();
}

#[test]
fn every_upgrade_is_predicted_with_the_webhook() {
    let Some(BuiltIn { cluster, .. }) = BuiltIn::with_presets() else { return };
    let upgrades = Upgrades::of(cluster, EnforcedBy::Webhook);
    upgrades.objects.kubectl.apply(&cluster.webhook.registration(GROUP).to_string()).accepted();
    upgrades.wait_until_enforced();
    upgrades.play();
    upgrades.play_creates();
}

#[test]
fn every_upgrade_is_predicted_with_the_policies() {
    let Some(BuiltIn { cluster, .. }) = BuiltIn::with_policies() else { return };
    let upgrades = Upgrades::of(cluster, EnforcedBy::Policies);
    let crds = upgrades.workspace.write("crds.json", &items(&upgrades.crds));
    let compiled = kube_unions(&["compile", "--from", crds.to_str().unwrap()], "").accepted();
    upgrades.objects.kubectl.apply(&compiled.stdout).accepted();
    upgrades.wait_until_enforced();
    upgrades.play();
    upgrades.play_creates();
}

/// Returns the path of an object, also of a custom resource of the incidents.
fn path_of(object: &Value) -> String {
    if object["apiVersion"] != format!("{GROUP}/v1") {
        return path(object);
    }
    format!("{}/{}", collection_of(object), object["metadata"]["name"].as_str().unwrap())
}

fn collection_of(object: &Value) -> String {
    if object["apiVersion"] != format!("{GROUP}/v1") {
        return collection(object);
    }
    format!("/apis/{GROUP}/v1/namespaces/default/{}s", object["kind"].as_str().unwrap().to_lowercase())
}

/// Gives an object a name. That of a CRD has its group, which then is another one, too.
fn rename(object: &mut Value, name: &str) {
    let mut name = name.to_owned();
    if object["kind"] == "CustomResourceDefinition" {
        let group = format!("{name}.{GROUP}");
        name = format!("{}.{group}", object["spec"]["names"]["plural"].as_str().unwrap());
        object["spec"]["group"] = json!(group);
    }
    object["metadata"]["name"] = json!(name);
}

/// Sets a value. Makes the objects on the way.
pub(crate) fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for token in pointer.split('/').skip(1) {
        at = match token.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[token],
        };
    }
    *at = value;
}

#[test]
fn every_create_is_predicted() {
    let Some(cluster) = Cluster::shared() else { return };
    Upgrades::of(cluster, EnforcedBy::Nothing).play_creates();
}

#[test]
fn the_table_of_defaults_is_that_of_the_server() {
    let Some(objects) = Objects::without_presets() else { return };
    let mut compared = 0;
    for row in list(include_str!("preview/defaults.yaml")) {
        let object = &row["object"];
        let created = objects.create(object);
        assert!(created.is_success(), "{} {created:?}", collection(object));
        let predicted = with_built_in_defaults(&object.to_string()).unwrap();
        for at in row["at"].as_array().unwrap() {
            let at = at.as_str().unwrap();
            assert_eq!(predicted.pointer(at), created.body.pointer(at), "{}{at}", path(object));
            compared += 1;
        }
    }
    assert_eq!(compared, 26);
}
