//! The requests and events of a run, line by line, and their hash. A seed has one trace.

use parking_lot::Mutex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use tokio::time::Instant;

/// The lines of a run.
pub struct Trace {
    began: Instant,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    hasher: DefaultHasher,
    count: usize,
    kept: Option<Vec<String>>,
}

impl Trace {
    /// Returns an empty trace that begins now. `keep`: the lines are kept, and not only hashed.
    pub fn new(keep: bool) -> Self {
        let lines = Lines { kept: keep.then(Vec::new), ..Lines::default() };
        Self { began: Instant::now(), lines: Mutex::new(lines) }
    }

    /// Returns the time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Adds a line.
    pub fn note(&self, what: impl AsRef<str>) {
        let line = format!("{:>9.3} {}", self.elapsed().as_secs_f64(), what.as_ref());
        let mut lines = self.lines.lock();
        line.hash(&mut lines.hasher);
        lines.count += 1;
        if let Some(kept) = &mut lines.kept {
            kept.push(line);
        }
    }

    /// Returns the hash of all lines.
    pub fn hash(&self) -> u64 {
        self.lines.lock().hasher.finish()
    }

    /// Takes the lines that were kept.
    pub fn take(&self) -> Vec<String> {
        self.lines.lock().kept.take().unwrap_or_default()
    }
}
