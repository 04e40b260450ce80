//! `patch apply`: numbers and depth. The crate has long lists.

use super::{Folder, Run};

/// A JSON schema with the open object `free`.
const OPEN: &str =
    r#"{"type": "object", "properties": {"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}"#;

fn apply(original: &str, patch: &str) -> Run {
    let folder = Folder::new(&[("s.json", OPEN)]);
    folder.write("o.json", original);
    folder.write("p.json", patch);
    folder.run(&["patch", "apply", "--schema", "s.json", "--original", "o.json", "--patch-file", "p.json"])
}

#[test]
fn numbers_in_json_stay_as_they_were_written() {
    let numbers = r#"{"a":18446744073709551617,"b":0.10000000000000000555,"c":1E400,"d":-0}"#;
    let run = apply(&format!(r#"{{"free":{numbers}}}"#), r#"{"free":{"e":1.50}}"#).code(0);
    let kept = numbers.trim_matches(['{', '}']);
    assert_eq!(run.stdout.split_whitespace().collect::<String>(), format!(r#"{{"free":{{{kept},"e":1.50}}}}"#));
}

#[test]
fn patches_a_deep_object_and_refuses_one_of_more_than_512_levels() {
    let deep = |levels: usize, inner: &str| {
        format!(r#"{{"free":{}{inner}{}}}"#, r#"{"a":"#.repeat(levels), "}".repeat(levels))
    };
    let run = apply(&deep(500, "1"), &deep(500, r#"{"b":2}"#)).code(0);
    assert_eq!(run.stdout.split_whitespace().collect::<String>(), deep(500, r#"{"b":2}"#));
    let run = apply(&deep(500, "1"), &deep(5000, "1")).code(2);
    assert!(run.stderr.contains("512"), "{}", run.stderr);
}
