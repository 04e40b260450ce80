//! Replicas whose clock is wrong: beside right ones, and before them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::balancer::Backend;
use crate::support::process::Workspace;
use crate::support::webhook::Webhook;
use fixtures::wait::{eventually, for_some};

use super::SETTLED;
use super::installation::{Installation, REPLICAS};
use super::rotation::secret;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The seconds by which the clocks are ahead.
const OFFSETS: [i64; 4] = [2 * HOUR, -2 * HOUR, 400 * DAY, -400 * DAY];

/// Moves the wall clock of a process, and leaves the monotonic one.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, now);
  const char *ahead = getenv("CLOCK_AHEAD");
  if (result == 0 && ahead && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += atoll(ahead);
  return result;
}
"#;

/// A library to preload.
pub(super) struct WrongClock {
    library: PathBuf,
    _workspace: Workspace,
}

impl WrongClock {
    pub(super) fn new() -> Self {
        let workspace = Workspace::new("clock");
        let (source, library) = (workspace.path().join("clock.c"), workspace.path().join("clock.so"));
        std::fs::write(&source, SHIM).expect("a file can be written");
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
        assert!(compiled.is_ok_and(|it| it.success()), "cc, with which Rust links, compiles the clock");
        Self { library, _workspace: workspace }
    }

    fn library(&self) -> &Path {
        &self.library
    }
}

impl Installation {
    /// Starts a replica for each wrong clock, in rotation as soon as it is ready. Waits until each says why it is not.
    pub(super) fn with_wrong_clocks(&self, clock: &WrongClock) -> Vec<Webhook> {
        let start = |ahead: i64| {
            let ahead = ahead.to_string();
            let library = clock.library().display().to_string();
            let envs = [("LD_PRELOAD", library), ("CLOCK_AHEAD", ahead)];
            let arguments = self.arguments(None);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let kubeconfig = self.control_plane.webhook_kubeconfig();
            let webhook = Webhook::unready_with(&kubeconfig, &arguments, &envs).expect("it starts");
            let backend = Backend { port: webhook.port(), ops_port: webhook.ops_port() };
            self.balancer.add(backend);
            webhook
        };
        let replicas: Vec<Webhook> = OFFSETS.map(start).into();
        for webhook in &replicas {
            let says_why = || {
                let report = webhook.ops().get("/readyz?verbose");
                report.is_ok_and(|it| {
                    it.status == 503 && it.text().contains("[-]clock failed: the clock of this machine")
                })
            };
            assert!(eventually(SETTLED, says_why), "{}", webhook.log());
        }
        replicas
    }

    /// Starts everything anew without the Secret: first the replicas with wrong clocks, which make it, then the right ones.
    /// Returns the wrong ones, and the Secret that they made.
    pub(super) fn begin_with_wrong_clocks(&mut self, clock: &WrongClock) -> (Vec<Webhook>, String) {
        for replica in 0..REPLICAS {
            assert!(self.stop(replica), "no valid run: the balancer was slower than the delay");
        }
        let deleted = self.control_plane.client().delete(&secret()).expect("the API server answers");
        assert!(deleted.is_success(), "{deleted:?}");
        let wrong = self.with_wrong_clocks(clock);
        let made = for_some(SETTLED, || self.agreed()).expect("the replicas with wrong clocks make a Secret");
        for replica in 0..REPLICAS {
            self.start(replica);
        }
        self.registration.wait_until_held(&made.authorities);
        self.registration.wait_until_in_force();
        (wrong, made.authorities)
    }

    /// Returns the CAs of the Secret.
    pub(super) fn agreed_authorities(&self) -> String {
        self.agreed().expect("the replicas have agreed on a Secret").authorities
    }
}
