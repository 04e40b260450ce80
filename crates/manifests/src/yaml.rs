//! Converts YAML to JSON text as kubectl reads it, with the booleans and octal numbers of YAML 1.1.
//!
//! The JSON is written while the YAML is read, without a tree in between. Members keep their order, and keys their spelling.
//! Depth and size are bounded. [`syntax`](super::syntax) has the positions of the values.

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use std::fmt::{self, Write};

/// Deepest nesting of YAML. CRDs with deep objects have about 80 levels.
const DEEPEST: usize = 250;

/// Stack per level of nesting, in bytes. A debug build uses about 20 KiB.
#[cfg(not(target_family = "wasm"))]
const STACK_PER_LEVEL: usize = 64 << 10;

/// Most bytes of JSON per byte of YAML. Only aliases of aliases ("billion laughs") need more.
const LARGEST_GROWTH: usize = 16;
/// Bytes of JSON that are always allowed.
const SMALLEST_BOUND: usize = 16 << 20;

const TOO_LARGE: &str = "too large once its aliases are expanded";

/// A text that is not YAML or has no equivalent in JSON.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct YamlError {
    pub(super) message: String,
    /// Line and column, counted from 1.
    pub(super) position: Option<(usize, usize)>,
    /// True if an object has a key twice.
    pub(super) is_duplicate: bool,
}

impl YamlError {
    fn of_text(message: String) -> Self {
        Self { message, position: None, is_duplicate: false }
    }
}

/// A value that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum WriteError {
    /// The text is not JSON.
    Json(#[from] serde_json::Error),
    /// YAML cannot express the value.
    Yaml(#[from] serde_saphyr::ser::Error),
}

/// Returns the JSON of a text with one YAML document.
pub(super) fn to_json(yaml: &str) -> Result<String, YamlError> {
    on_deep_stack(|| transcode(yaml, DuplicateKeyPolicy::Error))
        .unwrap_or_else(|message| Err(YamlError::of_text(message)))
}

/// Returns the JSON of a text with one YAML document, and the first key that an object has twice. The last one counts.
pub(super) fn to_json_with_duplicate(yaml: &str) -> Result<(String, Option<YamlError>), YamlError> {
    let duplicate = match to_json(yaml) {
        Err(error) if error.is_duplicate => error,
        json => return Ok((json?, None)),
    };
    on_deep_stack(|| {
        let json = transcode(yaml, DuplicateKeyPolicy::LastWins)?;
        let value = serde_json::from_str::<serde_json::Value>(&json);
        value.map(|value| value.to_string()).map_err(|error| YamlError::of_text(error.to_string()))
    })
    .unwrap_or_else(|message| Err(YamlError::of_text(message)))
    .map(|json| (json, Some(duplicate)))
}

#[cfg(not(target_family = "wasm"))]
thread_local! {
    /// True on a thread of [`on_deep_stack`].
    static IS_DEEP: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs a function on a thread of its own, with a stack for the deepest text, so that the depth limit does not depend on the
/// caller. Within, the same thread serves. Returns a message if there can be no thread.
#[cfg(not(target_family = "wasm"))]
pub(super) fn on_deep_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Result<T, String> {
    if IS_DEEP.get() {
        return Ok(run());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(DEEPEST * STACK_PER_LEVEL);
        let running = thread.spawn_scoped(scope, || {
            IS_DEEP.set(true);
            run()
        });
        let running = running.map_err(|error| format!("cannot start a thread to read it: {error}"))?;
        Ok(running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Runs a function. WebAssembly has no threads. The deepest text fits the stack of 1 MiB that a release build has there.
#[cfg(target_family = "wasm")]
pub(super) fn on_deep_stack<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    Ok(run())
}

fn transcode(yaml: &str, duplicates: DuplicateKeyPolicy) -> Result<String, YamlError> {
    let mut json = String::with_capacity(yaml.len());
    let bound = yaml.len().saturating_mul(LARGEST_GROWTH).max(SMALLEST_BOUND);
    serde_saphyr::with_deserializer_from_str_with_options(yaml, options(duplicates), |deserializer| {
        Transcode { json: &mut json, bound, is_key: false }.deserialize(deserializer)
    })
    .map_err(|error| describe(&error))?;
    Ok(json)
}

/// Converts JSON text to YAML.
pub fn to_yaml(json: &str) -> Result<String, WriteError> {
    Ok(from_value(&serde_json::from_str(json)?)?)
}

/// Returns the YAML of a JSON value.
pub(super) fn from_value(value: &serde_json::Value) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(value)
}

/// Limits for files that a user names: generous for the size of a file, strict for its expansion.
fn options(duplicates: DuplicateKeyPolicy) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            flow_nesting_limit: DEEPEST,
            max_events: 64_000_000,
            max_nodes: 16_000_000,
            max_total_scalar_bytes: 256 << 20,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 250_000 },
        duplicate_keys: duplicates,
        // `defaultMode: 0644` is octal for kubectl.
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
    }
}

fn describe(error: &serde_saphyr::Error) -> YamlError {
    use serde_saphyr::Error;
    let position = error.location().and_then(|location| {
        let (line, column) = (usize::try_from(location.line()).ok()?, usize::try_from(location.column()).ok()?);
        (line > 0).then_some((line, column))
    });
    let mut cause = error.without_snippet();
    while let Error::AliasError { error, .. } = cause {
        cause = error;
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "the texts of most errors are clear")]
    let message = match cause {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate key `{key}`"),
        Error::DuplicateMappingKey { .. } => "duplicate key".to_owned(),
        Error::NullIntoString { .. } => "the key is null: quote it to use it as text".to_owned(),
        Error::Budget { breach, .. } => describe_breach(breach),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => TOO_LARGE.to_owned(),
        Error::Message { msg, .. } => msg.clone(),
        other => without_position(&other.to_string()),
    };
    YamlError { message, position, is_duplicate: matches!(cause, Error::DuplicateMappingKey { .. }) }
}

fn describe_breach(breach: &serde_saphyr::budget::BudgetBreach) -> String {
    use serde_saphyr::budget::BudgetBreach;
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are limits on size")]
    match breach {
        BudgetBreach::Depth { .. } => format!("nested deeper than {DEEPEST} levels"),
        _ => TOO_LARGE.to_owned(),
    }
}

/// Removes the position that the library appends. The caller prints it in front.
fn without_position(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    message.replace("recursion limit exceeded", "nested too deeply")
}

/// Writes the value of a deserializer as JSON. A key becomes the text that kubectl makes of it: `on` is `true`, and `0644` is `420`.
struct Transcode<'j> {
    json: &'j mut String,
    bound: usize,
    is_key: bool,
}

impl Transcode<'_> {
    fn again(&mut self, is_key: bool) -> Transcode<'_> {
        Transcode { json: self.json, bound: self.bound, is_key }
    }

    fn put<E: serde::de::Error>(&mut self, value: impl fmt::Display) -> Result<(), E> {
        let quote = if self.is_key { "\"" } else { "" };
        self.put_json(format_args!("{quote}{value}{quote}"))
    }

    fn put_json<E: serde::de::Error>(&mut self, json: fmt::Arguments<'_>) -> Result<(), E> {
        self.json.write_fmt(json).map_err(E::custom)?;
        if self.json.len() > self.bound { Err(E::custom(TOO_LARGE)) } else { Ok(()) }
    }

    /// Writes an object or a list. `next` adds the next member or item, and returns false if there is none.
    fn put_all<E: serde::de::Error>(
        &mut self,
        (open, close): (char, char),
        mut next: impl FnMut(&mut Self) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut separator = open;
        loop {
            let end = self.json.len();
            self.json.push(separator);
            if !next(self)? {
                self.json.truncate(if separator == open { end + 1 } else { end });
                return self.put_json(format_args!("{close}"));
            }
            separator = ',';
        }
    }
}

impl<'de> DeserializeSeed<'de> for Transcode<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Transcode<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} that JSON can express", if self.is_key { "key" } else { "value" })
    }

    fn visit_unit<E: serde::de::Error>(mut self) -> Result<(), E> {
        if self.is_key {
            return Err(E::custom("the key is null: quote it to use it as text"));
        }
        self.put("null")
    }

    fn visit_bool<E: serde::de::Error>(mut self, value: bool) -> Result<(), E> {
        self.put(value)
    }

    fn visit_i64<E: serde::de::Error>(mut self, value: i64) -> Result<(), E> {
        self.put(value)
    }

    fn visit_u64<E: serde::de::Error>(mut self, value: u64) -> Result<(), E> {
        self.put(value)
    }

    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<(), E> {
        if self.is_key {
            return self.put(as_go_prints(value));
        }
        let number = serde_json::Number::from_f64(value)
            .ok_or_else(|| E::custom("JSON cannot express this number: use a string or another value"))?;
        self.put(number)
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        let text = serde_json::to_string(text).map_err(E::custom)?;
        self.put_json(format_args!("{text}"))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        if self.is_key {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        self.put_all(('[', ']'), |it| Ok(items.next_element_seed(it.again(false))?.is_some()))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        if self.is_key {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        }
        self.put_all(('{', '}'), |it| {
            if entries.next_key_seed(it.again(true))?.is_none() {
                return Ok(false);
            }
            it.json.push(':');
            entries.next_value_seed(it.again(false))?;
            Ok(true)
        })
    }
}

/// Returns a number as Go's format `g`: with an exponent of at least two digits from a million on.
fn as_go_prints(value: f64) -> String {
    let scientific = format!("{value:e}");
    let exponent = scientific.split_once('e').and_then(|(mantissa, it)| Some((mantissa, it.parse::<i32>().ok()?)));
    match exponent {
        None | Some((_, -4..=5)) => value.to_string(),
        Some((mantissa, exponent)) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fails(yaml: &str, message: &str, position: (usize, usize)) {
        let error = to_json(yaml).unwrap_err();
        assert_eq!((error.message.as_str(), error.position), (message, Some(position)));
    }

    #[test]
    fn reads_scalars_as_kubectl_does() {
        for (yaml, json) in [
            ("yes", "true"),
            ("off", "false"),
            ("'yes'", r#""yes""#),
            ("0644", "420"),
            ("0o17", "15"),
            ("08", "8.0"),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("-3", "-3"),
            ("1.0", "1.0"),
            ("1e3", "1000.0"),
            ("~", "null"),
            ("", "null"),
            ("2001-01-01", r#""2001-01-01""#),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            ("v1", r#""v1""#),
        ] {
            assert_eq!(to_json(yaml).unwrap(), json, "{yaml}");
        }
    }

    #[test]
    fn keeps_order_and_spelling_of_keys_and_expands_aliases_and_merges() {
        let yaml = "z: 1\n1: [a, {}, []]\ntrue: &t {x: 1}\nm: {<<: *t, w: 2}\n";
        let value: serde_json::Value = serde_json::from_str(&to_json(yaml).unwrap()).unwrap();
        let expected = r#"{"z":1,"1":["a",{},[]],"true":{"x":1},"m":{"w":2,"x":1}}"#;
        assert_eq!(value.to_string(), expected);
    }

    /// The values are those of sigs.k8s.io/yaml.
    #[test]
    fn keys_are_read_as_kubectl_does() {
        for (yaml, key) in [
            ("on", "true"),
            ("yes", "true"),
            ("n", "false"),
            ("'on'", "on"),
            ("\"1\"", "1"),
            ("0644", "420"),
            ("0x10", "16"),
            ("1_000", "1000"),
            ("-0", "0"),
            ("1.5", "1.5"),
            ("1e3", "1000"),
            ("1e6", "1e+06"),
            ("1.5e-7", "1.5e-07"),
            ("2001-01-01", "2001-01-01"),
            ("v1", "v1"),
        ] {
            let want = serde_json::json!({ key: 1 }).to_string();
            assert_eq!(to_json(&format!("{yaml}: 1\n")).unwrap(), want, "{yaml}");
        }
    }

    /// The values are those of sigs.k8s.io/yaml, which allows any indentation of the lines that continue a quoted text.
    #[test]
    fn quoted_texts_go_over_several_lines_as_in_libyaml() {
        for (yaml, json) in [
            ("a:\n  b: \"one\n  two\"\n", r#"{"a":{"b":"one two"}}"#),
            ("a:\n  b: \"one\n two\"\n", r#"{"a":{"b":"one two"}}"#),
            ("a:\n  b: \"one\ntwo\"\n  c: 1\n", r#"{"a":{"b":"one two","c":1}}"#),
            ("a:\n  b: 'one\n  two'\n", r#"{"a":{"b":"one two"}}"#),
            ("a:\n- b: 'it''s\nfine'\n  c: 1\n- d\n", r#"{"a":[{"b":"it's fine","c":1},"d"]}"#),
            ("b: \"one\ntwo\"\nc: 1\n", r#"{"b":"one two","c":1}"#),
            ("b: \"one\n two\n\n  three\"\n", r#"{"b":"one two\nthree"}"#),
            ("a:\n  b: \"one\n\n\n  two\"\n", r#"{"a":{"b":"one\n\ntwo"}}"#),
            ("b: \"one\\\n  two\"\n", r#"{"b":"onetwo"}"#),
            ("b: \"one \\\n  \\ two\"\n", r#"{"b":"one  two"}"#),
            ("a:\n  b: \"one\n\ttwo\"\n", r#"{"a":{"b":"one two"}}"#),
            ("a: \"one\r\n  two\"\r\nb: 1\r\n", r#"{"a":"one two","b":1}"#),
            ("a: \"x # no comment\n  # neither\"\n", r#"{"a":"x # no comment # neither"}"#),
            ("s: \"first\n  second: third\n  - fourth\"\n", r#"{"s":"first second: third - fourth"}"#),
            (
                "a:\n  - b: \"many\n      lines\"\n    c: 'of\n    text\n    '\n",
                r#"{"a":[{"b":"many lines","c":"of text "}]}"#,
            ),
            ("k: {a: \"x\ny\", b: 'p\nq'}\n", r#"{"k":{"a":"x y","b":"p q"}}"#),
            ("- - \"x\ny\"\n", r#"[["x y"]]"#),
            ("a: &z \"x\ny\"\nb: *z\n", r#"{"a":"x y","b":"x y"}"#),
            ("a: \"x\n\ny\" # c\nb: 1\n", r#"{"a":"x\ny","b":1}"#),
        ] {
            assert_eq!(to_json(yaml).unwrap(), json, "{yaml}");
        }
        for yaml in ["a: \"x\n---\ny\"\n", "a: 'x\n...\ny'\n", "a: \"x\ny\": z\n", "a: \"x\n"] {
            to_json(yaml).unwrap_err();
        }
    }

    #[test]
    fn errors_have_a_position_and_a_message() {
        fails("a: 1\nb: 2\na: 3\n", "duplicate key `a`", (3, 1));
        fails("a:\n\t- b\n", "tabs disallowed within this context (block indentation)", (2, 2));
        fails("a: 1\n~: 2\n", "the key is null: quote it to use it as text", (2, 1));
    }

    #[test]
    fn limits_nesting_and_expansion() {
        let deep: String = (0..400).fold(String::new(), |deep, level| deep + &" ".repeat(level) + "a:\n");
        assert!(to_json(&deep).unwrap_err().message.contains("nested"));
        assert!(to_json(&"[".repeat(5000)).unwrap_err().message.contains("nested"));
        let mut bomb = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
        for pair in "abcdefghi".as_bytes().windows(2) {
            let (from, to) = (char::from(pair[0]), char::from(pair[1]));
            let _ = writeln!(bomb, "{to}: &{to} [{}]", vec![format!("*{from}"); 9].join(", "));
        }
        let message = to_json(&bomb).unwrap_err().message;
        assert!(message.contains("alias"), "{message}");
    }
}
