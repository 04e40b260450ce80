//! The join of CRDs, declarations and documents: the same unions and faults in whatever order the sources arrive.

use fixtures::crds;
use fixtures::reviews::declaration;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::{BuiltinGroups, Declaration, FaultKind, OpenApi, Severity};
use kube_unions_core::names::GroupKind;
use kube_unions_core::workspace::{CrdText, Workspace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const CRD: &str = "things.g.example";

fn kind() -> GroupKind {
    GroupKind::new("g.example", "Thing")
}

fn of_cluster() -> Workspace {
    Workspace::of_cluster(BuiltinGroups::Guessed)
}

/// A CRD without unions, and its status.
fn crd() -> Value {
    crd_of("Thing")
}

fn crd_of(kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let mut crd = crds::crd("g.example", kind, &[crds::version("v1", &schema)]);
    crd["status"] = crds::established(&crds::names(kind));
    crd
}

/// Stores a CRD as a cluster has it. Returns the affected kinds.
fn store(workspace: &mut Workspace, name: &str, crd: &Value) -> Vec<GroupKind> {
    let annotations: BTreeMap<String, String> =
        serde_json::from_value(crd["metadata"]["annotations"].clone()).unwrap_or_default();
    let (spec, status) = (crd["spec"].to_string(), crd["status"].to_string());
    workspace.set_crd(name, Ok(CrdText { annotations: &annotations, spec: &spec, status: Some(&status) }))
}

/// Stores a declaration about the kind. Returns the affected kinds.
fn declare(workspace: &mut Workspace, name: &str, member: &str) -> Vec<GroupKind> {
    let unions = json!({"unions": [{"path": "", "fieldsToDiscriminateBy": {"a": "A", member: "B"}}]});
    let object = declaration(name, "g.example", "Thing", &unions);
    workspace.set_declaration(name, Ok(Declaration::from_json(&object.to_string()).unwrap()))
}

fn document() -> Arc<OpenApi> {
    let document = json!({"openapi": "3.0.0", "paths": {}, "components": {"schemas": {"Thing": {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "g.example", "version": "v1", "kind": "Thing"}],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}],
    }}}});
    Arc::new(OpenApi::parse(&document.to_string()).unwrap())
}

fn errors(catalog: &Catalog) -> Vec<String> {
    catalog.faults().iter().filter(|it| it.severity() == Severity::Error).map(ToString::to_string).collect()
}

#[test]
fn a_crd_is_compiled_from_what_is_stored() {
    /// Description, change of the CRD, member of the declaration, number of unions, parts of the errors.
    type Row = (&'static str, fn(&mut Value), Option<&'static str>, usize, &'static [&'static str]);
    let union = |crd: &mut Value| {
        crd["metadata"]["annotations"] = json!({"kube-unions.dev/unions": json!({
            "v1": {"": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]}
        }).to_string()});
    };
    let rows: [Row; 9] = [
        ("no unions", |_| {}, None, 0, &[]),
        ("an annotation", union, None, 1, &[]),
        ("a declaration", |_| {}, Some("b"), 1, &[]),
        ("a declaration with a member that the schema lacks", |_| {}, Some("typo"), 0, &[]),
        ("not established", |crd| crd["status"]["conditions"][1]["status"] = "False".into(), Some("b"), 0, &[]),
        ("no schema", |crd| crd["spec"]["versions"] = json!([]), None, 0, &["has no schema"]),
        (
            "no schema, and a declaration",
            |crd| crd["spec"]["versions"] = json!([]),
            Some("b"),
            0,
            &["has no schema", "cannot be used"],
        ),
        ("no group", |crd| crd["spec"]["group"] = json!(7), None, 0, &["spec.group"]),
        (
            "more memory than a CRD takes that people write",
            |crd| {
                let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                schema["allOf"] = vec![json!({}); 100_000].into();
            },
            None,
            0,
            &["more than 32 MiB of memory, so that no union of it counts; make them smaller"],
        ),
    ];
    for (what, change, declared, unions, messages) in rows {
        let mut stored = crd();
        change(&mut stored);
        // In either order of arrival.
        for crd_first in [true, false] {
            let mut workspace = of_cluster();
            if crd_first {
                store(&mut workspace, CRD, &stored);
            }
            declared.map(|member| declare(&mut workspace, "d", member));
            store(&mut workspace, CRD, &stored);
            workspace.compile();
            let catalog = workspace.catalog();
            assert_eq!(catalog.union_count(), unions, "{what}");
            let errors = errors(&catalog);
            assert_eq!(errors.len(), messages.len(), "{what}: {errors:?}");
            assert!(messages.iter().zip(&errors).all(|(part, whole)| whole.contains(part)), "{what}: {errors:?}");
        }
    }
}

#[test]
fn a_builtin_kind_is_compiled_from_its_documents() {
    for (what, documents, published, declared, unions, described) in [
        ("no document", vec![], false, true, 0, false),
        ("a declaration", vec![document()], false, true, 1, true),
        ("published unions that count", vec![document()], true, false, 1, true),
        ("published unions that do not count", vec![document()], false, false, 0, true),
    ] {
        let mut workspace = of_cluster();
        if declared {
            assert_eq!(declare(&mut workspace, "d", "b"), [kind()]);
        }
        if published {
            assert_eq!(workspace.set_publishing([kind()].into()), [kind()]);
        }
        assert_eq!(workspace.wants_documents(&kind()), declared || published, "{what}");
        assert!(workspace.next_job().is_none(), "nothing was fetched");
        workspace.set_documents(&kind(), documents);
        workspace.compile();
        assert_eq!(workspace.missing().is_empty(), described, "{what}");
        let catalog = workspace.catalog();
        assert_eq!(catalog.union_count(), unions, "{what}");
        let kinds: Vec<FaultKind> = catalog.faults().iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds, if described { vec![] } else { vec![FaultKind::TargetNotInstalled] }, "{what}");
    }
}

#[test]
fn a_change_compiles_the_kind_that_it_affects_and_no_other() {
    let mut workspace = of_cluster();
    let other = crd_of("Other");
    let jobs = |workspace: &mut Workspace| {
        let mut names = Vec::new();
        while let Some(job) = workspace.next_job() {
            names.push(job.ticket().to_string());
            workspace.finish(job.compile());
        }
        names
    };
    store(&mut workspace, CRD, &crd());
    store(&mut workspace, "others.g.example", &other);
    assert_eq!(jobs(&mut workspace), [CRD, "others.g.example"]);
    declare(&mut workspace, "d", "b");
    assert_eq!(jobs(&mut workspace), [CRD]);
    // The same again changes nothing, and neither does a description.
    let mut described = crd();
    described["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("a thing");
    assert!(declare(&mut workspace, "d", "b").is_empty() && store(&mut workspace, CRD, &described).is_empty());
    assert!(workspace.take_changed() && !workspace.take_changed() && jobs(&mut workspace).is_empty());
    workspace.remove_crd("others.g.example");
    assert!(jobs(&mut workspace).is_empty());
    // A kind of another name takes the unions of the old one out of force at once, and the documents of the old one are wanted.
    assert_eq!(workspace.catalog().union_count(), 1);
    assert_eq!(store(&mut workspace, CRD, &other), [kind(), GroupKind::new("g.example", "Other")]);
    assert_eq!(workspace.catalog().union_count(), 0);
    assert!(workspace.wants_documents(&kind()));
}

#[test]
fn the_documents_of_a_kind_count_until_a_crd_defines_it() {
    let mut workspace = of_cluster();
    declare(&mut workspace, "d", "b");
    workspace.set_documents(&kind(), vec![]);
    workspace.compile();
    assert!(workspace.missing().contains(&kind()));
    let document = document();
    let set = |workspace: &mut Workspace| {
        workspace.set_documents(&kind(), vec![Arc::clone(&document)]);
        let compiles = workspace.is_dirty(&kind());
        workspace.compile();
        compiles
    };
    assert!(set(&mut workspace) && !set(&mut workspace), "the same documents are compiled once");
    assert_eq!((workspace.catalog().union_count(), workspace.catalog().faults().len()), (1, 0));
    declare(&mut workspace, "d", "typo");
    assert!(set(&mut workspace), "a declaration changed");
    declare(&mut workspace, "d", "b");
    assert!(set(&mut workspace) && workspace.catalog().union_count() == 1);
    assert_eq!(store(&mut workspace, CRD, &crd()), [kind()]);
    assert!(workspace.documented().next().is_none() && !workspace.wants_documents(&kind()));
    assert_eq!(workspace.catalog().union_count(), 0, "the CRD is not compiled yet");
    // The result of a job whose inputs changed meanwhile does not count.
    let job = workspace.next_job().unwrap();
    declare(&mut workspace, "d", "typo");
    workspace.finish(job.compile());
    assert!(workspace.is_dirty(&kind()) && workspace.catalog().union_count() == 0);
    declare(&mut workspace, "d", "b");
    workspace.compile();
    assert_eq!(workspace.catalog().union_count(), 1);
}

#[test]
fn a_workspace_around_a_kind_has_its_declarations_alone() {
    let mut workspace = of_cluster();
    declare(&mut workspace, "d", "b");
    let unreadable = "`spec`: no".to_owned();
    assert!(workspace.set_declaration("unreadable", Err(unreadable)).is_empty());
    assert_eq!(workspace.catalog().faults()[0].declaration.as_deref(), Some("unreadable"));
    let mut around = workspace.around(&kind());
    assert_eq!(around.declarations().collect::<Vec<_>>(), ["d"]);
    store(&mut around, CRD, &crd());
    around.compile();
    assert_eq!((around.catalog().union_count(), workspace.catalog().union_count()), (1, 0));
}

/// Returns everything that a workspace has, but the version of its inputs, which only grows.
fn kept(workspace: &mut Workspace) -> String {
    workspace.compile();
    workspace.take_changed();
    let text = format!("{workspace:?}");
    let (before, version) = text.split_once("last_version: ").unwrap();
    format!("{before}{}", version.trim_start_matches(|it: char| it.is_ascii_digit()))
}

/// A change of a workspace, and its name.
type WorkspaceStep<'s> = (&'s str, &'s dyn Fn(&mut Workspace));

#[test]
fn nothing_is_kept_of_sources_that_are_gone() {
    let nothing = kept(&mut of_cluster());
    let retarget = |workspace: &mut Workspace, kind: &str| {
        let unions = json!({"unions": [{"path": "", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}]});
        let object = declaration("one", "g.example", kind, &unions);
        workspace.set_declaration("one", Ok(Declaration::from_json(&object.to_string()).unwrap()));
    };
    let steps: [WorkspaceStep<'_>; 9] = [
        ("a declaration", &|it| drop(declare(it, "one", "b"))),
        ("a declaration with faults", &|it| drop(declare(it, "two", "typo"))),
        ("an unreadable declaration", &|it| drop(it.set_declaration("three", Err("unreadable".to_owned())))),
        ("a target", &|it| drop(store(it, CRD, &crd()))),
        ("a target that is another kind now", &|it| drop(store(it, CRD, &crd_of("Other")))),
        ("an unreadable target", &|it| drop(it.set_crd(CRD, Err("unreadable")))),
        ("a built-in target", &|it| it.set_documents(&kind(), vec![document()])),
        ("a missing built-in target", &|it| it.set_documents(&kind(), Vec::new())),
        ("another target", &|it| retarget(it, "Elsewhere")),
    ];
    // Every step alone, after every other, and all in turn; gone in both orders, compiled in between and not.
    let pairs = (0..steps.len()).flat_map(|first| (0..steps.len()).map(move |second| vec![first, second]));
    for chosen in pairs.chain([(0..steps.len()).collect(), (0..steps.len()).rev().collect()]) {
        for round in 0..4 {
            let mut workspace = of_cluster();
            for &step in &chosen {
                // Documents are set for a kind that wants them.
                if !steps[step].0.contains("built-in") || workspace.wants_documents(&kind()) {
                    steps[step].1(&mut workspace);
                }
                if round % 2 == 0 {
                    workspace.compile();
                }
            }
            let of_declarations = |it: &mut Workspace| {
                for name in ["one", "two", "three"] {
                    it.remove_declaration(name);
                }
            };
            if round < 2 {
                workspace.remove_crd(CRD);
                of_declarations(&mut workspace);
            } else {
                of_declarations(&mut workspace);
                workspace.remove_crd(CRD);
            }
            let what: Vec<&str> = chosen.iter().map(|&step| steps[step].0).collect();
            assert_eq!(kept(&mut workspace), nothing, "{what:?} {round}");
        }
    }
}
