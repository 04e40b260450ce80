//! The webhook as a cluster runs it: two replicas of one Deployment behind one address, each with its mounted Secret.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::balancer::{Backend, Balancer};
use crate::cluster::{self, DECLARATIONS};
use crate::control_plane::ControlPlane;
use crate::kind::{SAMPLES_GROUP, annotate, samples};
use crate::pki::Authority;
use crate::tls;
use crate::wait::eventually;
use crate::webhook::Webhook;
use crate::writers::{Spread, Writers};

use super::SETTLED;
use super::registration::Registration;
use super::volume::Volume;

/// `--shutdown-delay`: two seconds more than the balancer may need until it sends no more connections. The manifests have
/// ten, for a cluster that needs a few.
pub(crate) const DELAY: &str = "5s";

pub(crate) const REPLICAS: usize = 2;

/// One installation at a time: each is to have the processors for its rate of writes.
static ALONE: Mutex<()> = Mutex::new(());

/// A control plane with the kind that is written, and what enforces its unions.
pub(crate) struct Installation {
    // In this order they are dropped: nobody is to call what is gone already.
    pub(crate) control_plane: ControlPlane,
    registration: Registration,
    pub(crate) balancer: Balancer,
    replicas: [Replica; REPLICAS],
    authority: Authority,
    delay: String,
    _alone: MutexGuard<'static, ()>,
}

/// One Pod.
struct Replica {
    webhook: Webhook,
    volume: Volume,
}

impl Installation {
    /// Ready and registered. None when the user left these tests out.
    pub(crate) fn new(delay: &str) -> Option<Self> {
        if cluster::is_left_out() {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let control_plane = ControlPlane::start_with(&[]).unwrap_or_else(|message| panic!("{message}"));
        let kubectl = control_plane.kubectl("loss");
        kubectl.run(&["apply", "-f", DECLARATIONS]).accepted();
        kubectl.apply(&backups_of(SAMPLES_GROUP)).accepted();

        let authority = Authority::new("kube-unions loss tests");
        let replicas = [(); REPLICAS].map(|()| {
            let volume = Volume::new(&authority, authority.pem());
            Replica { webhook: start(&control_plane, &volume, delay), volume }
        });
        let balancer = Balancer::start();
        let registration = Registration::new(&control_plane, balancer.port());
        let mut this =
            Self { control_plane, registration, balancer, replicas, authority, delay: delay.to_owned(), _alone: alone };
        for replica in 0..REPLICAS {
            this.join(replica);
        }
        let pem = this.authority.pem().to_owned();
        this.registration.trust(&pem);
        Some(this)
    }

    /// Writers of the kind whose unions are enforced.
    pub(crate) fn writers(&self, spread: Spread) -> Writers {
        Writers::start(|| self.control_plane.new_client(), SAMPLES_GROUP, &collection(), spread)
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

    /// Ends a replica by SIGTERM; whether it was out of rotation before it was gone.
    pub(crate) fn stop(&mut self, replica: usize) -> bool {
        self.replicas[replica].webhook.process().terminate();
        self.ended(replica)
    }

    /// Waits for the end of a replica that was told to; whether it was out of rotation before it was gone.
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
        let Replica { webhook, volume } = &mut self.replicas[replica];
        *webhook = start(&self.control_plane, volume, &self.delay);
        self.join(replica);
    }

    /// Gives a replica a new certificate of the authority at hand, and waits until it is served and was asked for.
    pub(crate) fn renew(&mut self, replica: usize) {
        let Self { replicas, authority, .. } = self;
        let Replica { webhook, volume } = &mut replicas[replica];
        let trusted = volume.trusted();
        volume.renew(authority, &trusted);
        let (port, certificate) = (webhook.port(), volume.certificate());
        let served =
            eventually(SETTLED, || tls::served_certificate(port, &trusted).is_ok_and(|served| served == certificate));
        assert!(served, "the new certificate is never served:\n{}", webhook.log());
    }

    /// Has the API server leave the connections it has, and open others.
    pub(crate) fn reconnect(&mut self) {
        let opened = self.balancer.opened();
        self.registration.trust_anew();
        assert!(eventually(SETTLED, || self.balancer.opened() > opened), "the API server connects anew");
    }

    /// From one authority to the next: both are trusted before any replica has a certificate of the new one, and until
    /// none has one of the old one.
    pub(crate) fn change_authority(&mut self) {
        let next = Authority::new("kube-unions loss tests, the next");
        let both = format!("{}{}", self.authority.pem(), next.pem());
        self.trust(&both);
        self.authority = next;
        for replica in 0..REPLICAS {
            self.renew(replica);
        }
        let next = self.authority.pem().to_owned();
        self.trust(&next);
    }

    fn trust(&mut self, authorities: &str) {
        for replica in &mut self.replicas {
            replica.volume.trust(authorities);
        }
        self.registration.trust(authorities);
    }

    fn join(&self, replica: usize) {
        let webhook = &self.replicas[replica].webhook;
        self.balancer.add(Backend { port: webhook.port(), ops_port: webhook.ops_port() });
        assert!(
            eventually(SETTLED, || self.balancer.has(webhook.port())),
            "a replica that is ready gets into rotation"
        );
    }

    /// Removes what sends the writes to the webhook.
    pub(crate) fn unregister(&mut self) {
        self.registration.remove();
    }
}

/// The path of the objects that are written.
pub(crate) fn collection() -> String {
    format!("/apis/{SAMPLES_GROUP}/v1/namespaces/default/backups")
}

/// The CRD of the sample `backup` in this group, as a cluster keeps it.
pub(crate) fn backups_of(group: &str) -> String {
    let crd = std::fs::read_to_string(samples().join("backup/crd.yaml")).expect("a sample has a CRD");
    annotate(&crd).replace(SAMPLES_GROUP, group)
}

/// How many reviews a replica has answered.
fn reviews(webhook: &Webhook) -> u64 {
    ["mutate", "validate"].map(|phase| webhook.reviews(SAMPLES_GROUP, phase)).iter().sum()
}

fn start(control_plane: &ControlPlane, volume: &Volume, delay: &str) -> Webhook {
    let (tls, delay) = (format!("--tls-cert-dir={}", volume.path().display()), format!("--shutdown-delay={delay}"));
    Webhook::of_cluster(&control_plane.webhook_kubeconfig(), &[&tls, &delay])
        .unwrap_or_else(|message| panic!("{message}"))
}
