//! The rules of one union.
//!
//! Each rule is about one field, and fails if the webhook would report a violation of that field. Rules say less often `&&` and
//! `||` of negations than they could: an API server estimates `!(a && b)` at a cost less than `!a || !b`.

use super::expression::{Expression, TextField};
use super::schema::{DiscriminatorSchema, PlacedSchema};
use crate::options::RuleForm;
use crate::refusal::RefusalReason;
use kube_unions_core::union::{Choice, Form, Union};
use serde_json::Value;
use std::collections::BTreeSet;

/// The end of the text of every rule that this crate makes. It is a comment in CEL.
const MARK: &str = " // kube-unions";

/// Most members of a union with a rule for each. Their text grows with the square of the number.
const MOST_NAMED: usize = 16;

/// Longest expression that an API server parses, in characters, with a margin.
const LONGEST_EXPRESSION: usize = 90_000;

/// Longest message, in bytes.
const LONGEST_MESSAGE: usize = 4096;

#[derive(Debug)]
pub(super) struct UnionRules {
    pub(super) rules: Vec<Rule>,
    /// The values to allow for the discriminator, if its schema allows all. The API server itself words what is wrong then.
    pub(super) values: Option<Vec<Value>>,
}

/// A rule of `x-kubernetes-validations`.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) condition: Expression,
    /// The field that the rule is about, `None` for the object.
    pub(super) field: Option<String>,
    pub(super) reason: Reason,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Forbidden,
    Required,
    /// A rule has no reason for an unsupported value.
    Invalid,
}

struct RuleMember<'u> {
    name: &'u str,
    has: Expression,
}

struct Fields<'u> {
    union: &'u Union,
    /// The members by their groups of the 2019 form.
    groups: Vec<Vec<&'u str>>,
    members: Vec<RuleMember<'u>>,
    discriminator: Option<RuleDiscriminator<'u>>,
}

struct RuleDiscriminator<'u> {
    name: &'u str,
    has: Expression,
    field: TextField,
    /// True if the schema allows an empty text.
    can_be_empty: bool,
    /// True if the schema refuses an object without it.
    always_set: bool,
    values: AllowedValues,
}

/// The values that the schema of a discriminator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllowedValues {
    EveryText,
    Enumerated,
    Booleans,
}

impl Reason {
    /// Returns the name in a rule, and the words in a message of the API server.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Forbidden => ("FieldValueForbidden", "Forbidden"),
            Self::Required => ("FieldValueRequired", "Required value"),
            Self::Invalid => ("FieldValueInvalid", "Invalid value"),
        }
    }
}

impl UnionRules {
    pub(super) fn new(union: &Union, object: &PlacedSchema<'_>) -> Result<Self, RefusalReason> {
        let schema = union.discriminator().map(|name| object.discriminator(name)).transpose()?;
        let values = schema.as_ref().and_then(|schema| new_values(union, schema, object.form));
        let discriminator = union.discriminator().zip(schema.as_ref()).map(|(name, schema)| {
            let allowed = values.as_ref().or(schema.values.as_ref());
            let texts = || allowed.map(|values| values.iter().filter_map(Value::as_str));
            RuleDiscriminator {
                name,
                has: Expression::Has(name.to_owned()),
                field: schema.field(name, texts()),
                can_be_empty: texts().is_none_or(|mut texts| texts.any(str::is_empty)),
                always_set: schema.required && !schema.nullable,
                values: match allowed {
                    _ if union.is_boolean() => AllowedValues::Booleans,
                    Some(_) => AllowedValues::Enumerated,
                    None => AllowedValues::EveryText,
                },
            }
        });
        let unset: BTreeSet<&str> = union.empty_is_unset().collect();
        let member = |name| Ok(RuleMember { name, has: object.is_set(name, unset.contains(name))? });
        let members = union.members().map(member).collect::<Result<_, RefusalReason>>()?;
        let groups = union.groups().map(Iterator::collect).collect();
        let fields = Fields { union, groups, members, discriminator };
        let rules: Vec<Rule> = match (union.form(), &fields.discriminator) {
            (Form::Map, Some(discriminator)) => fields.map_form(discriminator),
            (Form::List, Some(discriminator)) => {
                fields.at_most_one().chain(fields.discriminated(discriminator)).chain(fields.at_least_one()).collect()
            }
            (Form::List | Form::Map, None) => fields.at_most_one().chain(fields.at_least_one()).collect(),
        };
        let is_too_long = |rule: &Rule| rule.condition.to_string().len() > LONGEST_EXPRESSION;
        if object.form == RuleForm::Cel && rules.iter().any(is_too_long) {
            return Err(RefusalReason::TooLong);
        }
        Ok(Self { rules, values })
    }
}

/// Returns the values that an enum of the discriminator must have, if it has no enum and none but the declared values are
/// valid. In the 2019 form, a value that selects no member is valid. An enum never allows null, even if it lists it.
fn new_values(union: &Union, schema: &DiscriminatorSchema, form: RuleForm) -> Option<Vec<Value>> {
    if union.form() == Form::List || schema.values.is_some() || schema.nullable {
        return None;
    }
    let values = union.choices().iter().map(Choice::value);
    // A JSON schema accepts what an audit does.
    let empty = (form == RuleForm::JsonSchema && values.clone().all(|value| !value.is_empty())).then_some("");
    Some(values.chain(empty).map(Value::from).collect())
}

impl Fields<'_> {
    fn map_form(&self, discriminator: &RuleDiscriminator<'_>) -> Vec<Rule> {
        let empty = self.union.choices().iter().find(|choice| choice.value().is_empty());
        let mut rules = Vec::new();
        if discriminator.values == AllowedValues::EveryText {
            rules.push(self.unknown_value(discriminator));
        }
        if empty.is_none() && !discriminator.always_set {
            rules.push(self.discriminator_required(discriminator));
            rules.extend(self.union.is_required().then(|| self.choice_required(discriminator)));
        }
        for member in &self.members {
            let selects = |choice: &&Choice| choice.selected(member.name).is_some();
            let choices = || self.union.choices().iter().filter(selects);
            let values: Vec<_> = choices().map(Choice::value).collect();
            rules.push(discriminator.forbids(member, &values, empty.is_none()));
            let is_needed = |choice: &&Choice| choice.selected(member.name).is_some_and(|it| !it.is_optional());
            let needed = || choices().filter(is_needed).map(Choice::value);
            let needing: Vec<_> = needed().filter(|value| !value.is_empty()).collect();
            if !needing.is_empty() {
                rules.push(discriminator.requires(member, &needing));
            }
            if needed().any(str::is_empty) {
                rules.extend(self.required_without_value(discriminator, member));
            }
        }
        rules
    }

    /// The discriminator has a value that is not declared, and no enum says so.
    fn unknown_value(&self, discriminator: &RuleDiscriminator<'_>) -> Rule {
        let values = || self.union.choices().iter().map(Choice::value).filter(|value| !value.is_empty());
        let is_known = std::iter::once("").chain(values()).map(|value| discriminator.is(value));
        Rule::new(
            Expression::Or(std::iter::once(discriminator.has.clone().not()).chain(is_known).collect()),
            Some(discriminator.name),
            Reason::Invalid,
            format!("supported values: {}", listed(values(), ", ")),
        )
    }

    /// A member is set and the discriminator is not.
    fn discriminator_required(&self, discriminator: &RuleDiscriminator<'_>) -> Rule {
        let any = Expression::Or(self.members.iter().map(|member| member.has.clone()).collect());
        let names = self.named(" or ");
        Rule::new(
            Expression::Or(vec![discriminator.is_set(), any.not()]),
            Some(discriminator.name),
            Reason::Required,
            format!("must be specified when {names} is set"),
        )
    }

    /// Neither the discriminator nor a member is set, and a choice is required.
    fn choice_required(&self, discriminator: &RuleDiscriminator<'_>) -> Rule {
        let any = self.members.iter().map(|member| member.has.clone());
        let values = self.union.choices().iter().map(Choice::value).filter(|value| !value.is_empty());
        Rule::new(
            Expression::Or(std::iter::once(discriminator.is_set()).chain(any).collect()),
            Some(discriminator.name),
            Reason::Required,
            format!("must be specified: supported values: {}", listed(values, ", ")),
        )
    }

    /// No member is set, and one is required.
    fn at_least_one(&self) -> Option<Rule> {
        let one_of = if self.members.len() == 1 { "" } else { "one of " };
        self.union.is_required().then(|| {
            Rule::new(
                Expression::Or(self.members.iter().map(|member| member.has.clone()).collect()),
                None,
                Reason::Required,
                format!("{one_of}{} must be set", self.named(", ")),
            )
        })
    }

    /// The empty value selects a member that is not set, and another member is set or a choice is required.
    fn required_without_value(&self, discriminator: &RuleDiscriminator<'_>, member: &RuleMember<'_>) -> Option<Rule> {
        let others = self.members.iter().filter(|other| other.name != member.name);
        let others: Vec<_> = others.map(|other| other.has.clone()).collect();
        let mut all = vec![member.has.clone(), discriminator.is_set()];
        if !self.union.is_required() {
            all.push((!others.is_empty()).then_some(Expression::Or(others))?.not());
        }
        Some(Rule::new(
            Expression::Or(all),
            Some(member.name),
            Reason::Required,
            format!("must be specified when `{}` is \"\"", on_one_line(discriminator.name)),
        ))
    }

    /// Several members are set, and no discriminator tells which one counts: all but the first are wrong.
    fn at_most_one(&self) -> Box<dyn Iterator<Item = Rule> + '_> {
        let unless_chosen = |condition: Expression| match &self.discriminator {
            Some(discriminator) => Expression::Or(vec![discriminator.is_set(), condition]),
            None => condition,
        };
        let message = format!("at most one of {} may be set", self.named_groups());
        let group_of = |name: &str| self.groups.iter().position(|group| group.contains(&name));
        if self.members.len() > MOST_NAMED {
            let has = |name: &&str| self.members.iter().find(|member| member.name == *name).map(|it| it.has.clone());
            let is_set = |group: &Vec<&str>| Expression::any(group.iter().filter_map(has).collect());
            return Box::new(std::iter::once(Rule::new(
                unless_chosen(Expression::AtMostOne(self.groups.iter().map(is_set).collect())),
                None,
                Reason::Forbidden,
                message,
            )));
        }
        Box::new(self.members.iter().enumerate().filter_map(move |(position, member)| {
            let group = group_of(member.name);
            let before = self.members.iter().take(position).filter(|before| group_of(before.name) != group);
            let before: Vec<_> = before.map(|before| before.has.clone()).collect();
            let both =
                Expression::And(vec![member.has.clone(), (!before.is_empty()).then_some(Expression::Or(before))?]);
            Some(Rule::new(unless_chosen(both.not()), Some(member.name), Reason::Forbidden, message.clone()))
        }))
    }

    /// The discriminator of the 2019 form selects another member, or none.
    fn discriminated(&self, discriminator: &RuleDiscriminator<'_>) -> impl Iterator<Item = Rule> {
        self.members.iter().map(|member| {
            let selects = |choice: &&Choice| choice.selected(member.name).is_some();
            let values: Vec<_> = self.union.choices().iter().filter(selects).map(Choice::value).collect();
            discriminator.forbids(member, &values, true)
        })
    }

    /// Returns the names of all members, those of a group in parentheses.
    fn named_groups(&self) -> String {
        let quoted = |name: &&str| format!("`{}`", on_one_line(name));
        let group = |group: &Vec<&str>| match group.as_slice() {
            [one] => quoted(one),
            several => format!("({})", several.iter().map(quoted).collect::<Vec<_>>().join(", ")),
        };
        self.groups.iter().map(group).collect::<Vec<_>>().join(", ")
    }

    fn named(&self, separator: &str) -> String {
        let names: Vec<_> = self.members.iter().map(|member| format!("`{}`", on_one_line(member.name))).collect();
        names.join(separator)
    }
}

impl RuleDiscriminator<'_> {
    fn is_boolean(&self) -> bool {
        self.values == AllowedValues::Booleans
    }

    fn is(&self, value: &str) -> Expression {
        match (self.is_boolean(), value) {
            (false, _) => Expression::Is(self.field.clone(), value.to_owned(), true),
            (true, "true") => Expression::IsTrue(self.name.to_owned()),
            (true, _) => Expression::IsTrue(self.name.to_owned()).not(),
        }
    }

    fn is_not(&self, value: &str) -> Expression {
        self.is(value).negated()
    }

    /// The discriminator has a value other than the empty text.
    fn is_set(&self) -> Expression {
        let mut all = vec![self.has.clone()];
        if self.can_be_empty {
            all.push(self.is_not(""));
        }
        Expression::And(all)
    }

    /// The discriminator is there. `None` if the schema says so: it refuses an object without it before rules are evaluated.
    fn is_there(&self) -> Option<Expression> {
        (!self.always_set).then(|| self.has.clone())
    }

    /// The member is set, and the discriminator does not have one of these values. `absent_is_other` tells that another rule is
    /// about a discriminator that is absent or empty.
    fn forbids(&self, member: &RuleMember<'_>, values: &[&str], absent_is_other: bool) -> Rule {
        let condition = if absent_is_other || values.contains(&"") {
            let empty = (absent_is_other && self.can_be_empty && !values.contains(&"")).then_some(&"");
            // A boolean is never empty.
            let values = values.iter().filter(|value| !(self.is_boolean() && value.is_empty()));
            let differ = empty.into_iter().chain(values).map(|value| self.is_not(value));
            Expression::And([member.has.clone()].into_iter().chain(self.is_there()).chain(differ).collect()).not()
        } else {
            let one = Expression::Or(values.iter().map(|value| self.is(value)).collect());
            Expression::Or(vec![
                member.has.clone().not(),
                Expression::And(self.is_there().into_iter().chain([one]).collect()),
            ])
        };
        let message = format!(
            "may only be specified when `{}` is {}",
            on_one_line(self.name),
            listed(values.iter().copied(), " or ")
        );
        Rule::new(condition, Some(member.name), Reason::Forbidden, message)
    }

    /// The discriminator has one of these values, and the member is not set.
    fn requires(&self, member: &RuleMember<'_>, values: &[&str]) -> Rule {
        let others = Expression::And(values.iter().map(|value| self.is_not(value)).collect());
        let beginning = format!("must be specified when `{}` is ", on_one_line(self.name));
        Rule::new(
            Expression::Or(
                [member.has.clone()].into_iter().chain(self.is_there().map(Expression::not)).chain([others]).collect(),
            ),
            Some(member.name),
            Reason::Required,
            format!("{beginning}{}", listed(values.iter().copied(), " or ")),
        )
    }
}

impl Rule {
    fn new(condition: Expression, field: Option<&str>, reason: Reason, message: String) -> Self {
        Self { condition, field: field.map(str::to_owned), reason, message }
    }

    /// Returns the estimated cost of an evaluation.
    pub(super) fn cost(&self) -> u64 {
        self.condition.cost()
    }

    /// Returns the rule as an item of `x-kubernetes-validations`.
    pub(super) fn to_json(&self) -> Value {
        let (reason, _) = self.reason.names();
        let mut message = self.message.clone();
        if message.len() > LONGEST_MESSAGE {
            let end = (0..=LONGEST_MESSAGE).rev().find(|at| message.is_char_boundary(*at)).unwrap_or_default();
            message.truncate(end);
            message.push('…');
        }
        let fields = [
            ("rule", Some(format!("{}{MARK}", self.condition))),
            ("reason", Some(reason.to_owned())),
            ("fieldPath", self.field.as_deref().map(field_path)),
            ("message", Some(message)),
        ];
        fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::from(text?)))).collect()
    }
}

/// Returns true if an item of `x-kubernetes-validations` was made by this crate.
pub(super) fn is_ours(item: &Value) -> bool {
    item.get("rule").and_then(Value::as_str).is_some_and(|rule| rule.trim_end().ends_with(MARK))
}

fn listed<'v>(values: impl Iterator<Item = &'v str>, separator: &str) -> String {
    values.map(|value| format!("\"{}\"", on_one_line(value))).collect::<Vec<_>>().join(separator)
}

/// Returns the `fieldPath` of a field that CEL can name.
fn field_path(name: &str) -> String {
    // A dot would end the name.
    if name.contains('.') { format!("['{name}']") } else { format!(".{name}") }
}

/// Returns a text for a message, which must be on one line.
fn on_one_line(text: &str) -> String {
    let is_break = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    text.chars().fold(String::with_capacity(text.len()), |mut line, character| {
        if is_break(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_path_quotes_a_name_with_a_dot() {
        assert_eq!(field_path("a.b"), "['a.b']");
        assert_eq!(field_path("a-b/c"), ".a-b/c");
    }

    #[test]
    fn a_message_stays_on_one_line() {
        assert_eq!(on_one_line("a\n\"ü\"\u{2028}"), "a\\n\"ü\"\\u{2028}");
    }
}
