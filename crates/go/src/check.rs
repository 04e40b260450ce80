//! Checks the derived unions against the schema with the compiler that the cluster uses, and gives each fault its position in the
//! Go sources.

use super::finding::GoFinding;
use super::finding_kind::FindingKind;
use super::marked_union::MarkedUnion;
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
        let at = |fault: &PlaceFault| union.position_of(fault.member.as_deref()).clone();
        if errors.is_empty() {
            let finding =
                |fault: &PlaceFault| GoFinding::new(&at(fault), FindingKind::SurprisingUnion, fault.message.clone());
            findings.extend(warnings.into_iter().map(|fault| finding(fault).about(&union.place)));
            known = after;
            allowed.push(union);
        } else {
            let finding =
                |fault: &PlaceFault| GoFinding::left_out(&at(fault), FindingKind::RefusedUnion, &fault.message);
            findings.extend(errors.into_iter().map(|fault| finding(fault).about(&union.place)));
            version.put(&place, before);
        }
    }
    (allowed, findings)
}

fn faults(version: &DefinitionVersion) -> Vec<PlaceFault> {
    compile(&version.schema, version.status_subresource).faults
}
