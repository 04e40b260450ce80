//! Whether requests should be sent here: the checks behind `/readyz`.

use super::certificate::Certificate;
use super::reviews::Reviews;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// All that has to hold. Ready is never a matter of time alone: each check asks what it is about.
#[derive(Debug, Clone)]
pub(super) struct Readiness {
    listening: Arc<AtomicBool>,
    stopping: Arc<AtomicBool>,
    certificate: Arc<Certificate>,
    reviews: Arc<Reviews>,
}

/// One check and how it stands: `Err` says what is missing.
type Check = (&'static str, Result<(), Cow<'static, str>>);

impl Readiness {
    pub(super) fn new(certificate: Arc<Certificate>, reviews: Arc<Reviews>) -> Self {
        Self { listening: Arc::default(), stopping: Arc::default(), certificate, reviews }
    }

    /// Connections are accepted from now on.
    pub(super) fn listen(&self) {
        self.listening.store(true, Ordering::Relaxed);
    }

    /// Never ready again.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// How things stand now.
    pub(super) fn report(&self) -> Report {
        let hold = |holds: bool, otherwise| if holds { Ok(()) } else { Err(Cow::Borrowed(otherwise)) };
        Report([
            ("listening", hold(self.listening.load(Ordering::Relaxed), "not accepting connections yet")),
            ("certificate", self.certificate.check(SystemTime::now())),
            ("catalog", hold(self.reviews.has_catalog(), "the first list of definitions is not complete")),
            ("shutdown", hold(!self.stopping.load(Ordering::Relaxed), "shutting down")),
        ])
    }
}

/// Every check, in a fixed order. Displays as the API server's own `/readyz?verbose`.
#[derive(Debug)]
pub(super) struct Report([Check; 4]);

impl Report {
    pub(super) fn is_ready(&self) -> bool {
        self.0.iter().all(|(_, check)| check.is_ok())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, check) in &self.0 {
            match check {
                Ok(()) => writeln!(out, "[+]{name} ok")?,
                Err(reason) => writeln!(out, "[-]{name} failed: {reason}")?,
            }
        }
        out.write_str(if self.is_ready() { "readyz check passed\n" } else { "readyz check failed\n" })
    }
}
