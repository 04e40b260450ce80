//! The rights of an installation's accounts: the README's table and the API server's answer agree.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::helm::Helm;
use super::release::ACCOUNTS;
use super::{CHART, RELEASE};
use crate::cluster::Cluster;
use crate::http::Client;
use fixtures::wait::{SETTLED, eventually};

#[test]
fn no_account_may_do_more_than_the_table_in_the_readme() {
    let (Some(cluster), Some(helm)) = (Cluster::shared(), Helm::offline()) else { return };
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": RELEASE}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RELEASE}});
    // Those of the hooks, too.
    let gives_rights = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        kind == "ServiceAccount" || kind.contains("Role")
    };
    let of_the_chart = helm.render(&Value::Null).into_iter().filter(gives_rights);
    let objects: Vec<Value> = [namespace, account("nobody")].into_iter().chain(of_the_chart).collect();
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    cluster.control_plane.kubectl("rights").run_with(&apply, &objects).accepted();

    let table = rights_of_the_readme();
    let nobody = cluster.control_plane.account_client(RELEASE, "nobody");
    for account in ACCOUNTS {
        let client = cluster.control_plane.account_client(RELEASE, account);
        for namespace in [RELEASE, "default", "kube-system"] {
            let is_of = |row: &&Right| row.account == account && ["all", namespace].contains(&row.namespace.as_str());
            let wanted = rights(table.iter().filter(is_of));
            let mut found = BTreeMap::new();
            // The authoriser learns of a new binding within a moment.
            let equal = eventually(SETTLED, || {
                let of_all = rights_of(&nobody, namespace);
                found = rights_of(&client, namespace);
                found.retain(|what, verbs| of_all.get(what) != Some(verbs));
                found == wanted
            });
            assert!(equal, "{account} in {namespace}\nhas {found:#?}\nREADME {wanted:#?}");
        }
    }
    assert!(table.iter().all(|row| ACCOUNTS.contains(&row.account.as_str())), "the table has other accounts");
}

/// A row of the README's table of rights.
struct Right {
    account: String,
    /// `all`, or one.
    namespace: String,
    group: String,
    resources: Vec<String>,
    /// Empty for all.
    names: Vec<String>,
    verbs: Vec<String>,
}

/// By group, resource and name: the verbs, sorted.
type Rights = BTreeMap<String, Vec<String>>;

fn rights<'a>(rows: impl Iterator<Item = &'a Right>) -> Rights {
    let mut rights = Rights::new();
    for row in rows {
        for resource in &row.resources {
            let all = [String::new()];
            for name in if row.names.is_empty() { &all[..] } else { &row.names } {
                let verbs = rights.entry(format!("{}/{resource}/{name}", row.group)).or_default();
                verbs.extend(row.verbs.iter().cloned());
                verbs.sort();
                verbs.dedup();
            }
        }
    }
    rights
}

/// Returns the rights of a client in a namespace.
fn rights_of(client: &Client, namespace: &str) -> Rights {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace},
    });
    let answer = client.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review).unwrap();
    let list = |rule: &Value, field: &str| -> Vec<String> {
        let items = rule[field].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let rules = answer.body["status"]["resourceRules"].as_array().unwrap().clone();
    let rows: Vec<Right> = rules
        .iter()
        .flat_map(|rule| list(rule, "apiGroups").into_iter().map(move |group| (rule, group)))
        .map(|(rule, group)| Right {
            account: String::new(),
            namespace: String::new(),
            group,
            resources: list(rule, "resources"),
            names: list(rule, "resourceNames"),
            verbs: list(rule, "verbs"),
        })
        .collect();
    rights(rows.iter())
}

fn rights_of_the_readme() -> Vec<Right> {
    let readme = fs::read_to_string(Path::new(CHART).join("README.md")).unwrap();
    let section = readme.split("\n## Rights\n").nth(1).expect("the README has a section `Rights`");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<Right> = rows
        .map(|row| {
            let cells: Vec<String> =
                row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
            let list = |cell: &str| cell.split(", ").filter(|item| !item.is_empty()).map(str::to_owned).collect();
            let [account, namespace, group, resources, names, verbs] = &cells[..] else { panic!("six cells: {row}") };
            Right {
                account: account.clone(),
                namespace: namespace.clone(),
                group: if group == "core" { String::new() } else { group.clone() },
                resources: list(resources),
                names: list(names),
                verbs: list(verbs),
            }
        })
        .collect();
    assert!(!rows.is_empty(), "the table of rights has rows");
    rows
}
