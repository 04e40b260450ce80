//! Any text as a `UnionDeclaration`, of a kind with every sort of field.
#![no_main]

use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::{Declaration, Definition};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok((declaration, faults)) = Declaration::from_json(text) else { return };
    let mut definition = Definition::from_json(include_str!("../corpus/definition/everything.json")).unwrap();
    definition.declare(&declaration);
    let mut builder = Builder::new();
    builder.report(declaration.name(), faults);
    builder.apply(definition);
    let catalog = builder.build();
    assert_eq!(catalog.entries().is_empty(), catalog.union_count() == 0);
});
