//! Reads string literals and the field tags in them.

use crate::types::JsonTag;

/// Returns the `json` key of a tag, for example of `protobuf:"…" json:"name,omitempty"`.
pub(super) fn json_tag(tag: &str) -> JsonTag {
    let mut rest = tag.trim_start();
    while let Some((key, after)) = rest.split_once(":\"") {
        let mut end = None;
        let mut escaped = false;
        for (position, character) in after.char_indices() {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    end = Some(position);
                    break;
                }
                _ => {}
            }
        }
        let Some(end) = end else { break };
        let value = after.get(..end).unwrap_or_default();
        if key.trim() == "json" {
            let (name, options) = value.split_once(',').unwrap_or((value, ""));
            return JsonTag {
                name: Some(name).filter(|name| !name.is_empty()).map(Into::into),
                inline: options.split(',').any(|option| option == "inline"),
                skipped: value == "-",
            };
        }
        rest = after.get(end + 1..).unwrap_or_default().trim_start();
    }
    JsonTag::default()
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
    fn finds_the_json_key_among_others() {
        let tag = |name: Option<&str>, inline, skipped| JsonTag { name: name.map(Into::into), inline, skipped };
        let rows = [
            (r#"json:"canary,omitempty""#, tag(Some("canary"), false, false)),
            (r#"protobuf:"bytes,1,opt,name=\"x\"" json:"canary""#, tag(Some("canary"), false, false)),
            (r#"json:",inline""#, tag(None, true, false)),
            (r#"json:"-""#, tag(Some("-"), false, true)),
            (r#"json:"-,""#, tag(Some("-"), false, false)),
            (r#"yaml:"x""#, tag(None, false, false)),
            ("json:\"x", tag(None, false, false)),
            ("", tag(None, false, false)),
        ];
        for (text, expected) in rows {
            assert_eq!(json_tag(text), expected, "{text}");
        }
    }
}
