//! Mentions of fields in the text of rules.

/// Returns true if a text has a name as a whole word.
pub(crate) fn mentions(text: &str, name: &str) -> bool {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text.get(at.saturating_add(name.len())..).and_then(|after| after.chars().next());
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_mentions() {
        assert!(mentions("has(self.a)", "a"));
        assert!(!mentions("has(self.ab)", "a"));
        assert!(!mentions("has(self.ab)", ""));
    }
}
