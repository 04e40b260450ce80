//! The rows of `tests/cases/matrix.yaml` through the API server: which fields change × discriminated or not × the client knows
//! all members × the server knows all × the union is optional or required.

use serde_json::{Value, json};

use crate::support::cluster::AnyCluster;
use crate::support::kind::{annotate, forget_unions, parse};
use crate::support::resource::Resource;
use fixtures::crds::{crd, version};
use fixtures::matrix::{Cell, Change, Client, Knows, Row, play};
use fixtures::wait::{SETTLED, eventually};

/// The API server, and the group of the kinds: one for each server of the matrix.
struct Servers {
    cluster: &'static AnyCluster,
    group: String,
}

#[test]
fn every_cell_of_the_matrix_holds_through_the_api_server() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let servers = Servers { cluster, group: cluster.new_group() };
    let kubectl = cluster.kubectl("matrix");
    let apply = |items: Vec<Value>| {
        kubectl.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).accepted();
    };
    let mut cells = Cell::all();
    cells.retain(|cell| (cell.change, cell.client) == (Change::None, Knows::All));

    // Objects are written while every server knows all, and nothing is declared.
    let mut newer: Vec<_> =
        cells.iter().map(|cell| servers.definition(*cell, Cell { server: Knows::All, ..*cell })).collect();
    newer.iter_mut().for_each(forget_unions);
    apply(newer);
    let listed =
        |cell: &Cell| cluster.client().get(&servers.api(*cell).path("")).is_ok_and(|answer| answer.is_success());
    assert!(eventually(SETTLED, || cells.iter().all(listed)), "a kind is not served");
    let mut number = 0;
    play(|row, cell, _| {
        number += 1;
        let api = servers.api(cell);
        let object = api.object(&format!("play-{number}"), &json!({"spec": row.stored}));
        let answer = cluster.client().post(&api.path(""), &object).unwrap();
        if answer.is_success() { Ok(()) } else { Err(format!("{answer:?}")) }
    });

    let declared = cells.iter().map(|cell| parse(&annotate(&servers.definition(*cell, *cell).to_string())));
    let registration = cluster.registration(&servers.group).into_iter();
    apply(declared.chain(registration.flat_map(|list| list["items"].as_array().unwrap().clone())).collect());
    // The second time, every union is in force.
    for _ in 0..2 {
        let mut number = 0;
        play(|row, cell, client| {
            number += 1;
            let mut held = Ok(());
            eventually(SETTLED, || {
                held = servers.hold(row, cell, client, &format!("play-{number}"));
                held.is_ok()
            });
            held
        });
    }
}

impl Servers {
    fn kind(cell: Cell) -> String {
        let form = if cell.discriminated { "Map" } else { "List" };
        format!("{form}{:?}{:?}", cell.union, cell.server)
    }

    /// Returns the CRD of a cell's kind, with the schema of another cell.
    fn definition(&self, cell: Cell, schema: Cell) -> Value {
        crd(&self.group, &Self::kind(cell), &[version("v1", &schema.schema())])
    }

    fn api(&self, cell: Cell) -> Resource {
        Resource::of_definition(&self.definition(cell, cell))
    }

    /// Makes the client's edit without storing it. An error describes an answer that is not the row's.
    fn hold(&self, row: &Row, cell: Cell, client: Client, name: &str) -> Result<(), String> {
        let path = self.api(cell).path(name);
        let mut object = self.cluster.client().get(&path)?.body;
        let old = object["spec"].clone();
        assert_eq!(old, row.old(cell.server), "the API server prunes what it does not know");
        let sent = row.sent(cell, client, &old);
        let (method, content_type, body) = if cell.client == Knows::Some && client == Client::Unstructured {
            ("PATCH", "application/merge-patch+json", json!({"spec": row.edit}))
        } else {
            object["spec"] = sent.clone();
            ("PUT", "application/json", object)
        };
        let path = format!("{path}?dryRun=All&fieldValidation=Ignore");
        let answer = self.cluster.client().send(method, &path, content_type, body.to_string().as_bytes())?;
        let message = answer.body["message"].as_str().unwrap_or_default();
        // The schema has an enum, too, and the API server lets an old fault of a schema through as we do.
        let told = |text: &str| message.contains(text) || message.contains("spec.type: Unsupported value");
        let unchanged = cell.server.sees(&sent) == old;
        let holds = match (&row.want, &row.want_causes) {
            (Some(want), _) => answer.body["spec"] == *want && answer.warnings == row.want_warnings,
            (None, Some(causes)) => {
                answer.status == 422 && causes.iter().all(|it| told(&format!("{}: {}", it.field, it.message)))
            }
            (None, None) if unchanged => answer.body["spec"] == old,
            (None, None) => answer.status == 422,
        };
        if holds { Ok(()) } else { Err(format!("{} {}, warned {:?}", answer.status, answer.body, answer.warnings)) }
    }
}
