//! Formats an error together with its causes. Knows nothing else of the crate.

use std::error::Error;

/// Returns the error and its causes on one line, separated by colons.
///
/// Skips a cause whose text is already there, since many libraries repeat the message of their source.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        append_cause(&mut text, &cause.to_string());
        source = cause.source();
    }
    text
}

/// Appends a cause to an error's text, unless the text has it already.
pub fn append_cause(text: &mut String, cause: &str) {
    if text.contains(cause) {
        return;
    }
    if !text.is_empty() {
        text.push_str(": ");
    }
    text.push_str(cause);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let (first, rest) = texts.split_first().unwrap();
        Layer(first, (!rest.is_empty()).then(|| Box::new(layers(rest))))
    }

    #[test]
    fn every_cause_is_named_once() {
        for (texts, line) in [
            (&["a"][..], "a"),
            (&["a", "b", "c"], "a: b: c"),
            (&["a: b", "b", "c"], "a: b: c"),
            (&["", "b"], "b"),
            (&["a", "", "c"], "a: c"),
        ] {
            assert_eq!(with_causes(&layers(texts)), line);
        }
    }
}
