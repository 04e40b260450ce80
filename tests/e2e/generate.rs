//! The output of `generate` for the Go samples, on a real API server: the server accepts the CRDs under strict validation, and
//! objects behave as the rows of `tests/cases/go/rows` say.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::cluster::AnyCluster;
use crate::support::http::Answer;
use crate::support::kind::{self, parse};
use crate::support::load::causes;
use crate::support::resource::Resource;
use crate::support::version::Feature;
use crate::support::webhook::kube_unions;
use fixtures::wait::{SETTLED, eventually, steadily};

#[test]
fn a_generated_definition_is_taken_under_strict_validation_and_every_object_does_what_its_row_says() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let (mut accepted, mut rejected) = (0, 0);
    let kinds: Vec<Kind<'_>> = rows().iter().map(|path| Kind::new(cluster, path)).collect();
    install(cluster, &kinds);
    for kind in &kinds {
        kind.enforce();
        for union in kind.unions() {
            for fields in list(&union["accepted"]) {
                kind.is_accepted(union, fields);
                accepted += 1;
            }
            for row in list(&union["rejected"]) {
                // An API server evaluates the rules of the CRD before it calls the validating webhook.
                let rule = row.get("rule").map(|rule| json!([rule_of_this_version(text(rule))]));
                kind.is_rejected(union, &row["object"], rule.as_ref().unwrap_or(&row["causes"]));
                rejected += 1;
            }
        }
    }
    assert!(accepted >= 40 && rejected >= 40, "only {accepted} accepted and {rejected} rejected objects were sent");
}

/// Returns the cause of a failed rule as this API server words it: an older one adds the type of the value.
fn rule_of_this_version(rule: &str) -> String {
    if Feature::CausesWithoutType.is_served() {
        rule.to_owned()
    } else {
        rule.replacen("Invalid value: ", "Invalid value: \"object\": ", 1)
    }
}

/// The group of the Go samples.
const GROUP: &str = "fleet.example.com";

/// A kind of the Go samples, in a group of its own.
struct Kind<'c> {
    cluster: &'c AnyCluster,
    row: Value,
    versions: Vec<Resource>,
    /// The CRD as `generate` printed it, for this group.
    definition: String,
}

/// Applies the CRDs in every way that checks them, and waits until each of their versions is served.
fn install(cluster: &AnyCluster, kinds: &[Kind<'_>]) {
    let kubectl = cluster.kubectl("generated");
    let definitions: Vec<&str> = kinds.iter().map(|kind| kind.definition.as_str()).collect();
    let definitions = definitions.join("\n---\n");
    let with = |args: &[&str]| kubectl.run_with(&[args, &["--validate=strict", "-f", "-"]].concat(), &definitions);
    with(&["create", "--dry-run=server"]).accepted().not_warned_by_the_server();
    with(&["apply", "--server-side", "--dry-run=server"]).accepted().not_warned_by_the_server();
    with(&["apply"]).accepted().not_warned_by_the_server();
    with(&["apply"]).accepted().not_warned_by_the_server();
    for kind in kinds {
        for version in &kind.versions {
            let served = || cluster.client().get(&version.path("")).is_ok_and(|answer| answer.is_success());
            assert!(eventually(SETTLED, served), "`{}` was never served", version.path(""));
        }
    }
}

impl<'c> Kind<'c> {
    fn new(cluster: &'c AnyCluster, path: &Path) -> Self {
        let row = parse(&fs::read_to_string(path).unwrap());
        let inside = |name: &str| folder().join(name).to_str().unwrap().to_owned();
        let (sources, definition) =
            (inside("fleet"), inside(&format!("crds/{GROUP}_{}s.yaml", text(&row["kind"]).to_lowercase())));
        let generated = kube_unions(&["generate", "--go", &sources, &definition], "").accepted().stdout;

        let definition = generated.replace(GROUP, &cluster.new_group());
        let versions = Resource::versions_of(&parse(&definition));
        Self { cluster, row, versions, definition }
    }

    fn version(&self, name: &str) -> &Resource {
        self.versions.iter().find(|it| it.version == name).expect("a version of the CRD")
    }

    fn unions(&self) -> impl Iterator<Item = &Value> {
        list(&self.row["unions"])
    }

    /// Registers the webhook for this kind, and waits until each of its unions is enforced.
    fn enforce(&self) {
        if let Some(registration) = self.cluster.registration(&self.versions[0].group) {
            kind::apply(self.cluster.client(), &registration);
        }
        self.store_what_has_a_status();
        let first = |union: &Value| (union.clone(), union["rejected"][0]["object"].clone());
        let probes: Vec<(Value, Value)> = self.unions().map(first).collect();
        let mut last = None;
        let enforced = steadily(self.cluster.steady(), || {
            last = probes.iter().find_map(|(union, fields)| {
                let answer = self.send(union, fields);
                (answer.status != 422).then(|| format!("{}: {answer:?}", union["path"]))
            });
            last.is_none()
        });
        assert!(enforced, "the unions of {} were not enforced within {SETTLED:?}: {last:?}", self.name());
    }

    /// Fails the test if a field of `wanted` is missing. Defaults of the schema may be added.
    fn is_accepted(&self, union: &Value, fields: &Value) {
        let answer = self.send(union, fields);
        assert!(answer.is_success(), "{} {}: {fields}\n{answer:?}", self.name(), union["path"]);
        for (part, sent) in fields.as_object().unwrap() {
            let mut merged = answer.body[part].clone();
            json_patch::merge(&mut merged, sent);
            // The webhook sets a 2019 discriminator if one member is set; that is no loss.
            assert_eq!(merged, answer.body[part], "{} {}: {fields}", self.name(), union["path"]);
        }
    }

    fn is_rejected(&self, union: &Value, fields: &Value, wanted: &Value) {
        let answer = self.send(union, fields);
        assert_eq!(answer.status, 422, "{} {}: {fields}\n{answer:?}", self.name(), union["path"]);
        let wanted: Vec<String> = list(wanted).map(|cause| text(cause).to_owned()).collect();
        assert_eq!(causes(&answer.body), wanted, "{} {}: {fields}\n{answer:?}", self.name(), union["path"]);
    }

    /// Asks the API server to create an object of the union's version, or to write its status where it has one, under strict
    /// validation, and without storing it.
    fn send(&self, union: &Value, fields: &Value) -> Answer {
        let version = self.version(union["version"].as_str().unwrap_or("v1"));
        let query = "dryRun=All&fieldValidation=Strict";
        let client = self.cluster.client();
        if fields.get("status").is_none() {
            let object = version.object("sent", fields);
            return client.post(&format!("{}?{query}", version.path("")), &object).unwrap();
        }
        let stored = client.get(&version.path("stored")).unwrap();
        assert!(stored.is_success(), "{stored:?}");
        let mut object = version.object("stored", fields);
        object["metadata"]["resourceVersion"] = stored.body["metadata"]["resourceVersion"].clone();
        let path = format!("{}/status?{query}", version.path("stored"));
        client.send("PUT", &path, "application/json", object.to_string().as_bytes()).unwrap()
    }

    /// An object without a status yet, for the rows that write one.
    fn store_what_has_a_status(&self) {
        let mut objects = self.unions().flat_map(|union| list(&union["accepted"]));
        let Some(fields) = objects.find(|fields| fields.get("status").is_some()) else { return };
        let version = self.version("v1");
        let object = version.object("stored", &json!({"spec": fields["spec"]}));
        let answer = self.cluster.client().post(&version.path(""), &object).unwrap();
        assert!(answer.is_success(), "{answer:?}");
    }

    fn name(&self) -> &str {
        &self.versions[0].kind
    }
}

/// The files with rows.
fn rows() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder().join("rows")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn folder() -> PathBuf {
    fixtures::files::root().join("tests/cases/go")
}

/// The items of a list, none where there is no list.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
