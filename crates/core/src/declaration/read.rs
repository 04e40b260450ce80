//! Reads kinds from CRDs and OpenAPI documents.

use super::acceptance::ClaimedKind;
use super::annotation::{self, ANNOTATION};
use super::definition::{Definition, DefinitionError, DefinitionVersion, Resource};
use super::last_applied::{self, LAST_APPLIED};
use super::wire;
use crate::names::{GroupKind, GroupVersionKind};
use crate::schema::{MOST_UNTYPED_NODES, OpenApi};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

/// The resources of Kubernetes with a short name, by group. OpenAPI documents do not have these names.
const SHORT_NAMES: [(&str, &[(&str, &str)]); 11] = [
    (
        "",
        &[
            ("componentstatuses", "cs"),
            ("configmaps", "cm"),
            ("endpoints", "ep"),
            ("events", "ev"),
            ("limitranges", "limits"),
            ("namespaces", "ns"),
            ("nodes", "no"),
            ("persistentvolumeclaims", "pvc"),
            ("persistentvolumes", "pv"),
            ("pods", "po"),
            ("replicationcontrollers", "rc"),
            ("resourcequotas", "quota"),
            ("serviceaccounts", "sa"),
            ("services", "svc"),
        ],
    ),
    ("apiextensions.k8s.io", &[("customresourcedefinitions", "crd"), ("customresourcedefinitions", "crds")]),
    ("apps", &[("daemonsets", "ds"), ("deployments", "deploy"), ("replicasets", "rs"), ("statefulsets", "sts")]),
    ("autoscaling", &[("horizontalpodautoscalers", "hpa")]),
    ("batch", &[("cronjobs", "cj")]),
    ("certificates.k8s.io", &[("certificatesigningrequests", "csr")]),
    ("events.k8s.io", &[("events", "ev")]),
    ("networking.k8s.io", &[("ingresses", "ing"), ("ipaddresses", "ip"), ("networkpolicies", "netpol")]),
    ("policy", &[("poddisruptionbudgets", "pdb")]),
    ("scheduling.k8s.io", &[("priorityclasses", "pc")]),
    ("storage.k8s.io", &[("storageclasses", "sc"), ("volumeattributesclasses", "vac")]),
];

fn short_names(group: &str, plural: &str) -> Vec<String> {
    let of_group = SHORT_NAMES.iter().filter(|(known, _)| *known == group).flat_map(|(_, resources)| *resources);
    of_group.filter(|(known, _)| *known == plural).map(|(_, short)| (*short).to_owned()).collect()
}

impl Definition {
    /// Reads a CRD from its JSON text.
    pub fn from_json(text: &str) -> Result<Self, DefinitionError> {
        let document: wire::WireDocument<&RawValue> = wire::read_object(text, wire::CRD)?;
        Self::from_parts(&document.metadata.name, &document.metadata.annotations, document.spec.get(), None)
    }

    /// Reads a CRD from its name, its annotations and the JSON text of its `spec`. Uses the names that the API server has accepted, or
    /// else those that the `spec` asks for.
    pub fn from_parts(
        name: &str,
        annotations: &BTreeMap<String, String>,
        spec: &str,
        claim: Option<ClaimedKind>,
    ) -> Result<Self, DefinitionError> {
        let spec: wire::Spec = wire::read(spec, "spec.", wire::CRD.1)?;
        let (kind, resource) = if let Some(ClaimedKind { kind, resource }) = claim {
            (kind, Some(resource))
        } else {
            let (kind, resource) = spec.names.into_parts(spec.scope.as_deref());
            (GroupKind { group: spec.group, kind }, resource)
        };
        let versions = spec.versions.into_iter().enumerate().filter_map(wire::WireVersion::into_version).collect();
        let mut definition = Self::of_versions(name.to_owned(), kind, resource, versions);
        if definition.versions.is_empty() {
            return Err(DefinitionError::NoSchema(definition.name));
        }
        if let Some(text) = annotations.get(ANNOTATION) {
            annotation::graft(&mut definition, text);
        }
        if let Some(text) = annotations.get(LAST_APPLIED) {
            last_applied::graft(&mut definition, text);
        }
        Ok(definition)
    }

    fn of_versions(
        name: String,
        kind: GroupKind,
        resource: Option<Resource>,
        versions: Vec<DefinitionVersion>,
    ) -> Self {
        let mut positions = HashMap::new();
        for (position, version) in versions.iter().enumerate() {
            positions.entry(version.name.clone()).or_insert(position);
        }
        Self { name, kind, resource, versions, positions, faults: Vec::new(), untyped_budget: MOST_UNTYPED_NODES }
    }

    /// Reads a built-in type from the OpenAPI documents that describe it, one version from each. Drops the unions that the
    /// documents declare unless `published` is true.
    pub fn from_openapi<'d>(
        documents: impl IntoIterator<Item = &'d OpenApi>,
        group: &str,
        kind: &str,
        published: bool,
    ) -> Result<Self, DefinitionError> {
        let name = GroupKind::new(group, kind);
        let mut versions: Vec<DefinitionVersion> = Vec::new();
        let mut resource = None;
        for document in documents {
            let described: Vec<&GroupVersionKind> =
                document.kinds().filter(|known| (&*known.group, &*known.kind) == (group, kind)).collect();
            for described in described {
                let known = versions.iter().any(|version| version.name == described.version);
                let Some(mut schema) = document.schema(described)?.filter(|_| !known) else { continue };
                if !published {
                    schema.clear_unions();
                }
                if resource.is_none() {
                    resource = document.resource(described).map(|(plural, namespaced)| Resource {
                        plural: plural.into(),
                        singular: Box::default(),
                        short_names: short_names(group, plural),
                        namespaced,
                        custom: false,
                    });
                }
                versions.push(DefinitionVersion {
                    name: described.version.clone(),
                    position: versions.len(),
                    served: true,
                    status_subresource: document.has_status_subresource(described),
                    scaled: None,
                    schema,
                });
            }
        }
        if versions.is_empty() {
            return Err(DefinitionError::NotDescribed(name.to_string()));
        }
        Ok(Self::of_versions(name.to_string(), name, resource, versions))
    }

    /// Returns true if a document publishes unions for a kind.
    pub fn publishes(document: &OpenApi, kind: &GroupKind) -> Result<bool, DefinitionError> {
        let definition = Self::from_openapi([document], &kind.group, &kind.kind, true)?;
        Ok(definition.versions.iter().any(|version| !version.declarations().is_empty()))
    }
}
