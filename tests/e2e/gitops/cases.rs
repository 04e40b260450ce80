//! The cases that GitOps tools play, and the kinds and declarations that they need.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::PRESETS;
use crate::contrib::definitions_of;
use crate::support::cluster::AnyCluster;
use crate::support::kind::{Kind, SAMPLES_GROUP, parse};

/// The samples whose CRDs declare unions.
const SAMPLES: [&str; 7] = ["backup", "gateway", "monitor", "pipeline", "rollout", "route", "source"];

/// The contributed presets, and the groups of their kinds.
const CONTRIBUTED: [(&str, &[&str]); 2] =
    [("cert-manager", &["cert-manager.io"]), ("flux", &["helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io"])];

/// A stored object, and a manifest that is applied over it.
pub(super) struct Case {
    pub(super) title: String,
    pub(super) stored: Stored,
    pub(super) manifest: Value,
    pub(super) expected: Expected,
}

/// The origin of the stored object.
pub(super) enum Stored {
    /// Another client created it.
    Created(Value),
    /// The tool applied it before.
    Applied(Value),
}

/// The expected answer to each apply.
pub(super) enum Expected {
    /// It is stored as it is.
    Stored,
    /// It is refused.
    Refused,
    /// It contradicts itself, and is refused with a message that has this part. `None`: it is stored, because no rule denies it.
    Contradicts(Option<String>),
}

/// A row of `gitops/presets.yaml`, which explains the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    title: String,
    object: Value,
    from: Value,
    to: Value,
    both: Value,
    refusal: Option<String>,
}

/// Installs the kinds of the samples and of the contributed presets with their declarations, and returns the cases.
pub(super) fn install(cluster: &AnyCluster) -> Vec<Case> {
    let mut cases = Vec::new();
    let kubectl = cluster.kubectl("gitops");
    let register = |group: &str| {
        if let Some(registration) = cluster.registration(group) {
            kubectl.apply(&registration.to_string()).accepted();
        }
    };
    for sample in SAMPLES {
        let kind = Kind::new(cluster, sample);
        kind.apply_definition();
        register(kind.group());
        cases.extend(cases_of_sample(&kind));
    }
    let declared = Kind::in_group(cluster, "declared", SAMPLES_GROUP.to_owned());
    declared.apply_definition_text(&declared.authored());
    kubectl.apply(&declared.read("declaration.yaml")).accepted();
    register(declared.group());
    cases.extend(cases_of_sample(&declared));

    for (preset, groups) in CONTRIBUTED {
        for group in groups {
            for definition in definitions_of(group) {
                kubectl.apply(&definition.to_string()).accepted();
                let name = definition["metadata"]["name"].as_str().unwrap();
                kubectl.run(&["wait", "--for=condition=Established", "crd", name]).accepted();
            }
            register(group);
        }
        kubectl.run(&["apply", "-f", &format!("{PRESETS}/contrib/{preset}.yaml")]).accepted();
    }
    let rows: Vec<Row> = serde_json::from_value(parse(include_str!("presets.yaml"))).unwrap();
    cases.extend(rows.iter().flat_map(cases_of_row));
    cases
}

impl Case {
    /// Returns true if the manifest differs from the stored object in an item of a list or in a value of a map.
    pub(super) fn is_of_collection(&self) -> bool {
        let (Stored::Created(stored) | Stored::Applied(stored)) = &self.stored;
        // The steps of a Pipeline are a map.
        self.manifest["kind"] == "Pipeline" || differs_in_lists(Some(stored), &self.manifest)
    }

    /// Returns the line of the program's input.
    pub(super) fn to_json(&self) -> Value {
        let (field, stored) = match &self.stored {
            Stored::Created(object) => ("stored", object),
            Stored::Applied(object) => ("storedByApply", object),
        };
        json!({"case": self.title, field: stored, "manifest": self.manifest})
    }
}

/// Returns the cases of a sample's files: a valid object that is kept, and, of each object that is normalised, the switch, and the
/// manifest with the old member beside the new one.
fn cases_of_sample(kind: &Kind<'_>) -> Vec<Case> {
    let files = kind.files();
    let read = |file: &str| files.iter().any(|it| it == file).then(|| named(parse(&kind.read(file))));
    let case = |title: &str, stored, manifest, expected| {
        let title = format!("{}: {title}", kind.sample());
        Case { title, stored, manifest, expected }
    };
    let valid = files.iter().find(|file| file.starts_with("valid-")).expect("a sample has a valid object");
    let kept = read(valid).unwrap();
    let mut cases = vec![case("kept", Stored::Applied(kept.clone()), kept, Expected::Stored)];
    for stem in files.iter().filter_map(|file| file.strip_suffix(".new.yaml")) {
        let [old, new, want] = ["old", "new", "want"].map(|part| read(&format!("{stem}.{part}.yaml")));
        let (new, want) = (new.unwrap(), want.unwrap());
        match old {
            Some(old) if stem.starts_with("rejected-") => {
                cases.push(case(stem, Stored::Applied(old), new, Expected::Refused));
            }
            Some(old) => {
                let contradicts = (new != want).then(|| {
                    let expected = Expected::Contradicts(Some("the applied manifest sets ".to_owned()));
                    case(&format!("{stem}, contradiction"), Stored::Applied(old.clone()), new, expected)
                });
                cases.push(case(&format!("{stem}, switch"), Stored::Created(old), want, Expected::Stored));
                cases.extend(contradicts);
            }
            None if stem.starts_with("normalized-") => {
                cases.push(case(stem, Stored::Created(want), new, Expected::Stored));
            }
            None => {}
        }
    }
    cases
}

fn differs_in_lists(stored: Option<&Value>, manifest: &Value) -> bool {
    match manifest {
        Value::Object(fields) => {
            fields.iter().any(|(name, field)| differs_in_lists(stored.and_then(|stored| stored.get(name)), field))
        }
        Value::Array(_) => stored != Some(manifest),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn cases_of_row(row: &Row) -> [Case; 3] {
    let [from, to, both] = [&row.from, &row.to, &row.both].map(|part| {
        let mut object = named(row.object.clone());
        json_patch::merge(&mut object, part);
        object
    });
    let case = |title: &str, stored, manifest, expected| {
        let title = format!("{}: {title}", row.title);
        Case { title, stored, manifest, expected }
    };
    [
        case("switch over another client", Stored::Created(from.clone()), to.clone(), Expected::Stored),
        case("switch", Stored::Applied(from.clone()), to, Expected::Stored),
        case("contradiction", Stored::Applied(from), both, Expected::Contradicts(row.refusal.clone())),
    ]
}

/// Returns the object with a name that the program replaces.
fn named(mut object: Value) -> Value {
    object["metadata"] = json!({"name": "x", "namespace": "default"});
    object
}
