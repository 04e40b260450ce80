//! What is kept of Go sources: declared types and constants, and the markers that stand before them.

use super::finding::Severity;
use super::marker::Marker;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A place in a Go file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The file, as it was given or found.
    pub file: Arc<Path>,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in bytes, as Go's own tools do.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// A Go file, as far as types matter.
#[derive(Debug)]
pub struct GoFile {
    /// The name behind `package`.
    pub(super) package: Box<str>,
    pub(super) imports: Vec<Import>,
    /// What `+groupName=` and `+versionName=` say.
    pub(super) group: Option<Box<str>>,
    pub(super) version: Option<Box<str>>,
    pub(super) types: Vec<TypeDeclaration>,
    pub(super) constants: Vec<Constant>,
    /// Markers of unions where no marker of that name belongs.
    pub(super) misplaced: Vec<Misplaced>,
}

#[derive(Debug)]
pub(super) struct Import {
    /// The name given to it; `.` joins the file's own names.
    pub(super) alias: Option<Box<str>>,
    pub(super) path: Box<str>,
}

/// `type Name …`.
#[derive(Debug)]
pub(super) struct TypeDeclaration {
    pub(super) name: Box<str>,
    pub(super) at: Position,
    /// `type Name = …`.
    pub(super) alias: bool,
    /// The names of its type parameters.
    pub(super) parameters: Vec<Box<str>>,
    pub(super) definition: Type,
    pub(super) markers: Vec<Marker>,
}

/// A type as it is written.
#[derive(Debug, Clone)]
pub(super) enum Type {
    Named {
        qualifier: Option<Box<str>>,
        name: Box<str>,
        arguments: Vec<Type>,
    },
    Pointer(Box<Type>),
    /// A slice or an array.
    List(Box<Type>),
    /// A map, of which the values count.
    Map(Box<Type>),
    Struct(Arc<Struct>),
    /// What no field of an object can be made of: functions, channels, interfaces.
    Other,
}

#[derive(Debug)]
pub(super) struct Struct {
    pub(super) fields: Vec<Field>,
}

/// A field of a struct; one that is declared as `A, B T` is two.
#[derive(Debug)]
pub(super) struct Field {
    /// The name in Go; of an embedded field that of its type.
    pub(super) name: Box<str>,
    pub(super) embedded: bool,
    pub(super) written: Type,
    pub(super) tag: Tag,
    pub(super) markers: Vec<Marker>,
    pub(super) at: Position,
}

/// What a field's `json` tag says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) name: Option<Box<str>>,
    pub(super) inline: bool,
    /// `json:"-"`.
    pub(super) skipped: bool,
}

impl TypeDeclaration {
    /// Whether anything is said of unions on it or in it.
    pub(super) fn has_union_markers(&self) -> bool {
        let Type::Struct(fields) = &self.definition else { return false };
        let of_fields = fields.fields.iter().flat_map(|field| &field.markers);
        self.markers.iter().chain(of_fields).any(|marker| marker.meaning.is_about_unions())
    }
}

impl Field {
    /// Whether its fields join those of the struct around it.
    pub(super) fn joins(&self) -> bool {
        !self.tag.skipped && (self.tag.inline || (self.embedded && self.tag.name.is_none()))
    }

    /// Its name in an object; `None` where it is not in there by itself.
    pub(super) fn json_name(&self) -> Option<&str> {
        let exported = self.name.chars().next().is_some_and(char::is_uppercase);
        if self.tag.skipped || !exported || self.joins() {
            return None;
        }
        Some(self.tag.name.as_deref().unwrap_or(&self.name))
    }
}

/// The type that a constant is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenType<'c> {
    /// One of its own package, as far as the name tells.
    Named(&'c str),
    /// None: it is what the value has, which names other constants.
    OfValue,
    /// None, or one of another package.
    Other,
}

/// `const Name T = …`.
#[derive(Debug)]
pub(super) struct Constant {
    pub(super) name: Box<str>,
    pub(super) written: Option<Type>,
    pub(super) value: Expression,
    pub(super) at: Position,
}

impl Constant {
    /// What its declaration says of its type.
    pub(super) fn written_type(&self) -> WrittenType<'_> {
        match (&self.written, &self.value) {
            (Some(Type::Named { qualifier: None, name, .. }), _)
            | (None, Expression::Conversion { to: Type::Named { qualifier: None, name, .. }, .. }) => {
                WrittenType::Named(name)
            }
            (None, Expression::Name { .. } | Expression::Sum(..)) => WrittenType::OfValue,
            (Some(_), _) | (None, Expression::Text(_) | Expression::Conversion { .. } | Expression::Other) => {
                WrittenType::Other
            }
        }
    }
}

/// A constant's value, as far as strings need it.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Text(Box<str>),
    Name {
        qualifier: Option<Box<str>>,
        name: Box<str>,
    },
    /// A call that may be a conversion, `T("text")`.
    Conversion {
        to: Type,
        value: Box<Expression>,
    },
    Sum(Box<Expression>, Box<Expression>),
    Other,
}

/// A marker that has no effect where it stands, and why.
#[derive(Debug)]
pub(super) struct Misplaced {
    pub(super) at: Position,
    pub(super) severity: Severity,
    pub(super) message: String,
}
