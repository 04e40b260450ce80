//! Detects that a kind's unions are enforced, through writes of objects of that kind.

use std::time::Duration;

use serde_json::json;

use crate::support::kind::{Kind, parse};
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
    let mut last = Vec::new();
    let enforced = steadily(steady, || {
        last =
            cases.iter().filter_map(|case| Some(format!("{case}: {}", does_what_it_says(kind, case).err()?))).collect();
        last.is_empty()
    });
    assert!(enforced, "the unions of {} were not enforced within {SETTLED:?}:\n{}", kind.resource(), last.join("\n"));
    for case in *cases {
        kind.client().delete(&kind.path(&format!("probe-{case}"))).expect("the API server answers");
    }
}

/// Asks for a case of the kind's sample, without storing what comes of it. The old object, where the case has one, stays stored.
fn does_what_it_says(kind: &Kind<'_>, case: &str) -> Result<(), String> {
    let (client, path) = (kind.client(), kind.path(&format!("probe-{case}")));
    let object = |part: &str, name: &str| {
        let mut object = parse(&kind.read(&format!("{case}.{part}.yaml")));
        object["metadata"] = json!({"name": format!("{name}-{case}"), "namespace": "default"});
        object
    };
    let mut new = object("new", "probe");
    let answer = if kind.files().contains(&format!("{case}.old.yaml")) {
        let mut old = client.get(&path)?;
        if old.status == 404 {
            old = client.post(&kind.path(""), &object("old", "probe"))?;
        }
        if !old.is_success() {
            return Err(format!("the old object: {old:?}"));
        }
        new["metadata"]["resourceVersion"] = old.body["metadata"]["resourceVersion"].take();
        client.send("PUT", &format!("{path}?dryRun=All"), "application/json", new.to_string().as_bytes())?
    } else {
        kind.post_dry(&new)?
    };
    let as_said = if case.starts_with("rejected-") {
        answer.status == 422
    } else {
        // The expected object is sent as well, so that it gets the schema's defaults, too.
        let want = kind.post_dry(&object("want", "want"))?;
        answer.is_success() && answer.body["spec"] == want.body["spec"]
    };
    if as_said { Ok(()) } else { Err(format!("{answer:?}")) }
}
