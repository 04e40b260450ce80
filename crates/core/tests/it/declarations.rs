//! The unions in force and the faults that follow from a CRD and `UnionDeclaration`s: rows under
//! `tests/cases/declarations`.

mod random;

use fixtures::files::{files, parse};
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{GROUP, Write, declaration, definition, reversed, thing, version};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::declaration::{Actions, Declaration, Definition, Fault, FaultKind};
use kube_unions_core::union::{Form, SelectedMember, Union};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    description: String,
    /// The schema of each CRD that has neither a schema nor versions.
    schema: Option<Value>,
    cases: Vec<Case>,
}

impl Suite {
    /// Returns the cases of each file, with its path.
    fn all() -> impl Iterator<Item = (String, Vec<Case>)> {
        files("tests/cases/declarations", "yaml").into_iter().map(|(path, text)| {
            let Self { description, schema, mut cases } = parse(&path, &text);
            assert!(!description.is_empty() && !cases.is_empty(), "{path} says nothing");
            let complete = |crd: &mut Case| {
                if crd.schema.is_none() && crd.versions.is_none() {
                    crd.schema.clone_from(&schema);
                }
            };
            for case in &mut cases {
                complete(case);
                case.before.as_deref_mut().into_iter().for_each(complete);
            }
            (path, cases)
        })
    }
}

/// A CRD with its declarations, and the unions and faults that follow from them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    #[serde(default)]
    description: String,
    schema: Option<Value>,
    versions: Option<BTreeMap<String, Value>>,
    /// The versions that are not served.
    #[serde(default)]
    unserved: BTreeSet<String>,
    /// The path of the replicas in the scale subresource of every version.
    scale: Option<String>,
    annotation: Option<Value>,
    annotation_text: Option<String>,
    last_applied: Option<BTreeMap<String, Value>>,
    last_applied_text: Option<String>,
    /// The specs of `UnionDeclaration`s by name. Without a `target` the declaration is for the kind of the CRD.
    #[serde(default)]
    declarations: BTreeMap<String, Value>,
    /// The unions of a `UnionDeclaration` `one`, which says nothing else.
    unions: Option<Value>,
    /// The CRD that was applied before this one.
    before: Option<Box<Self>>,
    /// `VERSION PATH: [DISCRIMINATOR] VALUE=MEMBER…  (FORM form, from SOURCE)`, with a `?` after an optional member.
    #[serde(default)]
    want_unions: Vec<String>,
    /// All faults, in any order.
    #[serde(default)]
    want_faults: Vec<WantedFault>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct WantedFault {
    severity: String,
    version: Option<String>,
    path: String,
    source: Option<String>,
    /// The `UnionDeclaration` with the fault, and the pointer in it.
    declaration: Option<String>,
    pointer: Option<String>,
    /// Words that the message must contain.
    says: Vec<String>,
}

impl Case {
    /// Returns the documents of the `UnionDeclaration`s, by name.
    fn declarations(&self) -> BTreeMap<String, Value> {
        let document = |(name, spec): (String, Value)| {
            let mut document = declaration(&name, GROUP, "Thing", &spec);
            if let Some(target) = spec.get("target") {
                document["spec"]["target"] = target.clone();
            }
            (name, document)
        };
        let one = self.unions.iter().map(|unions| ("one".to_owned(), json!({"unions": unions})));
        self.declarations.clone().into_iter().chain(one).map(document).collect()
    }

    /// Applies the CRD with its declarations, in the order of their names, as every user of the builder does.
    fn apply(&self, builder: &mut Builder, arrange: impl Fn(&Value) -> Value) {
        let mut definition = Definition::from_json(&arrange(&self.document()).to_string()).unwrap();
        for (name, document) in self.declarations() {
            let (declaration, faults) = Declaration::from_json(&arrange(&document).to_string()).unwrap();
            assert_eq!(declaration.name(), name);
            definition.declare(&declaration);
            builder.report(&name, faults);
        }
        builder.apply(definition);
    }

    fn document(&self) -> Value {
        let mut annotations = Map::new();
        let written = self.annotation.as_ref().map(Value::to_string);
        if let Some(text) = written.or_else(|| self.annotation_text.clone()) {
            annotations.insert("kube-unions.dev/unions".to_owned(), json!(text));
        }
        let described = |name: &str, schema: &Value| {
            let mut version = version(name, schema, false);
            version["served"] = (!self.unserved.contains(name)).into();
            if let Some(path) = &self.scale {
                version["subresources"] =
                    json!({"scale": {"specReplicasPath": path, "statusReplicasPath": ".status.n"}});
            }
            version
        };
        let versions = |schemas: &BTreeMap<String, Value>| -> Vec<Value> {
            schemas.iter().map(|(name, schema)| described(name, schema)).collect()
        };
        let applied = self.last_applied.as_ref().map(|schemas| definition(&Map::new(), &versions(schemas)).to_string());
        if let Some(text) = applied.or_else(|| self.last_applied_text.clone()) {
            annotations.insert("kubectl.kubernetes.io/last-applied-configuration".to_owned(), json!(text));
        }
        match (&self.schema, &self.versions) {
            (Some(schema), None) => definition(&annotations, &[described("v1", schema)]),
            (None, Some(schemas)) => definition(&annotations, &versions(schemas)),
            _ => panic!("a CRD has either `schema` or `versions`"),
        }
    }

    /// Returns the kinds of the faults.
    fn hold(&self, arrange: impl Fn(&Value) -> Value) -> Vec<FaultKind> {
        let mut builder = Builder::new();
        if let Some(before) = &self.before {
            before.apply(&mut builder, &arrange);
            for name in before.declarations().keys() {
                builder.report(name, Vec::new());
            }
        }
        self.apply(&mut builder, &arrange);
        let catalog = builder.build();
        assert_eq!(unions(&catalog), self.want_unions);
        let faults = catalog.faults();
        assert!(faults.is_sorted(), "{faults:#?}");
        assert_eq!(faults.len(), self.want_faults.len(), "{faults:#?}");
        for fault in &self.want_faults {
            assert!(faults.iter().any(|found| fault.is(found)), "{fault:?} is not among {faults:#?}");
        }
        for fault in faults {
            let declarations = self.declarations();
            match &fault.declaration {
                Some(name) => well_told(fault, &declarations[name]),
                None => well_told(fault, &arrange(&self.document())),
            }
        }

        // A builder without a history gives the same catalog.
        let mut fresh = Builder::new();
        self.apply(&mut fresh, &arrange);
        assert_eq!((fresh.build().digest(), fresh.build().faults()), (catalog.digest(), catalog.faults()));

        // Applying the CRD again changes nothing.
        self.apply(&mut builder, &arrange);
        let again = builder.build();
        assert_eq!(unions(&again), self.want_unions);
        assert_eq!(again.faults(), faults);
        faults.iter().map(|fault| fault.kind).collect()
    }
}

impl WantedFault {
    fn is(&self, fault: &Fault) -> bool {
        fault.severity().name() == self.severity
            && fault.version == self.version
            && fault.path == self.path
            && fault.source.map(|source| source.to_string()) == self.source
            && fault.declaration == self.declaration
            && self.pointer.as_ref().is_none_or(|pointer| *pointer == fault.pointer)
            && self.says.iter().all(|word| fault.message.contains(word))
    }
}

/// Returns true if a pointer leads to a value, or into the text of an annotation.
fn is_there(document: &Value, pointer: &str) -> bool {
    if document.pointer(pointer).is_some() {
        return true;
    }
    let Some(rest) = pointer.strip_prefix("/metadata/annotations/") else { return false };
    let (name, inner) = rest.split_once('/').unwrap();
    let text = document.pointer(&format!("/metadata/annotations/{name}")).unwrap().as_str().unwrap();
    let annotation: Value = serde_json::from_str(text).unwrap();
    // The place of an entry whose key is no place is empty.
    let inner = format!("/{inner}");
    annotation.pointer(&inner).or_else(|| annotation.pointer(inner.strip_suffix('/')?)).is_some()
}

/// Checks that the message of a fault can be displayed and that its pointer exists.
fn well_told(fault: &Fault, document: &Value) {
    let line = fault.to_string();
    let left_out = ["version-left-out", "place-left-out", "member-left-out", "keys-left-out", "discriminator-left-out"];
    assert_eq!(fault.left_out, left_out.contains(&fault.kind.name()), "{line}");
    assert!(line.starts_with(&fault.definition) && line.contains(&fault.path) && !line.contains('\n'), "{line}");
    assert!(line.contains(fault.version.as_deref().unwrap_or_default()), "{line}");
    assert!(!fault.message.ends_with('.') && !fault.message.starts_with(char::is_uppercase), "{line}");
    assert!(is_there(document, &fault.pointer), "{line}: nothing is at {}", fault.pointer);
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
    let choices = union.choices().iter().map(|choice| {
        let member = |it: &SelectedMember| {
            let mark = if it.is_optional() && union.form() == Form::Map { "?" } else { "" };
            format!("{}{mark}", it.name())
        };
        let members: Vec<_> = choice.members().iter().map(member).collect();
        if members.is_empty() { choice.value().to_owned() } else { format!("{}={}", choice.value(), members.join("+")) }
    });
    let words: Vec<_> = union.discriminator().map(ToOwned::to_owned).into_iter().chain(choices).collect();
    let form = match union.form() {
        Form::List => "list",
        Form::Map => "map",
    };
    let declaration = union.declaration().map(|name| format!(" {name}")).unwrap_or_default();
    let actions = match union.actions() {
        Actions::DENY => String::new(),
        Actions::WARN => ", only warns".to_owned(),
        other @ (Actions::Deny { .. } | Actions::Warn { .. } | Actions::Audit) => {
            format!(", {}", other.names().join(" and "))
        }
    };
    let normalized = if union.is_normalized() { "" } else { ", not normalised" };
    let required = if union.is_required() { ", required" } else { "" };
    let unset: Vec<_> = union.empty_is_unset().collect();
    let unset = if unset.is_empty() { String::new() } else { format!(", empty is unset: {}", unset.join(" ")) };
    let options = format!("{actions}{normalized}{required}{unset}");
    format!("{}: {} ({form} form, from {}{declaration}{options})", union.path(), words.join(" "), union.source())
}

/// The kinds that no row has: they need several CRDs, a cluster, an OpenAPI document or thousands of unions or versions. Those of two
/// revisions are in [`crate::revisions`].
const KINDS_WITHOUT_ROWS: [FaultKind; 27] = [
    FaultKind::UnreadableCrd,
    FaultKind::DuplicateKind,
    FaultKind::IgnoredCrd,
    FaultKind::ExemptKind,
    FaultKind::UnconfirmedValues,
    FaultKind::TooManyMembers,
    FaultKind::TooManyUnions,
    FaultKind::TooManyVersions,
    FaultKind::LongPath,
    FaultKind::UnreadableDeclaration,
    FaultKind::MissingTarget,
    FaultKind::UnusableTarget,
    FaultKind::TargetNotInstalled,
    FaultKind::TooManyFields,
    FaultKind::MoreErrors,
    FaultKind::MoreWarnings,
    FaultKind::MoreNotes,
    // Those of inputs: `kube-unions-manifests` and `lint` report them.
    FaultKind::MisspeltName,
    FaultKind::MisspeltKind,
    FaultKind::MisplacedAnnotation,
    FaultKind::RulesTooWeak,
    FaultKind::RulesTooStrong,
    FaultKind::RulesUndecided,
    FaultKind::RulesFail,
    FaultKind::RefusedSchema,
    FaultKind::UndeclaredUnion,
    FaultKind::UnreadableInput,
];

#[test]
fn every_case_of_a_declaration_holds_and_every_kind_of_fault_has_one() {
    let (mut failures, mut rows) = (Vec::new(), BTreeSet::new());
    let mut count = 0;
    for (path, cases) in Suite::all() {
        for case in cases {
            count += 1;
            let held = catch_unwind(AssertUnwindSafe(|| {
                case.hold(Value::clone);
                case.hold(reversed)
            }));
            match held {
                Ok(kinds) => rows.extend(kinds),
                Err(_) => failures.push(format!("{path}: {}", case.description)),
            }
        }
    }
    assert!(count > 90, "only {count} cases were found");
    assert!(failures.is_empty(), "{} of {count} cases do not hold:\n  {}", failures.len(), failures.join("\n  "));
    let without = FaultKind::ALL.iter().copied().filter(|kind| !kind.is_revision() && !rows.contains(kind));
    assert_eq!(without.collect::<Vec<_>>(), KINDS_WITHOUT_ROWS);
}

#[test]
fn documents_that_are_no_definitions_are_refused_with_the_reason() {
    let good = definition(&Map::new(), &[version("v1", &json!({"type": "object"}), false)]);
    let read = |text: &str| Definition::from_json(text).map(drop).map_err(|error| error.to_string());
    let rows = [
        ("/kind", json!("Deployment"), "`Deployment`"),
        ("/apiVersion", json!("apiextensions.k8s.io/v1beta1"), "`apiextensions.k8s.io/v1beta1`"),
        ("/metadata", json!({}), "name"),
        ("/spec/versions", json!([]), "has no schema"),
        ("/spec/versions/0/schema", json!({}), "has no schema"),
        ("/spec/versions/0/schema", Value::Null, "has no schema"),
        ("/spec/versions/0/schema/openAPIV3Schema", json!("text"), "spec.versions[0].schema.openAPIV3Schema"),
        ("/spec/versions/0/name", json!(7), "spec.versions[0].name"),
    ];
    refuses(read, &good, rows);
}

/// Checks that a text which is no document, and each document with a value at a pointer, is refused with these words.
fn refuses<const N: usize>(read: impl Fn(&str) -> Result<(), String>, good: &Value, rows: [(&str, Value, &str); N]) {
    assert_eq!(read(&good.to_string()), Ok(()));
    let texts = rows.into_iter().map(|(pointer, value, says)| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        (changed.to_string(), says)
    });
    let kind = good["kind"].as_str().unwrap();
    for (text, says) in texts.chain([(String::new(), "EOF"), ("7".to_owned(), kind)]) {
        let error = read(&text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn documents_that_are_no_declarations_are_refused_with_the_reason() {
    let spec = json!({"validationActions": ["Deny"],
        "unions": [{"path": "spec", "discriminator": "type", "fieldMembers": {"A": {"name": "a"}}}]});
    let good = declaration("good", GROUP, "Thing", &spec);
    let read = |text: &str| Declaration::from_json(text).map(drop).map_err(|error| error.to_string());
    let rows = [
        ("/kind", json!("Deployment"), "`Deployment`"),
        ("/apiVersion", json!("kube-unions.dev/v1"), "`kube-unions.dev/v1`"),
        ("/metadata", json!({}), "name"),
        ("/spec", Value::Null, "spec"),
        ("/spec", json!({"unions": []}), "`target`"),
        ("/spec", json!({"target": {"kind": "Thing"}, "podTemplates": "spec"}), "spec.podTemplates"),
        ("/spec/target", json!("Thing"), "spec.target"),
        ("/spec/target/kind", json!(7), "spec.target.kind"),
        ("/spec/target", json!({"group": GROUP}), "`kind`"),
        ("/spec/target", json!({"kind": "Thing", "resource": "things"}), "`resource`"),
        ("/spec/target", json!({"kind": "Thing", "versions": "v1"}), "spec.target.versions"),
        ("/spec/validationActions", json!(["Log"]), "`Log`"),
        ("/spec/validationActions", json!("Deny"), "spec.validationActions"),
        ("/spec", json!({"target": {"kind": "Thing"}, "normalization": "Off", "unions": []}), "`Off`"),
        ("/spec", json!({"target": {"kind": "Thing"}, "normalization": null, "unions": []}), "spec.normalization"),
        ("/spec/unions", json!({}), "spec.unions"),
        ("/spec/unions/0/path", Value::Null, "spec.unions[0].path"),
        ("/spec/unions/0", json!({"fieldMembers": {}}), "`path`"),
        ("/spec/unions/0/discriminator", json!(["type"]), "spec.unions[0].discriminator"),
        ("/spec/unions/0/fieldMembers", json!(["a"]), "spec.unions[0].fieldMembers"),
        ("/spec/unions/0/fieldMembers/A", json!("a"), "spec.unions[0].fieldMembers.A"),
        ("/spec/unions/0/fieldMembers/A", json!({"field": "a"}), "`field`"),
        ("/spec/unions/0/fieldMembers/A", json!({"name": "a", "optional": "yes"}), "optional"),
        ("/spec/unions/0", json!({"path": "spec", "fieldsToDiscriminateBy": {"a": null}}), "fieldsToDiscriminateBy"),
        (
            "/spec/unions/0",
            json!({"path": "spec", "fields-to-discriminateBy": {"a": "A"}}),
            "`fields-to-discriminateBy`",
        ),
    ];
    refuses(read, &good, rows);
}

#[test]
fn a_union_has_as_many_members_as_can_be_told_apart() {
    for (count, fits) in [(1, true), (128, true), (129, false)] {
        let names: Vec<_> = (0..count).map(|number| format!("m{number:03}")).collect();
        let properties: Map<_, _> = names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
        let values: Map<_, _> = names.iter().map(|name| (name.clone(), json!(name))).collect();
        let schema = json!({"type": "object", "properties": properties, "x-kubernetes-unions": [{"fields-to-discriminateBy": values}]});
        let crd = definition(&Map::new(), &[version("v1", &schema, false)]).to_string();
        let mut builder = Builder::new();
        builder.apply(Definition::from_json(&crd).unwrap());
        let catalog = builder.build();
        assert_eq!(catalog.entries().len(), usize::from(fits), "{count} members: {:?}", catalog.faults());
        // A union of one member is a warning.
        assert_eq!(catalog.faults().is_empty(), fits && count > 1, "{count} members: {:?}", catalog.faults());
        if fits {
            // Every union is found and cleared, the last as well as the first.
            let old = thing(&json!({&names[0]: "x"}));
            let mut new = old.clone();
            new[names[count - 1].as_str()] = json!("y");
            let answer = admit_lawfully(&catalog, &Write::new(Some(old), new));
            assert_eq!(answer.operations.len(), usize::from(count > 1), "{count} members: {answer:?}");
            assert_eq!(answer.object()[names[count - 1].as_str()], json!("y"));
        }
    }
}
