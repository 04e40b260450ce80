//! The checks behind `/readyz`.
//!
//! Each check asks the part that it is about. None depends on time alone.

use super::certificate::CertificateReloader;
use super::config::{CatalogEvidence, Clock, Config};
use super::reviews::Reviews;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The parts that must be ready.
#[derive(Clone)]
pub(super) struct Readiness {
    listening: Arc<AtomicBool>,
    stopping: Arc<AtomicBool>,
    certificate: Arc<CertificateReloader>,
    reviews: Arc<Reviews>,
    clock: Clock,
    evidence: Option<CatalogEvidence>,
}

/// The name of a check, its result, and a note about either. `Err` says what is missing.
type Check = (&'static str, Result<(), Cow<'static, str>>, Option<String>);

impl Readiness {
    /// Returns the checks of a server that does not listen yet.
    pub(super) fn new(certificate: Arc<CertificateReloader>, reviews: Arc<Reviews>, config: &Config) -> Self {
        let (clock, evidence) = (config.clock.clone(), config.evidence.clone());
        Self { listening: Arc::default(), stopping: Arc::default(), certificate, reviews, clock, evidence }
    }

    /// Records that the server accepts connections.
    pub(super) fn listen(&self) {
        self.listening.store(true, Ordering::Relaxed);
    }

    /// Makes the server unready for good.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Runs all checks.
    pub(super) fn report(&self) -> ReadinessReport {
        let check = |passed: bool, failure| if passed { Ok(()) } else { Err(Cow::Borrowed(failure)) };
        let evidence = self.evidence.as_ref().map(|evidence| evidence());
        let checks = [
            ("listening", check(self.listening.load(Ordering::Relaxed), "not accepting connections yet"), None),
            ("certificate", self.certificate.check(), self.certificate.failure()),
            ("clock", (self.clock.fault)().map_or(Ok(()), |fault| Err(Cow::Owned(fault))), None),
            ("catalog", check(self.reviews.has_catalog(), "the first list of definitions is not complete"), evidence),
            ("shutdown", check(!self.stopping.load(Ordering::Relaxed), "shutting down"), None),
        ];
        ReadinessReport { checks }
    }
}

/// The results of all checks, in a fixed order. Displays like the API server's own `/readyz?verbose`.
#[derive(Debug)]
pub(super) struct ReadinessReport {
    checks: [Check; 5],
}

impl ReadinessReport {
    /// Returns true if all checks passed.
    pub(super) fn is_ready(&self) -> bool {
        self.checks.iter().all(|(_, check, _)| check.is_ok())
    }
}

impl fmt::Display for ReadinessReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, check, note) in &self.checks {
            match check {
                Ok(()) => write!(out, "[+]{name} ok")?,
                Err(reason) => write!(out, "[-]{name} failed: {reason}")?,
            }
            match note {
                Some(note) => writeln!(out, ": {note}")?,
                None => writeln!(out)?,
            }
        }
        out.write_str(if self.is_ready() { "readyz check passed\n" } else { "readyz check failed\n" })
    }
}
