//! The tables in `docs/reference` are what the program says of itself. `make reference` writes them.

mod findings;
#[cfg(feature = "otlp")]
mod flags;
mod messages;
mod metrics;
mod schemas;
mod suite_schema;

use std::path::Path;

/// Compares a page with the text that the program gives, or writes it with `KUBE_UNIONS_UPDATE`.
fn assert_page(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(name);
    if std::env::var_os("KUBE_UNIONS_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "docs/reference/{name} is out of date: run `make reference`");
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
