//! Match conditions of webhooks, in CEL.

use cel::objects::{Key, Map};
use cel::{Context, Env, Program, Value as CelValue};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread;

/// The stack of the parser, whose recursion is deep.
const STACK: usize = 256 << 20;

/// The result of an entry's conditions for a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Matched {
    /// All are true.
    Yes,
    /// One is false.
    No,
    /// None is false, and some fail.
    Failed(String),
}

/// Conditions that were compiled. It grows with the conditions that configurations have had.
pub(crate) struct Conditions {
    env: Arc<Env>,
    programs: BTreeMap<String, Result<Arc<Program>, String>>,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { env: Arc::new(Env::stdlib().with_optional_support(true)), programs: BTreeMap::new() }
    }
}

impl Conditions {
    /// Compiles an expression.
    pub(crate) fn compile(&mut self, expression: &str) -> Result<Arc<Program>, String> {
        if let Some(known) = self.programs.get(expression) {
            return known.clone();
        }
        let (env, text) = (Arc::clone(&self.env), expression.to_owned());
        // The caller waits, so nothing runs beside it.
        let parser =
            thread::Builder::new().stack_size(STACK).spawn(move || env.compile(&text).map_err(|it| it.to_string()));
        let compiled = parser
            .map_err(|error| error.to_string())
            .and_then(|parser| parser.join().unwrap_or_else(|_| Err("the parser panicked".to_owned())));
        let compiled = compiled.map(Arc::new);
        self.programs.insert(expression.to_owned(), compiled.clone());
        compiled
    }

    /// Judges the conditions of an entry, as a real API server does: one that is false decides, also if others fail.
    pub(crate) fn judge(&mut self, conditions: &[Value], variables: &[(&str, &Value)]) -> Matched {
        let mut context = Context::with_env(Arc::clone(&self.env));
        for (name, value) in variables {
            context.add_variable_from_value(*name, cel_value(value));
        }
        let mut errors = Vec::new();
        for condition in conditions {
            let expression = condition.get("expression").and_then(Value::as_str).unwrap_or_default();
            let result = self.compile(expression).and_then(|program| {
                program
                    .execute(&context)
                    .map_err(|error| format!("expression '{expression}' resulted in error: {error}"))
            });
            match result {
                Ok(CelValue::Bool(true)) => {}
                Ok(CelValue::Bool(false)) => return Matched::No,
                Ok(_) => errors.push(format!("expression '{expression}' is no bool")),
                Err(error) => errors.push(error),
            }
        }
        match errors.as_slice() {
            [] => Matched::Yes,
            [error] => Matched::Failed(error.clone()),
            errors => Matched::Failed(format!("[{}]", errors.join(", "))),
        }
    }
}

/// Returns JSON as CEL has it. Whole numbers are `int`.
fn cel_value(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| CelValue::Float(number.as_f64().unwrap_or_default()), CelValue::Int)
        }
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(cel_value).collect())),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (Key::String(Arc::new(name.clone())), cel_value(value)));
            CelValue::Map(Map { map: Arc::new(fields.collect::<HashMap<_, _>>()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_condition_that_is_false_decides() {
        let mut conditions = Conditions::default();
        let object = json!({"spec": {"replicas": 3}});
        let mut judge = |expressions: &[&str]| {
            let all: Vec<Value> = expressions.iter().map(|it| json!({"name": "n", "expression": it})).collect();
            conditions.judge(&all, &[("object", &object), ("oldObject", &Value::Null)])
        };
        assert_eq!(judge(&["object.spec.replicas > 2", "oldObject == null"]), Matched::Yes);
        assert_eq!(judge(&["object.nothing", "false"]), Matched::No);
        assert!(matches!(judge(&["true", "object.nothing == 1"]), Matched::Failed(_)));
        assert_eq!(judge(&["object.?nothing.?deep.orValue(1) == 1"]), Matched::Yes);
    }
}
