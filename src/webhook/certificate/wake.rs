//! Wakes the reader of a directory when a file in it changes. Only Linux reports changes; elsewhere the reader polls.
//!
//! The directory itself is watched: a kubelet updates a mounted Secret by replacing the symbolic link `..data`, and a watch on
//! a file behind that link would report nothing afterwards. Readers poll besides, because network file systems and
//! exhausted inotify limits report no changes.

use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
#[cfg(target_os = "linux")]
use std::{os::fd::OwnedFd, sync::Arc};
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;

/// A watch on a directory. Clones share it.
#[derive(Clone)]
pub(super) struct DirectoryWake {
    pub(super) directory: PathBuf,
    #[cfg(target_os = "linux")]
    inotify: Option<Arc<AsyncFd<OwnedFd>>>,
}

#[cfg(target_os = "linux")]
impl DirectoryWake {
    pub(super) fn new(directory: &Path) -> Self {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(std::io::Error::from);
        let inotify = inotify.and_then(registered).inspect_err(|error| {
            tracing::info!(%error, "cannot watch the certificate's directory; it is polled");
        });
        let this = Self { directory: directory.to_owned(), inotify: inotify.ok().map(Arc::new) };
        this.renew();
        this
    }

    /// Watches the directory that is at this path now. To watch the same directory again changes nothing.
    pub(super) fn renew(&self) {
        const CHANGES: WatchFlags =
            WatchFlags::CREATE.union(WatchFlags::MOVED_TO).union(WatchFlags::CLOSE_WRITE).union(WatchFlags::DELETE);
        if let Some(inotify) = &self.inotify {
            // The reader reports a missing directory.
            inotify::add_watch(inotify.get_ref(), &self.directory, CHANGES).ok();
        }
    }

    /// Resolves after a change. Without a watch it never resolves.
    pub(super) async fn changed(&self) {
        let Some(inotify) = &self.inotify else { return std::future::pending().await };
        let Ok(mut ready) = inotify.readable().await else { return std::future::pending().await };
        let mut events = [0; 4096];
        loop {
            match rustix::io::read(inotify.get_ref(), &mut events) {
                Ok(read) if read > 0 => {}
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        ready.clear_ready();
    }
}

#[cfg(target_os = "linux")]
#[allow(
    deprecated,
    reason = "the replacement is for types that may close their descriptor early, which this one cannot"
)]
fn registered(inotify: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(inotify)
}

#[cfg(not(target_os = "linux"))]
impl DirectoryWake {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    pub(super) fn renew(&self) {}

    pub(super) async fn changed(&self) {
        std::future::pending().await
    }
}
