//! `docs/reference/flags.md`: every command with its flags.

use super::{assert_page, code, table};
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use kube_unions::Cli;

const INTRODUCTION: &str = "\
# Flags

Every command of `kube-unions` with its arguments and flags. This page is generated from the program: change the program and run
`make reference`. The flag `--otlp-endpoint` needs the feature `otlp`, which the published image has.
";

#[test]
fn the_page_of_flags_is_up_to_date() {
    let mut command = Cli::command();
    command.build();
    let mut page = INTRODUCTION.to_owned();
    describe(&command, "kube-unions", &mut page);
    assert_page("flags.md", &page);
}

fn describe(command: &Command, name: &str, page: &mut String) {
    let is_leaf = command.get_subcommands().all(|it| it.is_hide_set() || it.get_name() == "help");
    if is_leaf {
        let about = command.get_about().map(one_line).unwrap_or_default();
        page.extend(["\n## ", name, "\n\n", &about, ".\n\n"]);
        let mut arguments: Vec<&Arg> = command.get_arguments().filter(|it| !it.is_hide_set()).collect();
        arguments.retain(|argument| !["help", "version"].contains(&argument.get_id().as_str()));
        if arguments.is_empty() {
            *page += "It has no flags.\n";
        } else {
            *page += &table(["flag", "default", "description"], arguments.into_iter().map(row));
        }
    }
    for subcommand in command.get_subcommands().filter(|it| it.get_name() != "help" && !it.is_hide_set()) {
        describe(subcommand, &format!("{name} {}", subcommand.get_name()), page);
    }
}

fn row(argument: &Arg) -> [String; 3] {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    let takes_value = argument.get_action().takes_values();
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let flag = if takes_value { format!("{names} {value}") } else { names };
    let shows_default = takes_value && !argument.is_hide_default_value_set();
    let default = argument.get_default_values().first().filter(|_| shows_default);
    let default = default.map(|it| code(&it.to_string_lossy())).unwrap_or_default();
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(one_line).unwrap_or_default();
    let values = argument.get_possible_values();
    let choices: Vec<String> = values
        .iter()
        .filter(|choice| takes_value && !choice.is_hide_set() && !["true", "false"].contains(&choice.get_name()))
        .map(|choice| match choice.get_help() {
            Some(help) => format!("{} ({})", code(choice.get_name()), one_line(help)),
            None => code(choice.get_name()),
        })
        .collect();
    let choices = if choices.is_empty() { String::new() } else { format!(". One of {}", choices.join(", ")) };
    [code(flag.trim()), default, format!("{help}{choices}")]
}

fn one_line(text: &StyledStr) -> String {
    let text = text.to_string();
    let paragraphs = text.split("\n\n").map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.map(|it| it.trim_end_matches('.').to_owned()).collect::<Vec<_>>().join(". ")
}
