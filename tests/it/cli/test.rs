//! `test`: the suites of authors. The reports of a failing suite are files beside this one: `KUBE_UNIONS_UPDATE=1` writes them.

use super::Folder;
use fixtures::files::assert_generated;

const FAILING: &str = include_str!("test/failing.yaml");

#[test]
fn each_format_reports_the_same_failures() {
    let folder = Folder::with_crd(&[("suite.yaml", FAILING)]);
    let summary = "1 suite, 14 tests, 10 failed\nerror: 3 problems kept something from being tested\n";
    for (format, page) in [("text", "failing.txt"), ("junit", "failing.xml")] {
        let run = folder.run(&["test", "-o", format, "suite.yaml"]).code(2);
        assert_eq!(run.stderr, summary, "{format}");
        assert_generated(
            format!("tests/it/cli/test/{page}"),
            &run.stdout,
            "KUBE_UNIONS_UPDATE=1 cargo test --all-features --test it cli::test",
        );
    }
    let text = folder.run(&["test", "suite.yaml"]).code(2).stdout;
    assert!(!text.replace('\n', "").contains(char::is_control), "{text:?}");
    let heads: Vec<&str> = text.lines().filter(|line| !line.starts_with("  ")).collect();
    assert_eq!(heads.len(), 13, "{text}");
    assert!(heads[0].starts_with("suite.yaml:10:3: becomes another object: failed: "), "{text}");
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
    assert_eq!((case.attribute("file"), case.attribute("line")), (Some("./suite.yaml"), Some("41")));
    let failure = case.children().find(|it| it.has_tag_name("failure")).unwrap();
    assert_eq!(failure.attribute("message"), Some("the normalised object is not the expected one"));
    assert!(failure.text().unwrap().contains("]]> é"), "{report}");
}
