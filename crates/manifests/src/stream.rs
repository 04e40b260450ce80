//! Joins texts of documents into one stream and keeps their bytes.

use crate::file::Format;

/// A stream of documents. Reading it yields the documents of all texts.
#[derive(Debug, Default)]
pub struct Stream {
    text: String,
    last: Option<Format>,
}

impl Stream {
    /// Adds a text of one or more documents.
    pub fn push(&mut self, text: &str, format: Format) {
        if text.trim().is_empty() && self.last.is_some() {
            return;
        }
        if let Some(last) = self.last {
            self.end_line();
            // JSON values need no separator.
            if (last, format) != (Format::Json, Format::Json) {
                if text.trim_start().starts_with('%') {
                    self.text.push_str("...\n");
                } else if !starts_explicitly(text) {
                    self.text.push_str("---\n");
                }
            }
        }
        self.text.push_str(text);
        self.last = Some(format);
    }

    /// Ends the last line.
    pub fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Returns the stream.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Returns true if a YAML text starts with `---`, after comments and directives.
pub(super) fn starts_explicitly(text: &str) -> bool {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    let first = lines.find(|line| !line.trim().is_empty() && !line.starts_with(['#', '%']));
    first.is_some_and(|line| line.starts_with("---"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn joins(texts: &[(&str, Format)], joined: &str) {
        let mut stream = Stream::default();
        for (text, format) in texts {
            stream.push(text, *format);
        }
        assert_eq!(stream.into_text(), joined);
    }

    #[test]
    fn a_text_alone_is_not_touched() {
        joins(&[("a: 1", Format::Yaml)], "a: 1");
        joins(&[("", Format::Yaml)], "");
        joins(&[("\n# c\n---\na: 1\n", Format::Yaml)], "\n# c\n---\na: 1\n");
    }

    #[test]
    fn documents_stay_apart() {
        joins(&[("a: 1", Format::Yaml), ("b: 1\n", Format::Yaml)], "a: 1\n---\nb: 1\n");
        joins(&[("a: 1\n", Format::Yaml), ("# c\n---\nb: 1\n", Format::Yaml)], "a: 1\n# c\n---\nb: 1\n");
        joins(
            &[("a: 1\n", Format::Yaml), ("%YAML 1.2\n---\nb: 1\n", Format::Yaml)],
            "a: 1\n...\n%YAML 1.2\n---\nb: 1\n",
        );
        joins(&[("a: 1\n", Format::Yaml), ("\n", Format::Yaml)], "a: 1\n");
        joins(&[("{}", Format::Json), ("{}", Format::Json)], "{}\n{}");
        joins(&[("{}", Format::Json), ("a: 1\n", Format::Yaml)], "{}\n---\na: 1\n");
    }
}
