//! Derives the unions of one version of a kind: the way through every other module.

use super::check;
use super::finding::GoFinding;
use super::kinds::{self, KindVersion};
use super::marked_union::MarkedUnion;
use super::packages::{Packages, TypeId};
use super::position::Position;
use super::walk::KindWalk;
use kube_unions_core::declaration::DefinitionVersion;
use kube_unions_core::schema::Place;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The unions of one version of a kind.
#[derive(Debug, Default)]
pub struct Derivation {
    /// Position of the kind's struct; `None` if there is none.
    pub source: Option<Position>,
    /// Unions that the schema allows.
    pub unions: Vec<MarkedUnion>,
    /// Omissions and warnings, sorted.
    pub findings: Vec<GoFinding>,
    /// Declared types that the kind uses.
    pub(super) reached: BTreeSet<TypeId>,
}

impl Packages {
    /// Derives the unions of one version of a kind.
    ///
    /// `schema` is the JSON of the version's schema: its validation rules are evidence of what a union requires. At the places of
    /// these unions, the markers replace the declarations that `version` already has.
    pub fn unions(&self, kind: KindVersion<'_>, mut version: DefinitionVersion, schema: &Value) -> Derivation {
        let id = match kinds::find(self, kind) {
            Ok(Some(id)) => id,
            Ok(None) => return Derivation::default(),
            Err(finding) => return Derivation { findings: vec![finding], ..Derivation::default() },
        };
        let KindWalk { unions, mut findings, reached, .. } = KindWalk::of(self, id, &version.schema, schema);
        let (unions, faults) = check::allowed(&mut version, unions);
        findings.extend(faults);
        findings.sort();
        findings.dedup();
        let source = self.declaration(id).map(|declaration| declaration.at.clone());
        Derivation { source, unions, findings, reached }
    }
}

impl Derivation {
    /// Returns the values of `x-kubernetes-unions` that declare the unions, by schema node.
    pub fn declarations(&self) -> BTreeMap<Place, Value> {
        let mut declarations: BTreeMap<Place, Option<Value>> = BTreeMap::new();
        for union in &self.unions {
            union.add_to(declarations.entry(union.declared_at()).or_default());
        }
        declarations.into_iter().filter_map(|(place, value)| Some((place, value?))).collect()
    }
}
