//! Any text as an OpenAPI schema with validations: unions are proposed from them, and the same ones every time.
#![no_main]

use kube_unions_evidence::{Proposals, TruthTable, UnionFields};
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(schema) = serde_json::from_str::<Value>(text) else { return };
    let proposed = Proposals::of(&schema);
    assert_eq!(format!("{proposed:?}"), format!("{:?}", Proposals::of(&schema)));
    let fields = schema["properties"].as_object().into_iter().flatten();
    let members: Vec<String> = fields.map(|(name, _)| name.clone()).take(4).collect();
    let union = UnionFields { members, ..UnionFields::default() };
    let table = TruthTable::of(&schema, &union);
    for row in table.rows() {
        assert!(row.rejected_unless_empty.iter().all(|place| *place < table.evidence().len()));
    }
});
