//! Judges one object, and makes its findings.

use super::finding::{AuditRule, ObjectFinding, title};
use super::tally::Tally;
use kube_unions_api::ListedObject;
use kube_unions_core::admission::StoredObject;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Capped, Violation};
use kube_unions_manifests::counts::count;

/// An object that was judged.
#[derive(Debug)]
pub struct JudgedObject<'o> {
    kind: &'o GroupVersionKind,
    namespace: &'o str,
    name: &'o str,
    stored: StoredObject,
}

impl<'o> JudgedObject<'o> {
    /// Judges an object of a kind. Returns the problem if its text cannot be judged.
    pub fn judge(entry: &'o CatalogEntry, object: ListedObject<'o>) -> Result<Self, String> {
        let ListedObject { namespace, name, text } = object;
        let kind = entry.gvk();
        match StoredObject::judge(entry, text) {
            Ok(stored) => Ok(Self { kind, namespace, name, stored }),
            Err(error) => {
                let slash = if namespace.is_empty() { "" } else { "/" };
                Err(format!("{} `{namespace}{slash}{name}`: cannot be judged: {error}", title(kind)))
            }
        }
    }

    /// Returns all violations, whatever their declarations do about them.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        let stored = &self.stored;
        [stored.violations(), stored.warnings(), stored.observed()].into_iter().flat_map(Capped::kept)
    }

    /// Forgets the violations that do not fit, and the changes of fields that do not.
    pub fn retain(&mut self, violation: impl Fn(&Violation) -> bool, field: impl Fn(&FieldPath) -> bool) {
        self.stored.retain(violation, |change| field(&change.path));
    }

    /// Returns the violations that make the object invalid, as many as are kept.
    pub fn denied(&self) -> &[Violation] {
        self.stored.violations().kept()
    }

    /// Returns a finding about a field that the API server refuses.
    pub fn refused(&self, path: FieldPath, message: String) -> ObjectFinding<'o> {
        let Self { kind, namespace, name, .. } = *self;
        ObjectFinding { rule: AuditRule::REFUSED, kind, namespace, name, path, message, repaired: false }
    }

    /// Counts the object.
    pub fn count(&self, tally: &mut Tally) {
        let stored = &self.stored;
        tally.invalid += u64::from(!stored.violations().is_empty());
        tally.mended_by_next_write += u64::from(stored.is_repaired());
        tally.would_warn += u64::from(!stored.warnings().is_empty());
        tally.would_audit += u64::from(!stored.observed().is_empty());
        tally.would_change += u64::from(stored.changes().next().is_some());
    }

    /// Returns the findings: violations, then what is tolerated, then changes.
    pub fn findings(&self) -> Vec<ObjectFinding<'o>> {
        let Self { kind, namespace, name, ref stored } = *self;
        let repaired = stored.is_repaired();
        let finding = |rule, path: &FieldPath, message, repaired| {
            let path = path.clone();
            ObjectFinding { rule, kind, namespace, name, path, message, repaired }
        };
        let mut findings = Vec::new();
        for it in stored.violations().kept() {
            findings.push(finding(AuditRule::of_violation(it), &it.path, it.message(), repaired));
        }
        let root = FieldPath::root();
        if stored.violations().left_out() > 0 {
            let message = left_out(stored.violations().left_out());
            findings.push(finding(AuditRule::MORE_VIOLATIONS, &root, message, repaired));
        }
        for (rule, tolerated) in
            [(AuditRule::WOULD_WARN, stored.warnings()), (AuditRule::WOULD_AUDIT, stored.observed())]
        {
            findings.extend(tolerated.kept().iter().map(|it| finding(rule, &it.path, it.message(), false)));
            if tolerated.left_out() > 0 {
                findings.push(finding(rule, &root, left_out(tolerated.left_out()), false));
            }
        }
        let changes = stored.changes();
        findings.extend(changes.map(|it| finding(AuditRule::WOULD_CHANGE, &it.path, it.reason.to_string(), false)));
        findings
    }
}

fn left_out(number: usize) -> String {
    format!("and {} that are not listed", count(number, "more violation"))
}
