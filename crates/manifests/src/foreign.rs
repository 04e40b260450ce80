//! Recognises texts that are almost YAML or JSON, and says how to make them so.

use std::path::Path;

const TEMPLATE: &str = "this is a template: render it first, for example with `helm template`";
const JSON5: &str = "this is JSON5 or JSON with comments: convert it to JSON first";

/// Returns advice for a text that could not be read: a template, or JSON5.
pub(super) fn advice(path: &Path, text: &str, error: &str) -> Option<&'static str> {
    if text.lines().any(is_templated) {
        return Some(TEMPLATE);
    }
    let named = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("json5") || it.eq_ignore_ascii_case("jsonc"));
    let like_json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[', '/']);
    // serde_json says so of keys without quotes and of commas before a bracket.
    let loose = error.starts_with("key must be a string") || error.starts_with("trailing comma");
    (named || like_json && (loose || has_comments(text))).then_some(JSON5)
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
            ("a: \"{{ quoted }}\"\nb: [\n", "", None),
            ("a: [1, 2\n", "", None),
            ("{\n  // why\n  \"a\": 1\n}", "key must be a string", Some(JSON5)),
            ("// why\n{\"a\": 1}", "", Some(JSON5)),
            ("{a: 'b'}", "key must be a string", Some(JSON5)),
            ("[1, 2,]", "trailing comma", Some(JSON5)),
            ("{\"a\": [1", "EOF while parsing a list", None),
            ("# see\n# // nothing\na: [", "", None),
        ] {
            assert_eq!(advice(Path::new("a.yaml"), text, error), advised, "{text}");
        }
        assert_eq!(advice(Path::new("a.json5"), "{\"a\": +1}", "expected value"), Some(JSON5));
    }
}
