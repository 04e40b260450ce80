//! The constants of a union: its members, its values, and the tables between them.

use crate::cel::{EMPTY, table, text, texts, token};
use crate::variables::{Variables, camel};
use kube_unions_core::union::{Choice, Form, Union};

/// The constants of a union, as expressions.
#[derive(Debug, Clone)]
pub(crate) struct Members<'u> {
    pub(crate) union: &'u Union,
    /// The names of the members, sorted.
    pub(crate) all: String,
    /// The member that each value of the discriminator selects, `""` for an empty member.
    pub(crate) selects: String,
    /// The first value that selects each member.
    pub(crate) value: String,
    /// The names of the members whose empty values count as not set, sorted. Empty if there are none.
    empty_is_unset: String,
    /// The values that count as not set in them.
    empty: String,
    /// True if a member that is there is set: it cannot be null.
    present_is_set: bool,
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
    /// Adds the variables of the constants. `prefix` begins their names.
    pub(crate) fn new(union: &'u Union, prefix: &str, typed: bool, variables: &mut Variables) -> Self {
        let name = |word: &str| camel(&[prefix, word]);
        let mut members = Self::inline(union, typed);
        members.all = variables.constant(&name("members"), members.all, "");
        if !members.empty_is_unset.is_empty() {
            let comment = "members whose empty values are not set";
            members.empty_is_unset = variables.constant(&name("unset"), members.empty_is_unset, comment);
            members.empty = variables.add("empty", EMPTY, "values that count as not set");
        }
        match Algorithm::of(union) {
            Algorithm::Map(discriminator) => {
                let selects = |choice: &'u Choice| (choice.value(), choice.member().unwrap_or_default().to_owned());
                let literal = table(union.choices().iter().map(selects));
                let comment = format!("the one that each `{discriminator}` may set");
                members.selects = variables.add(&name("member"), &literal, &comment);
            }
            Algorithm::Discriminated(discriminator) => {
                let value =
                    |member: &'u str| (member, members.values(member).first().copied().unwrap_or_default().to_owned());
                let literal = table(union.members().map(value));
                let comment = format!("the `{discriminator}` of each member");
                members.value = variables.add(&name("valueOf"), &literal, &comment);
            }
            Algorithm::Undiscriminated => {}
        }
        members
    }

    /// Returns the constants where they are used: match conditions read no variables.
    pub(crate) fn inline(union: &'u Union, typed: bool) -> Self {
        let empty_is_unset =
            if union.empty_is_unset().next().is_some() { texts(union.empty_is_unset()) } else { String::new() };
        Self {
            union,
            all: texts(union.members()),
            selects: String::new(),
            value: String::new(),
            empty_is_unset,
            empty: EMPTY.to_owned(),
            present_is_set: typed && !union.has_nullable_members(),
        }
    }

    /// Returns the values that select a member, sorted.
    fn values(&self, member: &str) -> Vec<&'u str> {
        let choices = self.union.choices().iter();
        choices.filter(|choice| choice.member() == Some(member)).map(Choice::value).collect()
    }

    /// Returns true if the member `m` of an object, which may be an optional value, is set.
    pub(crate) fn is_set(&self, object: &str) -> String {
        let value = format!("{object}[?m].orValue(null)");
        let set = if self.present_is_set { format!("{object}[?m].hasValue()") } else { format!("{value} != null") };
        match self.union.empty_is_unset().collect::<Vec<_>>()[..] {
            [] => set,
            [name] => format!("{set} && !(m == {} && {value} in {})", text(name), self.empty),
            _ => format!("{set} && !(m in {} && {value} in {})", self.empty_is_unset, self.empty),
        }
    }

    /// Returns the members of an object that are set.
    pub(crate) fn set_in(&self, object: &str) -> String {
        format!("{}.filter(m, {})", self.all, self.is_set(object))
    }

    /// Returns the member `m` as a reference token of a JSON Pointer.
    pub(crate) fn token(&self) -> String {
        if self.needs_escapes() { token("m") } else { "m".to_owned() }
    }

    /// Returns true if the name of a member needs escapes in a JSON Pointer or in JSON.
    pub(crate) fn needs_escapes(&self) -> bool {
        self.union.members().any(|name| name.contains(['~', '/', '"', '\\']))
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

    /// Returns true if the value `value` needs its member. `None` if no value does.
    pub(crate) fn needs(&self, value: &str) -> Option<String> {
        let selecting = self.union.choices().iter().filter(|choice| choice.member().is_some());
        let (required, optional): (Vec<&Choice>, Vec<&Choice>) = selecting.partition(|choice| !choice.optional());
        match (&required[..], &optional[..]) {
            ([], _) => None,
            // Any value that selects a member.
            (_, []) => Some(String::new()),
            ([one], _) => Some(format!("{value} == {}", text(one.value()))),
            (required, _) => Some(format!("{value} in {}", texts(required.iter().map(|choice| choice.value())))),
        }
    }

    /// Returns the declared values as the message about an unknown value lists them.
    pub(crate) fn supported(&self) -> String {
        let values = self.union.choices().iter().map(Choice::value).filter(|value| !value.is_empty());
        let quoted: Vec<String> = values.map(|value| format!("\"{}\"", printable(value))).collect();
        quoted.join(", ")
    }

    /// Returns true if the empty text is a declared value.
    pub(crate) fn declares_none(&self) -> bool {
        self.union.choices().iter().any(|choice| choice.value().is_empty())
    }

    /// Returns true if the members of two objects that are set differ.
    pub(crate) fn differ(&self) -> String {
        format!("{}.exists(m, ({}) != ({}))", self.all, self.is_set("object"), self.is_set("oldObject"))
    }
}

/// Returns a declared value as a message shows it: on one line.
fn printable(value: &str) -> String {
    value.chars().map(|it| if it.is_control() { char::REPLACEMENT_CHARACTER } else { it }).collect()
}
