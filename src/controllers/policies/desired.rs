//! The objects that this replica wants in the cluster, compiled from the catalog in force.

use super::api::{PolicyKey, PolicyResource, ServedPolicies};
use super::stored::{PolicyFrame, labels};
use crate::controllers::handover::Coverage;
use crate::controllers::object::set;
use crate::controllers::registration::{EntryOptions, LabelSelector};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::GroupKind;
use kube_unions_core::union::Plan;
use kube_unions_policies::{CompiledPolicies, PolicyObject, PolicyOptions, PolicyRatcheting, PolicyTarget, compile};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Settings of the enforcement by policies.
#[derive(Debug, Clone)]
pub struct PolicyEnforcement {
    /// The treatment of the policies in the cluster.
    pub duty: PolicyDuty,
    /// The beginning of the name of every policy.
    pub name_prefix: String,
    /// Let a violation through if the request did not change the choice of the union.
    pub ratchet: bool,
    /// Namespaces that are exempt.
    pub excluded_namespaces: Vec<String>,
    /// The installation, by its Service. Policies of another installation are left alone.
    pub installation: Option<String>,
    /// Name of the `ClusterRole` that owns the policies. They are deleted with it.
    pub owner: Option<String>,
    /// Conditions and selectors of the objects to enforce.
    pub entries: EntryOptions,
    /// Time in which every API server learns of a change of policies or of webhook configurations.
    pub handover: Duration,
}

/// The treatment of the policies in the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PolicyDuty {
    /// Policies enforce every kind that they can express, and the webhook the rest.
    #[default]
    BesideWebhook,
    /// Policies enforce what they can express, and the webhook nothing.
    Alone,
    /// Policies are deleted as soon as the webhook is registered for their kind.
    RemoveOnceRegistered,
    /// Policies are deleted.
    Remove,
}

impl PolicyDuty {
    /// Returns true if policies are kept, false if they are deleted.
    pub fn is_enforcing(self) -> bool {
        matches!(self, Self::BesideWebhook | Self::Alone)
    }

    /// Returns the coverage before anything is known about the policies of the cluster.
    pub fn first_coverage(self) -> Coverage {
        if self.is_enforcing() { Coverage::Unknown } else { Coverage::none() }
    }
}

/// The kinds of a catalog, each with its policies.
pub(super) type DesiredPolicies = BTreeMap<GroupKind, Arc<DesiredKind>>;

/// The policies of one kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct DesiredKind {
    /// The policies and bindings, in the order in which they are written.
    pub(super) objects: BTreeMap<PolicyKey, Arc<Value>>,
    /// The unions that the policies leave out, with the reason.
    pub(super) refusals: Vec<String>,
    /// True if the webhook can be registered for the kind.
    pub(super) is_registrable: bool,
}

/// Compiles catalogs, and keeps the policies of kinds that have not changed.
pub(super) struct CatalogCompiler {
    enforcement: PolicyEnforcement,
    served: ServedPolicies,
    frame: PolicyFrame,
    options: PolicyOptions,
    cache: HashMap<GroupKind, CachedKind>,
}

/// The plan of each version, sorted by version.
type VersionPlans = Vec<(Box<str>, Arc<Plan>)>;

/// The policies of a kind, with the inputs that they were compiled from.
struct CachedKind {
    /// The version of the first target.
    main: Box<str>,
    plans: VersionPlans,
    plural: Box<str>,
    desired: Arc<DesiredKind>,
}

impl CatalogCompiler {
    pub(super) fn new(enforcement: PolicyEnforcement, served: ServedPolicies, frame: PolicyFrame) -> Self {
        let options = PolicyOptions {
            server: served.version,
            // The webhook warns as well.
            ratcheting: if enforcement.ratchet { PolicyRatcheting::Warn } else { PolicyRatcheting::Disabled },
            excluded_namespaces: enforcement.excluded_namespaces.clone(),
            name_prefix: enforcement.name_prefix.clone(),
            labels: labels(),
            ..PolicyOptions::default()
        };
        Self { enforcement, served, frame, options, cache: HashMap::new() }
    }

    /// Returns the objects for a catalog.
    pub(super) fn desired(&mut self, catalog: &Catalog) -> DesiredPolicies {
        let mut before = std::mem::take(&mut self.cache);
        let mut plans: HashMap<GroupKind, VersionPlans> = HashMap::new();
        for entry in catalog.entries() {
            let gvk = entry.gvk();
            plans.entry(gvk.group_kind()).or_default().push((gvk.version.clone(), Arc::clone(entry.plan())));
        }
        let targets = PolicyTarget::of_catalog(catalog);
        let mut all = DesiredPolicies::new();
        for targets in targets.chunk_by(|one, other| one.gvk.group_kind() == other.gvk.group_kind()) {
            let Some(first) = targets.first() else { continue };
            let kind = first.gvk.group_kind();
            let plans = plans.remove(&kind).unwrap_or_default();
            let identity = |(version, plan): &(Box<str>, Arc<Plan>)| (version.clone(), Arc::as_ptr(plan));
            let known = before.remove(&kind).filter(|known| {
                known.main == first.gvk.version
                    && *known.plural == *first.plural
                    && known.plans.iter().map(identity).eq(plans.iter().map(identity))
            });
            let known = known.unwrap_or_else(|| CachedKind {
                main: first.gvk.version.clone(),
                plans,
                plural: first.plural.into(),
                desired: Arc::new(self.compile(targets, &kind)),
            });
            all.insert(kind.clone(), Arc::clone(&known.desired));
            self.cache.insert(kind, known);
        }
        all
    }

    /// Returns the objects of a kind from its targets, which are not empty.
    fn compile(&self, targets: &[PolicyTarget<'_>], kind: &GroupKind) -> DesiredKind {
        let mut all = CompiledPolicies::default();
        for target in targets.iter().filter(|_| self.enforcement.duty.is_enforcing()) {
            let CompiledPolicies { objects, refusals } = compile(target, &self.options);
            all.objects.extend(objects);
            all.refusals.extend(refusals);
        }
        let desired = self.assembled(kind, &all);
        DesiredKind { is_registrable: targets.iter().all(|target| !target.plural.is_empty()), ..desired }
    }

    /// Returns the objects of a kind from what was compiled.
    fn assembled(&self, kind: &GroupKind, compiled: &CompiledPolicies) -> DesiredKind {
        let mut refusals: Vec<String> = compiled.refusals.iter().map(ToString::to_string).collect();
        let mut objects = BTreeMap::new();
        for object in &compiled.objects {
            let resource = PolicyResource::of(object);
            let served = resource.and_then(|resource| self.served.version_of(resource));
            let Some(resource) =
                resource.filter(|_| served.is_some() && served == object.api_version().rsplit('/').next())
            else {
                let refusal =
                    format!("{kind}: the API server does not serve {} {}", object.api_version(), object.kind());
                if !refusals.contains(&refusal) {
                    refusals.push(refusal);
                }
                continue;
            };
            let key = PolicyKey { resource, name: object.name().into() };
            objects.entry(key).or_insert_with(|| Arc::new(self.object(kind, object, resource)));
        }
        if self.enforcement.duty.is_enforcing() && objects.is_empty() && refusals.is_empty() {
            refusals.push(format!("{kind}: no policy expresses its unions"));
        }
        // The webhook enforces the whole kind.
        if self.enforcement.duty == PolicyDuty::BesideWebhook && !refusals.is_empty() {
            objects.clear();
        }
        DesiredKind { objects, refusals, is_registrable: true }
    }

    fn object(&self, kind: &GroupKind, object: &PolicyObject, resource: PolicyResource) -> Value {
        let mut body = object.to_json();
        self.frame.complete(&mut body, kind);
        if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
            self.restrict(spec, resource);
        }
        body
    }

    /// Restricts a policy or a binding to the objects that the user selected.
    fn restrict(&self, spec: &mut Map<String, Value>, resource: PolicyResource) {
        let entries = &self.enforcement.entries;
        if resource.is_binding() {
            let selectors =
                [("namespaceSelector", &entries.namespace_selector), ("objectSelector", &entries.object_selector)];
            let selectors = selectors.into_iter().filter(|(_, selector)| **selector != LabelSelector::default());
            let selectors: BTreeMap<_, _> = selectors.collect();
            if !selectors.is_empty() {
                set(spec, json!({"matchResources": selectors}));
            }
        } else if !entries.match_conditions.0.is_empty() {
            let compiled = spec.get("matchConditions").and_then(Value::as_array).cloned();
            let own = entries.match_conditions.0.iter().map(|condition| json!(condition));
            let all: Vec<Value> = own.chain(compiled.unwrap_or_default()).collect();
            set(spec, json!({"matchConditions": all}));
        }
    }
}

impl DesiredKind {
    /// Returns true if the policies enforce all unions of the kind.
    pub(super) fn is_expressible(&self) -> bool {
        !self.objects.is_empty() && self.refusals.is_empty()
    }
}

#[cfg(test)]
mod tests;
