//! From the text of a Go file to what is kept of it, by tree-sitter and its grammar of Go. Nothing is run and no tool of Go's
//! is needed.
//!
//! A file with an error in it is refused whole: what a parser makes of the rest is a guess.

mod comments;
mod fitting;
mod literal;

use self::comments::{Comments, Groups};
use self::fitting::{fitting_type, with_fitting};
use self::literal::{json_tag, unquote};
use super::marker::{Marker, Meaning};
use super::types::{Constant, Expression, Field, GoFile, Import, Position, Struct, Type, TypeDeclaration};
use std::path::Path;
use std::sync::Arc;
use tree_sitter::{Node, Parser};

/// How deep types and expressions may nest.
const DEEPEST: usize = 200;

/// Reads Go files, one after the other.
pub struct GoParser {
    parser: Parser,
}

/// Why a file is of no use. Displays without where in it that is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxError {
    /// Not Go.
    #[error("not Go: {message}; the file is left out")]
    NotGo {
        /// Where.
        position: Position,
        /// What is there.
        message: String,
    },
    /// Not text.
    #[error("not text in UTF-8; the file is left out")]
    NotUtf8 {
        /// The first byte that is none.
        position: Position,
    },
}

impl SyntaxError {
    /// Where in the file.
    pub fn position(&self) -> &Position {
        match self {
            Self::NotGo { position, .. } | Self::NotUtf8 { position } => position,
        }
    }
}

impl std::fmt::Debug for GoParser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GoParser").finish_non_exhaustive()
    }
}

impl GoParser {
    /// A reader with the grammar that the crate was built with; `None` if the two do not fit, which no release has.
    pub fn new() -> Option<Self> {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_go::LANGUAGE.into()).ok()?;
        Some(Self { parser })
    }

    /// Reads a file.
    pub fn parse(&mut self, path: &Arc<Path>, bytes: &[u8]) -> Result<GoFile, SyntaxError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let (line, column) = (
                before.split(|&byte| byte == b'\n').count(),
                before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1,
            );
            SyntaxError::NotUtf8 { position: Position { file: Arc::clone(path), line, column } }
        })?;
        // The grammar wants every declaration ended, the last one as well, where Go does not.
        let ended;
        let text = if text.ends_with('\n') {
            text
        } else {
            ended = format!("{text}\n");
            &ended
        };
        let source = SourceText { path, text };
        // Only a parser that was told to stop gives no tree.
        let tree = self.parser.parse(text, None);
        let tree = tree.ok_or_else(|| SyntaxError::NotGo {
            position: Position { file: Arc::clone(path), line: 1, column: 1 },
            message: "the parser gave up".to_owned(),
        })?;
        if let Some(node) = first_error(tree.root_node()) {
            return Err(source.error_at(node));
        }
        Ok(source.file(tree.root_node()))
    }
}

/// The first node that the grammar has no place for, or that is not there and should be.
fn first_error(root: Node<'_>) -> Option<Node<'_>> {
    let mut node = root.has_error().then_some(root)?;
    // Down the first child that has an error in it, to the one that is the error.
    while !(node.is_error() || node.is_missing()) {
        let inner = node.children(&mut node.walk()).find(|child| child.has_error() || child.is_missing());
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    Some(node)
}

struct SourceText<'s> {
    path: &'s Arc<Path>,
    text: &'s str,
}

impl<'s> SourceText<'s> {
    fn position(&self, node: Node<'_>) -> Position {
        let point = node.start_position();
        Position { file: Arc::clone(self.path), line: point.row + 1, column: point.column + 1 }
    }

    fn error_at(&self, node: Node<'_>) -> SyntaxError {
        let message = if node.is_missing() {
            format!("`{}` is missing", node.kind())
        } else {
            "this is no declaration that the grammar knows".to_owned()
        };
        SyntaxError::NotGo { position: self.position(node), message }
    }

    fn text(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn named(&self, node: Node<'_>, field: &str) -> Option<&'s str> {
        node.child_by_field_name(field).map(|child| self.text(child))
    }

    fn file(&self, root: Node<'_>) -> GoFile {
        let mut file = GoFile {
            package: Box::default(),
            imports: Vec::new(),
            group: None,
            version: None,
            types: Vec::new(),
            constants: Vec::new(),
            misplaced: Vec::new(),
        };
        let mut comments = Comments::new(self);
        for node in root.children(&mut root.walk()) {
            if comments.take(node) {
                continue;
            }
            let before = comments.before(node);
            match node.kind() {
                "package_clause" => {
                    file.package = node.named_child(0).map(|name| self.text(name)).unwrap_or_default().into();
                    comments.forget(before);
                }
                "import_declaration" => {
                    self.imports(node, &mut file);
                    comments.forget(before);
                }
                "type_declaration" => self.types(node, before, &mut file, &mut comments),
                "const_declaration" => {
                    self.constants(node, &mut file);
                    comments.misplaced(before, "a constant");
                    self.sweep(node, &mut comments);
                }
                "var_declaration" => {
                    comments.misplaced(before, "a variable");
                    self.sweep(node, &mut comments);
                }
                "function_declaration" | "method_declaration" => comments.misplaced(before, "a function"),
                _ => comments.forget(before),
            }
        }
        comments.end();
        file.misplaced = comments.into_misplaced();
        self.package_markers(root, &mut file);
        file
    }

    /// `+groupName=` and `+versionName=`, wherever they stand at the top level.
    fn package_markers(&self, root: Node<'_>, file: &mut GoFile) {
        for comment in root.children(&mut root.walk()).filter(|node| node.kind() == "comment") {
            match self.text(comment).strip_prefix("//").and_then(super::marker::read) {
                Some((_, Meaning::GroupName(name))) => file.group = Some(name),
                Some((_, Meaning::VersionName(name))) => file.version = Some(name),
                Some(_) | None => {}
            }
        }
    }

    /// Reports the markers within a declaration that has no place for any.
    fn sweep(&self, node: Node<'_>, comments: &mut Comments<'_, 's>) {
        let mut inner = Comments::new(self);
        for child in node.children(&mut node.walk()) {
            if !inner.take(child) {
                let before = inner.before(child);
                inner.misplaced(before, "a value");
            }
        }
        inner.end();
        comments.adopt(inner);
    }

    fn imports(&self, node: Node<'_>, file: &mut GoFile) {
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            if node.kind() == "import_spec" {
                let path = node.child_by_field_name("path").and_then(|path| unquote(self.text(path)));
                let alias = self.named(node, "name").map(Into::into);
                file.imports.extend(path.map(|path| Import { alias, path: path.into() }));
            } else {
                waiting.extend(node.named_children(&mut node.walk()));
            }
        }
    }

    fn types(&self, node: Node<'_>, before: Groups, file: &mut GoFile, comments: &mut Comments<'_, 's>) {
        let grouped = node.children(&mut node.walk()).any(|child| child.kind() == "(");
        if !grouped {
            let spec = node.children(&mut node.walk()).find(|child| matches!(child.kind(), "type_spec" | "type_alias"));
            if let Some(spec) = spec {
                self.declare(spec, before, file, comments);
            }
            return;
        }
        comments.misplaced(before, "a group of types");
        let mut inner = Comments::new(self);
        for child in node.children(&mut node.walk()) {
            if inner.take(child) {
                continue;
            }
            let before = inner.before(child);
            if matches!(child.kind(), "type_spec" | "type_alias") {
                self.declare(child, before, file, &mut inner);
            }
        }
        inner.end();
        comments.adopt(inner);
    }

    fn declare(&self, spec: Node<'_>, before: Groups, file: &mut GoFile, comments: &mut Comments<'_, 's>) {
        let parameters = spec.child_by_field_name("type_parameters");
        let parameters = parameters.into_iter().flat_map(|list| {
            let declarations: Vec<Node<'_>> = list.named_children(&mut list.walk()).collect();
            declarations.into_iter().flat_map(|declaration| {
                let names: Vec<Node<'_>> =
                    declaration.children_by_field_name("name", &mut declaration.walk()).collect();
                names.into_iter().map(|name| self.text(name).into())
            })
        });
        let parameters = parameters.collect();
        let definition = spec.child_by_field_name("type").map_or(Type::Other, |node| self.written(node, 0, comments));
        let markers = comments.markers(before);
        let markers = fitting_type(markers, &definition, comments);
        file.types.push(TypeDeclaration {
            name: self.named(spec, "name").unwrap_or_default().into(),
            at: self.position(spec),
            alias: spec.kind() == "type_alias",
            parameters,
            definition,
            markers,
        });
    }

    fn written(&self, node: Node<'_>, depth: usize, comments: &mut Comments<'_, 's>) -> Type {
        if depth > DEEPEST {
            return Type::Other;
        }
        let mut inner = |field: &str| {
            node.child_by_field_name(field).map_or(Type::Other, |child| self.written(child, depth + 1, comments))
        };
        match node.kind() {
            "type_identifier" => named(None, self.text(node)),
            "qualified_type" => named(self.named(node, "package"), self.named(node, "name").unwrap_or_default()),
            "generic_type" => {
                let list = node.child_by_field_name("type_arguments");
                let arguments: Vec<Node<'_>> = list
                    .into_iter()
                    .flat_map(|list| list.named_children(&mut list.walk()).collect::<Vec<_>>())
                    .collect();
                // Each argument stands in a `type_elem`, which a constraint may have several types in.
                let arguments = arguments.into_iter().filter(|node| !node.is_extra()).map(|node| {
                    let single = if node.kind() == "type_elem" { node.named_child(0).unwrap_or(node) } else { node };
                    self.written(single, depth + 1, comments)
                });
                let arguments: Vec<Type> = arguments.collect();
                match node.child_by_field_name("type").map(|child| self.written(child, depth + 1, comments)) {
                    Some(Type::Named { qualifier, name, .. }) => Type::Named { qualifier, name, arguments },
                    Some(_) | None => Type::Other,
                }
            }
            "pointer_type" => {
                let target = node.named_children(&mut node.walk()).find(|child| !child.is_extra());
                Type::Pointer(Box::new(target.map_or(Type::Other, |child| self.written(child, depth + 1, comments))))
            }
            "parenthesized_type" => {
                let target = node.named_children(&mut node.walk()).find(|child| !child.is_extra());
                target.map_or(Type::Other, |child| self.written(child, depth + 1, comments))
            }
            "slice_type" | "array_type" => Type::List(Box::new(inner("element"))),
            "map_type" => Type::Map(Box::new(inner("value"))),
            "struct_type" => Type::Struct(Arc::new(self.structure(node, depth, comments))),
            _ => Type::Other,
        }
    }

    fn structure(&self, node: Node<'_>, depth: usize, comments: &mut Comments<'_, 's>) -> Struct {
        let mut fields = Vec::new();
        let mut inner = Comments::new(self);
        let list = node.children(&mut node.walk()).find(|child| child.kind() == "field_declaration_list");
        let children: Vec<Node<'_>> =
            list.into_iter().flat_map(|list| list.children(&mut list.walk()).collect::<Vec<_>>()).collect();
        for child in children {
            if inner.take(child) {
                continue;
            }
            let before = inner.before(child);
            if child.kind() == "field_declaration" {
                let markers = inner.markers(before);
                self.field(child, depth, &markers, &mut fields, &mut inner);
            }
        }
        inner.end();
        comments.adopt(inner);
        Struct { fields }
    }

    fn field(
        &self,
        node: Node<'_>,
        depth: usize,
        markers: &[Marker],
        fields: &mut Vec<Field>,
        comments: &mut Comments<'_, 's>,
    ) {
        let names: Vec<Node<'_>> = node.children_by_field_name("name", &mut node.walk()).collect();
        let mut written =
            node.child_by_field_name("type").map_or(Type::Other, |child| self.written(child, depth + 1, comments));
        let tag = self.named(node, "tag").and_then(unquote).map(|tag| json_tag(&tag)).unwrap_or_default();
        if names.is_empty() {
            // The star of an embedded pointer stands beside its type.
            if node.children(&mut node.walk()).any(|child| child.kind() == "*") {
                written = Type::Pointer(Box::new(written));
            }
            let name = embedded_name(&written).unwrap_or_default().into();
            let field = Field { name, embedded: true, written, tag, markers: Vec::new(), at: self.position(node) };
            fields.push(with_fitting(field, markers, comments));
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
            fields.push(with_fitting(field, markers, comments));
        }
    }

    fn constants(&self, node: Node<'_>, file: &mut GoFile) {
        // Without a type and a value a constant repeats those of the one before it.
        let mut before: (Option<Type>, Vec<Expression>) = (None, Vec::new());
        for spec in node.named_children(&mut node.walk()).filter(|child| child.kind() == "const_spec") {
            if let Some(list) = spec.child_by_field_name("value") {
                let values: Vec<Node<'_>> =
                    list.named_children(&mut list.walk()).filter(|child| !child.is_extra()).collect();
                let written = spec.child_by_field_name("type").map(|node| self.plain(node));
                before = (written, values.into_iter().map(|value| self.expression(value, 0)).collect());
            }
            let names: Vec<Node<'_>> =
                spec.children_by_field_name("name", &mut spec.walk()).filter(Node::is_named).collect();
            for (position, name) in names.into_iter().enumerate() {
                file.constants.push(Constant {
                    name: self.text(name).into(),
                    written: before.0.clone(),
                    value: before.1.get(position).cloned().unwrap_or(Expression::Other),
                    at: self.position(name),
                });
            }
        }
    }

    /// A type that has no comments in it.
    fn plain(&self, node: Node<'_>) -> Type {
        self.written(node, 0, &mut Comments::new(self))
    }

    fn expression(&self, node: Node<'_>, depth: usize) -> Expression {
        if depth > DEEPEST {
            return Expression::Other;
        }
        let operand = |field: &str| node.child_by_field_name(field).map(|child| self.expression(child, depth + 1));
        match node.kind() {
            "interpreted_string_literal" | "raw_string_literal" => {
                unquote(self.text(node)).map_or(Expression::Other, |text| Expression::Text(text.into()))
            }
            "identifier" => Expression::Name { qualifier: None, name: self.text(node).into() },
            "selector_expression" => Expression::Name {
                qualifier: self.named(node, "operand").map(Into::into),
                name: self.named(node, "field").unwrap_or_default().into(),
            },
            "parenthesized_expression" => {
                let inner = node.named_children(&mut node.walk()).find(|child| !child.is_extra());
                inner.map_or(Expression::Other, |inner| self.expression(inner, depth + 1))
            }
            "binary_expression" if self.named(node, "operator") == Some("+") => {
                match (operand("left"), operand("right")) {
                    (Some(left), Some(right)) => Expression::Sum(Box::new(left), Box::new(right)),
                    _ => Expression::Other,
                }
            }
            "call_expression" => {
                let to = match operand("function") {
                    Some(Expression::Name { qualifier, name }) => {
                        Type::Named { qualifier, name, arguments: Vec::new() }
                    }
                    Some(_) | None => return Expression::Other,
                };
                self.conversion(to, node.child_by_field_name("arguments"), depth)
            }
            "type_conversion_expression" => {
                let to = node.child_by_field_name("type").map_or(Type::Other, |node| self.plain(node));
                let value = operand("operand").unwrap_or(Expression::Other);
                Expression::Conversion { to, value: Box::new(value) }
            }
            _ => Expression::Other,
        }
    }

    fn conversion(&self, to: Type, arguments: Option<Node<'_>>, depth: usize) -> Expression {
        let arguments: Vec<Node<'_>> = arguments
            .into_iter()
            .flat_map(|list| {
                list.named_children(&mut list.walk()).filter(|child| !child.is_extra()).collect::<Vec<_>>()
            })
            .collect();
        match arguments.as_slice() {
            [only] => Expression::Conversion { to, value: Box::new(self.expression(*only, depth + 1)) },
            _ => Expression::Other,
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
