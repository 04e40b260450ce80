//! The program: serves standard input and output until the input ends.

use std::io::{self, BufReader, ErrorKind, Write};
use std::process::ExitCode;
use strategic_merge_patch_stdio::serve;

/// A read of a large request from a pipe or from a host of WebAssembly is a system call, so make few of them.
const BUFFER: usize = 64 * 1024;

const USAGE: &str = "Usage: strategic-merge-patch

Reads JSON-RPC 2.0 requests from standard input, one a line, and writes one answer a line to standard output.
It ends when the input ends. For example:

  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"version\"}' | strategic-merge-patch

Options:
  -h, --help     Print this help
  -V, --version  Print the version
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let done = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => serve(BufReader::with_capacity(BUFFER, io::stdin().lock()), io::stdout().lock()),
        (Some("-h" | "--help"), None) => write!(io::stdout(), "{USAGE}"),
        (Some("-V" | "--version"), None) => {
            writeln!(io::stdout(), "strategic-merge-patch {}", env!("CARGO_PKG_VERSION"))
        }
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "it takes no arguments; see --help")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The client needs no more answers.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if standard error is closed, too.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
