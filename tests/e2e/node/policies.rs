//! Native policies instead of the webhook.

use serde_json::{Value, json};

use super::{AROUND, CONFIGURATIONS, Release, SETTLED, no_write_is_lost};
use crate::chart::RELEASE;
use crate::enforcement_by_policies::kinds;
use crate::loss::wait_for;
use fixtures::wait::eventually;

#[test]
fn policies_hand_over_take_over_enforce_without_pods_and_leave_nothing_behind_and_no_write_is_lost() {
    let values = json!({"enforcement": "policies", "extraArgs": ["--handover-delay=5s"]});
    let Some(release) = Release::installed(&values) else { return };
    let kind = release.enforced();
    let client = release.cluster.client();
    let of_the_kind = format!("{}/Backup", kind.group());
    let is_called = || {
        CONFIGURATIONS.iter().any(|path| client.get(path).unwrap().body["webhooks"].to_string().contains(kind.group()))
    };
    let by_policies_alone = || kinds(client).contains(&of_the_kind) && !is_called();
    assert!(eventually(SETTLED, by_policies_alone), "the kind has policies: {:?}", kinds(client));
    let writers = release.writers(&kind);

    release.upgrade(&json!({"enforcement": "webhook", "enforcementByPolicies": {"remove": true}}));
    assert!(eventually(SETTLED, || is_called() && kinds(client).is_empty()), "the webhook has the kind alone");
    release.leads_to(&release.two_pods());
    wait_for(&writers, AROUND);
    release.upgrade(&json!({"enforcement": "policies", "enforcementByPolicies": {"remove": false}}));
    assert!(eventually(SETTLED, by_policies_alone), "the policies have the kind alone");
    wait_for(&writers, AROUND);

    let scale = |replicas: &str| {
        let args = ["--namespace", RELEASE, "scale", "deployment", RELEASE, &format!("--replicas={replicas}")];
        release.kubectl.run(&args).accepted();
    };
    scale("0");
    assert!(eventually(SETTLED, || release.all_pods().is_empty()), "{:#?}", release.all_pods());
    wait_for(&writers, AROUND);
    scale("2");
    release.two_pods();
    no_write_is_lost("policies, the webhook, policies, no pods, and pods again", writers);

    release.run(&["uninstall", RELEASE, "--wait"], &Value::Null).accepted();
    assert!(eventually(SETTLED, || kinds(client).is_empty()), "{:?}", kinds(client));
    let two = kind.object("unchecked", &json!({"destination": {"s3": {"bucket": "b"}, "gcs": {"bucket": "b"}}}));
    let accepted = || kind.post_dry(&two).is_ok_and(|answer| answer.status == 201);
    assert!(eventually(SETTLED, accepted), "{:?}", kind.post_dry(&two));
}
