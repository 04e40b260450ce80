//! `--watch`: runs the tests again when a file changes.
//!
//! A folder is watched before its files are read for the report, so no change is lost: if a run names folders that are not
//! watched yet, they are watched, and the tests run again before anything is printed.

mod folders;

use self::folders::Folders;
use super::arguments::TestArgs;
use super::report::TestsFormat;
use super::run::SuitesRun;
use crate::cli::report::exit::FAILED;
use crate::cli::report::output::{self, Paint};
use anyhow::{Context, bail};
use notify_debouncer_full::notify::event::ModifyKind;
use notify_debouncer_full::notify::{self, EventKind, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, DebouncedEvent, Debouncer, NoCache, new_debouncer_opt};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// The time without an event after which a change is complete. Editors write a file in several steps.
const SETTLED: Duration = Duration::from_millis(100);

/// Most rounds in which a run names folders that are not watched yet. Files that change all the time could add more.
const MOST_ROUNDS: usize = 16;

/// An event that ends the wait after a run.
enum Wake {
    Changed(Vec<DebouncedEvent>),
    /// Changes may have been lost.
    Lost(notify::Error),
    Interrupted,
}

/// Runs the tests until SIGINT or SIGTERM. Returns the exit code of the last run.
pub(super) fn run(arguments: &TestArgs) -> anyhow::Result<ExitCode> {
    if arguments.output != TestsFormat::Text {
        bail!("--watch prints text: leave out --output");
    }
    if arguments.paths.iter().any(|path| path == Path::new("-")) {
        bail!("--watch needs files: standard input cannot be read again");
    }
    let (sender, wakes) = mpsc::channel();
    end_on_signals(sender.clone())?;
    let mut files = FileWatch::new(sender)?;
    loop {
        let code = match arguments.conclude(&files.run(arguments)?) {
            Ok(verdict) => verdict.into(),
            Err(error) if output::is_closed_pipe(&error) => return Err(error),
            Err(error) => {
                output::report(&error);
                ExitCode::from(FAILED)
            }
        };
        output::note(Paint::of(&std::io::stderr()).faint("watching for changes, Ctrl+C ends"));
        match files.next_change(&wakes) {
            Some(changed) => output::note(format_args!("\n--- changed: {changed} ---")),
            None => return Ok(code),
        }
    }
}

/// Wakes the program at the first signal, and ends it at the second.
fn end_on_signals(wakes: Sender<Wake>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for signals")?;
    thread::spawn(move || {
        let mut asked = false;
        for _ in signals.forever() {
            if asked || wakes.send(Wake::Interrupted).is_err() {
                std::process::exit(FAILED.into());
            }
            asked = true;
        }
    });
    Ok(())
}

/// Watches the folders of the tests.
struct FileWatch {
    watcher: Debouncer<RecommendedWatcher, NoCache>,
    folders: Folders,
}

impl FileWatch {
    fn new(wakes: Sender<Wake>) -> anyhow::Result<Self> {
        let handler = move |result: DebounceEventResult| {
            let wake = match result {
                Ok(events) => Wake::Changed(events),
                Err(errors) => match errors.into_iter().next() {
                    Some(error) => Wake::Lost(error),
                    None => return,
                },
            };
            // The program ends if nobody receives.
            let _ = wakes.send(wake);
        };
        let watcher = new_debouncer_opt(SETTLED, None, handler, NoCache::new(), notify::Config::default())
            .context("cannot watch files")?;
        Ok(Self { watcher, folders: Folders::default() })
    }

    /// Runs the tests. Every folder that they read from was watched before.
    fn run(&mut self, arguments: &TestArgs) -> anyhow::Result<SuitesRun> {
        self.watch(&arguments.paths)?;
        let mut run = arguments.tested();
        for _ in 0..MOST_ROUNDS {
            let inputs: Vec<PathBuf> = arguments.paths.iter().chain(&run.inputs).cloned().collect();
            if !self.watch(&inputs)? {
                break;
            }
            run = arguments.tested();
        }
        Ok(run)
    }

    /// Watches the folders of some files and folders, and no others. Returns true if one was not watched before.
    fn watch(&mut self, inputs: &[PathBuf]) -> anyhow::Result<bool> {
        let wanted = Folders::of(inputs);
        for folder in self.folders.not_in(&wanted) {
            // A folder that was deleted is not watched any more.
            let _ = self.watcher.unwatch(folder);
        }
        let mut added = false;
        for folder in wanted.not_in(&self.folders) {
            added = true;
            match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // It was deleted in between. The next round sees that.
                Err(_) if !folder.is_dir() => {}
                Err(error) => return Err(error).with_context(|| format!("cannot watch `{}`", folder.display())),
            }
        }
        self.folders = wanted;
        Ok(added)
    }

    /// Waits for a change, and returns the name of a changed file. `None` after a signal.
    fn next_change(&mut self, wakes: &Receiver<Wake>) -> Option<String> {
        loop {
            match wakes.recv() {
                Ok(Wake::Changed(events)) => {
                    if events.iter().any(|event| event.need_rescan()) {
                        return Some("unknown (too many changes at once)".to_owned());
                    }
                    self.forget_replaced(&events);
                    // The program itself opens the files.
                    let mut paths = events.iter().filter(|event| !event.kind.is_access()).flat_map(|it| &it.paths);
                    if let Some(path) = paths.find(|path| self.folders.may_change_a_result(path)) {
                        return Some(shown(path));
                    }
                }
                Ok(Wake::Lost(error)) => return Some(format!("unknown ({error})")),
                Ok(Wake::Interrupted) | Err(mpsc::RecvError) => return None,
            }
        }
    }

    /// Forgets folders that were deleted, created or renamed. A new folder of the same name has to be watched anew.
    fn forget_replaced(&mut self, events: &[DebouncedEvent]) {
        let replaced = |event: &&DebouncedEvent| {
            matches!(event.kind, EventKind::Remove(_) | EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)))
        };
        for path in events.iter().filter(replaced).flat_map(|event| &event.paths) {
            for folder in self.folders.forget(path) {
                let _ = self.watcher.unwatch(folder);
            }
        }
    }
}

/// Returns a path as seen from the working folder.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}
