//! Assembles the policies of a kind.

use crate::cel::texts;
use crate::mutation::{self, Mutation};
use crate::names::{Work, policy_name};
use crate::object::{PolicyApi, PolicyObject};
use crate::options::PolicyOptions;
use crate::refusal::{Refusal, RefusalReason};
use crate::target::{MOST_GROUPS, PolicyTarget, VersionScope};
use crate::validation::{self, Treatment, Validation};
use k8s_openapi::api::admissionregistration::v1::{
    JSONPatch, MatchCondition, MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpec, MutatingAdmissionPolicySpec, Mutation as PolicyMutation,
    NamedRuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation as PolicyValidation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use kube_unions_core::declaration::is_exempt;
use kube_unions_core::schema::Actions;
use kube_unions_core::union::{Part, Union, UnionPlace, UnionStep};

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
    let mut compiler = PolicyCompiler { target, options, compiled: CompiledPolicies::default() };
    compiler.run();
    let CompiledPolicies { objects, mut refusals } = compiler.compiled;
    refusals.sort();
    refusals.dedup();
    CompiledPolicies { objects, refusals }
}

struct PolicyCompiler<'c> {
    target: &'c PolicyTarget<'c>,
    options: &'c PolicyOptions,
    compiled: CompiledPolicies,
}

impl PolicyCompiler<'_> {
    fn run(&mut self) {
        let (target, options) = (self.target, self.options);
        let plural = (!target.plural.is_empty()).then_some(target.plural);
        if is_exempt(&target.gvk.group, plural, &target.gvk.kind) {
            return self.refuse(None, RefusalReason::ExemptKind);
        }
        if plural.is_none() {
            return self.refuse(None, RefusalReason::UnknownResource);
        }
        if let VersionScope::TooMany(groups) = target.scope {
            return self.refuse(None, RefusalReason::TooManyVersions { groups, most: MOST_GROUPS });
        }
        if options.validate && !options.server.has_validating_policies() {
            self.refuse(None, RefusalReason::NoValidation(options.server));
        }
        let parts = [Part::Main, Part::Status].map(|part| (part, target.plan.places(part)));
        let normalizes = target.plan.unions().iter().any(Union::is_normalized);
        if options.mutate && !options.server.has_mutating_policies() && normalizes {
            self.refuse(None, RefusalReason::NoMutation(options.server));
        }
        for (part, places) in parts {
            let places = self.expressible(places);
            if options.mutate && options.server.has_mutating_policies() {
                self.mutation(part, &places);
            }
            if options.validate && options.server.has_validating_policies() {
                for actions in Actions::ALL {
                    self.validation(part, &places, actions);
                }
            }
        }
    }

    fn refuse(&mut self, place: Option<String>, reason: RefusalReason) {
        self.compiled.refusals.push(Refusal { gvk: self.target.gvk.clone(), place, reason });
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
                    self.refuse(Some(union.path().to_owned()), reason.clone());
                }
                false
            })
            .collect()
    }

    fn mutation(&mut self, part: Part, places: &[UnionPlace<'_>]) {
        let Some(api) = self.options.server.mutating_api().map(PolicyApi) else { return };
        let Some(Mutation { variables, expression, on_create, condition }) = mutation::compile(part, places) else {
            return;
        };
        if variables.longest().max(expression.len()) > LONGEST_EXPRESSION {
            return self.refuse(None, RefusalReason::TooLong);
        }
        let Some(name) = self.name(part, Work::Normalize) else { return };
        let spec = MutatingAdmissionPolicySpec {
            // The API server validates built-in types itself, so nothing invalid is stored if the policy fails.
            failure_policy: Some(if self.target.custom { "Fail" } else { "Ignore" }.to_owned()),
            match_conditions: self.conditions(condition),
            match_constraints: Some(self.constraints(part, on_create)),
            mutations: Some(vec![PolicyMutation {
                json_patch: Some(JSONPatch { expression: Some(expression) }),
                patch_type: "JSONPatch".to_owned(),
                ..PolicyMutation::default()
            }]),
            // A later policy or webhook may set a member that this one has cleared.
            reinvocation_policy: Some("IfNeeded".to_owned()),
            variables: Some(variables.into_all()),
            ..MutatingAdmissionPolicySpec::default()
        };
        let binding = MutatingAdmissionPolicyBindingSpec { policy_name: Some(name.clone()), ..Default::default() };
        self.push([
            PolicyObject::MutatingPolicy(
                Box::new(MutatingAdmissionPolicy { metadata: self.metadata(&name), spec: Some(spec) }),
                api,
            ),
            PolicyObject::MutatingBinding(
                Box::new(MutatingAdmissionPolicyBinding { metadata: self.metadata(&name), spec: Some(binding) }),
                api,
            ),
        ]);
    }

    fn validation(&mut self, part: Part, places: &[UnionPlace<'_>], actions: Actions) {
        let treatment = Treatment {
            ratchet: self.options.ratchet,
            actions: self.options.actions,
            list_functions: self.options.server.has_list_functions(),
        };
        let Some(compiled) = validation::compile(part, places, actions, treatment) else { return };
        let Validation { variables, expression, message, condition } = compiled;
        if variables.longest().max(expression.len()) > LONGEST_EXPRESSION {
            return self.refuse(None, RefusalReason::TooLong);
        }
        let Some(name) = self.name(part, Work::Validate(actions)) else { return };
        let spec = ValidatingAdmissionPolicySpec {
            failure_policy: Some(if actions.denies() { "Fail" } else { "Ignore" }.to_owned()),
            match_conditions: self.conditions(condition),
            match_constraints: Some(self.constraints(part, true)),
            validations: Some(vec![PolicyValidation {
                expression,
                message: Some("a union is not valid".to_owned()),
                message_expression: Some(message),
                reason: Some("Invalid".to_owned()),
            }]),
            variables: Some(variables.into_all()),
            ..ValidatingAdmissionPolicySpec::default()
        };
        let binding = ValidatingAdmissionPolicyBindingSpec {
            policy_name: name.clone(),
            validation_actions: actions.names().iter().map(|name| (*name).to_owned()).collect(),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        };
        self.push([
            PolicyObject::ValidatingPolicy(Box::new(ValidatingAdmissionPolicy {
                metadata: self.metadata(&name),
                spec: Some(spec),
                ..ValidatingAdmissionPolicy::default()
            })),
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
            return self.refuse(None, RefusalReason::TooLong);
        }
        self.compiled.objects.extend(objects);
    }

    /// Returns the name of a policy; reports that there is none.
    fn name(&mut self, part: Part, work: Work) -> Option<String> {
        let name = policy_name(&self.options.name_prefix, self.target, part, work);
        if name.is_none() {
            self.refuse(None, RefusalReason::NoName);
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
    fn conditions(&self, changed: Option<String>) -> Option<Vec<MatchCondition>> {
        let of_version = match &self.target.scope {
            VersionScope::AllExcept(others) if !others.is_empty() => {
                Some(format!("!(request.requestKind.version in {})", texts(others.iter().copied())))
            }
            // The rule names the versions.
            VersionScope::AllExcept(_) | VersionScope::Only(_) | VersionScope::TooMany(_) => None,
        };
        let named = [(of_version, "the-version-has-these-unions"), (changed, "a-union-may-have-changed")];
        let conditions: Vec<_> = named
            .into_iter()
            .filter_map(|(expression, name)| Some(MatchCondition { expression: expression?, name: name.to_owned() }))
            .collect();
        (!conditions.is_empty()).then_some(conditions)
    }

    /// Returns the requests that a policy sees.
    fn constraints(&self, part: Part, on_create: bool) -> MatchResources {
        let gvk = self.target.gvk;
        let (resource, on_create) = match part {
            Part::Main => (self.target.plural.to_owned(), on_create),
            Part::Status => (format!("{}/status", self.target.plural), false),
        };
        let operations = if on_create { ["CREATE", "UPDATE"].as_slice() } else { &["UPDATE"] };
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
        let (match_policy, versions) = match &self.target.scope {
            VersionScope::Only(versions) => ("Exact", versions.iter().map(|&version| version.to_owned()).collect()),
            VersionScope::AllExcept(_) | VersionScope::TooMany(_) => ("Equivalent", vec![gvk.version.to_string()]),
        };
        MatchResources {
            match_policy: Some(match_policy.to_owned()),
            namespace_selector: Some(LabelSelector { match_expressions: Some(namespaces), ..LabelSelector::default() }),
            // The API server would fill in this selector and the scope. Written out, no tool reports a difference.
            object_selector: Some(LabelSelector::default()),
            resource_rules: Some(vec![NamedRuleWithOperations {
                api_groups: Some(vec![gvk.group.to_string()]),
                api_versions: Some(versions),
                operations: Some(operations.iter().map(|it| (*it).to_owned()).collect()),
                resources: Some(vec![resource]),
                scope: Some("*".to_owned()),
                ..NamedRuleWithOperations::default()
            }]),
            ..MatchResources::default()
        }
    }
}

/// Returns the first name of a place and its unions that an expression or a JSON Patch cannot carry.
fn unprintable<'p>(place: &UnionPlace<'p>) -> Option<&'p str> {
    let steps = place.steps.iter().flat_map(|step| match step {
        UnionStep::Field(name) => vec![*name],
        UnionStep::Items { keys } => keys.clone(),
        UnionStep::Values => Vec::new(),
    });
    let fields = place.unions.iter().flat_map(|union| union.members().chain(union.discriminator()));
    steps.chain(fields).find(|name| name.is_empty() || name.contains(char::is_control))
}
