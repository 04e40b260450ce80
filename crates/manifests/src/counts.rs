//! Numbers with their nouns, for messages to people.

/// Returns a number with its noun: `1 object`, `5,000 objects`, `2 policies`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number: u64 = number.try_into().unwrap_or(u64::MAX);
    let stem = noun.strip_suffix('y');
    match (number, stem) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{} {stem}ies", grouped(number)),
        (_, None) => format!("{} {noun}s", grouped(number)),
    }
}

/// Returns a number with commas between thousands.
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.char_indices() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the end of a summary: `; 4 documents of other kinds passed over`, and nothing for none.
pub fn passed_over(documents: impl TryInto<u64>) -> String {
    let documents: u64 = documents.try_into().unwrap_or(u64::MAX);
    if documents == 0 {
        return String::new();
    }
    format!("; {} of other kinds passed over", count(documents, "document"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_between_thousands() {
        for (number, text) in
            [(0_u64, "0"), (999, "999"), (1000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_noun_has_a_plural_for_every_number_but_one() {
        for (number, noun, text) in [
            (0_u64, "CRD", "0 CRDs"),
            (1, "CRD", "1 CRD"),
            (1_000, "object", "1,000 objects"),
            (1, "policy", "1 policy"),
            (2, "policy", "2 policies"),
        ] {
            assert_eq!(count(number, noun), text);
        }
        assert_eq!((count(1_u64, "union"), count(2_usize, "union")), ("1 union".to_owned(), "2 unions".to_owned()));
    }
}
