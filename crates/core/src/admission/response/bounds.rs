//! The bounds of texts and lists in a response.

use crate::field_path::cut;
use std::borrow::Cow;

/// Bytes that a list keeps free for its last item, which counts what is left out.
pub(super) const RESERVED: usize = 64;

/// Cuts a text to at most `longest` bytes, with an ellipsis at the end if something is missing. Replaces control
/// characters, since the API server drops warnings that have some.
pub(super) fn shorten(text: &str, longest: usize) -> Cow<'_, str> {
    const ELLIPSIS: &str = "…";
    let text = if text.chars().any(char::is_control) {
        Cow::Owned(text.replace(char::is_control, " "))
    } else {
        Cow::Borrowed(text)
    };
    if text.len() <= longest {
        return text;
    }
    format!("{}{ELLIPSIS}", cut(&text, longest.saturating_sub(ELLIPSIS.len()))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(shorten("ab\ncd", 10), "ab cd");
        let long = shorten(&"é".repeat(300), 256).into_owned();
        assert!(long.len() <= 256 && long.ends_with('…'), "{long}");
    }
}
