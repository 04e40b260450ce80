//! A progress bar for work that takes seconds: on standard error, and only where that is a terminal.

use super::output::Paint;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::io::IsTerminal;

/// How far some work has come. Shows nothing where nobody looks, and is gone when the work ends.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Begins a bar for `total` pieces of something, `files` say; without a total it only counts.
    pub(super) fn new(total: Option<u64>, unit: &'static str) -> Self {
        let stderr = std::io::stderr();
        let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        let target =
            if stderr.is_terminal() && !dumb { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(style(unit, total.is_some(), Paint::of(&stderr)));
        Self { bar }
    }

    /// There are so many pieces, as far as is known now.
    pub(super) fn expect(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// So many more pieces are done.
    pub(super) fn add(&self, pieces: u64) {
        self.bar.inc(pieces);
    }

    /// What is worked at now.
    pub(super) fn at(&self, what: impl Into<Cow<'static, str>>) {
        self.bar.set_message(what);
    }

    /// Writes something to the terminal without tearing the bar.
    pub(super) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(unit: &str, total: bool, paint: Paint) -> ProgressStyle {
    let bar = if paint.is_on() { "{wide_bar:.cyan/dim}" } else { "{wide_bar}" };
    let template = if total {
        format!("{{human_pos}} of {{human_len}} {unit} {bar} {{eta}} {{msg}}")
    } else {
        format!("{{human_pos}} {unit} {{spinner}} {{elapsed}} {{msg}}")
    };
    // A template that could not be read would cost the looks, not the work.
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
