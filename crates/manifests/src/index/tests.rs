//! A file that is read object by object has the objects that it has as a whole.

use super::{Extent, ManifestRole, ObjectIndex};
use crate::document::Document;
use crate::file::Problem;
use crate::rendering::RenderedFile;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// An object as messages show it, and the places of its values.
type Shown = (String, [Option<String>; 4], bool, Vec<Option<(usize, usize)>>);

fn shown(document: &Document) -> Shown {
    let identity = document.identity().map(|field| field.value.map(str::to_owned));
    let pointers =
        ["", "/kind", "/metadata/name", "/spec", "/spec/a", "/spec/b", "/spec/c/0", "/spec/c/1/d", "/metadata/x/y"];
    let places = pointers.iter().map(|pointer| document.position(pointer)).collect();
    (document.text.clone(), identity, document.describes_kinds(), places)
}

/// Compares both ways of reading. Returns the number of lists that were cut.
#[track_caller]
fn same(path: &str, text: &str) -> usize {
    let whole = RenderedFile::read(Path::new(path), text.as_bytes().to_vec());
    let index = ObjectIndex::read(PathBuf::from(path), Cursor::new(text.to_owned()));
    let (whole, index) = match (&whole, index) {
        (Ok(whole), Ok(index)) => (whole, index),
        (Err(whole), Err(problem)) => {
            assert_eq!(problem.to_string(), whole.to_string());
            return 0;
        }
        (whole, index) => panic!("{whole:?} as a whole, and {index:?} in parts"),
    };
    let lines = |problems: &[Problem]| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((lines(&index.unread), lines(&index.duplicates)), (lines(&whole.unread), lines(&whole.duplicates)));
    let documents = whole.documents();
    for role in [ManifestRole::Kinds, ManifestRole::Objects] {
        let is_wanted = |document: &Document| match role {
            ManifestRole::Kinds => document.describes_kinds(),
            ManifestRole::Objects => document.is_object(),
        };
        let read = index.documents(Cursor::new(text.to_owned()), role).map(Result::unwrap);
        let read: Vec<_> = read.filter(is_wanted).collect();
        let wanted = documents.iter().filter(|document| is_wanted(document));
        let (read, wanted): (Vec<_>, Vec<_>) = (read.iter().map(shown).collect(), wanted.map(shown).collect());
        assert_eq!(read, wanted, "{text}");
    }
    assert_eq!(index.objects(), documents.iter().filter(|document| document.is_object()).count(), "{text}");
    index.lists.len()
}

#[test]
fn an_object_takes_32_bytes() {
    assert_eq!(size_of::<Extent>(), 32);
}

const YAML_LIST: &str = "\
# A list.
apiVersion: v1
kind: List
metadata: {resourceVersion: ''}
items:
# The first.
- apiVersion: example.com/v1
  kind: Widget
  metadata:
    name: one # of three
  spec:
    a: |+
      kept

    b: \"one
  - two\"
    c: [1, {d: 'x
      y'}]
-   kind: Widget
    apiVersion: example.com/v1

    metadata: {name: two,
      x: {y: ü}}
    spec: {a: 0644, b: yes}
-
  # Below its dash.
  kind: Widget
  apiVersion: example.com/v1
  spec:
    c:
    - 1
    - d: |-
        text
        - no item
- {kind: Widget, apiVersion: example.com/v1, metadata: {name: three}}
- ~
-
- apiVersion: v1
  kind: List
  items:
  - {kind: Inner, apiVersion: v1}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: widgets.example.com}
- a: >
    folded

";

#[test]
fn a_list_is_cut_at_its_items_wherever_its_type_stands() {
    assert_eq!(same("a.yaml", YAML_LIST), 1);
    assert_eq!(same("a.yaml", &YAML_LIST.replace('\n', "\r\n")), 1);
    assert_eq!(same("a.yaml", YAML_LIST.trim_end()), 1);
    assert_eq!(same("a.yaml", &format!("\u{feff}{YAML_LIST}")), 1);
    assert_eq!(same("a.yaml", &format!("a: 1\n---\n{YAML_LIST}...\n# Others.\n---\n{YAML_LIST}---\nb: 2")), 2);
    let last =
        YAML_LIST.replace("kind: List\nmetadata: {resourceVersion: ''}\n", "") + "kind: List\nmetadata:\n  x: 1\n";
    assert_eq!(same("a.yaml", &last), 1);
    let indented = "items:\n  - kind: A\n    spec: {a: 1}\n  -   kind: B\n      spec:\n        b: 2\nkind: XList\napiVersion: v1\n";
    assert_eq!(same("a.yaml", indented), 1);
    for (kind, version) in [("CustomResourceDefinition", "apiextensions.k8s.io/v1"), ("Widget", "v1"), ("", "v1")] {
        let untyped = format!(
            "items:\n- spec: {{a: 1}}\n- kind: Own\n- metadata:\n    name: b\napiVersion: {version}\nkind: {kind}List\n"
        );
        assert_eq!(same("a.yaml", &untyped), 1);
        let items = json!([{"spec": {"a": 1}}, {"kind": "Own"}, {"openapi": "3", "components": {"schemas": {}}}, {}]);
        let untyped = json!({"items": items, "kind": format!("{kind}List"), "apiVersion": version}).to_string();
        assert_eq!(same("a.json", &untyped), 1);
    }
}

#[test]
fn what_an_item_alone_would_lack_is_read_as_a_whole() {
    for text in [
        "kind: AList\nitems:\n- &a {kind: B, spec: {a: 1}}\n- *a\n",
        "kind: AList\nx: &x 1\nitems:\n- spec: {a: *x}\n",
        "kind: AList\nitems:\n- spec: &s\n    a: 1\n- spec:\n    <<: *s\n    b: 2\n",
        "kind: AList\nitems:\n- !!map\n  a: 1\n",
        "kind: AList\nitems:\n- |\n  a: 1\n- >\n  b\n",
        "kind: A\nitems:\n- kind: B\n- kind: C\nspec: {a: 1, b: 2, c: [1, 2]}\n",
        "items:\n- kind: B\n- kind: C\n# A comment that is long enough.\n",
        "kind: AList\nitems:\n  kind: B\n# A comment that is long enough.\n",
        "spec: {a: 1}\nmetadata:\n  items: [a]\n  # A comment that is long enough.\n",
        "- kind: B\n- kind: C\n- spec:\n    items:\n    - kind: D\n",
        "{kind: AList, items: [{kind: B, spec: {a: 1}}, {kind: C}]}\n",
        "kind: AList\nitems: [{a: 1}, {kind: B}]\n",
        "kind: AList\nitems: []\n# Nothing that could be cut is in it.\n",
        "kind: AList\nitems:\n-\tkind: B\n- kind: C\n",
        "kind: AList\nitems:\n-\n  |1\n  a\n- kind: C\n",
        "kind: AList\nitems:\n- {a: 1,\n- b}\n- kind: C\n# A comment that is long enough.\n",
    ] {
        assert_eq!(same("a.yaml", text), 0, "{text}");
    }
}

#[test]
fn json_is_cut_at_its_values_and_lists_at_their_items() {
    let list = r#" {"apiVersion":"v1","items":[{"kind":"A","metadata":{"name":"ü\"]}\\"},
  "spec":{"a":[1,{"d":"x"}],"c":[1, {"d": 2}]}} ,null,{"kind":"B","spec":
    {"b":-1.5e3}},[1], "x", 7, true, {"apiVersion":"v1","kind":"List","items":[{"kind":"C"}]}],
  "kind":"List", "metadata": {"resourceVersion":""}}"#;
    assert_eq!(same("a.json", list), 1);
    assert_eq!(same("a.json", &format!("\u{feff}{list}")), 1);
    assert_eq!(same("a.json", &format!("{list}\n{{}}{list}\n[{{\"kind\":\"A\"}}] {{\"kind\":\"D\"}}\n\n")), 2);
    for text in [
        r#"{"kind":"List","items":[{"kind":"A"}],"items":[{"kind":"B"}]}"#,
        r#"{"kind":"List","items":[{"kind":"A"}],"items":{}}"#,
        r#"{"kind":"List","it\u0065ms":[{"kind":"A"},{"kind":"B"}]}"#,
        r#"{"kind":"A","items":[{"kind":"B"},{"kind":"C"}],"spec":{"a":1}}"#,
        r#"{"items":[{"kind":"B"}]}"#,
        r#"{"openapi":"3","components":{"schemas":{}}}"#,
        r#"{"kind":"A"} 1 "x" {"kind":"B"}"#,
        "{}",
        "[]",
        &format!("{}{{\"kind\":\"A\"}}", " ".repeat(5000)),
        &" \n".repeat(5000),
    ] {
        assert_eq!(same("a.json", text), 0, "{text}");
    }
}

#[test]
fn a_fault_is_told_as_by_a_reader_of_the_whole_file() {
    for text in [
        r#"{"kind":"List","items":[{"kind":"A"},]}"#,
        r#"{"kind":"List","items":[{"kind":"A"} {"kind":"B"}]}"#,
        r#"{"kind":"List","items":[{"kind":"A"},{"kind":}]}"#,
        r#"{"kind":"List","items":[{"kind":"A"},{"kind":"\u12"}]}"#,
        "{\"kind\":\"List\",\n\"items\":[{\"kind\":\"A\"},\n{\"a\":01}]}",
        r#"{"kind":"List","items":[{"kind":"A"}"#,
        r#"{"kind":"List","items":[{"kind":"A"}]"#,
        r#"{"kind":"List",}"#,
        r#"{"kind" "List"}"#,
        r#"{"kind":"A"}}"#,
        "{\"a\":\"\u{1}\"}",
        "{a: 1}\n{",
        "kind: AList\nitems:\n- kind: B\n- kind: C\n  kind: D\n# A comment that is long enough.\n",
        "kind: AList\nitems:\n- kind: B\n-\tkind: C\n kind: [\n# A comment that is long enough.\n",
        "kind: AList\nitems:\n- kind: B\nitems:\n- kind: C\n# A comment that is long enough.\n",
        "kind: AList\nitems:\n- kind: B\n- {{ .Values.item }}\n# A comment that is long enough.\n",
        "kind: AList\nitems:\n- kind: \"B\n---\nkind: C\n",
        "a: 1\n---\nb: [\n---\nc: 1\n",
        "# ü\na: 1\n---\nb: {{ .c }}\n---\nkind: C\nspec: {a: 1, b: ü, a: 2}\n...\n%YAML 1.2\n---\nkind: D\n---\n- @\n# the end\n",
        "kind: AList\nitems:\n- kind: B\n---\na: [\n---\nkind: AList\nitems:\n- kind: B\n  spec: {a: 1, a: 2}\n- kind: C\n",
        "{\"kind\":\"A\"}\n---\n{\"kind\": ${B}}\n",
        "kind: A\nspec: {a: 1, a: 2}\n",
        "a: 1\n--- {\n",
        "a: 1\n\0",
    ] {
        same("a.yaml", text);
        same("a.json", text);
    }
    let text = "kind: A\n---\nb: [\n---\nkind: C\nmetadata: {name: c, name: d}\n";
    let index = ObjectIndex::read(PathBuf::from("a.yaml"), Cursor::new(text.to_owned())).unwrap();
    let names = index.documents(Cursor::new(text.to_owned()), ManifestRole::Objects).map(|it| it.unwrap().title());
    assert_eq!(names.collect::<Vec<_>>(), ["A/?", "C/d"]);
    assert_eq!((index.objects(), index.unread.len(), index.duplicates.len()), (2, 1, 1));
    let garbage = ObjectIndex::read(PathBuf::from("a"), Cursor::new(b"a: 1\nb: \xff".to_vec())).unwrap_err();
    assert_eq!(garbage.to_string(), "a:2:4: not text in UTF-8");
}

#[test]
fn documents_are_cut_at_their_markers() {
    for text in [
        "",
        "\n",
        "# Nothing.\n",
        "---\n",
        "---\n---\na: 1\n---\n---\n",
        "--- {kind: A}\n--- {kind: B}\n...\n",
        "%YAML 1.2\n---\nkind: A\n...\n%YAML 1.2\n# Why.\n---\nkind: B\n",
        "# Above.\n---\n# Below.\nkind: A\n\n# Between.\n--- # Beside.\nkind: B\nspec:\n  a: 1",
        "kind: A\nspec:\n  a: |\n    text\n    ---\n  b: 1\n---\nkind: B\n",
        "kind: A\n...\nkind: B\n",
        "---abc: 1\n----: 2\n",
        "kind: A\r\n---\r\nkind: B\r\nspec: {a: 1}\r\n",
        "kind: A\r---\rkind: B\r",
        "  kind: A\n  spec: {a: 1}\n---\n  kind: B\n",
    ] {
        same("a.yaml", text);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z:#'\"\\- \n\\[{|>]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]|kind|items|metadata", inner, 0..4)
                .prop_map(|it| it.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn random_lists_are_read_alike(items in prop::collection::vec(value(), 0..6), at_end in any::<bool>()) {
        let list = if at_end { json!({"apiVersion": "v1", "items": items, "kind": "AList"}) } else { json!({"kind": "AList", "items": items}) };
        same("a.yaml", &crate::yaml::to_yaml(&list.to_string()).unwrap());
        same("a.json", &list.to_string());
        same("a.json", &format!("{list:#}"));
    }
}
