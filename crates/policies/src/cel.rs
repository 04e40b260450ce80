//! Pieces of CEL expressions, and their lines, as a person writes them.

use kube_unions_core::field_path;
use kube_unions_core::schema::cel_name::is_reserved;

/// Names that have a meaning in an admission policy, or that the compiler gives to something else.
const TAKEN: [&str; 18] = [
    "all",
    "authorizer",
    "claim",
    "dyn",
    "exists",
    "filter",
    "fault",
    "has",
    "key",
    "map",
    "namespaceObject",
    "object",
    "old",
    "oldObject",
    "request",
    "size",
    "type",
    "variables",
];

/// Returns a string literal, in single quotes where that saves escapes.
pub(crate) fn text(text: &str) -> String {
    let is_plain = |it: char| !it.is_control() && it != '\\' && it != '\'';
    if text.contains('"') && text.chars().all(is_plain) {
        return format!("'{text}'");
    }
    // The escapes of JSON are escapes of CEL.
    serde_json::Value::from(text).to_string()
}

/// Returns a list literal of strings.
pub(crate) fn texts<'t>(items: impl IntoIterator<Item = &'t str>) -> String {
    let items: Vec<String> = items.into_iter().map(text).collect();
    format!("[{}]", items.join(", "))
}

/// Returns a map literal of strings.
pub(crate) fn table<'t>(entries: impl IntoIterator<Item = (&'t str, String)>) -> String {
    lists(entries.into_iter().map(|(key, value)| (key, text(&value))))
}

/// Returns a map literal of lists, which are literals.
pub(crate) fn lists<'t>(entries: impl IntoIterator<Item = (&'t str, String)>) -> String {
    let entries: Vec<String> = entries.into_iter().map(|(key, list)| format!("{}: {list}", text(key))).collect();
    format!("{{{}}}", entries.join(", "))
}

/// Returns true if a field can be selected with a dot.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        && !is_reserved(name)
}

/// Returns the sum of texts, of which literals that meet are one.
pub(crate) fn concat(parts: &[String]) -> String {
    let mut joined: Vec<String> = Vec::new();
    for part in parts.iter().filter(|part| *part != "\"\"") {
        match joined.last_mut().and_then(|last| Some((literal(last)? + &literal(part)?, last))) {
            Some((both, last)) => *last = text(&both),
            None => joined.push(part.clone()),
        }
    }
    if joined.is_empty() { "\"\"".to_owned() } else { joined.join(" + ") }
}

/// Returns the text of a literal that [`text`] has written.
fn literal(expression: &str) -> Option<String> {
    let inner = expression.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match inner.filter(|inner| !inner.contains('\'')) {
        Some(inner) => Some(inner.to_owned()),
        None => serde_json::from_str(expression).ok(),
    }
}

/// Returns the disjunction of conditions, without those that are never true.
pub(crate) fn any(conditions: &[&str]) -> String {
    let possible: Vec<&str> = conditions.iter().copied().filter(|condition| *condition != "false").collect();
    match &possible[..] {
        [] => "false".to_owned(),
        [one] => (*one).to_owned(),
        several => format!("({})", several.join(" || ")),
    }
}

/// Returns the conjunction of conditions, without those that are always true.
pub(crate) fn all(conditions: &[&str]) -> String {
    let needed: Vec<&str> = conditions.iter().copied().filter(|condition| *condition != "true").collect();
    if needed.is_empty() { "true".to_owned() } else { needed.join(" && ") }
}

/// Returns a reference token of a JSON Pointer with its slash, as an escaped text (RFC 6901).
pub(crate) fn pointer(name: &str) -> String {
    field_path::pointer([name])
}

/// Returns a text as a reference token of a JSON Pointer. `expression` is a text.
pub(crate) fn token(expression: &str) -> String {
    format!("{expression}.replace(\"~\", \"~0\").replace(\"/\", \"~1\")")
}

/// The values that count as not set in a member of `emptyIsUnset`.
pub(crate) const EMPTY: &str = "[dyn(false), dyn(0), dyn(\"\"), dyn({}), dyn([])]";

/// The longest text of a user's object in a message, in characters.
pub(crate) const LONGEST: usize = 64;

/// Returns a text of the user, made safe to display: on one line, and cut if it is long. `expression` is evaluated twice.
pub(crate) fn printable(expression: &str) -> String {
    let cut =
        format!("({expression}.size() > {LONGEST} ? {expression}.substring(0, {LONGEST}) + \"…\" : {expression})");
    one_line(cut)
}

/// Returns a text without line breaks and tabs.
pub(crate) fn one_line(expression: String) -> String {
    let replaced = |text: String, from: &str| format!("{text}.replace(\"{from}\", \"\u{fffd}\")");
    ["\\n", "\\r", "\\t"].into_iter().fold(expression, replaced)
}

/// Returns names, a list that is not empty, in backticks and with "and" before the last one. `names` is evaluated several times.
pub(crate) fn joined(names: &str) -> String {
    let last = format!("{names}[{names}.size() - 1]");
    format!(
        "({names}.size() == 1 ? \"\" : \"`\" + {names}.filter(m, m != {last}).join(\"`, `\") + \"` and \") + \"`\" + {last} + \"`\""
    )
}

/// Returns the name of a variable for one of several things: `backend` for `backends`.
pub(crate) fn singular(name: &str) -> String {
    let stem = [("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch")]
        .into_iter()
        .find_map(|(end, new)| Some(format!("{}{new}", name.strip_suffix(end)?)))
        .or_else(|| name.strip_suffix('s').filter(|stem| !stem.ends_with('s')).map(str::to_owned))
        .unwrap_or_else(|| name.to_owned());
    let word = identifier(&stem);
    if is_name(&word) && word.len() > 2 && !TAKEN.contains(&&*word) { word } else { "item".to_owned() }
}

/// Returns the characters of a name that an identifier may have, with `_` for the others. Two underscores in a row could
/// begin an escape, for example `__dash__`.
pub(crate) fn identifier(name: &str) -> String {
    let mut identifier = String::with_capacity(name.len());
    for it in name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }) {
        if it != '_' || !identifier.ends_with('_') {
            identifier.push(it);
        }
    }
    identifier
}

/// The longest line of an expression, in characters. With the indentation of YAML it has 120.
const WIDTH: usize = 112;

/// The indentation of a line that goes on, in spaces.
const HANGING: usize = 4;

/// Returns an expression whose long lines are broken: after an operator or a comma, before `?` and `:`, never in a literal.
pub(crate) fn fold(expression: &str) -> String {
    let lines: Vec<String> = expression.lines().flat_map(fold_line).collect();
    lines.join("\n")
}

fn fold_line(line: &str) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    if length(line) <= WIDTH {
        return vec![line.to_owned()];
    }
    let lead = line.len().saturating_sub(line.trim_start().len());
    let (mut folded, mut current) = (Vec::new(), " ".repeat(lead));
    // The ends of `current` at which it may be broken: how deep in parentheses they are, how closely they bind, and the position in bytes.
    let mut breaks: Vec<(usize, usize, usize)> = Vec::new();
    let mut depth = 0_usize;
    for word in words(line.trim_start()) {
        let is_first = current.trim().is_empty();
        let ends_a_part = current.ends_with([',', '+']) || current.ends_with("&&") || current.ends_with("||");
        if !is_first && (ends_a_part || matches!(word, "?" | ":")) && length(&current) > WIDTH / 4 {
            let binds = ["||", "&&", ",", "+"].iter().position(|it| current.ends_with(it)).unwrap_or_default();
            breaks.push((depth, binds, current.len()));
        }
        if !is_first {
            current.push(' ');
        }
        current.push_str(word);
        depth = depth_after(word, depth);
        // The outermost end, and of those the last one.
        let best = breaks.iter().copied().min_by_key(|&(depth, binds, at)| (depth, binds, std::cmp::Reverse(at)));
        if length(&current) > WIDTH
            && let Some((head, rest)) = best.and_then(|(.., at)| current.split_at_checked(at))
        {
            let rest = format!("{}{}", " ".repeat(lead.saturating_add(HANGING)), rest.trim_start());
            folded.push(head.to_owned());
            current = rest;
            breaks.clear();
        }
    }
    folded.push(current);
    folded
}

/// Returns how deep in parentheses the end of a word is.
fn depth_after(word: &str, depth: usize) -> usize {
    let mut quote = None;
    word.chars().fold(depth, |depth, it| match (quote, it) {
        (Some(open), _) => {
            if it == open {
                quote = None;
            }
            depth
        }
        (None, '"' | '\'') => {
            quote = Some(it);
            depth
        }
        (None, '(' | '[' | '{') => depth.saturating_add(1),
        (None, ')' | ']' | '}') => depth.saturating_sub(1),
        (None, _) => depth,
    })
}

/// Returns the words of a line. A literal with spaces is a part of one word.
fn words(line: &str) -> Vec<&str> {
    let (mut quote, mut escaped) = (None, false);
    line.split(|it: char| {
        let was_escaped = std::mem::take(&mut escaped);
        match quote {
            Some(_) if was_escaped => {}
            Some(_) if it == '\\' => escaped = true,
            Some(open) if it == open => quote = None,
            Some(_) => {}
            None if matches!(it, '"' | '\'') => quote = Some(it),
            None => return it == ' ',
        }
        false
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_hold_any_text() {
        assert_eq!(text("a\"b\\c\nd\u{1}é"), r#""a\"b\\c\nd\u0001é""#);
        assert_eq!(text("is \"A\""), r#"'is "A"'"#);
        assert_eq!(text("isn't \"A\""), r#""isn't \"A\"""#);
        assert_eq!(texts(["a", "b"]), r#"["a", "b"]"#);
        assert_eq!(table([("A", "a".to_owned())]), r#"{"A": "a"}"#);
        assert_eq!(pointer("a/b~c"), "/a~1b~0c");
    }

    #[test]
    fn an_identifier_has_no_escapes() {
        assert_eq!(identifier("a-b.__dash__ü1"), "a_b_dash_1");
    }

    #[test]
    fn one_of_several_has_a_name() {
        let names = ["backends", "policies", "addresses", "boxes", "watches", "classs", "as", "types", "env", "2s"];
        let singulars = names.map(singular);
        assert_eq!(
            singulars,
            ["backend", "policy", "address", "box", "watch", "classs", "item", "item", "env", "item"]
        );
    }

    #[test]
    fn a_long_line_is_broken_outside_of_literals() {
        let part = r#"variables.type == "a && b\" c, d""#;
        let folded = fold(&[part; 6].join(" && "));
        let lines: Vec<&str> = folded.lines().collect();
        assert_eq!(lines.len(), 2, "{folded}");
        assert!(lines[0].ends_with(" &&") && lines[1].starts_with(&format!("    {part}")), "{folded}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{folded}");
        assert_eq!(fold("a ?\n  b : c"), "a ?\n  b : c");
        let unbreakable = format!("\"{}\"", "x, ".repeat(60));
        assert_eq!(fold(&unbreakable), unbreakable);
    }
}
