//! Values that the chart refuses, and what it says.

use serde::Deserialize;
use serde_json::Value;

use super::helm::Helm;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    values: Value,
    /// A text of standard error.
    says: String,
}

#[test]
fn wrong_values_are_refused_and_the_message_names_them() {
    let Some(helm) = Helm::offline() else { return };
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("refusals.yaml")).unwrap();
    for row in rows {
        helm.template(&row.values, &[]).refused(&row.says);
    }
}
