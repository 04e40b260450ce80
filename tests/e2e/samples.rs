//! The samples as they are on disk, in their own group: every object does what its file's name says.

use serde_json::{Value, json};

use crate::cluster::AnyCluster;
use crate::kind::{Kind, SAMPLES_GROUP, parse};
use crate::kubectl::Output;
use crate::load::causes;

#[test]
fn every_object_of_the_samples_does_what_its_file_says() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let mut seen = 0;
    for sample in ["rollout", "route", "monitor", "source", "backup", "pipeline", "gateway"] {
        let kind = Kind::in_group(cluster, sample, SAMPLES_GROUP.to_owned());
        // On a cluster that was there before this run, so may be the objects.
        kind.delete_definition();
        kind.kubectl().apply(&kind.annotated()).accepted().not_warned_by_the_server();
        kind.wait_until_served();
        kind.enforce();
        for file in kind.files() {
            let case = Case::new(&kind, sample, &file);
            if file.starts_with("valid-") {
                case.is_valid(&file);
            } else if let Some(name) = file.strip_suffix(".new.yaml") {
                if name.starts_with("normalized-") { case.is_normalized(name) } else { case.is_rejected(name) }
            } else {
                continue;
            }
            seen += 1;
        }
    }
    assert!(seen >= 7 * 3, "the samples have objects of each sort, not {seen} in all");
}

/// One case of a sample, with an object name of its own.
struct Case<'k> {
    kind: &'k Kind<'k>,
    sample: &'k str,
    name: String,
}

impl<'k> Case<'k> {
    fn new(kind: &'k Kind<'k>, sample: &'k str, file: &str) -> Self {
        Self { kind, sample, name: file.replace('.', "-") }
    }

    fn is_valid(&self, file: &str) {
        let object = self.object(file, &self.name);
        self.create(&object).accepted().warned(&[]);
        // The schema's defaults may have joined it; nothing of it is gone.
        let stored = self.kind.spec(&self.name);
        let mut merged = stored.clone();
        json_patch::merge(&mut merged, &object["spec"]);
        assert_eq!(merged, stored, "{}/{file}", self.sample);
    }

    fn is_normalized(&self, name: &str) {
        self.write(name).accepted();
        // The expected object is stored as well, so that it gets the schema's defaults, too.
        let want = format!("{}-want", self.name);
        self.create(&self.object(&format!("{name}.want.yaml"), &want)).accepted().warned(&[]);
        assert_eq!(self.kind.spec(&self.name), self.kind.spec(&want), "{}/{name}", self.sample);
    }

    fn is_rejected(&self, name: &str) {
        let want = parse(&self.kind.read(&format!("{name}.want.yaml")));
        let want = causes(&json!({"details": want}));
        let output = self.write(name);
        match want.iter().find(|cause| cause.contains("Unsupported value")) {
            // The schema's enum has it as well, so the API server says that first and alone, with the values in its order.
            Some(cause) => {
                let cause = cause.split("supported values").next().expect("a split has a first part");
                output.refused(&self.kind.invalid(&self.name, &[cause]))
            }
            None => {
                output.rejected(&self.kind.invalid(&self.name, &want.iter().map(String::as_str).collect::<Vec<_>>()))
            }
        };
    }

    /// Creates the new object, or replaces the old one by it where there is an old one.
    fn write(&self, name: &str) -> Output {
        let new = self.object(&format!("{name}.new.yaml"), &self.name);
        let old = format!("{name}.old.yaml");
        if !self.kind.files().contains(&old) {
            return self.create(&new);
        }
        self.create(&self.object(&old, &self.name)).accepted();
        self.kind.kubectl().run_with(&["replace", "-f", "-"], &new.to_string())
    }

    fn create(&self, object: &Value) -> Output {
        self.kind.kubectl().run_with(&["create", "-f", "-"], &object.to_string())
    }

    fn object(&self, file: &str, name: &str) -> Value {
        let mut object = parse(&self.kind.read(file));
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = "default".into();
        object
    }
}
