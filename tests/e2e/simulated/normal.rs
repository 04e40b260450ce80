//! Answers without what differs between two API servers: versions, UIDs, times, managed fields, addresses.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The versions of objects on both sides that mean the same write.
#[derive(Default)]
pub(super) struct Versions {
    simulated_of: BTreeMap<String, String>,
    real_of: BTreeMap<String, String>,
}

impl Versions {
    /// Replaces the versions in the answer of the simulated server by those of the real one. A version that is not the same write on
    /// both sides stays different.
    pub(super) fn align(&mut self, real: &Value, simulated: &mut Value) {
        match (real, simulated) {
            (Value::Object(real), Value::Object(simulated)) => {
                for (name, simulated) in simulated {
                    match (real.get(name), &*simulated) {
                        (Some(Value::String(real)), Value::String(version)) if name == "resourceVersion" => {
                            *simulated = self.aligned(real, &version.clone()).into();
                        }
                        (Some(real), _) => self.align(real, simulated),
                        (None, _) => {}
                    }
                }
            }
            (Value::Array(real), Value::Array(simulated)) if real.len() == simulated.len() => {
                real.iter().zip(simulated).for_each(|(real, simulated)| self.align(real, simulated));
            }
            _ => {}
        }
    }

    fn aligned(&mut self, real: &str, simulated: &str) -> String {
        let is_same = match (self.simulated_of.get(real), self.real_of.get(simulated)) {
            (None, None) => true,
            (known, _) => known.is_some_and(|known| known == simulated),
        };
        // After a difference, both go on from here.
        self.simulated_of.insert(real.to_owned(), simulated.to_owned());
        self.real_of.insert(simulated.to_owned(), real.to_owned());
        if is_same { real.to_owned() } else { "the version of another write".to_owned() }
    }
}

/// Fields whose value is a time.
const TIMES: [&str; 5] = ["creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time", "renewTime"];

/// Returns an answer in its normal form.
pub(super) fn normal(body: &Value) -> Value {
    normalized("", body)
}

fn normalized(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) if name == "metadata" => metadata(fields),
        Value::Object(fields) => object(fields),
        Value::Array(items) => items.iter().map(|item| normalized("", item)).collect(),
        Value::String(text) if name == "message" => words(text).into(),
        Value::String(_) if TIMES.contains(&name) => json!("a time"),
        Value::String(_) if name == "uid" => json!("a UID"),
        Value::String(text) if name == "clusterIP" && text != "None" => json!("an address"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn object(fields: &Map<String, Value>) -> Value {
    let mut all = Map::new();
    for (name, value) in sorted(fields) {
        match &**name {
            "managedFields" => {}
            // Go's maps have no order.
            "causes" => {
                let mut causes = normalized(name, value);
                if let Some(causes) = causes.as_array_mut() {
                    causes.sort_by_key(Value::to_string);
                }
                all.insert(name.clone(), causes);
            }
            "clusterIPs" => {
                all.insert(name.clone(), json!("addresses"));
            }
            _ => {
                all.insert(name.clone(), normalized(name, value));
            }
        }
    }
    all.into()
}

fn metadata(fields: &Map<String, Value>) -> Value {
    // A list's own version is that of the whole storage.
    let is_of_list = !fields.contains_key("name");
    let mut all = Map::new();
    for (name, value) in sorted(fields) {
        let value = match (&**name, value) {
            ("managedFields", _) => continue,
            ("resourceVersion", Value::String(_)) if is_of_list => json!("a version"),
            ("resourceVersion", version) => version.clone(),
            ("continue", token) if token != "" => json!("a token"),
            ("name", Value::String(text)) => generated(text).into(),
            ("ownerReferences", Value::Array(owners)) => owners.iter().map(|it| normalized("", it)).collect(),
            ("labels" | "annotations", Value::Object(_)) => value.clone(),
            (name, value) => normalized(name, value),
        };
        all.insert(name.clone(), value);
    }
    all.into()
}

fn sorted(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut all: Vec<_> = fields.iter().collect();
    all.sort_by_key(|(name, _)| *name);
    all
}

/// Returns a name without the part that the API server has generated.
fn generated(name: &str) -> String {
    match name.strip_prefix("generated-") {
        Some(_) => "generated".to_owned(),
        None => name.to_owned(),
    }
}

/// Returns a message without numbers and UIDs.
pub(super) fn words(text: &str) -> String {
    let mut result = String::new();
    for word in text.split_inclusive(|character: char| !character.is_ascii_alphanumeric() && character != '-') {
        let core = word.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
        let rest = word.get(core.len()..).unwrap_or_default();
        let is_uid = core.len() == 36 && core.matches('-').count() == 4;
        let is_number = core.len() > 1 && core.chars().all(|character| character.is_ascii_digit());
        if is_uid || is_number {
            result.push('#');
        } else if core.starts_with("generated-") {
            result.push_str("generated");
        } else {
            result.push_str(core);
        }
        result.push_str(rest);
    }
    result
}
