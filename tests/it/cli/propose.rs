//! `propose`: the groups and samples that it proposes.

use super::{Folder, yaml};
use fixtures::files::root;
use serde_json::{Value, json};

/// One group has rules that also reject what no union can say.
#[test]
fn proposed_groups_agree_with_the_rules() {
    let rows = yaml(include_str!("../../e2e/native/proposals.yaml"));
    for (number, row) in rows.as_array().unwrap().iter().enumerate() {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": row["spec"]}});
        let crd = fixtures::crds::crd("groups.example", "Group", &[fixtures::crds::version("v1", &schema)]);
        let folder = Folder::new(&[("crd.json", &crd.to_string())]);
        let run = folder.run(&["propose", "crd.json"]).code(0);
        folder.write("declaration.yaml", &run.stdout);
        let is_stricter = row["stricter"] == true;
        let run = folder.run(&["check-cel", "crd.json", "declaration.yaml", "-o", "json"]).code(i32::from(is_stricter));
        let want = if is_stricter { "tooStrong" } else { "agrees" };
        assert_eq!(run.json()[0]["verdicts"], json!([want]), "{number}: {}", row["description"]);
    }
}

/// Returns the unions of a report, sorted.
fn reported(kinds: &Value) -> Vec<Value> {
    let unions = kinds.as_array().unwrap().iter().flat_map(|kind| {
        kind["unions"].as_array().unwrap().iter().map(|union| {
            let discriminator = &union["discriminator"];
            let mut choices = union["choices"].as_array().unwrap().clone();
            // Without a discriminator, a value is only a name.
            choices.iter_mut().filter(|_| discriminator.is_null()).for_each(|choice| choice["value"] = json!(null));
            choices.sort_by_key(Value::to_string);
            let required = &union["required"];
            json!({"kind": kind["kind"], "path": union["path"], "discriminator": discriminator, "choices": choices, "required": required})
        })
    });
    let mut unions: Vec<Value> = unions.collect();
    unions.sort_by_key(Value::to_string);
    unions
}

#[test]
fn the_unions_of_the_samples_are_found_in_the_rules_that_they_are_compiled_to() {
    let samples = root().join("manifests/samples");
    let samples = samples.to_str().unwrap();
    let folder = Folder::new(&[]);
    let compiled = folder.run(&["compile", "--to", "cel", "--from", samples]).code(0);
    folder.write("compiled.yaml", &compiled.stdout);
    let declared = reported(&folder.run(&["explain", "--from", samples, "-o", "json"]).code(0).json());
    let found = folder.run(&["propose", "compiled.yaml", "-o", "json"]).code(0);
    let found = found.says(&["8 CRDs: 10 unions proposed, 2 groups of fields in doubt"]).json();
    // The discriminator of these need not be set beside a member.
    let (optional, declared): (Vec<Value>, Vec<Value>) = declared.into_iter().partition(|it| it["kind"] == "Backup");
    assert_eq!((optional.len(), reported(&found)), (2, declared));
    let doubts = found.as_array().unwrap().iter().flat_map(|it| it["doubts"].as_array().unwrap());
    let doubts: Vec<&str> = doubts.map(|doubt| doubt["why"].as_str().unwrap()).collect();
    assert!(doubts.len() == 2 && doubts.iter().all(|why| why.contains("is also allowed without")), "{doubts:?}");
}
