//! A progress bar for work that takes seconds. It appears on standard error, and only on a terminal.

use super::output::{BAR, Paint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::io::IsTerminal;

/// The progress of some work. The bar disappears when this value is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows a bar for `total` items. `unit` is their plural, for example `files`. Without a total it only counts.
    pub(crate) fn new(total: Option<u64>, unit: &'static str) -> Self {
        let stderr = std::io::stderr();
        let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        let target =
            if stderr.is_terminal() && !dumb { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(style(unit, total.is_some(), Paint::of(&stderr)));
        Self { bar }
    }

    pub(crate) fn set_total(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// Counts finished items.
    pub(crate) fn add(&self, items: u64) {
        self.bar.inc(items);
    }

    /// Shows the current item.
    pub(crate) fn show(&self, item: impl Into<Cow<'static, str>>) {
        self.bar.set_message(item);
    }

    /// Hides the bar while `write` prints to the terminal.
    pub(crate) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
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
