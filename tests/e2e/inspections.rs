//! Objects that declare unions are judged when they are applied, by a webhook that registers itself.

use serde_json::Value;

use crate::registration::with_rights;
use crate::support::cluster::Cluster;
use crate::support::kind::{Kind, annotate, parse};
use crate::support::webhook::REVIEWS;
use fixtures::wait::{SETTLED, eventually};

const ANNOTATION: &str = "/metadata/annotations/kube-unions.dev~1unions";

/// A CRD whose annotation names a field that is not there.
fn with_a_typo(annotated: &str) -> Value {
    let mut crd = parse(annotated);
    let annotation = crd.pointer_mut(ANNOTATION).expect("the annotation");
    let text = annotation.as_str().unwrap().replace("\"canary\"", "\"cnaary\"");
    assert_ne!(annotation.as_str(), Some(&*text));
    *annotation = text.into();
    crd
}

/// Returns the webhook's counts of inspections and of all reviews.
fn counted(cluster: &Cluster) -> [u64; 2] {
    let sum = |name: &str| cluster.webhook.series(name).into_iter().map(|(_, count)| count).sum();
    ["kube_unions_inspections_total", REVIEWS].map(sum)
}

#[test]
fn a_typo_in_the_annotation_fails_at_apply_with_path_and_reason_and_passes_while_the_webhook_is_down() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &["--registration-delay=0s"]) else { return };
    let (good, plain, name) = {
        let (rollouts, sources) = (Kind::new(&cluster, "rollout"), Kind::new(&cluster, "source"));
        (annotate(&rollouts.authored()), sources.without_unions(), rollouts.definition_name())
    };
    let bad = with_a_typo(&good);
    let kubectl = cluster.control_plane.kubectl("inspections");
    let dry = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let client = cluster.control_plane.client();
    assert!(
        eventually(SETTLED, || client.post(dry, &bad).is_ok_and(|answer| answer.status == 422)),
        "it never was refused: {:?}\n{}",
        client.post(dry, &bad),
        cluster.webhook.log()
    );

    let refused = kubectl.apply(&bad.to_string());
    let words =
        ["metadata.annotations[kube-unions.dev/unions]: Invalid value: \"v1 spec.strategy.type\": ", "`cnaary`"];
    for words in words {
        assert!(refused.stderr.contains(words), "`{words}` is not in\n{}", refused.stderr);
    }
    refused.refused(&format!("The CustomResourceDefinition \"{name}\" is invalid:"));
    kubectl.run(&["get", "crd", &name]).refused("NotFound");

    // Another CRD costs no call.
    let before = counted(&cluster);
    kubectl.apply(&plain).accepted().warned(&[]);
    kubectl.run(&["label", "crd", parse(&plain)["metadata"]["name"].as_str().unwrap(), "a=b"]).accepted();
    assert_eq!(counted(&cluster), before, "the API server evaluates the match condition of the entry");
    kubectl.apply(&good).accepted().warned(&[]);
    assert!(counted(&cluster)[0] > before[0]);
    kubectl.apply(&bad.to_string()).refused("`cnaary`");

    // While the webhook is down, the declaration is stored, and its condition reports the fault later.
    cluster.webhook.stop();
    kubectl.apply(&bad.to_string()).accepted().warned(&[]);
    cluster.webhook.resume().unwrap();
    let faults = || cluster.webhook.metric("kube_unions_declaration_faults");
    assert!(eventually(SETTLED, || faults() > 0), "{}", cluster.webhook.log());
    // An old fault is in nobody's way, a new one is.
    kubectl.run(&["label", "crd", &name, "a=b"]).accepted().warned(&[]);
    let mut second = bad.clone();
    let annotation = second.pointer_mut(ANNOTATION).unwrap();
    let text = annotation.as_str().unwrap().replace("\"blueGreen\"", "\"bleuGreen\"");
    *annotation = text.into();
    kubectl.apply(&second.to_string()).refused("`bleuGreen`");
    kubectl.apply(&good).accepted().warned(&[]);
    assert!(eventually(SETTLED, || faults() == 0), "{}", cluster.webhook.log());
}
