//! The parts of a Go file that matter for unions: imports, type declarations, constants and markers.
//!
//! [`syntax`](crate::syntax) makes them from text; [`packages`](crate::packages) resolves the names in them.

use crate::finding::{GoFinding, Position};
use crate::marker::Marker;
use crate::quoting::quoted;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The predeclared types of Go. None of them contains fields.
const PREDECLARED: &str = "any bool byte comparable complex128 complex64 error float32 float64 int int16 int32 int64 int8 rune \
                           string uint uint16 uint32 uint64 uint8 uintptr";

/// A parsed Go file.
#[derive(Debug, Default)]
pub struct GoFile {
    /// Name in the package clause.
    pub(super) package: Box<str>,
    pub(super) imports: Vec<Import>,
    /// Value of `+groupName=`.
    pub(super) group: Option<Box<str>>,
    /// Value of `+versionName=`.
    pub(super) version: Option<Box<str>>,
    pub(super) types: Vec<TypeDeclaration>,
    pub(super) constants: Vec<Constant>,
    /// Union markers that have no effect at their position.
    pub(super) misplaced: Vec<GoFinding>,
    /// Declarations of types and constants that the parser cannot read.
    pub(super) broken: Vec<BrokenDeclaration>,
}

/// A declaration with Go that the parser cannot read. The other declarations of its file are not affected.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BrokenDeclaration {
    /// Position of the error.
    pub(super) at: Position,
    /// Names of the types that it declares.
    pub(super) types: Vec<Box<str>>,
    /// For constants, every name in the declaration, so those of their types too.
    pub(super) names: BTreeSet<Box<str>>,
    pub(super) message: String,
}

#[derive(Debug)]
pub(super) struct Import {
    /// Local name; `.` adds the package's names to those of the file.
    pub(super) alias: Option<Box<str>>,
    pub(super) path: Box<str>,
}

/// `type Name …`.
#[derive(Debug)]
pub(super) struct TypeDeclaration {
    pub(super) name: Box<str>,
    pub(super) at: Position,
    /// True for `type Name = …`.
    pub(super) alias: bool,
    /// Names of the type parameters.
    pub(super) parameters: Vec<Box<str>>,
    pub(super) definition: Type,
    pub(super) markers: Vec<Marker>,
}

#[derive(Debug, Clone)]
pub(super) enum Type {
    Named {
        qualifier: Option<Box<str>>,
        name: Box<str>,
        arguments: Vec<Type>,
    },
    Pointer(Box<Type>),
    /// A slice or an array, by its element.
    List(Box<Type>),
    /// A map, by its value.
    Map(Box<Type>),
    Struct(Arc<[Field]>),
    /// A function, channel, interface or anything else that no JSON object contains.
    Other,
}

/// A field of a struct. `A, B T` declares two.
#[derive(Debug)]
pub(super) struct Field {
    /// Go name; the name of the type for an embedded field.
    pub(super) name: Box<str>,
    pub(super) embedded: bool,
    pub(super) written: Type,
    pub(super) tag: JsonTag,
    pub(super) markers: Vec<Marker>,
    pub(super) at: Position,
}

/// The `json` key of a field's tag.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct JsonTag {
    pub(super) name: Option<Box<str>>,
    pub(super) inline: bool,
    /// True for `json:"-"`.
    pub(super) skipped: bool,
}

/// `const Name T = …`.
#[derive(Debug)]
pub(super) struct Constant {
    pub(super) name: Box<str>,
    pub(super) written: Option<Type>,
    pub(super) value: ConstantExpression,
    pub(super) at: Position,
}

/// The expression of a constant, as far as strings need it.
#[derive(Debug, Clone)]
pub(super) enum ConstantExpression {
    Text(Box<str>),
    Name {
        qualifier: Option<Box<str>>,
        name: Box<str>,
    },
    /// A call with one argument, which may be a conversion: `T("text")`.
    Conversion {
        to: Type,
        value: Box<ConstantExpression>,
    },
    Sum(Box<ConstantExpression>, Box<ConstantExpression>),
    Other,
}

/// Returns true for a type of Go itself.
pub(super) fn is_predeclared(name: &str) -> bool {
    PREDECLARED.split(' ').any(|predeclared| predeclared == name)
}

impl BrokenDeclaration {
    /// Returns the message about a type that it declares.
    pub(super) fn describe(&self, name: &str) -> String {
        format!("cannot read the declaration of `{name}`: {}", self.message)
    }
}

impl TypeDeclaration {
    /// Returns true if the type or one of its fields has a union marker.
    pub(super) fn has_union_markers(&self) -> bool {
        let Type::Struct(fields) = &self.definition else { return false };
        let of_fields = fields.iter().flat_map(|field| &field.markers);
        self.markers.iter().chain(of_fields).any(|marker| marker.meaning.is_about_unions())
    }
}

impl Field {
    /// Returns true if JSON has the fields of this struct in place of the field.
    pub(super) fn is_inlined(&self) -> bool {
        !self.tag.skipped && (self.tag.inline || (self.embedded && self.tag.name.is_none()))
    }

    /// Returns the name in JSON, or `None` if JSON has no such field.
    pub(super) fn json_name(&self) -> Option<&str> {
        let exported = self.name.chars().next().is_some_and(char::is_uppercase);
        if self.tag.skipped || !exported || self.is_inlined() {
            return None;
        }
        Some(self.tag.name.as_deref().unwrap_or(&self.name))
    }
}

/// Returns the `json` key of a tag, for example of `protobuf:"…" json:"name,omitempty"`.
pub(super) fn json_tag(tag: &str) -> JsonTag {
    let mut rest = tag.trim_start();
    while let Some((key, after)) = rest.split_once(':') {
        let Some(Ok((value, after))) = quoted(after) else { break };
        if key.trim() == "json" {
            let (name, options) = value.split_once(',').unwrap_or((&value, ""));
            return JsonTag {
                name: Some(name).filter(|name| !name.is_empty()).map(Into::into),
                inline: options.split(',').any(|option| option == "inline"),
                skipped: value == "-",
            };
        }
        rest = after.trim_start();
    }
    JsonTag::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_json_key_among_others() {
        let tag = |name: Option<&str>, inline, skipped| JsonTag { name: name.map(Into::into), inline, skipped };
        let rows = [
            (r#"json:"canary,omitempty""#, tag(Some("canary"), false, false)),
            (r#"protobuf:"bytes,1,opt,name=\"x\"" json:"canary""#, tag(Some("canary"), false, false)),
            (r#"json:",inline""#, tag(None, true, false)),
            (r#"json:"-""#, tag(Some("-"), false, true)),
            (r#"json:"-,""#, tag(Some("-"), false, false)),
            (r#"yaml:"x""#, tag(None, false, false)),
            ("json:\"x", tag(None, false, false)),
            ("", tag(None, false, false)),
        ];
        for (text, expected) in rows {
            assert_eq!(json_tag(text), expected, "{text}");
        }
    }
}
