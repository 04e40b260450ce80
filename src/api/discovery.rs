//! Discovery: lists the resources of an API server, and finds one by name.

use super::refusal::LiveError;
use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};
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

    #[cfg(test)]
    pub(super) fn named(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase().into(),
            short_names: Vec::new(),
            namespaced: false,
        }
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
    let (core, groups) =
        (client.list_core_api_versions_aggregated().await?, client.list_api_groups_aggregated().await?);
    // API servers before 1.26 answer with lists of other kinds, which have no items.
    if core.items.is_empty() || groups.items.is_empty() {
        return one_by_one(client).await;
    }
    Ok(core.items.iter().chain(&groups.items).flat_map(of_group).collect())
}

fn of_group(group: &APIGroupDiscovery) -> impl Iterator<Item = DiscoveredResource> + '_ {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
    group.versions.iter().flat_map(move |version| {
        let of = version.version.as_deref().unwrap_or_default();
        version.resources.iter().filter_map(move |resource| aggregated(name, of, resource))
    })
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

/// Returns all resources of a server without aggregated discovery.
async fn one_by_one(client: &Client) -> Result<Vec<DiscoveredResource>, LiveError> {
    let mut lists = Vec::new();
    for version in client.list_core_api_versions().await?.versions {
        lists.push(client.list_core_api_resources(&version).await?);
    }
    for group in client.list_api_groups().await?.groups {
        let preferred = group.preferred_version.map(|version| version.group_version);
        let mut versions: Vec<String> = group.versions.into_iter().map(|version| version.group_version).collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        for version in versions {
            match client.list_api_group_resources(&version).await {
                Ok(list) => lists.push(list),
                // An aggregated API whose server is down does not fail the others.
                Err(kube::Error::Api(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut all = Vec::new();
    for list in lists {
        let (group, version) = list.group_version.split_once('/').unwrap_or(("", &list.group_version));
        for resource in list.resources.into_iter().filter(|resource| !resource.name.contains('/')) {
            all.push(DiscoveredResource {
                group: group.into(),
                version: version.into(),
                kind: resource.kind.into(),
                plural: resource.name.into(),
                singular: resource.singular_name.into(),
                short_names: resource.short_names.unwrap_or_default(),
                namespaced: resource.namespaced,
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_found_by_every_name_that_kubectl_takes() {
        let nicknamed = |resource: DiscoveredResource, name: &str| DiscoveredResource {
            short_names: vec![name.to_owned()],
            ..resource
        };
        let all = [
            nicknamed(DiscoveredResource::named("", "v1", "Service", "services"), "svc"),
            nicknamed(DiscoveredResource::named("apps", "v1", "Deployment", "deployments"), "deploy"),
            DiscoveredResource::named("example.com", "v1", "Widget", "widgets"),
            DiscoveredResource::named("example.com", "v1beta1", "Widget", "widgets"),
            DiscoveredResource::named("serving.example.com", "v1", "Service", "services"),
            // Its plural is another's short name.
            DiscoveredResource::named("example.com", "v1", "Svc", "deploy"),
        ];
        for (asked, position) in [
            ("services", Some(0)),
            ("Service", Some(0)),
            ("svc", Some(5)),
            ("svc.v1.", Some(0)),
            ("deploy", Some(5)),
            ("deploy.apps", Some(1)),
            ("deployments.v1.apps", Some(1)),
            ("widget", Some(2)),
            ("widgets.example.com", Some(2)),
            ("widgets.v1beta1.example.com", Some(3)),
            ("widgets.exam", Some(2)),
            ("services.serving.example.com", Some(4)),
            ("widgets.v2.example.com", None),
            ("widgets.other.com", None),
            ("gadgets", None),
            ("", None),
        ] {
            let found = find(&all, asked).map(|it| all.iter().position(|one| one == it).unwrap());
            assert_eq!(found, position, "{asked}");
        }
    }

    #[test]
    fn an_object_has_the_title_that_kubectl_prints() {
        assert_eq!(
            DiscoveredResource::named("example.com", "v1", "Widget", "widgets").title("a"),
            "widget.example.com/a"
        );
        assert_eq!(DiscoveredResource::named("", "v1", "Pod", "pods").title("a"), "pod/a");
    }
}
