//! Reads type expressions and the fields of structs.

use super::DEEPEST;
use super::comments::Comments;
use super::fitting::with_fitting_markers;
use super::source::{SourceText, operands};
use super::tags::json_tag;
use crate::marker::Marker;
use crate::quoting::unquote;
use crate::types::{Field, Struct, Type};
use std::sync::Arc;
use tree_sitter::Node;

impl SourceText<'_> {
    /// Reads a type expression, and reports markers in it that have no effect.
    pub(super) fn type_expression(&self, node: Node<'_>, depth: usize) -> Type {
        if depth > DEEPEST {
            return Type::Other;
        }
        let inner = |node: Option<Node<'_>>| node.map_or(Type::Other, |node| self.type_expression(node, depth + 1));
        match node.kind() {
            "type_identifier" => named(None, self.text(node)),
            "qualified_type" => {
                named(self.child_text(node, "package"), self.child_text(node, "name").unwrap_or_default())
            }
            "generic_type" => {
                let arguments = node.child_by_field_name("type_arguments").into_iter().flat_map(operands);
                // The grammar wraps an argument into a `type_elem`, because a constraint may be a union of types.
                let arguments = arguments.map(|node| match node.kind() {
                    "type_elem" => node.named_child(0).unwrap_or(node),
                    _ => node,
                });
                let arguments = arguments.map(|node| inner(Some(node))).collect();
                match inner(node.child_by_field_name("type")) {
                    Type::Named { qualifier, name, .. } => Type::Named { qualifier, name, arguments },
                    Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Struct(_) | Type::Other => Type::Other,
                }
            }
            "pointer_type" => Type::Pointer(Box::new(inner(operands(node).first().copied()))),
            "parenthesized_type" => inner(operands(node).first().copied()),
            "slice_type" | "array_type" => Type::List(Box::new(inner(node.child_by_field_name("element")))),
            "map_type" => Type::Map(Box::new(inner(node.child_by_field_name("value")))),
            "struct_type" => Type::Struct(Arc::new(self.structure(node, depth))),
            _ => Type::Other,
        }
    }

    fn structure(&self, node: Node<'_>, depth: usize) -> Struct {
        let mut fields = Vec::new();
        let mut inner = Comments::new(self);
        let list = node.children(&mut node.walk()).find(|child| child.kind() == "field_declaration_list");
        let children = list.map(|list| list.children(&mut list.walk()).collect::<Vec<_>>());
        for child in children.into_iter().flatten() {
            if let Some(before) = inner.before(child).filter(|_| child.kind() == "field_declaration") {
                self.field(child, depth, &before.markers(), &mut fields);
            }
        }
        inner.finish();
        Struct { fields }
    }

    fn field(&self, node: Node<'_>, depth: usize, markers: &[Marker], fields: &mut Vec<Field>) {
        let written = node.child_by_field_name("type");
        let mut written = written.map_or(Type::Other, |child| self.type_expression(child, depth + 1));
        let tag = self.child_text(node, "tag").and_then(unquote).map(|tag| json_tag(&tag)).unwrap_or_default();
        let names: Vec<Node<'_>> = node.children_by_field_name("name", &mut node.walk()).collect();
        if names.is_empty() {
            // The grammar puts the star of an embedded pointer beside the type.
            if node.children(&mut node.walk()).any(|child| child.kind() == "*") {
                written = Type::Pointer(Box::new(written));
            }
            let name = embedded_name(&written).unwrap_or_default().into();
            let field = Field { name, embedded: true, written, tag, markers: Vec::new(), at: self.position(node) };
            fields.push(with_fitting_markers(field, markers, self));
            return;
        }
        for name in names {
            let field = Field {
                name: self.text(name).into(),
                embedded: false,
                written: written.clone(),
                tag: tag.clone(),
                markers: Vec::new(),
                at: self.position(name),
            };
            fields.push(with_fitting_markers(field, markers, self));
        }
    }
}

fn named(qualifier: Option<&str>, name: &str) -> Type {
    Type::Named { qualifier: qualifier.map(Into::into), name: name.into(), arguments: Vec::new() }
}

fn embedded_name(written: &Type) -> Option<&str> {
    match written {
        Type::Named { name, .. } => Some(name),
        Type::Pointer(inner) => embedded_name(inner),
        Type::List(_) | Type::Map(_) | Type::Struct(_) | Type::Other => None,
    }
}
