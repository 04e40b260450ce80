//! Reads the declarations at the top level of a file, and reports union markers on those that cannot have any.

use super::chunks::{Chunk, type_names, words};
use super::comments::{CommentGroups, Comments};
use super::error::GoSyntaxError;
use super::fitting::keep_fitting_type_markers;
use super::source::{SourceText, operands};
use crate::marker::{Marker, Meaning};
use crate::quoting::unquote;
use crate::types::{BrokenDeclaration, Constant, ConstantExpression, GoFile, Import, Type, TypeDeclaration};
use tree_sitter::Node;

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
        let GoSyntaxError::InvalidGo { position, message } = error else { return };
        self.file.broken.push(BrokenDeclaration {
            at: position,
            types: types.into_iter().map(Into::into).collect(),
            names: names.into_iter().map(Into::into).collect(),
            message,
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
