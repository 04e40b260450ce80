//! The unions of a pod template: one definition for the presets of built-in types and for `podTemplates`.
//!
//! `manifests/presets` is generated from it, with a file for each [`PodTemplateFamily`].

use super::{DeclaredMember, DeclaredUnion, FaultKind, OriginEntry, Place, UnionDeclarationSpec};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Unions of a pod template that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodTemplateFamily {
    /// The name, for example `volumes`.
    pub name: &'static str,
    /// The unions. Their paths begin in the `spec` of the pod, for example `volumes[*]`.
    pub unions: Vec<DeclaredUnion>,
}

/// Most steps of the path of a pod template.
const MOST_STEPS: usize = 32;

/// Lists of containers. Ephemeral containers are forbidden in a template.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// Lists in the `spec` of a pod whose items are identified by `name`.
const LISTS: [&str; 5] = ["containers", "containers[*].env", "initContainers", "initContainers[*].env", "volumes"];

const VOLUME_SOURCES: &[(&str, &str)] = &[
    ("awsElasticBlockStore", "AWSElasticBlockStore"),
    ("azureDisk", "AzureDisk"),
    ("azureFile", "AzureFile"),
    ("cephfs", "CephFS"),
    ("cinder", "Cinder"),
    ("configMap", "ConfigMap"),
    ("csi", "CSI"),
    ("downwardAPI", "DownwardAPI"),
    ("emptyDir", "EmptyDir"),
    ("ephemeral", "Ephemeral"),
    ("fc", "FC"),
    ("flexVolume", "FlexVolume"),
    ("flocker", "Flocker"),
    ("gcePersistentDisk", "GCEPersistentDisk"),
    ("gitRepo", "GitRepo"),
    ("glusterfs", "Glusterfs"),
    ("hostPath", "HostPath"),
    ("image", "Image"),
    ("iscsi", "ISCSI"),
    ("nfs", "NFS"),
    ("persistentVolumeClaim", "PersistentVolumeClaim"),
    ("photonPersistentDisk", "PhotonPersistentDisk"),
    ("portworxVolume", "PortworxVolume"),
    ("projected", "Projected"),
    ("quobyte", "Quobyte"),
    ("rbd", "RBD"),
    ("scaleIO", "ScaleIO"),
    ("secret", "Secret"),
    ("storageos", "StorageOS"),
    ("vsphereVolume", "VsphereVolume"),
];

const ENV: &[(&str, &str)] = &[("value", "Value"), ("valueFrom", "ValueFrom")];

const ENV_SOURCES: &[(&str, &str)] = &[
    ("configMapKeyRef", "ConfigMapKeyRef"),
    ("fieldRef", "FieldRef"),
    ("fileKeyRef", "FileKeyRef"),
    ("resourceFieldRef", "ResourceFieldRef"),
    ("secretKeyRef", "SecretKeyRef"),
];

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

const PROBE_HANDLERS: &[(&str, &str)] =
    &[("exec", "Exec"), ("grpc", "GRPC"), ("httpGet", "HTTPGet"), ("tcpSocket", "TCPSocket")];

const HOOKS: [&str; 2] = ["lifecycle.postStart", "lifecycle.preStop"];

const HOOK_HANDLERS: &[(&str, &str)] =
    &[("exec", "Exec"), ("httpGet", "HTTPGet"), ("sleep", "Sleep"), ("tcpSocket", "TCPSocket")];

const PROFILES: [&str; 2] = ["securityContext.appArmorProfile", "securityContext.seccompProfile"];

/// Returns the unions of a pod template, by family.
pub fn pod_template_families() -> [PodTemplateFamily; 4] {
    let of_containers = |unions: &dyn Fn(&str) -> Vec<DeclaredUnion>| -> Vec<DeclaredUnion> {
        CONTAINERS.iter().flat_map(|list| unions(&format!("{list}[*]"))).collect()
    };
    let env = |container: &str| {
        let variable = format!("{container}.env[*]");
        // The API server accepts an empty value beside `valueFrom`. It drops it in built-in types, and keeps it in custom resources.
        let value = DeclaredUnion { empty_is_unset: vec!["value".to_owned()], ..one_of(&variable, ENV) };
        vec![value, one_of(&format!("{variable}.valueFrom"), ENV_SOURCES)]
    };
    let handlers = |container: &str| {
        let probes = PROBES.iter().map(|probe| one_of(&format!("{container}.{probe}"), PROBE_HANDLERS));
        let hooks = HOOKS.iter().map(|hook| one_of(&format!("{container}.{hook}"), HOOK_HANDLERS));
        probes.chain(hooks).collect()
    };
    let profiles = |container: &str| PROFILES.iter().map(|name| profile(&format!("{container}.{name}"))).collect();
    let of_pod = PROFILES.iter().map(|name| profile(name));
    [
        PodTemplateFamily { name: "env", unions: of_containers(&env) },
        PodTemplateFamily { name: "handlers", unions: of_containers(&handlers) },
        PodTemplateFamily { name: "profiles", unions: of_pod.chain(of_containers(&profiles)).collect() },
        PodTemplateFamily { name: "volumes", unions: vec![one_of("volumes[*]", VOLUME_SOURCES)] },
    ]
}

impl UnionDeclarationSpec {
    /// Returns the number of declared unions, with those of the pod templates.
    pub fn union_count(&self) -> usize {
        let of_template: usize = pod_template_families().iter().map(|family| family.unions.len()).sum();
        self.unions.len().saturating_add(self.pod_templates.len().saturating_mul(of_template))
    }

    /// Returns all declared unions, with those of the pod templates. Reports a pod template that cannot be used by its path,
    /// its pointer and the message of a fault.
    pub(super) fn entries(
        &self,
        report: &mut impl FnMut(FaultKind, &str, String, String),
    ) -> Vec<(OriginEntry, Cow<'_, DeclaredUnion>)> {
        let own = self.unions.iter().enumerate();
        let mut all: Vec<_> =
            own.map(|(position, union)| (OriginEntry::Union(position), Cow::Borrowed(union))).collect();
        for (position, path) in self.pod_templates.iter().enumerate() {
            let entry = |union| OriginEntry::PodTemplate(position, union);
            let is_first = self.pod_templates.iter().position(|known| known == path) == Some(position);
            let checked =
                if is_first { unions_at(path) } else { Err(format!("`{path}` is twice in the list; remove one")) };
            match checked {
                Ok(unions) => {
                    all.extend(unions.enumerate().map(|(number, union)| (entry(number), Cow::Owned(union))));
                }
                Err(message) => {
                    let message = format!("podTemplates[{position}]: {message}");
                    report(FaultKind::InvalidPodTemplate, path, entry(0).pointer(), message);
                }
            }
        }
        all
    }
}

/// Returns the unions of the pod template at a path. The schema need not describe them. Returns the message of a fault if
/// the path cannot be used.
fn unions_at(path: &str) -> Result<impl Iterator<Item = DeclaredUnion>, String> {
    let place = Place::from_path(path).map_err(|error| error.to_string())?;
    if place.steps().len() > MOST_STEPS {
        return Err(format!("the path has more than {MOST_STEPS} steps; name the place of a pod template"));
    }
    let dot = if path.is_empty() { "" } else { "." };
    let pod = format!("{path}{dot}spec");
    Ok(pod_template_families().into_iter().flat_map(|family| family.unions).map(move |union| {
        let on_the_way =
            LISTS.iter().filter(|list| union.path.strip_prefix(**list).is_some_and(|rest| rest.starts_with("[*]")));
        let list_keys = on_the_way.map(|list| (format!("{pod}.{list}"), vec!["name".to_owned()])).collect();
        DeclaredUnion { path: format!("{pod}.{}", union.path), schemaless: true, list_keys, ..union }
    }))
}

/// Returns a union of the 2019 form without a discriminator.
fn one_of(path: &str, fields: &[(&str, &str)]) -> DeclaredUnion {
    let fields = fields.iter().map(|(field, value)| ((*field).to_owned(), (*value).to_owned())).collect();
    DeclaredUnion { fields_to_discriminate_by: Some(fields), ..DeclaredUnion::at(path) }
}

impl DeclaredUnion {
    /// Returns a union at a path, without members.
    fn at(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }
}

fn profile(path: &str) -> DeclaredUnion {
    let member = |name: Option<&str>| DeclaredMember { name: name.map(str::to_owned), ..DeclaredMember::default() };
    let members: BTreeMap<_, _> =
        [("Localhost", Some("localhostProfile")), ("RuntimeDefault", None), ("Unconfined", None)]
            .into_iter()
            .map(|(value, name)| (value.to_owned(), member(name)))
            .collect();
    DeclaredUnion { discriminator: Some("type".to_owned()), field_members: Some(members), ..DeclaredUnion::at(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_on_the_way_to_a_union_has_its_key() {
        let unions: Vec<_> = unions_at("spec.template").unwrap().collect();
        assert_eq!(unions.len(), 21);
        for union in &unions {
            assert_eq!(union.path.matches("[*]").count(), union.list_keys.len(), "{}", union.path);
            assert!(union.path.starts_with("spec.template.spec.") && union.schemaless, "{}", union.path);
        }
        assert!(unions_at("").unwrap().all(|union| union.path.starts_with("spec.")));
    }
}
