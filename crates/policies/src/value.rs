//! Values of a user's object, as expressions that carry their CEL type.
//!
//! An API server checks types when it stores a policy. It knows none of a user's object: `object` is `dyn`, and so is what a dot selects
//! in it. An index is a function, and what it finds has a type that the checker *infers* from the next function: `x[?"a-b"].orValue({})`
//! is a map of unknown types, and its keys become what the first function takes that is given one. So the type is made `dyn` before
//! anything has a name: [`UserValue::or`] and [`UserValue::list`] are the only places that do it.

use crate::cel::{is_name, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Dyn,
    /// An optional value whose content is `dyn`.
    Optional,
    /// An optional value that an index has found: the checker infers the type of its content.
    Inferred,
}

/// A value of a user's object, or an optional one.
#[derive(Debug, Clone)]
pub(crate) struct UserValue {
    text: String,
    of: ValueType,
}

impl UserValue {
    /// Returns a value that has a name, or that is in a list or map of such values.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), of: ValueType::Dyn }
    }

    /// Returns an optional value of such a list.
    pub(crate) fn optional(text: impl Into<String>) -> Self {
        Self { text: text.into(), of: ValueType::Optional }
    }

    /// Returns the expression.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the same value with its expression in another form.
    fn with(&self, text: String) -> Self {
        Self { text, of: self.of }
    }

    /// Returns a field that the object has. An object that may be missing has none.
    pub(crate) fn field(&self, name: &str) -> Self {
        let Self { text: object, .. } = self;
        self.with(if is_name(name) { format!("{object}.{name}") } else { format!("{object}[{}]", text(name)) })
    }

    /// Returns the field that an expression names, of an object that has it.
    pub(crate) fn field_at(&self, key: &str) -> Self {
        self.with(format!("{}[{key}]", self.text))
    }

    /// Returns a field, which may be missing.
    pub(crate) fn find(&self, name: &str) -> Self {
        if is_name(name) { Self::optional(format!("{}.?{name}", self.text)) } else { self.find_at(&text(name)) }
    }

    /// Returns the field that an expression names, which may be missing.
    pub(crate) fn find_at(&self, key: &str) -> Self {
        Self { text: format!("{}[?{key}]", self.text), of: ValueType::Inferred }
    }

    /// Returns the value at the end of several fields, or the object itself without fields.
    pub(crate) fn follow(&self, names: &[&str]) -> Self {
        names.iter().fold(self.clone(), |object, name| object.find(name))
    }

    /// Returns the object as an optional one, of which an index finds a field.
    pub(crate) fn wrapped(&self) -> Self {
        if self.is_optional() { self.clone() } else { Self::optional(format!("optional.of({})", self.text)) }
    }

    /// Returns true if the value may be missing.
    pub(crate) fn is_optional(&self) -> bool {
        self.of != ValueType::Dyn
    }

    /// Returns the first value that is there. At least one is given.
    pub(crate) fn first_of(values: &[Self]) -> Self {
        let first = values.iter().cloned().reduce(|found, other| {
            let of = if found.of == ValueType::Optional { other.of } else { found.of };
            Self { text: format!("{}\n  .or({})", found.text, other.text), of }
        });
        first.unwrap_or_else(|| Self::optional("optional.none()"))
    }

    /// Returns the value, or a literal if there is none.
    pub(crate) fn or(&self, literal: &str) -> Self {
        Self::new(match self.of {
            ValueType::Dyn => self.text.clone(),
            ValueType::Optional => format!("{}.orValue({literal})", self.text),
            ValueType::Inferred => format!("{}.orValue(dyn({literal}))", self.text),
        })
    }

    /// Returns the optional value as an item of a list of such values: `[?item]`.
    pub(crate) fn item(&self) -> String {
        match self.of {
            ValueType::Dyn | ValueType::Optional => format!("?{}", self.text),
            ValueType::Inferred => format!("?{}.optMap(o, dyn(o))", self.text),
        }
    }

    /// Returns true if the value is there.
    pub(crate) fn is_there(&self) -> String {
        format!("{}.hasValue()", self.text)
    }

    /// Returns true if the value is there and not null.
    pub(crate) fn is_not_null(&self) -> String {
        format!("{}.orValue(null) != null", self.text)
    }

    /// Returns true if the value is one of a list of literals.
    pub(crate) fn is_in(&self, literals: &str) -> String {
        format!("{}.orValue(null) in {literals}", self.text)
    }

    /// Returns the value as a text, empty if there is none. It has to be a text.
    pub(crate) fn string(&self) -> String {
        format!("{}.orValue(\"\")", self.text)
    }

    /// Returns the value as a text, empty if there is none. It has to be a text or null.
    pub(crate) fn string_or_null(&self) -> String {
        format!("optional.ofNonZeroValue({}).orValue(\"\")", self.string())
    }

    /// Returns the value as the text of a boolean, empty if there is none. It has to be a boolean or null.
    pub(crate) fn boolean(&self) -> String {
        let v = if self.of == ValueType::Inferred { "dyn(v)" } else { "v" };
        format!("{}.optMap(v, {v} == null ? \"\" : string({v})).orValue(\"\")", self.text)
    }

    /// Returns true if the object has a field at the end of several fields.
    pub(crate) fn has(&self, names: &[&str]) -> String {
        match names {
            [name] if is_name(name) && !self.is_optional() => format!("has({}.{name})", self.text),
            names => self.follow(names).is_there(),
        }
    }

    /// Returns the value as the text of a key, whatever its type: a number and its text are different keys, and a list or map is none.
    pub(crate) fn key(&self) -> String {
        format!(
            "[{}].map(k, type(k) == string ? \":\" + string(k) :\n    \
             type(k) == int || type(k) == double || type(k) == bool ? \"=\" + string(k) : \"\")[0]",
            self.or("null").text
        )
    }

    /// Returns the list or map, of this type, at the end of several fields of an object whose types nobody knows.
    pub(crate) fn find_guarded(&self, names: &[&str], kind: &str) -> Self {
        let (last, outer) = names.split_last().map_or(("", names), |(last, outer)| (*last, outer));
        let (found, last) = (self.guarded(outer), text(last));
        Self::optional(format!("{found}.map(o, {last} in o && type(o[{last}]) == {kind}, o[{last}])[?0]"))
    }

    /// Returns the maps at the end of several fields of an object whose types nobody knows: a list of at most one.
    pub(crate) fn guarded(&self, names: &[&str]) -> String {
        let found = names.iter().fold(format!("[{}]", self.text), |list, name| {
            let name = text(name);
            format!("{list}.map(o, type(o) == map && {name} in o, o[{name}])")
        });
        format!("{found}.filter(o, type(o) == map)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_selected_with_a_dot_where_its_name_allows() {
        let (object, item) = (UserValue::new("object"), UserValue::new("item"));
        assert_eq!(object.follow(&["spec", "in", "a-b", "_c"]).text(), r#"object.?spec[?"in"][?"a-b"].?_c"#);
        assert_eq!(item.field("name").text(), "item.name");
        assert_eq!(item.field("namespace").text(), r#"item["namespace"]"#);
        assert_eq!(item.has(&["auth"]), "has(item.auth)");
        assert_eq!(item.has(&["auth", "basic"]), "item.?auth.?basic.hasValue()");
    }

    #[test]
    fn an_index_never_leaves_a_type_to_be_inferred_from_what_comes_next() {
        let object = UserValue::new("object");
        assert_eq!(object.find("list").or("[]").text(), "object.?list.orValue([])");
        for names in [&["my-list"][..], &["spec", "in"], &["a/b", "9x"]] {
            let found = object.follow(names);
            assert!(found.or("[]").text().ends_with(".orValue(dyn([]))"), "{found:?}");
            assert_eq!(found.or("[]").or("{}").text(), found.or("[]").text(), "it is there");
            assert!(found.boolean().contains("dyn(v)") && found.item().ends_with(".optMap(o, dyn(o))"), "{found:?}");
        }
        let plain = object.follow(&["a-b", "c"]);
        assert_eq!(plain.or("{}").text(), r#"object[?"a-b"].?c.orValue({})"#, "what a dot selects is dyn");
        let several = [object.find("a-b"), object.find("c"), object.find("d")];
        assert_eq!(UserValue::first_of(&several[1..]).or("{}").text(), "object.?c\n  .or(object.?d).orValue({})");
        assert!(UserValue::first_of(&several).or("{}").text().ends_with(".orValue(dyn({}))"));
    }
}
