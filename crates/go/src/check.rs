//! Checks the derived unions against the schema with the compiler that the cluster uses, and gives each fault its position in the
//! Go sources.

use super::finding::GoFinding;
use super::finding_kind::FindingKind;
use super::marked_union::MarkedUnion;
use super::severity::FindingSeverity;
use kube_unions_core::declaration::{self, Declared, DefinitionVersion};
use kube_unions_core::schema::Source;
use kube_unions_core::union::{PlaceFault, compile};

/// Returns the unions that the schema allows and the faults of the others.
///
/// Unions are added one by one, so that a faulty one does not affect the rest. Declarations that the schema already has at
/// their places are dropped.
pub(super) fn allowed(version: &mut DefinitionVersion, unions: Vec<MarkedUnion>) -> (Vec<MarkedUnion>, Vec<GoFinding>) {
    let (mut allowed, mut findings) = (Vec::new(), Vec::new());
    for union in &unions {
        version.put(&union.declared_at(), Vec::new());
    }
    let mut known = faults(version);
    for union in unions {
        let place = union.declared_at();
        let before = version.declared_at(&place).to_vec();
        let mut with = before.first().map(|declared| declared.value.clone());
        union.add_to(&mut with);
        version.put(&place, with.into_iter().map(|value| Declared::new(value, Source::Annotation)).collect());
        let after = faults(version);
        let new = after.iter().filter(|fault| !known.contains(fault) && fault.source == Source::Annotation);
        let (errors, warnings): (Vec<&PlaceFault>, Vec<&PlaceFault>) =
            new.partition(|fault| fault.severity() == declaration::Severity::Error);
        if errors.is_empty() {
            findings.extend(warnings.into_iter().map(|fault| finding(fault, &union, FindingSeverity::Warning)));
            known = after;
            allowed.push(union);
        } else {
            findings.extend(errors.into_iter().map(|fault| finding(fault, &union, FindingSeverity::Error)));
            version.put(&place, before);
        }
    }
    (allowed, findings)
}

fn faults(version: &DefinitionVersion) -> Vec<PlaceFault> {
    compile(&version.schema, version.status_subresource).faults
}

fn finding(fault: &PlaceFault, union: &MarkedUnion, severity: FindingSeverity) -> GoFinding {
    let kind =
        if severity == FindingSeverity::Error { FindingKind::RefusedUnion } else { FindingKind::SurprisingUnion };
    let left_out = if severity == FindingSeverity::Error { "; left out" } else { "" };
    GoFinding {
        position: union.position_of(fault.member.as_deref()).clone(),
        path: union.place.to_string(),
        severity,
        kind,
        message: format!("{}{left_out}", fault.message),
    }
}
