//! A hard limit on the memory of `audit`, which a cluster of any size fits under.

use super::{ApiServer, WIDGETS, page_of, widget};
use serde_json::{Value, json};
use std::process::Command;

/// The size of one object, in bytes. It is far above the usual one, so that few objects make much text.
const OBJECT: usize = 64 << 10;
/// The objects of the cluster: twice the limit in text.
const OBJECTS: usize = 2 * (LIMIT_KIB << 10) / OBJECT;
/// The limit on the heap and the stacks of all threads, in KiB.
const LIMIT_KIB: usize = 32 << 10;

#[test]
fn a_cluster_that_is_larger_than_the_memory_is_audited_page_by_page() {
    let filler = Value::from("x".repeat(OBJECT));
    let server = ApiServer::start(move |asked| {
        asked.is(WIDGETS).then(|| {
            page_of(asked, OBJECTS, |number| {
                let mut object = widget(number);
                object["metadata"]["annotations"] = json!({"example.com/filler": filler});
                object
            })
        })
    });
    let audit = server.command(&["-A", "-o", "json"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -d {LIMIT_KIB} && exec \"$@\""), "sh"]);
    limited.arg(audit.get_program()).args(audit.get_args()).current_dir(audit.get_current_dir().unwrap());
    let run = super::run(&mut limited, b"").code(1);
    let report = run.json();
    assert_eq!(report["summary"]["objects"], OBJECTS);
    assert_eq!(report["findings"].as_array().unwrap().len(), OBJECTS.div_ceil(5));
}
