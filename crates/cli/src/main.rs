//! The binary: parses the arguments, runs the command, and returns its exit code.

use kube_unions::{Cli, exit_code, usage_code};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::from_arguments(std::env::args_os()) {
        Ok(cli) => exit_code(cli.run()),
        // clap reports help and version as errors, too.
        Err(error) => usage_code(&error),
    }
}
