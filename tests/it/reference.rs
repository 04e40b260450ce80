//! The tables in `docs/reference` are what the program says of itself. `make reference` writes them.

mod findings;
#[cfg(feature = "otlp")]
mod flags;
mod messages;
mod metrics;
mod schemas;

use fixtures::files::assert_generated;

/// Compares a page with the text that the program gives, or writes it.
#[track_caller]
fn assert_page(name: &str, text: &str) {
    assert_generated(format!("docs/reference/{name}"), text, "make reference");
}

/// Returns a table in Markdown.
fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: [String; N]| {
        let cells = cells.map(|cell| cell.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" "));
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(header.map(str::to_owned));
    text += "|";
    text += &"---|".repeat(N);
    text += "\n";
    text.extend(rows.into_iter().map(line));
    text
}

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        // A fence of two backticks may contain single ones.
        text if text.contains('`') => format!("`` {text} ``"),
        text => format!("`{text}`"),
    }
}
