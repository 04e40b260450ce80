//! Notices that something in a folder has changed.
//!
//! The folder itself is watched: what a kubelet does to a mounted Secret is to put another link in the place of `..data`,
//! and a watch on a file behind that link would go deaf. It is a help and not relied on: whoever waits looks now and then
//! as well, for systems, and file systems, that have no such notice to give.

use std::path::Path;

#[cfg(target_os = "linux")]
pub(super) use linux::Wake;
#[cfg(not(target_os = "linux"))]
pub(super) use nowhere::Wake;

impl Wake {
    /// Of what is in `folder`.
    pub(super) fn of(folder: &Path) -> Self {
        let this = Self::new();
        this.renew(folder);
        this
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use rustix::io::Errno;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::Arc;
    use tokio::io::unix::AsyncFd;

    /// Clones wait for the same changes.
    #[derive(Clone)]
    pub(in super::super) struct Wake {
        inotify: Option<Arc<AsyncFd<OwnedFd>>>,
    }

    impl Wake {
        pub(super) fn new() -> Self {
            let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(std::io::Error::from);
            match inotify.and_then(watched) {
                Ok(inotify) => Self { inotify: Some(Arc::new(inotify)) },
                Err(error) => {
                    tracing::info!(%error, "changes of the certificate's folder are not noticed at once");
                    Self { inotify: None }
                }
            }
        }

        /// Another folder may have taken the place of the one that is watched. The same twice is watched once.
        pub(in super::super) fn renew(&self, folder: &Path) {
            const CHANGES: WatchFlags =
                WatchFlags::CREATE.union(WatchFlags::MOVED_TO).union(WatchFlags::CLOSE_WRITE).union(WatchFlags::DELETE);
            if let Some(inotify) = &self.inotify {
                // One that is missing is found missing by whoever reads it.
                inotify::add_watch(inotify.get_ref(), folder, CHANGES).ok();
            }
        }

        /// Resolves after a change; never where there is no notice to be had.
        pub(in super::super) async fn changed(&self) {
            let Some(inotify) = &self.inotify else { return std::future::pending().await };
            let Ok(mut ready) = inotify.readable().await else { return std::future::pending().await };
            let mut events = [0; 4096];
            loop {
                match rustix::io::read(inotify.get_ref(), &mut events) {
                    Ok(read) if read > 0 => {}
                    Err(Errno::INTR) => {}
                    Ok(_) | Err(_) => break,
                }
            }
            ready.clear_ready();
        }
    }

    #[allow(
        deprecated,
        reason = "it asks more of types that could close their descriptor early, which this one cannot"
    )]
    fn watched(inotify: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::new(inotify)
    }
}

#[cfg(not(target_os = "linux"))]
mod nowhere {
    use std::path::Path;

    #[derive(Clone)]
    pub(in super::super) struct Wake;

    impl Wake {
        pub(super) fn new() -> Self {
            Self
        }

        pub(in super::super) fn renew(&self, _folder: &Path) {}

        pub(in super::super) async fn changed(&self) {
            std::future::pending().await
        }
    }
}
