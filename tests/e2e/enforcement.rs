//! Detects that a kind's unions are enforced, through writes of objects of that kind.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kind::{Kind, parse};
use fixtures::wait::{SETTLED, steadily};

/// The cases of each sample that tell: one that is normalised, which takes the mutating phase, and one that is
/// rejected, which takes the validating phase. They are the same under the older and stricter CRDs that tests make of
/// the samples.
const TELLING: [(&str, &[&str]); 7] = [
    ("backup", &["normalized-deduced", "rejected-two-destinations"]),
    ("gateway", &["normalized-to-internal", "rejected-missing-member"]),
    ("monitor", &["normalized-reordered", "rejected-renamed-relabeling"]),
    ("pipeline", &["normalized-both-unions", "rejected-new-step"]),
    ("rollout", &["normalized-to-recreate", "rejected-missing-member"]),
    // Items without keys: nothing is ever normalised.
    ("route", &["rejected-several-filters"]),
    ("source", &["normalized-to-bucket", "rejected-two-sources"]),
];

/// Waits until the kind's unions have been enforced without exception for as long as `steady`.
pub(crate) fn wait_until_seen(kind: &Kind<'_>, steady: Duration) {
    let (_, cases) = TELLING.iter().find(|(sample, _)| *sample == kind.sample()).expect("the sample has telling cases");
    let mut probes: Vec<Probe<'_>> = cases.iter().map(|case| Probe::new(kind, case)).collect();
    let enforced = steadily(steady, || probes.iter_mut().all(Probe::does_what_it_says));
    let last: Vec<&str> = probes.iter().map(|probe| probe.last.as_str()).collect();
    assert!(enforced, "the unions of {} were not enforced within {SETTLED:?}:\n{}", kind.resource(), last.join("\n"));
    probes.iter().for_each(Probe::clean_up);
}

/// A case of the kind's sample, asked for without storing what comes of it.
struct Probe<'k> {
    kind: &'k Kind<'k>,
    case: &'static str,
    /// The old object, where the case has one, as it is stored.
    old: Option<Value>,
    /// The last outcome, for the message of a failing test.
    last: String,
}

impl<'k> Probe<'k> {
    fn new(kind: &'k Kind<'k>, case: &'static str) -> Self {
        Self { kind, case, old: None, last: String::new() }
    }

    fn does_what_it_says(&mut self) -> bool {
        match self.ask() {
            Ok(()) => true,
            Err(answer) => {
                self.last = format!("{}: {answer}", self.case);
                false
            }
        }
    }

    fn ask(&mut self) -> Result<(), String> {
        let mut new = self.object("new");
        let answer = if self.has_old() {
            if self.old.is_none() {
                self.old = Some(self.store_old()?);
            }
            let old = self.old.as_ref().expect("it has just been stored");
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
            let path = format!("{}?dryRun=All", self.kind.path(&self.name()));
            self.kind.client().send("PUT", &path, "application/json", new.to_string().as_bytes())?
        } else {
            self.kind.post_dry(&new)?
        };
        let as_said = if self.case.starts_with("rejected-") {
            answer.status == 422
        } else {
            // The expected object is sent as well, so that it gets the schema's defaults, too.
            let mut want = self.object("want");
            want["metadata"]["name"] = json!(format!("{}-want", self.name()));
            answer.is_success() && answer.body["spec"] == self.kind.post_dry(&want)?.body["spec"]
        };
        if as_said { Ok(()) } else { Err(format!("{answer:?}")) }
    }

    fn store_old(&self) -> Result<Value, String> {
        let answer = self.kind.client().post(&self.kind.path(""), &self.object("old"))?;
        if answer.is_success() { Ok(answer.body) } else { Err(format!("the old object: {answer:?}")) }
    }

    fn clean_up(&self) {
        if self.old.is_some() {
            let answer = self.kind.client().delete(&self.kind.path(&self.name())).expect("the API server answers");
            assert!(answer.is_success(), "{} cannot be deleted: {answer:?}", self.name());
        }
    }

    fn has_old(&self) -> bool {
        self.kind.files().contains(&self.file("old"))
    }

    fn object(&self, part: &str) -> Value {
        let mut object = parse(&self.kind.read(&self.file(part)));
        object["metadata"] = json!({"name": self.name(), "namespace": "default"});
        object
    }

    fn file(&self, part: &str) -> String {
        format!("{}.{part}.yaml", self.case)
    }

    fn name(&self) -> String {
        format!("probe-{}", self.case)
    }
}
