//! The commands of a page, and what the page shows as their output.
//!
//! A block `sh` is one step. The next block of the same section, if it is `text`, is its output; otherwise its commands have to succeed. In
//! a block `console` each `$ command` is a step, and the lines up to the next one are its output.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use super::exceptions::is_exception;
use super::shell::Shell;

pub(super) const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Commands that run in one shell.
#[derive(Debug)]
pub(super) struct Step {
    /// The page and the line of the block.
    pub(super) place: String,
    pub(super) commands: String,
    /// What the page shows. `None`: the commands have to succeed.
    pub(super) prints: Option<String>,
}

/// The steps of a page that have not been followed.
pub(crate) struct Page {
    path: String,
    text: String,
    steps: VecDeque<Step>,
}

impl Page {
    pub(crate) fn open(path: &str) -> Self {
        let text = read(path);
        let steps = steps(path, &text).into_iter().filter_map(|step| without_exceptions(path, step)).collect();
        Self { path: path.to_owned(), text, steps }
    }

    /// Follows the rest of the page.
    pub(crate) fn follow(&mut self, shell: &Shell) {
        while let Some(step) = self.steps.pop_front() {
            shell.follow(&step);
        }
    }

    /// Follows the page up to the next step that contains `text`, and not that step.
    pub(super) fn follow_up_to(&mut self, text: &str, shell: &Shell) {
        while !self.next().commands.contains(text) {
            self.follow_next(shell);
        }
    }

    /// Follows the page up to the next step that contains `text`, if there is one, or else to the end.
    pub(crate) fn follow_before(&mut self, text: &str, shell: &Shell) {
        while self.steps.front().is_some_and(|step| !step.commands.contains(text)) {
            self.follow_next(shell);
        }
    }

    /// Follows the next step, which contains `text`.
    pub(super) fn follow_one(&mut self, text: &str, shell: &Shell) {
        assert!(self.next().commands.contains(text), "{text}: the next step is {:?}", self.next());
        self.follow_next(shell);
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns what the page shows as the output of each step that is left.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| step.prints.as_deref())
    }

    /// Returns the only block of another language that contains `text`.
    pub(super) fn block(&self, language: &str, text: &str) -> String {
        let blocks = blocks(&self.text).into_iter();
        let mut found = blocks.filter(|block| block.language == language && block.content().contains(text));
        let block = found.next().unwrap_or_else(|| panic!("{} has no block `{language}` with {text}", self.path));
        assert!(found.next().is_none(), "{} has two blocks `{language}` with {text}", self.path);
        block.content()
    }

    fn next(&self) -> &Step {
        self.steps.front().unwrap_or_else(|| panic!("{} has no more steps", self.path))
    }

    fn follow_next(&mut self, shell: &Shell) {
        let step = self.steps.pop_front().expect("it was looked at");
        shell.follow(&step);
    }

    /// Fails if a step is left.
    pub(super) fn assert_followed(&self) {
        assert!(self.steps.is_empty(), "not followed: {:#?}", self.steps);
    }
}

/// Returns the text of a page.
pub(super) fn read(path: &str) -> String {
    fs::read_to_string(Path::new(REPOSITORY).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A fenced block of a page.
struct Block<'p> {
    line: usize,
    /// The number of headings before it.
    section: usize,
    language: &'p str,
    lines: Vec<&'p str>,
}

impl Block<'_> {
    fn content(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

/// Returns the fenced blocks of a page, without their indentation.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut section = 0;
    let mut lines = text.lines().zip(1..);
    while let Some((fence, line)) = lines.next() {
        section += usize::from(fence.starts_with('#'));
        let Some(language) = fence.trim_start().strip_prefix("```") else { continue };
        let indentation = fence.len() - fence.trim_start().len();
        let block = lines.by_ref().map(|(line, _)| line.get(indentation..).unwrap_or_default());
        blocks.push(Block { line, section, language, lines: block.take_while(|line| *line != "```").collect() });
    }
    blocks
}

/// Returns the steps of a page, with those that no test can run.
pub(super) fn steps(path: &str, text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut last = (0, "");
    for block in blocks(text) {
        let place = format!("{path}:{}", block.line);
        match block.language {
            "sh" => steps.push(Step { place, commands: block.content(), prints: None }),
            "console" => steps.extend(typed(&place, &block.lines)),
            "text" if last == (block.section, "sh") => {
                if let Some(step) = steps.last_mut() {
                    step.prints = Some(block.content());
                }
            }
            // Something to read.
            _ => {}
        }
        last = (block.section, block.language);
    }
    steps
}

/// Returns the steps of a block `console`.
fn typed(place: &str, lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_continued = false;
    for line in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            let (place, commands) = (place.to_owned(), format!("{command}\n"));
            steps.push(Step { place, commands, prints: Some(String::new()) });
            is_continued = command.ends_with('\\');
            continue;
        }
        let step = steps.last_mut().unwrap_or_else(|| panic!("{place}: the first line is no command: write `text`"));
        let text = if is_continued { &mut step.commands } else { step.prints.get_or_insert_default() };
        text.push_str(line);
        text.push('\n');
        is_continued = is_continued && line.ends_with('\\');
    }
    steps
}

/// Returns the commands of a step, one per line of the page that is not continued from the line before.
pub(super) fn commands(step: &Step) -> Vec<String> {
    let lines = step.commands.replace("\\\n", " ");
    let words =
        |line: &str| line.split(" #").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    lines.lines().map(words).filter(|line| !line.is_empty()).collect()
}

/// Returns the step without the commands that no test can run. `None`: nothing is left.
fn without_exceptions(path: &str, mut step: Step) -> Option<Step> {
    let all = commands(&step);
    let kept: Vec<&str> = all.iter().map(String::as_str).filter(|command| !is_exception(path, command)).collect();
    if kept.len() < all.len() {
        step.commands = kept.join("\n") + "\n";
    }
    (!kept.is_empty()).then_some(step)
}
