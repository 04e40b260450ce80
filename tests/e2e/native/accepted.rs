//! An API server accepts every policy that `compile` writes.
//!
//! `KUBE_UNIONS_NATIVE_SEED` selects other kinds and names. `types` in the tests of `crates/policies` asks the same of a checker of types, in
//! seconds; here the two are compared.

use std::env;
use std::sync::Mutex;

use serde_json::Value;

use super::{Native, collection, compile_all, warning};
use crate::support::background::in_parallel;
use crate::support::cluster::{say, some_or_all};
use fixtures::cel::check_policy;
use fixtures::kinds::{GeneratedKind, KINDS};

const GROUP: &str = "accepted.example";

/// Kinds of which the policies are sent, unless all are.
const SOME: usize = 150;

#[test]
fn an_api_server_accepts_every_policy_of_generated_kinds() {
    let Some(native) = Native::shared() else { return };
    let seed = env::var("KUBE_UNIONS_NATIVE_SEED").map_or(1, |text| text.parse().expect("a number"));
    let count = some_or_all(SOME, KINDS);
    let mut policies: Vec<(String, Value)> = Vec::new();
    for kind in GeneratedKind::all(GROUP, seed).take(count) {
        for compiled in compile_all(&kind.catalog(), &warning()) {
            assert!(compiled.refusals.is_empty(), "{}: {:?}", kind.description, compiled.refusals);
            let objects = compiled.objects.iter().filter(|object| !object.kind().ends_with("Binding"));
            policies.extend(objects.map(|object| (kind.description.clone(), object.to_json())));
        }
    }
    let refused = Mutex::new(Vec::new());
    in_parallel(&policies, |(description, policy)| {
        let answer = native.send("POST", &format!("{}?dryRun=All", collection(policy)), policy);
        let checked = check_policy(policy);
        if !answer.is_success() || checked.is_err() {
            let message = &answer.body["message"];
            refused.lock().unwrap().push(format!("{description}\n{}: {message}\n{checked:?}", answer.status));
        }
    });
    let refused = refused.into_inner().unwrap();
    say(&format!("seed {seed}: {count} kinds, {} policies, {} refused", policies.len(), refused.len()));
    let told: Vec<&str> = refused.iter().take(5).map(String::as_str).collect();
    assert!(refused.is_empty(), "seed {seed}: {} policies are refused:\n{}", refused.len(), told.join("\n\n"));
}
