//! No write is lost: two replicas behind one address, `failurePolicy: Fail`, writes through the API server all the time, and
//! each thing that happens to a webhook in its life. The replicas register themselves.
//!
//! Each test prints and asserts how many writes were sent, were answered and failed.
//!
//! By itself a test lasts as long as what happens takes once. `KUBE_UNIONS_E2E_LOSS_SECONDS` (set by `make loss` and
//! `make test`) repeats what happens for so many seconds.

mod churn;
mod clocks;
mod installation;
mod registration;
pub(crate) mod rotation;
mod volume;

use std::env;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::enforcement_by_policies::{RIGHTS, kinds};
use crate::support::cluster::say;
use crate::support::kind::SAMPLES_GROUP;
use crate::support::writers::{Spread, Writers};
use churn::Churn;
use clocks::WrongClock;
use fixtures::wait::{SETTLED, eventually};
use installation::{DELAY, Installation, REPLICAS};

/// Changes of CRDs beside the writes: each sort of change ten times.
const CHANGES: u64 = 40;
/// The deadline of a switch between webhook and policies.
const SWITCHED: Duration = Duration::from_mins(2);
/// Longer than the API server needs to learn of a policy.
const HANDOVER: &str = "--handover-delay=5s";
/// The number of writes before and after an event, and during it if the event takes no time.
const AROUND: u64 = 500;
const BESIDE: u64 = 2_500;
/// The number of writes in flight when SIGTERM is sent in the middle of reviews.
const AT_ONCE: u64 = 8;

/// An event in the life of an installation whose Secrets are mounted. Each ends with the load on the first replica.
type Event = (&'static str, Spread, fn(&mut Installation, &Writers));
const EVENTS: [Event; 6] = [
    ("rolling restart", Spread::Even, |installation, _| {
        for replica in 0..REPLICAS {
            installation.restart(replica);
        }
    }),
    ("rotation of the certificate", Spread::Even, |installation, _| {
        for replica in 0..REPLICAS {
            installation.renew(replica);
            installation.reconnect(replica);
        }
    }),
    ("rotation of the authority", Spread::Even, |installation, _| installation.change_authority()),
    ("new authority and certificate in one swap", Spread::Even, |installation, writers| {
        installation.next_authority();
        // A kubelet updates a mounted Secret with delay: meanwhile the other replica has the earlier certificate.
        for replica in 0..REPLICAS {
            installation.replace(replica);
            installation.reconnect(replica);
            wait_for(writers, AROUND);
        }
    }),
    ("SIGTERM at load", Spread::Bursts, |installation, writers| {
        // In turns: the API server keeps its connections to the replica that stayed, so that replica has the load.
        for replica in 0..REPLICAS {
            assert!(eventually(SETTLED, || writers.underway() >= AT_ONCE), "writes come in bursts");
            installation.restart(replica);
        }
    }),
    ("restart of the API server", Spread::Even, |installation, writers| {
        writers.while_down(|| {
            installation.control_plane.stop_api_server();
            installation.control_plane.start_api_server();
        });
    }),
];

#[test]
fn no_event_in_the_life_of_an_installation_loses_a_write() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    for (what, spread, event) in EVENTS {
        let writers = installation.writers(spread);
        while_written(&writers, || event(&mut installation, &writers));
        none_lost(what, writers);
    }
}

#[test]
fn a_deleted_secret_that_replicas_agree_on_loses_no_write() {
    // This takes more than a minute: the configurations hold a new CA that long before it signs.
    let Some(mut installation) = Installation::self_managed(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    while_written(&writers, || {
        let start = Instant::now();
        installation.rotate();
        say(&format!("another CA was agreed on and served after {:.0?}", start.elapsed()));
        // The API server keeps its connections; on new ones it sees the new certificate.
        for replica in 0..REPLICAS {
            installation.restart(replica);
        }
    });
    none_lost("rotation of the authority that replicas agree on", writers);
}

#[test]
fn replicas_with_wrong_clocks_lose_no_write_beside_right_ones_and_before_them() {
    let Some(mut installation) = Installation::self_managed(DELAY) else { return };
    let clock = WrongClock::new();
    let before = installation.agreed_authorities();
    let writers = installation.writers(Spread::Even);
    wait_for(&writers, AROUND);
    let wrong = installation.with_wrong_clocks(&clock);
    wait_for(&writers, BESIDE);
    none_lost("replicas with wrong clocks beside right ones", writers);
    assert_eq!(installation.agreed_authorities(), before, "they replace nothing");
    drop(wrong);

    let (_wrong, made) = installation.begin_with_wrong_clocks(&clock);
    let writers = installation.writers(Spread::Even);
    wait_for(&writers, BESIDE);
    none_lost("replicas with wrong clocks before right ones", writers);
    assert_eq!(installation.agreed_authorities(), made, "the right ones serve what is there");
}

#[test]
fn crds_that_change_ten_times_a_second_lose_no_write() {
    let Some(installation) = Installation::new(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    let churn = Churn::start(installation.control_plane.new_client());
    while_written(&writers, || {
        let goal = churn.changes() + CHANGES;
        wait_for(&writers, BESIDE);
        assert!(eventually(SETTLED, || churn.changes() >= goal), "CRDs change all the time");
    });
    churn.finish();
    let client = installation.control_plane.client();
    let followed = || installation.registration.groups() == Some(churn::groups_with_unions(client));
    assert!(eventually(SETTLED, followed), "the registration follows:\n{}", installation.log());
    none_lost("CRDs that change", writers);
}

#[test]
fn a_switch_to_policies_and_back_loses_no_write_and_lets_none_through() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    installation.control_plane.kubectl("loss").apply(RIGHTS).accepted();
    let client = installation.control_plane.new_client();
    let is_left_to_policies = |installation: &Installation| {
        let groups = installation.registration.groups();
        groups.is_some_and(|groups| groups.is_empty()) && kinds(&client).contains("samples.kube-unions.dev/Backup")
    };
    let writers = installation.writers(Spread::Even);
    while_written(&writers, || {
        let start = Instant::now();
        installation.switch(&["--enforcement=policies", HANDOVER]);
        let handed_over = eventually(SWITCHED, || is_left_to_policies(&installation));
        assert!(handed_over, "policies have the kind:\n{}", installation.log());
        say(&format!("the policies had the kind alone after {:.0?}", start.elapsed()));
        wait_for(&writers, BESIDE);

        let start = Instant::now();
        installation.switch(&["--enforcement=webhook", "--remove-policies", HANDOVER]);
        let handed_back = eventually(SWITCHED, || kinds(&client).is_empty());
        assert!(handed_back, "the webhook has the kind:\n{}", installation.log());
        say(&format!("the webhook had the kind alone after {:.0?}", start.elapsed()));
        wait_for(&writers, AROUND);
    });
    none_lost("switch from the webhook to policies and back", writers);
}

/// SIGKILL, like a crash or a node that is gone, leaves no time to drain. Two sorts of writes are then lost, and no others:
///
/// - those whose review was underway in the replica, and
/// - those whose review was sent to its address until the load balancer took it out of rotation.
///
/// No webhook can avoid them: only the API server could ask the other replica, and it asks once. The losses are bounded by
/// the rate of the writes, the share of one replica, and the time that the cluster needs to notice.
#[test]
fn a_replica_that_is_killed_loses_what_was_sent_to_it_until_the_balancer_noticed_and_nothing_else() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    let mut turns = (0..REPLICAS).cycle();
    let start = Instant::now();
    loop {
        let replica = turns.next().expect("there are replicas");
        let writers = installation.writers(Spread::Even);
        wait_for(&writers, AROUND);
        let (killed, noticed) = installation.kill(replica);
        // The other replica runs alone for a while.
        wait_for(&writers, AROUND);
        installation.start(replica);
        wait_for(&writers, AROUND);
        let count = writers.finish();
        let after = noticed.duration_since(killed);
        say(&format!("SIGKILL, out of rotation after {after:.1?}: {count}"));
        assert_eq!(count.sent, count.answered + count.failed, "every write ends");
        for loss in &count.losses {
            assert!(
                loss.ended >= killed && loss.sent <= noticed,
                "a loss before SIGKILL, or once it was noticed: {loss:?}"
            );
            assert!(is_of_a_replica_that_is_gone(&loss.story), "a loss of another kind: {loss:?}");
        }
        if start.elapsed() >= least_time() {
            break;
        }
    }
    let writers = installation.writers(Spread::Even);
    wait_for(&writers, BESIDE);
    none_lost("SIGKILL, and another replica in its place", writers);
}

/// An outage that nobody notices: writes that touch no union go on, and one that touches a union fails.
#[test]
fn while_no_replica_answers_no_write_is_lost_that_touches_no_union() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    let client = installation.control_plane.new_client();
    let fails = || {
        let new = json!({"apiVersion": format!("{SAMPLES_GROUP}/v1"), "kind": "Backup", "metadata": {"name": "new"}, "spec": {}});
        let answer =
            client.post(&format!("{}?dryRun=All", installation::collection()), &new).expect("the API server answers");
        assert!(answer.status == 500 && answer.body.to_string().contains("failed calling webhook"), "{answer:?}");
    };
    let writers = installation.untouched_writers();
    while_written(&writers, || {
        for replica in 0..REPLICAS {
            installation.kill(replica);
        }
        fails();
        wait_for(&writers, BESIDE);
        for replica in 0..REPLICAS {
            installation.start(replica);
        }
    });
    none_lost("updates that touch no union, all replicas dead", writers);

    let writers = installation.untouched_writers();
    while_written(&writers, || {
        installation.pause();
        fails();
        wait_for(&writers, BESIDE);
        installation.go_on();
    });
    none_lost("updates that touch no union, all replicas stopped", writers);

    let writers = installation.writers(Spread::Even);
    wait_for(&writers, AROUND);
    none_lost("replicas that are back", writers);
}

/// True if the API server had a connection to the replica that broke off, or got none.
pub(crate) fn is_of_a_replica_that_is_gone(story: &str) -> bool {
    let broken =
        ["EOF", "connection reset by peer", "connection refused", "broken pipe", "server closed idle connection"];
    story.contains("failed calling webhook") && broken.iter().any(|words| story.contains(words))
}

#[test]
fn what_is_lost_is_counted() {
    let Some(mut installation) = Installation::new("0s") else { return };
    let writers = installation.writers(Spread::Even);
    // Its address is still in rotation when it is gone: the delay exists for this.
    assert!(!installation.stop(0), "the balancer has noticed before a replica without a delay was gone");
    assert!(eventually(SETTLED, || writers.failed() > 0), "a write is lost without a delay");
    installation.start(0);
    let count = writers.finish();
    say(&format!("no delay: {count}"));
    assert_eq!(count.sent, count.answered + count.failed);
    assert!(count.losses.iter().all(|loss| loss.story.contains("failed calling webhook")), "{:?}", count.losses);

    let writers = installation.writers(Spread::Even);
    installation.registration.remove();
    assert!(eventually(SETTLED, || writers.failed() > 0), "a write that got past the webhook is lost");
    let count = writers.finish();
    say(&format!("no webhook: {count}"));
    // One of the two configurations goes first; either way an answer differs from the expected one.
    assert!(count.losses.iter().all(|loss| loss.story.contains(" instead of ")), "{:?}", count.losses);
    assert!(!count.losses.iter().any(|loss| loss.story.contains("failed calling webhook")), "{:?}", count.losses);
}

/// Repeats `what` while objects are written, at least once and for the time that was asked for.
fn while_written(writers: &Writers, mut what: impl FnMut()) {
    let least = least_time();
    loop {
        wait_for(writers, AROUND);
        what();
        wait_for(writers, AROUND);
        if writers.elapsed() >= least {
            break;
        }
    }
}

/// Waits for this many more writes.
pub(crate) fn wait_for(writers: &Writers, more: u64) {
    let goal = writers.sent() + more;
    while writers.sent() < goal {
        let sent = writers.sent();
        assert!(eventually(SETTLED, || writers.sent() > sent), "there are writes all the time");
    }
}

/// Stops the writers, prints their count, and fails unless every write was answered.
fn none_lost(what: &str, writers: Writers) {
    let count = writers.finish();
    say(&format!("{what}: {count}"));
    assert_eq!(count.failed, 0, "{what}: writes were lost\n{count}");
    assert_eq!(count.sent, count.answered, "{what}: every write is answered");
}

/// Returns the time for which an event is repeated.
fn least_time() -> Duration {
    let seconds = env::var("KUBE_UNIONS_E2E_LOSS_SECONDS").ok();
    let seconds = seconds.map(|seconds| seconds.parse().expect("KUBE_UNIONS_E2E_LOSS_SECONDS is a number"));
    Duration::from_secs(seconds.unwrap_or_default())
}
