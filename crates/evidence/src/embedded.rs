//! Types of Kubernetes in the schema of a CRD, known by their fields. A controller passes their objects on, and the API server refuses
//! those whose unions are invalid.

use crate::answer::{Evidence, EvidenceKind, ProposedChoice, ProposedMember, ProposedUnion};
use crate::candidates::VisitedObject;
use crate::node::SchemaNode;
use kube_unions_core::declaration::{DeclaredUnion, pod_template_families};
use kube_unions_core::schema::PlaceStep;

/// A type and its union.
struct EmbeddedType {
    name: &'static str,
    /// The fields that an object of the type has in every CRD, with those inside of them, for example `service.port`.
    essential: &'static str,
    /// Its fields that are not members of the union, and not essential. An object with other fields is of another type.
    others: &'static str,
    /// The name of the field with the object. Empty for any.
    at: &'static str,
    discriminator: Option<String>,
    /// The values, and the fields of each.
    choices: Vec<(String, Vec<String>)>,
    empty_is_unset: Vec<String>,
}

/// The types whose unions a declaration of a pod template has: name, place of the union in the pod, essential and other fields.
const OF_PODS: [(&str, &str, &str, &str); 6] = [
    ("EnvVar", "containers[*].env[*]", "name value valueFrom", ""),
    ("EnvVarSource", "containers[*].env[*].valueFrom", "configMapKeyRef secretKeyRef", ""),
    ("LifecycleHandler", "containers[*].lifecycle.preStop", "exec httpGet", ""),
    (
        "Probe",
        "containers[*].livenessProbe",
        "exec httpGet tcpSocket",
        "failureThreshold initialDelaySeconds periodSeconds successThreshold terminationGracePeriodSeconds timeoutSeconds",
    ),
    ("AppArmorProfile or SeccompProfile", "securityContext.seccompProfile", "localhostProfile type", ""),
    ("Volume", "volumes[*]", "configMap emptyDir secret", "name"),
];

/// Other types: name, essential and other fields, the field with the object, the discriminator, and the fields of each value. Without a
/// discriminator, the values have no names.
const OTHERS: [(&str, &str, &str, &str, &str, &str); 12] = [
    ("DeviceRequest", "exactly firstAvailable name", "", "", "", "exactly firstAvailable"),
    ("DownwardAPIVolumeFile", "fieldRef path resourceFieldRef", "mode", "", "", "fieldRef resourceFieldRef"),
    ("EnvFromSource", "configMapRef secretRef", "prefix", "", "", "configMapRef secretRef"),
    ("IngressBackend", "resource service.port", "", "", "", "resource service"),
    (
        "MetricSpec",
        "external object pods resource type",
        "",
        "",
        "type",
        "ContainerResource=containerResource External=external Object=object Pods=pods Resource=resource",
    ),
    ("NetworkPolicyPeer", "ipBlock namespaceSelector podSelector", "", "", "", "ipBlock namespaceSelector+podSelector"),
    (
        "PodDisruptionBudgetSpec",
        "maxUnavailable minAvailable",
        "selector unhealthyPodEvictionPolicy",
        "",
        "",
        "maxUnavailable minAvailable",
    ),
    ("PodResourceClaim", RESOURCE_CLAIM, "name", "", "", RESOURCE_CLAIM),
    ("ServiceBackendPort", "name number", "", "port", "", "name number"),
    (
        "UpdateStrategy",
        "rollingUpdate.maxUnavailable type",
        "",
        "",
        "type",
        "OnDelete= Recreate= RollingUpdate=rollingUpdate",
    ),
    (
        "VolumeProjection",
        "configMap secret serviceAccountToken",
        "",
        "",
        "",
        "clusterTrustBundle configMap downwardAPI podCertificate secret serviceAccountToken",
    ),
    ("WebhookClientConfig", "caBundle service url", "", "", "", "service url"),
];

/// The types that are in most pod templates, and whose unions a declaration of a template does not have.
const BESIDE_TEMPLATES: [&str; 2] = ["PodResourceClaim", "VolumeProjection"];

const RESOURCE_CLAIM: &str = "resourceClaimName resourceClaimTemplateName";

/// The types of Kubernetes with unions.
pub(crate) struct EmbeddedTypes(Vec<EmbeddedType>);

impl EmbeddedTypes {
    pub(crate) fn new() -> Self {
        let families = pod_template_families();
        let unions = || families.iter().flat_map(|family| &family.unions);
        let of_pods = OF_PODS.iter().filter_map(|(name, path, essential, others)| {
            let union = unions().find(|union| union.path == *path)?;
            Some(EmbeddedType {
                name,
                essential,
                others,
                at: "",
                discriminator: union.discriminator.clone(),
                choices: choices_of(union),
                empty_is_unset: union.empty_is_unset.clone(),
            })
        });
        let others = OTHERS.iter().map(|(name, essential, others, at, discriminator, choices)| EmbeddedType {
            name,
            essential,
            others,
            at,
            discriminator: (!discriminator.is_empty()).then(|| (*discriminator).to_owned()),
            choices: words(choices).map(choice).collect(),
            empty_is_unset: Vec::new(),
        });
        Self(of_pods.chain(others).collect())
    }

    /// Returns the union of an object whose type is known.
    pub(crate) fn union(&self, object: &VisitedObject<'_>) -> Option<ProposedUnion> {
        self.0.iter().find(|it| it.is_of(object)).and_then(|it| it.union(object))
    }

    /// Returns the union of an object in a pod template, if a declaration of the template lacks it.
    pub(crate) fn beside_templates(&self, object: &VisitedObject<'_>) -> Option<ProposedUnion> {
        let found = self.0.iter().find(|it| it.is_of(object)).filter(|it| BESIDE_TEMPLATES.contains(&it.name));
        found.and_then(|it| it.union(object))
    }
}

impl EmbeddedType {
    fn is_of(&self, object: &VisitedObject<'_>) -> bool {
        let has = |path: &str| path.split('.').try_fold(object.node, SchemaNode::property).is_some();
        let is_named = |name: &str, field: &str| field.split('.').next() == Some(name);
        let is_known = |name: &str| {
            words(self.essential).chain(words(self.others)).any(|field| is_named(name, field))
                || self.choices.iter().flat_map(|(_, fields)| fields).any(|field| field == name)
        };
        let is_at = self.at.is_empty()
            || matches!(object.place.steps().last(), Some(PlaceStep::Property(name)) if **name == *self.at);
        is_at && words(self.essential).all(has) && object.node.properties().all(|(name, _)| is_known(name))
    }

    /// Returns the union, with the members and values that the schema has. `None` if a member cannot be cleared.
    fn union(&self, object: &VisitedObject<'_>) -> Option<ProposedUnion> {
        let discriminator = self.discriminator.as_deref();
        let known = discriminator.and_then(|name| object.node.property(name)).map(SchemaNode::discriminator_values);
        let known = known.filter(|values| !values.is_empty());
        let member = |name: &String| ProposedMember { name: name.clone(), optional: true };
        let has = |name: &&String| object.node.property(name).is_some();
        let choices = self.choices.iter().map(|(value, fields)| ProposedChoice {
            value: value.clone(),
            members: fields.iter().filter(has).map(member).collect(),
        });
        let is_known = |choice: &ProposedChoice| known.as_ref().is_none_or(|values| values.contains(&choice.value));
        let is_choice = |choice: &ProposedChoice| discriminator.is_some() || !choice.members.is_empty();
        let mut choices: Vec<ProposedChoice> = choices.filter(|it| is_known(it) && is_choice(it)).collect();
        for value in known.into_iter().flatten() {
            if choices.iter().all(|choice| choice.value != value) {
                choices.push(ProposedChoice { value, members: Vec::new() });
            }
        }
        if discriminator.is_none() {
            let names = |choice: &ProposedChoice| choice.members.iter().map(|member| member.name.clone()).collect();
            choices = ProposedChoice::of_groups(choices.iter().map(names).collect());
        }
        let evidence = Evidence::stated(EvidenceKind::Shape, object.place.to_pointer(), self.name);
        let union = object.suggested(discriminator, choices, vec![evidence]);
        let is_fixed = union.members.iter().any(|member| object.node.always_has(member));
        let is_union = union.choices.len() > 1 && !union.members.is_empty() && !is_fixed;
        let empty = self.empty_is_unset.iter().cloned();
        is_union.then(|| ProposedUnion {
            empty_is_unset: union.empty_is_unset.iter().cloned().chain(empty).collect(),
            ..union
        })
    }
}

/// Returns the values of a declared union, and the fields of each.
fn choices_of(union: &DeclaredUnion) -> Vec<(String, Vec<String>)> {
    let by_field = union.fields_to_discriminate_by.iter().flatten();
    let by_field = by_field.map(|(field, value)| (value.clone(), vec![field.clone()]));
    let by_value = union.field_members.iter().flatten();
    let by_value = by_value.map(|(value, member)| (value.clone(), member.name.iter().cloned().collect()));
    by_field.chain(by_value).collect()
}

/// Reads `Value=field`, `Value=`, `field` and `field+field`.
fn choice(text: &str) -> (String, Vec<String>) {
    let (value, fields) = text.split_once('=').unwrap_or((text, text));
    (value.to_owned(), fields.split('+').filter(|field| !field.is_empty()).map(str::to_owned).collect())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}
