//! Nothing is lost: two replicas behind one address, `failurePolicy: Fail`, at least [`FLOOR`] writes a second through
//! the API server, and each thing that happens to a webhook in its life. The replicas register themselves.
//!
//! Each test prints `sent N, answered N, failed N, rate N/s`. By itself it lasts as long as what happens takes once,
//! and where other tests have a part of the machine its rate is only said. `KUBE_UNIONS_E2E_LOSS_SECONDS` (set by
//! `make loss` and `make test`) is for when they have it to themselves: what happens is repeated for so many seconds,
//! and the rate is held to. What takes more than a minute by itself is left out where less is given.

mod churn;
mod installation;
mod registration;
mod rotation;
mod volume;

use std::env;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use crate::cluster;
use crate::wait::eventually;
use crate::writers::{Count, Spread, Writers};
use churn::Churn;
use installation::{DELAY, Installation, REPLICAS};
use registration::Registration;

/// Writes a second below which a run shows nothing.
const FLOOR: f64 = 200.0;
/// Ten changes of CRDs a second, as near as a clock comes to it.
const CHANGES: f64 = 9.5;
/// For what happens in the background; far more than it takes.
const SETTLED: Duration = Duration::from_secs(30);
/// How many writes there are before and after what happens, and beside it where that takes no time of its own.
const AROUND: u64 = 500;
const BESIDE: u64 = 2_500;
/// The same once what was wrong is put right.
const AFTER: u64 = 1_500;
/// What registration may take to put right what others have changed.
const PROMISED: Duration = Duration::from_secs(10);
/// How long the configurations hold a new CA before it signs. What waits for that is for runs that are longer.
const SETTLING: Duration = Duration::from_mins(1);
/// What others do to the configurations.
type Drift = fn(&Registration);
const DRIFTS: [(&str, Drift); 3] = [
    ("another CA in caBundle", Registration::mistrust),
    ("rules edited", Registration::misdirect),
    ("both configurations deleted", Registration::remove),
];
/// How many of the writers wait for an answer when SIGTERM is sent in the middle of reviews.
const AT_ONCE: u64 = 8;

#[test]
fn a_rolling_restart_of_both_replicas_loses_no_write() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    while_written(&writers, || {
        for replica in 0..REPLICAS {
            installation.restart(replica);
        }
    });
    none_lost("rolling restart", writers);
}

#[test]
fn a_new_certificate_in_a_mounted_secret_loses_no_write() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    while_written(&writers, || {
        for replica in 0..REPLICAS {
            installation.renew(replica);
            installation.reconnect(replica);
        }
    });
    none_lost("rotation of the certificate", writers);
}

#[test]
fn a_new_authority_in_a_mounted_secret_loses_no_write() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    while_written(&writers, || installation.change_authority());
    none_lost("rotation of the authority", writers);
}

#[test]
fn a_new_authority_and_what_it_has_signed_in_one_swap_lose_no_write() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    while_written(&writers, || {
        installation.next_authority();
        // A kubelet updates what it has mounted when it gets to it: meanwhile the other replica has the certificate before.
        for replica in 0..REPLICAS {
            installation.replace(replica);
            installation.reconnect(replica);
            wait_for(&writers, AROUND);
        }
    });
    none_lost("new authority and certificate in one swap", writers);
}

#[test]
fn a_deleted_secret_that_replicas_agree_on_loses_no_write() {
    if time_of_its_own().is_none_or(|time| time < SETTLING) {
        cluster::say(&format!("left out, since no {SETTLING:?} were given to what takes longer by itself"));
        return;
    }
    let Some(mut installation) = Installation::self_managed(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    while_written(&writers, || {
        let start = Instant::now();
        installation.rotate();
        say(&format!("another CA was agreed on and served after {:.0?}", start.elapsed()));
        // The API server keeps the connections that it has; with new ones it sees the new certificate.
        for replica in 0..REPLICAS {
            installation.restart(replica);
        }
    });
    none_lost("rotation of the authority that replicas agree on", writers);
}

#[test]
fn what_others_change_of_the_registration_is_put_right_and_then_no_write_is_lost() {
    let Some(installation) = Installation::new(DELAY) else { return };
    let (least, start) = (time_of_its_own().unwrap_or_default(), Instant::now());
    loop {
        for (what, change) in DRIFTS {
            drifts(&installation, what, change);
        }
        if start.elapsed() >= least {
            break;
        }
    }
}

/// Changes what is registered while it is written. What is lost until that is put right is said, and later nothing is.
fn drifts(installation: &Installation, what: &str, change: Drift) {
    let registered = installation.registered();
    let writers = installation.writers(Spread::Even);
    wait_for(&writers, AROUND);
    let start = Instant::now();
    change(&installation.registration);
    // Else the API server may not have noticed.
    assert!(eventually(SETTLED, || writers.failed() > 0), "{what}: that is felt");
    installation.put_right(&registered);
    let took = start.elapsed();
    installation.registration.wait_until_in_force();
    let mut count = writers.finish();
    count.stories.truncate(1);
    print(&format!("{what}, until put right after {took:.1?}"), &count);
    assert!(took < PROMISED, "{what}: put right after {took:?}");

    let writers = installation.writers(Spread::Even);
    wait_for(&writers, AFTER);
    none_lost(&format!("{what}, and put right"), writers);
}

#[test]
fn sigterm_in_the_middle_of_reviews_loses_no_write() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    let writers = installation.writers(Spread::Bursts);
    // In turns: the API server keeps its connections to the one that was there meanwhile, so that one has the load.
    let mut turns = (0..REPLICAS).cycle();
    while_written(&writers, || {
        for replica in turns.by_ref().take(3) {
            assert!(eventually(SETTLED, || writers.underway() >= AT_ONCE), "writes come in bursts");
            installation.restart(replica);
        }
    });
    none_lost("SIGTERM at load", writers);
}

#[test]
fn a_restart_of_the_api_server_loses_no_write_but_while_it_is_down() {
    let Some(mut installation) = Installation::new(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    while_written(&writers, || {
        writers.while_down(|| {
            installation.control_plane.stop_api_server();
            installation.control_plane.start_api_server();
        });
    });
    none_lost("restart of the API server", writers);
}

#[test]
fn crds_that_change_ten_times_a_second_lose_no_write() {
    let Some(installation) = Installation::new(DELAY) else { return };
    let writers = installation.writers(Spread::Even);
    let churn = Churn::start(installation.control_plane.new_client());
    while_written(&writers, || wait_for(&writers, BESIDE));
    let changes = churn.finish();
    let client = installation.control_plane.client();
    let followed = || installation.registration.groups() == Some(churn::groups_with_unions(client));
    assert!(eventually(SETTLED, followed), "the registration follows:\n{}", installation.log());
    none_lost(&format!("{changes:.1} changes of CRDs a second"), writers);
    at_least(CHANGES, changes, "changes of CRDs");
}

#[test]
fn what_is_lost_is_counted() {
    let Some(mut installation) = Installation::new("0s") else { return };
    let writers = installation.writers(Spread::Even);
    // Its address is still in rotation when it is gone: that is what the delay is for.
    assert!(!installation.stop(0), "the balancer has noticed before a replica without a delay was gone");
    assert!(eventually(SETTLED, || writers.failed() > 0), "a write is lost without a delay");
    installation.start(0);
    let count = writers.finish();
    print("no delay", &count);
    assert_eq!(count.sent, count.answered + count.failed);
    assert!(count.stories.iter().all(|story| story.contains("failed calling webhook")), "{:?}", count.stories);

    let writers = installation.writers(Spread::Even);
    installation.registration.remove();
    assert!(eventually(SETTLED, || writers.failed() > 0), "a write that got past the webhook is lost");
    let count = writers.finish();
    print("no webhook", &count);
    // Of the two configurations one goes first; either way an answer was not as it must be.
    assert!(count.stories.iter().all(|story| story.contains(" instead of ")), "{:?}", count.stories);
    assert!(!count.stories.iter().any(|story| story.contains("failed calling webhook")), "{:?}", count.stories);
}

/// Does `what` while it is written, again and again for as long as is asked for, once at least.
fn while_written(writers: &Writers, mut what: impl FnMut()) {
    let least = time_of_its_own().unwrap_or_default();
    loop {
        wait_for(writers, AROUND);
        what();
        wait_for(writers, AROUND);
        if writers.elapsed() >= least {
            break;
        }
    }
}

/// Waits for so many more writes.
fn wait_for(writers: &Writers, more: u64) {
    let goal = writers.sent() + more;
    while writers.sent() < goal {
        let sent = writers.sent();
        assert!(eventually(SETTLED, || writers.sent() > sent), "there are writes all the time");
    }
}

/// Ends the writes, says what became of them, and fails unless all were answered and there were enough of them.
fn none_lost(what: &str, writers: Writers) {
    let count = writers.finish();
    print(what, &count);
    assert_eq!(count.failed, 0, "{what}: writes were lost\n{count}");
    assert_eq!(count.sent, count.answered, "{what}: every write is answered");
    at_least(FLOOR, count.rate(), "writes");
}

/// Fails where there was less than this a second although the machine was there for nothing else; else says so.
fn at_least(floor: f64, rate: f64, of_what: &str) {
    if rate < floor {
        let invalid =
            format!("no valid run: {rate:.1} {of_what} a second are less than {floor}; the machine is busy\n");
        assert!(time_of_its_own().is_none(), "{invalid}");
        let _ = io::stderr().write_all(invalid.as_bytes());
    }
}

/// How long what happens is to be repeated, if these tests have the machine to themselves.
fn time_of_its_own() -> Option<Duration> {
    let seconds = env::var("KUBE_UNIONS_E2E_LOSS_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().expect("KUBE_UNIONS_E2E_LOSS_SECONDS is a number")))
}

/// Past the capture of the test harness.
fn say(what: &str) {
    let _ = io::stderr().write_all(format!("{what}\n").as_bytes());
}

fn print(what: &str, count: &Count) {
    say(&format!("{what}: {count}"));
}
