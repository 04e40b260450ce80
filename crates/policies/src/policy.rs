//! Assembles the policies of kinds.

use crate::body::PolicyBody;
use crate::cel::texts;
use crate::condition::RequestCondition;
use crate::group::PlaceGroup;
use crate::mutation;
use crate::names::{name_for_pod_templates, policy_name};
use crate::object::PolicyObject;
use crate::options::{PolicyOptions, PolicyRatcheting, STATIC_SUFFIX};
use crate::refusal::{Refusal, RefusalReason};
use crate::root::PodOwner;
use crate::target::{MOST_GROUPS, PodTemplates, PolicyTarget, VersionScope};
use crate::validation;
use crate::yaml::{self, PolicyComments};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::is_exempt;
use kube_unions_core::names::is_dns_subdomain;
use kube_unions_core::schema::Actions;
use kube_unions_core::union::{Part, Union, UnionPlace, UnionStep};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The policies of a kind, and the unions that they leave out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompiledPolicies {
    /// The policies, each followed by its binding.
    pub objects: Vec<PolicyObject>,
    /// Everything that is left out, with the reason, sorted.
    pub refusals: Vec<Refusal>,
}

/// The policies of all kinds, and the unions that they leave out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompiledKinds {
    /// The policies and their bindings, sorted by kind and name.
    pub objects: Vec<PolicyObject>,
    /// Everything that is left out, with the reason, sorted.
    pub refusals: Vec<Refusal>,
    /// The number of kinds that have policies.
    pub kinds: usize,
}

/// A namespace with this label and the value `disabled` is left alone, by the webhook as well.
pub const EXEMPT_LABEL: &str = "kube-unions.dev/enforcement";

/// The longest expression that an API server parses, in characters.
const LONGEST_EXPRESSION: usize = 100_000;

/// The largest policy, in bytes. etcd stores at most 1.5 MiB.
const LARGEST_POLICY: usize = 1_000_000;

/// Compiles the unions of a kind to policies and their bindings.
pub fn compile(target: &PolicyTarget<'_>, options: &PolicyOptions) -> CompiledPolicies {
    let mut compiler = PolicyCompiler::new(vec![target], Vec::new(), options);
    compiler.of_kind(target, &|_| false);
    compiler.compiled
}

impl CompiledKinds {
    /// Compiles the kinds of a catalog.
    pub fn of(catalog: &Catalog, options: &PolicyOptions) -> Self {
        let mut all = Self::default();
        let mut kinds = BTreeSet::new();
        let targets = PolicyTarget::of_catalog(catalog);
        // Without functions for lists, each kind has its own refusals.
        let pods = PodTemplates::of_most(&targets).filter(|_| options.server.has_list_functions());
        let mut add = |compiled: CompiledPolicies, of: &[&PolicyTarget<'_>]| {
            if !compiled.objects.is_empty() {
                kinds.extend(of.iter().map(|target| target.gvk.group_kind()));
            }
            all.objects.extend(compiled.objects);
            all.refusals.extend(compiled.refusals);
        };
        for target in &targets {
            let is_shared = |place: &UnionPlace<'_>| pods.as_ref().is_some_and(|pods| pods.contain(target, place));
            let mut compiler = PolicyCompiler::new(vec![target], Vec::new(), options);
            compiler.of_kind(target, &is_shared);
            add(compiler.compiled, &[target]);
        }
        if let Some(pods) = &pods {
            let (kinds, owners): (Vec<_>, _) = pods.owners.iter().cloned().unzip();
            let mut compiler = PolicyCompiler::new(kinds.clone(), owners, options);
            compiler.part(Part::Main, pods.places.clone());
            add(compiler.compiled, &kinds);
        }
        all.kinds = kinds.len();
        all.objects.sort_by(|one, other| (one.kind(), one.name()).cmp(&(other.kind(), other.name())));
        all.refusals.sort();
        all.refusals.dedup();
        all
    }
}

struct PolicyCompiler<'c> {
    /// The kinds that the policies are about. At least one.
    targets: Vec<&'c PolicyTarget<'c>>,
    /// The pod templates that they are about, if they are not about whole objects.
    owners: Vec<PodOwner<'c>>,
    options: &'c PolicyOptions,
    compiled: CompiledPolicies,
}

impl<'c> PolicyCompiler<'c> {
    fn new(targets: Vec<&'c PolicyTarget<'c>>, owners: Vec<PodOwner<'c>>, options: &'c PolicyOptions) -> Self {
        Self { targets, owners, options, compiled: CompiledPolicies::default() }
    }

    fn of_kind(&mut self, target: &PolicyTarget<'_>, is_excepted: &dyn Fn(&UnionPlace<'_>) -> bool) {
        let options = self.options;
        let plural = (!target.plural.is_empty()).then_some(target.plural);
        if is_exempt(&target.gvk.group, plural, &target.gvk.kind) {
            return self.refuse(None, &RefusalReason::ExemptKind);
        }
        if plural.is_none() {
            return self.refuse(None, &RefusalReason::UnknownResource);
        }
        if let VersionScope::TooMany(groups) = target.scope {
            return self.refuse(None, &RefusalReason::TooManyVersions { groups, most: MOST_GROUPS });
        }
        if options.validate && !options.server.has_validating_policies() {
            self.refuse(None, &RefusalReason::NoValidation(options.server));
        }
        let normalizes = target.plan.unions().iter().any(Union::is_normalized);
        if options.mutate && !options.server.has_mutating_policies() && normalizes {
            self.refuse(None, &RefusalReason::NoMutation(options.server));
        }
        for part in [Part::Main, Part::Status] {
            let places = target.plan.places(part).into_iter().filter(|place| !is_excepted(place));
            self.part(part, places.collect());
        }
    }

    fn part(&mut self, part: Part, places: Vec<UnionPlace<'_>>) {
        let options = self.options;
        let groups = PlaceGroup::of_places(&self.expressible(places), options.server.has_list_functions());
        if options.mutate && options.server.has_mutating_policies() {
            self.policy(part, &groups, None);
        }
        if options.validate && options.server.has_validating_policies() {
            for actions in Actions::ALL {
                self.policy(part, &groups, Some(actions));
            }
        }
    }

    fn refuse(&mut self, place: Option<&str>, reason: &RefusalReason) {
        let refusal = |target: &&PolicyTarget<'_>| Refusal {
            gvk: target.gvk.clone(),
            place: place.map(str::to_owned),
            reason: reason.clone(),
        };
        self.compiled.refusals.extend(self.targets.iter().map(refusal));
    }

    fn whose(&self, part: Part) -> String {
        let kinds: Vec<&str> = self.targets.iter().map(|target| &*target.gvk.kind).collect();
        match (part, &self.owners[..]) {
            (Part::Main, []) => kinds.join(", "),
            (Part::Main, _) => "pod templates".to_owned(),
            (Part::Status, _) => format!("{} in its status", kinds.join(", ")),
        }
    }

    /// Returns the places that policies can express, and reports the others.
    fn expressible<'p>(&mut self, places: Vec<UnionPlace<'p>>) -> Vec<UnionPlace<'p>> {
        let server = self.options.server;
        places
            .into_iter()
            .filter(|place| {
                let in_collection = place.steps.iter().any(|step| !matches!(step, UnionStep::Field(_)));
                let reason = if let Some(name) = unprintable(place) {
                    RefusalReason::UnprintableName(name.to_owned())
                } else if in_collection && !server.has_list_functions() {
                    RefusalReason::NoListFunctions(server)
                } else {
                    return true;
                };
                for union in place.unions {
                    self.refuse(Some(union.path()), &reason);
                }
                false
            })
            .collect()
    }

    /// Adds a policy and its binding, unless an API server could not store them: one that normalises, or one that validates for a
    /// binding with these actions.
    fn policy<'g>(&mut self, part: Part, groups: &[PlaceGroup<'g>], work: Option<Actions>)
    where
        'c: 'g,
    {
        let options = self.options;
        // Kinds with a policy in common are alike in what it reads of them.
        let Some(target) = self.targets.first() else { return };
        let body = match work {
            None => mutation::compile(part, groups, &self.owners, target),
            Some(actions) => validation::compile(part, groups, &self.owners, actions, options, target),
        };
        let Some(PolicyBody { unions, variables, expression, message, on_create, condition }) = body else { return };
        if variables.longest().max(expression.len()) > LONGEST_EXPRESSION {
            return self.refuse(None, &RefusalReason::TooLong);
        }
        let read = format!("{expression} {}", message.as_deref().unwrap_or_default());
        let (variables, of_variables) = variables.into_needed(&read);
        let (does, failure) = match work {
            None => (
                if on_create {
                    "The discriminator is set to the member that the request chooses, and members that it does not name are cleared."
                } else {
                    "On update, members that are no longer chosen are cleared."
                },
                "what it leaves as it was sent is judged as it was sent",
            ),
            Some(Actions::Deny { .. }) => (
                if options.ratcheting == PolicyRatcheting::Disabled {
                    "An object that violates one is rejected."
                } else {
                    "An object that violates one is rejected, unless it did so before and the choice is the same."
                },
                "an object that nobody could judge is not stored",
            ),
            Some(Actions::Warn { .. }) => {
                ("A violation that is let through is a warning.", "nothing is rejected for want of a warning")
            }
            Some(Actions::Audit) => {
                ("A violation is written to the audit log.", "nothing is rejected for want of an audit annotation")
            }
        };
        let head = yaml::head(&self.whose(part), does, &unions);
        let comments = PolicyComments { head, variables: of_variables, failure };
        let Some(name) = self.name(part, work) else { return };
        let (conditions, constraints) = (self.conditions(condition), self.constraints(part, on_create));
        let (kind, version, spec, binding) = match work {
            None => (
                "MutatingAdmissionPolicy",
                options.server.mutating_api().unwrap_or("v1"),
                json!({
                    "failurePolicy": "Ignore", "matchConditions": conditions, "matchConstraints": constraints,
                    "mutations": [{"jsonPatch": {"expression": expression}, "patchType": "JSONPatch"}],
                    // A later policy or webhook may set a member that this one has cleared.
                    "reinvocationPolicy": "IfNeeded", "variables": variables,
                }),
                json!({"policyName": name}),
            ),
            Some(actions) => (
                "ValidatingAdmissionPolicy",
                "v1",
                json!({
                    "failurePolicy": if actions.denies() { "Fail" } else { "Ignore" },
                    "matchConditions": conditions, "matchConstraints": constraints,
                    "validations": [{
                        "expression": expression, "message": "a union is not valid", "messageExpression": message,
                        "reason": "Invalid",
                    }],
                    "variables": variables,
                }),
                json!({"policyName": name, "validationActions": actions.names()}),
            ),
        };
        let labels = Some(&options.labels).filter(|labels| !labels.is_empty());
        let object = |kind: &str, spec: Value| {
            json!({"apiVersion": format!("admissionregistration.k8s.io/{version}"), "kind": kind,
                "metadata": {"labels": labels, "name": name}, "spec": spec})
        };
        let objects =
            [PolicyObject::new(object(kind, spec), Some(comments)), object(&format!("{kind}Binding"), binding).into()];
        if objects.iter().map(|object| object.to_json().to_string().len()).sum::<usize>() > LARGEST_POLICY {
            return self.refuse(None, &RefusalReason::TooLong);
        }
        self.compiled.objects.extend(objects);
    }

    /// Returns the name of a policy; reports that there is none.
    fn name(&mut self, part: Part, work: Option<Actions>) -> Option<String> {
        let prefix = &self.options.name_prefix;
        let name = match &self.targets[..] {
            [target] if self.owners.is_empty() => policy_name(prefix, target, part, work),
            _ => name_for_pod_templates(prefix, work),
        };
        let suffix = if self.options.static_manifests { STATIC_SUFFIX } else { "" };
        let name = name.map(|name| name + suffix).filter(|name| is_dns_subdomain(name));
        if name.is_none() {
            self.refuse(None, &RefusalReason::NoName);
        }
        name
    }

    /// Returns the conditions for the version of a request and for what it changed.
    fn conditions(&self, changed: Option<RequestCondition>) -> Vec<Value> {
        // Several kinds have no such versions.
        let of_version = self.targets.iter().find_map(|target| match &target.scope {
            VersionScope::AllExcept(others) if !others.is_empty() => Some(RequestCondition {
                name: "the-version-has-these-unions".to_owned(),
                expression: format!("!(request.requestKind.version in {})", texts(others.iter().copied())),
            }),
            // The rule names the versions.
            VersionScope::AllExcept(_) | VersionScope::Only(_) | VersionScope::TooMany(_) => None,
        });
        let conditions = of_version.into_iter().chain(changed);
        conditions.map(|it| json!({"expression": it.expression, "name": it.name})).collect()
    }

    /// Returns the requests that a policy sees.
    fn constraints(&self, part: Part, on_create: bool) -> Value {
        let operations = if on_create && part == Part::Main { ["CREATE", "UPDATE"].as_slice() } else { &["UPDATE"] };
        let not_in = |key: &str, values: Value| json!({"key": key, "operator": "NotIn", "values": values});
        let mut namespaces = vec![not_in(EXEMPT_LABEL, json!(["disabled"]))];
        let excluded: BTreeSet<&String> = self.options.excluded_namespaces.iter().collect();
        if !excluded.is_empty() {
            namespaces.push(not_in("kubernetes.io/metadata.name", json!(excluded)));
        }
        let mut match_policy = "Equivalent";
        // The groups and the resources of the kinds with the same versions.
        let mut rules: BTreeMap<Vec<&str>, (BTreeSet<&str>, BTreeSet<String>)> = BTreeMap::new();
        for target in &self.targets {
            let versions = match &target.scope {
                VersionScope::Only(versions) => {
                    match_policy = "Exact";
                    versions.clone()
                }
                VersionScope::AllExcept(_) | VersionScope::TooMany(_) => vec![&*target.gvk.version],
            };
            let subresource = if part == Part::Status { "/status" } else { "" };
            let (groups, resources) = rules.entry(versions).or_default();
            groups.insert(&*target.gvk.group);
            resources.insert(format!("{}{subresource}", target.plural));
        }
        let rule = |(versions, (groups, resources)): (Vec<&str>, (BTreeSet<&str>, BTreeSet<String>))| {
            json!({"apiGroups": groups, "apiVersions": versions, "operations": operations, "resources": resources,
                "scope": "*"})
        };
        json!({
            "matchPolicy": match_policy, "namespaceSelector": {"matchExpressions": namespaces},
            // The API server would fill in this selector and the scope. Written out, no tool reports a difference.
            "objectSelector": {}, "resourceRules": rules.into_iter().map(rule).collect::<Vec<_>>(),
        })
    }
}

/// Returns the first name of a place and its unions that an expression or a JSON Patch cannot carry.
fn unprintable<'p>(place: &UnionPlace<'p>) -> Option<&'p str> {
    let steps = place.steps.iter().flat_map(|step| match step {
        UnionStep::Field(name) => vec![*name],
        UnionStep::Items { keys } => keys.iter().map(|key| key.name).collect(),
        UnionStep::Values => Vec::new(),
    });
    let fields = place.unions.iter().flat_map(|union| union.members().chain(union.discriminator()));
    steps.chain(fields).find(|name| name.is_empty() || name.contains(char::is_control))
}
