//! Objects in files are judged with the defaults of their schema, as admission judges them.

use super::{Folder, crd_of};
use serde_json::json;

/// A schema whose discriminator has a default, and whose member may come from a default.
const SCHEMA: &str = "        type: object
        properties:
          spec:
            type: object
            properties:
              type: {type: string, enum: [Plain, Canary], default: Plain}
              canary: {type: object, properties: {weight: {type: integer}}}
              made:
                type: object
                default: {a: x}
                properties: {kind: {type: string}, a: {type: string}, b: {type: string}}
";

const UNIONS: &str = r#"{"v1": {"/properties/spec/properties/type": {"fieldMembers": {"Plain": null, "Canary": {"name": "canary"}}},
    "/properties/spec/properties/made": [{"discriminator": "kind", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}"#;

fn crd() -> String {
    crd_of("Thing", SCHEMA).replace(
        "things.example.com}",
        &format!("things.example.com, annotations: {{kube-unions.dev/unions: '{UNIONS}'}}}}"),
    )
}

fn thing(spec: &str) -> String {
    format!("# mine\napiVersion: example.com/v1\nkind: Thing\nmetadata: {{name: thing}}\nspec:\n{spec}")
}

#[test]
fn a_discriminator_with_a_default_counts_if_it_is_missing_or_null() {
    let folder = Folder::new(&[("crd.yaml", &crd())]);
    let forbidden = "spec.canary: Forbidden: may only be specified when `type` is \"Canary\"";
    for (spec, code) in [
        ("  canary: {weight: 1}\n  made: {}\n", 1),
        ("  type: null\n  canary: {weight: 1}\n  made: {}\n", 1),
        ("  type: Canary\n  canary: {weight: 1}\n  made: {}\n", 0),
        ("  canary: null\n  made: {}\n", 0),
        ("  {}\n", 0),
    ] {
        folder.write("thing.yaml", thing(spec));
        let audit =
            folder.run(&["audit", "--from", "crd.yaml", "--from", "thing.yaml", "-o", "json"]).code(code).json();
        let rules: Vec<_> = audit["findings"].as_array().unwrap().iter().map(|it| &it["rule"]).collect();
        assert_eq!(rules.contains(&&json!("member-not-selected")), code == 1, "{spec}: {rules:?}");
        let run = folder.run(&["normalize", "--from", "crd.yaml", "-f", "thing.yaml"]).code(code);
        assert_eq!(run.stderr.contains(forbidden), code == 1, "{spec}: {}", run.stderr);
    }
}

#[test]
fn normalising_prints_no_defaults() {
    let folder = Folder::new(&[("crd.yaml", &crd())]);
    // The webhook would set `made.kind` to A; here `made` exists only as a default.
    let text = thing("  type: Canary # now\n  canary: {weight: 1}\n");
    folder.write("thing.yaml", &text);
    folder.run(&["normalize", "--from", "crd.yaml", "-f", "thing.yaml"]).code(0).prints(&text);
    folder.write("old.yaml", thing("  type: Canary\n  canary: {weight: 1}\n  made: {a: x}\n"));
    folder.write("thing.yaml", thing("  canary: {weight: 1} # stays here\n  made: {kind: B, b: x}\n"));
    let run = folder.run(&["normalize", "--from", "crd.yaml", "--old", "old.yaml", "-f", "thing.yaml"]).code(0);
    let want = thing("  made: {kind: B, b: x}\n");
    run.says(&["spec.canary: cleared because `type` changed to \"Plain\""]).prints(&want);
}

#[test]
fn defaults_that_would_fill_the_memory_keep_one_object_from_being_audited() {
    let crd = crd().replace("default: {a: x}", &format!("default: {{a: {}}}", "x".repeat(1 << 20)));
    let crd = crd.replace(
        "          spec:\n            type: object\n",
        "          spec:\n            type: object\n            x-kubernetes-preserve-unknown-fields: true\n",
    );
    let crd = crd.replace("              type: {type: string,", "              more: {type: array, items: {type: object, properties: {big: {type: string, default: BIG}}}}\n              type: {type: string,");
    let crd = crd.replace("BIG", &"x".repeat(1 << 20));
    let folder = Folder::new(&[("crd.yaml", &crd)]);
    folder.write("a.yaml", thing(&format!("  more: [{}]\n", vec!["{}"; 64].join(", "))));
    folder.write("b.yaml", thing("  canary: {weight: 1}\n"));
    let run = folder.run(&["audit", "--from", ".", "-o", "json"]).code(2);
    assert!(
        run.stderr.contains("a.yaml: Thing/thing: the defaults of the schema would add more than"),
        "{}",
        run.stderr
    );
    let summary = &run.json()["summary"];
    assert_eq!((&summary["objects"], &summary["invalid"]), (&json!(1), &json!(1)), "the other object is audited");
}
