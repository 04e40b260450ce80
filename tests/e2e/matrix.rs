//! A sample of the matrix of the 2022 proposal's test plan, through the API server: which fields change × discriminated
//! or not × the client knows all members × the server knows all × the union is optional or required. The rows are data.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::AnyCluster;
use crate::kind::Kind;
use crate::skew::{rollout_without_blue_green, source_without_oci, spec};

/// The rows of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Matrix {
    sample: String,
    /// The member that an older client or server does not know.
    newest: String,
    rows: Vec<Row>,
}

/// One update of one object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    description: String,
    union: Union,
    server: Server,
    client: Client,
    /// The spec before.
    stored: Value,
    /// A JSON merge patch of the spec.
    change: Value,
    /// The spec after, unless it is rejected.
    want: Option<Value>,
    /// The message of the rejection.
    rejected: Option<String>,
}

/// The schema's rule about an absent union.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Union {
    Optional,
    Required,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Server {
    KnowsAll,
    IsOlder,
}

/// The way in which the client changes the object.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Client {
    /// Writes the whole object back, and knows every member.
    Struct,
    /// Writes the whole object back without the newest member, which it does not know.
    OlderStruct,
    /// Sends only the change.
    Map,
}

#[test]
fn the_matrix_of_a_discriminated_union_holds() {
    let Some(cluster) = AnyCluster::shared() else { return };
    run(cluster, include_str!("matrix/discriminated.yaml"), |crd, union, server| {
        if server == Server::IsOlder {
            rollout_without_blue_green(crd);
        }
        let spec = spec(crd);
        // Its default would be stored beside the union.
        spec["properties"].as_object_mut().unwrap().remove("replicas");
        if union == Union::Required {
            spec["required"] = json!(["strategy"]);
            spec["properties"]["strategy"]["required"] = json!(["type"]);
        }
    });
}

#[test]
fn the_matrix_of_a_union_without_discriminator_holds() {
    let Some(cluster) = AnyCluster::shared() else { return };
    run(cluster, include_str!("matrix/undiscriminated.yaml"), |crd, union, server| {
        if server == Server::IsOlder {
            source_without_oci(crd);
        }
        if union == Union::Required {
            let members: &[&str] =
                if server == Server::IsOlder { &["bucket", "git"] } else { &["bucket", "git", "oci"] };
            spec(crd)["oneOf"] = members.iter().map(|member| json!({"required": [member]})).collect();
        }
    });
}

/// Installs what the rows need and runs them; every row that fails is reported.
fn run(cluster: &AnyCluster, matrix: &str, shape: impl Fn(&mut Value, Union, Server)) {
    let matrix: Matrix = serde_saphyr::from_str(matrix).expect("the rows are well formed");
    let mut failures = Vec::new();
    let mut seen = 0;
    for server in [Server::KnowsAll, Server::IsOlder] {
        for union in [Union::Optional, Union::Required] {
            let kind = Kind::new(cluster, &matrix.sample);
            kind.apply_definition_with(|crd| shape(crd, union, server));
            kind.enforce();
            for row in matrix.rows.iter().filter(|row| row.server == server && row.union == union) {
                failures.extend(row.run(&kind, &matrix.newest, &format!("row-{seen}")).err());
                seen += 1;
            }
        }
    }
    assert_eq!(seen, matrix.rows.len(), "every row is run once");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

impl Row {
    fn run(&self, kind: &Kind, newest: &str, name: &str) -> Result<(), String> {
        kind.apply(name, &self.stored).accepted();
        let before = kind.spec(name);
        let output = match self.client {
            Client::Map => kind.merge(name, &json!({"metadata": {"labels": {"touched": "yes"}}, "spec": self.change})),
            Client::Struct | Client::OlderStruct => kind.read_modify_write(name, |object| {
                if self.client == Client::OlderStruct {
                    forget(&mut object["spec"], newest);
                }
                object["metadata"]["labels"] = json!({"touched": "yes"});
                json_patch::merge(&mut object["spec"], &self.change);
            }),
        };
        let after = kind.spec(name);
        let fault = match (&self.want, &self.rejected) {
            (Some(want), None) if !output.succeeded() => format!("was to be stored as {want}, and was rejected"),
            (Some(want), None) if after != *want => format!("was to be stored as {want}"),
            (None, Some(_)) if output.succeeded() => "was to be rejected".to_owned(),
            (None, Some(words)) if !output.stderr.contains(words.as_str()) => {
                format!("was to be rejected with `{words}`")
            }
            (None, Some(_)) if after != before => "was rejected, and yet changed".to_owned(),
            (Some(_), None) | (None, Some(_)) => return Ok(()),
            (Some(_), Some(_)) | (None, None) => "wants one of `want` and `rejected`".to_owned(),
        };
        Err(format!("{}: {fault}\nstored {after}\nsaid {}{}", self.description, output.stdout, output.stderr))
    }
}

/// Removes a member at any depth, as a client does that does not know it.
fn forget(value: &mut Value, member: &str) {
    if let Some(object) = value.as_object_mut() {
        object.remove(member);
        object.values_mut().for_each(|value| forget(value, member));
    }
}
