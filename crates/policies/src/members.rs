//! The constants of a union: its members, its values, and the tables between them.

use crate::cel::{self, is_empty, is_set, string_field, table, text, texts};
use crate::variables::Variables;
use kube_unions_core::union::{Choice, Form, Union};

/// The constants of a union, as expressions.
#[derive(Debug)]
pub(crate) struct Members<'u> {
    pub(crate) union: &'u Union,
    /// The names of the members, sorted.
    pub(crate) all: String,
    /// The names of the members whose empty values count as not set, sorted. Empty if there are none.
    pub(crate) empty_is_unset: String,
    /// The member that each value of the discriminator selects, `""` for an empty member.
    pub(crate) selects: String,
    /// The first value that selects each member.
    pub(crate) value: String,
}

/// The algorithm of a union.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm<'u> {
    /// The 2022 form, with its discriminator.
    Map(&'u str),
    /// The 2019 form with a discriminator.
    Discriminated(&'u str),
    /// The 2019 form without a discriminator.
    Undiscriminated,
}

impl<'u> Algorithm<'u> {
    pub(crate) fn of(union: &'u Union) -> Self {
        match (union.form(), union.discriminator()) {
            (Form::Map, Some(name)) => Self::Map(name),
            (Form::List, Some(name)) => Self::Discriminated(name),
            (Form::List | Form::Map, None) => Self::Undiscriminated,
        }
    }
}

impl<'u> Members<'u> {
    pub(crate) fn new(union: &'u Union, name: &str, variables: &mut Variables) -> Self {
        let all = variables.constant(&format!("{name}_members"), texts(union.members()));
        let mut empty_is_unset = String::new();
        if union.empty_is_unset().next().is_some() {
            empty_is_unset = variables.constant(&format!("{name}_unset"), texts(union.empty_is_unset()));
        }
        let mut members = Self { union, all, empty_is_unset, selects: String::new(), value: String::new() };
        match Algorithm::of(union) {
            Algorithm::Map(_) => {
                let selects = |choice: &'u Choice| (choice.value(), choice.member().unwrap_or_default().to_owned());
                let literal = table(union.choices().iter().map(selects));
                members.selects = variables.constant(&format!("{name}_selects"), literal);
            }
            Algorithm::Discriminated(_) => {
                let value =
                    |member: &'u str| (member, members.values(member).first().copied().unwrap_or_default().to_owned());
                let literal = table(union.members().map(value));
                members.value = variables.constant(&format!("{name}_value"), literal);
            }
            Algorithm::Undiscriminated => {}
        }
        members
    }

    /// Returns the values that select a member, sorted.
    pub(crate) fn values(&self, member: &str) -> Vec<&'u str> {
        let choices = self.union.choices().iter();
        choices.filter(|choice| choice.member() == Some(member)).map(Choice::value).collect()
    }

    /// Returns true if the member `m` is set in an object.
    pub(crate) fn is_set(&self, object: &str) -> String {
        let set = is_set(object, "m");
        if self.empty_is_unset.is_empty() {
            return set;
        }
        format!("{set} && !(m in {} && {})", self.empty_is_unset, is_empty(&format!("{object}[m]")))
    }

    /// Returns the members that are set in an object.
    pub(crate) fn set_in(&self, object: &str) -> String {
        format!("{}.filter(m, {})", self.all, self.is_set(object))
    }

    /// Returns the members that are set in `p.new`, and in no known old object.
    pub(crate) fn added(&self) -> String {
        format!("{}.filter(m, {} && !p.old.exists(o, {}))", self.all, self.is_set("p.new"), self.is_set("o"))
    }

    /// Returns the value of the discriminator in an object, empty if there is none.
    pub(crate) fn discriminator_in(&self, object: &str) -> String {
        self.union.discriminator().map_or_else(|| "\"\"".to_owned(), |name| string_field(object, name))
    }

    /// Returns true if the request changed the discriminator to a value that is not empty.
    pub(crate) fn changed(&self) -> String {
        let (now, was) = (self.discriminator_in("p.new"), self.discriminator_in("o"));
        format!("{now} != \"\" && !p.old.exists(o, {was} == {now})")
    }

    /// Returns true if the discriminator of `p.new` is not a string.
    pub(crate) fn is_wrong_type(&self) -> String {
        self.union.discriminator().map_or_else(|| "false".to_owned(), |name| cel::is_wrong_type("p.new", name))
    }

    /// Returns the reference token of the member `m`, with its slash.
    pub(crate) fn pointer(&self) -> &'static str {
        if self.union.members().any(|name| name.contains(['~', '/'])) {
            "\"/\" + m.replace(\"~\", \"~0\").replace(\"/\", \"~1\")"
        } else {
            "\"/\" + m"
        }
    }

    /// Returns a literal with the values of each member as the messages list them.
    pub(crate) fn listed_values(&self) -> String {
        let listed = |member: &'u str| {
            let quoted: Vec<String> =
                self.values(member).iter().map(|value| format!("\"{}\"", printable(value))).collect();
            (member, quoted.join(" or "))
        };
        table(self.union.members().map(listed))
    }

    /// Returns a literal with the values that need their member.
    pub(crate) fn required(&self) -> Option<String> {
        let needs = |choice: &&Choice| choice.member().is_some() && !choice.optional();
        let required: Vec<&str> = self.union.choices().iter().filter(needs).map(Choice::value).collect();
        (!required.is_empty()).then(|| texts(required))
    }

    /// Returns the declared values as the message about an unknown value lists them.
    pub(crate) fn supported(&self) -> String {
        let values = self.union.choices().iter().map(Choice::value).filter(|value| !value.is_empty());
        let quoted: Vec<String> = values.map(|value| format!("\"{}\"", printable(value))).collect();
        quoted.join(", ")
    }
}

/// Returns a name for the variables of a union.
pub(crate) fn name_of(place: &str, union: &Union) -> String {
    let place = place.trim_start_matches("variables.");
    let word = union.discriminator().or_else(|| union.members().next()).unwrap_or_default();
    format!("{place}_{word}")
}

/// Returns a declared value as a message shows it: on one line.
fn printable(value: &str) -> String {
    value.chars().map(|it| if it.is_control() { char::REPLACEMENT_CHARACTER } else { it }).collect()
}

/// Returns a text between backticks.
pub(crate) fn backticked(name: &str) -> String {
    format!("`{name}`")
}

/// Returns the literal of a text that surrounds a value.
pub(crate) fn words(parts: &[&str]) -> String {
    text(&parts.concat())
}
