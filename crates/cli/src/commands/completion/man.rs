//! `completion man`: writes the manual pages, one for each command, for packages of the program.
//!
//! The text after the help of a command becomes the sections that manual pages have: EXIT STATUS, EXAMPLES, and NOTES for the
//! rest.

use crate::report::Verdict;
use anyhow::Context;
use clap::{Args, Command, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use kube_unions_command::files::StagedFile;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory to write to. It is created if it does not exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

/// Writes the pages of `program` and of its commands.
pub(in crate::commands) fn run(arguments: &ManArgs, program: Command) -> anyhow::Result<Verdict> {
    let directory = &arguments.directory;
    let mut command = program.disable_help_subcommand(true);
    command.build();
    fs::create_dir_all(directory)
        .and_then(|()| stage(&command, directory))
        .and_then(|pages| pages.into_iter().try_for_each(StagedFile::persist))
        .with_context(|| format!("cannot write the manual pages to `{}`", directory.display()))?;
    Ok(Verdict::Accepted)
}

/// Stages the pages of a command and of the commands below it.
fn stage(command: &Command, directory: &Path) -> io::Result<Vec<StagedFile>> {
    let mut pages = Vec::new();
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages.extend(stage(inner, directory)?);
    }
    let page = Man::new(command.clone());
    pages.push(StagedFile::of_output(&directory.join(page.get_filename()), &rendered(&page, command)?)?);
    Ok(pages)
}

fn rendered(page: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // A line of its own: the library leaves out an empty date, so that the version would take its place.
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_uppercase();
    let name = env!("CARGO_PKG_NAME");
    writeln!(text, ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '")?;
    writeln!(text, ".TH \"{title}\" \"1\" \"\" \"{name} {}\" \"{name}\"", env!("CARGO_PKG_VERSION"))?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        page.render_subcommands_section(&mut text)?;
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    let (mut notes, mut sections) = (String::new(), Vec::new());
    for paragraph in after.split("\n\n") {
        match paragraph.split_once('\n') {
            Some(("Exit codes:", codes)) => sections.push(("EXIT STATUS", codes)),
            Some(("Example:" | "Examples:", examples)) => sections.push(("EXAMPLES", examples)),
            _ => notes = [&notes, paragraph, "\n\n"].concat(),
        }
    }
    if !notes.trim().is_empty() {
        sections.insert(0, ("NOTES", notes.trim_end()));
    }
    for (heading, lines) in sections {
        let mut roff = Roff::default();
        roff.control("SH", [heading]);
        // Indented lines stay as they are, the others are filled.
        for line in lines.lines() {
            if line.is_empty() {
                roff.control("PP", []);
            } else {
                roff.text([roman(line)]);
            }
        }
        roff.to_writer(&mut text)?;
    }
    Ok(text)
}
