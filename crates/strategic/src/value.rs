//! A JSON document as the engine sees it: immutable, shared, and as it was written.
//!
//! `serde_json::Value` would not do. It turns numbers into what a machine can hold, so that `1.10` or a big integer comes back
//! as another text, and its feature against that, `arbitrary_precision`, changes what every other crate of the build reads.
//! It is also dropped, compared and written recursively, and a document of an API server may be ten thousand levels deep.
//! So here numbers are text; everything lives in an arena, whose end takes no walk; parts of documents are
//! shared with the result instead of copied; and whatever goes through a document keeps its place on the heap.

use bumpalo::Bump;

/// A value. Copying it copies a reference.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(&'a str),
    /// A string, without its escapes.
    String(&'a str),
    /// A list.
    List(&'a [Value<'a>]),
    /// An object. No key is there twice.
    Map(&'a [Entry<'a>]),
}

/// A field of an object.
pub(super) type Entry<'a> = (&'a str, Value<'a>);

/// What a value is, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// Null.
    Null,
    /// True or false.
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

/// A scalar as keys and sets compare it: the type counts, and a number by its value, integers apart from decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Scalar<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Integer(&'a str),
    /// Any other number: sign, digits without zeros around them, exponent of the first digit.
    Decimal(bool, &'a str, i64),
    /// A string.
    String(&'a str),
}

impl<'a> Value<'a> {
    /// An object without fields.
    pub(super) const EMPTY: Self = Self::Map(&[]);

    /// What it is.
    pub(super) fn kind(self) -> ValueKind {
        match self {
            Self::Null => ValueKind::Null,
            Self::Bool(_) => ValueKind::Boolean,
            Self::Number(_) => ValueKind::Number,
            Self::String(_) => ValueKind::String,
            Self::List(_) => ValueKind::List,
            Self::Map(_) => ValueKind::Object,
        }
    }

    /// The fields, if it is an object.
    pub(super) fn entries(self) -> Option<&'a [Entry<'a>]> {
        if let Self::Map(entries) = self { Some(entries) } else { None }
    }

    /// The items, if it is a list.
    pub(super) fn items(self) -> Option<&'a [Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// The field of an object.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        find(self.entries()?, key)
    }

    /// The value as a scalar, `None` for a list or an object.
    pub(super) fn scalar(self, arena: &'a Bump) -> Option<Scalar<'a>> {
        Some(match self {
            Self::Null => Scalar::Null,
            Self::Bool(value) => Scalar::Bool(value),
            Self::Number(text) => number(text, arena),
            Self::String(text) => Scalar::String(text),
            Self::List(_) | Self::Map(_) => return None,
        })
    }

    /// The text of a scalar, by which the reference sorts.
    pub(super) fn sort_text(self) -> &'a str {
        match self {
            Self::Null => "<nil>",
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
            Self::Number(text) | Self::String(text) => text,
            Self::List(_) | Self::Map(_) => "",
        }
    }

    /// Whether both say the same. The order of an object's fields says nothing, and a number counts by its value, but an
    /// integer is never the same as a decimal.
    pub(super) fn same(self, other: Self) -> bool {
        let mut open = vec![(self, other)];
        while let Some(pair) = open.pop() {
            match pair {
                (Self::Null, Self::Null) => {}
                (Self::Bool(left), Self::Bool(right)) if left == right => {}
                (Self::String(left), Self::String(right)) if left == right => {}
                (Self::Number(left), Self::Number(right)) if same_number(left, right) => {}
                (Self::List(left), Self::List(right)) if left.len() == right.len() => {
                    if !std::ptr::eq(left, right) {
                        open.extend(left.iter().copied().zip(right.iter().copied()));
                    }
                }
                (Self::Map(left), Self::Map(right)) if left.len() == right.len() => {
                    if std::ptr::eq(left, right) {
                        continue;
                    }
                    let mut fields = Fields::of(right);
                    for &(key, value) in left {
                        let Some((_, other)) = fields.get(key) else { return false };
                        open.push((value, other));
                    }
                }
                _ => return false,
            }
        }
        true
    }
}

/// The fields of an object, to be asked for many keys: mostly they come in the order in which they stand; else a small
/// object is searched and a large one gets an index.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    entries: &'a [Entry<'a>],
    next: usize,
    misses: usize,
    index: hashbrown::HashMap<&'a str, usize>,
}

impl<'a> Fields<'a> {
    /// Up to so many entries a search is cheaper than an index.
    const SMALL: usize = 16;

    pub(super) fn of(entries: &'a [Entry<'a>]) -> Self {
        Self { entries, next: 0, misses: 0, index: hashbrown::HashMap::new() }
    }

    /// The position and value of a key.
    pub(super) fn get(&mut self, key: &str) -> Option<(usize, Value<'a>)> {
        let found = self.position(key)?;
        self.next = found + 1;
        self.entries.get(found).map(|(_, value)| (found, *value))
    }

    fn position(&mut self, key: &str) -> Option<usize> {
        if self.entries.get(self.next).is_some_and(|(name, _)| *name == key) {
            return Some(self.next);
        }
        self.misses += 1;
        if self.entries.len() <= Self::SMALL || self.misses <= 2 {
            return self.entries.iter().position(|(name, _)| *name == key);
        }
        if self.index.is_empty() {
            self.index = self.entries.iter().enumerate().map(|(position, (name, _))| (*name, position)).collect();
        }
        self.index.get(key).copied()
    }
}

/// The value of one key.
pub(super) fn find<'a>(entries: &[Entry<'a>], key: &str) -> Option<Value<'a>> {
    entries.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}

/// Drops all but the last value of a key that is there more than once, as every reader of JSON here does.
pub(super) fn without_duplicates(entries: &mut Vec<Entry<'_>>, start: usize) {
    let Some(added) = entries.get(start..) else { return };
    let twice = if added.len() <= Fields::SMALL {
        added
            .iter()
            .enumerate()
            .any(|(position, (key, _))| added.iter().take(position).any(|(before, _)| before == key))
    } else {
        let mut seen = hashbrown::HashSet::with_capacity(added.len());
        !added.iter().all(|(key, _)| seen.insert(*key))
    };
    if !twice {
        return;
    }
    let added = entries.split_off(start);
    let mut positions = hashbrown::HashMap::with_capacity(added.len());
    for entry in added {
        let position = *positions.entry(entry.0).or_insert(entries.len());
        match entries.get_mut(position) {
            Some(first) => *first = entry,
            None => entries.push(entry),
        }
    }
}

fn same_number(left: &str, right: &str) -> bool {
    // Two texts of one number are rare enough for an arena of their own.
    left == right || {
        let arena = Bump::new();
        number(left, &arena) == number(right, &arena)
    }
}

/// A number in the one form that it has among all texts of its value.
fn number<'a>(text: &'a str, arena: &'a Bump) -> Scalar<'a> {
    if !text.contains(['.', 'e', 'E']) {
        return Scalar::Integer(if text == "-0" { "0" } else { text });
    }
    let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = || whole.bytes().chain(fraction.bytes());
    let Some(leading) = all().position(|digit| digit != b'0') else { return Scalar::Decimal(false, "", 0) };
    let (Ok(exponent), Ok(places)) = (exponent.parse::<i64>(), i64::try_from(whole.len())) else {
        // An exponent beyond all numbers: the text stands for itself.
        return Scalar::Decimal(negative, unsigned, i64::MAX);
    };
    let leading_zeros = i64::try_from(leading).unwrap_or(i64::MAX);
    let exponent = exponent.saturating_add(places).saturating_sub(leading_zeros);
    let digits = if leading < whole.len() && fraction.is_empty() {
        whole.get(leading..).unwrap_or_default()
    } else if whole.bytes().all(|digit| digit == b'0') {
        fraction.get(leading - whole.len()..).unwrap_or_default()
    } else {
        arena.alloc_str(&[whole.get(leading..).unwrap_or_default(), fraction].concat())
    };
    Scalar::Decimal(negative, digits.trim_end_matches('0'), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_by_value_and_an_integer_is_no_decimal() {
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

    #[test]
    fn fields_are_found_in_any_order() {
        let names: Vec<String> = (0..100).map(|number| format!("k{number}")).collect();
        let entries: Vec<Entry<'_>> = names.iter().map(|name| (name.as_str(), Value::String(name))).collect();
        let mut fields = Fields::of(&entries);
        for (position, name) in names.iter().enumerate().chain(names.iter().enumerate().rev()) {
            assert!(matches!(fields.get(name), Some((found, Value::String(_))) if found == position));
        }
        assert!(fields.get("none").is_none());
    }

    #[test]
    fn of_a_key_that_is_there_twice_the_last_value_counts_at_the_first_place() {
        let mut entries = vec![("x", Value::Null), ("a", Value::Null), ("b", Value::Null), ("a", Value::Bool(true))];
        without_duplicates(&mut entries, 1);
        assert!(matches!(entries[..], [("x", _), ("a", Value::Bool(true)), ("b", _)]));
    }
}
