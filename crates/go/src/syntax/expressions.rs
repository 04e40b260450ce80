//! Reads the expressions of constants, as far as strings need them.

use super::DEEPEST;
use super::source::{SourceText, operands};
use crate::quoting::unquote;
use crate::types::{ConstantExpression, Type};
use tree_sitter::Node;

impl SourceText<'_> {
    pub(super) fn expression(&self, node: Node<'_>, depth: usize) -> ConstantExpression {
        if depth > DEEPEST {
            return ConstantExpression::Other;
        }
        let inner = |node: Node<'_>| self.expression(node, depth + 1);
        let child = |field: &str| node.child_by_field_name(field).map(inner);
        match node.kind() {
            "interpreted_string_literal" | "raw_string_literal" => {
                unquote(self.text(node)).map_or(ConstantExpression::Other, |text| ConstantExpression::Text(text.into()))
            }
            "identifier" => ConstantExpression::Name { qualifier: None, name: self.text(node).into() },
            "selector_expression" => ConstantExpression::Name {
                qualifier: self.child_text(node, "operand").map(Into::into),
                name: self.child_text(node, "field").unwrap_or_default().into(),
            },
            "parenthesized_expression" => operands(node).first().copied().map_or(ConstantExpression::Other, inner),
            "binary_expression" if self.child_text(node, "operator") == Some("+") => {
                match (child("left"), child("right")) {
                    (Some(left), Some(right)) => ConstantExpression::Sum(Box::new(left), Box::new(right)),
                    _ => ConstantExpression::Other,
                }
            }
            "call_expression" => {
                let arguments = node.child_by_field_name("arguments").map(operands).unwrap_or_default();
                match (child("function"), arguments.as_slice()) {
                    (Some(ConstantExpression::Name { qualifier, name }), [only]) => ConstantExpression::Conversion {
                        to: Type::Named { qualifier, name, arguments: Vec::new() },
                        value: Box::new(inner(*only)),
                    },
                    _ => ConstantExpression::Other,
                }
            }
            "type_conversion_expression" => ConstantExpression::Conversion {
                to: node.child_by_field_name("type").map_or(Type::Other, |node| self.type_expression(node, 0)),
                value: Box::new(child("operand").unwrap_or(ConstantExpression::Other)),
            },
            _ => ConstantExpression::Other,
        }
    }
}
