//! Whether the unions that markers declare hold on the schema: the same checks that a cluster makes, each fault with the place in
//! the Go sources.

use super::MarkedUnion;
use super::finding::{FindingReason, GoFinding, Severity};
use super::types::Position;
use kube_unions_core::declaration::{self, Declared, DefinitionVersion};
use kube_unions_core::schema::{Place, Source};
use kube_unions_core::union::{Form, PlaceFault, PlaceFaultKind, compile};
use serde_json::Value;
use std::collections::BTreeMap;

/// Sorts out the unions that do not hold, one by one, so that none takes another with it. What the schema declared at their
/// places before is forgotten.
pub(super) fn holding(version: &mut DefinitionVersion, unions: Vec<MarkedUnion>) -> (Vec<MarkedUnion>, Vec<GoFinding>) {
    let (mut good, mut findings) = (Vec::new(), Vec::new());
    for union in &unions {
        version.put(&union.declared_at(), Vec::new());
    }
    let mut known = faults(version);
    for union in unions {
        let place = union.declared_at();
        let before = version.declared_at(&place).to_vec();
        let mut with = before.first().map(|declared| declared.value.clone());
        union.join(&mut with);
        let declared = with.map(|value| Declared::new(value, Source::Annotation));
        version.put(&place, declared.into_iter().collect());
        let after = faults(version);
        let new = after.iter().filter(|fault| !known.contains(fault));
        let new: Vec<&PlaceFault> = new.filter(|fault| fault.source == Source::Annotation).collect();
        let (errors, warnings): (Vec<&PlaceFault>, Vec<&PlaceFault>) =
            new.into_iter().partition(|fault| fault.severity() == declaration::Severity::Error);
        if errors.is_empty() {
            findings.extend(warnings.into_iter().map(|fault| finding(fault, &union, Severity::Warning)));
            known = after;
            good.push(union);
        } else {
            findings.extend(errors.into_iter().map(|fault| finding(fault, &union, Severity::Error)));
            version.put(&place, before);
        }
    }
    (good, findings)
}

fn faults(version: &DefinitionVersion) -> Vec<PlaceFault> {
    compile(&version.schema, version.status_subresource).faults
}

fn finding(fault: &PlaceFault, union: &MarkedUnion, severity: Severity) -> GoFinding {
    let message = match severity {
        Severity::Error => format!("{}; left out", fault.kind),
        Severity::Warning | Severity::Note => fault.kind.to_string(),
    };
    let position = member_of(&fault.kind).and_then(|name| union.members.get(name)).unwrap_or(&union.source);
    let position: Position = position.clone();
    GoFinding {
        position: Some(position),
        path: union.place.to_string(),
        severity,
        reason: FindingReason::Fault,
        message,
    }
}

/// The member that a fault is about.
fn member_of(kind: &PlaceFaultKind) -> Option<&str> {
    if let PlaceFaultKind::MemberRequired(name)
    | PlaceFaultKind::MemberHasDefault(name)
    | PlaceFaultKind::NoSuchMember(name)
    | PlaceFaultKind::FieldTaken(name) = kind
    {
        Some(name)
    } else {
        None
    }
}

/// What a version declares by all these unions: place → the value of the extension.
pub(super) fn declarations(unions: &[MarkedUnion]) -> BTreeMap<Place, Value> {
    let mut declarations: BTreeMap<Place, Option<Value>> = BTreeMap::new();
    for union in unions {
        union.join(declarations.entry(union.declared_at()).or_default());
    }
    declarations.into_iter().filter_map(|(place, value)| Some((place, value?))).collect()
}

impl MarkedUnion {
    /// Where the extension stands: on the object, or on the discriminator's property.
    pub fn declared_at(&self) -> Place {
        match (self.form, &self.discriminator) {
            (Form::Map, Some(name)) => self.place.property(name),
            (Form::Map, None) | (Form::List, _) => self.place.clone(),
        }
    }

    /// Adds it to what its place declares: lists have room for several.
    fn join(&self, value: &mut Option<Value>) {
        let own = self.value();
        match (self.form, value) {
            (Form::List, Some(Value::Array(unions))) => unions.push(own),
            (Form::List, value) => *value = Some(Value::Array(vec![own])),
            (Form::Map, value) => *value = Some(own),
        }
    }
}
