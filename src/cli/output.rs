//! Standard output and standard error, and what may go wrong with them: nothing here panics when nobody reads.

use crate::causes::with_causes;
use anyhow::Context;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Writes all of it to standard output.
pub(super) fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()).context("cannot write to standard output")
}

/// Writes a line to standard error. There is nobody left to tell if that fails.
pub(super) fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints why a command failed to standard error.
pub fn report(error: &anyhow::Error) {
    note(format_args!("{} {}", Paint::of(&io::stderr()).error("error:"), with_causes(&**error)));
}

/// Whether an error is only that the reader of standard output went away.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Colours, where they are wanted: on a terminal, unless `NO_COLOR` is set (<https://no-color.org>) or the terminal is dumb.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    on: bool,
}

impl Paint {
    pub(super) fn of(stream: &impl IsTerminal) -> Self {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { on: stream.is_terminal() && !forbidden && !dumb }
    }

    pub(super) fn is_on(self) -> bool {
        self.on
    }

    pub(super) fn error(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    pub(super) fn warning(self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
