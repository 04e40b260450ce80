//! `test`: the suites of authors. The reports of a failing suite are files beside this one: `KUBE_UNIONS_UPDATE=1` writes them.

mod faults;

use super::{CRD, Folder, binary, run};
use fixtures::files::root;
use std::path::Path;
use std::process::Command;

const FAILING: &str = include_str!("test/failing.yaml");

/// A suite with one test, which passes.
const PASSING: &str = "\
apiVersion: test.kube-unions.dev/v1alpha1
kind: Suite
from: [crd.yaml]
tests:
- name: a widget from git
  new: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {git: {}}}
  want: {accepted: {}}
";

const WIDGET: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {git: {}}\n";
const BOTH: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {git: {}, oci: {}}\n";
const OCI: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {oci: {}}\n";

/// The message for paths without a suite.
fn no_suite_in(paths: &str) -> String {
    format!(
        "Warning: nothing to test: no suite in {paths} (looked for documents of the kind Suite, and for files like \
         NAME.new.yaml and NAME.want.yaml)\n"
    )
}

#[test]
fn every_sample_passes() {
    let samples = |arguments: &[&str]| run(Command::new(binary()).current_dir(root()).arg("test").args(arguments), b"");
    let all = samples(&["manifests/samples"]).code(0).prints("");
    assert_eq!(all.stderr, "9 suites, 54 tests, 0 failed\n");
    let suite = samples(&["manifests/samples/rollout/suite.yaml"]).code(0).prints("");
    assert_eq!(suite.stderr, "1 suite, 7 tests, 0 failed\n");
    // A path that is given twice is tested once.
    let twice = samples(&["manifests/samples/rollout", "./manifests/../manifests/samples"]).code(0).prints("");
    assert_eq!(twice.stderr, "9 suites, 54 tests, 0 failed\n");
    let one = samples(&["manifests/samples/rollout/normalized-to-canary.new.yaml"]).code(0).prints("");
    assert_eq!(one.stderr, "1 suite, 1 test, 0 failed\n");
}

#[test]
fn each_format_reports_the_same_failures() {
    let folder = Folder::with_crd(&[("suite.yaml", FAILING)]);
    let summary = "1 suite, 14 tests, 10 failed\nerror: 3 problems kept something from being tested\n";
    for (format, page) in [("text", "failing.txt"), ("junit", "failing.xml")] {
        let run = folder.run(&["test", "-o", format, "suite.yaml"]).code(2);
        assert_eq!(run.stderr, summary, "{format}");
        assert_stored(page, &run.stdout);
    }
    let text = folder.run(&["test", "suite.yaml"]).code(2).stdout;
    assert!(!text.replace('\n', "").contains(char::is_control), "{text:?}");
    let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with("  ")).collect();
    assert_eq!(heads.len(), 13, "{text}");
    assert!(heads[0].starts_with("suite.yaml:14:3: becomes another object: failed: "), "{text}");
}

#[test]
fn the_report_for_junit_is_xml_with_a_case_for_each_test() {
    let folder =
        Folder::with_crd(&[("suite.yaml", FAILING), ("other/broken.yaml", "kind: Suite # kube-unions\na: [\n")]);
    let report = folder.run(&["test", "-o", "junit", "."]).code(2).stdout;
    let document = roxmltree::Document::parse(&report).unwrap_or_else(|error| panic!("{error}: {report}"));
    let root = document.root_element();
    let counts = |node: roxmltree::Node<'_, '_>| {
        ["tests", "failures", "errors"].map(|name| node.attribute(name).unwrap().parse::<usize>().unwrap())
    };
    assert_eq!((root.tag_name().name(), counts(root)), ("testsuites", [15, 10, 4]));
    let suites: Vec<_> = root.children().filter(|node| node.has_tag_name("testsuite")).collect();
    let named = |name: &str| *suites.iter().find(|suite| suite.attribute("name") == Some(name)).unwrap();
    assert_eq!(counts(named("./other/broken.yaml")), [1, 0, 1]);
    let widgets = named("widgets");
    assert_eq!(counts(widgets), [14, 10, 3]);
    let case = widgets.children().filter(|it| it.has_tag_name("testcase")).nth(9).unwrap();
    assert_eq!(case.attribute("name"), Some(r#"is not # printable: \ <&> ""#));
    assert_eq!((case.attribute("file"), case.attribute("line")), (Some("./suite.yaml"), Some("67")));
    let failure = case.children().find(|it| it.has_tag_name("failure")).unwrap();
    assert_eq!(failure.attribute("message"), Some("the normalised object is not the expected one"));
    assert!(failure.text().unwrap().contains("]]> é"), "{report}");
}

#[test]
fn a_report_of_nothing_is_a_report() {
    let folder = Folder::new(&[("other.yaml", "kind: A\n")]);
    let junit = folder.run(&["test", "-o", "junit", "."]).code(0);
    assert_eq!(junit.stderr, no_suite_in("`.`"));
    let document = roxmltree::Document::parse(&junit.stdout).unwrap();
    assert_eq!(document.root_element().attribute("tests"), Some("0"));
}

#[test]
fn the_names_of_files_make_a_suite() {
    let folder = Folder::with_crd(&[
        ("switched.old.yaml", WIDGET),
        ("switched.new.yaml", BOTH),
        ("switched.want.yaml", OCI),
        ("valid-git.yaml", WIDGET),
        ("two.new.yaml", BOTH),
        ("two.want.yaml", "causes: [{field: spec.oci}, {field: spec.git}]\n"),
    ]);
    let run = folder.run(&["test", "."]).code(1);
    assert!(run.stdout.starts_with("./two.new.yaml: two: failed: the causes of the rejection are not"), "{run:#?}");
    assert_eq!(run.stderr, "1 suite, 3 tests, 1 failed\n");
    folder
        .write("two.want.yaml", "causes: [{field: spec.oci, message: at most one of, reason: FieldValueForbidden}]\n");
    folder.run(&["test", "."]).code(0).prints("");

    // Seven files that leave a doubt.
    folder.write("switched.want.json", "{}");
    folder.write("alone.new.yaml", WIDGET);
    folder.write("lost.want.yaml", WIDGET);
    folder.write("lost.old.yaml", WIDGET);
    folder.write("valid-git.old.yaml", WIDGET);
    folder.write("two.want.yaml", "causes: []\n");
    folder.write("three.new.yaml", BOTH);
    folder.write("three.want.yaml", "causes: [{feild: spec}]\n");
    let run = folder.run(&["test", "."]).code(2);
    assert_eq!(
        run.stdout,
        "./alone.new.yaml: alone: error: `alone.want.yaml` is absent: add the file with the normalised object, or the \
         `causes` of a rejection\n\
         ./lost.want.yaml: lost: error: `lost.new.yaml` is absent: add the file with the object to write\n\
         ./switched.new.yaml: switched: error: both `./switched.want.json` and `./switched.want.yaml` are the file \
         `switched.want` of the test: delete one\n\
         ./three.new.yaml: three: error: ./three.want.yaml:1:11: `causes[0].feild`: unknown field `feild`, expected one of \
         `field`, `reason`, `message`; did you mean `field`?\n\
         ./two.new.yaml: two: error: ./two.want.yaml:1:1: `causes` is empty: name the path of each violation\n\
         ./valid-git.yaml: valid-git: error: `valid-git` is accepted by its name, and has other files of the same name\n"
    );
    assert_eq!(run.stderr, "1 suite, 6 tests, 0 failed\nerror: 6 problems kept something from being tested\n");
}

#[test]
fn files_of_other_tools_are_passed_over() {
    let folder = Folder::new(&[
        ("a/valid-values.yaml", "a: 1\n"),
        ("b/template.yaml", "{{ if .Values.a }}\nkind: Suite\n{{ end }}\n"),
        ("c/suite.yaml", "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\n"),
    ]);
    let run = folder.run(&["test", "."]).code(0).prints("");
    assert_eq!(run.stderr, no_suite_in("`.`"));
    folder.write("d/a.new.yaml", WIDGET);
    folder.write("d/a.want.yaml", WIDGET);
    let run = folder.run(&["test", "."]).code(2);
    assert_eq!(
        run.stdout,
        "./d: error: nothing beside the tests declares unions: add the CRD or UnionDeclaration, or write a suite file \
         whose `from` names it\n"
    );
}

#[test]
fn paths_without_a_suite_are_named_and_fail_if_none_has_one_and_something_is_required() {
    let folder = Folder::with_crd(&[("suite.yaml", PASSING), ("other/other.yaml", "kind: A\n")]);
    let run = folder.run(&["test", "--require", "other", "crd.yaml"]).code(1).prints("");
    assert_eq!(run.stderr, no_suite_in("`other`, `crd.yaml`"));
    let run = folder.run(&["test", "--require", "suite.yaml", "other"]).code(0).prints("");
    assert_eq!(run.stderr, "Warning: no suite in `other`\n1 suite, 1 test, 0 failed\n");
}

#[test]
fn a_filter_runs_the_tests_whose_names_contain_it() {
    let folder = Folder::with_crd(&[("suite.yaml", FAILING)]);
    let run = folder.run(&["test", "--filter", "passes", "suite.yaml"]).code(0).prints("");
    assert_eq!(run.stderr, "1 suite, 1 test, 0 failed, 13 left out\n");
    let run = folder.run(&["test", "--filter", "is changed", "suite.yaml"]).code(1);
    assert_eq!(run.stderr, "1 suite, 1 test, 1 failed, 13 left out\n");
}

#[test]
fn a_suite_is_read_from_standard_input_and_from_lists() {
    let folder = Folder::with_crd(&[]);
    let run = folder.pipe(&["test", "-"], PASSING).code(0).prints("");
    assert_eq!(run.stderr, "1 suite, 1 test, 0 failed\n");
    let indented: String = PASSING.lines().flat_map(|line| ["  ", line, "\n"]).collect();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n-{}-{}", &indented[1..], &indented[1..]);
    folder.write("list.yaml", list.replace("spec: {git: {}}", "spec: {git: {}, oci: {}}"));
    let run = folder.run(&["test", "list.yaml"]).code(1);
    let places: Vec<&str> = run.stdout.lines().filter(|it| !it.starts_with(' ')).map(|it| &it[..14]).collect();
    assert_eq!(places, ["list.yaml:8:5:", "list.yaml:15:5"], "{run:#?}");
}

#[test]
fn each_version_of_a_crd_has_its_own_unions_and_defaults() {
    let versions = CRD.replace(
        "  - name: v1\n    served: true\n    storage: true\n",
        "  - name: v1\n    served: true\n    storage: true\n    subresources: {status: {}}\n",
    );
    let second = versions
        .split_once("  versions:\n")
        .unwrap()
        .1
        .replace("name: v1", "name: v2")
        .replace("storage: true", "storage: false");
    let second = second
        .replace("surge: {type: integer}", "surge: {type: integer, default: 3}")
        .replace("git: Git # one\n", "git: Git\n                http: HTTP\n")
        .replace("              oci: {", "              http: {type: object}\n              oci: {");
    let suite = "\
apiVersion: test.kube-unions.dev/v1alpha1
kind: Suite
from: [crds]
tests:
- name: v1 has no http
  new: &v1 {apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {git: {}, http: {}}}
  want: {accepted: {}}
- name: v2 has http
  new: {apiVersion: example.com/v2, kind: Widget, metadata: {name: a}, spec: {git: {}, http: {}}}
  want: {rejected: {causes: [{field: spec.http}]}}
- name: a default may be left out
  new: {apiVersion: example.com/v2, kind: Widget, metadata: {name: a}, spec: {strategy: {type: Rolling, rolling: {}}}}
  want: {normalized: {object: {apiVersion: example.com/v2, kind: Widget, metadata: {name: a}, spec: {strategy: {type: Rolling, rolling: {surge: 3}}}}}}
- name: v3 is not there
  new: {apiVersion: example.com/v3, kind: Widget, metadata: {name: a}}
  want: {accepted: {}}
";
    let folder = Folder::new(&[("crds/crd.yaml", &format!("{versions}{second}")), ("suite.yaml", suite)]);
    let run = folder.run(&["test", "suite.yaml"]).code(1);
    assert_eq!(
        run.stdout,
        "suite.yaml:14:3: v3 is not there: failed: `Widget` of `example.com/v3` has no union here; did you mean `Widget` of \
         `example.com/v1`?\n"
    );
    assert_eq!(run.stderr, "1 suite, 4 tests, 1 failed\n");
}

#[test]
fn built_in_types_have_the_unions_of_declarations_and_of_openapi_documents() {
    let folder = Folder::new(&[
        ("openapi.json", include_str!("apps-v1.openapi.json")),
        ("declaration.yaml", include_str!("deployment.yaml")),
    ]);
    let test = |from: &str, builtin: &str| {
        let suite = format!(
            "\
apiVersion: test.kube-unions.dev/v1alpha1
kind: Suite
from: [{from}]
builtinUnions: {builtin}
tests:
- name: a recreation clears the settings of a rolling update
  old: {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{strategy: {{type: RollingUpdate, rollingUpdate: {{}}}}}}}}
  new: {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{strategy: {{type: Recreate, rollingUpdate: {{}}}}}}}}
  want: {{normalized: {{object: {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{strategy: {{type: Recreate}}}}}}}}}}
- name: a group is no user
  new: {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{template: {{caller: {{kind: User, group: {{}}}}}}}}}}
  want: {{rejected: {{causes: [{{field: spec.template.caller.group}}]}}}}
"
        );
        folder.write("suite.yaml", suite);
        folder.run(&["test", "suite.yaml"])
    };
    assert_eq!(test("openapi.json, declaration.yaml", "OpenAPI").code(0).stderr, "1 suite, 2 tests, 0 failed\n");
    // The document publishes a union that the declaration does not have.
    let ignored = test("openapi.json, declaration.yaml", "Ignored").code(1);
    assert!(ignored.stdout.starts_with("suite.yaml:10:3: a group is no user: failed: the object is accepted, not"));
    assert_eq!(ignored.stderr, "1 suite, 2 tests, 1 failed\n");
    test("openapi.json", "Ignored").code(2).prints(
        "suite.yaml: error: only OpenAPI documents in `openapi.json`, and nothing that declares unions of their kinds: give \
         UnionDeclarations, or `builtinUnions: OpenAPI` for those that the documents publish\n",
    );
}

#[test]
fn a_fault_of_the_declaration_is_not_taken_for_a_union() {
    let crd = CRD.replace("git: Git # one", "gti: Git").replace("Rolling: {name: rolling,", "Rolling: {name: missing,");
    let folder = Folder::new(&[("crd.yaml", &crd), ("suite.yaml", PASSING)]);
    let run = folder.run(&["test", "suite.yaml"]).code(1);
    assert_eq!(
        run.stdout,
        "suite.yaml:5:3: a widget from git: failed: `Widget` of `example.com/v1` has no union here; `kube-unions lint` shows \
         the faults of the declarations\n"
    );
}

/// Compares a report with the stored one, or writes it with `KUBE_UNIONS_UPDATE`.
#[track_caller]
fn assert_stored(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/test").join(name);
    if std::env::var_os("KUBE_UNIONS_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, stored, "{name}: KUBE_UNIONS_UPDATE=1 writes it");
}
