//! The way from a CRD to enforced unions, and from a change of the CRD to its effect.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::cluster::{AnyCluster, Cluster};
use crate::support::kind::{Kind, annotate, parse};
use crate::support::load::{Load, Outcome};
use fixtures::wait::{SETTLED, eventually};

const CANARY_MISSING: &str = "spec.strategy.canary: Required value: must be specified when `type` is \"Canary\"";
const ROLLING_UPDATE_FORBIDDEN: &str =
    "spec.strategy.rollingUpdate: Forbidden: may only be specified when `type` is \"RollingUpdate\"";

#[test]
fn kubectl_refuses_a_crd_that_still_has_the_extension_in_its_schema() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = Kind::new(cluster, "rollout");
    rollouts.kubectl().apply(&rollouts.authored()).refused(
        "unknown field \"spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.strategy.properties.type.\
         x-kubernetes-unions\"",
    );
}

#[test]
fn a_crd_applied_without_validation_is_enforced_through_its_last_applied_configuration() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = Kind::new(cluster, "rollout");
    rollouts.kubectl().run_with(&["apply", "--validate=false", "-f", "-"], &rollouts.authored()).accepted();
    rollouts.wait_until_served();
    rollouts.enforce();

    let crd = definition(&rollouts);
    assert!(!crd["spec"].to_string().contains("x-kubernetes-unions"), "the API server drops the extension: {crd}");
    assert_eq!(crd["metadata"]["annotations"]["kube-unions.dev/unions"], Value::Null);
    rollouts
        .apply("x", &json!({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}))
        .rejected(&rollouts.invalid("x", &[ROLLING_UPDATE_FORBIDDEN]));
}

#[test]
fn a_crd_changed_or_deleted_and_created_again_is_enforced_for_good_under_a_stream_of_requests() {
    let Some(cluster) = Cluster::shared() else { return };
    let rollouts = cluster.install("rollout");
    let stream = Stream::start(&rollouts);
    stream.load.wait_for_a_round(3);

    rollouts.kubectl().apply(&with_optional_canary(&rollouts)).accepted();
    stream.load.wait_for(SETTLED, "the new declaration", |outcome| {
        outcome.object == Stream::NEWLY_VALID && outcome.status() == 201
    });
    stream.load.wait_for_a_round(3);
    assert_changed_for_good(&stream.load.finish());

    // Taking the annotation away ends the enforcement.
    let invalid = rollouts.object("x", &json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}}));
    rollouts.kubectl().apply(&rollouts.without_unions()).accepted();
    assert!(eventually(SETTLED, || rollouts.post_dry(&invalid).unwrap().status == 201));
    rollouts.apply_definition();
    assert!(eventually(SETTLED, || rollouts.post_dry(&invalid).unwrap().status == 422));

    let stream = Stream::start(&rollouts);
    stream.load.wait_for_a_round(3);
    rollouts.delete_definition();
    stream.load.wait_for(SETTLED, "the kind to be gone", |outcome| outcome.status() == 404);
    // The new CRD has another declaration: a plan that survived the deletion would show.
    rollouts.kubectl().apply(&with_optional_canary(&rollouts)).accepted();
    stream
        .load
        .wait_for(SETTLED, "the kind to be back", |outcome| outcome.object == Stream::VALID && outcome.status() == 201);
    let served = Instant::now();
    stream
        .load
        .wait_for(SETTLED, "enforcement", |outcome| outcome.object == Stream::INVALID && outcome.status() == 422);
    stream.load.wait_for_a_round(3);

    let outcomes = stream.load.finish();
    for outcome in &outcomes {
        // 404: there is no such kind; 403, or 405 of an older API server: its CRD is being deleted.
        let expected = match outcome.object {
            Stream::VALID => [201, 404, 403, 405].as_slice(),
            _ => [201, 404, 403, 405, 422].as_slice(),
        };
        assert!(expected.contains(&outcome.status()), "{outcome:?}");
        match (outcome.status(), outcome.object) {
            (422, Stream::NEWLY_VALID) => assert_rejected(outcome, CANARY_MISSING),
            (422, _) => assert_rejected(outcome, ROLLING_UPDATE_FORBIDDEN),
            _ => {}
        }
    }
    let first_gone =
        outcomes.iter().position(|outcome| [404, 403, 405].contains(&outcome.status())).expect("the kind was gone");
    let enforced = |outcome: &&Outcome| outcome.object != Stream::VALID;
    assert!(
        outcomes[..first_gone].iter().filter(enforced).all(|outcome| outcome.status() == 422),
        "enforced to the end"
    );
    let is_enforced = |outcome: &&Outcome| outcome.object == Stream::INVALID && outcome.status() == 422;
    let since = outcomes.iter().filter(|outcome| outcome.sent >= served).skip_while(|outcome| !is_enforced(outcome));
    for outcome in since {
        assert_eq!(outcome.status(), if outcome.object == Stream::INVALID { 422 } else { 201 }, "{outcome:?}");
    }
}

/// The changed annotation decides from one request on, and the old one before.
fn assert_changed_for_good(outcomes: &[Outcome]) {
    for outcome in outcomes {
        match outcome.object {
            Stream::NEWLY_VALID if outcome.status() == 201 => {}
            Stream::NEWLY_VALID => assert_rejected(outcome, CANARY_MISSING),
            Stream::INVALID => assert_rejected(outcome, ROLLING_UPDATE_FORBIDDEN),
            _ => assert_eq!(outcome.status(), 201, "{outcome:?}"),
        }
    }
    let decided: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.object == Stream::NEWLY_VALID).collect();
    let old = decided.iter().take_while(|outcome| outcome.status() == 422).count();
    assert!(old > 0, "the stream began under the old declaration");
    assert!(
        decided[old..].iter().all(|outcome| outcome.status() == 201),
        "once it counts, the old one never does again"
    );
}

/// Three objects sent in turn. The declaration in force decides the answer to each.
struct Stream {
    load: Load,
}

impl Stream {
    /// Rejected by the sample's declaration, accepted by the changed one.
    const NEWLY_VALID: usize = 0;
    /// Rejected by both.
    const INVALID: usize = 1;
    /// Accepted by both.
    const VALID: usize = 2;

    fn start(rollouts: &Kind) -> Self {
        let objects = [
            json!({"strategy": {"type": "Canary"}}),
            json!({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}),
            json!({"strategy": {"type": "Canary", "canary": {"weight": 10}}}),
        ];
        let objects = objects.iter().map(|spec| rollouts.object("stream", spec)).collect();
        Self { load: Load::start(rollouts.client(), &rollouts.path(""), objects) }
    }
}

/// The sample's CRD, where `canary` need not be set when `type` is Canary.
fn with_optional_canary(rollouts: &Kind) -> String {
    let mut crd = parse(&rollouts.authored());
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let union =
        &mut schema["properties"]["spec"]["properties"]["strategy"]["properties"]["type"]["x-kubernetes-unions"];
    union["fieldMembers"]["Canary"]["optional"] = json!(true);
    annotate(&crd.to_string())
}

fn assert_rejected(outcome: &Outcome, cause: &str) {
    assert_eq!(outcome.status(), 422, "{outcome:?}");
    assert_eq!(outcome.causes(), [cause]);
}

fn definition(kind: &Kind) -> Value {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", kind.definition_name());
    kind.client().get(&path).expect("the API server answers").body
}
