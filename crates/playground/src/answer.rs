//! The answer to a question.

use crate::described::DescribedKind;
use crate::inputs::{PlaygroundInputs, PlaygroundProblem, Question};
use crate::verdict::{ReviewVerdict, Reviewed, review};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::causes::with_causes;
use kube_unions_core::union::{Choice, SelectedMember, Union};
use kube_unions_manifests::{to_yaml, union_details};
use kube_unions_policies::{CompiledKinds, PolicyObject, PolicyOptions};
use serde::Serialize;
use serde_json::{Value, json};

/// The results that the page shows, in the shape of the interface `Answer` in `site/src/answer.ts`. A part that cannot be computed
/// is missing, and a problem says why.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Problems with the inputs, sorted by input and position.
    pub problems: Vec<PlaygroundProblem>,
    /// False if the text of an input cannot be read: perhaps a line is half written.
    pub is_readable: bool,
    /// The verdict.
    pub verdict: ReviewVerdict,
    /// The unions of each kind.
    pub unions: Vec<Value>,
    /// The review of the write.
    #[serde(flatten)]
    pub reviewed: Reviewed,
    /// The strategic merge patch from the old object to the new one, or the reason why there is none.
    pub strategic_patch: Option<Value>,
    /// The policies of all kinds.
    pub policies: Option<Value>,
}

impl Question {
    /// Answers the question.
    pub fn answer(&self) -> Answer {
        let mut inputs = PlaygroundInputs::read(self);
        let mut problems = std::mem::take(&mut inputs.problems);
        let mut reviewed = match review(&inputs).transpose() {
            Ok(reviewed) => reviewed.unwrap_or_default(),
            Err(problem) => {
                problems.push(problem);
                Reviewed::default()
            }
        };
        problems.sort_by_key(|problem| (problem.input, problem.line, problem.column));
        let catalog = &inputs.kinds.catalog;
        Answer {
            verdict: ReviewVerdict::shown(reviewed.verdict.take(), &inputs, &problems),
            is_readable: inputs.is_readable,
            unions: unions_of(catalog),
            policies: policies_of(catalog),
            strategic_patch: patch_between(&inputs),
            reviewed,
            problems,
        }
    }
}

impl Answer {
    /// Returns an answer that is only a problem.
    pub fn of_problem(problem: PlaygroundProblem) -> Self {
        let message = Some(problem.to_string());
        let verdict = ReviewVerdict { message, ..ReviewVerdict::default() };
        Self { problems: vec![problem], verdict, ..Self::default() }
    }
}

/// Returns the patch between both objects as YAML, or the reason why there is none. Returns `None` unless both are given and the
/// definitions describe their kind.
fn patch_between(inputs: &PlaygroundInputs) -> Option<Value> {
    let (old, new) = (inputs.old.as_ref()?, inputs.new.as_ref()?);
    let kind = new.group_version_kind();
    let patch = DescribedKind::of(&inputs.kinds, &kind)?.patcher(&kind).and_then(|patcher| {
        let patch =
            patcher.create_two_way(old.text.as_str(), new.text.as_str()).map_err(|error| with_causes(&error))?;
        to_yaml(&patch).map_err(|error| error.to_string())
    });
    Some(patch.map_or_else(|error| json!({"error": error}), |patch| json!({"patch": patch})))
}

/// Returns the unions of each kind of a catalog, in its order.
fn unions_of(catalog: &Catalog) -> Vec<Value> {
    let entries = catalog.entries().iter();
    let kinds = entries.map(|entry| {
        let unions: Vec<Value> = entry.plan().unions().iter().map(union).collect();
        json!({"kind": entry.gvk().kind, "api_version": entry.gvk().api_version(), "unions": unions})
    });
    kinds.collect()
}

/// Returns a union with its details as `kube-unions explain` shows them, and the values of its discriminator, or its members if it
/// has no discriminator.
fn union(union: &Union) -> Value {
    let choices: Vec<Value> = if union.discriminator().is_none() {
        let member = |name| json!({"name": name, "optional": false});
        union.groups().map(|group| json!({"value": null, "members": group.map(member).collect::<Vec<_>>()})).collect()
    } else {
        let member =
            |it: &SelectedMember| json!({"name": it.name(), "optional": union_details::is_shown_optional(union, it)});
        let choices = union.choices().iter();
        let members = |choice: &Choice| choice.members().iter().map(member).collect::<Vec<_>>();
        choices.map(|choice| json!({"value": choice.value(), "members": members(choice)})).collect()
    };
    json!({"path": union.path(), "details": union_details::details(union), "choices": choices})
}

/// Compiles the unions of a catalog: the policies and bindings of all kinds as `kube-unions compile --to policies` prints them, and
/// the unions that are left out, each with the reason. `None` without unions.
fn policies_of(catalog: &Catalog) -> Option<Value> {
    if catalog.entries().is_empty() {
        return None;
    }
    let CompiledKinds { objects, refusals, kinds: _ } = CompiledKinds::of(catalog, &PolicyOptions::default());
    let documents: Vec<String> = objects.iter().map(PolicyObject::to_yaml).collect();
    let refusals: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    Some(json!({"yaml": documents.join("---\n"), "refusals": refusals}))
}
