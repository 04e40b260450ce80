//! The reader beside `serde_json`.

use super::*;
use crate::meter::Unmetered;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Reads a whole text by a function.
fn whole<'a, T>(
    text: &'a str,
    read: impl FnOnce(&mut TextReader<'a>) -> Result<T, Unreadable>,
) -> Result<T, Unreadable> {
    let mut reader = TextReader::new(text, &Unmetered);
    let value = read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads a value to its end, each part of it as itself.
fn value(reader: &mut TextReader<'_>) -> Result<Value, Unreadable> {
    Ok(match reader.peek()? {
        b'{' => {
            let (mut fields, mut values) = (reader.enter(), Map::new());
            while let Some(name) = reader.name(&mut fields)? {
                let name = reader.unicode(name, str::to_owned)?;
                values.insert(name, value(reader)?);
            }
            Value::Object(values)
        }
        b'[' => {
            let (mut items, mut values) = (reader.enter(), Vec::new());
            while reader.item(&mut items)? {
                values.push(value(reader)?);
            }
            Value::Array(values)
        }
        b'"' => {
            let text = reader.string()?;
            Value::String(reader.unicode(text, str::to_owned)?)
        }
        b'-' | b'0'..=b'9' => Value::from(reader.number()?),
        _ => serde_json::from_str(reader.skip()?).unwrap(),
    })
}

/// Returns a value whose numbers are what the reader makes of them.
fn rounded(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, rounded(value))).collect(),
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Number(number) => number.as_f64().into(),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

/// Checks that a text is skipped and read as `serde_json` does, with the same errors.
fn check(text: &str) {
    let message = |error: serde_json::Error| {
        Unreadable::Malformed(Printable::new(&error.to_string(), LONGEST_REASON).to_string().into())
    };
    let skipped = whole(text, |reader| reader.skip().map(drop));
    assert_eq!(skipped, serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(message), "{text:?} skipped");
    let expected = serde_json::from_str::<Value>(text).map(rounded).map_err(message);
    if format!("{expected:?}").contains("recursion limit") {
        return;
    }
    assert_eq!(whole(text, value), expected, "{text:?} read");
    let string = whole(text, |reader| {
        let string = reader.string()?;
        reader.unicode(string, str::to_owned)
    });
    assert_eq!(string, serde_json::from_str::<String>(text).map_err(message), "{text:?} as a string");
    let map = whole(text, |reader| reader.object("a map").map(drop));
    if !text.trim_ascii_start().starts_with('{') {
        struct Map;
        impl<'de> Deserialize<'de> for Map {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map(ExpectedValue("a map")).map(|()| Self)
            }
        }
        assert_eq!(map, serde_json::from_str::<Map>(text).map(drop).map_err(message), "{text:?} as a map");
    }
}

const GOOD: &str = r#" {"a": [1, -0.5e+3, "x\"\u00e9\\", {"b": {}, "a": [[], true, false, null]}, 0], "\ud83d\ude00long key with é":
    "0123456789abcdef\n", "a": "", "c": 123456789012345678901} "#;

#[test]
fn every_spoilt_byte_is_seen_as_serde_json_sees_it() {
    check(GOOD);
    for (at, _) in GOOD.char_indices() {
        let (before, after) = GOOD.split_at(at);
        check(before);
        let mut rest = after.chars();
        rest.next();
        check(&format!("{before}{}", rest.as_str()));
        for with in "\"\\{}[],:0-.e \n\tudx".chars() {
            check(&format!("{before}{with}{after}"));
            check(&format!("{before}{with}{}", rest.as_str()));
        }
    }
}

#[test]
fn strings_and_numbers_are_those_of_serde_json() {
    for text in [
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800x\"",
        "\"\\ud800\\n\"",
        "\"\\ud800",
        "\"\\u12",
        "\"\\u123g\"",
        "\"\\x\"",
        "\"a\u{1}b\"",
        "\"\u{7f}\u{80}\u{10ffff}\"",
        "\"12345678\\",
        "\"1234567\"",
        "\"12345678",
        "1e400",
        "-1e400",
        "1e-400",
        "0e999",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "-0",
        "-01",
        "1.7976931348623159e308",
        "18446744073709551616",
        "-9223372036854775809",
        "0x1",
        "NaN",
        "tru",
        "nulll",
        "fals\u{e9}",
        "\u{feff}1",
        "",
    ] {
        check(text);
        check(&format!("[{text},{text}]"));
        check(&format!("{{{text}:{text}}}"));
    }
    let digits = "7".repeat(1 << 20);
    for text in [digits.clone(), format!("-{digits}"), format!("0.{digits}"), format!("1e{digits}")] {
        assert_eq!(whole(&text, TextReader::skip), Ok(&*text));
        assert_eq!(whole(&text, TextReader::number).is_ok(), serde_json::from_str::<f64>(&text).is_ok());
    }
}

#[test]
fn any_depth_is_skipped() {
    for depth in [1, 62, 63, 64, 65, 126, 127, 128, 10_000, 10_239, 10_240, 10_241, 100_000] {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[0,{"a":"#, "}]")] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert_eq!(whole(&text, TextReader::skip), Ok(&*text), "{depth}");
            let unclosed = text.get(..text.len() - 1).unwrap();
            let error = serde_json::from_str::<IgnoredAny>(unclosed).unwrap_err().to_string();
            assert_eq!(whole(unclosed, TextReader::skip), Err(Unreadable::Malformed(error.into())), "{depth}");
        }
    }
}
