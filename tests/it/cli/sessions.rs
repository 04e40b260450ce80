//! Sessions in a shell: the pages of `sessions` have files, commands, and everything that the commands print.
//!
//! Each page has a folder, with the CRD of `widgets.yaml` as `crd.yaml`, or with the files of the folder `*.in` of its name. A code
//! block that begins with a language and a name is a file in it; if `from` and another name follow, it is that file with each old
//! text replaced by a new one. In a block of `console`, `bash` with GNU tools runs the text after `$ ` there, and a pipe fails with
//! any of its commands. The answer follows: the exit code after `? ` unless it is 0, standard output, and each line of standard
//! error after `! `. Each file `*.sarif` that the commands leave is held to the specification. `make reference` writes the answers.

use super::sarif::hold_to_the_specification;
use super::{Folder, binary, run};
use fixtures::files::{assert_generated, edited, files, parse, root};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::thread;

const SESSIONS: &str = "tests/it/cli/sessions";

/// The number of commands.
const COMMANDS: usize = 700;

/// Returns a page with the answers to its commands.
fn played(name: &str, page: &str) -> String {
    let (folder, mut played) = (Folder::with_crd(&[]), Vec::new());
    let files = root().join(SESSIONS).join(name).with_extension("in");
    if files.exists() {
        assert!(Command::new("cp").arg("-R").args([&files.join("."), folder.path()]).status().expect("cp").success());
    }
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        played.push(line.to_owned());
        let Some(title) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if title == "console" {
            for command in commands(&block) {
                played.push(format!("$ {command}"));
                played.extend(answer(&folder, &command));
            }
        } else {
            let (_, name) = title.split_once(' ').expect("a file has a name");
            let content = block.join("\n") + "\n";
            match name.split_once(" from ") {
                Some((name, from)) => {
                    let edits: BTreeMap<String, String> = parse(name, &content);
                    folder.write(name, edited(name, &folder.read(from), &edits));
                }
                None => folder.write(name, &content),
            }
            played.extend(block.iter().map(ToString::to_string));
        }
        played.push("```".to_owned());
    }
    for entry in fs::read_dir(folder.path()).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|found| found == "sarif") {
            hold_to_the_specification(&parse("a log", &fs::read_to_string(path).expect("a log")));
        }
    }
    played.join("\n") + "\n"
}

/// Returns the commands of a block. A line that ends with a backslash goes on in the next one.
fn commands(block: &[&str]) -> Vec<String> {
    let (mut commands, mut goes_on) = (Vec::<String>::new(), false);
    for line in block {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (_, Some(command)) if goes_on => command.extend(["\n", line]),
            (Some(command), _) => commands.push(command.to_owned()),
            (None, _) => continue,
        }
        goes_on = line.ends_with('\\');
    }
    commands
}

/// Returns the lines of the answer to a command.
fn answer(folder: &Folder, command: &str) -> Vec<String> {
    let (program, path) = (binary(), std::env::var("PATH").expect("a shell finds its programs"));
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", command]).current_dir(folder.path()).env("ROOT", root());
    shell.env("PATH", format!("{}:{path}", program.parent().expect("a folder").display()));
    let run = run(&mut shell, b"").says(&[]);
    let code = (run.code != 0).then(|| format!("? {}", run.code));
    let errors = run.stderr.lines().map(|line| format!("! {line}").trim_end().to_owned());
    let lines: Vec<String> = code.into_iter().chain(run.stdout.lines().map(str::to_owned)).chain(errors).collect();
    assert!(!lines.iter().any(|line| line.starts_with("$ ") || line.starts_with("```")), "{command}: {lines:#?}");
    lines
}

#[test]
fn each_session_is_answered_as_its_page_says() {
    let pages = files(SESSIONS, "md");
    let commands = pages.iter().flat_map(|(_, page)| page.lines()).filter(|line| line.starts_with("$ ")).count();
    assert!(commands >= COMMANDS, "{commands} commands");
    thread::scope(|scope| {
        let started: Vec<_> =
            pages.iter().map(|(name, page)| (name, page, scope.spawn(|| played(name, page)))).collect();
        for (name, page, played) in started {
            let played = played.join().expect("a page is played");
            if let Some((want, got)) = page.lines().zip(played.lines()).find(|(want, got)| want != got) {
                println!("{name}: the first line that differs is `{got}`, instead of `{want}`");
            }
            assert_generated(root().join(SESSIONS).join(name), &played, "make reference");
        }
    });
}
