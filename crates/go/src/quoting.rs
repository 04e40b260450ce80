//! Reads texts in quotes: string literals of Go, tags of fields, and arguments of markers.

const UNCLOSED: &str = "missing closing quote";
const INVALID_ESCAPE: &str = "invalid escape between quotes";

/// Splits a text in quotes from what follows it, and returns it without them, or the message of an error. Single quotes are read as
/// raw.
///
/// Returns `None` if the text does not begin with a quote.
pub(super) fn quoted(text: &str) -> Option<Result<(String, &str), &'static str>> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '`' | '\''))?;
    let mut escaped = false;
    for (position, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            _ if character == quote => {
                let (literal, rest) = text.split_at_checked(position + 1)?;
                let read = if quote == '\'' { literal.get(1..position).map(str::to_owned) } else { unquote(literal) };
                return Some(read.map(|read| (read, rest)).ok_or(INVALID_ESCAPE));
            }
            _ => {}
        }
    }
    Some(Err(UNCLOSED))
}

/// Returns the text of a string literal, or `None` if it is invalid.
pub(super) fn unquote(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('`').and_then(|raw| raw.strip_suffix('`')) {
        return Some(raw.replace('\r', ""));
    }
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            bytes.extend(character.to_string().bytes());
            continue;
        }
        let escape = characters.next()?;
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '0'..='7' => 3,
            _ => 0,
        };
        if digits > 0 {
            let (radix, mut number) =
                if escape.is_ascii_digit() { (8, escape.to_string()) } else { (16, String::new()) };
            while number.len() < digits {
                number.push(characters.next()?);
            }
            let value = u32::from_str_radix(&number, radix).ok()?;
            if escape == 'x' || escape.is_ascii_digit() {
                bytes.push(u8::try_from(value).ok()?);
            } else {
                bytes.extend(char::from_u32(value)?.to_string().bytes());
            }
            continue;
        }
        bytes.push(match escape {
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 0x0b,
            '\\' | '"' | '\'' => u8::try_from(escape).ok()?,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_string_literals_as_go_does() {
        let rows = [
            ("`raw \\n`", Some("raw \\n")),
            (r#""a\"b\\c\t""#, Some("a\"b\\c\t")),
            (r#""\x41\u00e9\U0001F600\101""#, Some("Aé😀A")),
            (r#""\q""#, None),
            (r#""\xff""#, None),
            (r#""\u12""#, None),
            ("'a'", None),
        ];
        for (literal, expected) in rows {
            assert_eq!(unquote(literal).as_deref(), expected, "{literal}");
        }
    }

    #[test]
    fn splits_at_the_closing_quote() {
        let rows = [
            (r#""a\"b" c"#, Some(Ok(("a\"b", " c")))),
            (r"`a\`b", Some(Ok((r"a\", "b")))),
            ("'é'", Some(Ok(("é", "")))),
            ("\"\"\"", Some(Ok(("", "\"")))),
            (r#""a\""#, Some(Err(UNCLOSED))),
            (r#""\q""#, Some(Err(INVALID_ESCAPE))),
            ("`", Some(Err(UNCLOSED))),
            ("a\"b\"", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let expected = expected.map(|split| split.map(|(read, rest): (&str, _)| (read.to_owned(), rest)));
            assert_eq!(quoted(text), expected, "{text}");
        }
    }
}
