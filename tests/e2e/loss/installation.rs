//! The webhook as a cluster runs it: two replicas of one Deployment behind one address, which register themselves.
//! Each has its mounted Secret, or they agree on one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::json;

use crate::support::balancer::{Backend, Balancer};
use crate::support::cluster::{self, DECLARATIONS};
use crate::support::control_plane::ControlPlane;
use crate::support::kind::{SAMPLES_GROUP, annotate, parse, samples};
use crate::support::lending::Lent;
use crate::support::webhook::Webhook;
use crate::support::writers::{Spread, Writers};
use fixtures::certificates::TestAuthority;
use fixtures::wait::eventually;

use super::SETTLED;
use super::registration::Registration;
use super::volume::Volume;

/// The Secret that replicas agree on.
pub(crate) const SECRET: &str = "kube-unions-tls";

/// `--registration-delay`: longer than the balancer needs to find a replica.
const REGISTRATION_DELAY: &str = "3s";

/// `--shutdown-delay`: two seconds more than the balancer needs until it sends no more connections. The manifests have
/// ten seconds, for a cluster that needs a few.
pub(crate) const DELAY: &str = "5s";

pub(crate) const REPLICAS: usize = 2;

/// One installation at a time, so that their writes do not slow each other down.
static ALONE: Mutex<()> = Mutex::new(());

/// A control plane with the written kind, and the replicas that enforce its unions.
pub(crate) struct Installation {
    // Fields are dropped in this order: callers before the server that they call.
    pub(crate) control_plane: Lent,
    pub(crate) registration: Registration,
    pub(crate) balancer: Balancer,
    replicas: Vec<Replica>,
    /// The CA of the mounted certificates.
    pub(super) authority: TestAuthority,
    /// The CA that was announced last and signs nothing, PEM.
    pub(super) one_more: String,
    delay: String,
    /// More arguments of the replicas.
    more: Vec<String>,
    _alone: MutexGuard<'static, ()>,
}

/// One Pod.
struct Replica {
    webhook: Webhook,
    /// `None`: the replicas agree on a Secret.
    volume: Option<Volume>,
}

impl Installation {
    /// Starts an installation that is ready and registered, each replica with a mounted Secret. `None`: these tests are skipped.
    pub(crate) fn new(delay: &str) -> Option<Self> {
        Self::start_all(delay, true)
    }

    /// Starts an installation whose replicas agree on a Secret.
    pub(crate) fn self_managed(delay: &str) -> Option<Self> {
        Self::start_all(delay, false)
    }

    fn start_all(delay: &str, mounted: bool) -> Option<Self> {
        if cluster::is_left_out() {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let control_plane = ControlPlane::with_rights().unwrap_or_else(|message| panic!("{message}"));
        let kubectl = control_plane.kubectl("loss");
        kubectl.run(&["apply", "-f", DECLARATIONS]).accepted();
        kubectl.apply(&backups_of(SAMPLES_GROUP)).accepted();

        let authority = TestAuthority::new("kube-unions loss tests");
        let balancer = Balancer::start();
        let registration = Registration::new(&control_plane, balancer.port());
        let (replicas, one_more, delay, more) = (Vec::new(), String::new(), delay.to_owned(), Vec::new());
        let mut this =
            Self { control_plane, registration, balancer, replicas, authority, one_more, delay, more, _alone: alone };
        for replica in 0..REPLICAS {
            let volume = mounted.then(|| Volume::new(&this.authority, this.authority.pem()));
            let webhook = this.launch(volume.as_ref());
            this.replicas.push(Replica { webhook, volume });
            this.join(replica);
        }
        this.registration.wait_until_in_force();
        Some(this)
    }

    /// Starts writers of the kind whose unions are enforced.
    pub(crate) fn writers(&self, spread: Spread) -> Writers {
        Writers::start(|| self.control_plane.new_client(), SAMPLES_GROUP, &collection(), spread)
    }

    /// Starts writers of updates that touch no union.
    pub(crate) fn untouched_writers(&self) -> Writers {
        Writers::start_untouched(|| self.control_plane.new_client(), SAMPLES_GROUP, &collection())
    }

    /// Stops all replicas by SIGSTOP, and waits until none is in rotation.
    pub(crate) fn pause(&mut self) {
        self.replicas.iter_mut().for_each(|replica| replica.webhook.process().pause());
        let none = || self.replicas.iter().all(|replica| !self.balancer.has(replica.webhook.port()));
        assert!(eventually(SETTLED, none), "replicas that hang get out of rotation");
    }

    /// Ends a pause, and waits until all replicas are in rotation.
    pub(crate) fn go_on(&mut self) {
        self.replicas.iter_mut().for_each(|replica| replica.webhook.process().go_on());
        let all = || self.replicas.iter().all(|replica| self.balancer.has(replica.webhook.port()));
        assert!(eventually(SETTLED, all), "replicas that go on get into rotation");
    }

    /// Ends a replica by SIGTERM while it is asked for reviews, and then starts another in its place.
    pub(crate) fn restart(&mut self, replica: usize) {
        let webhook = &mut self.replicas[replica].webhook;
        webhook.process().terminate();
        let stopping = eventually(SETTLED, || webhook.ops().get("/readyz").is_ok_and(|answer| answer.status == 503));
        let answered = reviews(webhook);
        assert!(stopping && eventually(SETTLED, || reviews(webhook) > answered), "it goes on answering reviews");
        assert!(self.ended(replica), "no valid run: the balancer was slower than the delay of {}", self.delay);
        self.start(replica);
    }

    /// Gives all replicas other arguments, one after the other, as a rollout does.
    pub(crate) fn switch(&mut self, more: &[&str]) {
        self.more = more.iter().map(|&argument| argument.to_owned()).collect();
        for replica in 0..REPLICAS {
            assert!(self.stop(replica), "no valid run: the balancer was slower than the delay of {}", self.delay);
            self.start(replica);
        }
    }

    /// Ends a replica by SIGTERM. Returns true if it was out of rotation before it was gone.
    pub(crate) fn stop(&mut self, replica: usize) -> bool {
        self.replicas[replica].webhook.process().terminate();
        self.ended(replica)
    }

    /// Ends a replica by SIGKILL. Returns when it was sent, and a moment at which no new connection went to that address any
    /// more.
    pub(crate) fn kill(&mut self, replica: usize) -> (Instant, Instant) {
        let webhook = &mut self.replicas[replica].webhook;
        let (port, killed) = (webhook.port(), Instant::now());
        webhook.process().kill();
        let status = webhook.process().wait_for_exit(SETTLED);
        assert!(!status.success(), "nobody survives SIGKILL");
        assert!(eventually(SETTLED, || !self.balancer.has(port)), "a replica that is gone gets out of rotation");
        (killed, Instant::now())
    }

    /// Waits for the end of a replica that was told to stop. Returns true if it was out of rotation before it was gone.
    fn ended(&mut self, replica: usize) -> bool {
        let webhook = &mut self.replicas[replica].webhook;
        let port = webhook.port();
        let status = webhook.process().wait_for_exit(SETTLED);
        let left = !self.balancer.has(port);
        assert!(status.success(), "the webhook ended with {status}:\n{}", webhook.log());
        left
    }

    /// Starts a replica in the place of one that is gone, on other ports, as a new Pod has another address.
    pub(crate) fn start(&mut self, replica: usize) {
        let gone = self.replicas[replica].webhook.port();
        self.replicas[replica].webhook = self.launch(self.replicas[replica].volume.as_ref());
        self.join(replica);
        let port = self.replicas[replica].webhook.port();
        // A replica that the balancer did not see leave may stay in rotation longer than its successor needs to get there.
        let alone = || port == gone || !self.balancer.has(gone);
        assert!(eventually(SETTLED, alone), "a replica that is gone gets out of rotation");
    }

    /// Returns the arguments of a replica.
    pub(super) fn arguments(&self, volume: Option<&Volume>) -> Vec<String> {
        let certificate = volume.map_or_else(
            || format!("--tls-secret={SECRET}"),
            |volume| format!("--tls-cert-dir={}", volume.path().display()),
        );
        let mut arguments = vec![
            certificate,
            self.registration.argument(),
            format!("--registration-delay={REGISTRATION_DELAY}"),
            format!("--shutdown-delay={}", self.delay),
        ];
        arguments.extend(self.more.iter().cloned());
        arguments
    }

    fn launch(&self, volume: Option<&Volume>) -> Webhook {
        let arguments = self.arguments(volume);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Webhook::of_cluster(&self.control_plane.webhook_kubeconfig(), &arguments)
            .unwrap_or_else(|message| panic!("{message}"))
    }

    fn join(&self, replica: usize) {
        let webhook = &self.replicas[replica].webhook;
        self.balancer.add(Backend { port: webhook.port(), ops_port: webhook.ops_port() });
        assert!(
            eventually(SETTLED, || self.balancer.has(webhook.port())),
            "a replica that is ready gets into rotation"
        );
    }

    /// Returns the CA of mounted certificates, and a replica's mounted Secret.
    pub(super) fn mounted(&mut self, replica: usize) -> (&TestAuthority, &mut Volume) {
        (&self.authority, self.replicas[replica].volume.as_mut().expect("a Secret is mounted"))
    }

    /// The ports of a replica.
    pub(super) fn port(&self, replica: usize) -> u16 {
        self.replicas[replica].webhook.port()
    }

    /// Returns the logs of the replicas.
    pub(crate) fn log(&self) -> String {
        self.replicas.iter().map(|replica| replica.webhook.log()).collect::<Vec<_>>().join("---\n")
    }
}

/// The path of the objects that are written.
pub(crate) fn collection() -> String {
    format!("/apis/{SAMPLES_GROUP}/v1/namespaces/default/backups")
}

/// The CRD of the sample `backup` in this group, as a cluster keeps it, and with a field of the status that is in no union.
pub(crate) fn backups_of(group: &str) -> String {
    let crd = std::fs::read_to_string(samples().join("backup/crd.yaml")).expect("a sample has a CRD");
    let mut crd = parse(&annotate(&crd).replace(SAMPLES_GROUP, group));
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["status"]["properties"]["observedGeneration"] = json!({"type": "integer"});
    crd.to_string()
}

/// Returns the number of reviews that a replica has answered.
fn reviews(webhook: &Webhook) -> u64 {
    ["mutate", "validate"].map(|phase| webhook.reviews(SAMPLES_GROUP, phase)).iter().sum()
}
