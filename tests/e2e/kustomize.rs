//! The real kustomize: patches of custom resources with the document of `kube-unions compile --to kustomize`, and without it; and functions.

mod builtin_kinds;
mod functions;
mod rows;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::support::assets;
use crate::support::cluster::is_left_out;
use crate::support::kind::documents;
use crate::support::kubectl::{self, Output};
use crate::support::process::Workspace;
use crate::support::webhook::kube_unions;

const CRD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/kustomize/crd.yaml");

/// The name of the OpenAPI document in a [`Kustomization`].
const DOCUMENT: &str = "openapi.json";

/// A folder with a kustomization.
struct Kustomization {
    binary: &'static Path,
    workspace: Workspace,
}

impl Kustomization {
    /// None when the user left these tests out.
    fn new() -> Option<Self> {
        static BINARY: LazyLock<PathBuf> =
            LazyLock::new(|| assets::tool("kustomize").unwrap_or_else(|message| panic!("{message}")));
        (!is_left_out()).then(|| Self { binary: &BINARY, workspace: Workspace::new("kustomize") })
    }

    /// Writes the document of the CRDs of these tests, and returns it.
    fn write_document(&self) -> Value {
        let output = kube_unions(&["compile", "--to", "kustomize", "--from", CRD], "").accepted();
        self.workspace.write(DOCUMENT, &output.stdout);
        output.json()
    }

    /// Builds objects with fields of a kustomization. Functions may be run, with kube-unions in their `PATH`.
    fn run(&self, objects: &[Value], fields: &Value) -> Output {
        self.workspace.write("objects.yaml", &joined(objects));
        let mut kustomization = json!({"resources": ["objects.yaml"]});
        kustomization.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.workspace.write("kustomization.yaml", &kustomization.to_string());
        let arguments = ["build", "--enable-alpha-plugins", "--enable-exec", "."];
        let mut command = Command::new(self.binary);
        command.env_clear().env("PATH", assets::folder_of_the_program(&self.workspace)).env("NO_COLOR", "1");
        command.current_dir(self.workspace.path()).args(arguments);
        kubectl::run(command, &format!("kustomize {}", arguments.join(" ")), "")
    }
}

/// Returns objects as documents of one file.
fn joined(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// Returns patches as a kustomization has them.
fn patches(patches: &[Value]) -> Value {
    patches.iter().map(|patch| json!({"patch": patch.to_string()})).collect()
}

/// Returns an object of the CRDs of these tests.
fn object(kind: &str, metadata: &Value, spec: &Value) -> Value {
    json!({"apiVersion": "kustomize.example.com/v1", "kind": kind, "metadata": metadata, "spec": spec})
}

#[test]
fn an_object_without_namespaces_gets_none_with_our_document() {
    let Some(kustomization) = Kustomization::new() else { return };
    kustomization.write_document();
    let objects =
        [object("Stack", &json!({"name": "shop"}), &json!({})), object("Zone", &json!({"name": "east"}), &json!({}))];
    let namespaces = |fields: &Value| -> Vec<Value> {
        let built = documents(&kustomization.run(&objects, fields).accepted().stdout);
        built.iter().map(|object| object["metadata"]["namespace"].clone()).collect()
    };
    assert_eq!(namespaces(&json!({"namespace": "shop"})), ["shop", "shop"]);
    let with = namespaces(&json!({"namespace": "shop", "openapi": {"path": DOCUMENT}}));
    assert_eq!(with, [json!("shop"), Value::Null]);
}

#[test]
fn a_document_of_another_author_is_extended() {
    let Some(kustomization) = Kustomization::new() else { return };
    let kind = |kind: &str, group: &str| json!([{"group": group, "version": "v1", "kind": kind}]);
    let list = |field: &str, key: &str| {
        let list =
            json!({"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key});
        json!({"type": "object", "properties": {field: list}})
    };
    let definition = |of: Value, spec: Value| json!({"type": "object", "x-kubernetes-group-version-kind": of, "properties": {"spec": spec}});
    let given = json!({
        "swagger": "2.0",
        "info": {"title": "of another author"},
        "definitions": {
            "another.Ship": definition(kind("Ship", "another.example.com"), list("masts", "name")),
            // A kind that the CRDs describe, too: theirs counts.
            "another.Stack": definition(kind("Stack", "kustomize.example.com"), list("containers", "image")),
            // A built-in kind: this one counts.
            "another.Deployment": definition(kind("Deployment", "apps"), list("volumes", "name")),
        },
    });
    let given = kustomization.workspace.write("given.json", &given.to_string());
    let given = given.to_str().unwrap();
    let output = kube_unions(&["compile", "--to", "kustomize", "--from", CRD, "--add-to", given], "").accepted();
    assert_eq!(output.json()["info"]["title"], "of another author");
    kustomization.workspace.write(DOCUMENT, &output.stdout);

    let ship = |masts: Value| json!({"apiVersion": "another.example.com/v1", "kind": "Ship", "metadata": {"name": "a"}, "spec": {"masts": masts}});
    let deployment = |containers: Value| {
        let template = json!({"spec": {"containers": containers}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": template}})
    };
    let pod = |containers: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}});
    let stack = |containers: Value| object("Stack", &json!({"name": "a"}), &json!({"containers": containers}));
    let all =
        |items: &Value| [ship(items.clone()), deployment(items.clone()), pod(items.clone()), stack(items.clone())];
    let before = json!([{"name": "one", "image": "a"}, {"name": "two", "image": "b"}]);
    let patch = json!([{"name": "two", "image": "c"}]);
    let fields = json!({
        "openapi": {"path": DOCUMENT},
        "patches": patches(&all(&patch)),
        "sortOptions": {"order": "fifo"},
    });
    let built = documents(&kustomization.run(&all(&before), &fields).accepted().stdout);
    let merged = json!([{"name": "two", "image": "c"}, {"name": "one", "image": "a"}]);
    assert_eq!(built, [ship(merged.clone()), deployment(patch), pod(merged.clone()), stack(merged)]);
}
