//! Splits a file into its top-level declarations without the grammar.
//!
//! The parser recovers from an error by guessing, and may take the next declaration for a part of the broken one. Parsing each
//! declaration alone keeps an error where it is. This module knows comments, literals, brackets and the keywords of declarations.

use super::source::SourceText;
use regex::{Match, Regex};
use std::sync::LazyLock;
use tree_sitter::{Point, Range};

/// Keywords that begin a declaration at the top level.
const KEYWORDS: [&str; 6] = ["package", "import", "const", "type", "var", "func"];

/// A token: a line break, a comment, a literal, a word, which may be a number, or another character. Of a comment and a raw string
/// without an end it is the first characters. A string without an end ends with its line.
static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r#"(?x) \n | //[^\n]* | /\*(?s:.*?)\*/ | /\* | `[^`]*` | "(?:[^"\\\n]|\\[^\n])*\\?"? | '(?:[^'\\\n]|\\[^\n])*\\?'?
        | [0-9A-Za-z_\u{80}-\u{10ffff}]+ | [^\ \t\r\f\n]"#;
    let token = Regex::new(pattern);
    debug_assert!(token.is_ok(), "{token:?}");
    token.ok()
});

/// A part of a file that has one declaration and the comments before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk<'s> {
    /// First word of the declaration; empty for text that is not a declaration.
    pub(super) keyword: &'s str,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A keyword that may begin a declaration.
struct DeclarationStart<'s> {
    keyword: &'s str,
    /// Start of the comments before it.
    start: usize,
    /// True if no bracket is open.
    outside: bool,
    /// True if nothing precedes it on its line, not even a space.
    first_column: bool,
}

/// Returns the declarations of a file, or `None` if a comment or a raw string has no end.
pub(super) fn chunks(text: &str) -> Option<Vec<Chunk<'_>>> {
    let (mut candidates, mut open, mut balanced) = (Vec::new(), Vec::new(), true);
    // `begins` is true where a keyword begins a statement. `line_break` is the first one behind the last token.
    let (mut begins, mut line_break) = (true, Some(0));
    for token in tokens(text) {
        let (word, start) = (token.as_str(), token.start());
        match word {
            "/*" | "`" => return None,
            "\n" => {
                begins = true;
                line_break = line_break.or(Some(token.end()));
                continue;
            }
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" => balanced &= open.pop() == Some(word),
            _ => {
                if let Some(keyword) = KEYWORDS.into_iter().find(|keyword| begins && *keyword == word) {
                    candidates.push(DeclarationStart {
                        keyword,
                        start: line_break.unwrap_or(start),
                        outside: open.is_empty(),
                        first_column: start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n'),
                    });
                }
            }
        }
        begins = word == ";";
        line_break = None;
    }
    balanced &= open.is_empty();
    // If brackets are missing, only the layout tells where a declaration begins: gofmt indents everything inside of one.
    let starts = candidates.into_iter().filter(|it| if balanced { it.outside } else { it.first_column });
    let mut chunks: Vec<Chunk<'_>> = Vec::new();
    for DeclarationStart { keyword, start, .. } in starts {
        let start = if chunks.is_empty() { 0 } else { start };
        if let Some(last) = chunks.last_mut() {
            last.end = start;
        }
        chunks.push(Chunk { keyword, start, end: text.len() });
    }
    Some(chunks)
}

impl SourceText<'_> {
    /// Returns the range of a chunk for the parser. `from` is the end of the previous range, whose rows are counted already.
    pub(super) fn range(&self, chunk: &Chunk<'_>, from: Option<&Range>) -> Range {
        let origin = from.map_or((0, Point::new(0, 0)), |range| (range.end_byte, range.end_point));
        let start = self.advance(origin, chunk.start);
        let end = self.advance((chunk.start, start), chunk.end);
        Range { start_byte: chunk.start, end_byte: chunk.end, start_point: start, end_point: end }
    }

    fn advance(&self, (from, point): (usize, Point), to: usize) -> Point {
        let between = self.text.get(from..to).unwrap_or_default();
        match between.rfind('\n') {
            Some(last) => Point::new(point.row + between.matches('\n').count(), between.len() - last - 1),
            None => Point::new(point.row, point.column + between.len()),
        }
    }
}

/// Returns the tokens of a text, without comments.
fn tokens(text: &str) -> impl Iterator<Item = Match<'_>> {
    let tokens = TOKEN.iter().flat_map(move |token| token.find_iter(text));
    tokens.filter(|token| {
        token.as_str() == "/*" || !token.as_str().starts_with("//") && !token.as_str().starts_with("/*")
    })
}

/// Returns true for a name or a number.
fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_' || !first.is_ascii())
}

/// Returns the words of a text, without those in comments and literals.
pub(super) fn words(text: &str) -> Vec<&str> {
    tokens(text).map(|token| token.as_str()).filter(|token| is_word(token)).collect()
}

/// Returns the names that a declaration of types begins lines with: `type A …`, or the lines of `type (…)`.
pub(super) fn type_names(text: &str) -> Vec<&str> {
    let (mut names, mut depth, mut begins, mut grouped) = (Vec::new(), 0_usize, false, false);
    for word in tokens(text).map(|token| token.as_str()) {
        if is_word(word) && begins {
            names.push(word);
        }
        grouped |= word == "(" && names.is_empty() && depth == 0;
        let opens = matches!(word, "(" | "[" | "{");
        if opens {
            depth += 1;
        } else if matches!(word, ")" | "]" | "}") {
            depth = depth.saturating_sub(1);
        }
        let after_keyword = depth == 0 && names.is_empty() && word == "type";
        let new_line = opens || matches!(word, "\n" | ";");
        begins = after_keyword || (grouped && depth == 1 && new_line);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(&str, &str)> {
        let chunks = chunks(text).unwrap();
        chunks.iter().map(|chunk| (chunk.keyword, text[chunk.start..chunk.end].trim())).collect()
    }

    #[test]
    fn a_declaration_comes_with_the_comments_before_it() {
        let text = "// a\npackage v1 // b\n\n// c\ntype A int // d\n/* e\n */ type B struct{}; type C int\n";
        assert_eq!(
            parts(text),
            [
                ("package", "// a\npackage v1 // b"),
                ("type", "// c\ntype A int // d"),
                ("type", "/* e\n */ type B struct{};"),
                ("type", "type C int"),
            ]
        );
    }

    #[test]
    fn text_in_literals_comments_and_brackets_is_not_a_declaration() {
        let text = "package v1\nvar a = `\ntype A int\n` + \"}\\\"{\" + string('{')\n/*\ntype B int\n*/\nfunc f() {\ntype C int\n}\n";
        let keywords: Vec<&str> = parts(text).into_iter().map(|(keyword, _)| keyword).collect();
        assert_eq!(keywords, ["package", "var", "func"]);
    }

    #[test]
    fn without_a_bracket_the_layout_decides() {
        let text = "package v1\n\nfunc f() {{\n\ttype A int\n}\n\ntype B int\n";
        let keywords: Vec<&str> = parts(text).into_iter().map(|(keyword, _)| keyword).collect();
        assert_eq!(keywords, ["package", "func", "type"]);
    }

    #[test]
    fn a_comment_or_a_raw_string_without_an_end_hides_the_rest() {
        assert_eq!(chunks("package v1\n/* a\ntype A int\n"), None);
        assert_eq!(chunks("package v1\nvar a = `\ntype A int\n"), None);
        assert_eq!(parts("package v1\nvar a = \"\ntype A int\n").len(), 3, "a string ends with its line");
    }

    #[test]
    fn names_of_types_are_those_behind_the_keyword() {
        assert_eq!(type_names("type A struct { B int }\n"), ["A"]);
        assert_eq!(type_names("// type X\ntype List[T any] struct {\n}\n"), ["List"]);
        assert_eq!(
            type_names("type (\n\tA struct {\n\t\tB int\n\t}\n\n\t// C\n\tC = int; D string\n)\n"),
            ["A", "C", "D"]
        );
        assert_eq!(type_names("type\n"), [""; 0]);
    }

    #[test]
    fn words_are_those_outside_of_literals() {
        assert_eq!(words("const A B = \"C\" + /* D */ `E` + F // G\n"), ["const", "A", "B", "F"]);
    }
}
