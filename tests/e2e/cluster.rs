//! The cluster that most tests share: one control plane and one webhook a test process.

use std::env;
use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::control_plane::ControlPlane;
use crate::kind::Kind;
use crate::webhook::{self, Webhook};

/// The CRD of `UnionDeclaration`.
const DECLARATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/webhook/crd.yaml");

/// A control plane, and a webhook that watches it.
pub(crate) struct Cluster {
    // The webhook first, so that it is dropped first.
    pub(crate) webhook: Webhook,
    pub(crate) control_plane: ControlPlane,
    kinds: AtomicUsize,
}

impl Cluster {
    /// The cluster of this process, started by the first test that asks. None when the user left these tests out.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Result<Cluster, String>> = OnceLock::new();
        if is_left_out() {
            return None;
        }
        match SHARED.get_or_init(Self::try_start) {
            Ok(cluster) => Some(cluster),
            Err(message) => panic!("{message}"),
        }
    }

    /// A cluster for one test alone, which may stop and restart its parts.
    pub(crate) fn own() -> Option<Self> {
        if is_left_out() {
            return None;
        }
        Some(Self::try_start().unwrap_or_else(|message| panic!("{message}")))
    }

    fn try_start() -> Result<Self, String> {
        webhook::binary()?;
        let control_plane = ControlPlane::start()?;
        control_plane.kubectl("setup").run(&["apply", "-f", DECLARATIONS]).accepted();
        let webhook = Webhook::of_cluster(&control_plane.webhook_kubeconfig(), &[])?;
        Ok(Self { webhook, control_plane, kinds: AtomicUsize::new(0) })
    }

    /// An API group that no other test uses.
    pub(crate) fn new_group(&self) -> String {
        format!("t{}.samples.example", self.kinds.fetch_add(1, Ordering::Relaxed))
    }

    /// A kind like the one of a sample's folder, in a group of its own, declared by annotation and enforced.
    pub(crate) fn install(&self, sample: &str) -> Kind<'_> {
        let kind = Kind::new(self, sample);
        kind.apply_definition();
        kind.register(&self.webhook);
        kind
    }
}

/// Whether `KUBE_UNIONS_E2E=skip`; says so, past the capture of the test harness.
pub(crate) fn is_left_out() -> bool {
    let skip = env::var("KUBE_UNIONS_E2E").is_ok_and(|value| value == "skip");
    if skip {
        let thread = thread::current();
        let line = format!("skipped, since KUBE_UNIONS_E2E=skip: {}\n", thread.name().unwrap_or("a test"));
        let _ = io::stderr().write_all(line.as_bytes());
    }
    skip
}
