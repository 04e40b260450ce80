//! The simulated API server tells the truth: the same random requests to it and to a real one have the same answers.
//!
//! `KUBE_UNIONS_PLAYER_SEED` and `KUBE_UNIONS_PLAYER_REQUESTS` select other requests and more of them, as `make player` does.
//! [`differences`] lists where the two differ, and why.

mod differences;
mod normal;
mod player;
mod requests;
mod webhook;

use std::env;

use crate::support::cluster::say;
use crate::support::control_plane::ControlPlane;
use player::Player;

const REQUESTS: u64 = 600;

#[test]
fn random_requests_have_the_same_answers() {
    if crate::support::cluster::is_left_out() {
        return;
    }
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("KUBE_UNIONS_PLAYER_SEED").unwrap_or(1);
    let requests = number("KUBE_UNIONS_PLAYER_REQUESTS").unwrap_or(REQUESTS);
    // An API server forgets old versions every five minutes otherwise, and the simulated one never does.
    let keeps_versions = ["--etcd-compaction-interval=0s".to_owned()];
    let control_plane = ControlPlane::start_bare(&keeps_versions).unwrap_or_else(|message| panic!("{message}"));
    let mut player = Player::new(control_plane.client().clone(), seed);
    player.play(requests);
    say(&player.summary());
    let found = player.found();
    assert!(found.is_empty(), "seed {seed}: {} kinds of differences\n{}", found.len(), found.join("\n"));
}
