//! Random requests, all from one seed.

use serde_json::{Value, json};

use super::webhook::{TableWebhook, WORDS};
use fixtures::dice::Dice;

/// A request before each side fills in its own versions.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: &'static str,
    /// May have `@version@` and `@token@`.
    pub(super) path: String,
    pub(super) media_type: &'static str,
    pub(super) body: Sent,
    /// The key under which the object at the path is remembered.
    pub(super) key: String,
    pub(super) wait: Wait,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(super) enum Sent {
    Nothing,
    This(Value),
    /// A remembered object of the key with edits: the latest, or an older one.
    Edited {
        is_stale: bool,
        edits: Vec<(&'static str, Option<Value>)>,
    },
}

/// The condition for the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    None,
    /// A CRD was written: the API server has to serve what it says.
    Definition,
    /// A webhook configuration was written: the API server has to follow it.
    Webhooks,
}

/// A resource that is played with.
struct Played {
    collection: &'static str,
    namespaced: bool,
    weight: usize,
    subresources: &'static [&'static str],
    object: fn(&mut Dice) -> Value,
    edit: fn(&mut Dice) -> (&'static str, Option<Value>),
}

const NAMESPACES: [&str; 3] = ["player-a", "player-b", "player-none"];
const NAMES: [&str; 3] = ["a", "b", "c"];
pub(super) const GROUP: &str = "player.example";
pub(super) const DEFINITION: &str = "widgets.player.example";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

fn text(dice: &mut Dice) -> Value {
    json!(*dice.pick(&["x", "y", "z"]))
}

fn data_edit(dice: &mut Dice) -> (&'static str, Option<Value>) {
    let value = if dice.chance(70) { Some(text(dice)) } else { None };
    (*dice.pick(&["/data/k", "/data/l"]), value)
}

fn spec_edit(dice: &mut Dice) -> (&'static str, Option<Value>) {
    let value = if dice.chance(70) { Some(json!(dice.below(4))) } else { None };
    (*dice.pick(&["/spec/size", "/spec/extra", "/status/seen"]), value)
}

const PLAYED: &[Played] = &[
    Played {
        collection: "/api/v1/configmaps",
        namespaced: true,
        weight: 30,
        subresources: &[],
        object: |dice| json!({"data": {"k": text(dice)}}),
        edit: data_edit,
    },
    Played {
        collection: "/api/v1/secrets",
        namespaced: true,
        weight: 15,
        subresources: &[],
        object: |dice| json!({"stringData": {"k": text(dice)}}),
        edit: |dice| ("/stringData", Some(json!({"l": text(dice)}))),
    },
    Played {
        collection: "/api/v1/serviceaccounts",
        namespaced: true,
        weight: 5,
        subresources: &[],
        object: |_| json!({}),
        edit: |dice| ("/automountServiceAccountToken", Some(json!(dice.chance(50)))),
    },
    Played {
        collection: "/api/v1/services",
        namespaced: true,
        weight: 5,
        subresources: &["status"],
        object: |dice| json!({"spec": {"selector": {"k": text(dice)}, "ports": [{"port": 80}]}}),
        edit: |dice| ("/spec/ports", Some(json!([{"port": 80 + dice.below(3)}]))),
    },
    Played {
        collection: "/apis/apps/v1/deployments",
        namespaced: true,
        weight: 10,
        subresources: &["status", "scale"],
        object: |dice| {
            json!({"spec": {
                "replicas": dice.below(3), "selector": {"matchLabels": {"k": "v"}},
                "template": {"metadata": {"labels": {"k": "v"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            }})
        },
        edit: |dice| match dice.below(3) {
            0 => ("/spec/replicas", Some(json!(dice.below(4)))),
            1 => ("/status/replicas", Some(json!(dice.below(4)))),
            _ => ("/spec/paused", Some(json!(dice.chance(50)))),
        },
    },
    Played {
        collection: "/apis/coordination.k8s.io/v1/leases",
        namespaced: true,
        weight: 5,
        subresources: &[],
        object: |dice| json!({"spec": {"holderIdentity": text(dice)}}),
        edit: |dice| ("/spec/holderIdentity", Some(text(dice))),
    },
    Played {
        collection: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        namespaced: false,
        weight: 5,
        subresources: &[],
        object: |_| json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        edit: |dice| ("/rules/0/verbs", Some(json!(if dice.chance(50) { ["list"] } else { ["get"] }))),
    },
    Played {
        collection: "/apis/player.example/v1/widgets",
        namespaced: true,
        weight: 25,
        subresources: &["status"],
        object: |dice| {
            let size = dice.below(4);
            json!({"apiVersion": "player.example/v1", "kind": "Widget", "spec": {"size": size, "unknown": 1}, "status": {"seen": 1}})
        },
        edit: spec_edit,
    },
    Played {
        collection: "/apis/player.example/v2/widgets",
        namespaced: true,
        weight: 8,
        subresources: &["status"],
        object: |dice| json!({"apiVersion": "player.example/v2", "kind": "Widget", "spec": {"size": dice.below(4)}}),
        edit: spec_edit,
    },
    Played {
        collection: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        namespaced: false,
        weight: 3,
        subresources: &["status"],
        object: |_| {
            json!({"spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["nothing.example"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"],
                }]},
                "validations": [{"expression": "true"}],
            }})
        },
        edit: |dice| ("/spec/failurePolicy", Some(json!(if dice.chance(50) { "Ignore" } else { "Fail" }))),
    },
    Played {
        collection: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        namespaced: false,
        weight: 2,
        subresources: &[],
        object: |_| json!({"spec": {"policyName": "player-a", "validationActions": ["Deny"]}}),
        edit: |dice| ("/spec/validationActions", Some(json!(if dice.chance(50) { ["Audit"] } else { ["Deny"] }))),
    },
];

impl Played {
    fn path(&self, namespace: &str, name: &str) -> String {
        let (folder, plural) = self.collection.rsplit_once('/').unwrap();
        let place =
            if self.namespaced && !namespace.is_empty() { format!("/namespaces/{namespace}") } else { String::new() };
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        format!("{folder}{place}/{plural}{name}")
    }

    fn kind(&self) -> [&'static str; 2] {
        match self.collection.rsplit_once('/').unwrap().1 {
            "configmaps" => ["v1", "ConfigMap"],
            "secrets" => ["v1", "Secret"],
            "serviceaccounts" => ["v1", "ServiceAccount"],
            "services" => ["v1", "Service"],
            "deployments" => ["apps/v1", "Deployment"],
            "leases" => ["coordination.k8s.io/v1", "Lease"],
            "clusterroles" => ["rbac.authorization.k8s.io/v1", "ClusterRole"],
            "validatingadmissionpolicies" => ["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"],
            "validatingadmissionpolicybindings" => {
                ["admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"]
            }
            _ if self.collection.contains("/v2/") => ["player.example/v2", "Widget"],
            _ => ["player.example/v1", "Widget"],
        }
    }
}

fn request(method: &'static str, path: String, body: Sent) -> Request {
    let key = path.split('?').next().unwrap().to_owned();
    Request { method, path, media_type: "application/json", body, key, wait: Wait::None }
}

/// Returns the requests that come before all others.
pub(super) fn first() -> Vec<Request> {
    let namespace = |name: &str, labels: Value| {
        let object = json!({"metadata": {"name": name, "labels": labels}});
        request("POST", "/api/v1/namespaces".to_owned(), Sent::This(object))
    };
    let mut requests =
        vec![namespace("player-a", json!({"player": "a"})), namespace("player-b", json!({"player": "b"}))];
    requests.push(definition_request("POST", "", &mut Dice(1)));
    requests
}

/// Returns the next request.
pub(super) fn next(dice: &mut Dice, webhook: &TableWebhook, count: u64) -> Request {
    match dice.below(1000) {
        0..6 => definition_life(dice),
        6..22 => configuration(dice, webhook, count),
        22..50 => namespace_life(dice),
        _ => object_request(dice),
    }
}

fn object_request(dice: &mut Dice) -> Request {
    let total: usize = PLAYED.iter().map(|it| it.weight).sum();
    let mut drawn = dice.below(total);
    let played = PLAYED
        .iter()
        .find(|it| {
            let is_it = drawn < it.weight;
            drawn = drawn.saturating_sub(it.weight);
            is_it
        })
        .unwrap();
    let namespace = if dice.chance(4) { "player-none" } else { *dice.pick(&NAMESPACES[..2]) };
    let name =
        if played.namespaced { (*dice.pick(&NAMES)).to_owned() } else { format!("player-{}", dice.pick(&NAMES)) };
    let object = played.path(namespace, &name);
    match dice.below(100) {
        0..20 => create(dice, played, namespace, &name),
        20..30 => request("GET", read_path(dice, &object), Sent::Nothing),
        30..42 => list(dice, played, namespace),
        42..60 => replace(dice, played, &object),
        60..78 => patch(dice, played, &object),
        78..84 => apply(dice, played, &object, &name),
        84..95 => delete(dice, &object),
        95..97 => request("DELETE", format!("{}?labelSelector=player%3Dx", played.path(namespace, "")), Sent::Nothing),
        _ => odd(dice, played, namespace, &name),
    }
}

fn metadata(dice: &mut Dice, name: &str) -> Value {
    let mut metadata = json!({"name": name});
    if dice.chance(50) {
        metadata["labels"] = json!({"player": text(dice)});
    }
    if dice.chance(10) {
        metadata["annotations"] = json!({"note": text(dice)});
    }
    if dice.chance(6) {
        metadata["finalizers"] = json!(["player.example/wait"]);
    }
    metadata
}

fn dry_run(dice: &mut Dice) -> &'static str {
    if dice.chance(8) { "dryRun=All" } else { "" }
}

fn create(dice: &mut Dice, played: &Played, namespace: &str, name: &str) -> Request {
    let mut object = (played.object)(dice);
    object["metadata"] = metadata(dice, name);
    let path = format!("{}?{}", played.path(namespace, ""), dry_run(dice));
    Request { key: played.path(namespace, name), ..request("POST", path, Sent::This(object)) }
}

fn read_path(dice: &mut Dice, object: &str) -> String {
    match dice.below(10) {
        0 => format!("{object}?resourceVersion=@version@"),
        1 => format!("{object}?resourceVersion=nonsense"),
        _ => object.to_owned(),
    }
}

fn list(dice: &mut Dice, played: &Played, namespace: &str) -> Request {
    let namespace = if dice.chance(20) { "" } else { namespace };
    let mut parameters = Vec::new();
    // Other objects are there, too.
    if namespace.is_empty() || !played.namespaced {
        parameters.push("labelSelector=player".to_owned());
    } else if dice.chance(30) {
        let selector = *dice.pick(&[
            "player",
            "player%3Dx",
            "player%21%3Dx",
            "player+in+%28x%2Cy%29",
            "player+notin+%28x%29",
            "%21player",
            "player%3Dx%2Cplayer%21%3Dy",
            "a%20b",
        ]);
        parameters.push(format!("labelSelector={selector}"));
    }
    if dice.chance(20) {
        let selector = *dice.pick(&[
            "metadata.name%3Da",
            "metadata.name%21%3Da",
            "metadata.namespace%3Dplayer-a",
            "spec.unknown%3Da",
        ]);
        parameters.push(format!("fieldSelector={selector}"));
    }
    match dice.below(8) {
        0 | 1 => parameters.push("limit=1".to_owned()),
        2 => parameters.push("limit=2".to_owned()),
        3 => parameters.push("limit=1&continue=@token@".to_owned()),
        4 => parameters.push("resourceVersion=@version@".to_owned()),
        5 => parameters.push("resourceVersion=@version@&resourceVersionMatch=Exact".to_owned()),
        6 => parameters.push("resourceVersionMatch=Exact".to_owned()),
        _ => {}
    }
    request("GET", format!("{}?{}", played.path(namespace, ""), parameters.join("&")), Sent::Nothing)
}

fn edits(dice: &mut Dice, played: &Played) -> Vec<(&'static str, Option<Value>)> {
    let mut edits = Vec::new();
    for _ in 0..dice.below(3) {
        edits.push((played.edit)(dice));
    }
    if dice.chance(25) {
        let label = if dice.chance(70) { Some(json!({"player": text(dice)})) } else { None };
        edits.push(("/metadata/labels", label));
    }
    if dice.chance(10) {
        edits.push(("/metadata/finalizers", None));
    }
    if dice.chance(10) {
        edits.push(("/metadata/resourceVersion", None));
    }
    if dice.chance(3) {
        edits.push(("/metadata/uid", Some(json!("00000000-0000-0000-0000-000000000000"))));
    }
    if dice.chance(3) {
        edits.push(("/metadata/name", Some(json!("other"))));
    }
    edits
}

fn of_subresource(dice: &mut Dice, played: &Played, object: &str) -> String {
    let status: Vec<&str> = played.subresources.iter().copied().filter(|it| *it != "scale").collect();
    match dice.below(4) {
        0 if !status.is_empty() => format!("{object}/{}", dice.pick(&status)),
        _ => object.to_owned(),
    }
}

fn replace(dice: &mut Dice, played: &Played, object: &str) -> Request {
    let path = format!("{}?{}", of_subresource(dice, played, object), dry_run(dice));
    let body = Sent::Edited { is_stale: dice.chance(20), edits: edits(dice, played) };
    Request { key: object.to_owned(), ..request("PUT", path, body) }
}

fn patch(dice: &mut Dice, played: &Played, object: &str) -> Request {
    let path = format!("{}?{}", of_subresource(dice, played, object), dry_run(dice));
    let edits = edits(dice, played);
    let (media_type, body) = if dice.chance(60) {
        let mut body = json!({});
        for (pointer, value) in edits {
            let names: Vec<&str> = pointer.split('/').skip(1).collect();
            // A list has no names.
            if !names.contains(&"0") {
                let place = names.iter().fold(&mut body, |at, name| &mut at[*name]);
                *place = value.unwrap_or_default();
            }
        }
        ("application/merge-patch+json", body)
    } else {
        let operations: Vec<Value> = edits
            .into_iter()
            .map(|(pointer, value)| match value {
                Some(value) if dice.chance(85) => json!({"op": "add", "path": pointer, "value": value}),
                Some(value) => json!({"op": "test", "path": pointer, "value": value}),
                None => json!({"op": "remove", "path": pointer}),
            })
            .collect();
        ("application/json-patch+json", operations.into())
    };
    Request { key: object.to_owned(), media_type, ..request("PATCH", path, Sent::This(body)) }
}

fn apply(dice: &mut Dice, played: &Played, object: &str, name: &str) -> Request {
    let [version, kind] = played.kind();
    let mut body = (played.object)(dice);
    body["apiVersion"] = json!(version);
    body["kind"] = json!(kind);
    body["metadata"] = metadata(dice, name);
    let manager = *dice.pick(&["one", "two"]);
    let force = if dice.chance(30) { "&force=true" } else { "" };
    let path = format!("{}?fieldManager={manager}{force}&{}", of_subresource(dice, played, object), dry_run(dice));
    let media_type = "application/apply-patch+yaml";
    Request { key: object.to_owned(), media_type, ..request("PATCH", path, Sent::This(body)) }
}

fn delete(dice: &mut Dice, object: &str) -> Request {
    let body = match dice.below(8) {
        0 => Sent::This(json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}})),
        1 => Sent::This(json!({"preconditions": {"resourceVersion": "@version@"}})),
        2 => Sent::This(json!({"propagationPolicy": "Foreground"})),
        3 => Sent::This(json!({"propagationPolicy": "Orphan"})),
        _ => Sent::Nothing,
    };
    let query = if dice.chance(8) && matches!(body, Sent::Nothing) { "?dryRun=All" } else { "" };
    Request { key: object.to_owned(), ..request("DELETE", format!("{object}{query}"), body) }
}

/// Requests that a client should not send.
fn odd(dice: &mut Dice, played: &Played, namespace: &str, name: &str) -> Request {
    let path = played.path(namespace, name);
    let mut object = (played.object)(dice);
    object["metadata"] = json!({"name": name});
    match dice.below(9) {
        0 => request("GET", format!("{path}/nothing"), Sent::Nothing),
        1 => request("POST", path, Sent::This(object)),
        2 => {
            object["metadata"]["name"] = json!("Not A Name");
            request("POST", played.path(namespace, ""), Sent::This(object))
        }
        3 => {
            object["metadata"]["namespace"] = json!("elsewhere");
            request("POST", played.path(namespace, ""), Sent::This(object))
        }
        4 => {
            object["kind"] = json!("Other");
            request("POST", played.path(namespace, ""), Sent::This(object))
        }
        5 => {
            object["apiVersion"] = json!("other.example/v1");
            request("POST", played.path(namespace, ""), Sent::This(object))
        }
        6 => {
            object["metadata"] = json!({"name": name, "resourceVersion": "1"});
            request("POST", played.path(namespace, ""), Sent::This(object))
        }
        7 => request("POST", format!("{}?dryRun=Some", played.path(namespace, "")), Sent::This(object)),
        _ => request("GET", "/apis/nothing.example/v1/things".to_owned(), Sent::Nothing),
    }
}

fn namespace_life(dice: &mut Dice) -> Request {
    let name = *dice.pick(&["player-x", "player-y"]);
    let path = format!("/api/v1/namespaces/{name}");
    let labelled = json!({"metadata": {"name": name, "labels": {"player": text(dice)}}});
    match dice.below(8) {
        0 | 1 => Request { key: path, ..request("POST", "/api/v1/namespaces".to_owned(), Sent::This(labelled)) },
        2 => request("GET", path, Sent::Nothing),
        3 => request("DELETE", path, Sent::Nothing),
        4 => {
            let edits = vec![("/spec/finalizers", Some(json!([])))];
            Request {
                key: path.clone(),
                ..request("PUT", format!("{path}/finalize"), Sent::Edited { is_stale: false, edits })
            }
        }
        5 => {
            let body = json!({"metadata": {"labels": {"player": text(dice)}}});
            Request { media_type: "application/merge-patch+json", ..request("PATCH", path, Sent::This(body)) }
        }
        6 => {
            let object = json!({"metadata": {"name": dice.pick(&NAMES)}, "data": {"k": text(dice)}});
            request("POST", format!("{path}/configmaps"), Sent::This(object))
        }
        _ => request("GET", "/api/v1/namespaces?labelSelector=player".to_owned(), Sent::Nothing),
    }
}

/// Returns a CRD.
fn definition(dice: &mut Dice) -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 1},
            "extra": {"type": "integer"},
        }},
        "status": {"type": "object", "properties": {"seen": {"type": "integer"}}},
    }});
    let has_status = dice.chance(80);
    let version = |name: &str, storage: bool| {
        let mut version =
            json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}});
        if has_status {
            version["subresources"] = json!({"status": {}});
        }
        version
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition_request(method: &'static str, name: &str, dice: &mut Dice) -> Request {
    let key = format!("{DEFINITIONS}/{DEFINITION}");
    let path = if name.is_empty() { DEFINITIONS.to_owned() } else { format!("{DEFINITIONS}/{name}") };
    let body = match method {
        "POST" => Sent::This(definition(dice)),
        "DELETE" | "GET" => Sent::Nothing,
        _ => {
            let spec = definition(dice)["spec"].take();
            Sent::Edited { is_stale: false, edits: vec![("/spec", Some(spec))] }
        }
    };
    Request { key, wait: Wait::Definition, ..request(method, path, body) }
}

fn definition_life(dice: &mut Dice) -> Request {
    match dice.below(6) {
        2 => definition_request("DELETE", DEFINITION, dice),
        3 => definition_request("PUT", DEFINITION, dice),
        _ => definition_request("POST", "", dice),
    }
}

/// Writes of webhook configurations. Each has an entry that tells the player which one is in force.
fn configuration(dice: &mut Dice, webhook: &TableWebhook, count: u64) -> Request {
    let is_mutating = dice.chance(50);
    let plural = if is_mutating { "mutatingwebhookconfigurations" } else { "validatingwebhookconfigurations" };
    let key = format!("{HOOKS}/{plural}/player");
    if dice.chance(40) {
        return Request { wait: Wait::Webhooks, ..request("DELETE", key, Sent::Nothing) };
    }
    let mut entries = Vec::new();
    for number in 0..=dice.below(2) {
        entries.push(entry(dice, webhook, is_mutating, number));
    }
    entries.push(json!({
        "name": "probe.player.example", "clientConfig": webhook.address(&format!("probe-{count}")),
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "objectSelector": {"matchLabels": {"probe": plural}},
    }));
    let body = json!({"metadata": {"name": "player", "labels": {"player": "x"}}, "webhooks": entries});
    let method = if dice.chance(60) { "POST" } else { "PUT" };
    if method == "POST" {
        let path = format!("{HOOKS}/{plural}");
        return Request { key, wait: Wait::Webhooks, ..request("POST", path, Sent::This(body)) };
    }
    let edits = vec![("/webhooks", Some(body["webhooks"].clone()))];
    Request { wait: Wait::Webhooks, ..request("PUT", key, Sent::Edited { is_stale: false, edits }) }
}

fn entry(dice: &mut Dice, webhook: &TableWebhook, is_mutating: bool, number: usize) -> Value {
    let word = *dice.pick(&WORDS);
    let kind = if is_mutating { "mutating" } else { "validating" };
    let mut entry = json!({
        "name": format!("{kind}-{number}.player.example"), "clientConfig": webhook.address(word),
        "sideEffects": *dice.pick(&["None", "None", "NoneOnDryRun"]), "admissionReviewVersions": ["v1"],
        "rules": [{
            "operations": if dice.chance(50) { json!(["*"]) } else { json!(["CREATE", "UPDATE"]) },
            "apiGroups": ["", GROUP], "apiVersions": [*dice.pick(&["*", "v1", "v2"])],
            "resources": *dice.pick(&[["configmaps", "widgets"], ["widgets", "widgets/status"], ["secrets", "configmaps"]]),
        }],
        "namespaceSelector": {"matchLabels": {"player": dice.pick(&["a", "b"])}},
    });
    if dice.chance(30) {
        entry["failurePolicy"] = json!("Ignore");
    }
    if dice.chance(20) {
        entry["matchPolicy"] = json!("Exact");
    }
    if dice.chance(30) {
        entry["objectSelector"] = json!({"matchExpressions": [{"key": "player", "operator": "Exists"}]});
    }
    if is_mutating && dice.chance(40) {
        entry["reinvocationPolicy"] = json!("IfNeeded");
    }
    if dice.chance(60) {
        let expressions = [
            "true",
            "object.metadata.name == 'a'",
            "has(object.metadata.labels)",
            "object.metadata.labels['player'] == 'x'",
            "request.operation != 'DELETE'",
            "oldObject == null",
            "object.spec.size > 2",
            "request.userInfo.username == 'admin'",
            "request.?dryRun.orValue(false)",
            "object.?metadata.?annotations.?note.orValue('x') == 'x'",
        ];
        let all: Vec<Value> = (0..=dice.below(2))
            .map(|number| json!({"name": format!("condition-{number}"), "expression": *dice.pick(&expressions)}))
            .collect();
        entry["matchConditions"] = all.into();
    }
    entry
}

/// Returns a watch of the objects of a collection from a version on.
pub(super) fn watch(dice: &mut Dice) -> Request {
    let played = dice.pick(PLAYED);
    let namespace = if played.namespaced { *dice.pick(&["player-a", "player-b", ""]) } else { "" };
    let selector = if namespace.is_empty() || dice.chance(30) { "&labelSelector=player" } else { "" };
    let query = format!("watch=true&timeoutSeconds=1&resourceVersion=@version@{selector}");
    request("GET", format!("{}?{query}", played.path(namespace, "")), Sent::Nothing)
}
