//! `UnionDeclaration`s and OpenAPI documents, wherever the command line takes CRDs.

use super::{CRD, Folder, Run, crd_of};
use serde_json::{Value, json};

/// A `UnionDeclaration` for the kind that both documents describe.
const DECLARATION: &str = include_str!("deployment.yaml");
/// As an API server publishes one group and version.
const V3: &str = include_str!("apps-v1.openapi.json");
/// The same in the document for all groups.
const V2: &str = include_str!("swagger.json");

const ROLLING: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  strategy:\n    type: RollingUpdate\n    \
    rollingUpdate: {maxSurge: 1}\n  template: {volumes: [{name: a, emptyDir: {}}]}\n";
/// As a client sends it that changes the discriminator, and sets another member.
const SWITCHED: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  strategy:\n    type: Recreate\n    \
    rollingUpdate: {maxSurge: 1}\n  template: {volumes: [{name: a, emptyDir: {}, hostPath: {path: /x}}]}\n";
const NORMALIZED: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  strategy:\n    type: Recreate\n  \
    template: {volumes: [{name: a, hostPath: {path: /x}}]}\n";
const TWO: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: two}\nspec: {strategy: {type: Recreate, rollingUpdate: {}}, \
    template: {volumes: [{name: a, emptyDir: {}, hostPath: {}}]}}\n";

const TREE: &str = "\
Deployment apps/v1
├── spec.strategy (2022 form, discriminator `type`, from declaration deployment)
│   ├── Recreate      → no member
│   └── RollingUpdate → rollingUpdate (optional)
└── spec.template.volumes[*] (2019 form, no discriminator, from declaration deployment)
    ├── emptyDir
    └── hostPath
";

fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(files);
    folder.write("deployment.yaml", DECLARATION);
    folder.write("v3.json", V3);
    folder.write("v2.json", V2);
    folder
}

/// The declaration with one of its words changed.
fn with(from: &str, to: &str) -> String {
    let changed = DECLARATION.replace(from, to);
    assert_ne!(changed, DECLARATION, "there is no `{from}`");
    changed
}

/// A CRD of somebody else, without any extension, and a declaration of one of its unions.
fn foreign() -> (String, String) {
    let crd = CRD.lines().filter(|line| !line.contains("x-kubernetes-unions") && !line.contains("fields-to"));
    let crd =
        crd.filter(|line| !line.contains("git: Git") && !line.contains("oci: OCI")).collect::<Vec<_>>().join("\n");
    let declaration = "apiVersion: kube-unions.dev/v1alpha1\nkind: UnionDeclaration\nmetadata: {name: widget}\nspec:\n  \
        target: {group: example.com, kind: Widget}\n  unions:\n  - {path: spec, fieldsToDiscriminateBy: {git: Git, oci: OCI}}\n";
    (crd + "\n", declaration.to_owned())
}

/// Returns the text of both streams.
fn said(run: &Run) -> String {
    assert!(!run.stderr.contains("panicked"), "{run:#?}");
    format!("{}{}", run.stdout, run.stderr)
}

#[test]
fn explain_shows_builtin_kinds_from_either_version_of_openapi() {
    let folder = folder(&[]);
    for document in ["v3.json", "v2.json"] {
        for kind in [&[][..], &["Deployment"], &["deployment"], &["deployment.apps"]] {
            let arguments = [&["explain", "--from", "deployment.yaml", "--from", document], kind].concat();
            folder.run(&arguments).code(0).prints(TREE);
        }
    }
    folder
        .run(&["explain", "--from", "deployment.yaml", "--from", "v3.json", "Plain"])
        .code(2)
        .prints("")
        .says(&["no kind `Plain`", "Deployment.apps"]);
}

#[test]
fn what_is_only_observed_is_printed_as_it_is_and_named_on_standard_error() {
    let observes = with("  unions:", "  normalization: Disabled\n  validationActions: [Audit]\n  unions:");
    let folder = folder(&[("old.yaml", ROLLING), ("new.yaml", SWITCHED), ("observe.yaml", &observes)]);
    let kinds = ["--from", "observe.yaml", "v3.json"];
    let run = folder.run(&[&["normalize", "--old", "old.yaml", "-f", "new.yaml"][..], &kinds].concat()).code(0);
    run.prints(SWITCHED).says(&[
        "Note: Deployment.apps: nothing is changed at spec.strategy, spec.template.volumes[*]: `deployment` has \
         `normalization: Disabled`",
        "Audit: spec.strategy.rollingUpdate: Forbidden: ",
    ]);
    let warns = with("  unions:", "  normalization: Disabled\n  validationActions: [Warn, Audit]\n  unions:");
    folder.write("observe.yaml", &warns);
    let run = folder.run(&[&["normalize", "--old", "old.yaml", "-f", "new.yaml"][..], &kinds].concat()).code(0);
    let run = run.prints(SWITCHED).says(&["Warning: spec.strategy.rollingUpdate: Forbidden: "]);
    assert!(!run.stderr.contains("Audit: "), "{run:#?}");
}

#[test]
fn explain_tells_which_declaration_and_how_it_treats_objects() {
    let warning = with("  unions:", "  validationActions: [Warn]\n  unions:");
    let folder = folder(&[("warn.yaml", &warning)]);
    let run = folder.run(&["explain", "--from", "warn.yaml", "--from", "v3.json"]).code(0);
    assert!(run.stdout.contains("spec.strategy (2022 form, discriminator `type`, from declaration deployment, Warn)"));
    let observes = with("  unions:", "  normalization: Disabled\n  validationActions: [Audit]\n  unions:");
    folder.write("observe.yaml", &observes);
    let run = folder.run(&["explain", "--from", "observe.yaml", "--from", "v3.json"]).code(0);
    assert!(run.stdout.contains("from declaration deployment, Audit, not normalised)"), "{}", run.stdout);
    for (file, action, normalization) in [
        ("warn.yaml", "Warn", "Enabled"),
        ("deployment.yaml", "Deny", "Enabled"),
        ("observe.yaml", "Audit", "Disabled"),
    ] {
        let report = folder.run(&["explain", "-o", "json", "--from", file, "--from", "v3.json"]).code(0).json();
        let union = &report[0]["unions"][0];
        assert_eq!(
            (&union["source"], &union["declaration"], &union["validationActions"], &union["normalization"]),
            (&json!("declaration"), &json!("deployment"), &json!([action]), &json!(normalization))
        );
    }
}

#[test]
fn a_kind_of_the_core_group_is_shown_without_one() {
    let document = V3.replace("\"group\": \"apps\"", "\"group\": \"\"");
    let folder = folder(&[("core.json", &document), ("core.yaml", &with("group: apps, ", ""))]);
    let run = folder.run(&["explain", "--from", "core.yaml", "--from", "core.json", "deployment"]).code(0);
    assert!(run.stdout.starts_with("Deployment v1\n"), "{run:#?}");
    folder
        .run(&["explain", "--from", "core.yaml", "--from", "core.json", "X"])
        .code(2)
        .says(&["there are: Deployment/v1\n"]);
    let run = folder.run(&["lint", "core.yaml", "v3.json"]).code(1);
    assert!(run.stdout.contains("`kubectl get --raw /openapi/v3/api/v1`"), "{run:#?}");
}

#[test]
fn objects_of_builtin_kinds_are_normalised_and_refused() {
    let folder = folder(&[("old.yaml", ROLLING), ("new.yaml", SWITCHED), ("two.yaml", TWO)]);
    for document in ["v3.json", "v2.json"] {
        let run = |more: &[&str]| folder.run(&[&["normalize", "--from", "deployment.yaml", document], more].concat());
        run(&["--old", "old.yaml", "-f", "new.yaml"])
            .code(0)
            .prints(NORMALIZED)
            .says(&["spec.strategy.rollingUpdate: cleared", "spec.template.volumes[0].emptyDir: cleared"]);
        run(&["-f", "two.yaml"]).code(1).prints("").says(&[
            "The Deployment \"two\" is invalid",
            "* spec.strategy.rollingUpdate: Forbidden: ",
            "volumes[0].",
        ]);
        run(&["-f", "old.yaml"]).code(0).prints(ROLLING);
    }
}

#[test]
fn a_violation_of_a_whole_object_is_said_without_a_path() {
    let crd = crd_of("Thing", "        {type: object, properties: {a: {type: string}, b: {type: string}}}\n");
    let declaration = "apiVersion: kube-unions.dev/v1alpha1\nkind: UnionDeclaration\nmetadata: {name: thing}\nspec:\n  \
        target: {group: example.com, kind: Thing}\n  unions:\n  \
        - {path: '', required: true, fieldsToDiscriminateBy: {a: A, b: B}}\n";
    let folder = Folder::new(&[("crd.yaml", &crd), ("declaration.yaml", declaration)]);
    folder.write("none.yaml", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: none}\n");
    let arguments = ["normalize", "--from", "crd.yaml", "declaration.yaml", "-f", "none.yaml"];
    folder.run(&arguments).code(1).prints("").says(&["The Thing \"none\" is invalid: Required value: "]);
}

#[test]
fn a_crd_of_somebody_else_is_a_target() {
    let (crd, declaration) = foreign();
    let folder = Folder::new(&[("crd.yaml", &crd), ("widget.yaml", &declaration)]);
    folder.run(&["lint", "."]).code(0).prints("");
    folder.run(&["explain", "--from", "."]).code(0).prints(
        "Widget example.com/v1\n└── spec (2019 form, no discriminator, from declaration widget)\n    ├── git\n    └── oci\n",
    );
    folder.run(&["explain", "--from", "crd.yaml"]).code(1).says(&["no kind has unions"]);
}

#[test]
fn a_crd_is_asked_before_an_openapi_document() {
    let (crd, declaration) = foreign();
    // As the cluster describes the CRD's kind, which may be older than the file.
    let document = V3.replace("\"apps\"", "\"example.com\"").replace("\"Deployment\"", "\"Widget\"");
    let folder = Folder::new(&[("crd.yaml", &crd), ("widget.yaml", &declaration), ("openapi.json", &document)]);
    folder.run(&["lint", "."]).code(0).prints("");
    let run = folder.run(&["lint", "widget.yaml", "openapi.json"]).code(0);
    assert!(run.stdout.contains("no properties `git`, `oci`"), "{run:#?}");
}

#[test]
fn what_documents_publish_is_taken_only_when_asked_for_and_only_where_it_is_right() {
    let folder = folder(&[]);
    for document in ["v3.json", "v2.json"] {
        let explain = ["explain", "--from", document];
        folder.run(&explain).code(2).says(&["only OpenAPI documents", "--builtin-unions=openapi"]);
        folder.run(&[&explain[..], &["--builtin-unions=openapi"]].concat()).code(0).prints(
            "Deployment apps/v1\n└── spec.template.caller (2019 form, discriminator `kind`, from published)\n    \
             ├── Group → group\n    └── User  → user\n",
        );
        let run = folder.run(&["lint", "--builtin-unions=openapi", document]).code(1);
        assert_eq!(run.stdout.lines().count(), 1, "{run:#?}");
        let line =
            format!("{document}: spec.template.profile: error: v1: the value `LocalhostProfile` is not in the enum");
        assert!(run.stdout.starts_with(&line), "{run:#?}");

        // Both sources beside each other.
        let both = [&explain[..], &["--from", "deployment.yaml", "--builtin-unions=openapi"]].concat();
        let run = folder.run(&both).code(0);
        assert_eq!(run.stdout.matches("from declaration deployment").count(), 2, "{run:#?}");
        assert_eq!(run.stdout.matches("from published").count(), 1, "{run:#?}");
        // A declaration alone does not bring in what the document says besides.
        folder.run(&[&explain[..], &["--from", "deployment.yaml"]].concat()).code(0).prints(TREE);
        folder.run(&["lint", "deployment.yaml", document]).code(0).prints("");
    }
    let caller = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {caller: {kind: User, group: {}}}}\n";
    folder.write("caller.yaml", caller);
    let normalize = ["normalize", "-f", "caller.yaml", "--from", "v3.json", "deployment.yaml"];
    folder.run(&normalize).code(0).prints(caller);
    folder
        .run(&[&normalize[..], &["--builtin-unions=openapi"]].concat())
        .code(1)
        .says(&["spec.template.caller.group: Forbidden"]);
    folder.run(&["explain", "--from", "v3.json", "--builtin-unions=all"]).code(2).says(&["ignored, openapi"]);
}

#[test]
fn a_declaration_is_believed_before_what_a_document_publishes() {
    let right = with(
        "  - path: spec.template.volumes[*]\n    fieldsToDiscriminateBy: {emptyDir: EmptyDir, hostPath: HostPath}\n",
        "  - path: spec.template.profile\n    discriminator: type\n    fieldsToDiscriminateBy: {localhostProfile: Localhost}\n",
    );
    let folder = folder(&[("right.yaml", &right)]);
    folder.run(&["lint", "right.yaml", "v3.json"]).code(0).prints("");
    let run = folder.run(&["lint", "right.yaml", "v3.json", "--builtin-unions=openapi"]).code(1);
    let line = "v3.json: spec.template.profile: error: v1: contradicts the declaration, which is in force";
    assert!(run.stdout.starts_with(line) && run.stdout.lines().count() == 1, "{run:#?}");
    let arguments = ["explain", "--from", "right.yaml", "--from", "v3.json", "--builtin-unions=openapi"];
    let run = folder.run(&arguments).code(0);
    let profile = "spec.template.profile (2019 form, discriminator `type`, from declaration deployment)";
    assert!(run.stdout.contains(profile), "{run:#?}");
}

#[test]
fn lint_names_the_place_in_the_declaration() {
    let faulty = with("EmptyDir, hostPath: HostPath", "EmptyDir, hostpath: HostPath");
    let folder = folder(&[("faulty.yaml", &format!("a: 1\n---\n{faulty}"))]);
    let run = folder.run(&["lint", "faulty.yaml", "v3.json"]).code(0);
    let line = "faulty.yaml:16:5: spec.template.volumes[*]: note: v1: the schema has no property `hostpath` (did you mean \
                `hostPath`?), so this member is left out; fewer than two members are left, so the union is not in force\n";
    assert_eq!(run.stdout, line);

    let findings = folder.run(&["lint", "--strict", "-o", "json", "faulty.yaml", "v3.json"]).code(0).json();
    let [finding] = findings.as_array().unwrap().as_slice() else { panic!("{findings:#}") };
    assert_eq!(
        (&finding["file"], &finding["line"], &finding["column"], &finding["versions"], &finding["path"]),
        (&json!("faulty.yaml"), &json!(16), &json!(5), &json!(["v1"]), &json!("spec.template.volumes[*]"))
    );
    assert_eq!(
        (&finding["definition"], &finding["declaration"], &finding["source"], &finding["severity"]),
        (&json!("Deployment.apps"), &json!("deployment"), &json!("declaration"), &json!("note"))
    );
    // The good one of the two is in force.
    let run = folder.run(&["explain", "--from", "faulty.yaml", "--from", "v3.json"]).code(0);
    assert!(run.stdout.contains("spec.strategy ") && !run.stdout.contains("volumes"), "{run:#?}");
}

#[test]
fn what_is_wrong_in_a_spec_itself_is_a_fault_at_its_place() {
    for (from, to, line) in [
        ("path: spec.strategy", "path: spec..strategy", "faulty.yaml:9:5: spec..strategy: error: "),
        ("kind: Deployment}", "kind: ''}", "faulty.yaml:7:25: "),
        ("  unions:", "  validationActions: [Deny, Warn]\n  unions:", "faulty.yaml:8:3: "),
        ("  unions:", "  validationActions: [Audit, Audit]\n  unions:", "faulty.yaml:8:3: "),
        ("    discriminator: type\n", "", "faulty.yaml:9:5: spec.strategy: error: `fieldMembers` needs"),
    ] {
        let folder = folder(&[("faulty.yaml", &with(from, to))]);
        let run = folder.run(&["lint", "faulty.yaml", "v3.json"]).code(1);
        assert_eq!(run.stdout.lines().count(), 1, "{to}: {run:#?}");
        assert!(run.stdout.starts_with(line), "{to}: {run:#?}");
    }
}

#[test]
fn a_fault_of_several_versions_is_told_once_with_their_names() {
    let schema = |list: &str| {
        format!(
            "{{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{kind: {{type: string}}, \
             list: {{type: array, items: {{type: object, properties: {{{list}}}}}}}}}}}}}}}}}"
        )
    };
    let crd = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.example.com}}\nspec:\n  \
         group: example.com\n  scope: Cluster\n  names: {{kind: Widget, plural: widgets}}\n  versions:\n  \
         - {{name: v1alpha1, served: true, storage: false, schema: {}}}\n  \
         - {{name: v1beta1, served: true, storage: false, schema: {}}}\n  \
         - {{name: v1, served: true, storage: true, schema: {}}}\n",
        schema("git: {type: object}, oci: {type: object}"),
        schema("git: {type: object}, oci: {type: object}"),
        schema("git: {type: object}, oci: {type: object}, bucket: {type: object}"),
    );
    let declaration = "apiVersion: kube-unions.dev/v1alpha1\nkind: UnionDeclaration\nmetadata: {name: widget}\nspec:\n  \
                       target: {group: example.com, kind: Widget}\n  unions:\n  \
                       - path: spec.list[*]\n    fieldsToDiscriminateBy: {git: Git, oci: OCI, bucket: Bucket}\n";
    let folder = Folder::new(&[("crd.yaml", &crd), ("widget.yaml", declaration)]);
    // A note about a part that only the author of the CRD can change has no advice.
    folder.run(&["lint", "--strict", "crd.yaml", "widget.yaml"]).code(0).prints(
        "widget.yaml:7:5: spec.list[*]: note: v1, v1alpha1, v1beta1: stands inside the list `spec.list`, whose items have no \
         keys: its members can be rejected but not cleared\nwidget.yaml:7:5: spec.list[*]: note: v1alpha1, v1beta1: the \
         schema has no property `bucket`, so this member is left out\n",
    );
    let findings = folder.run(&["lint", "-o", "json", "."]).code(0).json();
    assert_eq!(
        findings.as_array().unwrap().iter().map(|finding| &finding["versions"]).collect::<Vec<_>>(),
        [&json!(["v1", "v1alpha1", "v1beta1"]), &json!(["v1alpha1", "v1beta1"])]
    );
    // The author of the CRD can change it.
    let annotation = "{\"v1\":{\"/properties/spec/properties/list/items\":[{\"fields-to-discriminateBy\":{\"git\":\"Git\",\"oci\":\"OCI\"}}]}}";
    let annotated = crd.replace(
        "{name: widgets.example.com}",
        &format!("{{name: widgets.example.com, annotations: {{kube-unions.dev/unions: '{annotation}'}}}}"),
    );
    folder.write("crd.yaml", &annotated);
    let run = folder.run(&["lint", "--strict", "crd.yaml"]).code(1);
    assert!(
        run.stdout.contains("warning: v1: ") && run.stdout.contains("give the list `x-kubernetes-list-type: map`"),
        "{run:#?}"
    );
}

#[test]
fn a_malformed_declaration_is_a_problem_with_its_place() {
    for (from, to, place, says) in [
        ("path: spec.strategy", "paht: spec.strategy", "9:5", "`spec.unions[0].paht`: unknown field `paht`"),
        ("discriminator: type", "discriminator: [type]", "10:5", "`spec.unions[0].discriminator`: invalid type"),
        ("Recreate: {}", "Recreate: x", "13:7", "a member: a map with `name` or `fields`, or an empty one"),
        ("  unions:", "  validationActions: [Log]\n  unions:", "8:23", "unknown variant `Log`"),
        ("  unions:", "  normalization: Never\n  unions:", "8:3", "`Enabled` or `Disabled`"),
        ("  target: {group: apps, kind: Deployment}\n", "", "6:1", "missing field `target`"),
        ("spec:", "data:", "2:1", "missing field `spec`"),
        ("  name: deployment", "  labels: {}", "4:1", "missing field `name`"),
        ("v1alpha1", "v1beta9", "2:1", "not a UnionDeclaration of kube-unions.dev/v1alpha1"),
    ] {
        let folder = folder(&[("faulty.yaml", &with(from, to))]);
        for command in [&["lint"][..], &["explain", "--from", "v3.json", "--from"], &["review", "--from", "v3.json"]] {
            let run = folder.run(&[command, &["faulty.yaml"]].concat()).code(2);
            let said = said(&run);
            assert!(said.contains(&format!("faulty.yaml:{place}: ")) && said.contains(says), "{to}: {run:#?}");
        }
    }
}

#[test]
fn a_document_that_cannot_be_read_may_be_the_one_that_describes_a_target() {
    let folder = folder(&[("broken.json", &V3.replace("\"schemas\": {", "\"schemas\": [], \"x\": {"))]);
    let run = folder.run(&["lint", "deployment.yaml", "broken.json"]).code(2);
    assert!(run.stdout.contains("broken.json") && !run.stdout.contains("Deployment"), "{run:#?}");
}

#[test]
fn documents_that_lead_nowhere_are_named() {
    let dangling = V3.replace("schemas/example.apps.v1.RollingUpdate\"", "schemas/nowhere\"");
    let wrong = V2.replacen("\"type\": \"object\"", "\"type\": 7", 1);
    let shapeless = "{\"openapi\": \"3.0.0\", \"components\": {\"schemas\": []}}";
    let folder = folder(&[("dangling.json", &dangling), ("wrong.json", &wrong), ("shapeless.json", shapeless)]);
    for (file, says) in [
        ("dangling.json", "the kind `Deployment`: the reference `nowhere` leads to no schema"),
        ("wrong.json", "the kind `Deployment`: the schema `example.apps.v1.Deployment` can't be read: "),
        ("shapeless.json", "not a readable OpenAPI document"),
    ] {
        for command in [&["lint"][..], &["review", "--from"]] {
            let run = folder.run(&[command, &["deployment.yaml", file]].concat()).code(2);
            let said = said(&run);
            assert!(said.contains(&format!("{file}: ")) && said.contains(says), "{run:#?}");
        }
    }
    // Nobody asks for the kind, so its faults are not reported.
    let (crd, declaration) = foreign();
    folder.write("crd.yaml", crd);
    folder.write("widget.yaml", declaration);
    folder.run(&["lint", "crd.yaml", "widget.yaml", "dangling.json"]).code(0).prints("");
}

#[test]
fn what_only_looks_like_openapi_is_passed_over() {
    let (crd, declaration) = foreign();
    let folder = Folder::new(&[
        ("crd.yaml", &crd),
        ("widget.yaml", &declaration),
        ("object.yaml", "apiVersion: v1\nkind: ConfigMap\nswagger: '2.0'\ndefinitions: 7\n"),
        ("index.json", "{\"openapi\": \"3.0.0\", \"paths\": {}}"),
        ("v3-without.json", "{\"openapi\": \"3.0.0\", \"components\": {}}"),
        ("schema.json", "{\"definitions\": {\"a\": 7}}"),
    ]);
    folder.run(&["lint", "."]).code(0).prints("");
}

#[test]
fn openapi_may_be_yaml_and_come_from_standard_input() {
    let folder = folder(&[]);
    let document: Value = serde_json::from_str(V3).unwrap();
    let text = serde_saphyr::to_string(&document).unwrap();
    folder.pipe(&["explain", "--from", "-", "--from", "deployment.yaml"], &text).code(0).prints(TREE);
    folder.pipe(&["explain", "--from", "-"], format!("{text}\n---\n{DECLARATION}")).code(0).prints(TREE);
}

#[test]
fn annotate_lets_declarations_and_documents_through_as_they_are() {
    let folder = folder(&[("faulty.yaml", &with("path: spec.strategy", "paht: x"))]);
    for (file, text) in [("deployment.yaml", DECLARATION), ("v3.json", V3), ("v2.json", V2)] {
        folder.run(&["annotate", file]).code(0).prints(text);
        folder.run(&["annotate", "--check", file]).code(0).prints("");
    }
    // Not its business.
    folder.run(&["annotate", "faulty.yaml"]).code(0).prints(&folder.read("faulty.yaml"));
    let (crd, declaration) = foreign();
    let pipe = format!("{declaration}---\n{crd}");
    folder.pipe(&["annotate"], &pipe).code(0).prints(&pipe);
}
