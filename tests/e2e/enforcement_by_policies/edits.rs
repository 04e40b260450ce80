//! Edits of everything that `serve` keeps, by an account with that right: each is put right by one write, and then nothing is written
//! any more.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ADMISSION, SETTLED, create, inexpressible, policies, registered, set, start, wait, written};
use crate::replicas::dice;
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::http::Client;
use crate::support::kind::Kind;
use fixtures::crds;
use fixtures::dice::Dice;
use fixtures::wait::eventually;

const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// Attempts at an edit that the API server takes. It refuses most.
const ATTEMPTS: usize = 500;

const VALIDATING: &str = "validatingadmissionpolicies";
const MUTATING: &str = "mutatingadmissionpolicies";
const BINDINGS: &str = "admissionpolicybindings";
const POLICIES: &str = "admissionpolicies";
const ALL: &str = "";
const WEBHOOKS: &str = "webhookconfigurations";

const BLANK: &str = r#"{"kube-unions.dev/installation": " "}"#;
const EMPTY_LABEL: &str = r#"{"matchLabels": {"a": ""}}"#;
const EMPTY_VALUE: &str = r#"{"matchExpressions": [{"key": "a", "operator": "In", "values": [""]}]}"#;
const LIKE_A_DEFAULT: &str = r#"{"matchLabels": {"failurePolicy": "Fail"}}"#;
const EVERYTHING: &str =
    r#"[{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"], "scope": "*"}]"#;
const NEVER: &str = r#"[{"name": "never", "expression": "false"}]"#;

/// Rows: a part of the resources to which the edit is made, and the fields that it sets.
const ROWS: [(&str, &[(&str, &str)]); 21] = [
    (POLICIES, &[("/spec/matchConstraints/objectSelector", EMPTY_LABEL)]),
    (POLICIES, &[("/spec/matchConstraints/namespaceSelector", EMPTY_LABEL)]),
    (POLICIES, &[("/spec/matchConstraints/objectSelector", EMPTY_VALUE)]),
    (POLICIES, &[("/spec/matchConstraints/objectSelector", LIKE_A_DEFAULT)]),
    (POLICIES, &[("/spec/matchConstraints/excludeResourceRules", EVERYTHING)]),
    (POLICIES, &[("/spec/matchConstraints/matchPolicy", r#""Exact""#)]),
    (POLICIES, &[("/spec/matchConstraints/resourceRules/0/scope", r#""Cluster""#)]),
    (POLICIES, &[("/spec/matchConditions", NEVER)]),
    (MUTATING, &[("/spec/failurePolicy", r#""Fail""#)]),
    (VALIDATING, &[("/spec/validations/0/expression", r#""true""#)]),
    (MUTATING, &[("/spec/mutations/0/jsonPatch/expression", r#""[JSONPatch{op: 'remove', path: '/a'}]""#)]),
    (MUTATING, &[("/spec/reinvocationPolicy", r#""Never""#)]),
    (BINDINGS, &[("/spec/matchResources/objectSelector", EMPTY_LABEL)]),
    (BINDINGS, &[("/spec/matchResources/namespaceSelector", EMPTY_VALUE)]),
    (BINDINGS, &[("/spec/matchResources/objectSelector", LIKE_A_DEFAULT)]),
    (BINDINGS, &[("/spec/matchResources/resourceRules", EVERYTHING)]),
    (BINDINGS, &[("/spec/matchResources/excludeResourceRules", EVERYTHING)]),
    (ALL, &[("/metadata/annotations", BLANK)]),
    (WEBHOOKS, &[("/metadata/annotations", BLANK), ("/webhooks", "[]")]),
    (WEBHOOKS, &[("/webhooks/0/objectSelector", EMPTY_LABEL)]),
    (WEBHOOKS, &[("/webhooks/0/namespaceSelector", EMPTY_VALUE)]),
];

/// Values for random edits.
const WORDS: [&str; 16] = [
    "",
    "*",
    "a",
    "v9",
    "true",
    "[]",
    "Fail",
    "Ignore",
    "Exact",
    "Cluster",
    "Never",
    "Audit",
    "UPDATE",
    "DoesNotExist",
    "None",
    "a.b.c",
];

/// Fields that random edits add, wherever the API server takes them.
const FIELDS: [(&str, &str); 10] = [
    ("matchLabels", r#"{"a": ""}"#),
    ("matchExpressions", r#"[{"key": "a", "operator": "Exists"}]"#),
    ("matchResources", r#"{"objectSelector": {"matchLabels": {"scope": ""}}}"#),
    ("matchConditions", NEVER),
    ("excludeResourceRules", EVERYTHING),
    ("resourceNames", r#"["a"]"#),
    ("variables", r#"[{"name": "other", "expression": "1"}]"#),
    ("auditAnnotations", r#"[{"key": "a", "valueExpression": "'b'"}]"#),
    ("failurePolicy", r#""Ignore""#),
    ("a", r#""""#),
];

/// Returns the parts of all objects that `serve` writes, by resource and name.
fn kept(client: &Client) -> BTreeMap<String, Value> {
    let part = |object: Value| {
        let mut webhooks = object["webhooks"].clone();
        if let Some(webhooks) = webhooks.as_array_mut() {
            webhooks.sort_by_key(|webhook| webhook["name"].to_string());
        }
        let metadata = &object["metadata"];
        json!([metadata["labels"], metadata["annotations"], object["spec"], webhooks])
    };
    objects(client).into_iter().map(|(name, object)| (name, part(object))).collect()
}

/// Returns all objects that `serve` keeps, by resource and name.
fn objects(client: &Client) -> BTreeMap<String, Value> {
    let configurations = CONFIGURATIONS.map(|plural| format!("{plural}/kube-unions"));
    let configurations = configurations.map(|name| (name.clone(), get(client, &name)));
    policies(client).into_iter().chain(configurations).collect()
}

fn get(client: &Client, name: &str) -> Value {
    client.get(&format!("{ADMISSION}/{name}")).expect("the API server answers").body
}

/// Replaces an object. Returns true if the API server stores it with a change.
fn replace(client: &Client, name: &str, object: &Value) -> bool {
    let body = object.to_string();
    let answer = client.send("PUT", &format!("{ADMISSION}/{name}"), "application/json", body.as_bytes());
    let answer = answer.expect("the API server answers");
    answer.is_success() && answer.body["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"]
}

/// Sets the value at a JSON Pointer, and objects on the way that are missing.
fn put(object: &mut Value, pointer: &str, value: &str) {
    let place = pointer.split('/').skip(1).fold(object, |parent, step| {
        if parent.is_array() { &mut parent[step.parse::<usize>().unwrap()] } else { &mut parent[step] }
    });
    *place = serde_json::from_str(value).unwrap();
}

/// Changes a random part of a value.
fn edit(dice: &mut Dice, value: &mut Value) {
    let goes_down = dice.below(4) > 0;
    match value {
        Value::Object(fields) if goes_down && !fields.is_empty() => {
            let position = dice.below(fields.len());
            edit(dice, fields.values_mut().nth(position).unwrap());
        }
        Value::Array(items) if goes_down && !items.is_empty() => {
            let position = dice.below(items.len());
            edit(dice, &mut items[position]);
        }
        Value::Object(fields) if dice.below(3) == 0 && !fields.is_empty() => {
            let field = fields.keys().nth(dice.below(fields.len())).unwrap().clone();
            fields.remove(&field);
        }
        Value::Object(fields) => {
            let (field, value) = FIELDS[dice.below(FIELDS.len())];
            fields.insert(field.to_owned(), serde_json::from_str(value).unwrap());
        }
        Value::Array(items) => match dice.below(3) {
            0 => items.clear(),
            1 if !items.is_empty() => drop(items.remove(dice.below(items.len()))),
            _ => {
                let mut more = items.first().cloned().unwrap_or_default();
                edit(dice, &mut more);
                items.push(more);
            }
        },
        Value::Bool(is) => *is = !*is,
        Value::Number(_) => *value = json!(1 + dice.below(30)),
        Value::Null | Value::String(_) => *value = json!(WORDS[dice.below(WORDS.len())]),
    }
}

/// Makes a random edit of an object that the API server takes.
fn edit_at_random(client: &Client, dice: &mut Dice, name: &str) {
    let root = if name.contains(WEBHOOKS) { "webhooks" } else { "spec" };
    for _ in 0..ATTEMPTS {
        let mut object = get(client, name);
        edit(dice, &mut object[root]);
        if replace(client, name, &object) {
            return;
        }
    }
    panic!("the API server took none of {ATTEMPTS} edits of {name}");
}

/// Returns how often the API server was asked for the mutating webhook configuration.
fn looks(client: &Client) -> u64 {
    let metrics = client.get("/metrics").expect("the API server answers");
    let of_it =
        |line: &&str| line.contains(r#"resource="mutatingwebhookconfigurations""#) && line.contains(r#"verb="GET""#);
    let counts = metrics.text().lines().filter(|line| line.starts_with("apiserver_request_total{")).filter(of_it);
    counts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

fn resource_versions(client: &Client) -> BTreeMap<String, Value> {
    objects(client).into_iter().map(|(name, object)| (name, object["metadata"]["resourceVersion"].clone())).collect()
}

/// Returns a CRD whose kind `Foo` has a union at `spec` or `status`.
fn foos(group: &str, at: &str) -> Value {
    let member = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let part = json!({"type": "object", "properties": {"type": {"type": "string"}, "a": member, "b": member}});
    let schema = json!({"type": "object", "properties": {"spec": part, "status": part}});
    let mut version = crds::version("v1", &schema);
    version["subresources"] = json!({"status": {}});
    let union = json!([{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
    crds::annotated(group, "Foo", &[version], &json!({"v1": {format!("/properties/{at}"): union}}).to_string())
}

/// The writes by the webhook: of policies, and of webhook configurations.
fn writes(cluster: &Cluster) -> [i64; 2] {
    let of_configurations = "kube_unions_registration_writes_total{outcome=\"applied\"}";
    [written(&cluster.webhook), cluster.webhook.metric(of_configurations)]
}

#[test]
fn every_edit_is_put_right_by_one_write_and_names_never_meet() {
    let Some(cluster) = start() else { return };
    let client = cluster.control_plane.client();
    let kinds = ["rollout", "backup"].map(|sample| Kind::new(&cluster, sample));
    kinds.iter().for_each(Kind::apply_definition);
    create(client, &inexpressible("odd.example"));
    let covered = |count: i64| {
        let metric = |name: &str| cluster.webhook.metric(&format!("kube_unions_{name}"));
        metric("policy_kinds_covered") == count
            && metric("policies_desired") == metric("policies_in_sync")
            && registered(client) == set(["odd.example"])
    };
    wait(&cluster, "policies enforce the kinds that they can", || covered(2));
    let wanted = kept(client);

    let mut dice = dice();
    let before = writes(&cluster);
    let mut edits = [0, 0];
    let mut rows: Vec<_> = ROWS.to_vec();
    // Rounds of random edits, after those of the rows; one only of the objects that no row is left for.
    let mut random_rounds = 0..some_or_all(0, 3);
    while !rows.is_empty() || random_rounds.next().is_some() {
        for name in wanted.keys() {
            let row = rows.iter().position(|(resources, _)| name.contains(resources)).map(|row| rows.remove(row));
            if let Some((_, fields)) = row {
                let mut object = get(client, name);
                for (pointer, value) in fields {
                    put(&mut object, pointer, value);
                }
                assert!(replace(client, name, &object), "{name}: {fields:?}");
            } else {
                edit_at_random(client, &mut dice, name);
            }
            edits[usize::from(name.contains(WEBHOOKS))] += 1;
        }
        let mut now = BTreeMap::new();
        let is_repaired = eventually(SETTLED, || {
            now = kept(client);
            now == wanted
        });
        if !is_repaired {
            now.retain(|name, object| wanted.get(name) != Some(object));
            panic!("not put right: {now:#?}\n{}", cluster.webhook.log());
        }
    }
    wait(&cluster, "all is in sync", || covered(2));
    say(&format!("{} edits of policies and {} of webhook configurations were put right", edits[0], edits[1]));
    assert_eq!([0, 1].map(|index: usize| writes(&cluster)[index] - before[index]), edits, "one write for each edit");

    // Nothing is written any more: the webhook looks at its configurations again and again, and at the policies when a kind comes.
    let (settled, seen) = (resource_versions(client), looks(client));
    wait(&cluster, "it looks twice", || looks(client) >= seen + 2);
    assert_eq!(resource_versions(client), settled);

    // All are deleted.
    for (name, _) in policies(client) {
        assert!(client.delete(&format!("{ADMISSION}/{name}")).is_ok_and(|answer| answer.is_success()));
    }
    wait(&cluster, "deleted objects come back", || kept(client) == wanted && covered(2));
    let settled = resource_versions(client);

    // Two targets whose policies would have one name, if their parts were only joined.
    let before = writes(&cluster)[0];
    create(client, &foos("v.example", "status"));
    create(client, &foos("v.example-status", "spec"));
    wait(&cluster, "policies enforce both", || covered(4));
    let now = resource_versions(client);
    let of_policies = |versions: &BTreeMap<String, Value>| -> BTreeMap<String, Value> {
        let policies = versions.iter().filter(|(name, _)| settled.contains_key(*name) && !name.contains(WEBHOOKS));
        policies.map(|(name, version)| (name.clone(), version.clone())).collect()
    };
    assert_eq!(of_policies(&now), of_policies(&settled));
    assert_eq!(writes(&cluster)[0] - before, i64::try_from(now.len() - settled.len()).unwrap(), "each is written once");
    let bad = json!({"apiVersion": "v.example-status/v1", "kind": "Foo", "metadata": {"name": "bad"}, "spec": {"type": "A", "b": {}}});
    wait(&cluster, "an invalid object is refused", || {
        let answer = client.post("/apis/v.example-status/v1/namespaces/default/foos?dryRun=All", &bad);
        answer.is_ok_and(|answer| answer.status == 422)
    });
}
