//! The log of one replica.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tracing::{Dispatch, Level};

/// The lines at the level `INFO` and above.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(super) fn subscriber(&self) -> Dispatch {
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt().json().with_max_level(Level::INFO);
        Dispatch::new(subscriber.with_writer(move || writer.clone()).finish())
    }

    /// Returns the lines with this text.
    pub(super) fn lines(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|it| it.contains(part)).map(str::to_owned).collect()
    }

    /// Returns the lines at the level `WARN` and above.
    pub(super) fn warnings(&self) -> Vec<String> {
        [self.lines("\"level\":\"WARN\""), self.lines("\"level\":\"ERROR\"")].concat()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
