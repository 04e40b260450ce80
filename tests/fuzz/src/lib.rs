//! Code that the targets share.

use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::declaration::{Declaration, Definition};
use std::sync::LazyLock;

/// A kind with every sort of union.
pub static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let mut definition = Definition::from_json(include_str!("../corpus/definition/everything.json")).unwrap();
    let (declaration, faults) =
        Declaration::from_json(include_str!("../corpus/declaration/required-and-empty.json")).unwrap();
    assert!(definition.declare(&declaration) && faults.is_empty());
    let mut builder = Builder::new();
    builder.apply(definition);
    builder.build()
});
