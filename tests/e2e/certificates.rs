//! Certificates: the replicas' agreement on a Secret, as service accounts with no more rights than it needs; and a folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use kube_unions_webhook::authority::{CertificateAuthority, Validity};
use rcgen::DnType;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::registration::{self, KINDS, certificates, decoded, with_rights};
use crate::support::cluster::{Cluster, some_or_all};
use crate::support::control_plane::ControlPlane;
use crate::support::http::Answer;
use crate::support::kind::Kind;
use crate::support::kubectl::Kubectl;
use crate::support::process::Workspace;
use crate::support::tls;
use crate::support::webhook::Webhook;
use fixtures::certificates::TestAuthority;
use fixtures::wait::{SETTLED, eventually};

/// A change of the Secret is seen by watching it.
const SEEN: Duration = Duration::from_secs(5);
/// After a failure, the longest wait is half a minute.
const RETRIED: Duration = Duration::from_secs(35);
const SECRET: &str = "kube-unions-tls";
const EXPIRY: &str = "kube_unions_certificate_expiry_timestamp_seconds";
const AUTHORITY_EXPIRY: &str = "kube_unions_certificate_authority_expiry_timestamp_seconds";
const FAILURES: &str = "kube_unions_certificate_reload_failures_total";
const DAY: u64 = 24 * 3600;

/// A namespace with a service account that may do what the webhook has to, and with its kubeconfig.
struct Namespace<'a> {
    name: String,
    kubectl: Kubectl,
    kubeconfig: PathBuf,
    control_plane: &'a ControlPlane,
    _workspace: Workspace,
}

impl<'a> Namespace<'a> {
    fn new(control_plane: &'a ControlPlane, name: &str) -> Self {
        let kubectl = control_plane.kubectl(name);
        let reader = format!("kube-unions-{name}");
        let metadata = |named: &str| json!({"name": named, "namespace": name});
        let account = [json!({"kind": "ServiceAccount", "name": "kube-unions", "namespace": name})];
        let group = "rbac.authorization.k8s.io";
        let cluster_binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": reader},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": reader}, "subjects": account,
        });
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": reader},
            "rules": [
                {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list", "watch"]},
                {"apiGroups": ["kube-unions.dev"], "resources": ["uniondeclarations"], "verbs": ["list", "watch"]},
                {
                    "apiGroups": ["admissionregistration.k8s.io"],
                    "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
                    "resourceNames": ["kube-unions"], "verbs": ["get", "list", "watch", "patch"],
                },
            ],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata("kube-unions"),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "kube-unions"}, "subjects": account,
        });
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("kube-unions")}),
            role,
            cluster_binding,
            binding,
        ];
        kubectl.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).accepted();
        let token = kubectl.run(&["create", "token", "kube-unions", "-n", name]).accepted().stdout;
        let mut kubeconfig: Value =
            serde_json::from_str(&fs::read_to_string(control_plane.webhook_kubeconfig()).unwrap()).unwrap();
        kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
        let workspace = Workspace::new("account");
        let kubeconfig = workspace.write("kubeconfig", &kubeconfig.to_string());
        Self { name: name.to_owned(), kubectl, kubeconfig, control_plane, _workspace: workspace }
    }

    fn with_rights(self) -> Self {
        self.grant();
        self
    }

    /// Grants the rights that the chart grants.
    fn grant(&self) {
        let verbs = ["get", "list", "watch", "update"];
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "kube-unions", "namespace": self.name},
            "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": verbs},
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            ],
        });
        self.kubectl.apply(&role.to_string()).accepted();
    }

    fn arguments(&self) -> [String; 3] {
        [
            format!("--tls-secret={SECRET}"),
            format!("--service={}/kube-unions", self.name),
            // The configurations belong to the whole cluster, which this test shares.
            "--register=false".to_owned(),
        ]
    }

    fn replica(&self) -> Webhook {
        let arguments = self.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Webhook::of_cluster(&self.kubeconfig, &arguments).unwrap_or_else(|message| panic!("{message}"))
    }

    fn replicas(&self, count: usize) -> Vec<Webhook> {
        thread::scope(|scope| {
            let starting: Vec<_> = (0..count).map(|_| scope.spawn(|| self.replica())).collect();
            starting.into_iter().map(|it| it.join().unwrap()).collect()
        })
    }

    fn secret(&self) -> Option<Secret> {
        let path = format!("/api/v1/namespaces/{}/secrets/{SECRET}", self.name);
        let answer = self.control_plane.client().get(&path).unwrap();
        (answer.status == 200).then_some(Secret(answer.body))
    }

    /// Returns the view of a client that calls the Service and trusts the Secret's CAs.
    fn served(&self, replica: &Webhook, bundle: &str) -> Result<CertificateDer<'static>, String> {
        tls::served(replica.port(), &format!("kube-unions.{}.svc", self.name), bundle)
    }

    #[track_caller]
    fn assert_all_serve(&self, replicas: &[Webhook], secret: &Secret) {
        for replica in replicas {
            let mut last = None;
            let same = eventually(SEEN, || {
                let served = self.served(replica, &secret.text("ca.crt"));
                let same = served.as_ref() == Ok(&secret.leaf());
                last = Some(served);
                same
            });
            assert!(same, "{last:?}\n{}", replica.log());
        }
    }
}

struct Secret(Value);

impl Secret {
    fn text(&self, key: &str) -> String {
        assert!(self.0["data"][key].is_string(), "no `{key}`");
        decoded(&self.0["data"][key])
    }

    fn leaf(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.text("tls.crt").as_bytes()).unwrap()
    }

    fn authorities(&self) -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(self.text("ca.crt").as_bytes()).map(Result::unwrap).collect()
    }

    fn version(&self) -> String {
        self.0["metadata"]["resourceVersion"].to_string()
    }
}

#[test]
fn replicas_that_start_at_once_with_no_secret_agree_on_one_ca() {
    let Some(cluster) = Cluster::shared() else { return };
    let count = some_or_all(4, 10);
    let namespace = Namespace::new(&cluster.control_plane, "certs-at-once").with_rights();
    let replicas = namespace.replicas(count);
    let secret = namespace.secret().unwrap();
    assert_eq!(secret.authorities().len(), 1);
    namespace.assert_all_serve(&replicas, &secret);
    assert_eq!(secret.0["type"], "kubernetes.io/tls");
    assert_eq!(secret.0["metadata"]["labels"]["app.kubernetes.io/name"], "kube-unions");
    let keys: BTreeSet<&String> = secret.0["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["ca.crt", "ca.key", "tls.crt", "tls.key"]);
    let made = replicas.iter().filter(|it| it.log().contains("made a new CA")).count();
    assert_eq!(made, 1, "of {count} one was first");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    for replica in &replicas {
        for (metric, days) in [(EXPIRY, 90), (AUTHORITY_EXPIRY, 3650)] {
            let left = u64::try_from(replica.metric(metric)).unwrap() - now;
            assert!((days * DAY - 300..=days * DAY).contains(&left), "{metric}: {left}");
        }
    }
    // One more finds what there is.
    let another = namespace.replica();
    assert_eq!(namespace.secret().unwrap().version(), secret.version());
    namespace.assert_all_serve(&[another], &secret);
}

/// A folder as a kubelet lays it out.
fn project(folder: &Path, version: &str, files: &[(&str, &str)]) {
    fs::create_dir(folder.join(version)).unwrap();
    for (name, text) in files {
        fs::write(folder.join(version).join(name), text).unwrap();
        let link = folder.join(name);
        if !link.is_symlink() {
            std::os::unix::fs::symlink(format!("..data/{name}"), link).unwrap();
        }
    }
    std::os::unix::fs::symlink(version, folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
}

#[test]
fn a_folder_is_followed_and_what_is_worse_than_what_is_served_is_not() {
    let workspace = Workspace::new("mounted");
    let definitions = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/samples");
    let now = SystemTime::now();
    let day = Duration::from_secs(DAY);
    let authority = CertificateAuthority::new("mounted", Validity::new(now, 30 * day)).unwrap();
    let issue = |from: SystemTime, to: SystemTime| {
        let validity = Validity { not_before: from, not_after: to };
        authority.issue("mounted", &["localhost".to_owned()], validity).unwrap()
    };
    let (first, second, third) =
        (issue(now - day, now + day), issue(now - day, now + 2 * day), issue(now - day, now + 3 * day));
    let (ended, later) = (issue(now - 2 * day, now - day), issue(now + day, now + 2 * day));
    let folder = workspace.path().join("tls");
    fs::create_dir(&folder).unwrap();
    project(&folder, "0", &[("tls.crt", &first.chain), ("tls.key", &first.key)]);
    let argument = format!("--tls-cert-dir={}", folder.display());
    let webhook = Webhook::of_files(Path::new(definitions), &[&argument]).unwrap();
    let served = || tls::served(webhook.port(), "localhost", authority.certificate()).unwrap();
    let leaf = |chain: &str| CertificateDer::from_pem_slice(chain.as_bytes()).unwrap();
    assert_eq!(served(), leaf(&first.chain));

    // Sooner than it looks by itself.
    project(&folder, "1", &[("tls.crt", &second.chain), ("tls.key", &second.key)]);
    assert!(eventually(SEEN, || served() == leaf(&second.chain)));
    let expiry = webhook.metric(EXPIRY);
    let rows = [
        ("expired", &ended.chain, &ended.key, "the new certificate is expired"),
        ("not valid yet", &later.chain, &later.key, "the new certificate is not valid yet"),
    ];
    for (round, (what, chain, key, says)) in rows.into_iter().enumerate() {
        let failures = webhook.metric(FAILURES);
        project(&folder, &format!("bad-{round}"), &[("tls.crt", chain), ("tls.key", key)]);
        // There may be more than one look at what was there before, but each says something of its own.
        let said = |line: &str| line.contains("certificate not reloaded") && line.contains(says);
        assert!(eventually(SEEN, || webhook.log().lines().any(said)), "{what}\n{}", webhook.log());
        assert!(webhook.metric(FAILURES) > failures, "{what}");
        assert_eq!(served(), leaf(&second.chain), "{what}");
        assert_eq!(webhook.metric(EXPIRY), expiry, "{what}");
        assert_eq!(webhook.ops().get("/readyz").unwrap().status, 200, "{what}");
    }
    // A watch on the link's first target would report nothing now.
    fs::remove_dir_all(folder.join("0")).unwrap();
    project(&folder, "2", &[("tls.crt", &third.chain), ("tls.key", &third.key)]);
    assert!(eventually(SEEN, || served() == leaf(&third.chain)));
}

/// `tests/it/webhook/certificate/names.rs` has more names. Here the API server judges them.
#[test]
fn writes_go_on_whatever_name_the_next_certificate_has() {
    let workspace = Workspace::new("named");
    let folder = workspace.path().join("tls");
    fs::create_dir(&folder).unwrap();
    let authority = TestAuthority::new("named");
    let common_name = "kube-unions.kube-unions.svc";
    // The API server connects anew for each bundle, so each round has one more CA.
    let give = |version: &str, names: &[&str]| {
        let (chain, key) =
            authority.sign(names, |params| params.distinguished_name.push(DnType::CommonName, common_name));
        let one_more = TestAuthority::new(version).pem().to_owned();
        let trusted = format!("{}{one_more}", authority.pem());
        project(&folder, version, &[("tls.crt", &chain), ("tls.key", &key), ("ca.crt", &trusted)]);
        (CertificateDer::from_pem_slice(chain.as_bytes()).unwrap(), one_more)
    };
    let (mut last, _) = give("first", &[common_name]);
    let argument = format!("--tls-cert-dir={}", folder.display());
    let Some(cluster) = Cluster::registering(&with_rights(), &[&argument, "--registration-delay=0s"]) else { return };
    let (client, webhook) = (cluster.control_plane.client(), &cluster.webhook);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let is_judged = || {
        let invalid = rollouts.object("x", &json!({"strategy": {"type": "Canary"}}));
        rollouts.post_dry(&invalid).is_ok_and(|answer| answer.status == 422)
    };
    let trusts = |pem: &str| {
        KINDS.iter().all(|plural| {
            let webhooks = client.get(&registration::path(plural)).unwrap().body["webhooks"].take();
            let holds = |it: &Value| decoded(&it["clientConfig"]["caBundle"]).contains(pem.trim());
            webhooks.as_array().is_some_and(|webhooks| !webhooks.is_empty() && webhooks.iter().all(holds))
        })
    };
    assert!(eventually(SETTLED, is_judged), "{}", webhook.log());
    let rows: [(&str, &[&str], bool); 6] = [
        ("another-name", &["other.example"], false),
        ("upper-case", &["KUBE-unions.Kube-Unions.SVC"], true),
        ("common-name-only", &[], false),
        ("wildcard", &["*.kube-unions.svc"], true),
        ("trailing-dot", &["kube-unions.kube-unions.svc."], false),
        ("beside-others", &["other.example", "10.0.0.1", common_name], true),
    ];
    for (what, names, fits) in rows {
        let failures = webhook.metric(FAILURES);
        let (given, one_more) = give(what, names);
        let served = || tls::served(webhook.port(), common_name, authority.pem());
        if fits {
            assert!(eventually(SETTLED, || trusts(&one_more)), "{what}\n{}", webhook.log());
            assert!(eventually(SETTLED, || served().as_ref() == Ok(&given)), "{what}\n{}", webhook.log());
            last = given;
        } else {
            assert!(eventually(SEEN, || webhook.metric(FAILURES) > failures + 1), "{what}\n{}", webhook.log());
            assert!(!trusts(&one_more), "what comes with a certificate that is not served is not trusted");
        }
        assert_eq!(served(), Ok(last.clone()), "{what}");
        assert_eq!(webhook.ops().get("/readyz").unwrap().status, 200, "{what}");
        assert!(is_judged(), "{what}\n{}", webhook.log());
    }
}

/// `tests/it/certificates` has every fault of the Secret.
#[test]
fn without_rights_on_the_secret_it_waits_and_says_which_it_needs() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = Namespace::new(&cluster.control_plane, "certs-forbidden");
    let arguments = namespace.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let replica = Webhook::unready(&namespace.kubeconfig, &arguments).unwrap();
    let report = || replica.ops().get("/readyz?verbose").unwrap().text().to_owned();
    let words = [
        "[-]certificate failed: none yet: cannot ".to_owned(),
        "cannot get resource \"secrets\"".to_owned(),
        format!("in the namespace \"{}\"", namespace.name),
        "its Role must grant get, list, watch and update on this Secret, and create on secrets".to_owned(),
    ];
    assert!(eventually(RETRIED, || words.iter().all(|it| report().contains(it))), "{}", report());
    assert_eq!(replica.metric(EXPIRY), 0);
    namespace.grant();
    assert!(eventually(RETRIED, || replica.ops().get("/readyz").unwrap().status == 200), "{}", report());
    namespace.assert_all_serve(std::slice::from_ref(&replica), &namespace.secret().unwrap());
    let warnings = replica.log().lines().filter(|it| it.contains("no valid serving certificate yet")).count();
    assert_eq!(warnings, 1, "it is said once\n{}", replica.log());
}

/// The whole way of a rotation: the Secret, both configurations, and the certificate that is served.
#[test]
fn a_deleted_secret_comes_back_and_the_configurations_hold_its_new_ca_before_that_signs() {
    let arguments = [&*format!("--tls-secret={SECRET}"), "--registration-delay=0s"];
    let Some(cluster) = Cluster::registering(&with_rights(), &arguments) else { return };
    let (client, webhook) = (cluster.control_plane.client(), &cluster.webhook);
    let path = format!("/api/v1/namespaces/kube-unions/secrets/{SECRET}");
    let secret = || Some(Secret(client.get(&path).ok().filter(Answer::is_success)?.body));
    let served = |bundle: &str| tls::served(webhook.port(), "kube-unions.kube-unions.svc", bundle);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let is_refused = || {
        let invalid = rollouts.object("x", &json!({"strategy": {"type": "Canary"}}));
        rollouts.post_dry(&invalid).is_ok_and(|answer| answer.status == 422)
    };
    // The bundle of every entry of both configurations.
    let hold = |pem: &str| {
        KINDS.iter().all(|plural| {
            let webhooks = client.get(&registration::path(plural)).unwrap().body["webhooks"].take();
            let webhooks = webhooks.as_array().cloned().unwrap_or_default();
            let holds = |it: &Value| certificates(&decoded(&it["clientConfig"]["caBundle"])) == certificates(pem);
            !webhooks.is_empty() && webhooks.iter().all(holds)
        })
    };
    assert!(eventually(SETTLED, is_refused), "{}", webhook.log());
    let before = secret().unwrap();
    let old = before.text("ca.crt");
    assert!(hold(&old));

    assert!(client.delete(&path).unwrap().is_success());
    assert!(eventually(SEEN, || secret().is_some()), "{}", webhook.log());
    let back = secret().unwrap();
    assert_eq!(back.authorities().len(), 2, "the old CA is kept");
    assert_eq!(back.authorities()[1], before.authorities()[0], "and the new one stands first");
    assert_ne!(back.text("ca.key"), before.text("ca.key"));
    assert_eq!(back.leaf(), before.leaf());
    assert!(eventually(SETTLED, || hold(&back.text("ca.crt"))), "{}", webhook.log());
    assert_eq!(served(&old), Ok(before.leaf()), "the old CA has signed as long as the new one settles");

    let rotated = || secret().filter(|it| it.leaf() != before.leaf());
    assert!(eventually(Duration::from_secs(150), || rotated().is_some()), "{}", webhook.log());
    let after = rotated().unwrap();
    assert!(eventually(SEEN, || served(&after.text("ca.crt")) == Ok(after.leaf())), "{}", webhook.log());
    assert!(after.text("ca.crt").ends_with(&old), "the old CA stays, for whoever still serves what it has signed");
    assert!(served(&old).is_err(), "it is the new CA that has signed");
    assert!(is_refused(), "the API server trusts it");
}
