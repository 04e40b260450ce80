//! Declarations that only observe: a controller that writes several members of a union keeps them, and the audit log and a metric
//! tell of it.

use serde_json::{Value, json};

use crate::builtin::wait_for_verdict;
use crate::observability::said;
use crate::support::cluster::{Cluster, some_or_all};
use crate::support::http::Answer;
use crate::support::kind::Kind;
use fixtures::reviews::declaration;
use fixtures::wait::{SETTLED, eventually};

/// Returns the number of writes of the controller under each declaration.
fn rounds() -> usize {
    some_or_all(6, 40)
}

const DECLARATIONS: &str = "/apis/kube-unions.dev/v1alpha1/uniondeclarations";

/// A kind that is declared by a `UnionDeclaration`, and its object.
struct Observed<'k> {
    kind: &'k Kind<'k>,
    declaration: String,
}

impl Observed<'_> {
    /// Declares the union with this treatment, and waits until it is accepted.
    fn declare(&self, treatment: &Value) {
        let union = json!({"path": "spec", "fieldsToDiscriminateBy": {"git": "Git", "bucket": "Bucket", "oci": "OCI"}});
        let mut spec = json!({"unions": [union]});
        json_patch::merge(&mut spec, treatment);
        let declaration = declaration(&self.declaration, self.kind.group(), "Source", &spec);
        let kubectl = self.kind.kubectl();
        kubectl.run_with(&["apply", "--server-side", "-f", "-"], &declaration.to_string()).accepted();
        let verdict = wait_for_verdict(self.kind.client(), &self.declaration);
        assert_eq!(verdict.status, "True", "{verdict:?}");
    }

    /// Waits until a write of both members that is not stored gets these warnings.
    fn wait_until_warned(&self, warnings: &[&str]) {
        let body = json!({"spec": both(rounds())}).to_string();
        let path = format!("{}?dryRun=All", self.kind.path("x"));
        let is_warned = || {
            let answer = self.kind.client().send("PATCH", &path, "application/merge-patch+json", body.as_bytes());
            answer.is_ok_and(|answer| answer.is_success() && answer.warnings == warnings)
        };
        assert!(eventually(SETTLED, is_warned), "never warned of {warnings:?}");
    }

    /// The user sets `git` alone. Then the controller writes `git` and `bucket`: in turns by an update, and by server-side apply.
    fn round(&self, round: usize) -> Answer {
        let (client, path) = (self.kind.client(), self.kind.path("x"));
        let update = |object: &Value| {
            let answer = client.send("PUT", &path, "application/json", object.to_string().as_bytes()).unwrap();
            assert!(answer.is_success(), "{answer:?}");
            self.kind.wait_until_cached(&answer.body);
            answer
        };
        let mut object = self.kind.stored("x");
        object["spec"] = json!({"git": both(round)["git"]});
        let by_user = update(&object);
        assert!(by_user.warnings.is_empty() && by_user.body["spec"] == object["spec"], "{by_user:?}");
        if round.is_multiple_of(2) {
            return update(&with_spec(&by_user.body, &both(round)));
        }
        let applied = self.kind.object("x", &both(round)).to_string();
        let path = format!("{path}?fieldManager=controller&force=true");
        let answer = client.send("PATCH", &path, "application/apply-patch+yaml", applied.as_bytes()).unwrap();
        assert!(answer.is_success(), "{answer:?}");
        self.kind.wait_until_cached(&answer.body);
        answer
    }
}

/// The spec that the controller writes.
fn both(round: usize) -> Value {
    json!({"git": {"url": format!("https://example.com/{round}.git")}, "bucket": {"name": format!("mirror-{round}")}})
}

fn with_spec(object: &Value, spec: &Value) -> Value {
    let mut object = object.clone();
    object["spec"] = spec.clone();
    object
}

#[test]
fn a_controller_that_writes_two_members_loses_nothing_while_they_are_only_observed() {
    let Some(cluster) = Cluster::shared() else { return };
    let log = cluster.control_plane.audit_log();
    let kind = Kind::new(cluster, "source");
    kind.apply_definition_without_unions();
    kind.send_to_webhook();
    let observed = Observed { kind: &kind, declaration: format!("observe.{}", kind.group()) };
    kind.apply("x", &json!({"git": {"url": "https://example.com/a.git"}})).accepted();

    // With normalisation the controller loses a member in every update. An apply sets both, so nothing is cleared.
    observed.declare(&json!({"validationActions": ["Warn"]}));
    let cleared = ["spec.git: cleared because `bucket` was set"];
    let kept = [
        "spec: Invalid value: the applied manifest sets `bucket` and `git`; keep one; let through because its declaration only warns",
    ];
    observed.wait_until_warned(&cleared);
    for round in 0..rounds() {
        let (warnings, stored) = if round.is_multiple_of(2) {
            (cleared, json!({"bucket": both(round)["bucket"]}))
        } else {
            (kept, both(round))
        };
        assert_eq!(observed.round(round).warnings, warnings, "round {round}");
        assert_eq!(kind.spec("x"), stored, "round {round}");
    }

    observed.declare(&json!({"normalization": "Disabled", "validationActions": ["Audit"]}));
    let series = format!("kube_unions_audited_violations_total{{group=\"{}\",kind=\"Source\"}}", kind.group());
    let is_counted = || cluster.webhook.ops().get("/metrics").is_ok_and(|answer| answer.text().contains(&series));
    assert!(eventually(SETTLED, is_counted), "no series `{series}`");
    for round in 0..rounds() {
        assert_eq!(observed.round(round).warnings, [""; 0], "round {round}");
        assert_eq!(kind.spec("x"), both(round), "round {round}");
    }
    assert_eq!(cluster.webhook.metric(&series), i64::try_from(rounds()).unwrap());
    let annotated = || -> Vec<_> {
        log.annotations(&kind, "x").into_iter().filter(|all| all.contains_key("validate/audited")).collect()
    };
    let audited = ("validate/audited", "spec.bucket: FieldValueForbidden");
    assert!(eventually(SETTLED, || annotated().len() >= rounds()), "{:?}", annotated());
    // The manifest of an apply is at fault, and not a member.
    let audited_apply = ("validate/audited", "spec: FieldValueInvalid");
    let expected = (0..rounds()).map(|round| said([if round.is_multiple_of(2) { audited } else { audited_apply }]));
    assert_eq!(annotated(), expected.collect::<Vec<_>>());

    observed.declare(&json!({"normalization": "Disabled", "validationActions": ["Warn", "Audit"]}));
    let warning = "spec.bucket: Forbidden: at most one of `bucket`, `git` may be set; let through because its declaration only warns";
    kind.merge("x", &json!({"spec": {"bucket": null}})).accepted();
    kind.wait_until_cached(&kind.stored("x"));
    observed.wait_until_warned(&[warning]);
    assert_eq!(observed.round(0).warnings, [warning]);
    let warned = ("validate/warned", "spec.bucket: FieldValueForbidden (its declaration only warns)");
    assert!(eventually(SETTLED, || annotated().last() == Some(&said([audited, warned]))), "{:?}", annotated().last());

    let text = log.text();
    assert!(!text.contains("mirror-"), "{:?}", text.lines().find(|line| line.contains("mirror-")));
}

#[test]
fn the_api_server_refuses_actions_that_exclude_each_other() {
    let Some(cluster) = Cluster::shared() else { return };
    let group = cluster.new_group();
    let declare = |actions: Value| {
        let union = json!({"path": "spec", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}});
        let spec = json!({"validationActions": actions, "unions": [union]});
        let declaration = declaration(&format!("refused.{group}"), &group, "Thing", &spec);
        cluster.client().post(&format!("{DECLARATIONS}?dryRun=All"), &declaration).unwrap()
    };
    for (actions, says) in [
        (json!(["Deny", "Warn"]), "must not contain both Deny and Warn"),
        (json!(["Audit", "Warn", "Deny"]), "must not contain both Deny and Warn"),
        (json!(["Audit", "Audit"]), "Duplicate value"),
        (json!(["Log"]), "supported values: \"Deny\", \"Warn\", \"Audit\""),
        (json!([]), "should have at least 1 items"),
    ] {
        let answer = declare(actions.clone());
        assert_eq!(answer.status, 422, "{actions}: {answer:?}");
        assert!(answer.body["message"].as_str().unwrap().contains(says), "{actions}: {answer:?}");
    }
    for actions in [["Deny"].as_slice(), &["Warn"], &["Audit"], &["Warn", "Audit"], &["Audit", "Deny"]] {
        let answer = declare(json!(actions));
        assert!(answer.is_success(), "{actions:?}: {answer:?}");
    }
}
