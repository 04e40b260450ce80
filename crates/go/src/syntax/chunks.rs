//! Splits a file into its top-level declarations without the grammar.
//!
//! The parser recovers from an error by guessing, and may take the next declaration for a part of the broken one. Parsing each
//! declaration alone keeps an error where it is. This module knows comments, literals, brackets and the keywords of declarations.

use super::source::SourceText;
use tree_sitter::{Point, Range};

/// Keywords that begin a declaration at the top level.
const KEYWORDS: [&str; 6] = ["package", "import", "const", "type", "var", "func"];

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
    let mut lexer = Lexer::new(text);
    let (mut candidates, mut open, mut balanced) = (Vec::new(), Vec::new(), true);
    // `begins` is true where a keyword begins a statement. `line_break` is the first one behind the last token.
    let (mut begins, mut line_break) = (true, Some(0));
    while let Some(token) = lexer.next() {
        let Token { kind, start, end } = token;
        match kind {
            TokenKind::LineBreak => {
                begins = true;
                line_break = line_break.or(Some(end));
                continue;
            }
            TokenKind::Word => {
                let word = text.get(start..end).unwrap_or_default();
                if let Some(keyword) = KEYWORDS.into_iter().find(|keyword| begins && *keyword == word) {
                    candidates.push(DeclarationStart {
                        keyword,
                        start: line_break.unwrap_or(start),
                        outside: open.is_empty(),
                        first_column: start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n'),
                    });
                }
            }
            TokenKind::Open(bracket) => open.push(bracket),
            TokenKind::Close(bracket) => balanced &= open.pop() == Some(bracket),
            TokenKind::Semicolon | TokenKind::Other => {}
        }
        begins = kind == TokenKind::Semicolon;
        line_break = None;
    }
    if lexer.endless {
        return None;
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

/// Returns the words of a text, without those in comments and literals.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(text);
    let mut words = Vec::new();
    while let Some(token) = lexer.next() {
        if token.kind == TokenKind::Word {
            words.extend(text.get(token.start..token.end));
        }
    }
    words
}

/// Returns the names that a declaration of types begins lines with: `type A …`, or the lines of `type (…)`.
pub(super) fn type_names(text: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(text);
    let (mut names, mut depth, mut begins, mut grouped) = (Vec::new(), 0_usize, false, false);
    while let Some(Token { kind, start, end }) = lexer.next() {
        let word = text.get(start..end).unwrap_or_default();
        if kind == TokenKind::Word && begins {
            names.push(word);
        }
        grouped |= kind == TokenKind::Open(b')') && names.is_empty() && depth == 0;
        if matches!(kind, TokenKind::Open(_)) {
            depth += 1;
        } else if matches!(kind, TokenKind::Close(_)) {
            depth = depth.saturating_sub(1);
        }
        let after_keyword = depth == 0 && names.is_empty() && word == "type";
        let new_line = matches!(kind, TokenKind::LineBreak | TokenKind::Semicolon | TokenKind::Open(_));
        begins = after_keyword || (grouped && depth == 1 && new_line);
    }
    names
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Word,
    /// An opening bracket, by the bracket that closes it.
    Open(u8),
    Close(u8),
    Semicolon,
    LineBreak,
    /// A literal or an operator.
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: TokenKind,
    start: usize,
    end: usize,
}

struct Lexer<'s> {
    text: &'s str,
    bytes: &'s [u8],
    at: usize,
    /// True behind a comment or a raw string without an end.
    endless: bool,
}

impl<'s> Lexer<'s> {
    fn new(text: &'s str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, endless: false }
    }

    /// Returns the next token. `None` at the end, and at a comment or a raw string without an end.
    fn next(&mut self) -> Option<Token> {
        loop {
            let start = self.at;
            let &byte = self.bytes.get(start)?;
            let following = self.bytes.get(start + 1).copied();
            let (kind, length) = match (byte, following) {
                (b'\n', _) => (TokenKind::LineBreak, 1),
                (b'/', Some(b'/')) => {
                    self.at +=
                        self.text.get(start..).and_then(|rest| rest.find('\n')).unwrap_or(self.bytes.len() - start);
                    continue;
                }
                (b'/', Some(b'*')) => {
                    self.at += self.span("*/", 2)?;
                    continue;
                }
                (b'`', _) => (TokenKind::Other, self.span("`", 1)?),
                (b'"' | b'\'', _) => (TokenKind::Other, self.literal(byte)),
                (b'(', _) => (TokenKind::Open(b')'), 1),
                (b'[', _) => (TokenKind::Open(b']'), 1),
                (b'{', _) => (TokenKind::Open(b'}'), 1),
                (b')' | b']' | b'}', _) => (TokenKind::Close(byte), 1),
                (b';', _) => (TokenKind::Semicolon, 1),
                _ if byte.is_ascii_whitespace() => {
                    self.at += 1;
                    continue;
                }
                _ if is_word(byte) => {
                    let rest = self.bytes.iter().skip(start);
                    (TokenKind::Word, rest.take_while(|byte| is_word(**byte)).count())
                }
                _ => (TokenKind::Other, 1),
            };
            self.at = start + length;
            return Some(Token { kind, start, end: self.at });
        }
    }

    /// Returns the length of a comment or raw string, whose opening and closing marks have the same length.
    fn span(&mut self, closing: &str, mark: usize) -> Option<usize> {
        let length = self.text.get(self.at + mark..).and_then(|rest| rest.find(closing));
        self.endless |= length.is_none();
        Some(length? + 2 * mark)
    }

    /// Returns the length of a string or rune. One without an end stops at the end of its line.
    fn literal(&self, quote: u8) -> usize {
        let mut escaped = false;
        for (length, &byte) in (1..).zip(self.bytes.iter().skip(self.at + 1)) {
            match byte {
                b'\n' => return length,
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                _ if byte == quote => return length + 1,
                _ => {}
            }
        }
        self.bytes.len() - self.at
    }
}

/// Returns true for the bytes of names and numbers. Bytes of other scripts count.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
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
