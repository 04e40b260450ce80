//! Recognises texts that are almost YAML or JSON, and says how to make them so.

use std::path::Path;

const TEMPLATE: &str = "this is a template: render it first, for example with `helm template`";
const OF_TEMPLATE: &str = "a part of a template is left over: render it first, for example with `helm template`";
const VARIABLE: &str = "a variable is left over: substitute it first, for example with `flux envsubst`";
const JSON5: &str = "this is JSON5 or JSON with comments: convert it to JSON first";

/// Returns advice for a text that could not be read because of a line: a template, a variable of Flux, or JSON5.
pub(super) fn advice(path: &Path, text: &str, line: &str, error: &str) -> Option<&'static str> {
    if text.lines().any(is_templated) {
        return Some(TEMPLATE);
    }
    if line.contains("${") {
        return Some(VARIABLE);
    }
    let named = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("json5") || it.eq_ignore_ascii_case("jsonc"));
    let like_json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[', '/']);
    // serde_json says so of keys without quotes and of commas before a bracket.
    let loose = error.starts_with("key must be a string") || error.starts_with("trailing comma");
    (named || like_json && (loose || has_comments(text))).then_some(JSON5)
}

/// Returns advice for a text that has a part which a tool was to replace: a variable of Flux, or a template in quotes.
pub fn left_over(text: &str) -> Option<&'static str> {
    let has = |start: &str, end: &str| text.split_once(start).is_some_and(|(_, rest)| rest.contains(end));
    if has("{{", "}}") {
        return Some(OF_TEMPLATE);
    }
    has("${", "}").then_some(VARIABLE)
}

/// Returns the advice of [`left_over`] for a text that is nothing but such a part.
pub fn left_over_whole(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let is = |start, end| text.starts_with(start) && text.ends_with(end);
    left_over(text).filter(|_| is("{{", "}}") || is("${", "}"))
}

/// Returns true for a text in braces with comments of JavaScript. YAML in flow style would read them as parts of a key.
pub(super) fn has_comments(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("//") || line.trim_start().starts_with("/*"))
}

/// Returns true for a line that a template engine replaces, or part of it. A template in quotes is a string.
fn is_templated(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t', '-']);
    line.starts_with("{{") || line.contains(": {{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_and_json5_are_recognised_by_their_syntax() {
        let template = Some(TEMPLATE);
        for (text, error, advised) in [
            ("{{- if .Values.crds }}\na: 1\n{{- end }}\n", "", template),
            ("metadata:\n  name: {{ .Release.Name }}\n", "", template),
            ("args:\n  - {{ .Values.a }}\n", "", template),
            ("a: {b: ${VAR}}", "", Some(VARIABLE)),
            ("a: \"{{ quoted }}\"\nb: [\n", "", None),
            ("a: [1, 2\n", "", None),
            ("{\n  // why\n  \"a\": 1\n}", "key must be a string", Some(JSON5)),
            ("// why\n{\"a\": 1}", "", Some(JSON5)),
            ("{a: 'b'}", "key must be a string", Some(JSON5)),
            ("[1, 2,]", "trailing comma", Some(JSON5)),
            ("{\"a\": [1", "EOF while parsing a list", None),
            ("# see\n# // nothing\na: [", "", None),
        ] {
            assert_eq!(advice(Path::new("a.yaml"), text, text, error), advised, "{text}");
        }
        assert_eq!(advice(Path::new("a.json5"), "{\"a\": +1}", "", "expected value"), Some(JSON5));
    }

    #[test]
    fn what_a_tool_was_to_replace_is_found_in_a_text() {
        for (text, of_part, of_whole) in [
            ("${TYPE}", Some(VARIABLE), Some(VARIABLE)),
            (" ${TYPE:=Recreate} ", Some(VARIABLE), Some(VARIABLE)),
            ("Rolling${REST}", Some(VARIABLE), None),
            ("{{ .Values.type }}", Some(OF_TEMPLATE), Some(OF_TEMPLATE)),
            ("a {{ .b }}", Some(OF_TEMPLATE), None),
            ("$(TYPE)", None, None),
            ("$TYPE", None, None),
            ("${TYPE", None, None),
            ("}} {{", None, None),
            ("Recreate", None, None),
            ("", None, None),
        ] {
            assert_eq!((left_over(text), left_over_whole(text)), (of_part, of_whole), "{text}");
        }
    }
}
