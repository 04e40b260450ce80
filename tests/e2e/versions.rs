//! CRDs whose served versions have different unions: every write is judged by the unions of the version that was sent, by the webhook
//! and by policies, with and without a conversion webhook.

mod conversion;

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::native::{policy_message, without_nulls};
use crate::registration::with_rights;
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::http::{Answer, Client};
use crate::support::kind;
use crate::support::version::{Feature, lacks};
use crate::support::webhook::kube_unions;
use conversion::{Conversion, MOVED};
use fixtures::crds;
use fixtures::reviews::{Cause, Verdict, Write, admit, catalog};
use fixtures::wait::eventually;
use kube_unions_core::catalog::Catalog;

/// The deadline of work that the API server does in the background, far above the usual time.
const IN_FORCE: Duration = Duration::from_mins(2);

const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

/// The members of the union of each version, and the field of `spec` that it is at. Without members there is no union.
type Unions = [(&'static str, &'static [&'static str]); 3];

const KINDS: [(&str, Unions); 4] = [
    ("Added", [("", &[]), ("", &["a", "b"]), ("", &["a", "b"])]),
    ("Removed", [("", &["a", "b"]), ("", &["a", "b"]), ("", &[])]),
    ("Grown", [("", &["a", "b"]), ("", &["a", "b", "c"]), ("", &["b", "c"])]),
    (MOVED, [("", &["a", "b"]), ("deep", &["a", "b"]), ("deep", &["a", "b", "c"])]),
];

/// The way in which unions are enforced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Enforcement {
    Webhook,
    Policies,
}

/// A kind with three versions.
struct Versioned {
    kind: &'static str,
    unions: Unions,
    enforcement: Enforcement,
    /// The CRD with its unions.
    definition: Value,
    catalog: Catalog,
}

/// A write that is compared.
struct Cell<'v> {
    versioned: &'v Versioned,
    version: &'static str,
    /// The object that is stored, at the version.
    old: Option<Value>,
    new: Value,
}

#[test]
fn a_write_is_judged_by_the_unions_of_the_version_that_was_sent() {
    let Some(cluster) = Cluster::registering(&with_rights(), &["--registration-delay=0s"]) else { return };
    let client = cluster.control_plane.client();
    let server = Conversion::start();
    let mut enforcements = vec![Enforcement::Webhook];
    if !lacks(Feature::MutatingPolicies) {
        enforcements.push(Enforcement::Policies);
    }
    let conversions = [("none", None), ("webhook", Some(server.of_definition()))];
    let mut kinds = Vec::new();
    for enforcement in enforcements {
        for (name, conversion) in &conversions {
            let group = format!("{name}.{enforcement:?}.versions.example").to_lowercase();
            // A conversion webhook converts the fields of one kind. Another one stands for those that it leaves as they are.
            let is_told = |kind: &str| some_or_all(kind == "Grown" || (kind == MOVED) == conversion.is_some(), true);
            let told = KINDS.into_iter().filter(|(kind, _)| is_told(kind));
            kinds.extend(told.map(|kind| Versioned::new(kind, enforcement, &group, conversion.as_ref())));
        }
    }
    for kind in &kinds {
        kind.create(client);
    }
    for kind in &kinds {
        kind.store_old_objects(client);
    }
    let kubectl = cluster.kubectl("versions");
    for kind in &kinds {
        let enforcing = match kind.enforcement {
            Enforcement::Webhook => kind.definition.to_string(),
            Enforcement::Policies => kind.compiled(),
        };
        kubectl.apply(&enforcing).accepted();
    }
    let cells: Vec<Cell<'_>> = kinds.iter().flat_map(|kind| kind.cells(client)).collect();
    let mut left: Vec<&Cell<'_>> = cells.iter().collect();
    eventually(IN_FORCE, || {
        left.retain(|cell| cell.hold(client).is_err());
        left.is_empty()
    });
    say(&format!("{} writes of {} kinds", cells.len(), kinds.len()));
    let failed: Vec<String> = left.iter().filter_map(|cell| cell.hold(client).err()).collect();
    assert!(failed.is_empty(), "{} of {}: {}", failed.len(), cells.len(), failed.join("\n"));
}

impl Versioned {
    fn new(
        (kind, unions): (&'static str, Unions),
        enforcement: Enforcement,
        group: &str,
        conversion: Option<&Value>,
    ) -> Self {
        let text = json!({"type": "string"});
        let fields = json!({"choice": text, "a": text, "b": text, "c": text});
        let mut spec = json!({"type": "object", "properties": fields});
        spec["properties"]["deep"] = spec.clone();
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let versions = VERSIONS.map(|version| crds::version(version, &schema));
        let mut annotation = json!({});
        for (version, (field, members)) in VERSIONS.iter().zip(unions).filter(|(_, (_, members))| !members.is_empty()) {
            let values = members.iter().map(|member| (*member, member.to_uppercase()));
            let union = json!({"discriminator": "choice", "fields-to-discriminateBy": values.collect::<Value>()});
            let pointer = if field.is_empty() {
                "/properties/spec".to_owned()
            } else {
                format!("/properties/spec/properties/{field}")
            };
            annotation[version] = json!({pointer: [union]});
        }
        let mut definition = crds::annotated(group, kind, &versions, &annotation.to_string());
        if let Some(conversion) = conversion {
            definition["spec"]["conversion"] = conversion.clone();
        }
        let catalog = catalog(&[&definition]);
        Self { kind, unions, enforcement, definition, catalog }
    }

    /// Creates the CRD without unions, and waits until it is served.
    fn create(&self, client: &Client) {
        let mut definition = self.definition.clone();
        definition["metadata"]["annotations"] = json!({});
        kind::apply(client, &definition);
        for version in VERSIONS {
            let is_served = || client.get(&self.collection(version)).is_ok_and(|answer| answer.is_success());
            assert!(eventually(IN_FORCE, is_served), "{}", self.collection(version));
        }
    }

    /// Returns what `compile` makes of the CRD.
    fn compiled(&self) -> String {
        let arguments = ["compile", "--to=policies", "--from=-", "--kubernetes-version=1.36"];
        kube_unions(&arguments, &self.definition.to_string()).accepted().stdout
    }

    fn collection(&self, version: &str) -> String {
        let spec = &self.definition["spec"];
        let (group, plural) = (spec["group"].as_str().unwrap(), spec["names"]["plural"].as_str().unwrap());
        format!("/apis/{group}/{version}/namespaces/default/{plural}")
    }

    /// Returns an object of a version whose fields are where the version has them.
    fn object(&self, version: &str, name: &str, fields: &Value) -> Value {
        let group = &self.definition["spec"]["group"];
        let spec = if self.kind == MOVED && version != "v1" { json!({"deep": fields}) } else { fields.clone() };
        json!({"apiVersion": format!("{}/{version}", group.as_str().unwrap()), "kind": self.kind,
            "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    }

    fn store_old_objects(&self, client: &Client) {
        for (number, fields) in old_fields().iter().enumerate() {
            let object = self.object("v1", &format!("old-{number}"), fields);
            let answer = client.post(&self.collection("v1"), &object).expect("the API server answers");
            assert!(answer.is_success(), "{answer:?}");
        }
    }

    /// Returns a create and the updates of every stored object, for all versions and fields.
    fn cells(&self, client: &Client) -> Vec<Cell<'_>> {
        let mut cells = Vec::new();
        for version in VERSIONS {
            let stored = (0..old_fields().len()).map(|number| {
                let path = format!("{}/old-{number}", self.collection(version));
                Some(client.get(&path).expect("the API server answers").body)
            });
            for old in stored.chain([None]) {
                cells.extend(new_fields().iter().map(|fields| {
                    let mut new = self.object(version, "new", fields);
                    if let Some(old) = &old {
                        new["metadata"] = old["metadata"].clone();
                    }
                    Cell { versioned: self, version, old: old.clone(), new }
                }));
            }
        }
        cells
    }
}

fn old_fields() -> Vec<Value> {
    vec![json!({"choice": "A", "a": "x"}), json!({"choice": "B", "b": "x", "c": "x"})]
}

fn new_fields() -> Vec<Value> {
    vec![
        json!({}),
        json!({"choice": "A", "a": "x"}),
        json!({"choice": "A", "b": "x"}),
        json!({"choice": "B", "a": "x", "b": "y"}),
        json!({"choice": "C", "c": "x"}),
        json!({"choice": "A", "a": "x", "c": "y"}),
        json!({"a": "x", "b": "x"}),
        json!({"b": "y", "c": "x"}),
    ]
}

impl Cell<'_> {
    /// Returns an error unless the API server judges the write as the core does.
    fn hold(&self, client: &Client) -> Result<(), String> {
        let wanted = admit(&self.versioned.catalog, &Write::new(self.old.clone(), self.new.clone())).verdict;
        let (method, path) = match &self.old {
            Some(old) => ("PUT", format!("/{}", old["metadata"]["name"].as_str().unwrap())),
            None => ("POST", String::new()),
        };
        let path = format!("{}{path}?dryRun=All", self.versioned.collection(self.version));
        let answer = client.send(method, &path, "application/json", self.new.to_string().as_bytes())?;
        let is_as_wanted = match &wanted {
            Verdict::Allowed(object) => {
                answer.is_success()
                    && without_nulls(&answer.body["spec"])
                        == without_nulls(&object.as_ref().expect("an object")["spec"])
            }
            Verdict::Denied(causes) => answer.status == 422 && self.is_refusal(&answer, causes),
        };
        if is_as_wanted {
            Ok(())
        } else {
            Err(format!("{self}: wanted {wanted:?}, got {} {}", answer.status, answer.body))
        }
    }

    fn is_refusal(&self, answer: &Answer, wanted: &[Cause]) -> bool {
        match self.versioned.enforcement {
            Enforcement::Policies => policy_message(answer).is_some(),
            Enforcement::Webhook => {
                let causes: Result<Vec<Cause>, _> = serde_json::from_value(answer.body["details"]["causes"].clone());
                causes.is_ok_and(|causes| causes == wanted)
            }
        }
    }
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Versioned { definition, unions, .. } = self.versioned;
        let old = self.old.as_ref().map_or(&Value::Null, |old| &old["spec"]);
        write!(f, "{} {} {unions:?}: {old} -> {}", definition["metadata"]["name"], self.version, self.new["spec"])
    }
}
