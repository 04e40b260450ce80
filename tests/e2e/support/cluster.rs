//! The clusters under test. A test asks for the type of cluster that it needs.
//!
//! A [`Cluster`] controls the processes: the only webhook, its arguments, its log and its metrics, and an API server
//! that can be stopped.
//!
//! [`AnyCluster`] is an API server with *some* webhook that enforces unions: enough for everything that shows through the
//! API server. It is a [`Cluster`] that the tests share, or, when `KUBE_UNIONS_E2E_KUBECONFIG` names a kubeconfig, a cluster
//! that runs already and has the webhook installed as users have it: by the chart, registering itself. That cluster should be
//! thrown away afterwards: the tests leave kinds and objects behind. Tests that need a [`Cluster`] are then skipped and say
//! so.

use std::env;
use std::io::{self, Write as _};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::support::access::Access;
use crate::support::control_plane::ControlPlane;
use crate::support::kind::Kind;
use crate::support::lending::Lent;
use crate::support::process::Workspace;
use crate::support::webhook::{self, Endpoint, Webhook};

/// The CRD of `UnionDeclaration`.
pub(crate) const DECLARATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/webhook/crd.yaml");

/// The environment variable with the kubeconfig of a running cluster.
const KUBECONFIG: &str = "KUBE_UNIONS_E2E_KUBECONFIG";

/// The time after which every replica of an installed webhook has followed a change that one of them has followed.
const REPLICAS_AGREE: Duration = Duration::from_secs(1);

/// A control plane, and a webhook that watches it.
pub(crate) struct Cluster {
    // Fields are dropped in this order: the webhook first.
    pub(crate) webhook: Webhook,
    pub(crate) control_plane: Lent,
    any: AnyCluster,
}

/// A cluster that enforces unions, with all rights on it.
pub(crate) struct AnyCluster {
    access: Access,
    /// The webhook to register for each kind. `None`: it registers itself.
    by_hand: Option<Endpoint>,
    /// The suffix of the groups' names.
    groups: String,
    /// The folder of kubectl's caches, unless the control plane has one.
    _caches: Option<Workspace>,
}

impl Cluster {
    /// Returns the cluster of this process, which the first test starts. `None`: these tests are skipped.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: LazyLock<Cluster> = LazyLock::new(|| started(Cluster::try_start()));
        (!is_left_out()).then(|| &*SHARED)
    }

    /// Starts a cluster for one test alone, which may stop and restart its parts.
    pub(crate) fn own() -> Option<Self> {
        (!is_left_out()).then(|| started(Self::try_start()))
    }

    /// Starts a cluster for one test alone, whose webhook registers itself. `setup` may give it the rights.
    pub(crate) fn registering(setup: &str, more: &[&str]) -> Option<Self> {
        Self::registering_by(setup, more, ControlPlane::webhook_kubeconfig)
    }

    /// The same, whose webhook connects by another kubeconfig.
    pub(crate) fn registering_by(
        setup: &str,
        more: &[&str],
        kubeconfig: impl FnOnce(&ControlPlane) -> PathBuf,
    ) -> Option<Self> {
        let control_plane = Self::control_plane_alone()?;
        let kubectl = control_plane.kubectl("setup");
        kubectl.run(&["delete", "clusterrolebinding", "kube-unions-registration-under-test"]).accepted();
        kubectl.apply(setup).accepted();
        let webhook = started(Webhook::registering(&kubeconfig(&control_plane), more));
        let mut cluster = Self::new(webhook, control_plane);
        cluster.any.by_hand = None;
        Some(cluster)
    }

    /// A control plane for one test alone, and no webhook.
    pub(crate) fn control_plane_alone() -> Option<Lent> {
        (!is_left_out()).then(|| started(Self::control_plane()))
    }

    fn control_plane() -> Result<Lent, String> {
        webhook::binary()?;
        let control_plane = ControlPlane::with_rights()?;
        control_plane.kubectl("setup").run(&["apply", "-f", DECLARATIONS]).accepted();
        Ok(control_plane)
    }

    fn try_start() -> Result<Self, String> {
        let control_plane = Self::control_plane()?;
        let webhook = Webhook::of_cluster(&control_plane.webhook_kubeconfig(), &[])?;
        Ok(Self::new(webhook, control_plane))
    }

    fn new(webhook: Webhook, control_plane: Lent) -> Self {
        let by_hand = Some(webhook.endpoint());
        let any = AnyCluster { by_hand, ..AnyCluster::of_control_plane(&control_plane) };
        Self { webhook, control_plane, any }
    }
}

impl Deref for Cluster {
    type Target = AnyCluster;

    fn deref(&self) -> &AnyCluster {
        &self.any
    }
}

/// All rights on it.
impl Deref for AnyCluster {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

impl AnyCluster {
    /// Returns the cluster that tests share. The first test starts it or connects to it. `None`: these tests are skipped.
    pub(crate) fn shared() -> Option<&'static Self> {
        static RUNNING: LazyLock<AnyCluster> = LazyLock::new(|| {
            let kubeconfig = env::var_os(KUBECONFIG).expect("the variable was set before");
            started(AnyCluster::running(Path::new(&kubeconfig)))
        });
        if env::var_os(KUBECONFIG).is_none() {
            return Some(Cluster::shared()?);
        }
        (!is_skipped()).then(|| &*RUNNING)
    }

    /// Returns a control plane for one test alone, whose webhook registers itself.
    pub(crate) fn of_control_plane(control_plane: &ControlPlane) -> Self {
        let access = Access::clone(control_plane);
        Self { access, by_hand: None, groups: "samples.example".to_owned(), _caches: None }
    }

    /// A cluster that runs already, with the webhook installed.
    fn running(kubeconfig: &Path) -> Result<Self, String> {
        let cluster = Self::at(kubeconfig)?;
        let declarations = "/apis/kube-unions.dev/v1alpha1/uniondeclarations";
        let answer = cluster.client().get(declarations)?;
        if !answer.is_success() {
            return Err(format!("`{declarations}` answers {}: install the chart first", answer.status));
        }
        Ok(cluster)
    }

    /// A cluster that runs already, whose webhook registers itself once it is installed.
    pub(crate) fn at(kubeconfig: &Path) -> Result<Self, String> {
        webhook::binary()?;
        let caches = Workspace::new("cluster");
        let access = Access::of_kubeconfig(kubeconfig, caches.path().to_owned())?;
        // The suffix differs from that of an earlier run on the same cluster.
        let run = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let groups = format!("r{run}.samples.example");
        Ok(Self { access, by_hand: None, groups, _caches: Some(caches) })
    }

    /// An API group that no other test uses.
    pub(crate) fn new_group(&self) -> String {
        static GROUPS: AtomicUsize = AtomicUsize::new(0);
        format!("t{:04}.{}", GROUPS.fetch_add(1, Ordering::Relaxed), self.groups)
    }

    /// A kind like the one of a sample's folder, in a group of its own, declared by annotation and enforced.
    pub(crate) fn install(&self, sample: &str) -> Kind<'_> {
        let kind = Kind::new(self, sample);
        kind.apply_definition();
        kind.enforce();
        kind
    }

    /// Returns the webhook to register for a group's objects. `None`: it registers itself.
    pub(crate) fn registration(&self, group: &str) -> Option<Value> {
        self.by_hand.as_ref().map(|webhook| webhook.registration(group))
    }

    /// Returns how long a kind must have been enforced before every replica has followed.
    pub(crate) fn steady(&self) -> Duration {
        if self.by_hand.is_some() { Duration::ZERO } else { REPLICAS_AGREE }
    }
}

/// Returns what was started. Fails the test with the reason why it was not.
fn started<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|message| panic!("{message}"))
}

/// Returns true if no cluster is started here, and prints the reason.
pub(crate) fn is_left_out() -> bool {
    if is_skipped() {
        return true;
    }
    let elsewhere = env::var_os(KUBECONFIG).is_some();
    if elsewhere {
        say(&format!("left out, since {KUBECONFIG} names a cluster whose processes are not in hand"));
    }
    elsewhere
}

/// Returns true if `KUBE_UNIONS_E2E=skip`, and prints that.
fn is_skipped() -> bool {
    let skip = env::var("KUBE_UNIONS_E2E").is_ok_and(|value| value == "skip");
    if skip {
        say("skipped, since KUBE_UNIONS_E2E=skip");
    }
    skip
}

/// Returns `all` if `KUBE_UNIONS_E2E=full`, as the scheduled runs have it, and else `some`: one of each class, or the smallest number that
/// shows the same.
pub(crate) fn some_or_all<T>(some: T, all: T) -> T {
    if env::var("KUBE_UNIONS_E2E").is_ok_and(|value| value == "full") { all } else { some }
}

/// Prints a line about the test of this thread, which the test harness does not capture.
pub(crate) fn say(what: &str) {
    let thread = thread::current();
    let line = format!("{what}: {}\n", thread.name().unwrap_or("a test"));
    let _ = io::stderr().write_all(line.as_bytes());
}
