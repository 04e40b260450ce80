//! Conditions of ours that an API server refuses. It refuses the whole configuration with them, so their entries go without.

use super::stored::{TOUCHES, entries, name_of};
use kube::core::Status;
use serde_json::Value;

/// Longest reason in the log, in bytes.
const LONGEST_REASON: usize = 512;

/// A condition that an API server refuses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RefusedCondition {
    /// The name of the entry.
    pub(super) entry: String,
    pub(super) expression: String,
    /// The API server's words.
    pub(super) reason: String,
}

/// Returns the conditions of ours in a configuration that was sent for which the API server refused it.
pub(super) fn refused_conditions(sent: &Value, status: &Status) -> Vec<RefusedCondition> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let refused = causes.filter_map(|cause| {
        // For example `webhooks[3].matchConditions[0].expression`.
        let (entry, rest) = cause.field.strip_prefix("webhooks[")?.split_once("].matchConditions[")?;
        let entry = entries(sent).get(entry.parse::<usize>().ok()?)?;
        let condition = entry.get("matchConditions")?.get(rest.split_once(']')?.0.parse::<usize>().ok()?)?;
        let expression = condition.get("expression").filter(|_| name_of(condition) == Some(TOUCHES))?;
        let expression = expression.as_str()?.to_owned();
        let reason = cause.message.split_once("compilation failed: ").map_or(&*cause.message, |(_, reason)| reason);
        // The lines below quote the expression.
        let reason = reason.lines().next().unwrap_or_default();
        let reason = reason.get(..reason.floor_char_boundary(LONGEST_REASON)).unwrap_or_default().to_owned();
        Some(RefusedCondition { entry: name_of(entry)?.to_owned(), expression, reason })
    });
    refused.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Rows: the field of a cause, and the entry whose condition it is about, if that is ours.
    #[test]
    fn only_causes_about_our_own_conditions_count() {
        let condition = |name: &str| json!({"name": name, "expression": "1"});
        let sent = json!({"webhooks": [
            {"name": "of.others.example", "matchConditions": [condition("theirs")]},
            {"name": "mutate.kube-unions.dev", "matchConditions": [condition("of-a-user"), condition(TOUCHES)]},
        ]});
        for (field, want) in [
            ("webhooks[1].matchConditions[1].expression", Some("mutate.kube-unions.dev")),
            ("webhooks[1].matchConditions[1]", Some("mutate.kube-unions.dev")),
            ("webhooks[1].matchConditions[0].expression", None),
            ("webhooks[0].matchConditions[0].expression", None),
            ("webhooks[2].matchConditions[0].expression", None),
            ("webhooks[1].rules[0].resources", None),
            ("webhooks", None),
        ] {
            let causes = json!([{"reason": "FieldValueInvalid", "field": field,
                "message": "Invalid value: \"1\": compilation failed: must evaluate to bool\n | 1\n | ^"}]);
            let status = json!({"status": "Failure", "code": 422, "details": {"causes": causes}});
            let found = refused_conditions(&sent, &serde_json::from_value(status).unwrap());
            let want = want.map(|entry| RefusedCondition {
                entry: entry.to_owned(),
                expression: "1".to_owned(),
                reason: "must evaluate to bool".to_owned(),
            });
            assert_eq!(found, Vec::from_iter(want), "{field}");
        }
    }
}
