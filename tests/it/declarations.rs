//! What of a CRD's declarations is in force, and what is reported: rows under `tests/cases/declarations`.

use crate::api_server::{Write, definition, reversed, thing, version};
use crate::laws::admit_lawfully;
use crate::manifests::{files, parse};
use kube_unions::catalog::{Builder, Catalog};
use kube_unions::declaration::{Definition, Fault, Severity};
use kube_unions::union::{Form, Union};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    description: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    description: String,
    /// The CRD that was applied before this one.
    before: Option<Crd>,
    // `flatten` would take unknown keys in silence, so the fields of `Crd` are written out.
    schema: Option<Value>,
    versions: Option<BTreeMap<String, Value>>,
    annotation: Option<Value>,
    annotation_text: Option<String>,
    last_applied: Option<BTreeMap<String, Value>>,
    last_applied_text: Option<String>,
    /// `VERSION PATH: [DISCRIMINATOR] VALUE=MEMBER…  (FORM form, from SOURCE)`, a `?` after an optional member.
    want_unions: Vec<String>,
    /// All faults there are, in any order.
    #[serde(default)]
    want_faults: Vec<WantedFault>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Crd {
    schema: Option<Value>,
    versions: Option<BTreeMap<String, Value>>,
    annotation: Option<Value>,
    annotation_text: Option<String>,
    last_applied: Option<BTreeMap<String, Value>>,
    last_applied_text: Option<String>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct WantedFault {
    severity: WantedSeverity,
    version: Option<String>,
    path: String,
    source: String,
    /// What the message must name.
    says: Vec<String>,
}

#[derive(Deserialize, Debug, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum WantedSeverity {
    Error,
    Warning,
}

impl Crd {
    fn of(case: &Case) -> Self {
        Self {
            schema: case.schema.clone(),
            versions: case.versions.clone(),
            annotation: case.annotation.clone(),
            annotation_text: case.annotation_text.clone(),
            last_applied: case.last_applied.clone(),
            last_applied_text: case.last_applied_text.clone(),
        }
    }

    fn document(&self) -> Value {
        let mut annotations = Map::new();
        let written = self.annotation.as_ref().map(Value::to_string);
        if let Some(text) = written.or_else(|| self.annotation_text.clone()) {
            annotations.insert("kube-unions.dev/unions".to_owned(), json!(text));
        }
        let versions = |schemas: &BTreeMap<String, Value>| -> Vec<Value> {
            schemas.iter().map(|(name, schema)| version(name, schema, false)).collect()
        };
        let applied = self.last_applied.as_ref().map(|schemas| definition(&Map::new(), &versions(schemas)).to_string());
        if let Some(text) = applied.or_else(|| self.last_applied_text.clone()) {
            annotations.insert("kubectl.kubernetes.io/last-applied-configuration".to_owned(), json!(text));
        }
        match (&self.schema, &self.versions) {
            (Some(schema), None) => definition(&annotations, &[version("v1", schema, false)]),
            (None, Some(schemas)) => definition(&annotations, &versions(schemas)),
            _ => panic!("a CRD has either `schema` or `versions`"),
        }
    }
}

impl Case {
    fn hold(&self, arrange: impl Fn(&Value) -> Value) {
        let mut builder = Builder::new();
        if let Some(before) = &self.before {
            builder.apply(Definition::from_json(&arrange(&before.document()).to_string()).unwrap());
        }
        let document = arrange(&Crd::of(self).document());
        builder.apply(Definition::from_json(&document.to_string()).unwrap());
        let catalog = builder.build();
        assert_eq!(unions(&catalog), self.want_unions);
        let faults = catalog.faults();
        assert!(faults.is_sorted(), "{faults:#?}");
        assert_eq!(faults.len(), self.want_faults.len(), "{faults:#?}");
        for wanted in &self.want_faults {
            assert!(faults.iter().any(|fault| wanted.is(fault)), "{wanted:?} is not among {faults:#?}");
        }
        for fault in faults {
            well_told(fault, &document);
        }

        // Applied once more, nothing is another way: what stays in force stays so.
        builder.apply(Definition::from_json(&document.to_string()).unwrap());
        let again = builder.build();
        assert_eq!(unions(&again), self.want_unions);
        assert_eq!(again.faults(), faults);
    }
}

impl WantedFault {
    fn is(&self, fault: &Fault) -> bool {
        let severity = match self.severity {
            WantedSeverity::Error => Severity::Error,
            WantedSeverity::Warning => Severity::Warning,
        };
        fault.severity == severity
            && fault.version == self.version
            && fault.path == self.path
            && fault.source.is_some_and(|source| source.to_string() == self.source)
            && self.says.iter().all(|word| fault.message.contains(word))
    }
}

/// Whatever the fault, its message can be shown as it is and its pointer leads somewhere.
fn well_told(fault: &Fault, document: &Value) {
    let line = fault.to_string();
    assert!(line.starts_with(&fault.definition) && line.contains(&fault.path) && !line.contains('\n'), "{line}");
    assert!(line.contains(fault.version.as_deref().unwrap_or_default()), "{line}");
    assert!(!fault.message.ends_with('.') && !fault.message.starts_with(char::is_uppercase), "{line}");
    assert!(document.pointer(&fault.pointer).is_some(), "{line}: nothing is at {}", fault.pointer);
}

fn unions(catalog: &Catalog) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in catalog.entries() {
        let lookup = catalog.lookup(&entry.gvk().group, &entry.gvk().version, &entry.gvk().kind).unwrap();
        assert_eq!(lookup.ordinal(), entry.ordinal());
        lines.extend(entry.plan().unions().iter().map(|union| format!("{} {}", entry.gvk().version, told(union))));
    }
    lines.sort();
    lines
}

fn told(union: &Union) -> String {
    let choices = union.choices().iter().map(|choice| match choice.member() {
        Some(member) if choice.optional() && union.form() == Form::Map => format!("{}={member}?", choice.value()),
        Some(member) => format!("{}={member}", choice.value()),
        None => choice.value().to_owned(),
    });
    let words: Vec<_> = union.discriminator().map(ToOwned::to_owned).into_iter().chain(choices).collect();
    let form = match union.form() {
        Form::List => "list",
        Form::Map => "map",
    };
    format!("{}: {} ({form} form, from {})", union.path(), words.join(" "), union.source())
}

#[test]
fn every_case_of_a_declaration_holds() {
    let mut failures = Vec::new();
    let mut cases = 0;
    for (path, text) in files("tests/cases/declarations", "yaml") {
        let suite: Suite = parse(&path, &text);
        assert!(!suite.description.is_empty() && !suite.cases.is_empty(), "{path} says nothing");
        for case in suite.cases {
            cases += 1;
            let held = catch_unwind(AssertUnwindSafe(|| {
                case.hold(Value::clone);
                case.hold(reversed);
            }));
            if held.is_err() {
                failures.push(format!("{path}: {}", case.description));
            }
        }
    }
    assert!(cases > 40, "only {cases} cases were found");
    assert!(failures.is_empty(), "{} of {cases} cases do not hold:\n  {}", failures.len(), failures.join("\n  "));
}

#[test]
fn a_definition_that_cannot_be_read_keeps_what_was_good_of_it() {
    let schema = json!({"type": "object", "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let good = definition(&Map::new(), &[version("v1", &schema, false)]);
    let mut builder = Builder::new();
    builder.apply(Definition::from_json(&good.to_string()).unwrap());
    let in_force = unions(&builder.build());
    assert_eq!(in_force.len(), 1);

    let mut broken = good.clone();
    broken["spec"]["versions"] = json!(7);
    let error = Definition::from_json(&broken.to_string()).unwrap_err();
    let name = good["metadata"]["name"].as_str().unwrap();
    builder.reject(name, Fault::unreadable(name, error.to_string()));
    let catalog = builder.build();
    assert_eq!(unions(&catalog), in_force);
    let [fault] = catalog.faults() else { panic!("{:?}", catalog.faults()) };
    assert!(fault.message.contains("spec.versions") && fault.message.contains("last good version"), "{fault}");

    builder.apply(Definition::from_json(&good.to_string()).unwrap());
    assert!(builder.build().faults().is_empty());
    assert!(builder.remove(name));
    assert!(!builder.remove(name));
    assert_eq!(unions(&builder.build()), Vec::<String>::new());
}

#[test]
fn documents_that_are_no_definitions_are_refused_with_the_reason() {
    let good = definition(&Map::new(), &[version("v1", &json!({"type": "object"}), false)]);
    let with = |pointer: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed.to_string()
    };
    for (text, says) in [
        (String::new(), "EOF"),
        ("7".to_owned(), "CustomResourceDefinition"),
        (with("/kind", json!("Deployment")), "`Deployment`"),
        (with("/apiVersion", json!("apiextensions.k8s.io/v1beta1")), "`apiextensions.k8s.io/v1beta1`"),
        (with("/metadata", json!({})), "name"),
        (with("/spec/versions", json!([])), "has no schema"),
        (with("/spec/versions/0/schema", json!({})), "has no schema"),
        (with("/spec/versions/0/schema", Value::Null), "has no schema"),
        (with("/spec/versions/0/schema/openAPIV3Schema", json!("text")), "spec.versions[0].schema.openAPIV3Schema"),
        (with("/spec/versions/0/name", json!(7)), "spec.versions[0].name"),
    ] {
        let error = Definition::from_json(&text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn a_union_has_as_many_members_as_can_be_told_apart() {
    for (count, fits) in [(1, true), (127, true), (128, true), (129, false), (300, false)] {
        let names: Vec<_> = (0..count).map(|number| format!("m{number:03}")).collect();
        let properties: Map<_, _> = names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
        let values: Map<_, _> = names.iter().map(|name| (name.clone(), json!(name))).collect();
        let schema = json!({"type": "object", "properties": properties, "x-kubernetes-unions": [{"fields-to-discriminateBy": values}]});
        let mut builder = Builder::new();
        builder.apply(
            Definition::from_json(&definition(&Map::new(), &[version("v1", &schema, false)]).to_string()).unwrap(),
        );
        let catalog = builder.build();
        assert_eq!(catalog.entries().len(), usize::from(fits), "{count} members: {:?}", catalog.faults());
        assert_eq!(catalog.faults().is_empty(), fits, "{count} members: {:?}", catalog.faults());
        if !fits {
            continue;
        }
        // Every one of them is seen and cleared, the last as well as the first.
        let old = thing(&json!({names[0].clone(): "x"}));
        let mut new = old.clone();
        new[names[count - 1].as_str()] = json!("y");
        let answer = admit_lawfully(&catalog, &Write::new(Some(old), new));
        assert_eq!(answer.operations.len(), usize::from(count > 1), "{count} members: {answer:?}");
        assert_eq!(answer.object()[names[count - 1].as_str()], json!("y"));
    }
}
