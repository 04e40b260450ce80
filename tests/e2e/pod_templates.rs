//! Pod templates of custom resources, and places that the schema does not describe, on a real API server.
//!
//! `pod_templates/kinds.yaml` has kinds whose schemas describe more or less of their pod template. `pod_templates/rows.yaml` says
//! what each way to switch a member stores before and after `podTemplates` is in force.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::{condition, wait_for_verdict};
use crate::support::cluster::{AnyCluster, say};
use crate::support::kind::{Kind, documents, parse};
use crate::support::resource::written_out;
use crate::switches::Way;
use fixtures::crds::{crd, version};
use fixtures::reviews::declaration;
use fixtures::wait::{SETTLED, for_some, steadily};

/// A switch of a member.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    union: String,
    /// The spec of the pod at first.
    old: Value,
    /// The spec of the pod after the switch.
    new: Value,
    /// The JSON patch that switches.
    patch: Value,
    /// The warning about the member that is cleared.
    warning: String,
    /// The outcomes on each kind.
    outcomes: BTreeMap<String, Outcomes>,
}

/// A letter for the JSON patch, and one for each [`Way`]: cleared, switched or both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcomes {
    before: String,
    after: String,
}

/// Installs a kind with this schema of `spec` and without unions, and registers the webhook for its group.
fn install(cluster: &'static AnyCluster, name: &str, spec: &Value) -> Kind<'static> {
    let schema = json!({"type": "object", "properties": {"spec": written_out(spec)}});
    let definition = crd(&cluster.new_group(), name, &[version("v1", &schema)]);
    let kind = Kind::of_definition(cluster, &definition);
    kind.apply_definition_text(&definition.to_string());
    kind.send_to_webhook();
    kind
}

impl Kind<'_> {
    /// Declares the pod template, and waits until every replica switches a member by the patch of a row.
    fn declare_template(&self, row: &Row) {
        let probe = self.object("probe", &json!({"template": {"spec": row.old}}));
        assert!(self.client().post(&self.path(""), &probe).unwrap().is_success());
        let name = format!("template.{}", self.group());
        let spec = json!({"podTemplates": ["spec.template"]});
        self.kubectl().apply(&declaration(&name, self.group(), self.name(), &spec).to_string()).accepted();
        let verdict = wait_for_verdict(self.client(), &name);
        assert_eq!(verdict.status, "True", "{verdict:?}");
        let in_force = for_some(SETTLED, || condition(self.client(), &name, "InForce")).unwrap();
        assert_eq!(in_force.status, "True", "{in_force:?}");
        let (url, patch) = (format!("{}?dryRun=All", self.path("probe")), row.patch.to_string());
        let switches = || {
            let answer = self.client().send("PATCH", &url, "application/json-patch+json", patch.as_bytes()).unwrap();
            answer.warnings == [row.warning.clone()]
        };
        assert!(steadily(self.cluster().steady(), switches), "{}: the declaration has no effect", self.name());
    }

    /// Switches a member of new objects by the JSON patch and in every way, and returns the letters of the outcomes.
    fn switch_in_every_way(&self, row: &Row, phase: &str) -> String {
        let [old, new] = [&row.old, &row.new].map(|pod| json!({"template": {"spec": pod}}));
        let merge = json!({"spec": new});
        let ways = [(Way::Patch, &row.patch)].into_iter().chain(Way::ALL.map(|way| (way, &merge)));
        let letter = |(number, (way, patch)): (usize, (Way, &Value))| {
            let name = format!("{phase}-{number}");
            let [first, second] = [&old, &new].map(|spec| self.object(&name, spec));
            let answer = way.switch(self.client(), self.api(), [&first, &second], patch);
            assert!(answer.is_success(), "{} {way:?}: {answer:?}", row.union);
            match (self.spec(&name) == new, &*answer.warnings) {
                (true, []) => 'S',
                (true, [warning]) if *warning == row.warning => 'C',
                (false, []) => 'B',
                (_, warnings) => panic!("{} {way:?}: {warnings:?}, stored {}", row.union, self.spec(&name)),
            }
        };
        ways.enumerate().map(letter).collect()
    }
}

#[test]
fn a_pod_template_of_a_custom_resource_keeps_one_member_whatever_its_schema_describes() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rows: Vec<Row> = serde_json::from_value(parse(include_str!("pod_templates/rows.yaml"))).unwrap();
    let (mut before, mut after) = (String::new(), String::new());
    for fixture in documents(include_str!("pod_templates/kinds.yaml")) {
        let name = fixture["kind"].as_str().unwrap();
        let kind = install(cluster, name, &fixture["spec"]);
        let all = |phase: &str| -> Vec<String> {
            rows.iter()
                .enumerate()
                .map(|(number, row)| kind.switch_in_every_way(row, &format!("{phase}-{number}")))
                .collect()
        };
        let without = all("before");
        kind.declare_template(&rows[0]);
        let with = all("after");
        for (row, (without, with)) in rows.iter().zip(without.iter().zip(&with)) {
            let wanted = &row.outcomes[name];
            assert_eq!((without, with), (&wanted.before, &wanted.after), "{name}: {}", row.union);
            before += without;
            after += with;
        }
    }
    let works = |outcomes: &str| outcomes.chars().filter(|outcome| *outcome != 'B').count();
    say(&format!("{} switches: {} work before, {} after", before.len(), works(&before), works(&after)));
    assert!(works(&before) < works(&after) && works(&after) == after.len());
}
