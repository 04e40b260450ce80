//! What an API server refuses in the expressions of rules: texts that are not CEL, fields that the schema does not describe, and results
//! of another type. It knows more types and functions than this module, which tells only what is surely refused.

use crate::candidates::objects;
use crate::env::{CelEnv, NOT_CEL, Parsed, children};
use crate::node::SchemaNode;
use crate::rule::{OLD, RULES};
use crate::scene::FieldSelection;
use crate::table::{with_names, with_stack};
use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use kube_unions_core::schema::PlaceStep;
use kube_unions_core::schema::cel_name::unescape;
use serde_json::Value;

/// The results of these are conditions, whatever their operands are.
const CONDITIONS: [&str; 11] = [
    op::LOGICAL_AND,
    op::LOGICAL_OR,
    op::LOGICAL_NOT,
    op::EQUALS,
    op::NOT_EQUALS,
    op::IN,
    op::LESS,
    op::LESS_EQUALS,
    op::GREATER,
    op::GREATER_EQUALS,
    "matches",
];

const BOOLEAN: &str = "a boolean";
const STRING: &str = "a string";
const INTEGER: &str = "an integer";

/// An expression that an API server refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedExpression {
    /// The tokens of the JSON Pointer of the node with the rule.
    pub node: Vec<String>,
    /// The tokens that lead from there to the expression.
    pub expression: [String; 3],
    /// The fault, and how to repair it.
    pub message: String,
}

/// An expression, and the object that it judges.
struct RuleExpression<'s> {
    node: SchemaNode<'s>,
    is_root: bool,
    /// True if `oldSelf` is the object before the update, and not an optional one.
    has_old: bool,
}

impl RefusedExpression {
    /// Returns the expressions of a schema that an API server refuses. None, if the schema is nested too deeply for memory.
    pub fn find(schema: &Value) -> Vec<Self> {
        with_stack(|| Self::of(schema)).unwrap_or_default()
    }

    fn of(schema: &Value) -> Vec<Self> {
        let (env, schema) = (CelEnv::new(), with_names(schema));
        let mut found = Vec::new();
        for object in objects(&schema).0 {
            let is_root = object.place.steps().is_empty();
            for (index, rule) in object.node.list(RULES).iter().map(SchemaNode).enumerate() {
                let judged = RuleExpression { node: object.node, is_root, has_old: !rule.flag("optionalOldSelf") };
                for (keyword, result) in [("rule", BOOLEAN), ("messageExpression", STRING)] {
                    let text = rule.text(keyword).filter(|text| !text.trim().is_empty());
                    if let Some(fault) = text.and_then(|text| judged.fault(text, keyword, result, &env)) {
                        let node = object.place.steps().iter().flat_map(tokens).collect();
                        let expression = [RULES.to_owned(), index.to_string(), keyword.to_owned()];
                        found.push(Self { node, expression, message: format!("the API server refuses {fault}") });
                    }
                }
            }
        }
        found
    }
}

impl RuleExpression<'_> {
    fn fault(&self, text: &str, keyword: &str, result: &str, env: &CelEnv) -> Option<String> {
        let parsed = env.parse(text);
        let expression = match &*parsed {
            Parsed::Expression(expression) => expression,
            Parsed::Transition => return None,
            Parsed::Unreadable(why) => {
                let why = why.strip_prefix(NOT_CEL)?;
                return Some(format!("this `{keyword}`, which is not CEL{why}; correct it"));
            }
        };
        if let Some(field) = self.unknown_field(expression) {
            return Some(format!(
                "`{field}` in this `{keyword}`: the schema does not describe the field; correct the name, or describe the field"
            ));
        }
        let other = self.type_of(expression).filter(|it| *it != result)?;
        Some(format!("a `{keyword}` whose result is {other}; make it {result}"))
    }

    /// Returns the path to the first field that the schema does not describe.
    fn unknown_field(&self, expression: &IdedExpr) -> Option<String> {
        let selection = if let Expr::Select(select) = &expression.expr
            && select.test
        {
            FieldSelection::of(&select.operand).map(|mut selection| {
                selection.fields.push((&select.field, false));
                selection
            })
        } else {
            FieldSelection::of(expression)
        };
        if let Some(selection) = selection {
            return self.unknown_in(&selection);
        }
        children(&expression.expr).into_iter().find_map(|part| self.unknown_field(part))
    }

    fn unknown_in(&self, selection: &FieldSelection<'_>) -> Option<String> {
        if selection.variable != "self" && !(selection.variable == OLD && self.has_old) {
            return None;
        }
        let mut node = self.node;
        for (length, name) in selection.names().into_iter().enumerate() {
            // Every object has its type and its name.
            let is_of_every = (self.is_root && length == 0) || node.flag("x-kubernetes-embedded-resource");
            if is_of_every && matches!(name, "apiVersion" | "kind" | "metadata") {
                return None;
            }
            if !node.has_properties() || node.type_name() != Some("object") || node.map_values().is_some() {
                return None;
            }
            let Some(below) = unescape(name).and_then(|name| node.property(&name)) else {
                let path = selection.names().into_iter().take(length.saturating_add(1));
                return Some([selection.variable].into_iter().chain(path).collect::<Vec<_>>().join("."));
            };
            node = below;
        }
        None
    }

    /// Returns the type of a result, if it is surely this one.
    fn type_of(&self, expression: &IdedExpr) -> Option<&'static str> {
        match &expression.expr {
            Expr::Literal(literal) => Some(match literal {
                LiteralValue::Boolean(_) => BOOLEAN,
                LiteralValue::Bytes(_) => "bytes",
                LiteralValue::Double(_) => "a number",
                LiteralValue::Int(_) | LiteralValue::UInt(_) => INTEGER,
                LiteralValue::Null => "null",
                LiteralValue::String(_) => STRING,
            }),
            Expr::List(_) => Some("a list"),
            Expr::Map(_) => Some("a map"),
            Expr::Select(select) if select.test => Some(BOOLEAN),
            Expr::Select(_) | Expr::Ident(_) => self.type_of_field(expression),
            Expr::Call(call) => self.type_of_call(call),
            Expr::Comprehension(it) => {
                let is_accumulated = matches!(&it.result.expr, Expr::Ident(name) if *name == it.accu_var);
                is_accumulated.then(|| self.type_of(&it.accu_init)).flatten()
            }
            Expr::Struct(_) | Expr::Unspecified => None,
        }
    }

    fn type_of_call(&self, call: &CallExpr) -> Option<&'static str> {
        match (call.func_name.as_str(), &*call.args) {
            (name, _) if CONDITIONS.contains(&name) => Some(BOOLEAN),
            ("size", _) => Some(INTEGER),
            ("string", [_]) if call.target.is_none() => Some(STRING),
            (op::ADD, [one, other]) | (op::CONDITIONAL, [_, one, other]) => {
                let (one, other) = (self.type_of(one)?, self.type_of(other)?);
                (one == other).then_some(one)
            }
            _ => None,
        }
    }

    fn type_of_field(&self, expression: &IdedExpr) -> Option<&'static str> {
        let selection = FieldSelection::plain(expression)?;
        if selection.variable != "self" {
            return None;
        }
        let mut fields = selection.names().into_iter();
        let node = fields.try_fold(self.node, |node, name| node.property(&unescape(name)?))?;
        match node.type_name()? {
            "string" if node.text("format").is_none() => Some(STRING),
            "integer" => Some(INTEGER),
            "number" => Some("a number"),
            "boolean" => Some(BOOLEAN),
            "array" => Some("a list"),
            "object" if node.has_properties() => Some("an object"),
            _ => None,
        }
    }
}

fn tokens(step: &PlaceStep) -> Vec<String> {
    match step {
        PlaceStep::Property(name) => vec!["properties".to_owned(), name.to_string()],
        PlaceStep::Items => vec!["items".to_owned()],
        PlaceStep::Values => vec!["additionalProperties".to_owned()],
    }
}
