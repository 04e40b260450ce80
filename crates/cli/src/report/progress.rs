//! A progress bar for work that takes seconds. It appears on standard error, and only on a terminal.

use super::output::{BAR, Paint, is_quiet};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::io::IsTerminal;

/// Shows a bar for `total` items. `unit` is their plural, for example `files`. Without a total it only counts. The bar disappears when
/// the value is dropped.
pub(crate) fn bar(total: Option<u64>, unit: &'static str) -> ProgressBar {
    let stderr = std::io::stderr();
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    let is_shown = stderr.is_terminal() && !dumb && !is_quiet();
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(total, target).with_finish(ProgressFinish::AndClear);
    bar.set_style(style(unit, total.is_some(), Paint::of(&stderr)));
    bar
}

fn style(unit: &str, total: bool, paint: Paint) -> ProgressStyle {
    let bar = if paint.is_on() { format!("{{wide_bar:.{BAR}}}") } else { "{wide_bar}".to_owned() };
    let template = if total {
        format!("{{human_pos}} of {{human_len}} {unit} {bar} {{eta}} {{msg}}")
    } else {
        format!("{{human_pos}} {unit} {{spinner}} {{elapsed}} {{msg}}")
    };
    // An invalid template must not fail the command.
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
