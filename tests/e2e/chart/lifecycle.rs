//! A release on a real API server: installed, tried, changed, rolled back, uninstalled.
//!
//! No node runs the pods. What each would run is run here, with its arguments and with the token of its ServiceAccount.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::helm::Helm;
use super::{CHART, RELEASE, arguments, id};
use crate::cluster::is_left_out;
use crate::control_plane::ControlPlane;
use crate::http::Client;
use crate::kind::documents;
use crate::kubectl::{Kubectl, Output};
use crate::wait::eventually;
use crate::webhook::{Webhook, kube_unions};

/// For what happens in the background; far more than it takes.
const SETTLED: Duration = Duration::from_secs(30);

/// The accounts of the chart: of the webhook, and of its two hooks.
const ACCOUNTS: [&str; 3] = ["kube-unions", "kube-unions-verify", "kube-unions-unregister"];

struct Release {
    control_plane: ControlPlane,
    kubectl: Kubectl,
    helm: Helm,
}

impl Release {
    /// Nothing is installed yet.
    fn new() -> Option<Self> {
        if is_left_out() {
            return None;
        }
        let control_plane = ControlPlane::start().unwrap_or_else(|message| panic!("{message}"));
        let kubectl = control_plane.kubectl("release");
        // What every other test needs, and this one installs.
        kubectl.run(&["delete", "clusterrolebinding", "webhook-under-test"]).accepted();
        kubectl.run(&["delete", "clusterrole", "kube-unions"]).accepted();
        let helm = Helm::of_cluster(control_plane.admin_kubeconfig());
        Some(Self { control_plane, kubectl, helm })
    }

    fn helm(&self, args: &[&str], values: &Value) -> Output {
        self.helm.run(&[args, &["--namespace", RELEASE]].concat(), values)
    }

    fn install(&self, values: &Value) -> Output {
        self.helm(&["install", RELEASE, CHART, "--create-namespace"], values).accepted()
    }

    /// What helm would install for a hook, in helm's own words, and then the arguments of what it would run.
    fn begin_hook(&self, event: &str) -> Vec<String> {
        let hooks = documents(&self.helm(&["get", "hooks", RELEASE], &Value::Null).accepted().stdout);
        let mut hooks: Vec<_> =
            hooks.into_iter().filter(|hook| hook["metadata"]["annotations"]["helm.sh/hook"] == event).collect();
        assert!(!hooks.is_empty(), "there is a hook for {event}");
        let run = hooks.iter().position(|hook| matches!(hook["kind"].as_str(), Some("Job" | "Pod"))).unwrap();
        let run = hooks.remove(run);
        self.kubectl.apply(&json!({"apiVersion": "v1", "kind": "List", "items": hooks}).to_string()).accepted();
        let account =
            run.pointer("/spec/template/spec").unwrap_or(&run["spec"])["serviceAccountName"].as_str().unwrap();
        let mut args = arguments(&run).remove(0);
        args.push(format!("--kubeconfig={}", self.control_plane.account_kubeconfig(RELEASE, account).display()));
        args
    }

    /// Removes what a hook needed, as helm does when it has succeeded.
    fn end_hook(&self, name: &str) {
        for kind in ["clusterrolebinding", "clusterrole"] {
            self.kubectl.run(&["delete", kind, name]).accepted();
        }
        self.kubectl.run(&["-n", RELEASE, "delete", "serviceaccount", name]).accepted();
    }

    /// The arguments of the webhook's pods as they are now.
    fn webhook_args(&self) -> Vec<String> {
        arguments(&self.kubectl.run(&["-n", RELEASE, "get", "deployment", RELEASE, "-o", "json"]).accepted().json())
            .remove(0)
    }

    fn is_there(&self, path: &str) -> bool {
        match self.control_plane.client().get(path).unwrap().status {
            200 => true,
            404 => false,
            status => panic!("{path}: {status}"),
        }
    }
}

#[test]
fn a_release_is_installed_tried_changed_rolled_back_and_uninstalled() {
    let Some(release) = Release::new() else { return };
    let installed = release.install(&json!({"presets": {"strategies": true}}));
    assert!(installed.stdout.contains("helm test kube-unions -n kube-unions --logs"), "{}", installed.stdout);
    let emergency = installed.stdout.find("kubectl delete clusterrolebinding kube-unions-registration").unwrap();
    let after = "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration kube-unions";
    assert!(emergency < installed.stdout.find(after).unwrap(), "the order matters:\n{}", installed.stdout);
    release.kubectl.run(&["get", "uniondeclaration", "deployment-strategy"]).accepted();
    for (_, path) in configurations() {
        assert!(!release.is_there(&path), "the chart itself registers nothing");
    }

    // The webhook, with the rights that it was given: it reads, says of the declaration what it makes of it, and serves.
    let kubeconfig = release.control_plane.account_kubeconfig(RELEASE, RELEASE);
    let mut webhook = Webhook::of_cluster(&kubeconfig, &[]).unwrap();
    let accepted = || {
        let args = ["get", "uniondeclaration", "deployment-strategy", "-o", "jsonpath={.status.conditions[0].status}"];
        release.kubectl.run(&args).accepted().stdout == "True"
    };
    assert!(eventually(SETTLED, accepted), "the declaration is in force:\n{}", webhook.log());

    // `helm test`.
    let verify = release.begin_hook("test");
    release.kubectl.apply(&webhook.registration("verify.kube-unions.dev").to_string()).accepted();
    let verified = run(&verify).accepted();
    assert_eq!(verified.stdout.lines().filter(|line| line.starts_with("ok ")).count(), 4, "{verified:#?}");
    release.end_hook("kube-unions-verify");
    release.kubectl.run(&[
        "delete",
        "mutatingwebhookconfiguration,validatingwebhookconfiguration",
        "verify.kube-unions.dev",
    ]);

    // Changes, and back.
    release
        .helm(&["upgrade", RELEASE, CHART, "--reset-then-reuse-values"], &json!({"enforcement": "off", "replicas": 3}))
        .accepted();
    assert!(release.webhook_args().contains(&"--enforcement=off".to_owned()));
    release.helm(&["rollback", RELEASE, "1"], &Value::Null).accepted();
    assert!(release.webhook_args().contains(&"--enforcement=on".to_owned()));
    let history = release.helm(&["history", RELEASE, "-o", "json"], &Value::Null).accepted().json();
    assert_eq!(history.as_array().unwrap().len(), 3);

    // Switched off in an emergency, and on again.
    let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kube-unions-registration";
    release.kubectl.run(&["delete", "clusterrolebinding", "kube-unions-registration"]).accepted();
    release.helm(&["upgrade", RELEASE, CHART, "--reuse-values"], &Value::Null).accepted();
    assert!(release.is_there(binding), "an upgrade puts the binding back");

    // Its own registration it may write, and nothing beside.
    let account = release.control_plane.account_client(RELEASE, RELEASE);
    for (kind, path) in configurations() {
        assert_eq!(apply(&account, kind, &path), 201, "{path}");
        assert_eq!(apply(&account, kind, &path), 200, "{path}");
        assert_eq!(apply(&account, kind, &path.replace("/kube-unions", "/other")), 403);
        assert_eq!(account.delete(&path).unwrap().status, 403, "{path}");
    }

    // `helm uninstall`.
    let unregister = release.begin_hook("pre-delete");
    run(&unregister).accepted();
    release.end_hook("kube-unions-unregister");
    for (kind, path) in configurations() {
        assert!(!release.is_there(&path), "nothing is registered any more");
        assert_eq!(apply(&account, kind, &path), 403, "and the webhook, which still runs, can't change that");
    }
    webhook.process().assert_running();
    let rendered = documents(&release.helm(&["get", "manifest", RELEASE], &Value::Null).accepted().stdout);
    release.helm(&["uninstall", RELEASE, "--no-hooks"], &Value::Null).accepted();
    for object in rendered {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        let left = release.kubectl.run(&["-n", &namespace, "get", kind, name, "--ignore-not-found"]).accepted();
        assert_eq!(left.stdout, "", "{} is left", id(&object));
    }
    release.kubectl.run(&["get", "crd", "uniondeclarations.kube-unions.dev"]).accepted();
}

#[test]
fn no_account_may_do_more_than_the_table_in_the_readme() {
    let Some(release) = Release::new() else { return };
    release.install(&Value::Null);
    release.begin_hook("test");
    release.begin_hook("pre-delete");
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

/// Runs the command of a pod by hand.
fn run(args: &[String]) -> Output {
    kube_unions(&args.iter().map(String::as_str).collect::<Vec<_>>(), "")
}

fn configurations() -> [(&'static str, String); 2] {
    let path = |plural| format!("/apis/admissionregistration.k8s.io/v1/{plural}/kube-unions");
    [
        ("MutatingWebhookConfiguration", path("mutatingwebhookconfigurations")),
        ("ValidatingWebhookConfiguration", path("validatingwebhookconfigurations")),
    ]
}

/// Server-side apply of an empty configuration; the HTTP status.
fn apply(client: &Client, kind: &str, path: &str) -> u16 {
    let name = path.rsplit('/').next().unwrap();
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
    let path = format!("{path}?fieldManager=kube-unions&force=true");
    client.send("PATCH", &path, "application/apply-patch+yaml", object.to_string().as_bytes()).unwrap().status
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

/// What an account may do in a namespace that not everybody may who has a token.
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
