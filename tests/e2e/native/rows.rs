//! The rows of `tests/cases` through compiled policies.

use super::Native;
use super::player::{Installed, Installer, Phase, Played, loose, play, same_policy_warnings};
use crate::http::Answer;
use kube_unions_policies::{PolicyObject, PolicyOptions, PolicyTarget, compile};

/// Mutating and validating policies.
struct Policies {
    /// True for kinds whose schema takes every object, so that nothing but the policies judges it.
    loose: bool,
}

impl Installer for Policies {
    fn group(&self) -> &'static str {
        if self.loose { "loose.rows.example" } else { "policies.rows.example" }
    }

    fn compile(&self, played: &Played<'_>) -> Result<Installed, String> {
        let options = PolicyOptions {
            mutate: played.suite.phase != Some(Phase::Validate),
            validate: played.suite.phase != Some(Phase::Mutate),
            ratchet: played.ratchet,
            ..PolicyOptions::default()
        };
        let mut policies = Vec::new();
        for target in PolicyTarget::of_catalog(&played.catalog) {
            let compiled = compile(&target, &options);
            if let Some(refusal) = compiled.refusals.first() {
                return Err(refusal.to_string());
            }
            policies.extend(compiled.objects.iter().map(PolicyObject::to_json));
        }
        let definition = if self.loose { loose(&played.definition) } else { played.definition.clone() };
        Ok(Installed { definition, policies })
    }

    fn same_warnings(&self, answer: &Answer, wanted: &[String]) -> Result<(), String> {
        same_policy_warnings(answer, wanted)
    }
}

#[test]
fn the_rows_hold_through_policies_except_the_listed_ones() {
    let Some(native) = Native::start() else { return };
    play(&native, &Policies { loose: false }, "tests/cases/native/policies.yaml");
}

#[test]
fn the_rows_hold_through_policies_where_no_schema_refuses_what_they_should_judge() {
    let Some(native) = Native::start() else { return };
    play(&native, &Policies { loose: true }, "tests/cases/native/policies-without-schema.yaml");
}
