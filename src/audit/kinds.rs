//! Chooses the kinds of a cluster to audit, each at one version.

use super::finding::title;
use kube_unions_api::{DiscoveredResource, LiveError};
use kube_unions_command::output;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::is_exempt;
use kube_unions_manifests::counts::count;

/// A kind to audit, at one version.
#[derive(Debug)]
pub struct AuditedKind<'c> {
    pub entry: &'c CatalogEntry,
    pub resource: &'c DiscoveredResource,
}

impl<'c> AuditedKind<'c> {
    /// Returns a resource as a kind to audit, `None` if its version has no unions.
    pub fn of(catalog: &'c Catalog, resource: &'c DiscoveredResource) -> Option<Self> {
        let entry = catalog.lookup(&resource.group, &resource.version, &resource.kind)?;
        // Objects of a kind may be written to other resources than the one that stores them.
        let stored = entry.resource().is_none_or(|stored| stored.plural == resource.plural);
        stored.then_some(Self { entry, resource })
    }

    /// Returns every kind with unions, at the first version of the server's order that has any.
    pub fn all(catalog: &'c Catalog, resources: &'c [DiscoveredResource]) -> Vec<Self> {
        let mut kinds: Vec<Self> = Vec::new();
        for resource in resources.iter().filter(|it| !is_exempt(&it.group, Some(&it.plural), &it.kind)) {
            let known = kinds.iter().any(|kind| is_same_resource(kind.resource, resource));
            kinds.extend(Self::of(catalog, resource).filter(|_| !known));
        }
        kinds
    }

    /// Returns the problem of a kind whose list failed after some objects.
    pub fn listing_problem(&self, objects: u64, error: &LiveError) -> String {
        let after = if objects > 0 { format!(" after {}", count(objects, "object")) } else { String::new() };
        format!("{}: cannot be listed{after}: {}", title(self.entry.gvk()), with_causes(error))
    }

    /// Prints a note if the version is another than the one that the server prefers.
    pub fn note_version(&self, resources: &[DiscoveredResource]) {
        let preferred = resources.iter().find(|it| is_same_resource(it, self.resource));
        if let Some(preferred) = preferred.filter(|it| it.version != self.resource.version) {
            let (title, version) = (title(self.entry.gvk()), &preferred.version);
            output::hint(format_args!("{title} is audited, since {version}, which the server prefers, has no unions"));
        }
    }
}

/// Returns true for two versions of one resource.
pub fn is_same_resource(one: &DiscoveredResource, other: &DiscoveredResource) -> bool {
    (&one.group, &one.plural) == (&other.group, &other.plural)
}

/// Prints a warning if declarations have errors.
pub fn warn_of_faults(catalog: &Catalog, where_to_look: &str) {
    let errors = catalog.errors();
    if errors > 0 {
        let faults = count(errors, "fault");
        output::warn(format_args!("{faults} in declarations of unions; {where_to_look}"));
    }
}
