//! `preview`: the incidents of `tests/e2e/preview`, and its rows of two field managers.

use super::{Folder, yaml};
use fixtures::crds;
use kube_unions_core::schema::Schema;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use strategic_merge_patch::{Conflicts, Managers, ServerSideApply};

const INCIDENTS: &str = include_str!("../../e2e/preview/incidents.yaml");
const MANAGERS: &str = include_str!("../../e2e/preview/managers.yaml");
const HOOKS: &str = include_str!("../../e2e/preview/hooks.yaml");

/// All incidents are in one rendering, in which their objects differ.
#[test]
fn every_incident_is_predicted_for_every_way() {
    let incidents = yaml(INCIDENTS);
    let incidents = incidents.as_array().unwrap();
    let all = |part: &str| {
        incidents.iter().filter_map(|it| it.get(part)).map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
    };
    let folder = Folder::new(&[("old.yaml", &*all("old")), ("new.yaml", &all("new")), ("crds.yaml", &all("crd"))]);
    for way in ["ssa", "csa", "helm", "merge", "replace"] {
        let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "--from", "crds.yaml"];
        let run = folder.run(&[&files[..], &["--as", way, "-o", "json"]].concat());
        let report = run.json();
        assert_eq!(report["summary"]["compared"], incidents.len(), "{way}: {}", run.stderr);
        let mut predicted = 0;
        for incident in incidents {
            let title = format!("{}, {way}", incident["incident"]);
            let of_incident = |it: &&Value| {
                (&it["kind"], &it["name"]) == (&incident["old"]["kind"], &incident["old"]["metadata"]["name"])
            };
            let mut findings = report["findings"].as_array().unwrap().iter().filter(of_incident);
            let rule = match incident["by"][way].as_str().expect(&title) {
                "refused" => "union-refused",
                "immutable" => "immutable-refused",
                "stored" => "union-stored-invalid",
                _ => {
                    assert_eq!(findings.next(), None, "{title}");
                    continue;
                }
            };
            predicted += 1;
            let finding = findings.next().expect(&title);
            let field = incident["fieldBy"].get(way).unwrap_or(&incident["field"]);
            assert_eq!((&finding["rule"], &finding["field"]), (&json!(rule), field), "{title}");
            let is_refused =
                incident["refusedWithKubeUnions"].as_array().is_some_and(|ways| ways.iter().any(|it| it == way));
            assert_eq!(finding["withKubeUnions"], if is_refused { "refused" } else { "mended" }, "{title}");
            let helps: Vec<&str> =
                finding["helps"].as_array().unwrap().iter().map(|it| it["how"].as_str().unwrap()).collect();
            if incident["keepsBoth"] == true {
                assert_eq!(helps, ["keepOne"], "{title}");
                continue;
            }
            // The objects of a CRD are deleted with it.
            let is_crd = incident["old"]["kind"] == "CustomResourceDefinition";
            assert_eq!(helps.contains(&"recreate"), !is_crd, "{title}: {helps:?}");
            assert_eq!(helps.contains(&"kubeUnions"), !is_refused, "{title}: {helps:?}");
            if incident["onlyRecreateHelps"] == true {
                assert_eq!(helps, ["recreate"], "{title}");
                continue;
            }
            let null_helps = rule != "immutable-refused" && (way != "ssa" || incident["nullHelpsServerSide"] == true);
            assert_eq!(helps.contains(&"null"), null_helps, "{title}: {helps:?}");
        }
        assert_eq!(run.code, i32::from(predicted > 0), "{way}");
    }
}

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec: {strategy: STRATEGY, \
    selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}\n";
const BOTH: &str = "{type: Recreate, rollingUpdate: {}}";

/// Returns a rendering of Deployments, given by the content of `metadata` behind the name's key, and by their strategy.
fn deployments(objects: &[(&str, &str)]) -> String {
    let one = |(name, strategy): &(&str, &str)| DEPLOYMENT.replace("NAME", name).replace("STRATEGY", strategy);
    objects.iter().map(one).collect::<Vec<_>>().join("---\n")
}

#[test]
fn objects_of_the_new_rendering_alone_are_judged_as_creates() {
    let both = deployments(&[("a", BOTH), ("b", "{type: Recreate}")]);
    let folder = Folder::new(&[("old.yaml", &*deployments(&[("b", "{}")])), ("new.yaml", &*both), ("empty.yaml", "")]);
    for way in ["ssa", "csa", "helm", "merge", "replace"] {
        for (old, judged) in [(&["--old", "old.yaml"][..], [1, 1]), (&[], [0, 2]), (&["--old", "empty.yaml"], [0, 2])] {
            let arguments = [&["preview", "--new", "new.yaml", "--as", way, "-o", "json"], old].concat();
            let report = folder.run(&arguments).code(1).json();
            let of_a: Vec<&Value> =
                report["findings"].as_array().unwrap().iter().filter(|finding| finding["name"] == "a").collect();
            assert_eq!(of_a.len(), 1, "{way}: {report}");
            let found =
                (&of_a[0]["rule"], &of_a[0]["creates"], &of_a[0]["withKubeUnions"], &of_a[0]["helps"][0]["how"]);
            let wanted = (&json!("union-refused"), &json!(true), &json!("refused"), &json!("keepOne"));
            assert_eq!(found, wanted, "{way}");
            let summary = &report["summary"];
            assert_eq!(
                [&summary["compared"], &summary["onlyInNew"]],
                judged.each_ref().map(|it| it),
                "{way}: {summary}"
            );
        }
    }
}

/// The manifest sets the null, so kube-unions leaves it to the schema.
#[test]
fn a_null_of_a_create_is_refused_if_it_is_applied_server_side() {
    let member = json!({"type": "object"});
    let spec = json!({"type": "object", "properties": {"a": member, "b": member},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let crd = crds::crd("example.com", "Widget", &[crds::version("v1", &schema)]).to_string();
    let object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": {}, "b": null}});
    let folder = Folder::new(&[("crd.yaml", &*crd), ("new.yaml", &object.to_string())]);
    for (way, code) in [("ssa", 1), ("csa", 0), ("replace", 0)] {
        let run =
            folder.run(&["preview", "--new", "new.yaml", "--from", "crd.yaml", "--as", way, "-o", "json"]).code(code);
        for finding in run.json()["findings"].as_array().unwrap() {
            assert_eq!((&finding["rule"], &finding["withKubeUnions"]), (&json!("null-refused"), &json!("refused")));
            assert_eq!(finding["helps"][0]["how"], "omit", "{finding}");
        }
    }
}

#[test]
fn each_client_is_a_name_of_its_way() {
    let folder = Folder::new(&[("new.yaml", &*deployments(&[("a", "{}")]))]);
    for (client, way) in [
        ("server-side", "ssa"),
        ("flux", "flux"),
        ("argocd-ssa", "argocd-ssa"),
        ("helm4", "helm4"),
        ("kubectl", "csa"),
        ("argocd", "argocd"),
        ("helm3", "helm"),
    ] {
        let report = folder.run(&["preview", "--new", "new.yaml", "--as", client, "-o", "json"]).code(0).json();
        assert_eq!(report["as"], way, "{client}");
    }
}

/// The ways of the columns in the rows of hooks.
const HOOK_WAYS: [(&str, &[&str]); 4] = [
    ("helm", &["helm"]),
    ("helm4", &["helm4"]),
    ("argocd", &["argocd", "argocd-ssa"]),
    ("csa", &["csa", "ssa", "flux", "merge", "replace"]),
];

/// Returns the rule and the message of the finding about an object with this fate. `None`: there is none.
fn finding_of(fate: &str, is_valid: bool) -> Option<(&'static str, &'static str)> {
    let too_many = "Forbidden: at most one of `configMap`, `emptyDir` may be set";
    match (fate, is_valid) {
        ("created", true) | ("idle", _) => None,
        // The API server judges a create before it finds that the object exists.
        ("created" | "exists", false) => Some(("union-refused", too_many)),
        ("immutable", _) => Some(("immutable-refused", "Invalid value: field is immutable")),
        ("exists", true) => Some(("object-refused", "already exists")),
        ("imported", _) => Some(("object-refused", "exists and cannot be imported into the current release")),
        _ => panic!("{fate}"),
    }
}

/// All rows are in one rendering.
#[test]
fn a_hook_is_a_create_for_the_clients_that_know_hooks() {
    let rows = yaml(HOOKS);
    let (jobs, rows) = rows.as_array().unwrap().split_first().unwrap();
    let rendering = |side: &str, annotations: &str| {
        let job = |(number, row): (usize, &Value)| {
            let mut job = jobs[side].clone();
            job["metadata"] = json!({"name": format!("row{number}"), "annotations": row.get(annotations)?});
            Some(job.to_string())
        };
        rows.iter().enumerate().filter_map(job).collect::<Vec<_>>().join("\n---\n")
    };
    let files = [
        ("old.yaml", rendering("old", "old")),
        ("new.yaml", rendering("new", "new")),
        ("invalid.yaml", rendering("invalid", "new")),
    ];
    let folder = Folder::new(&files.each_ref().map(|(name, text)| (*name, &**text)));
    let mut fates: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut judge = |column: &'static str, way: &str, old: &[&str], fate_of: &dyn Fn(&Value) -> Option<String>| {
        for (file, is_valid) in [("new.yaml", true), ("invalid.yaml", false)] {
            let run = folder.run(&[&["preview", "--new", file, "--as", way, "-o", "json"], old].concat());
            let report = run.json();
            let mut idle = 0;
            for (number, row) in rows.iter().enumerate() {
                let Some(fate) = fate_of(row) else { continue };
                let name = format!("row{number}");
                let all = report["findings"].as_array().unwrap().iter().filter(|finding| finding["name"] == *name);
                let all =
                    all.map(|it| (it["rule"].as_str().unwrap(), it["message"].as_str().unwrap())).collect::<Vec<_>>();
                let wanted = finding_of(&fate, is_valid);
                let what = format!("{}, {column}, {way}, {file}", row["title"]);
                assert_eq!(all, wanted.into_iter().collect::<Vec<_>>(), "{what}: {run:?}");
                idle += usize::from(fate == "idle");
                fates.insert((column, fate));
            }
            if old.is_empty() {
                continue;
            }
            assert_eq!(report["summary"]["notLookedAt"], json!(idle), "{column}, {way}, {file}: {run:?}");
            let said = format!("{idle} hooks not looked at: ");
            assert_eq!(run.stderr.matches(&said).count(), usize::from(idle > 0), "{column}, {way}: {run:?}");
        }
    };
    let text = |fate: &Value| fate.as_str().map(str::to_owned);
    for (column, ways) in HOOK_WAYS {
        for way in ways {
            judge(column, way, &["--old", "old.yaml"], &|row| text(&row["by"][column]));
        }
    }
    for way in ["helm", "helm4"] {
        judge("install", way, &[], &|row| text(&row["install"]));
    }
    for wanted in
        [("helm", "exists"), ("helm", "imported"), ("argocd", "idle"), ("csa", "created"), ("install", "idle")]
    {
        assert!(fates.contains(&(wanted.0, wanted.1.to_owned())), "{wanted:?}: {fates:?}");
    }
}

/// What is live is not what the old rendering tells.
#[test]
fn a_live_object_tells_whether_a_hook_is_left() {
    let job = |policy: &str, image: &str| {
        let annotations = json!({"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": policy});
        let container = json!({"name": "a", "image": image});
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "annotations": annotations},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}})
        .to_string()
    };
    let rows = [
        ("it stays, and is live", "hook-failed", "hook-failed", true, "object-refused"),
        ("it stays, and somebody deleted it", "hook-failed", "hook-failed", false, ""),
        ("it was deleted, and is live", "hook-succeeded", "hook-succeeded", true, "object-refused"),
        ("it is deleted before", "hook-failed", "before-hook-creation", true, ""),
    ];
    for (what, old, new, is_live, rule) in rows {
        let (old, new) = (job(old, "a:1"), job(new, "a:2"));
        let live = if is_live { old.clone() } else { deployments(&[("another", "{}")]) };
        let folder = Folder::new(&[("old.yaml", &*old), ("new.yaml", &new), ("live.yaml", &live)]);
        let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "--live", "live.yaml", "--as", "helm"];
        let report = folder.run(&[&files[..], &["-o", "json"]].concat()).code(i32::from(!rule.is_empty())).json();
        let rules: Vec<&Value> = report["findings"].as_array().unwrap().iter().map(|it| &it["rule"]).collect();
        let wanted: Vec<Value> =
            Some(rule).filter(|rule| !rule.is_empty()).into_iter().map(|rule| json!(rule)).collect();
        assert_eq!(rules, wanted.iter().collect::<Vec<_>>(), "{what}: {report}");
    }
}

/// A chart has a hook of one name for each event, and perhaps an object of that name.
#[test]
fn hooks_of_one_name_are_judged_each() {
    let hook = |event: &str| format!("a, annotations: {{helm.sh/hook: {event}}}");
    let rendering = |strategies: [&str; 3]| {
        let [first, second, object] = strategies;
        deployments(&[(&hook("pre-install"), first), (&hook("pre-upgrade"), second), ("a", object)])
    };
    let old = rendering(["{}", "{}", "{}"]);
    let rows = [
        ("the hook that runs", ["{}", BOTH, "{}"], "helm", 1, [1, 1, 1]),
        ("the hook that does not run", [BOTH, "{}", "{}"], "helm", 0, [1, 1, 1]),
        ("the object", ["{}", "{}", BOTH], "helm4", 1, [1, 1, 1]),
        ("all", [BOTH, BOTH, BOTH], "helm4", 2, [1, 1, 1]),
        ("the last of all", [BOTH, BOTH, "{}"], "argocd", 0, [1, 0, 2]),
        ("the last of all", ["{}", "{}", BOTH], "argocd-ssa", 1, [1, 0, 2]),
    ];
    for (what, new, way, refused, [compared, hooks, not_looked_at]) in rows {
        let folder = Folder::new(&[("old.yaml", &*old), ("new.yaml", &*rendering(new))]);
        let run = folder.run(&["preview", "--old", "old.yaml", "--new", "new.yaml", "--as", way, "-o", "json"]);
        let summary = &run.json()["summary"];
        let counts = json!({"compared": compared, "hooks": hooks, "notLookedAt": not_looked_at, "refused": refused, "onlyInOld": 0});
        for (name, number) in counts.as_object().unwrap() {
            assert_eq!(&summary[name], number, "{what}, {way}: {name}: {run:?}");
        }
        assert_eq!(run.code, i32::from(refused > 0), "{what}, {way}: {run:?}");
    }
}

#[test]
fn a_name_that_is_to_be_generated_is_refused_by_the_clients_that_do_not_create() {
    let generated = |annotations: &str, strategy: &str| {
        let object = deployments(&[("NAMED", strategy)]);
        object.replace(
            "metadata: {name: NAMED}",
            &format!("metadata: {{generateName: web-, annotations: {annotations}}}"),
        )
    };
    let apply = "cannot use generate name with apply";
    let rows = [
        ("csa", "{}", Some(apply)),
        ("ssa", "{}", Some(apply)),
        ("argocd", "{}", Some(apply)),
        ("argocd-ssa", "{}", Some(apply)),
        ("argocd", "{argocd.argoproj.io/hook: PreSync}", None),
        ("argocd-ssa", "{helm.sh/hook: pre-upgrade}", None),
        ("flux", "{}", Some("missing metadata.name in object")),
        ("merge", "{}", Some("resource name may not be empty")),
        ("replace", "{}", Some("resource name may not be empty")),
        ("helm", "{}", Some("resource name may not be empty")),
        ("helm", "{helm.sh/hook: pre-upgrade}", Some("resource name may not be empty")),
        (
            "helm",
            "{helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: hook-succeeded}",
            Some("resource name may not be empty"),
        ),
        ("helm", "{helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: hook-failed}", None),
        (
            "helm4",
            "{helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: hook-failed}",
            Some("resource name may not be empty"),
        ),
        ("csa", "{helm.sh/hook: pre-upgrade}", Some(apply)),
    ];
    let rest = deployments(&[("rest", BOTH)]);
    let old = deployments(&[("rest", "{}"), ("gone", "{}")]);
    for (way, annotations, words) in rows {
        for strategy in ["{}", BOTH] {
            let what = format!("{way}, {annotations}, {strategy}");
            let folder = Folder::new(&[
                ("old.yaml", &*old),
                ("new.yaml", &format!("{}---\n{rest}", generated(annotations, strategy))),
            ]);
            let run =
                folder.run(&["preview", "--old", "old.yaml", "--new", "new.yaml", "--as", way, "-o", "json"]).code(1);
            let report = run.json();
            assert_eq!(report["summary"]["problems"], json!([]), "{what}: {run:?}");
            assert_eq!(report["summary"]["onlyInOld"], 1, "{what}: {run:?}");
            let (of_rest, of_generated): (Vec<&Value>, Vec<&Value>) =
                report["findings"].as_array().unwrap().iter().partition(|it| it["name"] == "rest");
            assert_eq!(of_rest.len(), 1, "{what}: {run:?}");
            let found: Vec<_> = of_generated.iter().map(|it| (&it["rule"], &it["generateName"], &it["line"])).collect();
            // Helm cannot delete what it has created.
            let is_created = words.is_none() || way == "helm" && annotations.contains("hook-succeeded");
            let is_judged = is_created && strategy == BOTH;
            let rule = if is_judged { "union-refused" } else { "object-refused" };
            let wanted = (&json!(rule), &json!("web-"));
            let is_found = words.is_some() || strategy == BOTH;
            assert_eq!(
                found.iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(),
                vec![wanted; usize::from(is_found)],
                "{what}: {run:?}"
            );
            if let Some(words) = words.filter(|_| !is_judged) {
                assert_eq!(
                    (&of_generated[0]["message"], &of_generated[0]["field"]),
                    (&json!(words), &json!("metadata.generateName")),
                    "{what}"
                );
            }
        }
    }
    let neither = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '', generateName: ''}\n";
    for (text, code, said) in [
        (neither.to_owned(), 2, "`metadata.name` is missing"),
        (deployments(&[("a, generateName: b", "{}")]), 0, "1 object only in the new rendering: every union is valid"),
        (generated("{}", "{}"), 1, "1 object only in the new rendering: 1 object refused"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n".to_owned(), 0, "1 of kinds without unions"),
    ] {
        let folder = Folder::new(&[("new.yaml", &*text)]);
        let run = folder.run(&["preview", "--new", "new.yaml"]).code(code);
        assert!(run.stderr.contains(said), "{text}: {run:?}");
    }
}

#[test]
fn an_object_without_a_namespace_is_that_of_its_name_in_another_rendering() {
    let rows = [
        ("b", "b, namespace: shop", &[][..], 1),
        ("b, namespace: shop", "b", &[], 1),
        ("b", "b, namespace: shop", &["--namespace", "shop"], 1),
        ("b", "b, namespace: shop", &["--namespace", "desk"], 0),
        ("b, namespace: desk", "b, namespace: shop", &[], 0),
        // An empty one is none.
        ("b", "b, namespace: ''", &[], 1),
        ("b, namespace: shop", "b, namespace: ''", &["--namespace", "shop"], 1),
        ("b, namespace: ''", "b, namespace: shop", &["--namespace", "desk"], 0),
    ];
    for (old, new, options, compared) in rows {
        let (old, new) = (deployments(&[(old, "{}")]), deployments(&[(new, "{type: Recreate}")]));
        let folder = Folder::new(&[("old.yaml", &*old), ("new.yaml", &*new)]);
        let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "--as", "ssa", "-o", "json"];
        let run = folder.run(&[&files[..], options].concat());
        assert_eq!(run.json()["summary"]["compared"], compared, "{old}{new}{options:?}: {run:?}");
        assert_eq!(run.code, compared, "{run:?}");
        assert!(!run.stdout.contains("-n  ") && !run.stdout.contains("\"namespace\":\"\""), "{run:?}");
    }
    // Two objects of one name are no longer that without a namespace, unless the option says which.
    let (old, new) =
        (deployments(&[("b", "{}")]), deployments(&[("b, namespace: shop", "{}"), ("b, namespace: desk", "{}")]));
    let folder = Folder::new(&[("old.yaml", &*old), ("new.yaml", &*new)]);
    let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "-o", "json"];
    assert_eq!(folder.run(&files).json()["summary"]["onlyInNew"], 2);
    assert_eq!(folder.run(&[&files[..], &["--namespace", "desk"]].concat()).json()["summary"]["onlyInNew"], 1);
}

#[test]
fn a_document_that_cannot_be_read_loses_no_other_and_nothing_that_was_not_judged_is_valid() {
    let good = deployments(&[("a", "{}"), ("b", "{type: Recreate}")]);
    let twice = good.replace("{name: a}", "{name: a, name: b, name: a}");
    let hooks =
        deployments(&[("a, annotations: {helm.sh/hook: x}", "{}"), ("a, annotations: {helm.sh/hook: z}", "{}")]);
    let rows = [
        ("a fault", format!("{good}---\na: [\n"), 2, 2, "new.yaml:11:"),
        ("a key twice", twice, 0, 2, "duplicate key `name`: the last one counts"),
        ("a hook twice", hooks, 0, 1, "a hook of Helm of the same name is at new.yaml:1:1"),
        ("an object twice", deployments(&[("a", "{}"), ("a", "{}")]), 2, 1, "is there twice"),
        ("nothing but a fault", "a: [\n".to_owned(), 2, 0, "no object was judged"),
    ];
    for (what, new, code, judged, said) in rows {
        let folder = Folder::new(&[("new.yaml", &*new)]);
        let run = folder.run(&["preview", "--new", "new.yaml", "-o", "json"]).code(code);
        assert_eq!(run.json()["summary"]["onlyInNew"], judged, "{what}: {run:?}");
        assert!(run.stderr.contains(said), "{what}: {run:?}");
        assert_eq!(run.stderr.contains("every union is valid"), judged > 0, "{what}: {run:?}");
    }
}

/// Nothing tells that the API server refuses what another declaration says under the name of a preset.
#[test]
fn a_declaration_with_the_name_of_a_preset_is_no_preset() {
    let target = json!({"group": "apps", "kind": "Deployment", "versions": ["v1"]});
    let unions = json!([{"path": "spec", "fieldsToDiscriminateBy": {"replicas": "A", "minReadySeconds": "B"}}]);
    let own = json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration",
        "metadata": {"name": "deployment-strategy"}, "spec": {"target": target, "unions": unions}});
    let object = |spec: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}).to_string()
    };
    let folder = Folder::new(&[
        ("declaration.yaml", &own.to_string()),
        ("old.yaml", &object(json!({"replicas": 1}))),
        ("new.yaml", &object(json!({"replicas": 1, "minReadySeconds": 1}))),
    ]);
    let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "--from", "declaration.yaml", "-o", "json"];
    let report = folder.run(&files).json();
    assert_eq!(report["summary"]["undecided"], 1, "{report}");
    assert_eq!(report["summary"]["refused"], 0, "{report}");
}

/// The objects that a row leads to.
struct Managed {
    /// The last manifest of the manager.
    old: Value,
    live: Value,
}

/// Returns an object of the kind of the rows.
fn shared(name: usize, fields: &Value) -> Value {
    let mut object = fields.clone();
    object["apiVersion"] = json!("managers.example.com/v1");
    object["kind"] = json!("Shared");
    object["metadata"] = json!({"name": format!("row{name}")});
    object
}

/// Applies the manifests of a row, as the API server does.
fn managed(schema: &Schema, number: usize, row: &Value) -> Managed {
    let engine = ServerSideApply::for_resource("Shared", schema).unwrap();
    let (mut live, mut managers, mut old) = (json!({}), Managers::default(), Value::Null);
    for apply in row["applies"].as_array().unwrap() {
        let (manager, fields) = apply.as_object().unwrap().iter().next().unwrap();
        let manifest = shared(number, fields);
        let applied = engine.apply(&live, &managers, manager, &manifest, Conflicts::Overwrite).unwrap();
        (live, managers) = (applied.object, applied.managers);
        schema.complete(&mut live).unwrap();
        if manager == "kubectl" {
            old = manifest;
        }
    }
    live["metadata"]["managedFields"] = managers.to_managed_fields();
    Managed { old, live }
}

#[test]
fn an_apply_of_one_of_two_managers_is_predicted() {
    let rows = yaml(MANAGERS);
    let (crd, rows) = rows.as_array().unwrap().split_first().unwrap();
    let crd = &crd["crd"];
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
    for (number, row) in rows.iter().enumerate() {
        let title = row["title"].as_str().unwrap();
        let Managed { old, live } = managed(&schema, number, row);
        let new = shared(number, &row["new"]).to_string();
        let with_null = row.get("withNull").map(|fields| shared(number, fields).to_string()).unwrap_or_default();
        let (crd, old, live) = (crd.to_string(), old.to_string(), live.to_string());
        let files = [("crd.yaml", &*crd), ("old.yaml", &*old), ("live.yaml", &*live)];
        let folder = Folder::new(&[&files[..], &[("new.yaml", &*new), ("with-null.yaml", &*with_null)]].concat());
        let preview = |new: &str| {
            let files = ["preview", "--old", "old.yaml", "--new", new, "--live", "live.yaml", "--from", "crd.yaml"];
            let named = row.get("fieldManager").map(|name| ["--field-manager", name.as_str().unwrap()]);
            folder
                .run(&[&files[..], &["--as", "ssa", "-o", "json"], named.as_ref().map_or(&[], |named| named)].concat())
        };
        let run = preview("new.yaml");
        let report = run.json();
        assert_eq!(report["summary"]["problems"], json!([]), "{title}: {run:?}");
        let found: BTreeMap<&str, Value> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| {
                // A violation may say all that helps.
                let helps = finding["helps"].as_array().into_iter().flatten().map(|it| it["how"].as_str().unwrap());
                let helps = helps.filter(|how| *how != "patchOnce").collect::<Vec<_>>().join(" ");
                (finding["field"].as_str().unwrap(), json!([finding["rule"], finding["withKubeUnions"], helps]))
            })
            .collect();
        assert_eq!(json!(found), row["unions"], "{title}: {run:?}");
        assert_eq!(run.code, i32::from(!found.is_empty()), "{title}: {run:?}");
        if row.get("withNull").is_some() {
            let mended = preview("with-null.yaml");
            assert_eq!((mended.code, &mended.json()["findings"]), (0, &json!([])), "{title}: {mended:?}");
        }
    }
}

/// A table of so many members has no rows of three.
const MANY: usize = 10;

/// The CRD of a kind with [`MANY`] members and these keywords beside them.
fn with_many_members(keywords: &Value) -> String {
    let names = || (0..MANY).map(|number| format!("m{number}"));
    let mut properties: Map<_, _> = names().map(|name| (name, json!({"type": "object"}))).collect();
    let values: Vec<String> = names().map(|name| name.to_uppercase()).collect();
    properties.insert("type".to_owned(), json!({"type": "string", "enum": values}));
    properties.insert("free".to_owned(), json!({"type": "string"}));
    let members: Map<_, _> = names().map(|name| (name.clone(), json!(name.to_uppercase()))).collect();
    let mut spec = json!({"type": "object", "properties": properties,
        "x-kubernetes-unions": [{"discriminator": "type", "fields-to-discriminateBy": members}]});
    spec.as_object_mut().unwrap().extend(keywords.as_object().unwrap().clone());
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    crds::crd("example.com", "Widget", &[crds::version("v1", &schema)]).to_string()
}

#[test]
fn any_number_of_members_is_decided_by_the_rules_of_the_crd() {
    let rule = |rule: &str| json!({"x-kubernetes-validations": [{"rule": rule}]});
    let object = |spec: &Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let three = json!({"type": "M0", "m0": {}, "m3": {}, "m9": {}});
    let unlisted = json!({"type": "Z", "m0": {}, "m3": {}, "m9": {}});
    let rows = [
        ("no rule", json!({}), &three, "union-stored-invalid"),
        ("a rule about another field", rule("!has(self.free) || self.free != ''"), &three, "union-stored-invalid"),
        ("a rule about other members", rule("!has(self.m1) || !has(self.m2)"), &three, "union-stored-invalid"),
        ("a rule about two of them", rule("!has(self.m3) || !has(self.m9)"), &three, "union-refused"),
        ("a rule about the value", rule("self.type == 'M0' || has(self.m0)"), &three, "union-stored-invalid"),
        ("a keyword", json!({"maxProperties": 3}), &three, "union-refused"),
        ("a keyword that allows them", json!({"maxProperties": 4}), &three, "union-stored-invalid"),
        ("a value that the schema does not list", json!({}), &unlisted, "union-refused"),
        ("a rule inside a keyword", json!({"anyOf": [rule("has(self.m0)")]}), &three, "union-undecided"),
    ];
    for (what, keywords, spec, wanted) in rows {
        let old = object(&json!({"type": "M0", "m0": {}})).to_string();
        let files = [("crd.yaml", &*with_many_members(&keywords)), ("old.yaml", &*old)];
        let folder = Folder::new(&[&files[..], &[("new.yaml", &*object(spec).to_string())]].concat());
        let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "--from", "crd.yaml", "--as", "replace"];
        let run = folder.run(&[&files[..], &["-o", "json"]].concat()).code(1);
        let report = run.json();
        let findings = report["findings"].as_array().unwrap();
        let found: Vec<&Value> = findings.iter().map(|finding| &finding["rule"]).collect();
        assert!(!found.is_empty() && found.iter().all(|it| *it == wanted), "{what}: {found:?}");
    }
}

/// Returns the CRD of Widgets with the members `a`, `b` and `url`, of which `a` and `b` are a union, and with these rules at `spec`.
fn with_rules(rules: &Value) -> String {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"a": text, "b": text, "url": text}, "x-kubernetes-validations": rules,
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    crds::crd("example.com", "Widget", &[crds::version("v1", &schema)]).to_string()
}

/// Returns a Widget.
fn widget(spec: &Value) -> String {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}).to_string()
}

#[test]
fn a_rule_that_compares_with_the_old_object_decides_or_is_undecided() {
    let rule = |rule: &str| json!([{"rule": rule, "message": "no"}]);
    let (a, b, both) = (json!({"a": "x"}), json!({"b": "x"}), json!({"a": "x", "b": "x"}));
    let rows = [
        ("the switch is refused", rule("has(self.a) == has(oldSelf.a)"), &a, &b, json!(["immutable-refused"])),
        ("nothing is switched", rule("has(self.a) == has(oldSelf.a)"), &a, &json!({"a": "y"}), json!([])),
        ("the switch is allowed", rule("!has(oldSelf.b) || has(self.b)"), &a, &b, json!([])),
        ("a whole object never changes", rule("self == oldSelf"), &a, &b, json!(["immutable-refused"])),
        ("a field that is gone is an error", rule("self.a == oldSelf.a"), &a, &b, json!(["immutable-refused"])),
        ("a function is not evaluated", rule("!has(oldSelf.a) || isURL(self.b)"), &a, &b, json!(["union-undecided"])),
        (
            "the same about another change",
            rule("isURL(self.b) || has(oldSelf.a)"),
            &b,
            &json!({"b": "y"}),
            json!(["union-undecided"]),
        ),
        ("the same about no union", rule("isURL(self.url) || oldSelf.url == 'x'"), &a, &b, json!([])),
        (
            "both faults",
            rule("!has(self.b) || has(oldSelf.b)"),
            &a,
            &both,
            json!(["union-stored-invalid", "immutable-refused"]),
        ),
    ];
    for (what, rules, old, new, wanted) in rows {
        let (crd, old, new) = (with_rules(&rules), widget(old), widget(new));
        let folder = Folder::new(&[("crd.yaml", &*crd), ("old.yaml", &old), ("new.yaml", &new)]);
        let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "--from", "crd.yaml", "-o", "json"];
        let report = folder.run(&files).json();
        let findings = report["findings"].as_array().unwrap();
        let found: Vec<&Value> = findings.iter().map(|finding| &finding["rule"]).collect();
        assert_eq!(json!(found), wanted, "{what}: {report}");
        for finding in findings.iter().filter(|finding| finding["rule"] == "immutable-refused") {
            assert_eq!(finding["message"], "Invalid value: \"object\": no", "{what}: {finding}");
            assert!(
                finding["helps"].as_array().into_iter().flatten().all(|it| it["how"] == "recreate"),
                "{what}: {finding}"
            );
        }
        // A create has no old object.
        let create = folder.run(&["preview", "--new", "new.yaml", "--from", "crd.yaml", "-o", "json"]).json();
        assert_eq!(create["summary"]["refusedChanges"], 0, "{what}: {create}");
    }
}

/// Returns a Feed as other clients left it: the field managers that own `spec.git`, each with its operation, and true if it owns the
/// annotation of `kubectl apply` as well.
fn feed_of(managers: &[(&str, &str, bool)]) -> String {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let entry = |(manager, operation, annotated): &(&str, &str, bool)| {
        let mut fields = json!({"f:spec": {"f:git": {"f:url": {}}}});
        if *operation == "Update" {
            // An apply owns no object that only holds its fields.
            fields["f:spec"]["f:git"]["."] = json!({});
        }
        if *annotated {
            fields["f:metadata"] = json!({"f:annotations": {".": {}, format!("f:{annotation}"): {}}});
        }
        json!({"manager": manager, "operation": operation, "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let entries: Vec<Value> = managers.iter().map(entry).collect();
    let mut metadata = json!({"name": "a", "managedFields": entries});
    if managers.iter().any(|(.., annotated)| *annotated) {
        metadata["annotations"] = json!({annotation: "{}"});
    }
    json!({"apiVersion": "example.com/v1", "kind": "Feed", "metadata": metadata, "spec": {"git": {"url": "a"}}})
        .to_string()
}

#[test]
fn each_client_takes_over_what_it_takes_over() {
    const KUBECTL: (&str, &str, bool) = ("kubectl-client-side-apply", "Update", true);
    const ARGO: (&str, &str, bool) = ("argocd-controller", "Update", true);
    const HELM: (&str, &str, bool) = ("helm", "Update", false);
    let rows = [
        // The old writer, the client, and what it leaves without and with a rule. `once`: the old rendering helps.
        (&[KUBECTL][..], "ssa", "valid", "refused once"),
        (&[KUBECTL], "flux", "valid", "refused once"),
        (&[KUBECTL], "argocd-ssa", "valid", "valid"),
        (&[KUBECTL], "helm4", "stored", "refused"),
        (&[ARGO], "ssa", "valid", "refused once"),
        (&[ARGO], "argocd-ssa", "valid", "refused once"),
        (&[ARGO], "flux", "stored", "refused"),
        (&[HELM], "helm4", "valid", "valid"),
        (&[HELM], "ssa", "stored", "refused"),
        (&[HELM], "flux", "stored", "refused"),
        (&[("kubectl", "Apply", false)], "ssa", "valid", "valid"),
        (&[("kubectl", "Apply", false)], "flux", "valid", "refused once"),
        (&[("kubectl", "Apply", false)], "helm4", "stored", "refused"),
        (&[("kubectl-edit", "Update", false)], "flux", "valid", "refused once"),
        (&[("kubectl-edit", "Update", false)], "ssa", "stored", "refused"),
        (&[("helm-controller", "Apply", false)], "flux", "valid", "valid"),
        (&[KUBECTL, HELM], "ssa", "stored", "refused"),
    ];
    let part = |field: &str| json!({"type": "object", "properties": {field: {"type": "string"}}});
    let crd = |rules: Value| {
        let spec = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {"git": part("url"), "bucket": part("name")},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"git": "Git", "bucket": "Bucket"}}]});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        crds::crd("example.com", "Feed", &[crds::version("v1", &schema)]).to_string()
    };
    let feed = |spec: Value| {
        json!({"apiVersion": "example.com/v1", "kind": "Feed", "metadata": {"name": "a"}, "spec": spec}).to_string()
    };
    let (free, ruled) = (crd(json!([])), crd(json!([{"rule": "!(has(self.git) && has(self.bucket))"}])));
    let (old, new) = (feed(json!({"git": {"url": "a"}})), feed(json!({"bucket": {"name": "b"}})));
    let files = [("free.yaml", &*free), ("ruled.yaml", &ruled), ("old.yaml", &old), ("new.yaml", &new)];
    for (managers, way, without, with_rule) in rows {
        let live = feed_of(managers);
        let folder = Folder::new(&[&files[..], &[("live.yaml", &*live)]].concat());
        for (crd, wanted) in [("free.yaml", without), ("ruled.yaml", with_rule)] {
            let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "--live", "live.yaml", "--from", crd];
            let run = folder.run(&[&files[..], &["--as", way, "-o", "json"]].concat());
            let report = run.json();
            let answer = match report["findings"].as_array().unwrap().first() {
                None => "valid".to_owned(),
                Some(finding) => {
                    let owners = finding["leftBehind"][0]["managers"].as_array().unwrap();
                    let owners: Vec<&str> = owners.iter().map(|it| it["name"].as_str().unwrap()).collect();
                    let mut named: Vec<&str> = managers.iter().map(|it| it.0).collect();
                    if wanted == "stored" && managers.len() == 2 {
                        // It has taken over the other one.
                        named = vec!["helm"];
                    }
                    named.sort_unstable();
                    assert_eq!(owners, named, "{way}: {report}");
                    let once = finding["helps"].as_array().unwrap().iter().any(|it| it["how"] == "oldOnce");
                    let rule =
                        finding["rule"].as_str().unwrap().trim_start_matches("union-").trim_end_matches("-invalid");
                    format!("{rule}{}", if once { " once" } else { "" })
                }
            };
            assert_eq!(answer, wanted, "{managers:?} {way} {crd}: {run:?}");
            assert!(!run.stderr.contains("--show-managed-fields"), "{run:?}");
        }
    }
}

/// A claim in place of the volume's source of the live object, which applies as kubectl does remove or leave.
#[test]
fn a_client_side_apply_removes_what_the_annotation_of_the_live_object_has() {
    let pod = |volume: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": {"spec":
            {"volumes": [volume], "containers": [{"name": "a", "livenessProbe": {"exec": {"command": ["a"]}}}]}}}})
    };
    let probe = |mut object: Value, probe: Value| {
        object["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] = probe;
        object
    };
    let old = pod(json!({"name": "data", "emptyDir": {}}));
    let new = probe(old.clone(), json!({"httpGet": {"port": 80}}));
    let annotated = |annotation: Option<String>| {
        let mut live = old.clone();
        live["metadata"]["managedFields"] = json!([{"manager": "somebody", "operation": "Update", "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}":
                {"f:livenessProbe": {"f:exec": {"f:command": {}}}}}}}}}}]);
        if let Some(annotation) = annotation {
            live["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": annotation});
        }
        live.to_string()
    };
    let without_probe = probe(old.clone(), Value::Null);
    for (annotation, code, stays, words) in [
        (Some(old.to_string()), 0, false, ""),
        (Some(without_probe.to_string()), 1, true, ""),
        (None, 1, true, "1 live object without the annotation `kubectl.kubernetes.io/last-applied-configuration`"),
        (Some("{".to_owned()), 2, false, "cannot be predicted: the manifest that was applied last"),
    ] {
        let live = annotated(annotation);
        let folder =
            Folder::new(&[("old.json", &*old.to_string()), ("new.json", &new.to_string()), ("live.json", &live)]);
        // The rendering that is said to be the old one counts for nothing.
        for old in [&["--old", "old.json"][..], &["--old", "new.json"], &[]] {
            let run = folder.run(&[&["preview", "--new", "new.json", "--live", "live.json"], old].concat());
            assert_eq!(run.code, code, "{run:?}");
            let reason = "`exec` is left behind: the live object has it, and the last `kubectl apply` did not set it; \
                          the field manager `somebody` (Update) owns it";
            assert_eq!(run.stdout.contains(reason), stays, "{run:?}");
            assert!(run.stderr.contains(words), "{run:?}");
            assert_eq!(run.stderr.contains("without the annotation"), words.contains("without"), "{run:?}");
        }
        // Helm does not read it.
        let run =
            folder.run(&["preview", "--old", "old.json", "--new", "new.json", "--live", "live.json", "--as", "helm"]);
        assert_eq!(run.code, 0, "{run:?}");
    }
}

#[test]
fn a_live_object_without_field_managers_is_told() {
    let live = feed_of(&[]);
    let spec = json!({"type": "object", "properties": {"git": {"type": "object", "properties": {"url": {"type": "string"}}}, "bucket": {"type": "object"}},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"git": "Git", "bucket": "Bucket"}}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let crd = crds::crd("example.com", "Feed", &[crds::version("v1", &schema)]).to_string();
    let new = live.replace(r#""git":{"url":"a"}"#, r#""bucket":{}"#).replace(r#","managedFields":[]"#, "");
    let folder = Folder::new(&[("crd.yaml", &*crd), ("live.yaml", &live), ("new.yaml", &new)]);
    for (way, told) in [("ssa", true), ("flux", true), ("csa", false), ("merge", false)] {
        let files = ["preview", "--new", "new.yaml", "--live", "live.yaml", "--from", "crd.yaml", "--as", way];
        let run = folder.run(&files).code(1);
        let warning =
            "1 live object without field managers, so that everything stays: read with `--show-managed-fields`";
        assert_eq!(run.stderr.contains(warning), told, "{way}: {run:?}");
    }
}

#[test]
fn a_kind_that_nothing_declares_has_the_unions_that_its_validations_enforce() {
    let member = json!({"type": "object"});
    let crd = |keywords: Value| {
        let mut spec = json!({"type": "object", "properties": {"a": member, "b": member, "c": member}});
        spec.as_object_mut().unwrap().extend(keywords.as_object().unwrap().clone());
        crds::crd(
            "example.com",
            "Widget",
            &[crds::version("v1", &json!({"type": "object", "properties": {"spec": spec}}))],
        )
        .to_string()
    };
    let rule = |rule: &str| json!({"x-kubernetes-validations": [{"rule": rule}]});
    let required = |name: &str| json!({"required": [name]});
    let note = "Note: nothing declares unions of `Widget`: judged by those that the validations of the CRD enforce";
    let doubt = "Note: fields of `Widget` may be a union: `kube-unions propose` says why that is in doubt";
    let rows = [
        ("a number of fields", crd(json!({"maxProperties": 1})), Some(note), 1),
        ("a keyword", crd(json!({"oneOf": [required("a"), required("b"), required("c")]})), Some(note), 1),
        ("a rule", crd(rule("[has(self.a), has(self.b), has(self.c)].filter(x, x).size() <= 1")), Some(note), 1),
        ("a doubt", crd(rule("isURL('x') || !has(self.a) || !has(self.b)")), Some(doubt), 0),
        ("a rule about one field", crd(rule("!has(self.a) || size(self.a) > -1")), None, 0),
        ("no validation", crd(json!({})), None, 0),
    ];
    let (old, new) = (widget(&json!({"a": {}})), widget(&json!({"b": {}})));
    for (what, crd, said, refused) in rows {
        let folder = Folder::new(&[("crd.yaml", &*crd), ("old.yaml", &old), ("new.yaml", &new)]);
        for (way, findings) in [("merge", refused), ("replace", 0)] {
            let files =
                ["preview", "--old", "old.yaml", "--new", "new.yaml", "--from", "crd.yaml", "--as", way, "-o", "json"];
            let run = folder.run(&files).code(i32::from(findings > 0));
            let found = run.json()["findings"].as_array().unwrap().clone();
            assert_eq!(found.len(), findings, "{what}, {way}: {run:?}");
            for finding in found {
                assert_eq!(
                    (&finding["rule"], &finding["proposed"]),
                    (&json!("union-refused"), &json!(true)),
                    "{what}: {finding}"
                );
                assert_eq!(finding["withKubeUnions"], "mended", "{what}: {finding}");
                let helps =
                    finding["helps"].as_array().unwrap().iter().find(|it| it["how"] == "kubeUnions").expect(what);
                assert!(helps["text"].as_str().unwrap().ends_with("`kube-unions propose` prints"), "{what}: {finding}");
            }
            let notes: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("Note: ")).collect();
            assert_eq!(notes, said.into_iter().collect::<Vec<_>>(), "{what}: {run:?}");
            assert_eq!(run.stderr.contains("every union is valid"), refused > 0 && findings == 0, "{what}: {run:?}");
        }
    }
}

/// On a cluster, the CRD may come later.
#[test]
fn a_declaration_without_its_crd_has_no_effect() {
    let declaration = |name: &str, group: &str| {
        let target = json!({"group": group, "kind": "Widget"});
        let unions = json!([{"path": "spec", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}]);
        json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": name},
            "spec": {"target": target, "unions": unions}})
        .to_string()
    };
    let [first, second, built_in] = [("first", "example.com"), ("second", "another.example.com"), ("apps", "apps")]
        .map(|(name, group)| declaration(name, group));
    let deployment = deployments(&[("a", "{}")]);
    let widgets = format!("{deployment}---\n{}", widget(&json!({"a": "x", "b": "x"})));
    let crd = with_rules(&json!([]));
    let rows = [
        (
            "one",
            format!("{first}\n---\n{second}"),
            &deployment,
            0,
            "Note: 2 UnionDeclarations without effect: nothing here describes their kinds",
            1,
        ),
        ("beside an object of the kind", first.clone(), &widgets, 0, "Note: 1 UnionDeclaration without effect", 1),
        (
            "one of two",
            format!("{crd}\n---\n{first}\n---\n{second}"),
            &widgets,
            1,
            "Note: 1 UnionDeclaration without effect",
            2,
        ),
        ("of a built-in group", built_in, &deployment, 2, "1 fault in declarations of unions", 1),
    ];
    for (what, from, new, code, said, judged) in rows {
        let folder = Folder::new(&[("from.yaml", &*from), ("new.yaml", new)]);
        let run = folder.run(&["preview", "--new", "new.yaml", "--from", "from.yaml", "-o", "json"]).code(code);
        assert_eq!(run.json()["summary"]["onlyInNew"], judged, "{what}: {run:?}");
        assert_eq!(run.stderr.matches(said).count(), 1, "{what}: {run:?}");
    }
}

#[test]
fn what_a_server_side_apply_empties_is_told() {
    let part =
        |nullable: bool| json!({"type": "object", "nullable": nullable, "properties": {"x": {"type": "string"}}});
    let schema = |nullable: bool| {
        let spec = json!({"type": "object", "properties": {"a": part(nullable), "b": part(nullable)},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        crds::crd("example.com", "Widget", &[crds::version("v1", &schema)]).to_string()
    };
    let words = "an API server of Kubernetes 1.36.0 to 1.36.2 leaves `{}` or `[]` there instead";
    let (old, kept) = (json!({"a": {"x": "x"}}), json!({"a": {"x": "x"}, "b": null}));
    let rows = [
        ("a null that may be", true, json!({"a": null, "b": {"x": "y"}}), "ssa", 0, true),
        ("an object without its field", true, json!({"a": {}}), "ssa", 0, true),
        ("a null that may not be", false, json!({"a": null, "b": {"x": "y"}}), "ssa", 1, true),
        ("nothing was there", true, kept, "ssa", 0, false),
        ("the switch alone", true, json!({"b": {"x": "y"}}), "ssa", 0, false),
        ("another way", true, json!({"a": null, "b": {"x": "y"}}), "csa", 0, false),
    ];
    for (what, nullable, new, way, code, told) in rows {
        let folder =
            Folder::new(&[("crd.yaml", &*schema(nullable)), ("old.yaml", &widget(&old)), ("new.yaml", &widget(&new))]);
        let run = folder
            .run(&["preview", "--old", "old.yaml", "--new", "new.yaml", "--from", "crd.yaml", "--as", way])
            .code(code);
        assert_eq!(
            format!("{}{}", run.stdout, run.stderr).matches(words).count(),
            usize::from(told),
            "{what}: {run:?}"
        );
    }
}

#[test]
fn items_with_the_same_keys_are_merged_as_a_client_merges_them() {
    let deployment = |env: Value| {
        let container = json!({"name": "mail", "image": "a", "env": env});
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mail"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
        .to_string()
    };
    let from = json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let value = |text: &str| json!({"name": "A", "value": text});
    let other = json!({"name": "B", "value": "b"});
    let rows = [
        ("two, and one of another value", json!([from, value("a")]), json!([from, value("b")]), true),
        ("another one", json!([from]), json!([from, value("a")]), true),
        ("another one beside others", json!([other, from]), json!([other, from, value("a")]), true),
        ("the same two", json!([from, value("a")]), json!([from, value("a")]), false),
        ("one fewer", json!([from, value("a")]), json!([from]), false),
        ("two values", json!([value("a"), value("b")]), json!([value("a"), value("c")]), false),
        ("a name that is not twice", json!([from]), json!([from, other]), false),
        ("two new ones", json!([other]), json!([other, from, value("a")]), true),
    ];
    for (what, old, new, is_refused) in rows {
        let names: Vec<&Value> = new.as_array().unwrap().iter().map(|it| &it["name"]).collect();
        let (items, is_twice) = (names.len(), names.iter().filter(|name| ***name == "A").count() == 2);
        let folder = Folder::new(&[("old.yaml", &*deployment(old.clone())), ("new.yaml", &deployment(new.clone()))]);
        for way in ["csa", "helm", "merge", "replace"] {
            let run = folder.run(&["preview", "--old", "old.yaml", "--new", "new.yaml", "--as", way, "-o", "json"]);
            let is_refused = is_refused && ["csa", "helm"].contains(&way);
            assert_eq!(run.code, i32::from(is_refused), "{what}, {way}: {run:?}");
            for finding in run.json()["findings"].as_array().unwrap() {
                let helps: Vec<&Value> = finding["helps"].as_array().unwrap().iter().map(|it| &it["how"]).collect();
                assert_eq!(
                    (&finding["rule"], helps),
                    (&json!("union-refused"), vec![&json!("recreate")]),
                    "{what}: {finding}"
                );
                let said = "a patch merges what changes into the first of them";
                assert!(finding["note"].as_str().unwrap().ends_with(said), "{what}: {finding}");
                assert!(finding.get("leftBehind").is_none(), "{what}: {finding}");
            }
        }
        // A create is not merged. A server-side apply never has them.
        for (way, old) in [("csa", &[][..]), ("ssa", &[]), ("ssa", &["--old", "old.yaml"])] {
            let run = folder.run(&[&["preview", "--new", "new.yaml", "--as", way, "-o", "json"], old].concat());
            let found =
                run.json()["findings"].as_array().unwrap().first().map_or(Value::Null, |it| it["field"].clone());
            let twice = format!("spec.template.spec.containers[0].env[{}]", items - 1);
            let is_refused = way == "ssa" && is_twice;
            assert_eq!(
                (run.code, found),
                (i32::from(is_refused), if is_refused { json!(twice) } else { Value::Null }),
                "{what}, {way}: {run:?}"
            );
        }
    }
}

#[test]
fn many_members_of_one_union_are_one_finding() {
    let members = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), json!({}))).collect::<Value>();
    let schema = |unions: Value| {
        let fields = members(&["a", "b", "c", "d", "e", "f"]);
        let typed: Map<String, Value> =
            fields.as_object().unwrap().keys().map(|name| (name.clone(), json!({"type": "object"}))).collect();
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": typed, "x-kubernetes-unions": unions}}})
    };
    let first = json!({"fields-to-discriminateBy": {"a": "A", "b": "B", "c": "C"}});
    let second = json!({"fields-to-discriminateBy": {"d": "D", "e": "E", "f": "F"}});
    let object = |spec: Value| {
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}).to_string()
    };
    for (unions, spec, found) in [
        (json!([first]), &["a", "b", "c"][..], 1),
        (json!([first]), &["a", "b"], 1),
        (json!([first, second]), &["a", "b", "c", "d", "e", "f"], 2),
        (json!([first, second]), &["a", "d"], 0),
    ] {
        let crd = crds::crd("example.com", "Widget", &[crds::version("v1", &schema(unions))]).to_string();
        let folder = Folder::new(&[("crd.yaml", &*crd), ("new.yaml", &object(members(spec)))]);
        let report = folder.run(&["preview", "--new", "new.yaml", "--from", "crd.yaml", "-o", "json"]).json();
        assert_eq!(report["findings"].as_array().unwrap().len(), found, "{spec:?}: {report}");
    }
}
