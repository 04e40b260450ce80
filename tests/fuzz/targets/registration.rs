//! Any JSON as a stored webhook configuration: one write completes it, a second one changes nothing, and foreign entries stay.
#![no_main]

use kube_unions_webhook::authority::{CertificateAuthority, Validity};
use kube_unions_webhook::controllers::{EntryOptions, Registering, Registration};
use kube_unions_core::admission::InspectionToken;
use kube_unions_fuzz::CATALOG;
use serde_json::Value;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

const OWNER: &str = "11111111-2222-3333-4444-555555555555";

static REGISTRATION: LazyLock<Registration> = LazyLock::new(|| Registration {
    registering: Registering::Everything,
    service: "kube-unions/kube-unions:443".parse().unwrap(),
    entries: EntryOptions::default(),
    owner: Some("kube-unions".to_owned()),
    excluded_namespaces: Vec::new(),
    enforcing: true,
    delay: Duration::ZERO,
});

static CA: LazyLock<String> = LazyLock::new(|| {
    let validity = Validity::new(SystemTime::now(), Duration::from_secs(30 * 24 * 3600));
    CertificateAuthority::unique("kube-unions CA", validity).unwrap().certificate().to_owned()
});

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(stored) = serde_json::from_str::<Value>(text) else { return };
    let token = InspectionToken::from_random([7; 16]);
    let write = |stored: &Value| {
        let stored = [Some(stored.clone()), Some(stored.clone())];
        REGISTRATION.written(&CATALOG, &CA, OWNER, &token, &stored)
    };
    for (phase, written) in write(&stored).into_iter().enumerate() {
        let Some(written) = written else { continue };
        let again = write(&written)[phase].take();
        assert!(again.is_none(), "a second write changes nothing: {written} {again:?}");
        assert_eq!(foreign_entries(&written), foreign_entries(&stored), "foreign entries stay");
        let owners = written["metadata"]["ownerReferences"].as_array().expect("the configuration has owners");
        assert!(owners.iter().any(|owner| owner["uid"] == OWNER));
        assert_eq!(written["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"]);
    }
});

/// Returns the entries that neither have our names nor call our Service.
fn foreign_entries(configuration: &Value) -> Vec<&Value> {
    let entries = configuration.get("webhooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_ours = |entry: &&Value| {
        let service = &entry["clientConfig"]["service"];
        entry["name"].as_str().is_some_and(|name| name.ends_with("kube-unions.dev"))
            || (service["namespace"] == "kube-unions" && service["name"] == "kube-unions")
    };
    entries.iter().filter(|entry| !is_ours(entry)).collect()
}
