//! Writes to standard output and standard error. A closed pipe is an error here, never a panic.

use crate::causes::with_causes;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Writes data to standard output, byte for byte.
pub(super) fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()).context("cannot write to standard output")
}

/// Returns the width of the terminal that standard output goes to, in characters; `None` if it goes elsewhere.
pub(super) fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout))?.ok()?;
    // A terminal that does not know its width says 0.
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Writes a line to standard error. Ignores a failure: no stream is left to report it to.
pub(super) fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints why a command failed to standard error.
pub(super) fn report(error: &anyhow::Error) {
    note(format_args!("{} {}", Paint::of(&io::stderr()).error("error:"), with_causes(&**error)));
}

/// Returns true if an error only means that the reader of standard output has closed the pipe.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Colours text for a stream that shows colours: a terminal, unless `NO_COLOR` (<https://no-color.org>), `CLICOLOR=0` or
/// `TERM=dumb` is set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    on: bool,
}

impl Paint {
    pub(super) fn of(stream: &impl RawStream) -> Self {
        Self { on: AutoStream::choice(stream) != ColorChoice::Never }
    }

    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { on: false }
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
