//! The presets for CRDs of other projects: everything that lists them is made from their files.
//!
//! A file begins with two lines. The first is the comment of its value in the chart, `# PROJECT: KINDS AND PLACES.` The second is
//! its cell in the table of the README, `# Unions: WHAT THEY SELECT.`

use super::{CONTRIB, FOLDER, declarations};
use fixtures::files::{assert_generated, assert_generated_between, camel_case, files, root};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

/// The command that writes the lists.
const COMMAND: &str = "make manifests";

/// The widest line of the guide.
const GUIDE_WIDTH: usize = 140;

/// A file of presets for a project.
struct ContributedFile {
    /// The name of the file, without its ending.
    file: String,
    project: String,
    /// The comment of its value.
    comment: String,
    /// The cell of the table that says what the unions are.
    unions: String,
    /// The cell of the table with the kinds.
    kinds: String,
}

fn contributed() -> Vec<ContributedFile> {
    let of_a_file = |(path, text): (String, String)| {
        let file = path.strip_suffix(".yaml").unwrap().to_owned();
        let mut lines = text.lines();
        let mut header = |start| lines.next().and_then(|line| line.strip_prefix(start)?.strip_suffix('.'));
        let (comment, unions) = header("# ").zip(header("# Unions: ")).unwrap_or_else(|| {
            panic!("{path} begins with `# PROJECT: KINDS AND PLACES.` and `# Unions: WHAT THEY SELECT.`")
        });
        let (project, _) = comment.split_once(": ").unwrap_or_else(|| panic!("{path} names no project: {comment}"));
        let kind = |declaration: &Value| declaration["spec"]["target"]["kind"].as_str().unwrap().to_owned();
        let kinds: Vec<String> = declarations(&path, &text).iter().map(kind).collect();
        ContributedFile {
            file,
            project: project.to_owned(),
            comment: format!("{comment}."),
            unions: unions.to_owned(),
            kinds: kinds.join(", "),
        }
    };
    let files = files(&format!("{FOLDER}/{CONTRIB}"), "yaml").into_iter();
    files.filter(|(path, _)| path != "kustomization.yaml").map(of_a_file).collect()
}

#[test]
fn the_kustomization_has_every_file() {
    let mut text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n".to_owned();
    for preset in contributed() {
        writeln!(text, "- {}.yaml", preset.file).unwrap();
    }
    assert_generated(format!("{FOLDER}/{CONTRIB}kustomization.yaml"), &text, COMMAND);
}

#[test]
fn the_readme_has_a_row_for_each_file() {
    let row = |it: &ContributedFile| format!("| `{CONTRIB}{}.yaml` | {} | {} |\n", it.file, it.kinds, it.unions);
    let rows: String = contributed().iter().map(row).collect();
    let header = "| file | kinds | unions |\n|---|---|---|\n";
    assert_generated_between(&format!("{FOLDER}/README.md"), (header, "\n\n"), rows.trim_end(), COMMAND);
}

#[test]
fn the_chart_has_a_value_for_each_file() {
    let value = |it: &ContributedFile| format!("    # -- {}\n    {}: none\n", it.comment, camel_case(&it.file));
    let values: String = contributed().iter().map(value).collect();
    assert_generated_between("charts/kube-unions/values.yaml", ("\n  contrib:\n", "\n\n"), values.trim_end(), COMMAND);
}

#[test]
fn the_schema_of_the_chart_has_a_value_for_each_file() {
    let value =
        |it: &ContributedFile| format!("            \"{}\": {{ \"$ref\": \"#/$defs/preset\" }}", camel_case(&it.file));
    let values: Vec<String> = contributed().iter().map(value).collect();
    let start = "        \"contrib\": {\n          \"type\": \"object\",\n          \"additionalProperties\": false,\n          \"properties\": {\n";
    let end = "\n          }\n";
    assert_generated_between("charts/kube-unions/values.schema.json", (start, end), &values.join(",\n"), COMMAND);
}

#[test]
fn the_guide_names_each_project() {
    let projects: Vec<String> = contributed().into_iter().map(|it| it.project).collect();
    let (last, others) = projects.split_last().unwrap();
    let sentence = format!("{} and {last}.", others.join(", "));
    let start = "`manifests/presets/contrib` has UnionDeclarations for";
    let mut text = String::new();
    let mut width = start.len();
    for word in sentence.split(' ') {
        let breaks = width + 1 + word.len() > GUIDE_WIDTH;
        text += if breaks { "\n" } else { " " };
        text += word;
        width = if breaks { word.len() } else { width + 1 + word.len() };
    }
    assert_generated_between("docs/guide/declaring.md", (start, "\nSwitch on"), &text, COMMAND);
}

#[test]
fn each_file_has_a_case_on_a_real_api_server() {
    for ContributedFile { file, .. } in contributed() {
        let case = root().join(format!("tests/e2e/contrib/{file}.yaml"));
        assert!(fs::exists(&case).unwrap(), "{} is missing", case.display());
    }
}
