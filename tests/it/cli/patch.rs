//! `patch create` and `patch apply`: numbers, sizes, and that one undoes the other.

use super::{Folder, Run, yaml};
use fixtures::files::files;
use serde_json::json;

const GATEWAYS: &str = include_str!("../../../manifests/samples/gateway/crd.yaml");

/// A JSON schema with the list `items`, which merges by `name`, and the open object `free`.
const LIST: &str = r#"{"type": "object", "properties": {"items": {"type": "array", "x-kubernetes-patch-strategy": "merge",
    "x-kubernetes-patch-merge-key": "name", "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {}}}},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}"#;

fn apply(folder: &Folder, original: &str, patch: &str) -> Run {
    folder.write("o.json", original);
    folder.write("p.json", patch);
    folder.run(&["patch", "apply", "--schema", "s.json", "--original", "o.json", "--patch-file", "p.json"])
}

#[test]
fn numbers_in_json_stay_as_they_were_written() {
    let folder = Folder::new(&[("s.json", LIST)]);
    let numbers = r#"{"a":18446744073709551617,"b":0.10000000000000000555,"c":1E400,"d":-0}"#;
    let run = apply(&folder, &format!(r#"{{"free":{numbers}}}"#), r#"{"free":{"e":1.50}}"#).code(0);
    let kept = numbers.trim_matches(['{', '}']);
    assert_eq!(run.stdout.split_whitespace().collect::<String>(), format!(r#"{{"free":{{{kept},"e":1.50}}}}"#));
}

#[test]
fn patches_a_deep_object_and_refuses_one_of_more_than_512_levels() {
    let folder = Folder::new(&[("s.json", LIST)]);
    let deep = |levels: usize, inner: &str| {
        format!(r#"{{"free":{}{inner}{}}}"#, r#"{"a":"#.repeat(levels), "}".repeat(levels))
    };
    let run = apply(&folder, &deep(500, "1"), &deep(500, r#"{"b":2}"#)).code(0);
    assert_eq!(run.stdout.split_whitespace().collect::<String>(), deep(500, r#"{"b":2}"#));
    let run = apply(&folder, &deep(500, "1"), &deep(5000, "1")).code(2);
    assert!(run.stderr.contains("512"), "{}", run.stderr);
}

#[test]
fn patches_a_list_of_a_hundred_thousand_items() {
    let folder = Folder::new(&[("s.json", LIST)]);
    let item = |position: usize| format!(r#"{{"name":"n{position}","v":1}}"#);
    let items: Vec<String> = (0..100_000).map(item).collect();
    let run = apply(
        &folder,
        &format!(r#"{{"items":[{}]}}"#, items.join(",")),
        r#"{"items":[{"name":"n99999","v":2},{"name":"n0","$patch":"delete"}]}"#,
    );
    let patched = run.code(0).json();
    let items = patched["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0], &items[99_998]["v"]), (99_999, &json!({"name": "n1", "v": 1}), &json!(2)));
}

#[test]
fn applying_a_created_patch_gives_the_modified_object() {
    let folder = Folder::new(&[("crd.yaml", GATEWAYS)]);
    let sample =
        |name: &str| files("manifests/samples/gateway", "yaml").into_iter().find(|file| file.0 == name).unwrap().1;
    let (old, new) = (sample("normalized-to-internal.old.yaml"), sample("normalized-to-internal.want.yaml"));
    let new = new.replacen("targetPort: 5300", "targetPort: 5301", 1);
    folder.write("old.yaml", &old);
    folder.write("new.yaml", &new);
    let schema = ["--schema", "crd.yaml", "--original", "old.yaml"];
    let patch = folder.run(&[&["patch", "create"], &schema[..], &["--modified", "new.yaml"]].concat()).code(0);
    assert_eq!(
        yaml(&patch.stdout)["spec"]["exposure"],
        json!({"$retainKeys": ["type"], "type": "Internal", "loadBalancer": null})
    );
    folder.write("patch.yaml", &patch.stdout);
    let patched = folder.run(&[&["patch", "apply"], &schema[..], &["--patch-file", "patch.yaml"]].concat()).code(0);
    assert_eq!(yaml(&patched.stdout), yaml(&new));
}
