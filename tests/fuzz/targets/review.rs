//! Any bytes as a review of a kind with every sort of union.
#![no_main]

use kube_unions_core::admission::{Phase, Ratcheting, review};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::declaration::{Declaration, Definition};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let mut definition = Definition::from_json(include_str!("../corpus/definition/everything.json")).unwrap();
    let (declaration, faults) =
        Declaration::from_json(include_str!("../corpus/declaration/required-and-empty.json")).unwrap();
    assert!(definition.declare(&declaration) && faults.is_empty());
    let mut builder = Builder::new();
    builder.apply(definition);
    builder.build()
});

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    for phase in [Phase::Mutate, Phase::Validate, Phase::Both] {
        if let Ok(answer) = review(&CATALOG, phase, Ratcheting::Enabled, body) {
            answer.to_json();
        }
    }
});
