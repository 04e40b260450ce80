//! Comparisons that the bounds of a value decide, though its content is not known.
//!
//! A member that is not empty has a size of at least one, and is not `''` or `0`. The schema bounds sizes and numbers, too.

use crate::facts::{Content, Fact};
use crate::node::SchemaNode;
use crate::value;
use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// The least and the greatest value of a number. `None` is no bound.
type Bounds = (Option<i64>, Option<i64>);

/// Returns the result of a comparison with a literal. `known` returns the knowledge of a value that is surely set, or `None`.
pub(crate) fn compare<'f, 's: 'f>(call: &CallExpr, known: impl Fn(&IdedExpr) -> Option<Fact<'f, 's>>) -> Option<bool> {
    let [one, other] = &*call.args else { return None };
    let name = call.func_name.as_str();
    let is_literal = matches!(&other.expr, Expr::Literal(_)) || is_empty(other);
    let (value, literal, name) = if is_literal { (one, other, name) } else { (other, one, mirrored(name)) };
    if let Some(number) = integer(literal) {
        let bounds = match size_of(value) {
            Some(sized) => sizes(known(sized)?),
            None => numbers(known(value)?)?,
        };
        if let Some(holds) = within(name, bounds, number) {
            return Some(holds);
        }
    }
    let is_decided = matches!(name, op::EQUALS | op::NOT_EQUALS)
        && is_empty(literal)
        && sizes(known(value)?).0.is_some_and(|least| least > 0);
    is_decided.then_some(name == op::NOT_EQUALS)
}

fn mirrored(name: &str) -> &str {
    match name {
        op::LESS => op::GREATER,
        op::LESS_EQUALS => op::GREATER_EQUALS,
        op::GREATER => op::LESS,
        op::GREATER_EQUALS => op::LESS_EQUALS,
        same => same,
    }
}

/// Returns the result of a comparison of a bounded number with another one, if every number within the bounds has it.
fn within(name: &str, (least, most): Bounds, number: i64) -> Option<bool> {
    let (above, below) = (least.is_some_and(|it| it > number), most.is_some_and(|it| it < number));
    let (at_least, at_most) = (least.is_some_and(|it| it >= number), most.is_some_and(|it| it <= number));
    let decide = |holds: bool, fails: bool| (holds || fails).then_some(holds);
    match name {
        op::EQUALS => decide(at_least && at_most, above || below),
        op::NOT_EQUALS => decide(above || below, at_least && at_most),
        op::LESS => decide(below, at_least),
        op::LESS_EQUALS => decide(at_most, above),
        op::GREATER => decide(above, at_most),
        op::GREATER_EQUALS => decide(at_least, below),
        _ => None,
    }
}

/// Returns the argument of `size(value)` or `value.size()`.
fn size_of(expression: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &expression.expr else { return None };
    match (call.func_name.as_str(), call.target.as_deref(), &*call.args) {
        ("size", None, [value]) | ("size", Some(value), []) => Some(value),
        _ => None,
    }
}

fn sizes(fact: Fact<'_, '_>) -> Bounds {
    let Fact::Present(node, content) = fact else { return (None, None) };
    let keywords = match node.and_then(SchemaNode::type_name) {
        // The size of bytes is another one than that of their text.
        Some("string") if node.and_then(|node| node.text("format")).is_none_or(|it| value::of_format(it).is_none()) => {
            ["minLength", "maxLength"]
        }
        Some("array") => ["minItems", "maxItems"],
        Some("object") => ["minProperties", "maxProperties"],
        _ => ["", ""],
    };
    let [least, most] = keywords.map(|keyword| node?.get(keyword)?.as_i64());
    let not_empty = i64::from(content == Content::NotEmpty);
    (least.max(Some(not_empty)), most)
}

/// Returns the bounds of an integer, `None` if the value is none.
fn numbers(fact: Fact<'_, '_>) -> Option<Bounds> {
    let Fact::Present(Some(node), content) = fact else { return None };
    if node.type_name() != Some("integer") {
        return None;
    }
    let [least, most] = ["minimum", "maximum"].map(|keyword| node.get(keyword).and_then(Value::as_i64));
    let is_positive = content == Content::NotEmpty && least == Some(0);
    Some((if is_positive { Some(1) } else { least }, most))
}

fn integer(literal: &IdedExpr) -> Option<i64> {
    let Expr::Literal(LiteralValue::Int(number)) = &literal.expr else { return None };
    Some(*number.inner())
}

/// Returns true for `''`, `0`, `[]` and `{}`.
fn is_empty(literal: &IdedExpr) -> bool {
    match &literal.expr {
        Expr::Literal(LiteralValue::String(text)) => text.inner().is_empty(),
        Expr::Literal(LiteralValue::Int(number)) => *number.inner() == 0,
        Expr::List(list) => list.elements.is_empty(),
        Expr::Map(map) => map.entries.is_empty(),
        Expr::Unspecified
        | Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::Ident(_)
        | Expr::Literal(_)
        | Expr::Select(_)
        | Expr::Struct(_) => false,
    }
}
