//! CEL expressions of rules, with the cost that an API server estimates for them.
//!
//! The estimate follows the one of cel-go with the sizes of a CRD's types, for the few forms that rules need. It is an upper
//! bound for one evaluation.

use std::fmt::{self, Write};

/// An expression over the fields of `self`.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    /// `has(self.name)`, with the escaped name. False for null, too.
    Has(String),
    /// `self.name`, with the escaped name and the length of the longest value.
    Field(String, u64),
    /// A string.
    Text(String),
    /// A number.
    Number(u8),
    /// Zero as a floating point number.
    ZeroPointZero,
    Not(Box<Expression>),
    /// All hold. Never empty.
    And(Vec<Expression>),
    /// One holds. Never empty.
    Or(Vec<Expression>),
    Equals(Box<Expression>, Box<Expression>),
    Differs(Box<Expression>, Box<Expression>),
    /// `number <= 1`.
    AtMostOne(Box<Expression>),
    /// `collection.size() > 0`.
    HasItems(Box<Expression>),
    /// The sum of numbers. Never empty.
    Sum(Vec<Expression>),
    If(Box<Expression>, Box<Expression>, Box<Expression>),
}

/// How tightly an expression binds, from `?:` to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Conditional,
    Or,
    And,
    Relation,
    Sum,
    Unary,
    Tight,
}

impl Expression {
    /// Returns an expression that is true if one of these is. There is at least one.
    pub(super) fn any(mut all: Vec<Self>) -> Self {
        if all.len() == 1 { all.remove(0) } else { Self::Or(all) }
    }

    pub(super) fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn equals(self, value: &str) -> Self {
        Self::Equals(Box::new(self), Box::new(Self::text(value)))
    }

    pub(super) fn differs(self, value: &str) -> Self {
        Self::Differs(Box::new(self), Box::new(Self::text(value)))
    }

    pub(super) fn differs_from(self, other: Self) -> Self {
        Self::Differs(Box::new(self), Box::new(other))
    }

    pub(super) fn then(self, yes: Self, no: Self) -> Self {
        Self::If(Box::new(self), Box::new(yes), Box::new(no))
    }

    /// Returns the cost of one evaluation that an API server estimates.
    pub(super) fn cost(&self) -> u64 {
        let sum = |all: &[Self]| all.iter().fold(0_u64, |sum, one| sum.saturating_add(one.cost()));
        match self {
            Self::Text(_) | Self::Number(_) | Self::ZeroPointZero => 0,
            Self::Has(_) => 1,
            Self::Field(..) => 2,
            Self::Not(inner) | Self::AtMostOne(inner) => inner.cost().saturating_add(1),
            Self::HasItems(inner) => inner.cost().saturating_add(2),
            Self::And(all) | Self::Or(all) => sum(all),
            Self::Equals(one, other) | Self::Differs(one, other) => {
                let compared = traversal(one.size().min(other.size()));
                compared.saturating_add(one.cost()).saturating_add(other.cost())
            }
            Self::Sum(parts) => {
                let additions = u64::try_from(parts.len().saturating_sub(1)).unwrap_or(u64::MAX);
                sum(parts).saturating_add(additions)
            }
            Self::If(condition, yes, no) => condition.cost().saturating_add(yes.cost().max(no.cost())),
        }
    }

    /// Returns the length of the longest result, if it is a string.
    fn size(&self) -> u64 {
        match self {
            Self::Field(_, size) => *size,
            Self::Text(text) => u64::try_from(text.chars().count()).unwrap_or(u64::MAX),
            Self::If(_, yes, no) => yes.size().max(no.size()),
            Self::Has(_)
            | Self::Sum(_)
            | Self::Number(_)
            | Self::ZeroPointZero
            | Self::HasItems(_)
            | Self::Not(_)
            | Self::And(_)
            | Self::Or(_)
            | Self::Equals(..)
            | Self::Differs(..)
            | Self::AtMostOne(_) => 1,
        }
    }

    fn binding(&self) -> Binding {
        match self {
            Self::If(..) => Binding::Conditional,
            Self::Or(all) if all.len() > 1 => Binding::Or,
            Self::And(all) if all.len() > 1 => Binding::And,
            Self::Sum(parts) if parts.len() > 1 => Binding::Sum,
            Self::Or(all) | Self::And(all) | Self::Sum(all) => all.first().map_or(Binding::Tight, Self::binding),
            Self::Equals(..) | Self::Differs(..) | Self::AtMostOne(_) | Self::HasItems(_) => Binding::Relation,
            Self::Not(_) => Binding::Unary,
            Self::Has(_) | Self::Field(..) | Self::Text(_) | Self::Number(_) | Self::ZeroPointZero => Binding::Tight,
        }
    }

    /// Writes the expression, in parentheses unless it binds at least as tightly.
    fn write(&self, f: &mut fmt::Formatter<'_>, around: Binding) -> fmt::Result {
        if self.binding() < around { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

/// Returns the cost of reading a string.
fn traversal(size: u64) -> u64 {
    size.div_ceil(10)
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, all: &[Self], operator: &str, around| {
            for (position, one) in all.iter().enumerate() {
                if position > 0 {
                    f.write_str(operator)?;
                }
                one.write(f, around)?;
            }
            Ok(())
        };
        match self {
            Self::Has(name) => write!(f, "has(self.{name})"),
            Self::Field(name, _) => write!(f, "self.{name}"),
            Self::Text(text) => write_literal(f, text),
            Self::Number(number) => write!(f, "{number}"),
            Self::ZeroPointZero => f.write_str("0.0"),
            Self::Not(inner) => {
                f.write_char('!')?;
                inner.write(f, Binding::Tight)
            }
            // Only one operand: no operator, so what is around decides about parentheses.
            Self::And(all) | Self::Or(all) | Self::Sum(all) if all.len() == 1 => list(f, all, "", Binding::Conditional),
            Self::And(all) => list(f, all, " && ", Binding::Relation),
            Self::Or(all) => list(f, all, " || ", Binding::And),
            Self::Sum(all) => list(f, all, " + ", Binding::Unary),
            Self::Equals(one, other) => {
                one.write(f, Binding::Sum)?;
                f.write_str(" == ")?;
                other.write(f, Binding::Sum)
            }
            Self::Differs(one, other) => {
                one.write(f, Binding::Sum)?;
                f.write_str(" != ")?;
                other.write(f, Binding::Sum)
            }
            Self::AtMostOne(number) => {
                number.write(f, Binding::Sum)?;
                f.write_str(" <= 1")
            }
            Self::HasItems(collection) => {
                collection.write(f, Binding::Tight)?;
                f.write_str(".size() > 0")
            }
            Self::If(condition, yes, no) => {
                condition.write(f, Binding::Or)?;
                f.write_str(" ? ")?;
                yes.write(f, Binding::Or)?;
                f.write_str(" : ")?;
                no.write(f, Binding::Conditional)
            }
        }
    }
}

/// Writes a string literal of CEL.
fn write_literal(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(f, "\\{character}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            other if other.is_control() => write!(f, "\\u{:04x}", u32::from(other))?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(name: &str) -> Expression {
        Expression::Has(name.to_owned())
    }

    fn field() -> Expression {
        Expression::Field("type".to_owned(), 4)
    }

    #[test]
    fn parentheses_stand_only_where_they_are_needed() {
        let any = Expression::Or(vec![has("a"), has("b")]);
        let all = Expression::And(vec![has("a"), any.clone(), field().differs("A")]);
        assert_eq!(all.to_string(), r#"has(self.a) && (has(self.a) || has(self.b)) && self.type != "A""#);
        assert_eq!(all.not().to_string(), r#"!(has(self.a) && (has(self.a) || has(self.b)) && self.type != "A")"#);
        assert_eq!(Expression::And(vec![any.clone()]).not().to_string(), "!(has(self.a) || has(self.b))");
        let number = has("a").then(Expression::Number(1), Expression::Number(0));
        let sum = Expression::AtMostOne(Box::new(Expression::Sum(vec![number.clone(), number])));
        assert_eq!(sum.to_string(), "(has(self.a) ? 1 : 0) + (has(self.a) ? 1 : 0) <= 1");
        assert_eq!(sum.cost(), 4);
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(Expression::text("a\"\\\n\u{1}ü`'").to_string(), "\"a\\\"\\\\\\n\\u0001ü`'\"");
    }

    #[test]
    fn costs_are_those_that_an_api_server_estimates() {
        let type_is_a = Expression::And(vec![has("type"), field().equals("A")]);
        assert_eq!(Expression::Or(vec![has("a").not(), type_is_a]).cost(), 6);
        assert_eq!(field().differs("").cost(), 2);
        let long = Expression::Field("type".to_owned(), 3_000_000);
        assert_eq!(long.equals("12345678901").cost(), 4);
    }
}
