//! The report of predictions: lines for people, JSON, or SARIF.

use super::apply_way::ApplyWay;
use super::kind_rules::ApiServerAnswer;
use super::left_behind::{LeftBehind, MemberOrigin};
use super::prediction::{Creation, PredictedFault};
use super::remedies::Remedy;
use super::renderings::PreviewCounts;
use crate::input::values::FindingsFormat;
use crate::report::conclusion::Conclusion;
use crate::report::diagnostic::painted;
use crate::report::findings;
use crate::report::json_list::JsonList;
use crate::report::output::{self, Paint};
use crate::report::sarif::{ExplainedRule, FilePlace, SarifFinding, SarifRule};
use kube_unions_command::json::present;
use kube_unions_core::declaration::Severity;
use kube_unions_offline::HelpPage;
use serde_json::{Value, json};
use strategic_merge_patch::FieldManager;

/// The rules of findings.
const RULES: [ExplainedRule; 6] = [
    (
        (
            "union-refused",
            Severity::Error,
            "The API server refuses the apply, because a union is invalid afterwards, or items have the same keys.",
        ),
        HelpPage::ERRORS,
    ),
    (
        ("union-stored-invalid", Severity::Error, "The apply stores an invalid union, and nothing refuses it."),
        HelpPage::DENIALS,
    ),
    (
        (
            "union-undecided",
            Severity::Warning,
            "A union is invalid after the apply, and it is not known whether the API server refuses it.",
        ),
        HelpPage::DENIALS,
    ),
    (
        ("null-refused", Severity::Error, "The API server refuses the null that a server-side apply leaves."),
        HelpPage::NULL,
    ),
    (
        (
            "immutable-refused",
            Severity::Error,
            "The API server refuses the apply, because it changes what no update may change.",
        ),
        HelpPage::IMMUTABLE,
    ),
    (
        (
            "object-refused",
            Severity::Error,
            "The client refuses the object, because it has no name, or because an object of its name is there that it does not update.",
        ),
        HelpPage::HOOKS,
    ),
];

fn rule_of(enforcement: &ApiServerAnswer) -> SarifRule {
    let [refused, stored, undecided, null, immutable, object] = RULES.map(|(rule, _)| rule);
    match enforcement {
        ApiServerAnswer::Refused => refused,
        ApiServerAnswer::RefusedNull => null,
        ApiServerAnswer::RefusedObject => object,
        ApiServerAnswer::Immutable => immutable,
        ApiServerAnswer::Stored => stored,
        ApiServerAnswer::Unknown(_) => undecided,
    }
}

/// Prints the report.
pub(super) fn print(
    way: ApplyWay,
    predicted: &[PredictedFault<'_>],
    format: FindingsFormat,
    counts: &PreviewCounts,
    conclusion: &Conclusion,
) -> anyhow::Result<()> {
    let json = || {
        let mut list = JsonList::begin(format!("{{\n  \"as\": \"{}\",\n  \"findings\": [", way.name()), "  ");
        predicted.iter().try_for_each(|union| list.push(&json_of(way, union)))?;
        let mut summary = serde_json::to_value(counts)?;
        if let Some(members) = summary.as_object_mut() {
            members.insert("problems".to_owned(), conclusion.problems.clone().into());
        }
        list.end(&format!(",\n  \"summary\": {summary}\n}}\n"));
        Ok(list.text)
    };
    let text = |paint| predicted.iter().map(|union| text(way, union, paint)).collect();
    let (paint, results) = (Paint::of(&std::io::stdout()), predicted.iter().map(|union| result(way, union)));
    output::print_text(findings::report(format, paint, conclusion, text, json, RULES, results)?)
}

fn place<'p>(union: &PredictedFault<'p>) -> FilePlace<'p> {
    FilePlace { file: &union.document.file, position: union.document.position(&union.pointer) }
}

/// Returns the object as messages name it.
fn title(union: &PredictedFault<'_>) -> String {
    let document = union.document;
    let namespace = document.namespace.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
    let generated = || document.generate_name().map(|start| format!("{start}…"));
    let name = document.name.clone().or_else(generated);
    format!("{} {namespace}{}", document.kind.as_deref().unwrap_or("?"), name.as_deref().unwrap_or("?"))
}

fn text(way: ApplyWay, union: &PredictedFault<'_>, paint: Paint) -> String {
    let (_, level, _) = rule_of(&union.enforcement);
    let head = paint.strong(&format!("{}:", place(union)));
    let mut lines =
        vec![format!("{head} {}: {}: {} {}", title(union), union.field, painted(level, paint), message(union))];
    lines.extend(reason(way, union));
    lines.extend(union.note.clone());
    lines.extend(union.remedies.iter().map(|remedy| format!("helps: {}", advice(way, union, remedy))));
    lines.extend(futile(way, union));
    output::line(&lines.join("\n  ")).into_owned() + "\n"
}

/// Returns what happens, in one sentence.
fn message(union: &PredictedFault<'_>) -> String {
    let violation = &union.violation;
    match &union.enforcement {
        ApiServerAnswer::Refused if union.already => format!("refused, as the old object is: {violation}"),
        ApiServerAnswer::Refused
        | ApiServerAnswer::RefusedNull
        | ApiServerAnswer::RefusedObject
        | ApiServerAnswer::Immutable => format!("refused: {violation}"),
        ApiServerAnswer::Stored => format!("stored, and nothing refuses it: {violation}"),
        ApiServerAnswer::Unknown(why) => format!("perhaps refused: {violation}; {why}"),
    }
}

/// Returns why the members are there.
fn reason(way: ApplyWay, union: &PredictedFault<'_>) -> Option<String> {
    if union.enforcement == ApiServerAnswer::RefusedObject {
        return None;
    }
    if let Some(creation) = union.creation {
        let why = match creation {
            Creation::New => "only the new rendering has the object",
            Creation::Hook => "the object is a hook",
        };
        let defaults: Vec<String> =
            union.left_behind.iter().map(|it| format!("; `{}` is a default of the API server", it.member)).collect();
        return Some(format!("{why}: it is created{}", defaults.concat()));
    }
    let left_behind = union.left_behind.iter().map(|LeftBehind { member, origin, owners }| {
        let owners: Vec<String> = owners.iter().map(|it| format!("`{}` ({})", it.name, operation(it))).collect();
        let owners = match &owners[..] {
            [] => String::new(),
            [one] => format!("; the field manager {one} owns it"),
            [_, ..] => format!("; the field managers {} own it", owners.join(", ")),
        };
        let origin = match origin {
            MemberOrigin::OldRendering => "the old rendering sets it",
            MemberOrigin::Default => "it is a default of the API server",
            MemberOrigin::LiveObject if way.is_client_side_apply() => {
                "the live object has it, and the last `kubectl apply` did not set it"
            }
            MemberOrigin::LiveObject => "the live object has it, and the old rendering does not set it",
        };
        format!("`{member}` is left behind: {origin}{owners}")
    });
    let left_behind: Vec<String> = left_behind.collect();
    (!left_behind.is_empty()).then(|| format!("{}; {} does not remove it", left_behind.join("; "), way.words()))
}

/// Returns the operation of a field manager as `metadata.managedFields` has it.
fn operation(manager: &FieldManager) -> &'static str {
    if manager.applies { "Apply" } else { "Update" }
}

fn advice(way: ApplyWay, union: &PredictedFault<'_>, remedy: &Remedy) -> String {
    match remedy {
        Remedy::KeepOne => "the new rendering alone is invalid: set the one member in it that fits".to_owned(),
        Remedy::Omit => "no null for it in the new rendering".to_owned(),
        Remedy::Null(members) => format!("{} in the new rendering", nulls(members.iter())),
        Remedy::Once(command) => format!("once, before the apply: {command}"),
        Remedy::OldOnce => {
            format!(
                "once, before the apply: the old rendering by {}, which takes over what was applied otherwise",
                way.words()
            )
        }
        Remedy::KubeUnions(_) if union.is_proposed => {
            "kube-unions on the cluster, with the declaration that `kube-unions propose` prints".to_owned()
        }
        Remedy::KubeUnions(Some(preset)) => format!("kube-unions on the cluster, with the preset `{preset}`"),
        Remedy::KubeUnions(None) => "kube-unions on the cluster".to_owned(),
        Remedy::Recreate if way == ApplyWay::Replace => "delete the object and create it".to_owned(),
        Remedy::Recreate => "delete the object and apply again".to_owned(),
    }
}

/// Names the advice that is often given and does not help here.
fn futile(way: ApplyWay, union: &PredictedFault<'_>) -> Option<String> {
    let tried = !union.left_behind.is_empty() && !union.remedies.iter().any(|it| matches!(it, Remedy::Null(_)));
    let names = union.left_behind.iter().map(|it| &it.member);
    tried.then(|| format!("does not help: {} in the new rendering, with {}", nulls(names), way.words()))
}

fn nulls<'n>(members: impl Iterator<Item = &'n String>) -> String {
    members.map(|name| format!("`{name}: null`")).collect::<Vec<_>>().join(" and ")
}

fn json_of(way: ApplyWay, union: &PredictedFault<'_>) -> Value {
    let (line, column) = place(union).position.unzip();
    let left_behind = union.left_behind.iter();
    let managers = |owners: &[FieldManager]| -> Option<Vec<Value>> {
        let all = owners.iter().map(|it| json!({"name": it.name, "operation": operation(it)})).collect();
        (!owners.is_empty()).then_some(all)
    };
    let left_behind = left_behind
        .map(|it| present(json!({"member": it.member, "origin": it.origin, "managers": managers(&it.owners)})));
    let helps = union.remedies.iter().map(|remedy| {
        let how = match remedy {
            Remedy::KeepOne => "keepOne",
            Remedy::Omit => "omit",
            Remedy::Null(_) => "null",
            Remedy::Once(_) => "patchOnce",
            Remedy::OldOnce => "oldOnce",
            Remedy::KubeUnions(_) => "kubeUnions",
            Remedy::Recreate => "recreate",
        };
        json!({"how": how, "text": advice(way, union, remedy)})
    });
    present(json!({
        "rule": rule_of(&union.enforcement).0,
        "apiVersion": union.document.api_version,
        "kind": union.document.kind,
        "namespace": union.document.namespace,
        "name": union.document.name,
        "generateName": union.document.generate_name(),
        "field": union.field,
        "message": union.violation,
        "helpUri": union.help.to_string(),
        "leftBehind": left_behind.collect::<Vec<Value>>(),
        "creates": union.creation.is_some(),
        "hook": (union.creation == Some(Creation::Hook)).then_some(true),
        "note": union.note,
        "proposed": union.is_proposed.then_some(true),
        "oldObjectIsInvalid": union.already,
        "withKubeUnions": union.with_kube_unions,
        "helps": helps.collect::<Vec<Value>>(),
        "file": union.document.file.display().to_string(),
        "line": line,
        "column": column,
    }))
}

fn result<'p>(way: ApplyWay, union: &PredictedFault<'p>) -> SarifFinding<'p> {
    let (rule, level, _) = rule_of(&union.enforcement);
    let helps = union.remedies.iter().map(|remedy| format!(". Helps: {}", advice(way, union, remedy)));
    let reason = reason(way, union).map(|reason| format!(". {reason}"));
    let note = union.note.as_ref().map(|note| format!(". {note}"));
    let message = [message(union)].into_iter().chain(reason).chain(note).chain(helps).collect();
    let full = format!("{}: {}", title(union), union.field);
    SarifFinding {
        help: Some(union.help),
        ..SarifFinding::new(rule, level, &union.field, full, message, Some(place(union)))
    }
}
