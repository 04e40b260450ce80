//! A kind under test: a sample's CRD in an API group of its own, so that tests that run side by side never meet.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::enforcement;
use crate::native;
use crate::support::client_side;
use crate::support::cluster::AnyCluster;
use crate::support::http::{Answer, Client};
use crate::support::kubectl::{Kubectl, Output};
use crate::support::resource::Resource;
use crate::support::webhook::{Webhook, kube_unions};
use fixtures::wait::{SETTLED, eventually, for_some};

/// The group of the samples as they are on disk.
pub(crate) const SAMPLES_GROUP: &str = "samples.kube-unions.dev";

/// The samples whose CRDs declare unions.
pub(crate) const SAMPLES: [&str; 7] = ["backup", "gateway", "monitor", "pipeline", "rollout", "route", "source"];

/// A kind, and a kubectl of its own.
pub(crate) struct Kind<'c> {
    cluster: &'c AnyCluster,
    sample: PathBuf,
    api: Resource,
    kubectl: Kubectl,
}

impl<'c> Kind<'c> {
    /// Returns the kind of a sample's folder, in a new group. Nothing is installed yet.
    pub(crate) fn new(cluster: &'c AnyCluster, sample: &str) -> Self {
        Self::in_group(cluster, sample, cluster.new_group())
    }

    /// The kind of a sample's folder in the given group.
    pub(crate) fn in_group(cluster: &'c AnyCluster, sample: &str, group: String) -> Self {
        let folder = samples().join(sample);
        let mut crd = parse(&read(&folder.join("crd.yaml")));
        crd["spec"]["group"] = Value::String(group);
        Self { sample: folder, ..Self::of_definition(cluster, &crd) }
    }

    /// Returns the kind of a CRD, which is like no sample. Nothing is installed yet.
    pub(crate) fn of_definition(cluster: &'c AnyCluster, crd: &Value) -> Self {
        let api = Resource::of_definition(crd);
        let kubectl = cluster.kubectl(&format!("{}-{}", api.group, api.plural));
        Self { cluster, sample: PathBuf::new(), api, kubectl }
    }

    /// The sample that it is like.
    pub(crate) fn sample(&self) -> &str {
        self.sample.file_name().and_then(OsStr::to_str).expect("a sample's folder has a name")
    }

    pub(crate) fn group(&self) -> &str {
        &self.api.group
    }

    /// The name of the kind, for example `Rollout`.
    pub(crate) fn name(&self) -> &str {
        &self.api.kind
    }

    pub(crate) fn api(&self) -> &Resource {
        &self.api
    }

    pub(crate) fn cluster(&self) -> &AnyCluster {
        self.cluster
    }

    pub(crate) fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// A client of the API server with all rights.
    pub(crate) fn client(&self) -> &Client {
        self.cluster.client()
    }

    /// The name of the CRD.
    pub(crate) fn definition_name(&self) -> String {
        format!("{}.{}", self.api.plural, self.api.group)
    }

    /// The resource, said so that kubectl cannot take another group's.
    pub(crate) fn resource(&self) -> String {
        format!("{}.v1.{}", self.api.plural, self.api.group)
    }

    /// The sample's CRD as its author wrote it, with the extension in its schema.
    pub(crate) fn authored(&self) -> String {
        self.read("crd.yaml")
    }

    /// The same, passed through `kube-unions annotate`.
    pub(crate) fn annotated(&self) -> String {
        annotate(&self.authored())
    }

    /// Returns the sample's CRD without unions.
    pub(crate) fn without_unions(&self) -> String {
        let mut crd = parse(&self.authored());
        forget_unions(&mut crd);
        crd.to_string()
    }

    /// A file of the sample's folder, for this kind's group.
    pub(crate) fn read(&self, file: &str) -> String {
        read(&self.sample.join(file)).replace(SAMPLES_GROUP, self.group())
    }

    /// The names of the files in the sample's folder, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.sample).expect("a sample has a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// An object of this kind.
    pub(crate) fn object(&self, name: &str, spec: &Value) -> Value {
        self.api.object(name, &json!({"spec": spec}))
    }

    /// Installs the annotated CRD.
    pub(crate) fn apply_definition(&self) {
        self.apply_definition_text(&self.annotated());
    }

    /// Installs the CRD without its unions, so that invalid objects can be stored.
    pub(crate) fn apply_definition_without_unions(&self) {
        self.apply_definition_text(&self.without_unions());
    }

    /// Installs the annotated CRD, changed.
    pub(crate) fn apply_definition_with(&self, change: impl FnOnce(&mut Value)) {
        let mut crd = parse(&self.authored());
        change(&mut crd);
        self.apply_definition_text(&annotate(&crd.to_string()));
    }

    /// Installs a CRD under strict validation and waits until the API server serves its kind.
    pub(crate) fn apply_definition_text(&self, crd: &str) {
        apply(self.client(), &parse(crd));
        self.wait_until_served();
    }

    /// Waits until objects of this kind can be listed and discovery has the kind.
    pub(crate) fn wait_until_served(&self) {
        let listed = || self.client().get(&self.path("")).is_ok_and(|answer| answer.is_success());
        let discovered = || {
            let resources =
                self.client().get(&format!("/apis/{}/v1", self.group())).ok()?.body.get_mut("resources")?.take();
            resources.as_array()?.iter().find(|resource| resource["name"] == *self.api.plural).map(drop)
        };
        let served = eventually(SETTLED, || listed() && discovered().is_some());
        assert!(served, "the API server never served {}", self.resource());
    }

    /// Registers the cluster's webhook for this group and waits until unions are enforced.
    pub(crate) fn enforce(&self) {
        self.send_to_webhook();
        enforcement::wait_until_seen(self, self.cluster.steady());
    }

    /// Registers the cluster's webhook for this group.
    pub(crate) fn send_to_webhook(&self) {
        if let Some(registration) = self.cluster.registration(self.group()) {
            apply(self.client(), &registration);
        }
    }

    /// Registers another webhook for this group and waits until unions are enforced.
    pub(crate) fn register(&self, webhook: &Webhook) {
        apply(self.client(), &webhook.registration(self.group()));
        enforcement::wait_until_seen(self, Duration::ZERO);
    }

    /// The path of an object, or with an empty name of the collection.
    pub(crate) fn path(&self, name: &str) -> String {
        self.api.path(name)
    }

    /// Asks the API server to create an object, without storing it.
    pub(crate) fn post_dry(&self, object: &Value) -> Result<Answer, String> {
        self.client().post(&format!("{}?dryRun=All", self.path("")), object)
    }

    /// `kubectl apply` of an object with this spec.
    pub(crate) fn apply(&self, name: &str, spec: &Value) -> Output {
        self.kubectl.apply(&self.object(name, spec).to_string())
    }

    /// `kubectl patch --type=merge`.
    pub(crate) fn merge(&self, name: &str, patch: &Value) -> Output {
        self.kubectl.run(&["patch", &self.resource(), name, "--type=merge", "-p", &patch.to_string()])
    }

    /// `kubectl label`.
    pub(crate) fn label(&self, name: &str, label: &str) -> Output {
        self.kubectl.run(&["label", &self.resource(), name, "--overwrite", label])
    }

    /// The object as it is stored.
    #[track_caller]
    pub(crate) fn stored(&self, name: &str) -> Value {
        let answer = self.client().get(&self.path(name)).expect("the API server answers");
        assert!(answer.is_success(), "{name} cannot be read: {answer:?}");
        answer.body
    }

    /// The object's spec as it is stored.
    #[track_caller]
    pub(crate) fn spec(&self, name: &str) -> Value {
        self.stored(name)["spec"].clone()
    }

    /// Waits until the watch cache of the API server has this version of an object.
    ///
    /// The API server prepares an update from its cache. If the cache is behind, it asks the webhooks about an outdated object,
    /// keeps their warnings and their effects on metrics, and then asks again.
    #[track_caller]
    pub(crate) fn wait_until_cached(&self, object: &Value) {
        let metadata = &object["metadata"];
        let path = format!("{}?resourceVersion=0", self.path(metadata["name"].as_str().expect("objects have names")));
        let is_cached = || {
            let answer = self.client().get(&path).expect("the API server answers");
            answer.body["metadata"]["resourceVersion"] == metadata["resourceVersion"]
        };
        assert!(eventually(SETTLED, is_cached), "the watch cache never has {metadata}");
    }

    /// Deletes the CRD and waits until it is gone.
    pub(crate) fn delete_definition(&self) {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", self.definition_name());
        self.client().delete(&path).expect("the API server answers");
        for_some(SETTLED, || (self.client().get(&path).expect("the API server answers").status == 404).then_some(()))
            .expect("a CRD that is deleted goes away");
    }

    /// Returns the first words of a rejection of this kind by the API server and kubectl.
    pub(crate) fn invalid(&self, name: &str, causes: &[&str]) -> String {
        let subject = format!("The {} \"{name}\" is invalid:", self.name());
        match causes {
            [cause] => format!("{subject} {cause}"),
            _ => causes.iter().fold(format!("{subject} "), |text, cause| format!("{text}\n* {cause}")),
        }
    }
}

/// Applies an object without a namespace, or all of a list, under strict validation, by the requests of `kubectl apply`.
#[track_caller]
pub(crate) fn apply(client: &Client, object: &Value) {
    let items = object["items"].as_array().map_or(std::slice::from_ref(object), Vec::as_slice);
    for item in items {
        let answer = client_side::apply(client, &native::collection(item), item);
        assert!(answer.as_ref().is_none_or(Answer::is_success), "{answer:?}");
    }
}

/// `kube-unions annotate`, as a pipe.
pub(crate) fn annotate(crd: &str) -> String {
    kube_unions(&["annotate", "-f", "-"], crd).accepted().stdout
}

/// YAML or JSON text as a value.
pub(crate) fn parse(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("cannot parse: {error}\n{text}"))
}

/// The documents of a YAML file, those that only hold comments left out.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(|document| document.strip_prefix("---\n").unwrap_or(document));
    documents.filter(|text| text.lines().any(|line| !line.is_empty() && !line.starts_with('#'))).map(parse).collect()
}

/// Removes the extension everywhere.
pub(crate) fn forget_unions(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove("x-kubernetes-unions");
        fields.values_mut().for_each(forget_unions);
    } else if let Some(items) = value.as_array_mut() {
        items.iter_mut().for_each(forget_unions);
    }
}

/// The schema of `spec` in a CRD.
pub(crate) fn spec(crd: &mut Value) -> &mut Value {
    &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
}

/// The folder of the samples.
pub(crate) fn samples() -> PathBuf {
    fixtures::files::root().join("manifests/samples")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
}
