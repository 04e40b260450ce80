//! Bad input: every one gets a clear answer and exit code 2, and nothing panics.

use super::{CRD, Folder};
use std::fmt::Write;

/// Every command that reads CRDs from a path.
const READERS: [&[&str]; 7] = [
    &["lint"],
    &["annotate"],
    &["explain", "--from"],
    &["review", "--from"],
    &["normalize", "-f", "crd.yaml", "--from"],
    &["audit", "--from"],
    &["openapi", "--from"],
];

#[track_caller]
fn all_refuse(folder: &Folder, path: &str, says: &[&str]) {
    for reader in READERS {
        let run = folder.run(&[reader, &[path]].concat()).code(2);
        // `lint` reports on standard output what it found.
        let said = format!("{}{}", run.stdout, run.stderr);
        for text in says {
            assert!(said.contains(text), "{reader:?}: no `{text}` in {run:#?}");
        }
        assert!(!said.contains("panicked"), "{run:#?}");
    }
}

#[test]
fn a_folder_without_manifests_is_named() {
    let folder = Folder::with_crd(&[("empty/readme.txt", "a: 1"), ("empty/.hidden/crd.yaml", CRD)]);
    all_refuse(&folder, "empty", &["empty: ", "no manifests in this folder", ".yaml, .yml and .json"]);
}

#[test]
fn a_file_that_cannot_be_parsed_is_named_with_line_and_column() {
    let folder = Folder::with_crd(&[]);
    let template = "this is a template: render it first, for example with `helm template`";
    let json5 = "this is JSON5 or JSON with comments: convert it to JSON first";
    let rows: [(&str, &[u8], &[&str]); 15] = [
        ("bad.yaml", b"a: 1\n---\n# two\nb: [1, 2\nc: 3\n", &["bad.yaml:5:2: "]),
        ("twice.yaml", b"a: 1\n---\nb:\n  c: 1\n  c: 2\n", &["twice.yaml:5:3: ", "duplicate key `c`"]),
        ("tab.yml", b"a:\n\t- b\n", &["tab.yml:2:2: ", "tabs"]),
        ("unknown.yaml", b"a: *nowhere\n", &["unknown.yaml:1:4: "]),
        ("bad.json", b"{\n  \"a\": 1,\n}\n", &["bad.json:3:1: ", "key must be a string"]),
        ("cut.json", b"{\"a\": [1, 2", &["cut.json:1:11: ", "EOF"]),
        ("two.json", b"{} {]", &["two.json:1:5: "]),
        ("image.yaml", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", &["image.yaml:1:1: ", "not text in UTF-8"]),
        ("latin.yaml", b"a: 1\nb: caf\xe9\n", &["latin.yaml:2:7: ", "not text in UTF-8"]),
        ("zero.yaml", b"a: \x00\n", &["zero.yaml:1:4: "]),
        ("template.yaml", b"{{- if .Values.crds }}\nkind: A\n{{- end }}\n", &["template.yaml:1:", template]),
        ("template2.yaml", b"kind: A\nmetadata:\n  name: {{ .Release.Name }}\n", &["template2.yaml:3:", template]),
        ("json5.json", b"{\n  // why\n  kind: 'A',\n}\n", &["json5.json:2:3:", json5]),
        ("json5.yaml", b"{\n  // why\n  \"kind\": \"A\"\n}\n", &["json5.yaml:2:3:", json5]),
        ("utf-16.yaml", b"\xff\xfea\0:\0 \x001\0\n\0", &["utf-16.yaml:1:1: ", "UTF-16", "UTF-8"]),
    ];
    for (file, bytes, says) in rows {
        folder.write(file, bytes);
        all_refuse(&folder, file, says);
    }
}

#[test]
fn nesting_past_all_measure_is_refused() {
    let yaml: String = (0..2000).map(|depth| " ".repeat(depth) + "a:\n").collect();
    let folder = Folder::with_crd(&[("deep.yaml", &yaml), ("flow.yaml", &format!("a: {}", "[".repeat(100_000)))]);
    all_refuse(&folder, "deep.yaml", &["deep.yaml:", "nested"]);
    all_refuse(&folder, "flow.yaml", &["flow.yaml:1:", "nested"]);
}

#[test]
fn json_may_nest_as_deep_as_an_api_server_lets_it() {
    let deep = format!("{{\"kind\": \"Other\", \"a\": {}1{}}}", "[".repeat(9000), "]".repeat(9000));
    let folder = Folder::with_crd(&[("deep.json", &deep)]);
    folder.run(&["lint", "."]).code(0);
    folder.run(&["annotate", "deep.json"]).code(0).prints(&deep);
}

#[test]
fn aliases_of_aliases_are_bounded() {
    let mut bomb = "kind: Bomb\na: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for pair in b"abcdefghij".windows(2) {
        let (from, to) = (char::from(pair[0]), char::from(pair[1]));
        writeln!(bomb, "{to}: &{to} [{}]", vec![format!("*{from}"); 9].join(", ")).unwrap();
    }
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 2000].join(", "));
    let folder = Folder::with_crd(&[("bomb.yaml", &bomb), ("long.yaml", &long)]);
    all_refuse(&folder, "bomb.yaml", &["bomb.yaml:", "alias"]);
    all_refuse(&folder, "long.yaml", &["long.yaml:", "alias"]);
}

#[test]
fn usage_is_2_with_the_usage_on_standard_error() {
    let folder = Folder::new(&[]);
    for arguments in [&[][..], &["lint"], &["lint", "--nonsense"], &["review"], &["explode"]] {
        folder.run(arguments).code(2).prints("").says(&["Usage: kube-unions"]);
    }
}
