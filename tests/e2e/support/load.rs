//! A stream of requests to the API server, in the background of a test.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::background::Background;
use crate::support::http::{Answer, Client};

/// The pause between two requests of a stream, which leaves processor time to other tests.
const PACE: Duration = Duration::from_millis(5);

/// The outcome of one request.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The position of the object that was sent.
    pub(crate) object: usize,
    pub(crate) sent: Instant,
    pub(crate) answer: Result<Answer, String>,
}

impl Outcome {
    /// The status of the answer; 0 when there was none.
    pub(crate) fn status(&self) -> u16 {
        self.answer.as_ref().map_or(0, |answer| answer.status)
    }

    /// Returns the causes of a rejection, none for an accepted object.
    pub(crate) fn causes(&self) -> Vec<String> {
        self.answer.as_ref().map(|answer| causes(&answer.body)).unwrap_or_default()
    }
}

/// `field: message` of every cause of a `Status`.
pub(crate) fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect()
}

/// POSTs objects in turn, dry, until it is stopped.
pub(crate) struct Load {
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    sending: Background,
}

impl Load {
    pub(crate) fn start(client: &Client, path: &str, objects: Vec<Value>) -> Self {
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let (client, path) = (client.clone(), format!("{path}?dryRun=All"));
        let mut turns = (0..objects.len()).cycle();
        let sending = Background::start([{
            let outcomes = Arc::clone(&outcomes);
            move || {
                let object = turns.next().expect("a stream has objects");
                let sent = Instant::now();
                let answer = client.post(&path, &objects[object]);
                outcomes.lock().unwrap().push(Outcome { object, sent, answer });
                thread::sleep(PACE);
            }
        }]);
        Self { outcomes, sending }
    }

    /// Waits for an outcome of a request sent from now on.
    pub(crate) fn wait_for(&self, within: Duration, what: &str, condition: impl Fn(&Outcome) -> bool) -> Outcome {
        let now = Instant::now();
        fixtures::wait::for_some(within, || {
            let outcomes = self.outcomes.lock().unwrap();
            outcomes.iter().rev().take_while(|outcome| outcome.sent >= now).find(|outcome| condition(outcome)).cloned()
        })
        .unwrap_or_else(|| panic!("{what}: not within {within:?}; last: {:?}", self.outcomes.lock().unwrap().last()))
    }

    /// Waits until every object was sent, and answered, at least once from now on.
    pub(crate) fn wait_for_a_round(&self, objects: usize) {
        for object in 0..objects {
            self.wait_for(Duration::from_secs(20), "a round of requests", |outcome| outcome.object == object);
        }
    }

    /// Ends the stream and returns all outcomes.
    pub(crate) fn finish(self) -> Vec<Outcome> {
        self.sending.finish();
        self.outcomes.lock().unwrap().clone()
    }
}
