//! The patch that the user gives: `--patch` and `--patch-file`, as in kubectl.

use super::input::PatchInput;
use anyhow::bail;
use clap::Args;
use std::path::{Path, PathBuf};

/// The flags of the patch. Exactly one is given.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ChangeArgs {
    /// The patch, as JSON or YAML
    #[arg(short, long, value_name = "PATCH")]
    patch: Option<String>,
    /// A file with the patch; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    patch_file: Option<PathBuf>,
}

impl ChangeArgs {
    /// Reads the patch, which must not be absent.
    pub(super) fn read(&self) -> anyhow::Result<PatchInput> {
        let patch = match (&self.patch, &self.patch_file) {
            (Some(text), _) if Path::new(text).is_file() => {
                bail!("--patch takes the patch itself, and `{text}` is a file: give --patch-file {text}")
            }
            (Some(text), _) => PatchInput::of(Path::new("--patch"), text.clone().into_bytes())?,
            (None, Some(file)) => PatchInput::read(file)?,
            (None, None) => bail!("give --patch or --patch-file"),
        };
        patch.present("patch")?;
        Ok(patch)
    }
}
