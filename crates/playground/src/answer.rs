//! The answer to a question.

use crate::described::DescribedKind;
use crate::inputs::{InputName, ObjectInputs, PlaygroundInputs, PlaygroundProblem, Question};
use crate::kinds::{KindKnowledge, PlaygroundKinds};
use crate::review::{self, Reviewed};
use crate::verdict::{ObjectVerdict, PlaygroundOutcome, ReviewVerdict, VerdictLine, VerdictSummary};
use crate::write::Write;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::Severity;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Choice, SelectedMember, Union};
use kube_unions_manifests::{is_built_in_group, to_yaml, union_details};
use kube_unions_policies::{CompiledKinds, PolicyObject, PolicyOptions};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The advice on a page without inputs.
const EMPTY: &str = "paste an object, or what `helm template` prints, as the new object";

/// The results that the page shows, in the shape of the interface `Answer` in `site/src/answer.ts`. A part that cannot be computed
/// is missing, and a problem says why.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Problems with the inputs, sorted by input and position.
    pub problems: Vec<PlaygroundProblem>,
    /// False if the text of an input cannot be read: perhaps a line is half written.
    pub is_readable: bool,
    /// The verdicts on all objects.
    pub summary: VerdictSummary,
    /// The objects, if there are several.
    pub objects: Vec<ObjectVerdict>,
    /// The position of the object that the rest is about.
    pub object: Option<usize>,
    /// The verdict of the API server without kube-unions.
    pub today: ReviewVerdict,
    /// The verdict with kube-unions.
    pub verdict: ReviewVerdict,
    /// The unions of each kind.
    pub unions: Vec<Value>,
    /// The review of the write.
    #[serde(flatten)]
    pub reviewed: Reviewed,
    /// The strategic merge patch from the old object to the new one, or the reason why there is none.
    pub strategic_patch: Option<Value>,
    /// The policies of the kinds that the definitions declare.
    pub policies: Option<Value>,
}

/// Everything that is said about an object.
struct Judged {
    today: ReviewVerdict,
    with_kube_unions: ReviewVerdict,
    reviewed: Reviewed,
}

/// The descriptions of kinds, each made once.
struct DescribedKinds<'k> {
    kinds: &'k PlaygroundKinds,
    known: BTreeMap<GroupVersionKind, Option<DescribedKind>>,
}

impl DescribedKinds<'_> {
    fn of(&mut self, kind: &GroupVersionKind) -> Option<&DescribedKind> {
        let kinds = self.kinds;
        self.known.entry(kind.clone()).or_insert_with(|| kinds.described(kind)).as_ref()
    }
}

impl Question {
    /// Answers the question.
    pub fn answer(&self) -> Answer {
        let mut inputs = PlaygroundInputs::read(self);
        let mut problems = std::mem::take(&mut inputs.problems);
        let faults = [InputName::Definitions, InputName::Old].map(|input| {
            let fault = problems.iter().find(|problem| problem.input == input && problem.is_error());
            fault.map(ToString::to_string)
        });
        let mut described = DescribedKinds { kinds: &inputs.kinds, known: BTreeMap::new() };
        let mut judged: Vec<Judged> = Vec::new();
        for object in &inputs.objects {
            judged.push(match Judged::of(&inputs, object, &mut described, &faults) {
                Ok(judged) => judged,
                Err(message) => {
                    let problem =
                        PlaygroundProblem::of_document(InputName::New, Severity::Error, &object.new, "", message);
                    let unjudged = Judged::not(problem.to_string());
                    problems.push(problem);
                    unjudged
                }
            });
        }
        problems.sort_by_key(|problem| (problem.input, problem.line, problem.column));
        let mut objects: Vec<ObjectVerdict> = inputs.objects.iter().zip(&judged).map(listed).collect();
        let chosen = self.object.filter(|position| *position < judged.len()).or_else(|| worst(&objects));
        let summary = summary(&inputs, &problems, &judged, &objects);
        let kind = chosen.and_then(|position| inputs.objects.get(position));
        let strategic_patch = kind.and_then(|object| patch_between(object, &mut described));
        let kind = kind.map(|object| object.new.group_version_kind());
        let declared = inputs.kinds.declared();
        let is_declared = |kind: &&GroupVersionKind| declared.lookup(&kind.group, &kind.version, &kind.kind).is_some();
        let of_chosen = kind.as_ref().filter(|kind| !is_declared(kind)).and_then(|kind| inputs.kinds.entry(kind));
        let details = chosen.map_or_else(|| Judged::not(nothing(&problems)), |position| judged.swap_remove(position));
        if objects.len() < 2 {
            objects.clear();
        }
        Answer {
            is_readable: inputs.is_readable,
            unions: unions_of(declared.entries().iter().chain(of_chosen)),
            policies: policies_of(declared),
            object: chosen,
            today: details.today,
            verdict: details.with_kube_unions,
            reviewed: details.reviewed,
            strategic_patch,
            summary,
            objects,
            problems,
        }
    }
}

impl Answer {
    /// Returns an answer that is only a problem.
    pub fn of_problem(problem: PlaygroundProblem) -> Self {
        let verdict = ReviewVerdict::not_judged(problem.to_string());
        let summary = VerdictSummary { today: verdict.line(), with_kube_unions: verdict.line() };
        Self { problems: vec![problem], summary, today: verdict.clone(), verdict, ..Self::default() }
    }
}

impl Judged {
    /// Judges an object. `faults` are those of the definitions and of the old input.
    ///
    /// # Errors
    /// The reason why the object cannot be completed, or the apply fails.
    fn of(
        inputs: &PlaygroundInputs,
        object: &ObjectInputs,
        described: &mut DescribedKinds<'_>,
        [undefined, faulty_old]: &[Option<String>; 2],
    ) -> Result<Self, String> {
        if let Some(fault) = faulty_old {
            return Ok(Self::not(fault.clone()));
        }
        let kind = object.new.group_version_kind();
        // A definition with a fault says nothing of a built-in kind.
        let undefined = undefined.as_ref().filter(|_| !is_built_in_group(&kind.group));
        let (entry, reason) = (inputs.kinds.entry(&kind), object.knowledge.reason());
        let Some(entry) = entry.filter(|_| reason.is_none()) else {
            let reason = undefined.map(String::as_str).or(reason).unwrap_or_default();
            return Ok(Self::not(reason.to_owned()));
        };
        let described = described.of(&kind);
        let write = Write::of(&inputs.kinds, inputs.way, object, described)?;
        let ([today, with_kube_unions], reviewed) = review::judge(&inputs.kinds, entry, described, &write)?;
        let Some(undefined) = undefined else { return Ok(Self { today, with_kube_unions, reviewed }) };
        // A fault of the definitions may be that of a union that would forbid it.
        let sure = |verdict: ReviewVerdict| {
            let is_sure = verdict.outcome == PlaygroundOutcome::Denied;
            if is_sure { verdict } else { ReviewVerdict::not_judged(undefined.clone()) }
        };
        let (today, with_kube_unions) = (sure(today), sure(with_kube_unions));
        let is_sure = with_kube_unions.outcome == PlaygroundOutcome::Denied;
        Ok(Self { today, with_kube_unions, reviewed: if is_sure { reviewed } else { Reviewed::default() } })
    }

    fn not(reason: String) -> Self {
        let verdict = ReviewVerdict::not_judged(reason);
        Self { today: verdict.clone(), with_kube_unions: verdict, reviewed: Reviewed::default() }
    }
}

fn listed((object, judged): (&ObjectInputs, &Judged)) -> ObjectVerdict {
    let new = &object.new;
    let namespace = new.namespace.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
    let [kind, name] = [&new.kind, &new.name].map(|it| it.as_deref().unwrap_or("?"));
    let is_judged = judged.with_kube_unions.outcome != PlaygroundOutcome::NotJudged;
    ObjectVerdict {
        title: format!("{kind} {namespace}{name}"),
        line: new.position("").map(|(line, _)| line),
        today: judged.today.outcome,
        with_kube_unions: judged.with_kube_unions.outcome,
        reason: judged.with_kube_unions.message.clone().filter(|_| !is_judged),
        has_no_unions: matches!(object.knowledge, KindKnowledge::NoUnions(_)),
    }
}

/// Returns the position of the first object with the worst outcome.
fn worst(objects: &[ObjectVerdict]) -> Option<usize> {
    let key = |object: &ObjectVerdict| (!object.has_no_unions, object.today.max(object.with_kube_unions));
    let worst = objects.iter().map(key).max()?;
    objects.iter().position(|object| key(object) == worst)
}

/// Returns the verdicts on all objects: that of the only one, or a count.
fn summary(
    inputs: &PlaygroundInputs,
    problems: &[PlaygroundProblem],
    judged: &[Judged],
    objects: &[ObjectVerdict],
) -> VerdictSummary {
    let [today, with_kube_unions] = match judged {
        [one] if inputs.unread == 0 => [one.today.line(), one.with_kube_unions.line()],
        [] => {
            let verdict = ReviewVerdict::not_judged(nothing(problems));
            [verdict.line(), verdict.line()]
        }
        _ => [
            VerdictLine::of_all(objects, |it| it.today, inputs.unread),
            VerdictLine::of_all(objects, |it| it.with_kube_unions, inputs.unread),
        ],
    };
    VerdictSummary { today, with_kube_unions }
}

/// Returns the reason why there is no object.
fn nothing(problems: &[PlaygroundProblem]) -> String {
    let of = |input| problems.iter().find(|problem| problem.is_error() && problem.input == input);
    let fault = [InputName::New, InputName::Old, InputName::Definitions].into_iter().find_map(of);
    fault.map_or_else(|| EMPTY.to_owned(), ToString::to_string)
}

/// Returns the patch between both versions of an object as YAML, or the reason why there is none. Returns `None` unless both are given
/// and the kind is described.
fn patch_between(object: &ObjectInputs, described: &mut DescribedKinds<'_>) -> Option<Value> {
    let (old, new) = (object.old.as_ref()?, &object.new);
    let kind = new.group_version_kind();
    let patch = described.of(&kind)?.patcher(&kind).and_then(|patcher| {
        let patch =
            patcher.create_two_way(old.text.as_str(), new.text.as_str()).map_err(|error| with_causes(&error))?;
        to_yaml(&patch).map_err(|error| error.to_string())
    });
    Some(patch.map_or_else(|error| json!({"error": error}), |patch| json!({"patch": patch})))
}

/// Returns the unions of kinds.
fn unions_of<'e>(entries: impl Iterator<Item = &'e CatalogEntry>) -> Vec<Value> {
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
