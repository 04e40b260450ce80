//! Lines of an expression, as a person breaks them.

/// The longest line of an expression, in characters. With the indentation of YAML it has 120.
const WIDTH: usize = 112;

/// The indentation of a line that goes on, in spaces.
const HANGING: usize = 4;

/// Returns an expression whose long lines are broken: after an operator or a comma, before `?` and `:`, never in a literal.
pub(crate) fn fold(expression: &str) -> String {
    let lines: Vec<String> = expression.lines().flat_map(fold_line).collect();
    lines.join("\n")
}

fn fold_line(line: &str) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    if length(line) <= WIDTH {
        return vec![line.to_owned()];
    }
    let lead = line.len().saturating_sub(line.trim_start().len());
    let (mut folded, mut current) = (Vec::new(), " ".repeat(lead));
    // The ends of `current` at which it may be broken: how deep in parentheses they are, how closely they bind, and the position in bytes.
    let mut breaks: Vec<(usize, usize, usize)> = Vec::new();
    let mut depth = 0_usize;
    for word in words(line.trim_start()) {
        let is_first = current.trim().is_empty();
        let ends_a_part = current.ends_with([',', '+']) || current.ends_with("&&") || current.ends_with("||");
        if !is_first && (ends_a_part || matches!(word, "?" | ":")) && length(&current) > WIDTH / 4 {
            let binds = ["||", "&&", ",", "+"].iter().position(|it| current.ends_with(it)).unwrap_or_default();
            breaks.push((depth, binds, current.len()));
        }
        if !is_first {
            current.push(' ');
        }
        current.push_str(word);
        depth = depth_after(word, depth);
        // The outermost end, and of those the last one.
        let best = breaks.iter().copied().min_by_key(|&(depth, binds, at)| (depth, binds, std::cmp::Reverse(at)));
        if length(&current) > WIDTH
            && let Some((head, rest)) = best.and_then(|(.., at)| current.split_at_checked(at))
        {
            let rest = format!("{}{}", " ".repeat(lead.saturating_add(HANGING)), rest.trim_start());
            folded.push(head.to_owned());
            current = rest;
            breaks.clear();
        }
    }
    folded.push(current);
    folded
}

/// Returns how deep in parentheses the end of a word is.
fn depth_after(word: &str, depth: usize) -> usize {
    let mut quote = None;
    word.chars().fold(depth, |depth, it| match (quote, it) {
        (Some(open), _) => {
            if it == open {
                quote = None;
            }
            depth
        }
        (None, '"' | '\'') => {
            quote = Some(it);
            depth
        }
        (None, '(' | '[' | '{') => depth.saturating_add(1),
        (None, ')' | ']' | '}') => depth.saturating_sub(1),
        (None, _) => depth,
    })
}

/// Returns the words of a line. A literal with spaces is a part of one word.
fn words(line: &str) -> Vec<&str> {
    let (mut quote, mut escaped) = (None, false);
    line.split(|it: char| {
        let was_escaped = std::mem::take(&mut escaped);
        match quote {
            Some(_) if was_escaped => {}
            Some(_) if it == '\\' => escaped = true,
            Some(open) if it == open => quote = None,
            Some(_) => {}
            None if matches!(it, '"' | '\'') => quote = Some(it),
            None => return it == ' ',
        }
        false
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_outside_of_literals() {
        let part = r#"variables.type == "a && b\" c, d""#;
        let folded = fold(&[part; 6].join(" && "));
        let lines: Vec<&str> = folded.lines().collect();
        assert_eq!(lines.len(), 2, "{folded}");
        assert!(lines[0].ends_with(" &&") && lines[1].starts_with(&format!("    {part}")), "{folded}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{folded}");
        assert_eq!(fold("a ?\n  b : c"), "a ?\n  b : c");
        let unbreakable = format!("\"{}\"", "x, ".repeat(60));
        assert_eq!(fold(&unbreakable), unbreakable);
    }
}
