//! The rights of an installation's accounts: the README's table and the API server's answer agree.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::lifecycle::{ACCOUNTS, Release};
use super::{CHART, RELEASE};
use crate::control_plane::ControlPlane;
use fixtures::wait::{SETTLED, eventually};

#[test]
fn no_account_may_do_more_than_the_table_in_the_readme() {
    let Some(release) = Release::new() else { return };
    release.install(&Value::Null);
    release.prepare_hook("pre-install,pre-upgrade");
    release.prepare_hook("test");
    release.prepare_hook("pre-delete");
    release.kubectl.run(&["-n", RELEASE, "create", "serviceaccount", "nobody"]).accepted();
    let table = rights_of_the_readme();
    for account in ACCOUNTS {
        for namespace in [RELEASE, "default", "kube-system"] {
            // The authoriser learns of a new binding within a moment.
            let wanted = rights(
                table
                    .iter()
                    .filter(|row| row.account == account && (row.namespace == "all" || row.namespace == namespace)),
            );
            let mut found = BTreeMap::new();
            let equal = eventually(SETTLED, || {
                found = rights_beyond_nobody(&release.control_plane, account, namespace);
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

/// Returns the rights of an account in a namespace, beyond those of every token.
fn rights_beyond_nobody(control_plane: &ControlPlane, account: &str, namespace: &str) -> Rights {
    let of = |account: &str| {
        let client = control_plane.account_client(RELEASE, account);
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
    };
    let nobody = of("nobody");
    of(account).into_iter().filter(|(what, verbs)| nobody.get(what) != Some(verbs)).collect()
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
