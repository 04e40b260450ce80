//! The conditions of rules as CEL expressions, with the cost that an API server estimates for them.
//!
//! The estimate follows the one of cel-go with the sizes of a CRD's types, for the few forms that rules need. It is an upper
//! bound for one evaluation.

use kube_unions_core::schema::cel_name::escape;
use std::fmt::{self, Write};

/// A condition on the fields of an object. It may read the value of a field that is absent only beside an operand that decides
/// without it.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    /// The field is there. False for null, too.
    Has(String),
    IsTrue(String),
    /// The field has this text, or if false another one.
    Is(TextField, String, bool),
    IsFilled(String, Emptiness),
    Not(Box<Expression>),
    /// All hold. Never empty.
    And(Vec<Expression>),
    /// One holds. Never empty.
    Or(Vec<Expression>),
    /// At most one holds. Never empty.
    AtMostOne(Vec<Expression>),
}

#[derive(Debug, Clone)]
pub(super) struct TextField {
    pub(super) name: String,
    /// The length of the longest value.
    pub(super) longest: u64,
}

/// The types of values, by what is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emptiness {
    Boolean,
    Integer,
    Real,
    Text,
    List,
    Map,
    /// An object with named fields.
    Fields,
    /// The schema does not tell the type.
    Unknown,
}

/// How tightly an expression binds, from `||` to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Relation,
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

    /// Returns the cost of one evaluation that an API server estimates.
    pub(super) fn cost(&self) -> u64 {
        let sum = |all: &[Self]| all.iter().fold(0_u64, |sum, one| sum.saturating_add(one.cost()));
        match self {
            Self::Has(_) => 1,
            Self::IsTrue(_) => 2,
            Self::Is(field, text, _) => {
                let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
                // A tenth is the cost of reading a string.
                field.longest.min(length).div_ceil(10).saturating_add(2)
            }
            Self::IsFilled(_, emptiness) => match emptiness {
                Emptiness::Boolean | Emptiness::Text => 2,
                Emptiness::Integer | Emptiness::Real => 3,
                Emptiness::List | Emptiness::Map | Emptiness::Fields | Emptiness::Unknown => 4,
            },
            Self::Not(inner) => inner.cost().saturating_add(1),
            Self::And(all) | Self::Or(all) => sum(all),
            // One addition less than there are operands, and a comparison.
            Self::AtMostOne(all) => sum(all).saturating_add(u64::try_from(all.len()).unwrap_or(u64::MAX)),
        }
    }

    /// Returns a condition that holds if this one does not.
    pub(super) fn negated(&self) -> Self {
        let negated = |all: &[Self]| all.iter().map(Self::negated).collect();
        match self {
            Self::Not(inner) => (**inner).clone(),
            Self::And(all) => Self::Or(negated(all)),
            Self::Or(all) => Self::And(negated(all)),
            Self::Is(field, text, holds) => Self::Is(field.clone(), text.clone(), !holds),
            Self::Has(_) | Self::IsTrue(_) | Self::IsFilled(..) | Self::AtMostOne(_) => self.clone().not(),
        }
    }

    /// Returns true if the condition tells an empty value of a field from others.
    pub(super) fn tells_if_empty(&self, name: &str) -> bool {
        match self {
            Self::Has(_) | Self::IsTrue(_) => false,
            Self::Is(field, text, _) => field.name == name && text.is_empty(),
            Self::IsFilled(field, _) => field == name,
            Self::Not(inner) => inner.tells_if_empty(name),
            Self::And(all) | Self::Or(all) | Self::AtMostOne(all) => all.iter().any(|one| one.tells_if_empty(name)),
        }
    }

    fn binding(&self) -> Binding {
        match self {
            Self::Or(all) if all.len() > 1 => Binding::Or,
            Self::And(all) if all.len() > 1 => Binding::And,
            Self::Or(all) | Self::And(all) => all.first().map_or(Binding::Tight, Self::binding),
            Self::IsFilled(_, Emptiness::Boolean) | Self::Has(_) | Self::IsTrue(_) => Binding::Tight,
            Self::Is(..) | Self::AtMostOne(_) | Self::IsFilled(..) => Binding::Relation,
            Self::Not(_) => Binding::Unary,
        }
    }

    /// Writes the expression, in parentheses unless it binds at least as tightly.
    fn write(&self, f: &mut fmt::Formatter<'_>, around: Binding) -> fmt::Result {
        if self.binding() < around { write!(f, "({self})") } else { write!(f, "{self}") }
    }
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
            Self::Has(name) => write!(f, "has({})", selected(name)),
            Self::IsTrue(name) | Self::IsFilled(name, Emptiness::Boolean) => write!(f, "{}", selected(name)),
            Self::IsFilled(name, Emptiness::Integer) => write!(f, "{} != 0", selected(name)),
            Self::IsFilled(name, Emptiness::Real) => write!(f, "{} != 0.0", selected(name)),
            Self::IsFilled(name, Emptiness::Text) => write!(f, "{} != \"\"", selected(name)),
            Self::IsFilled(name, _) => write!(f, "{}.size() > 0", selected(name)),
            Self::Is(field, text, holds) => {
                // The escapes of JSON are escapes of CEL.
                let literal = serde_json::Value::from(text.as_str());
                write!(f, "{} {} {literal}", selected(&field.name), if *holds { "==" } else { "!=" })
            }
            Self::Not(inner) => {
                f.write_char('!')?;
                inner.write(f, Binding::Tight)
            }
            // Only one operand: no operator, so what is around decides about parentheses.
            Self::And(all) | Self::Or(all) if all.len() == 1 => list(f, all, "", Binding::Or),
            Self::And(all) => list(f, all, " && ", Binding::Relation),
            Self::Or(all) => list(f, all, " || ", Binding::And),
            Self::AtMostOne(all) => {
                for (position, one) in all.iter().enumerate() {
                    f.write_str(if position > 0 { " + (" } else { "(" })?;
                    one.write(f, Binding::Or)?;
                    f.write_str(" ? 1 : 0)")?;
                }
                f.write_str(" <= 1")
            }
        }
    }
}

fn selected(name: &str) -> String {
    format!("self.{}", escape(name).as_deref().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(name: &str) -> Expression {
        Expression::Has(name.to_owned())
    }

    fn field(longest: u64) -> TextField {
        TextField { name: "type".to_owned(), longest }
    }

    #[test]
    fn parentheses_stand_only_where_they_are_needed() {
        let any = Expression::Or(vec![has("a"), has("b")]);
        let all = Expression::And(vec![has("a"), any.clone(), Expression::Is(field(4), "A".to_owned(), false)]);
        assert_eq!(all.to_string(), r#"has(self.a) && (has(self.a) || has(self.b)) && self.type != "A""#);
        assert_eq!(all.not().to_string(), r#"!(has(self.a) && (has(self.a) || has(self.b)) && self.type != "A")"#);
        assert_eq!(Expression::And(vec![any.clone()]).not().to_string(), "!(has(self.a) || has(self.b))");
        let sum = Expression::AtMostOne(vec![has("a"), any]);
        assert_eq!(sum.to_string(), "(has(self.a) ? 1 : 0) + (has(self.a) || has(self.b) ? 1 : 0) <= 1");
        assert_eq!(sum.cost(), 5);
    }

    #[test]
    fn strings_and_names_are_escaped() {
        let is = Expression::Is(field(4), "a\"\\\n\u{1}ü`'".to_owned(), true);
        assert_eq!(is.to_string(), "self.type == \"a\\\"\\\\\\n\\u0001ü`'\"");
        assert_eq!(has("x-y").to_string(), "has(self.x__dash__y)");
    }

    #[test]
    fn costs_are_those_that_an_api_server_estimates() {
        let type_is_a = Expression::And(vec![has("type"), Expression::Is(field(4), "A".to_owned(), true)]);
        assert_eq!(Expression::Or(vec![has("a").not(), type_is_a]).cost(), 6);
        assert_eq!(Expression::Is(field(4), String::new(), false).cost(), 2);
        assert_eq!(Expression::Is(field(3_000_000), "12345678901".to_owned(), true).cost(), 4);
    }
}
