//! Sources that are invalid, unusual or not those of the CRD: each run ends with a message and an exit code.

use super::super::{Folder, Run};
use super::{Report, generate};
use std::fs;
use std::os::unix;

pub(in crate::cli) const MODULE: &str = "module example.com/kilns\n\ngo 1.26\n";

/// A kind with one union, which the tests break in many ways.
pub(in crate::cli) const GO: &str = include_str!("../../../cases/go/kiln/kiln.go");

pub(in crate::cli) const CRD: &str = include_str!("../../../cases/go/kiln/crd.yaml");

/// The module with this in `v1/kiln.go`, and the CRD.
pub(super) fn kilns(go: impl AsRef<[u8]>) -> Folder {
    let folder = Folder::new(&[("go.mod", MODULE), ("crd.yaml", CRD)]);
    folder.write("v1/kiln.go", go);
    folder
}

fn report(folder: &Folder) -> Report {
    Report::parse(&folder.run(&["generate", "--go", ".", "--check", "-o", "json", "crd.yaml"]).stdout)
}

/// Path and members of what is found, and how it ends.
pub(super) fn found(folder: &Folder) -> Vec<(String, Vec<String>)> {
    let report = report(folder);
    let sorted = |members: &[String]| {
        let mut members = members.to_vec();
        members.sort();
        members
    };
    report.unions().map(|(_, union)| (union.path.clone(), sorted(&union.members))).collect()
}

/// The union of [`GO`].
pub(super) fn whole() -> Vec<(String, Vec<String>)> {
    vec![("spec".to_owned(), vec!["bisque".to_owned(), "glaze".to_owned()])]
}

#[track_caller]
fn fails(folder: &Folder) -> Run {
    let run = folder.run(&["generate", "--go", ".", "crd.yaml"]).says(&[]);
    assert_ne!(run.code, 0, "{run:#?}");
    run
}

#[test]
fn an_empty_file_and_one_of_comments_only_have_no_types() {
    for text in ["", "// nothing\n"] {
        fails(&kilns(text)).says(&["Kiln"]);
    }
    let folder = kilns(GO);
    folder.write("v1/doc.go", "// Package v1 is about kilns.\npackage v1\n");
    assert_eq!(found(&folder), whole());
}

#[test]
fn a_definition_of_a_kind_that_the_sources_do_not_have_is_named() {
    for (from, to) in [("kind: Kiln,", "kind: Oven,"), ("group: kilns.", "group: ovens."), ("- name: v1", "- name: v2")]
    {
        let folder = kilns(GO);
        folder.write("crd.yaml", CRD.replace(from, to));
        let name = if to.contains("Oven") { "Oven" } else { "Kiln" };
        let run = folder.run(&["generate", "--go", ".", "crd.yaml"]).says(&[name]);
        assert!(!run.stdout.contains("kube-unions.dev/unions"), "{run:#?}");
    }
    let run = kilns(GO).run(&["generate", "--go", ".", "--kind", "Oven", "crd.yaml"]).says(&["Oven"]);
    assert_ne!(run.code, 0, "{run:#?}");
}

#[test]
fn a_kind_that_is_found_twice_is_not_guessed_at() {
    let folder = kilns(GO);
    folder.write("other/v1/kiln.go", GO);
    fails(&folder).says(&["v1/kiln.go", "other/v1/kiln.go"]);
}

#[test]
fn a_type_that_stands_twice_is_not_guessed_at() {
    let folder = kilns(GO);
    folder.write(
        "v1/program.go",
        "package v1\n\ntype KilnSpec struct {\n\tGlaze *Program `json:\"glaze,omitempty\"`\n}\n",
    );
    fails(&folder).says(&["KilnSpec", "program.go"]);
}

#[test]
fn tests_and_what_go_itself_leaves_out_is_left_out() {
    let folder = kilns(GO);
    let twin = "package v1\n\ntype KilnSpec struct{}\n";
    for file in [
        "v1/kiln_test.go",
        "v1/_kiln.go",
        "v1/.kiln.go",
        "v1/kiln_windows.go",
        "v1/testdata/kiln.go",
        "v1/_old/kiln.go",
        "v1/.old/kiln.go",
        "vendor/example.com/kilns/v1/kiln.go",
    ] {
        folder.write(file, twin);
    }
    folder.write("v1/ignored.go", format!("//go:build ignore\n\n{twin}"));
    assert_eq!(found(&folder), whole());
}

#[test]
fn types_that_go_round_in_circles_end() {
    for circle in [
        "type FiringType Other\n\ntype Other FiringType",
        "type FiringType = Other\n\ntype Other = FiringType",
        "type FiringType = FiringType",
    ] {
        // No compiler takes that; the schema has the values all the same.
        kilns(GO.replace("type FiringType string", circle)).run(&["generate", "--go", ".", "crd.yaml"]).says(&[]);
    }
    let spec = "type KilnSpec struct {";
    for embedded in ["KilnSpec `json:\",inline\"`", "*KilnSpec `json:\",inline\"`", "Twin `json:\",inline\"`"] {
        let go = GO
            .replace(spec, &format!("type Twin struct {{\n\tKilnSpec `json:\",inline\"`\n}}\n\n{spec}\n\t{embedded}"));
        // Input that the Go compiler refuses may be refused here, too.
        kilns(go).run(&["generate", "--go", ".", "crd.yaml"]).says(&[]);
    }
}

#[test]
fn a_type_in_itself_is_followed_as_far_as_the_schema_goes() {
    let go =
        GO.replace("type KilnSpec struct {", "type KilnSpec struct {\n\tInner *KilnSpec `json:\"inner,omitempty\"`\n");
    let mut crd = CRD.to_owned();
    let spec = "            type: object\n            required: [firing]\n            properties:\n";
    let (_, fields) = CRD.split_once(spec).unwrap();
    for _ in 0..2 {
        let inner = crd.split_once(spec).unwrap().1.replace('\n', "\n    ");
        let indented = spec.replace("            ", "                ");
        crd = format!(
            "{}{spec}              inner:\n{indented}    {}\n{fields}",
            CRD.split_once(spec).unwrap().0,
            inner.trim_end()
        );
    }
    let folder = kilns(go);
    folder.write("crd.yaml", crd);
    let paths: Vec<String> = found(&folder).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["spec", "spec.inner", "spec.inner.inner"]);
}

#[test]
fn a_package_of_the_module_that_is_not_there_is_named_and_the_rest_is_found() {
    let go = GO.replace("import metav1", "import \"example.com/kilns/shelves\"\nimport metav1").replace(
        "type KilnSpec struct {",
        "type KilnSpec struct {\n\tShelf *shelves.Shelf `json:\"shelf,omitempty\"`\n",
    );
    let folder = kilns(go);
    let shelf = "            properties:\n              shelf: {type: object, properties: {kind: {type: string}, wood: {type: object}}}\n              firing";
    folder.write("crd.yaml", CRD.replace("            properties:\n              firing", shelf));
    assert_eq!(found(&folder), whole());
    folder.run(&["generate", "--go", ".", "crd.yaml"]).says(&["example.com/kilns/shelves"]);
}

#[test]
fn of_two_files_with_a_struct_the_one_of_the_build_tag_counts() {
    let machines = "crds/fleet.example.com_machines.yaml";
    for (tags, wanted) in [(&[][..], &["rack"][..]), (&["--tags", "enterprise"], &["rack", "cage"])] {
        let arguments = [&["--go", "fleet", "--check", "-o", "json", machines], tags].concat();
        let report = Report::parse(&generate(&arguments).code(1).stdout);
        let (_, union) = report.unions().find(|(_, union)| union.path == "spec.placement").expect("the union is there");
        assert_eq!(union.members, wanted, "{tags:?}");
    }
}

#[test]
fn line_ends_and_a_byte_order_mark_do_not_matter() {
    assert_eq!(found(&kilns(GO.replace('\n', "\r\n"))), whole());
    assert_eq!(found(&kilns(format!("\u{feff}{GO}"))), whole());
    assert_eq!(found(&kilns(GO.trim_end())), whole());
}

#[test]
fn links_that_lead_round_in_circles_end() {
    let folder = kilns(GO);
    unix::fs::symlink(folder.path(), folder.path().join("v1/up")).unwrap();
    unix::fs::symlink(folder.path().join("nowhere.go"), folder.path().join("v1/gone.go")).unwrap();
    let run = folder.run(&["generate", "--go", ".", "crd.yaml"]).says(&[]);
    assert!(run.code == 0 || run.stderr.contains("gone.go"), "{run:#?}");
}

#[test]
fn depth_without_end_ends() {
    let spec = "type KilnSpec struct {\n";
    let lists = format!("{spec}\tDeep {}int `json:\"deep,omitempty\"`\n", "[]".repeat(200_000));
    let pointers = format!("{spec}\tDeep {}int `json:\"deep,omitempty\"`\n", "*".repeat(200_000));
    let structs = format!(
        "{spec}\tDeep {}int{} `json:\"deep\"`\n",
        "struct { D ".repeat(20_000),
        " `json:\"d\"` }".repeat(20_000)
    );
    let arguments = format!("{spec}\tDeep {}int{} `json:\"deep\"`\n", "List[".repeat(20_000), "]".repeat(20_000));
    let sum = format!("const Sum = {}1{}\n\n{spec}", "(".repeat(100_000), ")".repeat(100_000));
    let doubled: Vec<_> = (1..60).map(|it| format!("\tD{it} = D{} + D{}\n", it - 1, it - 1)).collect();
    let doubled = format!("const (\n\tD0 = \"\"\n{})\n\n{spec}", doubled.concat());
    for text in [lists, pointers, structs, arguments, sum, doubled] {
        let folder = kilns(GO.replace(spec, &text));
        let crd = CRD.replace("            properties:\n              firing", "            properties:\n              deep: {type: array, items: {type: array, items: {type: integer}}}\n              firing");
        folder.write("crd.yaml", crd);
        // Found or refused, but told.
        let run = folder.run(&["generate", "--go", ".", "crd.yaml"]).says(&[]);
        assert!(run.code <= 2, "{}", run.code);
    }
}

#[test]
fn what_is_written_in_place_is_whole_or_as_it_was() {
    let folder = kilns(GO);
    folder.write("faulty.yaml", CRD.replace(", Bisque]", "]"));
    let run = folder.run(&["generate", "--go", ".", "-w", "crd.yaml", "faulty.yaml"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert_eq!(folder.read("faulty.yaml"), CRD.replace(", Bisque]", "]"));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "no other file is left behind: {left:?}");
}

/// It needs no constant, but the API server has to take it.
#[test]
fn an_empty_value_that_the_schema_does_not_have_is_not_a_value() {
    let constants = "type FiringType string\n\nconst (\n\tCold FiringType = \"Cold\"\n\tGlaze FiringType = \"Glaze\"\n\tBisque FiringType = \"Bisque\"\n)";
    let go = GO.replace("Enum=Cold", "Enum=\"\";Cold").replace("type FiringType string", constants);
    let folder = kilns(&go);
    let run = folder.run(&["generate", "--go", ".", "crd.yaml"]).code(0);
    run.says(&["the Enum marker of `FiringType` has `\"\"`, which the schema's enum lacks"]);
    assert_eq!(found(&folder), whole());

    folder.write("crd.yaml", CRD.replace("enum: [Cold", "enum: [\"\", Cold"));
    folder.run(&["generate", "--go", ".", "crd.yaml"]).code(0);
    assert_eq!(found(&folder), whole());
}
