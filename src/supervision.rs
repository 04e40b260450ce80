//! The tasks that run as long as the program. The first that ends or panics ends the program, so that the kubelet starts it
//! again: without its listeners, its watches or its renewals it would look healthy and be none of that.
//!
//! Tasks of one connection or one review are not here. They end with what they serve.

use std::collections::HashMap;
use std::future::pending;
use tokio::task::{Id, JoinSet};

/// A task that runs as long as the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServeTask {
    /// Accepts connections for reviews.
    WebhookListener,
    /// Accepts connections for health and metrics.
    OpsListener,
    /// Puts each catalog in force.
    Catalogs,
    /// Reloads the certificate.
    Certificate,
    /// Keeps the certificate that replicas share.
    SharedCertificate,
    /// Follows CRDs and declarations.
    Watch,
    /// Keeps the webhook configurations in sync.
    Registration,
    /// Keeps the policies in sync.
    Policies,
}

/// A task has ended before the program was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the task {} {}: start the webhook again", .task.name(), if *.panicked { "panicked, see above" } else { "ended" })]
pub struct TaskEnded {
    task: ServeTask,
    panicked: bool,
}

/// Running tasks. They are stopped when this is dropped.
#[derive(Debug, Default)]
pub struct Supervised {
    running: JoinSet<()>,
    tasks: HashMap<Id, ServeTask>,
}

impl ServeTask {
    /// Every task.
    pub const ALL: [Self; 8] = [
        Self::WebhookListener,
        Self::OpsListener,
        Self::Catalogs,
        Self::Certificate,
        Self::SharedCertificate,
        Self::Watch,
        Self::Registration,
        Self::Policies,
    ];

    /// Returns the name in messages, and in the variable that makes a task fail.
    pub fn name(self) -> &'static str {
        match self {
            Self::WebhookListener => "webhook-listener",
            Self::OpsListener => "ops-listener",
            Self::Catalogs => "catalogs",
            Self::Certificate => "certificate",
            Self::SharedCertificate => "shared-certificate",
            Self::Watch => "watch",
            Self::Registration => "registration",
            Self::Policies => "policies",
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> FromIterator<(ServeTask, F)> for Supervised {
    /// Starts each task.
    fn from_iter<T: IntoIterator<Item = (ServeTask, F)>>(tasks: T) -> Self {
        let mut this = Self::default();
        tasks.into_iter().for_each(|(task, run)| this.spawn(task, run));
        this
    }
}

impl Supervised {
    /// Starts a task.
    pub fn spawn(&mut self, task: ServeTask, run: impl Future<Output = ()> + Send + 'static) {
        let running = self.running.spawn(async move {
            tokio::select! {
                biased;
                () = fault(task) => {}
                () = run => {}
            }
        });
        self.tasks.insert(running.id(), task);
    }

    /// Waits for the first task that ends. Never resolves if there is none.
    pub async fn ended(&mut self) -> TaskEnded {
        let (id, panicked) = match self.running.join_next_with_id().await {
            Some(Ok((id, ()))) => (id, false),
            Some(Err(error)) => (error.id(), error.is_panic()),
            None => return pending().await,
        };
        match self.tasks.get(&id) {
            Some(task) => TaskEnded { task: *task, panicked },
            None => pending().await,
        }
    }

    /// Waits for all tasks, which end by themselves now. Returns an error if one panics.
    pub async fn finish(mut self) -> Result<(), TaskEnded> {
        while !self.running.is_empty() {
            let ended = self.ended().await;
            if ended.panicked {
                return Err(ended);
            }
        }
        Ok(())
    }

    /// Stops all tasks, and waits for their end.
    pub async fn stop(&mut self) {
        self.running.shutdown().await;
    }
}

/// The variable that names a task to fail, in builds with debug assertions. The task panics, or returns if `=return` follows.
const FAULT: &str = "KUBE_UNIONS_FAULT";

/// Makes the task fail that [`FAULT`] names. Never resolves for others.
#[expect(clippy::panic, reason = "a fault that tests ask for")]
async fn fault(task: ServeTask) {
    let asked = if cfg!(debug_assertions) { std::env::var(FAULT).ok() } else { None };
    match asked.as_deref().map(|asked| asked.split_once('=').unwrap_or((asked, "panic"))) {
        Some((name, "return")) if name == task.name() => {}
        Some((name, _)) if name == task.name() => panic!("the fault of a test"),
        Some(_) | None => pending().await,
    }
}
