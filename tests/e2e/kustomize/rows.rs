//! Rows of patches, each built without an OpenAPI document and with ours.

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{DOCUMENT, Kustomization, object, patches};
use crate::support::kind::documents;

const ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/kustomize/rows.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    description: String,
    /// The spec of the only object.
    spec: Option<Value>,
    objects: Option<Vec<Value>>,
    patches: Vec<Value>,
    same: Option<Value>,
    without: Option<Value>,
    with: Option<Value>,
}

impl Row {
    fn objects(&self) -> Vec<Value> {
        self.objects.clone().unwrap_or_else(|| self.whole(self.spec.as_ref().unwrap()))
    }

    fn patches(&self) -> Vec<Value> {
        self.patches.iter().flat_map(|patch| self.whole(patch)).collect()
    }

    /// Returns what JSON merge patches make of the row's object.
    fn merged(&self) -> Value {
        let (mut object, is_list) = match &self.objects {
            Some(objects) => (objects[0].clone(), true),
            None => (self.spec.clone().unwrap(), false),
        };
        self.patches.iter().for_each(|patch| json_patch::merge(&mut object, patch));
        if is_list { json!([object]) } else { object }
    }

    /// Returns the objects that a part of the row stands for.
    fn whole(&self, part: &Value) -> Vec<Value> {
        if let Value::Array(objects) = part {
            return objects.clone();
        }
        vec![if self.objects.is_some() { part.clone() } else { object("Stack", &json!({"name": "shop"}), part) }]
    }
}

#[test]
fn patches_merge_custom_resources_by_their_keys_with_our_document() {
    let Some(kustomization) = Kustomization::new() else { return };
    kustomization.write_document();
    let rows: Vec<Row> = serde_saphyr::from_str(&fs::read_to_string(ROWS).unwrap()).unwrap();
    assert!(rows.len() >= 15, "only {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let (without, with) = match (&row.same, &row.without, &row.with) {
            (Some(same), None, None) => (same.clone(), same),
            (None, without, Some(with)) => {
                let without = without.clone().unwrap_or_else(|| row.merged());
                assert_ne!(without, *with, "{}: the document changes nothing: use `same`", row.description);
                (without, with)
            }
            _ => panic!("{}: needs `same`, or `with`", row.description),
        };
        for (document, want, mut fields) in
            [("without", &without, json!({})), ("with", with, json!({"openapi": {"path": DOCUMENT}}))]
        {
            fields["patches"] = patches(&row.patches());
            let built = documents(&kustomization.run(&row.objects(), &fields).accepted().stdout);
            let want = row.whole(want);
            if built != want {
                wrong.push(format!("{}, {document}:\n  {}\n  {}", row.description, json!(built), json!(want)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
