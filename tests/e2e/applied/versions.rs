//! Manifests that field managers apply at different versions of a kind. One counts for another if the unions of both versions are the
//! same, also where the API server converts an object to the version of a policy or of a rule.

use serde_json::{Value, json};

use super::server::{Server, compile};
use crate::support::kind;
use fixtures::crds;

/// The way in which unions are enforced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Enforcement {
    Webhook,
    /// The rules of the webhook name only `v2`, so that the API server converts objects of other versions for it.
    ConvertingWebhook,
    Policies,
}

/// A kind, and the members of the unions of its versions.
type Versioned = (&'static str, &'static [(&'static str, &'static [&'static str])]);

/// All versions have the same unions.
const SAME: Versioned = ("Same", &[("v1", &["a", "b"]), ("v2", &["a", "b"])]);
/// Two versions have the same unions, one has others, and one has none.
const DIFFERING: Versioned =
    ("Differing", &[("v1", &["a", "b"]), ("v1beta1", &["a", "b"]), ("v2", &["a", "b", "c"]), ("v3", &[])]);

/// Field managers own an object with a union as a whole at one of two versions with the same unions.
const OWNED: [Versioned; 2] = [
    ("Ownedv1", &[("v1", &["a", "b"]), ("v2", &["a", "b"])]),
    ("Ownedv2", &[("v1", &["a", "b"]), ("v2", &["a", "b"])]),
];

/// A situation, and the applies that lead to it.
type Row = (&'static str, Vec<Apply>);

/// A manifest that a field manager applies twice.
struct Apply {
    manager: &'static str,
    version: &'static str,
    /// The fields of the object.
    content: Value,
    then: Then,
}

/// The end of both applies.
enum Then {
    /// The object has these fields.
    Stored(Value),
    /// The message has these words.
    Refused(&'static str),
}

fn apply(manager: &'static str, version: &'static str, content: Value) -> Apply {
    Apply { manager, version, then: Then::Stored(content.clone()), content }
}

impl Apply {
    fn stored_as(self, content: Value) -> Self {
        Self { then: Then::Stored(content), ..self }
    }

    fn refused(self, words: &'static str) -> Self {
        Self { then: Then::Refused(words), ..self }
    }
}

const BOTH: &str = "the applied manifest sets `a` and `b`; keep one";
const CONTEST_OF_A: &str =
    "the applied manifest sets `a`, and the manifest of another field manager sets `b`; keep one";
const CONTEST_OF_B: &str =
    "the applied manifest sets `b`, and the manifest of another field manager sets `a`; keep one";

fn plain(content: &Value) -> Value {
    json!({"spec": {"plain": content}})
}

/// Returns the applies to a kind all of whose versions have the same unions.
fn same() -> Vec<Row> {
    same_members().into_iter().chain(same_places_and_values()).collect()
}

fn same_members() -> Vec<Row> {
    let (a, b, both) = (plain(&json!({"a": "x"})), plain(&json!({"b": "x"})), plain(&json!({"a": "x", "b": "x"})));
    vec![
        (
            "a manifest of v1 contradicts itself",
            vec![apply("one", "v1", a.clone()), apply("one", "v1", both.clone()).refused(BOTH)],
        ),
        (
            "a manifest of v2 contradicts itself",
            vec![apply("one", "v2", a.clone()), apply("one", "v2", both.clone()).refused(BOTH)],
        ),
        (
            "a manifest contradicts itself at another version than before",
            vec![
                apply("one", "v1", a.clone()),
                apply("one", "v2", both.clone()).refused(BOTH),
                apply("one", "v1", both).refused(BOTH),
                apply("one", "v1", b.clone()),
            ],
        ),
        (
            "two managers contest a union at v1",
            vec![
                apply("one", "v1", a.clone()),
                apply("two", "v1", b.clone()),
                apply("one", "v1", a.clone()).refused(CONTEST_OF_A),
                apply("two", "v1", b.clone()),
            ],
        ),
        (
            "two managers contest a union at two versions",
            vec![
                apply("one", "v1", a.clone()),
                apply("two", "v2", b.clone()),
                apply("one", "v1", a.clone()).refused(CONTEST_OF_A),
                apply("two", "v2", b.clone()),
                apply("one", "v1", b.clone()),
            ],
        ),
        (
            "a manager goes from v1 to v2 and back with its manifest",
            vec![
                apply("one", "v1", a.clone()),
                apply("two", "v1", b.clone()),
                apply("one", "v2", a.clone()).refused(CONTEST_OF_A),
                apply("two", "v2", b.clone()),
                apply("one", "v1", a.clone()).refused(CONTEST_OF_A),
            ],
        ),
        (
            "a manager takes the other member at another version",
            vec![apply("one", "v1", a.clone()), apply("two", "v2", b), apply("one", "v2", plain(&json!({"b": "x"})))],
        ),
    ]
}

fn same_places_and_values() -> Vec<Row> {
    let item = |fields: &Value| {
        let mut item = json!({"k": "i"});
        json_patch::merge(&mut item, fields);
        json!({"spec": {"items": [item]}})
    };
    let status = |fields: Value| json!({"status": {"plain": fields}});
    let chosen = |fields: Value| json!({"spec": {"chosen": fields}});
    let deduced = |fields: Value| json!({"spec": {"deduced": fields}});
    let not_selected = "the applied manifest sets `type` to \"B\" and `a`, which \"B\" does not select; remove `a`";
    vec![
        (
            "the union of an item",
            vec![
                apply("one", "v1", item(&json!({"a": "x"}))),
                apply("two", "v2", item(&json!({"b": "x"}))),
                apply("one", "v1", item(&json!({"a": "x"}))).refused(CONTEST_OF_A),
                apply("one", "v1", item(&json!({"a": "x", "b": "x"}))).refused(BOTH),
            ],
        ),
        (
            "the union of the status",
            vec![
                apply("creator", "v1", json!({"spec": {"note": "x"}})),
                apply("one", "v1", status(json!({"a": "x"}))),
                apply("two", "v2", status(json!({"b": "x"}))),
                apply("one", "v1", status(json!({"a": "x"}))).refused(CONTEST_OF_A),
                apply("one", "v1", status(json!({"a": "x", "b": "x"}))).refused(BOTH),
            ],
        ),
        (
            "a value of the 2022 form that does not select the member of the manifest",
            vec![
                apply("one", "v1", chosen(json!({"type": "A", "a": "x"}))),
                apply("one", "v1", chosen(json!({"type": "B", "a": "x"}))).refused(not_selected),
                apply("one", "v1", chosen(json!({"type": "B", "b": "x"}))),
            ],
        ),
        (
            "a value of the 2019 form that does not select the member of the manifest",
            vec![
                apply("one", "v1", deduced(json!({"type": "A", "a": "x"}))),
                apply("one", "v1", deduced(json!({"type": "B", "a": "x"}))).refused(not_selected),
                apply("one", "v1", deduced(json!({"b": "x"}))).stored_as(deduced(json!({"type": "B", "b": "x"}))),
            ],
        ),
        (
            "two managers contest a union with a discriminator at two versions",
            vec![
                apply("one", "v1", deduced(json!({"a": "x"}))).stored_as(deduced(json!({"type": "A", "a": "x"}))),
                apply("two", "v2", deduced(json!({"b": "x"}))).stored_as(deduced(json!({"type": "B", "b": "x"}))),
                apply("one", "v1", deduced(json!({"a": "x"}))).refused(CONTEST_OF_A),
            ],
        ),
    ]
}

/// Returns the applies to a kind whose versions have different unions.
fn differing() -> Vec<Row> {
    let (a, b, both) = (plain(&json!({"a": "x"})), plain(&json!({"b": "x"})), plain(&json!({"a": "x", "b": "x"})));
    vec![
        (
            "two managers contest a union at two versions with the same unions",
            vec![
                apply("one", "v1", a.clone()),
                apply("two", "v1beta1", b.clone()),
                apply("one", "v1", a.clone()).refused(CONTEST_OF_A),
                apply("one", "v1beta1", a.clone()).refused(CONTEST_OF_A),
                apply("one", "v1beta1", both.clone()).refused(BOTH),
            ],
        ),
        (
            "a manifest of a version with other unions does not count",
            vec![
                apply("one", "v1", a.clone()),
                apply("two", "v2", b.clone()),
                apply("one", "v1", a.clone()),
                apply("two", "v2", b.clone()),
                apply("one", "v1", both.clone()).refused(BOTH),
                apply("two", "v2", both.clone()).refused(BOTH),
            ],
        ),
        (
            "the earlier manifest of a version with other unions does not count",
            vec![
                apply("one", "v2", a.clone()),
                apply("two", "v1", b.clone()),
                apply("one", "v1", a.clone()),
                apply("two", "v1", b.clone()).refused(CONTEST_OF_B),
            ],
        ),
        (
            "a manifest of a version without unions does not count",
            vec![
                apply("one", "v3", a.clone()),
                apply("two", "v2", b.clone()),
                apply("one", "v2", a),
                apply("two", "v2", b).refused(CONTEST_OF_B),
            ],
        ),
    ]
}

/// Returns the applies to a kind of which a version owns objects as a whole.
fn owned() -> Vec<Row> {
    let (a, b, both) = (plain(&json!({"a": "x"})), plain(&json!({"b": "x"})), plain(&json!({"a": "x", "b": "x"})));
    let item = |fields: &Value| {
        let mut item = json!({"k": "i"});
        json_patch::merge(&mut item, fields);
        json!({"spec": {"items": [item]}})
    };
    let [item_a, item_both] = [json!({"a": "x"}), json!({"a": "x", "b": "x"})].map(|fields| item(&fields));
    let rows = ["v1", "v2"].map(|version| {
        [
            (
                "a manifest contradicts itself",
                vec![apply("one", version, a.clone()), apply("one", version, both.clone()).refused(BOTH)],
            ),
            (
                "a manifest contradicts itself in an item",
                vec![apply("one", version, item_a.clone()), apply("one", version, item_both.clone()).refused(BOTH)],
            ),
            (
                "a manifest takes the other member than another manager",
                vec![apply("one", version, a.clone()), apply("two", version, b.clone())],
            ),
        ]
    });
    rows.into_iter().flatten().collect()
}

impl Enforcement {
    fn group(self) -> String {
        format!("{self:?}.versions-applied.example").to_lowercase()
    }

    /// Enforces the unions of a kind, and waits until the API server does.
    fn enforce(self, server: &Server, (kind, versions): Versioned) {
        let (group, definition) = (self.group(), definition(&self.group(), (kind, versions)));
        kind::apply(server.client(), &definition);
        match self {
            Self::Webhook => server.register(&group),
            Self::ConvertingWebhook => {
                let rule = json!({"apiGroups": [group], "apiVersions": ["v2"], "resources": ["*", "*/status"],
                    "operations": ["CREATE", "UPDATE"]});
                kind::apply(server.client(), &server.webhook.registration_of(&group, &[rule], "Fail"));
            }
            Self::Policies => drop(server.kubectl("versions").apply(&compile("policies", &[definition])).accepted()),
        }
        for (version, _) in versions.iter().filter(|(_, members)| !members.is_empty()) {
            server.wait_until_in_force(&format!("{group}/{version}"), kind, "plain", &["spec", "status"]);
        }
    }

    /// Returns what differs from the rows of a kind.
    fn differences(self, server: &Server, kind: &str, rows: &[Row]) -> Vec<String> {
        let mut differences = Vec::new();
        for (number, (about, applies)) in rows.iter().enumerate() {
            for (step, apply) in applies.iter().enumerate() {
                if let Err(difference) = apply.play_twice(server, &self.group(), kind, &format!("row-{number}")) {
                    differences.push(format!("{self:?} {kind}: {about}: {}: {difference}", step + 1));
                    break;
                }
            }
        }
        differences
    }
}

impl Apply {
    /// Applies the manifest twice. Returns an error unless both end as wanted, and the second one changes nothing.
    fn play_twice(&self, server: &Server, group: &str, kind: &str, name: &str) -> Result<(), String> {
        let Self { manager, version, content, then } = self;
        let mut manifest = content.clone();
        manifest["apiVersion"] = format!("{group}/{version}").into();
        manifest["kind"] = kind.into();
        manifest["metadata"] = json!({"name": name, "namespace": "default"});
        let path = format!("/apis/{group}/{version}/namespaces/default/{}s/{name}", kind.to_lowercase());
        let written = if content.get("status").is_some() { format!("{path}/status") } else { path.clone() };
        let play = || {
            let answer = server.apply_as(manager, &written, &manifest);
            let message = answer.body["message"].as_str().unwrap_or_default().to_owned();
            let is_wanted = match then {
                Then::Stored(wanted) => {
                    let fields = wanted.as_object().expect("an object has fields");
                    answer.is_success() && fields.iter().all(|(field, value)| answer.body[field] == *value)
                }
                Then::Refused(words) => answer.status == 422 && message.contains(words),
            };
            let mut object = server.stored(&path).expect("the object is stored");
            object["metadata"] = json!({"generation": object["metadata"]["generation"]});
            if is_wanted { Ok((message, object)) } else { Err(format!("{}: {message} {object}", answer.status)) }
        };
        let (first, again) = (play()?, play()?);
        if first == again { Ok(()) } else { Err(format!("{first:?}, and again {again:?}")) }
    }
}

/// Returns a CRD whose versions have fields for each form, and these members in their unions.
fn definition(group: &str, (kind, versions): Versioned) -> Value {
    let text = json!({"type": "string"});
    let plain = json!({"type": "object", "properties": {"a": text, "b": text, "c": text}});
    let [mut typed, mut item] = [plain.clone(), plain.clone()];
    typed["properties"]["type"] = text.clone();
    (item["properties"]["k"], item["required"]) = (text.clone(), json!(["k"]));
    let items =
        json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
    let fields = json!({"note": text, "plain": plain, "chosen": typed, "deduced": typed, "items": items});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": fields}, "status": {"type": "object", "properties": {"plain": plain}}}});
    let mut annotation = json!({});
    for (version, members) in versions.iter().filter(|(_, members)| !members.is_empty()) {
        let values: Value = members.iter().map(|member| (*member, member.to_uppercase())).collect();
        let selected = members.iter().map(|member| (member.to_uppercase(), json!({"name": member, "optional": true})));
        let plain = json!([{"fields-to-discriminateBy": values}]);
        let spec = "/properties/spec/properties";
        annotation[version] = json!({
            format!("{spec}/plain"): plain,
            format!("{spec}/items/items"): plain,
            format!("{spec}/chosen/properties/type"): {"fieldMembers": selected.collect::<Value>()},
            format!("{spec}/deduced"): [{"discriminator": "type", "fields-to-discriminateBy": values}],
            "/properties/status/properties/plain": plain,
        });
    }
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, _)| {
            let mut schema = schema.clone();
            if kind.strip_prefix("Owned") == Some(name) {
                for pointer in ["/plain", "/items/items"] {
                    let object = schema.pointer_mut(&format!("/properties/spec/properties{pointer}"));
                    object.expect("a field")["x-kubernetes-map-type"] = "atomic".into();
                }
            }
            let mut version = crds::version(name, &schema);
            version["storage"] = (*name == "v2").into();
            version["subresources"] = json!({"status": {}});
            version
        })
        .collect();
    crds::annotated(group, kind, &versions, &annotation.to_string())
}

/// Plays all rows that an enforcement can play.
fn hold(server: &Server, enforcements: &[Enforcement]) {
    let mut differences = Vec::new();
    for enforcement in enforcements {
        enforcement.enforce(server, SAME);
        differences.extend(enforcement.differences(server, SAME.0, &same()));
        // A rule for one version is a mistake if the versions have different unions.
        if *enforcement != Enforcement::ConvertingWebhook {
            enforcement.enforce(server, DIFFERING);
            differences.extend(enforcement.differences(server, DIFFERING.0, &differing()));
            for kind in OWNED {
                enforcement.enforce(server, kind);
                differences.extend(enforcement.differences(server, kind.0, &owned()));
            }
        }
    }
    assert!(differences.is_empty(), "{} rows differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn manifests_of_versions_with_the_same_unions_count_for_each_other_with_the_webhook() {
    let Some(server) = Server::with_webhook() else { return };
    hold(server, &[Enforcement::Webhook, Enforcement::ConvertingWebhook]);
}

#[test]
fn manifests_of_versions_with_the_same_unions_count_for_each_other_with_policies() {
    let Some(server) = Server::with_policies() else { return };
    hold(server, &[Enforcement::Policies]);
}
