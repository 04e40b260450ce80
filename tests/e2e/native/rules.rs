//! The rows of `tests/cases` through rules in CRDs, in CEL and in keywords, and the limits of rules: the API server accepts every CRD that `compile` gives
//! rules, and what `compile` refuses, it would refuse.

mod cluster;
pub(super) mod keywords;
mod limits;

use super::player::{Installed, Installer, Played, play, same_causes};
use super::{Api, Native, policies_of};
use crate::support::cluster::some_or_all;
use crate::support::http::Answer;
use fixtures::cases::Alone;
use fixtures::reviews::Cause;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::Plan;
use kube_unions_policies::{CompiledRules, PolicyOptions, PolicyRatcheting, RuleForm, RulesTarget, compile_rules};
use serde_json::Value;

/// Rules in the CRD.
struct Rules {
    form: RuleForm,
    /// True if a mutating policy normalises before.
    mutate: bool,
}

impl Installer for Rules {
    fn group(&self) -> &'static str {
        match (self.form, self.mutate) {
            (RuleForm::Cel, true) => "mutated.rules.example",
            (RuleForm::Cel, false) => "rules.example",
            (RuleForm::OpenApi | RuleForm::JsonSchema, _) => "keywords.example",
        }
    }

    fn compile(&self, played: &Played<'_>) -> Result<Installed, String> {
        if played.suite.phase == Some(Alone::Mutate) {
            return Err("the row is played without validation".to_owned());
        }
        let mutate = self.mutate && played.suite.phase != Some(Alone::Validate);
        let ratcheting = if played.ratchet { PolicyRatcheting::Enabled } else { PolicyRatcheting::Disabled };
        let rules = self.form;
        let options = PolicyOptions { mutate, validate: false, ratcheting, rules, ..PolicyOptions::default() };
        let mut definition = played.subject.definition.clone();
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for entry in played.subject.catalog.entries() {
            let compiled = embed(schema, entry.gvk(), entry.plan(), &options);
            if let Some(refusal) = compiled.refusals.first() {
                return Err(refusal.to_string());
            }
        }
        let policies = if mutate { policies_of(&played.subject.catalog, &options)? } else { Vec::new() };
        Ok(Installed { definition, policies })
    }

    /// Beside mutating policies, the forms of unions stand for all rows: what is mutated is that of `policies`.
    fn plays(&self, path: &str) -> bool {
        let forms = ["map-form/", "list-form/", "ratcheting/"];
        some_or_all(!self.mutate || forms.iter().any(|folder| path.starts_with(folder)), true)
    }

    /// A keyword names neither a member nor a value.
    fn same_causes(&self, answer: &Answer, wanted: &[Cause]) -> Result<(), String> {
        match self.form {
            RuleForm::OpenApi if answer.status == 422 && !wanted.is_empty() => Ok(()),
            RuleForm::Cel | RuleForm::OpenApi | RuleForm::JsonSchema => same_causes(answer, wanted),
        }
    }

    /// Rules tell nothing of what they let through.
    fn same_warnings(&self, _: &Answer, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

/// Puts the rules of a plan into a schema.
fn embed(schema: &mut Value, gvk: &GroupVersionKind, plan: &Plan, options: &PolicyOptions) -> CompiledRules {
    let compiled = compile_rules(&RulesTarget { gvk, plan, schema }, options);
    compiled.apply(schema);
    compiled
}

/// Asks the API server if it would accept a CRD.
fn ask(native: &Api, definition: &Value) -> Answer {
    native.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", definition)
}

#[test]
fn the_rows_hold_through_rules_except_the_listed_ones() {
    let Some(native) = Native::start() else { return };
    play(&native, &Rules { form: RuleForm::Cel, mutate: false }, "rules");
}

#[test]
fn the_rows_hold_through_rules_beside_mutating_policies_except_the_listed_ones() {
    let Some(native) = Native::start() else { return };
    play(&native, &Rules { form: RuleForm::Cel, mutate: true }, "rules-and-mutation");
}

#[test]
fn the_rows_hold_through_keywords_except_the_listed_ones() {
    let Some(native) = Native::start() else { return };
    play(&native, &Rules { form: RuleForm::OpenApi, mutate: false }, "keywords");
}
