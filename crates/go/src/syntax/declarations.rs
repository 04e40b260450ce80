//! Reads the declarations at the top level of a file with their types, fields and constants, and reports union markers on those that
//! cannot have any. Of constants, reads as much as strings need.

use super::chunks::{Chunk, type_names, words};
use super::comments::{CommentGroups, Comments, keep_fitting_type_markers, with_fitting_markers};
use super::source::{GoSyntaxError, SourceText, operands};
use crate::marker::{Marker, Meaning};
use crate::quoting::unquote;
use crate::types::{
    BrokenDeclaration, Constant, ConstantExpression, Field, GoFile, Import, Type, TypeDeclaration, json_tag,
};
use tree_sitter::Node;

/// Deepest nesting of types and expressions.
const DEEPEST: usize = 200;

/// Reads a file, tree by tree.
pub(super) struct FileReader<'a, 's> {
    source: &'a SourceText<'s>,
    file: GoFile,
    comments: Comments<'a, 's>,
}

impl<'a, 's> FileReader<'a, 's> {
    pub(super) fn new(source: &'a SourceText<'s>) -> Self {
        Self { source, file: GoFile::default(), comments: Comments::new(source) }
    }

    /// Adds the declarations of a tree without errors.
    pub(super) fn read(&mut self, root: Node<'_>) {
        let Self { source, file, comments } = self;
        for node in root.children(&mut root.walk()) {
            let Some(before) = comments.before(node) else { continue };
            match node.kind() {
                "package_clause" => {
                    file.package = node.named_child(0).map(|name| source.text(name)).unwrap_or_default().into();
                    before.refuse_detached();
                }
                "import_declaration" => {
                    source.imports(node, file);
                    before.refuse_detached();
                }
                "type_declaration" => source.types(node, before, file),
                "const_declaration" => {
                    source.constants(node, file);
                    before.refuse_on("a constant");
                    source.refuse_markers_within(node);
                }
                "var_declaration" => {
                    before.refuse_on("a variable");
                    source.refuse_markers_within(node);
                }
                "function_declaration" | "method_declaration" => before.refuse_on("a function"),
                _ => before.refuse_detached(),
            }
        }
        source.package_markers(root, file);
    }

    /// Leaves out a declaration with an error.
    pub(super) fn leave_out(&mut self, chunk: &Chunk<'_>, error: GoSyntaxError) {
        self.comments.skip();
        let text = self.source.text.get(chunk.start..chunk.end).unwrap_or_default();
        let (types, names) = match chunk.keyword {
            "type" => (type_names(text), Vec::new()),
            "const" => (Vec::new(), words(text)),
            _ => return,
        };
        let GoSyntaxError { position, message } = error;
        self.file.broken.push(BrokenDeclaration {
            at: position,
            types: types.into_iter().map(Into::into).collect(),
            names: names.into_iter().map(Into::into).collect(),
            message: message.unwrap_or_default(),
        });
    }

    pub(super) fn finish(self) -> GoFile {
        self.comments.finish();
        GoFile { misplaced: self.source.misplaced.take(), ..self.file }
    }
}

impl SourceText<'_> {
    /// Reads `+groupName=` and `+versionName=` from any comment at the top level.
    fn package_markers(&self, root: Node<'_>, file: &mut GoFile) {
        for comment in root.children(&mut root.walk()).filter(|node| node.kind() == "comment") {
            let Some(text) = self.text(comment).strip_prefix("//") else { continue };
            match Marker::parse(text, || self.position(comment)).map(|marker| marker.meaning) {
                Some(Meaning::GroupName(name)) => file.group = Some(name),
                Some(Meaning::VersionName(name)) => file.version = Some(name),
                Some(_) | None => {}
            }
        }
    }

    /// Reports the union markers within a declaration of constants or variables.
    fn refuse_markers_within(&self, node: Node<'_>) {
        let mut inner = Comments::new(self);
        for child in node.children(&mut node.walk()) {
            if let Some(before) = inner.before(child) {
                before.refuse_on("a value");
            }
        }
        inner.finish();
    }

    fn imports(&self, node: Node<'_>, file: &mut GoFile) {
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            if node.kind() == "import_spec" {
                let path = self.child_text(node, "path").and_then(unquote);
                let alias = self.child_text(node, "name").map(Into::into);
                file.imports.extend(path.map(|path| Import { alias, path: path.into() }));
            } else {
                waiting.extend(node.named_children(&mut node.walk()));
            }
        }
    }

    fn types(&self, node: Node<'_>, before: CommentGroups<'_, '_>, file: &mut GoFile) {
        let is_spec = |node: &Node<'_>| matches!(node.kind(), "type_spec" | "type_alias");
        let grouped = node.children(&mut node.walk()).any(|child| child.kind() == "(");
        if !grouped {
            if let Some(spec) = node.children(&mut node.walk()).find(is_spec) {
                self.declare_type(spec, before, file);
            }
            return;
        }
        before.refuse_on("a group of types");
        let mut inner = Comments::new(self);
        for child in node.children(&mut node.walk()) {
            if let Some(before) = inner.before(child).filter(|_| is_spec(&child)) {
                self.declare_type(child, before, file);
            }
        }
        inner.finish();
    }

    fn declare_type(&self, spec: Node<'_>, before: CommentGroups<'_, '_>, file: &mut GoFile) {
        let lists = spec.child_by_field_name("type_parameters").into_iter().flat_map(operands);
        let parameters = lists.flat_map(|list| {
            let names: Vec<Node<'_>> = list.children_by_field_name("name", &mut list.walk()).collect();
            names.into_iter().map(|name| self.text(name).into())
        });
        let parameters = parameters.collect();
        let definition = spec.child_by_field_name("type").map_or(Type::Other, |node| self.type_expression(node, 0));
        let markers = keep_fitting_type_markers(before.markers(), &definition, self);
        file.types.push(TypeDeclaration {
            name: self.child_text(spec, "name").unwrap_or_default().into(),
            at: self.position(spec),
            alias: spec.kind() == "type_alias",
            parameters,
            definition,
            markers,
        });
    }

    fn constants(&self, node: Node<'_>, file: &mut GoFile) {
        // A constant without type and value repeats those of the previous one.
        let mut previous: (Option<Type>, Vec<ConstantExpression>) = (None, Vec::new());
        for spec in node.named_children(&mut node.walk()).filter(|child| child.kind() == "const_spec") {
            if let Some(list) = spec.child_by_field_name("value") {
                let written = spec.child_by_field_name("type").map(|node| self.type_expression(node, 0));
                previous = (written, operands(list).into_iter().map(|value| self.expression(value, 0)).collect());
            }
            let names =
                spec.children_by_field_name("name", &mut spec.walk()).filter(Node::is_named).collect::<Vec<_>>();
            for (position, name) in names.into_iter().enumerate() {
                file.constants.push(Constant {
                    name: self.text(name).into(),
                    written: previous.0.clone(),
                    value: previous.1.get(position).cloned().unwrap_or(ConstantExpression::Other),
                    at: self.position(name),
                });
            }
        }
    }
}

impl SourceText<'_> {
    /// Reads a type expression, and reports markers in it that have no effect.
    fn type_expression(&self, node: Node<'_>, depth: usize) -> Type {
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
            "struct_type" => Type::Struct(self.fields(node, depth).into()),
            _ => Type::Other,
        }
    }

    fn fields(&self, node: Node<'_>, depth: usize) -> Vec<Field> {
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
        fields
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
