//! A JSON document as the engine sees it: immutable, shared, and with every number as it was written.
//!
//! `serde_json::Value` does not fit. It converts numbers to what a machine can hold, so `1.10` or a large integer comes back as
//! another text. Its feature `arbitrary_precision` prevents that, but changes every other crate in the build.
//!
//! Here a number is its text. An arena owns all values, so dropping a document takes no walk. A result shares the unchanged
//! parts of the documents instead of copying them.

use bumpalo::Bump;
use hashbrown::HashMap;
use std::fmt;

/// A JSON value. Copying it copies a reference.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(&'a str),
    /// A string with its escapes decoded.
    String(&'a str),
    /// A list.
    List(&'a [Value<'a>]),
    /// An object. Its keys are distinct.
    Map(&'a [MapEntry<'a>]),
}

/// The most lists and objects that may be around a value, including itself. Every walk recurses, so this bounds the stack.
pub(crate) const DEEPEST: usize = 512;

/// A field of an object.
pub(crate) type MapEntry<'a> = (&'a str, Value<'a>);

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// A list.
    List,
    /// An object.
    Object,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

/// A scalar in a form that keys and sets can compare. Numbers compare by value, but an integer never equals a decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Integer(&'a str),
    /// A number with a fraction or an exponent: its sign, its digits without surrounding zeros, and the exponent of the first
    /// digit.
    Decimal(bool, &'a str, i64),
    String(&'a str),
}

impl<'a> Value<'a> {
    /// An object without fields.
    pub(crate) const EMPTY: Self = Self::Map(&[]);

    /// Stores a list in the arena.
    pub(crate) fn list_in(arena: &'a Bump, items: &[Self]) -> Self {
        Self::List(arena.alloc_slice_copy(items))
    }

    /// Stores an object in the arena. Its keys are distinct.
    pub(crate) fn map_in(arena: &'a Bump, entries: &[MapEntry<'a>]) -> Self {
        Self::Map(arena.alloc_slice_copy(entries))
    }

    /// Returns the type.
    pub(crate) fn kind(self) -> ValueKind {
        match self {
            Self::Null => ValueKind::Null,
            Self::Bool(_) => ValueKind::Boolean,
            Self::Number(_) => ValueKind::Number,
            Self::String(_) => ValueKind::String,
            Self::List(_) => ValueKind::List,
            Self::Map(_) => ValueKind::Object,
        }
    }

    /// Returns the fields of an object.
    pub(crate) fn entries(self) -> Option<&'a [MapEntry<'a>]> {
        if let Self::Map(entries) = self { Some(entries) } else { None }
    }

    /// Returns the items of a list.
    pub(crate) fn items(self) -> Option<&'a [Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// Returns a field of an object.
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        find(self.entries()?, key)
    }

    /// Returns the value as a scalar, or `None` for a list or an object.
    pub(crate) fn scalar(self, arena: &'a Bump) -> Option<Scalar<'a>> {
        Some(match self {
            Self::Null => Scalar::Null,
            Self::Bool(value) => Scalar::Bool(value),
            Self::Number(text) => number(text, arena),
            Self::String(text) => Scalar::String(text),
            Self::List(_) | Self::Map(_) => return None,
        })
    }

    /// Returns the text by which Go's `strategicpatch` sorts a scalar.
    pub(crate) fn sort_text(self) -> &'a str {
        match self {
            Self::Null => "<nil>",
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
            Self::Number(text) | Self::String(text) => text,
            Self::List(_) | Self::Map(_) => "",
        }
    }

    /// Returns true if both values are equal. The order of an object's fields does not matter. Numbers compare by value, but an
    /// integer never equals a decimal number.
    pub(crate) fn same(self, other: Self) -> bool {
        self.equals(other, same_number)
    }

    /// Returns true if both values are equal, and their numbers by this comparison.
    pub(crate) fn equals(self, other: Self, same_number: fn(&str, &str) -> bool) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::String(left), Self::String(right)) => left == right,
            (Self::Number(left), Self::Number(right)) => same_number(left, right),
            (Self::List(left), Self::List(right)) if left.len() == right.len() => {
                std::ptr::eq(left, right)
                    || left.iter().zip(right).all(|(left, right)| left.equals(*right, same_number))
            }
            (Self::Map(left), Self::Map(right)) if left.len() == right.len() => {
                std::ptr::eq(left, right) || {
                    let fields = by_name(right);
                    left.iter()
                        .all(|(key, value)| fields.get(key).is_some_and(|other| value.equals(*other, same_number)))
                }
            }
            _ => false,
        }
    }
}

/// Returns the fields of an object by their names.
pub(crate) fn by_name<'a>(entries: &[MapEntry<'a>]) -> HashMap<&'a str, Value<'a>> {
    entries.iter().copied().collect()
}

/// Returns the value of one field.
pub(crate) fn find<'a>(entries: &[MapEntry<'a>], key: &str) -> Option<Value<'a>> {
    entries.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}

/// Returns the text of a number as the API server stores it: as a 64-bit integer, or else as a double.
pub(crate) fn canonical_number(text: &str) -> String {
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(integer), _) => integer.to_string(),
        (Err(_), Ok(0.0)) => "0".to_owned(),
        (Err(_), Ok(double)) if double.is_finite() => double.to_string(),
        _ => text.to_owned(),
    }
}

fn same_number(left: &str, right: &str) -> bool {
    // Different texts of one number are rare, so an arena for each comparison is cheap enough.
    left == right || {
        let arena = Bump::new();
        number(left, &arena) == number(right, &arena)
    }
}

/// Returns the canonical form of a number, which is the same for all texts of one value.
fn number<'a>(text: &'a str, arena: &'a Bump) -> Scalar<'a> {
    if !text.contains(['.', 'e', 'E']) {
        return Scalar::Integer(if text == "-0" { "0" } else { text });
    }
    let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Scalar::Decimal(false, "", 0);
    }
    // The position of the first digit that is not zero, from the point.
    let position = i64::try_from(whole.len()).and_then(|it| Ok(it - i64::try_from(digits.len() - significant.len())?));
    let (Ok(exponent), Ok(position)) = (exponent.parse::<i64>(), position) else {
        // The exponent does not fit into 64 bits: compare the text.
        return Scalar::Decimal(negative, unsigned, i64::MAX);
    };
    let digits = arena.alloc_str(significant.trim_end_matches('0'));
    Scalar::Decimal(negative, digits, exponent.saturating_add(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value_and_an_integer_never_equals_a_decimal() {
        for (left, right) in [
            ("1.10", "1.1"),
            ("1e2", "1.00E+2"),
            ("100.0", "1e2"),
            ("0.0010", "1e-3"),
            ("-0.0", "0e5"),
            ("-0", "0"),
            ("12.50e1", "125.0"),
            ("1e99999999999999999999", "1e99999999999999999999"),
        ] {
            assert!(same_number(left, right), "{left} {right}");
        }
        for (left, right) in [
            ("1", "1.0"),
            ("1.1", "1.11"),
            ("-1.5", "1.5"),
            ("18446744073709551616", "18446744073709551617"),
            ("0.1", "0.1000000000000000055"),
            ("1e400", "1e401"),
            ("1e2", "1e3"),
        ] {
            assert!(!same_number(left, right), "{left} {right}");
        }
    }
}
