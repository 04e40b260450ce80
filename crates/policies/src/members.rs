//! The constants of a union: its members, its values, and the tables between them.

use crate::cel::{EMPTY, lists, table, text, texts, token};
use crate::value::UserValue;
use crate::variables::{Variables, camel};
use kube_unions_core::union::{Choice, Form, SelectedMember, Union};

/// The constants of a union, as expressions.
#[derive(Debug, Clone)]
pub(crate) struct Members<'u> {
    pub(crate) union: &'u Union,
    /// The names of the members, sorted.
    pub(crate) all: String,
    /// The member that each value of the discriminator selects, `""` for an empty member. With groups: the list of the members.
    pub(crate) selects: String,
    /// With groups: the list of the members that each value of the discriminator needs.
    needed: String,
    /// The first value that selects each member: its group in the 2019 form.
    pub(crate) value: String,
    /// The names of the members whose empty values count as not set, sorted. Empty if there are none.
    empty_is_unset: String,
    /// The values that count as not set in them.
    empty: String,
    /// True if a member that is there is set: none can be null.
    pub(crate) present_is_set: bool,
    /// The condition of a member `m` that can be null, or nothing if all can.
    can_be_null: String,
}

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
            Algorithm::Map(discriminator) if union.has_groups() => {
                let comment = format!("those that each `{discriminator}` may set");
                members.selects = variables.add(&name("selectedBy"), &members.names_of_values(|_| true), &comment);
            }
            Algorithm::Map(discriminator) => {
                let selected =
                    |choice: &'u Choice| choice.members().first().map_or("", SelectedMember::name).to_owned();
                let literal = table(union.choices().iter().map(|choice| (choice.value(), selected(choice))));
                let comment = format!("the one that each `{discriminator}` may set");
                members.selects = variables.add(&name("member"), &literal, &comment);
            }
            Algorithm::Discriminated(discriminator) => {
                let comment = format!("the `{discriminator}` of each member");
                members.value = variables.add(&name("valueOf"), &members.first_values(), &comment);
            }
            Algorithm::Undiscriminated if union.has_groups() => {
                let comment = "the group of each member: those of one may be set together";
                members.value = variables.add(&name("groupOf"), &members.first_values(), comment);
            }
            Algorithm::Undiscriminated => {}
        }
        members
    }

    /// Adds the variable of the members that each value needs, if any does, and several are selected by a value.
    pub(crate) fn with_needed(mut self, discriminator: &str, prefix: &str, variables: &mut Variables) -> Self {
        if self.union.has_groups() {
            let literal = self.names_of_values(|member| !member.is_optional());
            let comment = format!("those that each `{discriminator}` needs");
            self.needed = variables.add(&camel(&[prefix, "neededBy"]), &literal, &comment);
        }
        self
    }

    /// Returns a literal with the members of each value.
    fn names_of_values(&self, is_listed: impl Fn(&SelectedMember) -> bool) -> String {
        let choices = self.union.choices().iter();
        lists(choices.map(|choice| {
            let members = choice.members().iter().filter(|member| is_listed(member));
            (choice.value(), texts(members.map(SelectedMember::name)))
        }))
    }

    /// Returns a literal with the first value of each member.
    fn first_values(&self) -> String {
        let value = |member: &'u str| (member, self.values(member).first().copied().unwrap_or_default().to_owned());
        table(self.union.members().map(value))
    }

    /// Returns true if the member `m` is not selected by a value, an expression. An unknown value selects all.
    pub(crate) fn is_left_over(&self, value: &str) -> String {
        let Self { selects, .. } = self;
        if self.union.has_groups() {
            format!("!(m in {selects}[?{value}].orValue([m]))")
        } else {
            format!("m != {selects}[?{value}].orValue(m)")
        }
    }

    /// Returns what a value selects: a member, or a list of members with groups. An unknown value selects none.
    pub(crate) fn selected(&self, value: &str) -> String {
        let nothing = if self.union.has_groups() { "[]" } else { "\"\"" };
        format!("{}[?{value}].orValue({nothing})", self.selects)
    }

    /// Returns true if the member `m` is not one of what a value [selects](Self::selected).
    pub(crate) fn is_not(&self, selected: &str) -> String {
        if self.union.has_groups() { format!("!(m in {selected})") } else { format!("m != {selected}") }
    }

    /// Returns true if a value needs the member `m`, which is not set. `None` if no value needs one.
    pub(crate) fn is_missing(&self, value: &str, selected: &str) -> Option<String> {
        let needs = self.needs(value)?;
        if self.union.has_groups() {
            return Some(format!("m in {}[?{value}].orValue([])", self.needed));
        }
        Some(if needs.is_empty() { format!("m == {selected}") } else { format!("m == {selected} && {needs}") })
    }

    /// Returns true if the members of a list may be set together.
    pub(crate) fn go_together(&self, list: &str) -> String {
        match Algorithm::of(self.union) {
            _ if !self.union.has_groups() => format!("{list}.size() < 2"),
            Algorithm::Map(_) => format!("{}.exists(v, {list}.all(m, m in {0}[v]))", self.selects),
            Algorithm::Discriminated(_) | Algorithm::Undiscriminated => {
                format!("{list}.all(m, {0}[m] == {0}[{list}[0]])", self.value)
            }
        }
    }

    /// Returns true if the members of a list may not be set together.
    pub(crate) fn clash(&self, list: &str) -> String {
        if self.union.has_groups() { format!("!{}", self.go_together(list)) } else { format!("{list}.size() > 1") }
    }

    /// Returns true if the members of a list may be set together in the 2019 form: there is one, or several of one group.
    pub(crate) fn is_one_choice(&self, list: &str) -> String {
        if self.union.has_groups() {
            format!("{list}.size() > 0 && {list}.all(m, {0}[m] == {0}[{list}[0]])", self.value)
        } else {
            format!("{list}.size() == 1")
        }
    }

    /// Returns true if the member `m` may not be set together with another one, in the 2019 form.
    pub(crate) fn clashes_with(&self, other: &str) -> String {
        if self.union.has_groups() { format!("{0}[m] != {0}[{other}]", self.value) } else { format!("m != {other}") }
    }

    /// Returns the members of a list, one of each group of the 2019 form.
    pub(crate) fn one_of_each(&self, list: &str) -> String {
        if !self.union.has_groups() {
            return list.to_owned();
        }
        format!("{list}.filter(m, !{list}.exists(o, o < m && {0}[o] == {0}[m]))", self.value)
    }

    /// Returns the value of the discriminator of an object, as a text. `sees_nulls`: it may be null, whatever the schema says.
    pub(crate) fn value_in(&self, object: &UserValue, typed: bool, sees_nulls: bool) -> String {
        let Some(name) = self.union.discriminator() else { return "\"\"".to_owned() };
        let value = object.find(name);
        match (self.union.is_boolean(), typed) {
            (true, true) => value.boolean(),
            (false, true) if sees_nulls || self.union.has_nullable_discriminator() => value.string_or_null(),
            (false, true) => value.string(),
            (is_boolean, false) => {
                let kind = if is_boolean { "bool" } else { "string" };
                format!("[{}].map(v, type(v) == {kind} ? string(v) : \"\")[0]", value.or("\"\"").text())
            }
        }
    }

    /// Returns the constants where they are used: match conditions read no variables.
    pub(crate) fn inline(union: &'u Union, typed: bool) -> Self {
        let empty_is_unset =
            if union.empty_is_unset().next().is_some() { texts(union.empty_is_unset()) } else { String::new() };
        let nullable: Vec<&str> = union.nullable_members().collect();
        let can_be_null = match nullable[..] {
            _ if !typed || nullable.is_empty() || nullable.len() == union.members().count() => String::new(),
            [name] => format!("m == {}", text(name)),
            _ => format!("m in {}", texts(nullable.iter().copied())),
        };
        Self {
            union,
            all: texts(union.members()),
            selects: String::new(),
            needed: String::new(),
            value: String::new(),
            empty_is_unset,
            empty: EMPTY.to_owned(),
            present_is_set: typed && nullable.is_empty(),
            can_be_null,
        }
    }

    /// Returns the values that select a member, sorted.
    pub(crate) fn values(&self, member: &str) -> Vec<&'u str> {
        let choices = self.union.choices().iter();
        choices.filter(|choice| choice.selected(member).is_some()).map(Choice::value).collect()
    }

    /// Returns true if the member `m` of an object, which may be an optional value, is set. A null of one that cannot be null is that of a
    /// server-side apply, and clearing it removes it.
    pub(crate) fn is_set(&self, object: &UserValue) -> String {
        let value = object.find_at("m");
        let set = match &*self.can_be_null {
            _ if self.present_is_set => value.is_there(),
            "" => value.is_not_null(),
            can_be_null => format!("({can_be_null} ? {} : {})", value.is_not_null(), value.is_there()),
        };
        let is_empty = value.is_in(&self.empty);
        match self.union.empty_is_unset().collect::<Vec<_>>()[..] {
            [] => set,
            [name] => format!("{set} && !(m == {} && {is_empty})", text(name)),
            _ => format!("{set} && !(m in {} && {is_empty})", self.empty_is_unset),
        }
    }

    /// Returns a literal with the members that can have a value which nobody owns. `None` if there is none.
    pub(crate) fn ownerless(&self) -> Option<String> {
        let mut names = self.union.ownerless().peekable();
        names.peek()?;
        Some(texts(names))
    }

    pub(crate) fn set_in(&self, object: &UserValue) -> String {
        format!("{}.filter(m, {})", self.all, self.is_set(object))
    }

    /// Returns the members of an object that are not null.
    pub(crate) fn non_null_in(&self, object: &UserValue) -> String {
        format!("{}.filter(m, {})", self.all, object.find_at("m").is_not_null())
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
    fn needs(&self, value: &str) -> Option<String> {
        let selecting = self.union.choices().iter().filter(|choice| !choice.members().is_empty());
        let needs = |choice: &&Choice| choice.members().iter().any(|member| !member.is_optional());
        let (required, optional): (Vec<&Choice>, Vec<&Choice>) = selecting.partition(needs);
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

    /// Returns true if the discriminator of an object at the end of fields is not what it was.
    pub(crate) fn value_differs(&self, names: &[&str]) -> String {
        let value = |object: &str| self.value_in(&UserValue::new(object).follow(names), true, false);
        format!("{} != {}", value("object"), value("oldObject"))
    }

    /// Returns true if the members of two objects that are set differ.
    pub(crate) fn differ(&self) -> String {
        let [is_set, was_set] = ["object", "oldObject"].map(|object| self.is_set(&UserValue::new(object)));
        format!("{}.exists(m, ({is_set}) != ({was_set}))", self.all)
    }
}

/// Returns a declared value as a message shows it: on one line.
fn printable(value: &str) -> String {
    value.chars().map(|it| if it.is_control() { char::REPLACEMENT_CHARACTER } else { it }).collect()
}
