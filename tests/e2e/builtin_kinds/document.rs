//! The document of built-in kinds that commands embed: it is cut out of the documents of a real API server.

use std::collections::{BTreeMap, BTreeSet};

use fixtures::files::assert_generated;
use kube_unions_core::declaration::OpenApi;
use kube_unions_core::names::GroupKind;
use kube_unions_manifests::is_built_in_group;
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_policies::KubernetesVersion;
use serde_json::{Map, Value, json};

use crate::builtin::PRESETS;
use crate::presets::presets_in;
use crate::support::cluster::{AnyCluster, Cluster};
use crate::support::version::version;

const FILE: &str = "crates/offline/src/built_in/kinds.json";
const EMBEDDED: &str = include_str!("../../../crates/offline/src/built_in/kinds.json");

/// The folder of the declarations of unions that are never enforced on a cluster.
const OFFLINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../offline/src/built_in");

/// A part that has any fields: no union and no list that merges is in it, and the schema of schemas is long.
const OPEN: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion";

/// The most bytes of the document: every start of a command that needs it decodes it.
const MOST_BYTES: usize = 150_000;

/// Keywords that unions, patches and names do not need. What a kind publishes about its unions is often wrong.
const CUT: [&str; 4] = ["description", "enum", "required", "x-kubernetes-unions"];

/// The keyword that names the kind of a path, or the kinds of a schema.
const KIND: &str = "x-kubernetes-group-version-kind";

/// The documents of API groups, each with its path.
struct Published(BTreeMap<String, Value>);

impl Published {
    /// Returns the documents of the groups in which presets are about a kind.
    fn of(cluster: &AnyCluster) -> Self {
        let document = |target: &Target| {
            let answer = cluster.client().get(&format!("/openapi/v3/{}", target.path())).unwrap();
            answer.is_success().then(|| (target.path(), answer.body))
        };
        Self(targets().iter().filter_map(document).collect())
    }

    fn schema(&self, name: &str) -> Option<&Value> {
        self.0.values().find_map(|document| document["components"]["schemas"].get(name))
    }

    /// Returns the name of the schema of a kind.
    fn name_of(&self, target: &Target) -> String {
        let schemas = self.0[&target.path()]["components"]["schemas"].as_object().unwrap();
        let is_wanted = |schema: &Value| schema[KIND] == json!([target.0]);
        schemas.iter().find(|(_, schema)| is_wanted(schema)).unwrap_or_else(|| panic!("{target:?}")).0.clone()
    }

    /// Returns the document of the kinds, and of all that they refer to.
    fn cut(&self, version: &str) -> Value {
        let targets = targets();
        let roots: BTreeSet<String> = targets.iter().map(|target| self.name_of(target)).collect();
        let mut schemas = BTreeMap::new();
        let mut waiting: Vec<String> = roots.iter().cloned().collect();
        while let Some(name) = waiting.pop() {
            if schemas.contains_key(&name) {
                continue;
            }
            let mut schema = match self.schema(&name) {
                Some(_) if name == OPEN => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
                Some(schema) => cut(schema),
                None => panic!("{name}"),
            };
            if roots.contains(&name) {
                schema["properties"].as_object_mut().unwrap().shift_remove("status");
            }
            waiting.extend(references(&schema));
            schemas.insert(name, schema);
        }
        let kinds: Vec<&Value> = schemas.values().filter_map(|schema| schema[KIND].get(0)).collect();
        let mut paths = BTreeMap::new();
        for (path, operations) in self.0.values().flat_map(|document| document["paths"].as_object().unwrap()) {
            let kind = &operations["put"][KIND];
            if (path.ends_with("{name}") || path.ends_with("{name}/status")) && kinds.contains(&kind) {
                paths.insert(path, json!({"put": {KIND: sorted(kind)}}));
            }
        }
        json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": version}, "paths": paths,
            "components": {"schemas": schemas}})
    }
}

/// A kind that presets are about, as schemas name it.
#[derive(Debug)]
struct Target(Value);

impl Target {
    /// Returns the path of the document of its group.
    fn path(&self) -> String {
        match (self.0["group"].as_str().unwrap(), self.0["version"].as_str().unwrap()) {
            ("", version) => format!("api/{version}"),
            (group, version) => format!("apis/{group}/{version}"),
        }
    }
}

/// Returns each kind that presets are about once.
fn targets() -> Vec<Target> {
    let of = |preset: Value| {
        let target = &preset["spec"]["target"];
        assert_eq!(target["versions"].as_array().unwrap().len(), 1, "{preset}");
        json!({"group": target["group"], "kind": target["kind"], "version": target["versions"][0]})
    };
    let mut targets: Vec<Value> = presets_in(PRESETS).into_iter().chain(presets_in(OFFLINE)).map(of).collect();
    targets.sort_by_key(Value::to_string);
    targets.dedup();
    targets.into_iter().map(Target).collect()
}

/// Returns a schema without what [`CUT`] names, and with a reference in place of `allOf` with nothing but one.
fn cut(schema: &Value) -> Value {
    let Some(keywords) = schema.as_object() else { return schema.clone() };
    let mut rest = BTreeMap::new();
    for (keyword, value) in keywords.iter().filter(|(keyword, value)| !is_cut(keyword, value)) {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => fields
                .iter()
                .map(|(name, schema)| (name.clone(), cut(schema)))
                .collect::<BTreeMap<_, _>>()
                .into_iter()
                .collect(),
            (_, Value::Array(values)) => values.iter().map(cut).collect(),
            _ => cut(value),
        };
        rest.insert(keyword.clone(), value);
    }
    match rest.get("allOf").and_then(Value::as_array) {
        Some(all) if rest.len() == 1 && all.len() == 1 => all[0].clone(),
        _ => rest.into_iter().collect(),
    }
}

/// Returns true for a keyword that the document lacks. The default of a field that is no pointer in Go says nothing.
fn is_cut(keyword: &str, value: &Value) -> bool {
    match keyword {
        "default" => [json!({}), json!(""), json!(0), json!(false)].contains(value),
        "format" => value != "int-or-string",
        _ => CUT.contains(&keyword),
    }
}

/// Returns the names of the schemas that a schema refers to.
pub(super) fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next());
            own.map(str::to_owned).into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn sorted(object: &Value) -> Value {
    object
        .as_object()
        .unwrap()
        .iter()
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

#[test]
fn the_document_of_built_in_kinds_is_cut_out_of_those_of_the_server() {
    let Some(cluster) = Cluster::shared() else { return };
    let served = cluster.client().get("/version").unwrap().body["gitVersion"].as_str().unwrap().to_owned();
    let embedded: Value = serde_json::from_str(EMBEDDED).unwrap();
    let published = Published::of(cluster);
    if version() == KubernetesVersion::DEFAULT {
        let mut text = Vec::new();
        let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, format);
        serde::Serialize::serialize(&published.cut(&served), &mut serializer).unwrap();
        let text = String::from_utf8(text).unwrap() + "\n";
        assert_generated(FILE, &text, "make manifests");
    }
    // A newer server has more fields, and an older one fewer. What is embedded merges in the same way.
    let mut lists = 0;
    for (name, schema) in embedded["components"]["schemas"].as_object().unwrap() {
        let none = Map::new();
        for (field, property) in schema["properties"].as_object().unwrap_or(&none) {
            let Some(now) = published.schema(name).and_then(|served| served["properties"].get(field)) else {
                assert!(version() < KubernetesVersion::DEFAULT, "{name}.{field} is not served");
                continue;
            };
            for (keyword, value) in
                property.as_object().unwrap().iter().filter(|(it, _)| it.starts_with("x-kubernetes-"))
            {
                assert_eq!(&now[keyword], value, "{name}.{field}");
                lists += 1;
            }
        }
    }
    assert!(lists > 100, "{lists}");
}

#[test]
fn the_document_of_built_in_kinds_is_small() {
    assert!(EMBEDDED.len() <= MOST_BYTES, "{} bytes", EMBEDDED.len());
}

/// A kind that a server has is no misspelt one. A version of a kind with unions is embedded, has none, or is no release.
#[test]
fn no_kind_of_a_server_is_taken_for_another_one() {
    let Some(cluster) = Cluster::shared() else { return };
    let get = |path: &str| cluster.client().get(path).unwrap().body;
    let groups = get("/apis");
    let versions = groups["groups"].as_array().unwrap().iter().flat_map(|group| group["versions"].as_array().unwrap());
    let versions = versions.map(|version| version["groupVersion"].as_str().unwrap().split_once('/').unwrap());
    let embedded = OpenApi::parse(EMBEDDED).unwrap();
    let known = KnownKinds::new(embedded.kinds());
    let mut kinds = 0;
    for (group, version) in versions.chain([("", "v1")]) {
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let resources = get(&path);
        for resource in resources["resources"].as_array().unwrap() {
            let is_subresource = resource["name"].as_str().unwrap().contains('/');
            let kind = GroupKind::new(group, resource["kind"].as_str().unwrap()).at(version);
            if is_subresource || !is_built_in_group(group) {
                continue;
            }
            kinds += 1;
            let meant = known.near(&kind);
            let is_no_release = version.contains("alpha") || version.contains("beta");
            let is_right = meant.is_none_or(|meant| is_no_release && meant.kind.group_kind() == kind.group_kind());
            assert!(is_right, "{kind:?} is taken for {meant:?}");
        }
    }
    assert!(kinds > 50, "{kinds}");
}
