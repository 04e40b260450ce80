//! Writes to standard output and standard error. A closed pipe is an error here, never a panic.

use crate::credentials::without_credentials;
use crate::escape::escaped;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use clap::builder::styling::{Ansi256Color, Color, Style, Styles};
use kube_unions_core::causes::with_causes;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

// The colours are numbers of the fixed part of the palette (16 to 255). The first 16 are the theme's, and many a theme has a
// yellow, a green or a grey that nobody can read on a light background, or on a dark one. These can be read on both.
const ERROR: Style = colour(196).bold();
const WARNING: Style = colour(100).bold();
const GOOD: Style = colour(65).bold();
const FAINT: Style = colour(244);
const ADDED: Style = colour(65);
const REMOVED: Style = colour(196);
const STRONG: Style = Style::new().bold();
/// The style that clap gives to `Usage:` and to the headings of help.
const HEADING: Style = STRONG.underline();

/// The colours of a progress bar, done and to do, in the notation of indicatif.
pub const BAR: &str = "31/244";

/// The styles of help and of errors about arguments.
pub const STYLES: Styles = Styles::styled().error(ERROR).invalid(WARNING).valid(GOOD).header(HEADING).usage(HEADING);

/// The width of help on a wider terminal.
pub const HELP_WIDTH: usize = 120;

const CANNOT_PRINT: &str = "cannot write to standard output";

const fn colour(number: u8) -> Style {
    Style::new().fg_color(Some(Color::Ansi256(Ansi256Color(number))))
}

/// Writes a report to standard output: text, or JSON. What a terminal would obey is escaped.
pub fn print_text(text: impl AsRef<str>) -> anyhow::Result<()> {
    print(Paint::of(&io::stdout()).escaped(&without_credentials(text.as_ref())).as_bytes())
}

/// Writes data to standard output, byte for byte.
pub fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()).context(CANNOT_PRINT)
}

/// Returns the width of the terminal that standard output goes to, in characters; `None` if it goes elsewhere.
pub fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout))?.ok()?;
    // A terminal that does not know its width says 0.
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Returns a line in which the line breaks of names are escaped, so that no name begins a line. A line of ours goes on below with
/// two spaces, or with `* ` for an item.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    let goes_on = |part: &str| part.is_empty() || part.starts_with("  ") || part.starts_with("* ");
    let mut parts = text.split('\n');
    let first = parts.next().unwrap_or_default().to_owned();
    Cow::Owned(parts.fold(first, |line, part| line + if goes_on(part) { "\n" } else { "\\u000a" } + part))
}

/// True if summaries and progress are left out. Like the colours, it holds for the whole program.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves out summaries and progress from now on.
pub fn leave_out_summaries() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Returns true if summaries and progress are left out.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Writes what a command has done to standard error, unless summaries are left out.
pub fn summary(text: impl Display) {
    if !is_quiet() {
        note(text);
    }
}

/// Writes a line to standard error. Ignores a failure: no stream is left to report it to.
pub fn note(text: impl Display) {
    let text = text.to_string();
    let text = without_credentials(&text);
    let _ = writeln!(io::stderr().lock(), "{}", Paint::of(&io::stderr()).escaped(&line(&text)));
}

/// Writes a warning to standard error.
pub fn warn(text: impl Display) {
    note(format_args!("{} {text}", Paint::of(&io::stderr()).warning("Warning:")));
}

/// Writes a note about the result to standard error.
pub fn hint(text: impl Display) {
    note(format_args!("{} {text}", Paint::of(&io::stderr()).faint("Note:")));
}

/// Writes an error to standard error.
pub fn error(text: impl Display) {
    note(format_args!("{} {text}", Paint::of(&io::stderr()).error("error:")));
}

/// Several problems, each on a line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Lines(pub Vec<String>);

/// Prints why a command failed to standard error.
pub fn report(failure: &anyhow::Error) {
    match failure.downcast_ref::<Lines>().and_then(|Lines(lines)| lines.split_first()) {
        Some((first, others)) => {
            error(first);
            others.iter().for_each(note);
        }
        None => error(with_causes(&**failure)),
    }
}

/// Prints help or the version.
pub fn print_help(help: &clap::Error) -> anyhow::Result<()> {
    let mut stdout = AutoStream::auto(io::stdout().lock());
    write!(stdout, "{}", help.render().ansi()).and_then(|()| stdout.flush()).context(CANNOT_PRINT)
}

/// Prints why the arguments are wrong. An argument may be the name of a stranger's file, which a shell has put there for `*`.
pub fn report_usage(error: &clap::Error) {
    let mut styled = without_credentials(&error.render().ansi().to_string()).into_owned();
    for argument in std::env::args_os().filter_map(|argument| argument.into_string().ok()) {
        for part in argument.split('\n').skip(1).filter(|part| !part.is_empty()) {
            styled = styled.replace(&format!("\n{part}"), &format!("\\u000a{part}"));
        }
    }
    // No stream is left to report a failure to, as in `note`.
    let _ = write!(AutoStream::auto(io::stderr().lock()), "{}", escaped(&styled, style_length));
}

/// Returns true if an error only means that the reader of standard output has closed the pipe.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Colours text for a stream that shows colours: a terminal, unless `NO_COLOR` (<https://no-color.org>), `CLICOLOR=0` or
/// `TERM=dumb` is set.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    pub fn of(stream: &impl RawStream) -> Self {
        Self { on: AutoStream::choice(stream) != ColorChoice::Never }
    }

    pub fn plain() -> Self {
        Self { on: false }
    }

    pub fn is_on(self) -> bool {
        self.on
    }

    pub fn error(self, text: &str) -> String {
        self.wrap(ERROR, text)
    }

    pub fn warning(self, text: &str) -> String {
        self.wrap(WARNING, text)
    }

    pub fn strong(self, text: &str) -> String {
        self.wrap(STRONG, text)
    }

    pub fn faint(self, text: &str) -> String {
        self.wrap(FAINT, text)
    }

    pub fn added(self, text: &str) -> String {
        self.wrap(ADDED, text)
    }

    pub fn removed(self, text: &str) -> String {
        self.wrap(REMOVED, text)
    }

    /// Escapes everything that a terminal would obey, but for the styles above if they are shown.
    fn escaped(self, text: &str) -> Cow<'_, str> {
        escaped(text, |rest| style_length(rest).filter(|_| self.on))
    }

    fn wrap(self, style: Style, text: &str) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Returns the length of the style above that a text begins with.
fn style_length(text: &str) -> Option<usize> {
    // Each before those that it begins with.
    const OWN: [Style; 8] = [ERROR, WARNING, GOOD, FAINT, ADDED, REMOVED, HEADING, STRONG];
    let own = OWN.iter().flat_map(|style| [style.render().to_string(), style.render_reset().to_string()]);
    own.into_iter().find(|sequence| text.starts_with(sequence)).map(|sequence| sequence.len())
}
