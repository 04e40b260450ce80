//! Applying one manifest again changes nothing: the matrix of ways, enforcements, forms, presets and situations on a real API
//! server.
//!
//! `applied/*.yaml` has the situations and their answers ([`rows`]). A cell leads to its situation, applies its manifest three
//! times, and compares the answers and the generations ([`player`]). [`law`] asks the same of random manifests.

mod cells;
mod evidence;
pub(crate) mod helm;
mod law;
mod managers;
mod place;
mod player;
mod previewed;
mod rows;
mod server;
mod versions;

use std::collections::BTreeMap;

use serde_json::Value;

use self::cells::{Cell, cells};
use self::player::{Case, Played, play};
use self::rows::{Answer, Enforcement};
use self::server::Server;
use crate::support::cluster::say;

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
        cell.case.way.tells_its_manifest() && matches!(cell.expected, Answer::Flips | Answer::Late | Answer::Settles)
    };
    let breaking: Vec<_> =
        cells().iter().filter(breaks_the_law).map(|cell| (cell.enforcement, cell.case.way)).collect();
    assert!(!breaking.is_empty());
    let only = (Enforcement::Policies, rows::Way::ClientSide);
    assert!(breaking.iter().all(|cell| *cell == only), "{breaking:?}");
}

/// Plays the cells of these enforcements. Fails unless each has its expected answer.
fn hold(server: &Server, enforcements: &[Enforcement]) {
    let cells: Vec<Cell> = cells().into_iter().filter(|cell| enforcements.contains(&cell.enforcement)).collect();
    let cases: Vec<&Case> = cells.iter().map(|cell| &cell.case).collect();
    let played = play(server, &cases, || {});
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for played in &played {
        let answer = played.answer.as_ref().map_or("another".to_owned(), |answer| format!("{answer:?}"));
        *counts.entry(answer).or_default() += 1;
    }
    say(&format!("{} cells: {counts:?}", cells.len()));
    let difference = |(cell, played): (&Cell, &Played)| {
        let Cell { enforcement, about, case: Case { way, name, .. }, .. } = cell;
        Some(format!("{enforcement:?} {way:?} {about} ({name}):\n    {}", difference(cell, played)?))
    };
    let differences: Vec<String> = cells.iter().zip(&played).filter_map(difference).collect();
    let (count, all) = (differences.len(), cells.len());
    assert!(differences.is_empty(), "{count} of {all} cells differ:\n{}", differences.join("\n"));
}

/// Returns the difference between a cell and its answers.
fn difference(cell: &Cell, played: &Played) -> Option<String> {
    let said = played.rounds.iter().find_map(|round| round.refusal.as_deref()).unwrap_or_default();
    let last = played.rounds.last().expect("a round").state.as_ref();
    let content = last.and_then(|state| state.content.as_ref());
    match &played.answer {
        Err(description) => Some(description.clone()),
        Ok(answer) if *answer != cell.expected => {
            Some(format!("{answer:?}, not {:?}: {content:?} {said}", cell.expected))
        }
        Ok(Answer::Kept | Answer::Stored | Answer::Settles | Answer::Late) if content != Some(&cell.then) => {
            Some(format!("{} instead of {}", content.unwrap_or(&Value::Null), cell.then))
        }
        Ok(Answer::Refused | Answer::Late) if cell.says.as_ref().is_some_and(|words| !said.contains(words)) => {
            Some(format!("said {said}"))
        }
        Ok(_) => None,
    }
}
