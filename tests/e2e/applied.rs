//! Applying one manifest again changes nothing: the matrix of ways, enforcements, forms, presets and situations on a real API
//! server.
//!
//! `applied/*.yaml` has the situations and their answers ([`rows`]). A cell leads to its situation, applies its manifest three
//! times, and compares the answers and the generations ([`player`]). [`law`] asks the same of random manifests.

mod cells;
mod evidence;
mod helm;
mod law;
mod managers;
mod place;
mod player;
mod rows;
mod server;

use std::collections::BTreeMap;

use self::cells::{Cell, cells};
use self::player::play;
use self::rows::{Answer, Enforcement};
use self::server::Server;
use crate::cluster::say;

#[test]
fn every_cell_of_the_matrix_holds_with_the_webhook() {
    let Some(server) = Server::with_webhook() else { return };
    hold(server, &[Enforcement::Webhook]);
}

#[test]
fn every_cell_of_the_matrix_holds_with_policies_and_with_rules_alone() {
    let Some(server) = Server::with_policies() else { return };
    hold(server, &[Enforcement::Policies, Enforcement::Rules]);
}

#[test]
fn no_cell_expects_a_manifest_that_flips_or_that_is_refused_late_but_by_policies_and_client_side_apply() {
    let breaks_the_law = |cell: &&Cell| {
        cell.way.tells_its_manifest() && matches!(cell.expected, Answer::Flips | Answer::Late | Answer::Settles)
    };
    let breaking: Vec<_> = cells().iter().filter(breaks_the_law).map(|cell| (cell.enforcement, cell.way)).collect();
    assert!(!breaking.is_empty());
    let only = (Enforcement::Policies, rows::Way::ClientSide);
    assert!(breaking.iter().all(|cell| *cell == only), "{breaking:?}");
}

/// Plays the cells of these enforcements. Fails unless each has its expected answer.
fn hold(server: &Server, enforcements: &[Enforcement]) {
    let cells: Vec<Cell> = cells().into_iter().filter(|cell| enforcements.contains(&cell.enforcement)).collect();
    let played = play(server, &cells);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for cell in &played {
        let answer = cell.answer.as_ref().map_or("another".to_owned(), |answer| format!("{answer:?}"));
        *counts.entry(answer).or_default() += 1;
    }
    say(&format!("{} cells: {counts:?}", played.len()));
    let differences: Vec<String> = played
        .iter()
        .filter_map(|played| {
            let Cell { enforcement, way, name, about, .. } = played.cell;
            Some(format!("{enforcement:?} {way:?} {about} ({name}):\n    {}", played.difference.as_ref()?))
        })
        .collect();
    assert!(
        differences.is_empty(),
        "{} of {} cells differ:\n{}",
        differences.len(),
        played.len(),
        differences.join("\n")
    );
}
