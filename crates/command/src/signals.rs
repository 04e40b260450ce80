//! The signals that stop a command: SIGINT and SIGTERM.

use crate::exit::FAILED;
use anyhow::{Context, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

const CANNOT_LISTEN: &str = "cannot listen for signals";

const SIGINT_NAME: &str = "SIGINT";

/// The signals, for tasks that wait for them.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub fn new() -> anyhow::Result<Self> {
        let terminate = signal(SignalKind::terminate()).context(CANNOT_LISTEN)?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt()).context(CANNOT_LISTEN)? })
    }

    /// Waits for the next signal and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => SIGINT_NAME,
        }
    }
}

/// Waits for work that starts processes of its own. A signal drops the work, and with it those processes, and then ends this process as
/// without a handler; so does a signal after the work. For commands that handle no signals themselves.
pub async fn ended_by_signals<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let mut signals = StopSignals::new()?;
    let is_done = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&is_done)).context(CANNOT_LISTEN)?;
    }
    let interrupted = tokio::select! {
        done = work => {
            is_done.store(true, Ordering::Relaxed);
            return Ok(done);
        }
        name = signals.next() => name,
    };
    let signal = if interrupted == SIGINT_NAME { SIGINT } else { SIGTERM };
    emulate_default_handler(signal).context("interrupted")?;
    bail!("interrupted by {interrupted}")
}

/// A flag that the first signal sets, for work that looks at it between two items. The second signal ends the process.
#[derive(Debug)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Installs the signal handlers.
    pub fn new() -> anyhow::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in this order: the shutdown must see the flag before this signal sets it.
            flag::register_conditional_shutdown(signal, FAILED.into(), Arc::clone(&asked))
                .and_then(|_| flag::register(signal, Arc::clone(&asked)))
                .context(CANNOT_LISTEN)?;
        }
        Ok(Self(asked))
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
