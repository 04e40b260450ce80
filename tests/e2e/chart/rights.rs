//! The rights of an installation's accounts: the README's table and the API server's answer agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::helm::Helm;
use super::{CHART, RELEASE};
use crate::support::cluster::Cluster;
use crate::support::http::Client;
use fixtures::wait::{SETTLED, eventually};

/// The accounts of the chart: of the webhook, of its three hooks, and of the audit.
const ACCOUNTS: [&str; 5] =
    ["kube-unions", "kube-unions-crds", "kube-unions-verify", "kube-unions-unregister", "kube-unions-audit"];

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
    let rules = json!([{"apiGroups": ["example.com"], "resources": ["caches"]}]);
    let values = json!({"audit": {"enabled": true, "rules": rules}, "presets": {"strategies": "warn"}});
    let of_the_chart = helm.render(&values).into_iter().filter(gives_rights);
    let objects: Vec<Value> = [namespace, account("nobody")].into_iter().chain(of_the_chart).collect();
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    cluster.control_plane.kubectl("rights").run_with(&apply, &objects).accepted();

    let rows = rows_of_the_readme();
    let nobody = cluster.control_plane.account_client(RELEASE, "nobody");
    for account in ACCOUNTS {
        let client = cluster.control_plane.account_client(RELEASE, account);
        for namespace in [RELEASE, "default", "kube-system"] {
            let mut wanted = Rights::new();
            let is_of = |[of, place, ..]: &&[String; 6]| of == account && ["all", namespace].contains(&place.as_str());
            for [_, _, group, lists @ ..] in rows.iter().filter(is_of) {
                let lists = lists.each_ref().map(|cell| cell.split(", ").filter(|item| !item.is_empty()).collect());
                add(&mut wanted, if group == "core" { "" } else { group }, lists);
            }
            let mut found = Rights::new();
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
    assert!(rows.iter().all(|[of, ..]| ACCOUNTS.contains(&of.as_str())), "the table has other accounts");
}

/// By group, resource and name: the verbs.
type Rights = BTreeMap<String, BTreeSet<String>>;

/// Adds verbs on each resource, or on its objects with these names.
fn add(rights: &mut Rights, group: &str, [resources, names, verbs]: [Vec<&str>; 3]) {
    let names = if names.is_empty() { vec![""] } else { names };
    for (resource, name) in resources.iter().flat_map(|resource| names.iter().map(move |name| (resource, name))) {
        let known = rights.entry(format!("{group}/{resource}/{name}")).or_default();
        known.extend(verbs.iter().map(|&verb| verb.to_owned()));
    }
}

/// Returns the rights of a client in a namespace.
fn rights_of(client: &Client, namespace: &str) -> Rights {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace},
    });
    let answer = client.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review).unwrap();
    let mut rights = Rights::new();
    for rule in answer.body["status"]["resourceRules"].as_array().unwrap() {
        let list = |field: &str| rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let groups: Vec<&str> = list("apiGroups");
        for group in groups {
            add(&mut rights, group, ["resources", "resourceNames", "verbs"].map(list));
        }
    }
    rights
}

/// Returns the README's table of rights: account, namespace or `all`, group, resources, names or none for all, and verbs.
fn rows_of_the_readme() -> Vec<[String; 6]> {
    let readme = fs::read_to_string(Path::new(CHART).join("README.md")).unwrap();
    let section = readme.split("\n## Rights\n").nth(1).expect("the README has a section `Rights`");
    let section = section.split("\n## ").next().unwrap();
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
    let rows = section.lines().filter(|line| line.starts_with("| `")).map(cells);
    let rows: Vec<_> = rows.map(|cells: Vec<_>| cells.try_into().expect("a row has six cells")).collect();
    assert!(!rows.is_empty(), "the table of rights has rows");
    rows
}
