//! Discovery: lists the resources of an API server, and finds one by name.

use super::refusal::LiveError;
use kube::Client;
use kube::core::discovery::v2::APIResourceDiscovery;
use kube_unions_core::catalog::KindNames;
use std::fmt;

/// A resource at one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredResource {
    /// The API group, empty for the core group.
    pub group: Box<str>,
    /// The version.
    pub version: Box<str>,
    /// The kind of its objects.
    pub kind: Box<str>,
    /// The name in paths.
    pub plural: Box<str>,
    /// The name for one object; may be empty.
    pub singular: Box<str>,
    /// Other names.
    pub short_names: Vec<String>,
    /// True if its objects are in namespaces.
    pub namespaced: bool,
}

impl fmt::Display for DiscoveredResource {
    /// Writes `widgets.v1.example.com`, which kubectl accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}.{}.{}`", self.plural, self.version, self.group)
    }
}

impl DiscoveredResource {
    /// Returns `widget.example.com/name`, as kubectl prints it.
    pub fn title(&self, name: &str) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}/{name}", self.kind.to_lowercase(), self.group)
    }

    fn names(&self) -> KindNames<'_> {
        KindNames {
            group: &self.group,
            version: &self.version,
            kind: &self.kind,
            plural: &self.plural,
            singular: &self.singular,
            short_names: &self.short_names,
        }
    }

    /// Returns true if the request names the version.
    pub fn is_versioned_in(&self, asked: &str) -> bool {
        self.names().is_versioned_in(asked)
    }
}

/// Finds a resource by name; among several, the first in the server's order, which has the preferred group and version.
pub fn find<'r>(all: &'r [DiscoveredResource], asked: &str) -> Option<&'r DiscoveredResource> {
    let names: Vec<KindNames<'_>> = all.iter().map(DiscoveredResource::names).collect();
    all.get(KindNames::find(&names, asked)?)
}

/// Returns the error for a name that no resource has.
pub fn no_resource(all: &[DiscoveredResource], asked: &str) -> LiveError {
    let names: Vec<KindNames<'_>> = all.iter().map(DiscoveredResource::names).collect();
    LiveError::NoResource { asked: asked.into(), near: KindNames::suggest(&names, asked).map(Into::into) }
}

/// Returns the resource that has a name: plural, singular, short name or kind, alone or with `.group` or `.version.group`.
pub async fn resource(client: &Client, asked: &str) -> Result<DiscoveredResource, LiveError> {
    let all = resources(client).await?;
    find(&all, asked).cloned().ok_or_else(|| no_resource(&all, asked))
}

/// Returns all resources, in the server's order, which has preferred versions first.
pub async fn resources(client: &Client) -> Result<Vec<DiscoveredResource>, LiveError> {
    let core = client.list_core_api_versions_aggregated().await?;
    let groups = client.list_api_groups_aggregated().await?;
    let mut all = Vec::new();
    for group in core.items.iter().chain(&groups.items) {
        let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
        for version in &group.versions {
            let of = version.version.as_deref().unwrap_or_default();
            all.extend(version.resources.iter().filter_map(|resource| aggregated(name, of, resource)));
        }
    }
    Ok(all)
}

fn aggregated(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<DiscoveredResource> {
    Some(DiscoveredResource {
        group: group.into(),
        version: version.into(),
        kind: resource.response_kind.as_ref()?.kind.as_deref()?.into(),
        plural: resource.resource.as_deref()?.into(),
        singular: resource.singular_resource.as_deref().unwrap_or_default().into(),
        short_names: resource.short_names.clone(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
    })
}

#[cfg(test)]
mod tests;
