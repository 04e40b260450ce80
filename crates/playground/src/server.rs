//! Predicts the answer of the API server without kube-unions to an object as it is written.

use crate::described::DescribedKind;
use crate::keywords::{RULES, own_keywords};
use crate::kinds::PlaygroundKinds;
use crate::verdict::{PlaygroundOutcome, ReviewVerdict, ShownCause};
use crate::write::Write;
use kube_unions_core::admission::{Phase, Ratcheting};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::union::{Part, UnionStep, Violation};
use kube_unions_manifests::Document;
use kube_unions_manifests::keyword_fit::{KeywordFit, fit};
use kube_unions_manifests::request::ReviewedObject;
use kube_unions_offline::{HelpPage, InvalidUnion, ServerSentence, refused_fields};
use serde_json::Value;
use strategic_merge_patch::{ApplyError, KUBECTL, ServerSideError, TypeFault, ValueKind};

/// The reason why the answer about a custom resource is not known.
const OWN_RULES: &str = "a rule of the CRD is about it, which `kube-unions preview` evaluates";

/// Judges an object of a write: its types, if it is of a built-in kind, and its unions, whatever their declarations do about them.
pub(crate) fn judge(
    kinds: &PlaygroundKinds,
    entry: &CatalogEntry,
    described: Option<&DescribedKind>,
    write: &Write,
    new: &Document,
) -> Result<ReviewVerdict, String> {
    let mut verdict = ReviewVerdict { is_update: write.old.is_some(), ..ReviewVerdict::default() };
    let object: Value = serde_json::from_str(&new.text).map_err(|error| error.to_string())?;
    if let Some(cause) = described.and_then(|described| misfit(described, entry, &object)) {
        verdict.outcome = PlaygroundOutcome::Denied;
        verdict.causes.push(cause);
        return Ok(verdict.titled(new));
    }
    let places = entry.plan().places(Part::Main);
    let mut seen: Vec<InvalidUnion<'_>> = Vec::new();
    let mut found: Vec<(PlaygroundOutcome, ShownCause)> = Vec::new();
    for violation in violations(kinds, entry, new)? {
        let invalid = InvalidUnion::of(entry, &violation, &object);
        // The violation of one member names all that are set.
        let is_told = |invalid: &InvalidUnion<'_>| {
            seen.iter().any(|first| first.is_too_many() && invalid.is_too_many() && first.is_same(invalid))
        };
        if invalid.as_ref().is_some_and(is_told) {
            continue;
        }
        let (outcome, message, help) = match &invalid {
            Some(invalid) if kinds.presets.is_refusing(invalid.union) => {
                let sentence = ServerSentence::of(invalid);
                let line = sentence.map(|sentence| line_at(&violation.path, sentence.line).to_owned());
                (PlaygroundOutcome::Denied, line, sentence.map(|sentence| sentence.help))
            }
            Some(invalid) => of_resource(described, invalid, &object),
            None => (PlaygroundOutcome::Undecided, None, None),
        };
        let cause = ShownCause {
            path: violation.path.to_string(),
            message: message.unwrap_or_else(|| violation.message()),
            place: write.place(&places, &violation.path),
            help: Some(help.unwrap_or(HelpPage::DENIALS).page()),
        };
        found.push((outcome, cause));
        seen.extend(invalid);
    }
    let old: Option<Value> = write.old.as_ref().and_then(|old| serde_json::from_str(&old.text).ok());
    let schema = kinds.all.built_in_schema(entry.gvk());
    let refused = schema.map(|schema| refused_fields(entry, schema, old.as_ref(), &object));
    for field in refused.into_iter().flatten() {
        let place = write.place(&places, &field.path);
        let (path, help) = (field.path.to_string(), Some(field.help.page()));
        found.push((PlaygroundOutcome::Denied, ShownCause { path, message: field.line, place, help }));
    }
    verdict.outcome = found.iter().map(|(outcome, _)| *outcome).max().unwrap_or(PlaygroundOutcome::Allowed);
    // A violation that is no reason for the answer is not told.
    let worst = verdict.outcome;
    verdict.causes.extend(found.into_iter().filter(|(outcome, _)| *outcome == worst).map(|(_, cause)| cause));
    Ok(verdict.titled(new))
}

/// Returns all violations of unions in an object.
fn violations(kinds: &PlaygroundKinds, entry: &CatalogEntry, new: &Document) -> Result<Vec<Violation>, String> {
    let created = ReviewedObject { kind: entry.gvk(), new, old: None, subresource: None, manifest: None };
    let review = created.review(&kinds.all.catalog, Phase::Validate, Ratcheting::Disabled);
    let review = review.map_err(|error| error.to_string())?;
    let let_through = review.let_through().kept().iter().map(|(violation, _)| violation);
    let all = review.violations().kept().iter().chain(let_through).chain(review.observed().kept());
    let mut all: Vec<Violation> = all.cloned().collect();
    all.sort();
    all.dedup();
    Ok(all)
}

/// Returns what does not fit the Go types of a built-in kind. Items with the same keys fit: only a server-side apply refuses them.
fn misfit(described: &DescribedKind, entry: &CatalogEntry, object: &Value) -> Option<ShownCause> {
    let engines = described.types(entry.gvk())?;
    let mut manifest = object.clone();
    manifest.as_object_mut()?.remove("status");
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    match engines.first_applied(&manifest, Value::Null, KUBECTL) {
        Err(ServerSideError::Apply(ApplyError::Type { path, fault, .. })) => {
            let path = path.to_string();
            if matches!(fault, TypeFault::Duplicate(_)) {
                return None;
            }
            let (message, help) = if let TypeFault::WrongType { found, .. } | TypeFault::Item { found, .. } = &fault {
                (format!("{}; {fault}", line_of_type(*found)), Some(HelpPage::DECODE.page()))
            } else if matches!(fault, TypeFault::UnknownField) {
                (format!("strict decoding error: unknown field \"{path}\""), None)
            } else {
                (fault.to_string(), None)
            };
            Some(ShownCause { path, message, place: None, help })
        }
        Err(ServerSideError::Apply(_) | ServerSideError::Managers(_) | ServerSideError::NoEngine) | Ok(_) => None,
    }
}

/// Returns the message of the API server about a value that it cannot decode.
fn line_of_type(found: ValueKind) -> String {
    let words = [
        (ValueKind::Boolean, "bool"),
        (ValueKind::String, "string"),
        (ValueKind::List, "array"),
        (ValueKind::Object, "object"),
    ];
    let word = words.iter().find(|(kind, _)| *kind == found).map(|(_, word)| word);
    // The message about a number may have the number.
    let number = || "json: cannot unmarshal number".to_owned();
    word.map_or_else(number, |word| format!("json: cannot unmarshal {word} into Go struct field"))
}

/// Returns a message of the API server without the path, which may be in it.
fn line_at<'l>(path: &FieldPath, line: &'l str) -> &'l str {
    line.strip_prefix(&*path.to_string()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line)
}

/// Returns the answer about a union of a custom resource, with the words and the page if they are those of the API server.
fn of_resource(
    described: Option<&DescribedKind>,
    invalid: &InvalidUnion<'_>,
    object: &Value,
) -> (PlaygroundOutcome, Option<String>, Option<HelpPage>) {
    let Some(DescribedKind::Resource { written, .. }) = described else {
        return (PlaygroundOutcome::Undecided, None, None);
    };
    let (mut worst, mut is_ruled) = (KeywordFit::Yes, false);
    let fields: Vec<&str> = invalid.union.discriminator().into_iter().chain(invalid.union.members()).collect();
    let (mut schema, tokens) = (Some(written), invalid.address.tokens(object));
    let mut value = Some(object);
    for level in 0..=invalid.steps.len() {
        let (Some(node), Some(at)) = (schema, value) else { break };
        worst = worst.and(fit(&own_keywords(node), at));
        let rules = node.get(RULES).and_then(Value::as_array).into_iter().flatten();
        let texts = rules.filter_map(|rule| rule.get("rule")?.as_str());
        is_ruled |= texts.into_iter().any(|text| fields.iter().any(|name| text.contains(name)));
        let (Some(step), Some(token)) = (invalid.steps.get(level), tokens.get(level)) else { break };
        schema = match step {
            UnionStep::Field(name) => node.get("properties").and_then(|properties| properties.get(*name)),
            UnionStep::Items { .. } => node.get("items"),
            UnionStep::Values => node.get("additionalProperties"),
        };
        value = at.get(token).or_else(|| at.get(token.parse::<usize>().ok()?));
    }
    match worst {
        KeywordFit::No => (PlaygroundOutcome::Denied, None, Some(HelpPage::ONE_OF)),
        KeywordFit::Yes if !is_ruled => (PlaygroundOutcome::StoredInvalid, None, None),
        KeywordFit::Yes | KeywordFit::Unknown => {
            let message = format!("{}; {OWN_RULES}", invalid.violation.message());
            (PlaygroundOutcome::Undecided, Some(message), Some(HelpPage::EXACTLY_ONE))
        }
    }
}
