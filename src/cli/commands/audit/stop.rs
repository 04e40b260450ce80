//! Stops an audit on SIGINT or SIGTERM: the first signal takes effect between two objects, the second ends the process.

use crate::cli::report::exit::FAILED;
use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first signal sets.
#[derive(Debug)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Installs the signal handlers.
    pub(super) fn new() -> anyhow::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in this order: the shutdown must see the flag before this signal sets it.
            flag::register_conditional_shutdown(signal, FAILED.into(), Arc::clone(&asked))
                .and_then(|_| flag::register(signal, Arc::clone(&asked)))
                .context("cannot listen for signals")?;
        }
        Ok(Self(asked))
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
