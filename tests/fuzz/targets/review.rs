//! Any bytes as a review of a kind with every sort of union.
#![no_main]

use kube_unions_core::admission::{Phase, Ratcheting, review};
use kube_unions_fuzz::CATALOG;

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    for phase in [Phase::Mutate, Phase::Validate, Phase::Both] {
        if let Ok(answer) = review(&CATALOG, phase, Ratcheting::Enabled, body) {
            answer.to_json();
        }
    }
});
