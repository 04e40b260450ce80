//! JSON with one long list, which is written in parts: a line for each item, so that items need not be collected.

use serde::Serialize;

/// JSON text up to the last item so far.
#[derive(Debug)]
pub(crate) struct JsonList {
    /// The text that is not written yet.
    pub(crate) text: String,
    /// The spaces before the end of the list.
    indent: &'static str,
    /// True after the first item.
    any: bool,
}

impl JsonList {
    /// Begins with a text that ends in `[`.
    pub(crate) fn begin(head: String, indent: &'static str) -> Self {
        Self { text: head, indent, any: false }
    }

    pub(crate) fn push(&mut self, item: &impl Serialize) -> serde_json::Result<()> {
        let comma = if std::mem::replace(&mut self.any, true) { "," } else { "" };
        let item = serde_json::to_string(item)?;
        self.text.extend([comma, "\n", self.indent, "  ", &*item]);
        Ok(())
    }

    /// Ends the list, and adds the rest of the text.
    pub(crate) fn end(&mut self, rest: &str) {
        let close = if self.any { ["\n", self.indent] } else { ["", ""] };
        self.text.extend(close.into_iter().chain(["]", rest]));
    }
}

/// Returns the text of a value, with a line for each member.
pub(crate) fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
