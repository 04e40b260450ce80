//! Assembles the policies of a kind.

use crate::cel::texts;
use crate::comments::{self, PolicyComments};
use crate::condition::RequestCondition;
use crate::group::PlaceGroup;
use crate::mutation::{self, Mutation};
use crate::names::{Work, name_for_pod_templates, policy_name};
use crate::object::{PolicyApi, PolicyObject};
use crate::options::{PolicyOptions, PolicyRatcheting, STATIC_SUFFIX};
use crate::pod_templates::PodTemplates;
use crate::refusal::{Refusal, RefusalReason};
use crate::root::PodOwner;
use crate::target::{MOST_GROUPS, PolicyTarget, VersionScope};
use crate::treatment::Treatment;
use crate::validation::{self, Validation};
use k8s_openapi::api::admissionregistration::v1::{
    JSONPatch, MatchCondition, MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpec, MutatingAdmissionPolicySpec, Mutation as PolicyMutation,
    NamedRuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation as PolicyValidation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use kube_unions_core::declaration::is_exempt;
use kube_unions_core::names::is_dns_subdomain;
use kube_unions_core::schema::Actions;
use kube_unions_core::union::{Part, Union, UnionPlace, UnionStep};
use std::collections::{BTreeMap, BTreeSet};

/// The policies of a kind, and the unions that they leave out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompiledPolicies {
    /// The policies, each followed by its binding.
    pub objects: Vec<PolicyObject>,
    /// Everything that is left out, with the reason, sorted.
    pub refusals: Vec<Refusal>,
}

/// A namespace with this label and the value `disabled` is left alone, by the webhook as well.
pub const EXEMPT_LABEL: &str = "kube-unions.dev/enforcement";

/// The longest expression that an API server parses, in characters.
const LONGEST_EXPRESSION: usize = 100_000;

/// The largest policy, in bytes. etcd stores at most 1.5 MiB.
const LARGEST_POLICY: usize = 1_000_000;

/// Compiles the unions of a kind to policies and their bindings.
pub fn compile(target: &PolicyTarget<'_>, options: &PolicyOptions) -> CompiledPolicies {
    compile_except(target, options, &|_| false)
}

/// Compiles the unions of a kind, without the places that another policy is about.
pub(crate) fn compile_except(
    target: &PolicyTarget<'_>,
    options: &PolicyOptions,
    is_excepted: &dyn Fn(&UnionPlace<'_>) -> bool,
) -> CompiledPolicies {
    let mut compiler = PolicyCompiler::new(vec![target], Vec::new(), options);
    compiler.of_kind(target, is_excepted);
    compiler.compiled
}

/// Compiles the unions of the pod templates of several kinds.
pub(crate) fn compile_pod_templates(pods: &PodTemplates<'_>, options: &PolicyOptions) -> CompiledPolicies {
    let (targets, owners) = pods.owners.iter().cloned().unzip();
    let mut compiler = PolicyCompiler::new(targets, owners, options);
    compiler.part(Part::Main, pods.places.clone());
    compiler.compiled
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
            self.mutation(part, &groups);
        }
        if options.validate && options.server.has_validating_policies() {
            for actions in Actions::ALL {
                self.validation(part, &groups, actions);
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

    /// Returns true if a CRD defines the kind.
    fn is_custom(&self) -> bool {
        self.targets.iter().any(|target| target.custom)
    }

    /// Returns the words for what the policies are about.
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

    fn mutation<'g>(&mut self, part: Part, groups: &[PlaceGroup<'g>])
    where
        'c: 'g,
    {
        let Some(api) = self.options.server.mutating_api().map(PolicyApi) else { return };
        let Some(Mutation { unions, variables, expression, on_create, conditions }) =
            mutation::compile(part, groups, &self.owners, self.is_custom())
        else {
            return;
        };
        if variables.longest().max(expression.len()) > LONGEST_EXPRESSION {
            return self.refuse(None, &RefusalReason::TooLong);
        }
        let (variables, of_variables) = variables.into_needed(&expression);
        let does = if on_create {
            "The discriminator is set to the member that the request chooses, and members that it does not name are cleared."
        } else {
            "On update, members that are no longer chosen are cleared."
        };
        let comments = PolicyComments {
            head: comments::head(&self.whose(part), does, &unions),
            variables: of_variables,
            failure: "what it leaves as it was sent is judged as it was sent",
        };
        let Some(name) = self.name(part, Work::Normalize) else { return };
        let spec = MutatingAdmissionPolicySpec {
            failure_policy: Some("Ignore".to_owned()),
            match_conditions: self.conditions(conditions),
            match_constraints: Some(self.constraints(part, on_create)),
            mutations: Some(vec![PolicyMutation {
                json_patch: Some(JSONPatch { expression: Some(expression) }),
                patch_type: "JSONPatch".to_owned(),
                ..PolicyMutation::default()
            }]),
            // A later policy or webhook may set a member that this one has cleared.
            reinvocation_policy: Some("IfNeeded".to_owned()),
            variables: Some(variables),
            ..MutatingAdmissionPolicySpec::default()
        };
        let binding = MutatingAdmissionPolicyBindingSpec { policy_name: Some(name.clone()), ..Default::default() };
        self.push([
            PolicyObject::MutatingPolicy(
                Box::new(MutatingAdmissionPolicy { metadata: self.metadata(&name), spec: Some(spec) }),
                api,
                comments,
            ),
            PolicyObject::MutatingBinding(
                Box::new(MutatingAdmissionPolicyBinding { metadata: self.metadata(&name), spec: Some(binding) }),
                api,
            ),
        ]);
    }

    fn validation<'g>(&mut self, part: Part, groups: &[PlaceGroup<'g>], actions: Actions)
    where
        'c: 'g,
    {
        let treatment = Treatment {
            ratcheting: self.options.ratcheting,
            actions: self.options.actions,
            server: self.options.server,
            custom: self.is_custom(),
            deduces: self.options.mutate && self.options.server.has_mutating_policies(),
        };
        let Some(compiled) = validation::compile(part, groups, &self.owners, actions, treatment) else { return };
        let Validation { unions, variables, expression, message, on_create, conditions } = compiled;
        if variables.longest().max(expression.len()) > LONGEST_EXPRESSION {
            return self.refuse(None, &RefusalReason::TooLong);
        }
        let (variables, of_variables) = variables.into_needed(&format!("{expression} {message}"));
        let (does, failure) = match (actions, treatment.ratcheting != PolicyRatcheting::Disabled) {
            (Actions::Deny { .. }, true) => (
                "An object that violates one is rejected, unless it did so before and the choice is the same.",
                "an object that nobody could judge is not stored",
            ),
            (Actions::Deny { .. }, false) => {
                ("An object that violates one is rejected.", "an object that nobody could judge is not stored")
            }
            (Actions::Warn { .. }, _) => {
                ("A violation that is let through is a warning.", "nothing is rejected for want of a warning")
            }
            (Actions::Audit, _) => {
                ("A violation is written to the audit log.", "nothing is rejected for want of an audit annotation")
            }
        };
        let comments =
            PolicyComments { head: comments::head(&self.whose(part), does, &unions), variables: of_variables, failure };
        let Some(name) = self.name(part, Work::Validate(actions)) else { return };
        let spec = ValidatingAdmissionPolicySpec {
            failure_policy: Some(if actions.denies() { "Fail" } else { "Ignore" }.to_owned()),
            match_conditions: self.conditions(conditions),
            match_constraints: Some(self.constraints(part, on_create)),
            validations: Some(vec![PolicyValidation {
                expression,
                message: Some("a union is not valid".to_owned()),
                message_expression: Some(message),
                reason: Some("Invalid".to_owned()),
            }]),
            variables: Some(variables),
            ..ValidatingAdmissionPolicySpec::default()
        };
        let binding = ValidatingAdmissionPolicyBindingSpec {
            policy_name: name.clone(),
            validation_actions: actions.names().iter().map(|name| (*name).to_owned()).collect(),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        };
        self.push([
            PolicyObject::ValidatingPolicy(
                Box::new(ValidatingAdmissionPolicy {
                    metadata: self.metadata(&name),
                    spec: Some(spec),
                    ..ValidatingAdmissionPolicy::default()
                }),
                comments,
            ),
            PolicyObject::ValidatingBinding(Box::new(ValidatingAdmissionPolicyBinding {
                metadata: self.metadata(&name),
                spec: binding,
            })),
        ]);
    }

    /// Adds a policy and its binding, unless an API server could not store them.
    fn push(&mut self, objects: [PolicyObject; 2]) {
        let size: usize = objects.iter().map(|object| object.to_json().to_string().len()).sum();
        if size > LARGEST_POLICY {
            return self.refuse(None, &RefusalReason::TooLong);
        }
        self.compiled.objects.extend(objects);
    }

    /// Returns the name of a policy; reports that there is none.
    fn name(&mut self, part: Part, work: Work) -> Option<String> {
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

    fn metadata(&self, name: &str) -> ObjectMeta {
        let labels = self.options.labels.clone();
        ObjectMeta {
            name: Some(name.to_owned()),
            labels: (!labels.is_empty()).then_some(labels),
            ..ObjectMeta::default()
        }
    }

    /// Returns the conditions for the version of a request and for what it changed.
    fn conditions(&self, changed: Vec<RequestCondition>) -> Option<Vec<MatchCondition>> {
        // Several kinds have no such versions.
        let of_version = self.targets.iter().find_map(|target| match &target.scope {
            VersionScope::AllExcept(others) if !others.is_empty() => {
                Some(format!("!(request.requestKind.version in {})", texts(others.iter().copied())))
            }
            // The rule names the versions.
            VersionScope::AllExcept(_) | VersionScope::Only(_) | VersionScope::TooMany(_) => None,
        });
        let of_version = of_version
            .map(|expression| RequestCondition { name: "the-version-has-these-unions".to_owned(), expression });
        let conditions: Vec<_> = of_version
            .into_iter()
            .chain(changed)
            .map(|RequestCondition { name, expression }| MatchCondition { expression, name })
            .collect();
        (!conditions.is_empty()).then_some(conditions)
    }

    /// Returns the requests that a policy sees.
    fn constraints(&self, part: Part, on_create: bool) -> MatchResources {
        let operations = if on_create && part == Part::Main { ["CREATE", "UPDATE"].as_slice() } else { &["UPDATE"] };
        let not_in = |key: &str, values: Vec<String>| LabelSelectorRequirement {
            key: key.to_owned(),
            operator: "NotIn".to_owned(),
            values: Some(values),
        };
        let mut namespaces = vec![not_in(EXEMPT_LABEL, vec!["disabled".to_owned()])];
        if !self.options.excluded_namespaces.is_empty() {
            let mut excluded = self.options.excluded_namespaces.clone();
            excluded.sort();
            excluded.dedup();
            namespaces.push(not_in("kubernetes.io/metadata.name", excluded));
        }
        let mut match_policy = "Equivalent";
        // The groups and the resources of the kinds with the same versions.
        let mut rules: BTreeMap<Vec<String>, [BTreeSet<String>; 2]> = BTreeMap::new();
        for target in &self.targets {
            let versions = match &target.scope {
                VersionScope::Only(versions) => {
                    match_policy = "Exact";
                    versions.iter().map(|&version| version.to_owned()).collect()
                }
                VersionScope::AllExcept(_) | VersionScope::TooMany(_) => vec![target.gvk.version.to_string()],
            };
            let subresource = if part == Part::Status { "/status" } else { "" };
            let [groups, resources] = rules.entry(versions).or_default();
            groups.insert(target.gvk.group.to_string());
            resources.insert(format!("{}{subresource}", target.plural));
        }
        let rule = |(versions, [groups, resources]): (Vec<String>, [BTreeSet<String>; 2])| NamedRuleWithOperations {
            api_groups: Some(groups.into_iter().collect()),
            api_versions: Some(versions),
            operations: Some(operations.iter().map(|it| (*it).to_owned()).collect()),
            resources: Some(resources.into_iter().collect()),
            scope: Some("*".to_owned()),
            ..NamedRuleWithOperations::default()
        };
        MatchResources {
            match_policy: Some(match_policy.to_owned()),
            namespace_selector: Some(LabelSelector { match_expressions: Some(namespaces), ..LabelSelector::default() }),
            // The API server would fill in this selector and the scope. Written out, no tool reports a difference.
            object_selector: Some(LabelSelector::default()),
            resource_rules: Some(rules.into_iter().map(rule).collect()),
            ..MatchResources::default()
        }
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
