//! Events about `UnionDeclaration`s: one when a verdict changes, by the replica that wrote the condition.
//!
//! As a convenience they never hold up a condition, and they are not tried again: the condition says the same, and stays.
//! Two replicas that write the same condition at the same time come to the same name for the event, which the API server
//! takes once. For this `kube`'s own recorder will not do: it names events by the clock, and says a repeated one in the
//! words of the first.

use super::raw::{Declarations, RawResource};
use super::status::Verdict;
use crate::cluster::reason::reason;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::events::Reporter;
use kube::{Api, Client};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const CONTROLLER: &str = "kube-unions";

/// Where events of objects without a namespace go.
const NAMESPACE: &str = "default";

/// Longest note that the API server takes, in bytes.
const LONGEST_NOTE: usize = 1024;

/// Of the name of a declaration so many bytes stand in that of an event, which has a hash besides and at most 253.
const LONGEST_NAME: usize = 200;

/// So many events at once, and one more a second. Past that they are left out: they would tell of a thousand declarations
/// what one can ask of each, and the API server has to keep them for an hour.
const AT_ONCE: u32 = 100;

/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tells of verdicts.
pub(super) struct Events {
    queue: mpsc::Sender<Event>,
    allowance: Allowance,
}

impl Events {
    /// Writes in the background for as long as this lives.
    pub(super) fn new(client: Client) -> Self {
        let (queue, events) = mpsc::channel(AT_ONCE as usize);
        tokio::spawn(write_all(Api::namespaced(client, NAMESPACE), events));
        Self { queue, allowance: Allowance::new(Instant::now()) }
    }

    /// Tells of a new verdict. `version`: that of the declaration as it was when the verdict was reached.
    pub(super) fn tell(&mut self, name: &str, uid: &str, version: &str, verdict: &Verdict) {
        if self.allowance.take(Instant::now()) {
            // When there is no room it is left out, too.
            self.queue.try_send(event(name, uid, version, verdict)).ok();
        }
    }
}

fn event(name: &str, uid: &str, version: &str, verdict: &Verdict) -> Event {
    let (kind, reason) = if verdict.accepts() {
        ("Normal", "Accepted")
    } else if verdict.misses_target() {
        ("Warning", "TargetNotFound")
    } else {
        ("Warning", "Rejected")
    };
    let mut hasher = DefaultHasher::new();
    (uid, version, kind, reason, verdict.message()).hash(&mut hasher);
    Event {
        metadata: ObjectMeta {
            // A declaration's name is ASCII, and ends in no dot wherever it is cut.
            name: Some(format!("{}.{:016x}", head(name, LONGEST_NAME).trim_end_matches(['.', '-']), hasher.finish())),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        regarding: Some(ObjectReference {
            api_version: Some(format!("{}/{}", Declarations::GROUP, Declarations::VERSION)),
            kind: Some(Declarations::KIND.to_owned()),
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        }),
        type_: Some(kind.to_owned()),
        reason: Some(reason.to_owned()),
        action: Some("Compile".to_owned()),
        note: Some(head(verdict.message(), LONGEST_NOTE).to_owned()),
        event_time: Some(MicroTime(Timestamp::now())),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(Reporter::from(CONTROLLER).instance.unwrap_or_else(|| CONTROLLER.to_owned())),
        ..Event::default()
    }
}

/// Writes one after the other; says each reason not to be able to once, until one succeeds.
async fn write_all(api: Api<Event>, mut events: mpsc::Receiver<Event>) {
    let mut trouble: Option<String> = None;
    while let Some(event) = events.recv().await {
        let reason = match tokio::time::timeout(PATIENCE, api.create(&PostParams::default(), &event)).await {
            Ok(Ok(_)) => None,
            // Another replica was first.
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => None,
            Ok(Err(error)) => Some(reason(&error)),
            Err(_elapsed) => Some("the API server did not answer in time".to_owned()),
        };
        if let Some(reason) = &reason
            && trouble.as_ref() != Some(reason)
        {
            tracing::warn!(reason, "no event could be written about a declaration; its condition says the same");
        }
        trouble = reason;
    }
}

/// What may be told now.
struct Allowance {
    left: u32,
    since: Instant,
}

impl Allowance {
    fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, since: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let seconds = now.saturating_duration_since(self.since).as_secs();
        self.since += Duration::from_secs(seconds);
        self.left = self.left.saturating_add(u32::try_from(seconds).unwrap_or(u32::MAX)).min(AT_ONCE);
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }
}

fn head(text: &str, longest: usize) -> &str {
    text.get(..text.floor_char_boundary(longest)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_to_a_burst_and_one_a_second() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        let mut told = |after: Duration| (0..1000).filter(|_| allowance.take(start + after)).count();
        assert_eq!(told(Duration::ZERO), AT_ONCE as usize);
        assert_eq!(told(Duration::from_millis(900)), 0);
        assert_eq!(told(Duration::from_millis(2500)), 2);
        assert_eq!(told(Duration::from_secs(3)), 1);
        assert_eq!(told(Duration::from_hours(1)), AT_ONCE as usize);
    }

    #[test]
    fn an_event_keeps_within_what_the_api_server_takes() {
        let fault = kube_unions_core::declaration::Fault::unreadable("x", "é".repeat(750));
        let verdict = Verdict::new(Some(1), false, &[&fault]);
        let name = format!("{}.{}", "a".repeat(199), "b".repeat(53));
        let event = event(&name, "u", "1", &verdict);
        let written = event.metadata.name.unwrap();
        assert!(written.len() <= 253 && !written.contains(".."), "{written}");
        let note = event.note.unwrap();
        assert!(note.len() <= LONGEST_NOTE && note.len() > LONGEST_NOTE - 4, "{}", note.len());
        assert_eq!(event.reason.as_deref(), Some("Rejected"));
    }

    #[test]
    fn replicas_give_an_event_the_same_name_and_another_one_another() {
        let verdict = Verdict::new(Some(1), false, &[]);
        let name = |version| event("a", "u", version, &verdict).metadata.name;
        assert_eq!(name("7"), name("7"));
        assert_ne!(name("7"), name("8"));
    }
}
