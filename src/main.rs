//! The binary: parses the arguments, runs the command, and maps what came of it to an exit code.

use kube_unions::cli::{self, Cli};
use std::process::ExitCode;

/// Usage, input that cannot be read, I/O. What was understood and is rejected is 1, see [`cli::Verdict`].
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::from_arguments(std::env::args_os()) {
        Ok(cli) => cli,
        // Help and version come as errors too: clap prints each to the right stream and knows the code, 0 or 2.
        Err(error) => error.exit(),
    };
    match cli.run() {
        Ok(code) => code,
        // Whoever read standard output has seen enough, as in `kube-unions explain … | head`.
        Err(error) if cli::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            cli::report(&error);
            ExitCode::from(FAILED)
        }
    }
}
