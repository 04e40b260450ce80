//! The reader beside `serde_json`.

use super::*;
use crate::meter::Unmetered;
use proptest::prelude::*;
use serde::Deserialize;

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

/// Reads a list of lists and maps to the end, each item as itself, and returns what it contains.
fn visit(reader: &mut TextReader<'_>, out: &mut Vec<String>) -> Result<(), Unreadable> {
    match reader.peek()? {
        b'{' => {
            let mut fields = reader.enter();
            while let Some(name) = reader.name(&mut fields)? {
                out.push(reader.unicode(name, str::to_owned)?);
                visit(reader, out)?;
            }
            out.push("}".to_owned());
        }
        b'[' => {
            let mut items = reader.enter();
            while reader.item(&mut items)? {
                visit(reader, out)?;
            }
            out.push("]".to_owned());
        }
        b'"' => {
            let text = reader.string()?;
            out.push(reader.unicode(text, str::to_owned)?);
        }
        b'-' | b'0'..=b'9' => out.push(reader.number()?.to_string()),
        _ => out.push(reader.skip()?.to_owned()),
    }
    Ok(())
}

/// Collects the same as `visit`, by `serde_json`.
struct Visited<'o>(&'o mut Vec<String>);

impl<'de> serde::de::DeserializeSeed<'de> for Visited<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Visited<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.push("null".to_owned());
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.push(value.to_string());
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "as the reader does")]
    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.push((value as f64).to_string());
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "as the reader does")]
    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.push((value as f64).to_string());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.0.push(value.to_string());
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push(text.to_owned());
        Ok(())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Visited(&mut *self.0))?.is_some() {}
        self.0.push("]".to_owned());
        Ok(())
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.0.push(name);
            map.next_value_seed(Visited(&mut *self.0))?;
        }
        self.0.push("}".to_owned());
        Ok(())
    }
}

/// Checks that a text is skipped and read as `serde_json` does, with the same errors.
fn check(text: &str) {
    let message = |error: serde_json::Error| {
        Unreadable::Malformed(Printable::new(&error.to_string(), LONGEST_REASON).to_string().into())
    };
    let skipped = whole(text, |reader| reader.skip().map(drop));
    assert_eq!(skipped, serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(message), "{text:?} skipped");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let visited = whole(text, |reader| visit(reader, &mut ours)).map(|()| ours);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let expected = serde::de::DeserializeSeed::deserialize(Visited(&mut theirs), &mut deserializer);
    let expected = expected.and_then(|()| deserializer.end()).map(|()| theirs).map_err(message);
    if format!("{expected:?}").contains("recursion limit") {
        return;
    }
    assert_eq!(visited, expected, "{text:?} read");
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

/// Returns JSON texts with white space, escapes and duplicate names, and texts that are almost JSON.
fn texts() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec!["", " ", "\n", "\t\r "]);
    let string = prop_oneof!["\"[a-c]{0,20}\"", r#""([ab]|\\["\\/bfnrtu]|\\u[0-9a-fD]{4}|é|😀){0,6}""#];
    let number = "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?";
    let scalar =
        prop_oneof![string, number, prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned)];
    let name = prop_oneof![Just("\"a\"".to_owned()), "\"[a-c]{0,9}\"", Just(r#""\u0061""#.to_owned())];
    let value = scalar.prop_recursive(6, 64, 6, move |inner| {
        let item =
            (space.clone(), inner, space.clone()).prop_map(|(before, item, after)| format!("{before}{item}{after}"));
        let field = (name.clone(), item.clone()).prop_map(|(name, item)| format!("{name}:{item}"));
        prop_oneof![
            prop::collection::vec(item, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(field, 0..6).prop_map(|fields| format!("{{{}}}", fields.join(","))),
        ]
    });
    let spoilt = prop::collection::vec((any::<prop::sample::Index>(), "[\"\\\\{}\\[\\],:0-9eE. \nabtu]?"), 0..3);
    (value, spoilt).prop_map(|(mut text, spoilt)| {
        for (index, with) in spoilt {
            let at = index.index(text.len().max(1));
            if text.is_char_boundary(at) && at < text.len() && text.is_char_boundary(at + 1) {
                text.replace_range(at..=at, &with);
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_are_read_as_serde_json_reads_them(text in texts()) {
        check(&text);
    }
}
