//! Indents JSON without parsing its values, so that numbers keep every digit.

/// Returns JSON with each member and item on its own line, indented by two.
pub fn pretty(json: &str) -> String {
    let mut layout = Layout { text: String::with_capacity(json.len() * 2), depth: 0 };
    let mut characters =
        json.chars().filter(|character| !character.is_ascii_whitespace() || *character == ' ').peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                layout.text.push('"');
                // A JSON string has no line breaks, so the filter removed nothing from it.
                while let Some(inside) = characters.next() {
                    layout.text.push(inside);
                    match inside {
                        '\\' => layout.text.extend(characters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ' ' => {}
            '{' | '[' => {
                layout.text.push(character);
                while characters.next_if_eq(&' ').is_some() {}
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => layout.text.push(end),
                    None => layout.line(1),
                }
            }
            '}' | ']' => {
                layout.line(-1);
                layout.text.push(character);
            }
            ',' => {
                layout.text.push(',');
                layout.line(0);
            }
            ':' => layout.text.push_str(": "),
            other => layout.text.push(other),
        }
    }
    layout.text
}

struct Layout {
    text: String,
    depth: usize,
}

impl Layout {
    fn line(&mut self, deeper: isize) {
        self.depth = self.depth.saturating_add_signed(deeper);
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn the_layout_is_that_of_serde_json_and_numbers_keep_their_digits() {
        let text = r#"{"a": [1,{"b c": "x\" ,{"}, [ ], {}],"n":null}"#;
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(pretty(text), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(pretty(&pretty(text)), pretty(text));
        assert_eq!(pretty("[18446744073709551616.50]"), "[\n  18446744073709551616.50\n]");
    }
}
