//! Suite files that cannot be read: each fault has its file, line, path and remedy, and the other suites run.

use super::{PASSING, no_suite_in};
use crate::cli::Folder;

/// A change of the passing suite, and the line that reports it.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "kind: Suite",
        "kind: Suit",
        "2:1: error: the kind `Suit` of `test.kube-unions.dev/v1alpha1` is not run; did you mean `Suite` of \
         `test.kube-unions.dev/v1alpha1`?",
    ),
    (
        "v1alpha1",
        "v1",
        "2:1: error: the kind `Suite` of `test.kube-unions.dev/v1` is not run; did you mean `Suite` of \
         `test.kube-unions.dev/v1alpha1`?",
    ),
    (
        "test.kube-unions.dev",
        "tests.kube-unions.dev",
        "2:1: error: the kind `Suite` of `tests.kube-unions.dev/v1alpha1` is not run; did you mean `Suite` of \
         `test.kube-unions.dev/v1alpha1`?",
    ),
    (
        "from: [",
        "form: [",
        "4:1: error: `form`: unknown field `form`, expected one of `apiVersion`, `kind`, `metadata`, `from`, \
         `builtinUnions`, `tests`; did you mean `from`?",
    ),
    ("from: [crd.yaml]\n", "", "2:1: error: missing field `from`"),
    ("from: [crd.yaml]", "from: []", "4:1: error: `from` is empty: name the files that declare the unions"),
    (
        "from: [crd.yaml]",
        "from: ['-']",
        "4:8: error: `-` is no path: give the path of a file, relative to the folder of the suite",
    ),
    ("from: [crd.yaml]", "from: [none.yaml]", "none.yaml: error: no such file or folder"),
    (
        "from: [crd.yaml]",
        "from: [suite.yaml]",
        "suite.yaml: error: no CustomResourceDefinition in `suite.yaml`, and no UnionDeclaration with an OpenAPI document",
    ),
    ("name: a widget from git", "name: ''", "6:3: error: `name` is empty: give each test a name"),
    (
        "  want: {accepted: {}}",
        "  want: {accept: {}}",
        "8:10: error: `tests[0].want.accept`: unknown field `accept`, expected one of `accepted`, `normalized`, `rejected`; \
         did you mean `accepted`?",
    ),
    (
        "  want: {accepted: {}}",
        "  want: {accepted: }",
        "8:3: error: `want` has none of `accepted`, `normalized` and `rejected`: give exactly one, for example `accepted: {}`",
    ),
    (
        "  want: {accepted: {}}",
        "  want: {accepted: {}, rejected: {causes: [{field: a}]}}",
        "8:3: error: `want` has more than one of `accepted`, `normalized` and `rejected`: give exactly one, for example \
         `accepted: {}`",
    ),
    (
        "  want: {accepted: {}}",
        "  want: {rejected: {causes: []}}",
        "8:21: error: `causes` is empty: name the path of each violation",
    ),
    ("  want: {accepted: {}}\n", "", "6:3: error: `tests[0]`: missing field `want`"),
    (
        "  want: {accepted: {}}",
        "  want: {accepted: {}}\n  subresource: scale",
        "9:3: error: `tests[0].subresource`: unknown variant `scale`, expected `status`",
    ),
    (
        "  want: {accepted: {}}",
        "  want: {accepted: {}}\n  ratcheting: enabled",
        "9:3: error: `tests[0].ratcheting`: unknown variant `enabled`, expected `Enabled` or `Disabled`; did you mean \
         `Enabled`?",
    ),
    (
        "  want: {accepted: {}}",
        "  want: {accepted: {}}\n- {name: a widget from git, new: a.yaml, want: {accepted: {}}}",
        "9:4: error: `tests[0]` already has the name `a widget from git`: give each test its own",
    ),
    ("  new: {", "  new: 1 #", "7:3: error: `tests[0].new`: a path or an object"),
    ("kind: Suite", "kind: [", "5:1: error: while parsing a flow "),
];

#[test]
fn a_fault_is_told_with_its_place_and_remedy_and_the_other_suites_run() {
    let folder = Folder::with_crd(&[("good.yaml", PASSING)]);
    for (from, to, wanted) in FAULTS {
        let text = format!("# one\n{PASSING}").replacen(from, to, 1);
        assert!(text.contains(to), "{from}");
        folder.write("suite.yaml", &text);
        let run = folder.run(&["test", "good.yaml", "suite.yaml"]).code(2);
        let wanted = if wanted.starts_with(|it: char| it.is_ascii_digit()) {
            format!("suite.yaml:{wanted}")
        } else {
            (*wanted).to_owned()
        };
        assert!(run.stdout.starts_with(&wanted) && run.stdout.lines().count() == 1, "{wanted}\n{run:#?}");
        assert!(
            run.stderr.contains(" 1 test, 0 failed\nerror: 1 problem kept something from being tested\n"),
            "{run:#?}"
        );
    }
}

#[test]
fn a_path_that_cannot_be_read_does_not_keep_the_others_from_running() {
    let folder = Folder::with_crd(&[("good.yaml", PASSING), ("empty.yaml", ""), ("utf16.yaml", "")]);
    folder.write("utf16.yaml", b"\xff\xfek\0");
    let run = folder.run(&["test", "good.yaml", "none", "utf16.yaml"]).code(2);
    assert_eq!(
        run.stdout,
        "none: error: no such file or folder\nutf16.yaml:1:1: error: text in UTF-16; save the file in UTF-8\n"
    );
    let run = folder.run(&["test", "empty.yaml"]).code(0).prints("");
    assert_eq!(run.stderr, no_suite_in("`empty.yaml`"));
}
