//! Any text as a CRD, twice: read, compiled, and compiled again over what was good.
#![no_main]

use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::Definition;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut builder = Builder::new();
    for _ in 0..2 {
        if let Ok(definition) = Definition::from_json(text) {
            builder.apply(definition);
        }
    }
    let catalog = builder.build();
    assert_eq!(catalog.entries().is_empty(), catalog.union_count() == 0);
});
