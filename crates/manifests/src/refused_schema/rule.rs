//! The rules of a node, as far as they are no CEL.

use super::fault::RefusalReader;
use super::keywords::{REMOVE, flag, is_empty, list, text};
use super::taken::{OF_RULES, TakenValue};
use serde_json::Value;

const REASONS: [&str; 4] = ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];

impl RefusalReader {
    pub(super) fn rules(&mut self, node: &Value) {
        let keyword = "x-kubernetes-validations";
        let rules = list(node, keyword);
        let has_no_type = text(node, "type").is_empty() && !flag(node, "x-kubernetes-int-or-string");
        if has_no_type && !rules.is_empty() {
            self.refuse(
                &[keyword],
                "rules of a field without a `type`",
                "add the type, or write the rules in the object above",
            );
        }
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.is_object() || rule.is_null()) {
            self.at(&[keyword, &index.to_string()], |this| {
                if !this.takes(rule, &OF_RULES) {
                    this.rule(rule, node);
                }
            });
        }
    }

    /// Refuses the keywords whose values are of another type. Returns true if there is one.
    pub(super) fn takes(&mut self, node: &Value, keywords: &[(&str, TakenValue)]) -> bool {
        let mut refused = false;
        for (keyword, taken) in keywords {
            if node.get(keyword).is_some_and(|value| !taken.is(value)) {
                self.refuse(&[keyword], &format!("this value of `{keyword}`"), &format!("write {}", taken.name()));
                refused = true;
            }
        }
        refused
    }

    fn rule(&mut self, rule: &Value, node: &Value) {
        let [expression, message, computed, path] =
            ["rule", "message", "messageExpression", "fieldPath"].map(|name| text(rule, name));
        let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
        let has_lines = |text: &str| text.trim().contains(['\n', '\r']);
        if expression.trim().is_empty() {
            self.refuse(&[], "a rule without a text", "add `rule`");
        } else if is_blank(message) {
            self.refuse(&["message"], "a blank message", "write a message, or remove it");
        } else if has_lines(message) {
            self.refuse(&["message"], "a message of several lines", "write it in one line");
        } else if has_lines(expression) && message.is_empty() {
            self.refuse(&["rule"], "a rule of several lines without a message", "add `message`");
        }
        if is_blank(computed) {
            self.refuse(&["messageExpression"], "a blank `messageExpression`", "write it, or remove it");
        }
        let is_reason = |reason: &Value| reason.as_str().is_some_and(|reason| REASONS.contains(&reason));
        if rule.get("reason").is_some_and(|reason| !reason.is_null() && !is_reason(reason)) {
            self.refuse(&["reason"], "this reason", &format!("use one of `{}`", REASONS.join("`, `")));
        }
        if !path.is_empty() && !leads_to_a_field(path, node) {
            let remedy = "begin at the object with the rule, as in `.spec.name` or `.labels['a/b']`, without an index";
            self.refuse(&["fieldPath"], "a `fieldPath` that leads to no field", remedy);
        }
        let reads_old = names_old_object(expression);
        if rule.get("optionalOldSelf").is_some_and(|it| !it.is_null()) && !reads_old {
            self.refuse(&["optionalOldSelf"], "`optionalOldSelf` of a rule without `oldSelf`", REMOVE);
        }
        if reads_old && self.is_in_list {
            let remedy = "move the rule to the list, or give the list `x-kubernetes-list-type: map` with keys";
            self.refuse(&["rule"], "`oldSelf` in an item of a list without keys", remedy);
        }
    }
}

/// Returns true if a path such as `.a['b']` leads from an object to a field that its schema describes.
fn leads_to_a_field(path: &str, node: &Value) -> bool {
    let (mut rest, mut node) = (path, node);
    while !rest.is_empty() {
        let (name, behind) = if let Some(quoted) = rest.strip_prefix("['") {
            let Some((name, behind)) = unquoted(quoted) else { return false };
            (name, behind)
        } else {
            let Some(named) = rest.strip_prefix('.') else { return false };
            let end = named.find(['.', '[']).unwrap_or(named.len());
            let (name, behind) = named.split_at(end);
            (name.to_owned(), behind)
        };
        let fields = node.get("properties").filter(|fields| !is_empty(fields));
        let below = match fields {
            Some(fields) => fields.get(&name),
            None => node.get("additionalProperties").filter(|values| values.is_object()),
        };
        let Some(below) = below.filter(|_| !name.is_empty()) else { return false };
        (rest, node) = (behind, below);
    }
    true
}

/// Returns the name before `']`, in which a backslash stands before each quote, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut name, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            '\'' => return Some((name, text.get(at..)?.strip_prefix("']")?)),
            _ => name.push(letter),
        }
    }
    None
}

/// Returns true if an expression has the name `oldSelf` outside of its texts and comments.
fn names_old_object(expression: &str) -> bool {
    let (mut plain, mut quote) = (String::new(), None);
    let mut letters = expression.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (None, '/') if letters.peek() == Some(&'/') => while letters.next_if(|it| *it != '\n').is_some() {},
            (None, _) => plain.push(letter),
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
        }
    }
    plain.split(|it: char| !it.is_ascii_alphanumeric() && it != '_').any(|word| word == "oldSelf")
}
