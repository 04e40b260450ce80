//! Certificates: the replicas' agreement on a Secret, as service accounts with no more rights than it needs; and a folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use kube_unions::authority::{CertificateAuthority, Validity};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::kubectl::Kubectl;
use crate::process::Workspace;
use crate::registration::decoded;
use crate::tls;
use crate::webhook::{Webhook, base64};
use fixtures::wait::eventually;

/// A change of the Secret is seen by watching it.
const SEEN: Duration = Duration::from_secs(5);
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

    /// Returns the rights that the chart grants.
    fn with_rights(self) -> Self {
        self.grant(&["get", "list", "watch", "update"]);
        self
    }

    fn grant(&self, verbs: &[&str]) {
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

fn patch(values: &[(&str, &str)]) -> String {
    let data: serde_json::Map<_, _> =
        values.iter().map(|(key, text)| ((*key).to_owned(), json!(base64(text.as_bytes())))).collect();
    json!({"data": data}).to_string()
}

#[test]
fn replicas_that_start_at_once_with_no_secret_agree_on_one_ca() {
    let Some(cluster) = Cluster::shared() else { return };
    for (name, count) in [("certs-two", 2), ("certs-ten", 10)] {
        let namespace = Namespace::new(&cluster.control_plane, name).with_rights();
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
}

#[test]
fn a_certificate_is_renewed_when_two_thirds_of_its_time_are_over() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = Namespace::new(&cluster.control_plane, "certs-renewal").with_rights();
    let replicas = namespace.replicas(2);
    let secret = namespace.secret().unwrap();
    let authority = CertificateAuthority::from_pem(&secret.text("ca.crt"), &secret.text("ca.key")).unwrap();
    let now = SystemTime::now();
    let days = |number: u64| Duration::from_secs(number * DAY);
    let validity = Validity { not_before: now - days(61), not_after: now + days(29) };
    let names = [format!("kube-unions.{}.svc", namespace.name)];
    let old = authority.issue("old", &names, validity).unwrap();
    let change = patch(&[("tls.crt", &old.chain), ("tls.key", &old.key)]);
    namespace.kubectl.run(&["patch", "secret", SECRET, "-n", &namespace.name, "-p", &change]).accepted();

    let renewed =
        || namespace.secret().filter(|it| it.text("tls.crt") != old.chain).filter(|it| it.leaf() != secret.leaf());
    assert!(eventually(SEEN, || renewed().is_some()), "{}", replicas[0].log());
    let renewed = renewed().unwrap();
    assert_eq!(renewed.authorities(), secret.authorities(), "by the same CA");
    namespace.assert_all_serve(&replicas, &renewed);
    assert!(replicas.iter().any(|it| it.log().contains("two thirds of its lifetime have passed")));
}

#[test]
fn what_cannot_be_used_in_a_secret_is_mended_and_said() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = Namespace::new(&cluster.control_plane, "certs-mended").with_rights();
    let literals = ["tls.crt", "tls.key", "ca.crt", "ca.key"].map(|key| format!("--from-literal={key}=rubbish"));
    let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
    let create = ["create", "secret", "generic", SECRET, "-n", namespace.name.as_str()];
    for (round, literals) in [&literals[..], &[]].into_iter().enumerate() {
        namespace.kubectl.run(&["delete", "secret", SECRET, "-n", &namespace.name, "--ignore-not-found"]).accepted();
        namespace.kubectl.run(&[&create[..], literals].concat()).accepted();
        let replica = namespace.replica();
        let secret = namespace.secret().unwrap();
        assert_eq!(secret.authorities().len(), 1);
        assert_eq!(secret.0["type"], "Opaque");
        assert_eq!(
            replica.log().contains("unusable data in the certificate's Secret is ignored"),
            round == 0,
            "{}",
            replica.log()
        );
        namespace.assert_all_serve(&[replica], &secret);
    }
    // While it is served, too.
    let replica = namespace.replica();
    let before = namespace.secret().unwrap();
    let change = patch(&[("tls.key", "half"), ("ca.crt", "")]);
    namespace.kubectl.run(&["patch", "secret", SECRET, "-n", &namespace.name, "-p", &change]).accepted();
    assert!(eventually(SEEN, || namespace.secret().is_some_and(|it| it.text("tls.key").contains("PRIVATE"))));
    let after = namespace.secret().unwrap();
    assert!(after.authorities().contains(&before.authorities()[0]));
    assert_eq!(namespace.served(&replica, &before.text("ca.crt")), Ok(before.leaf()));
}

#[test]
fn a_secret_that_cannot_be_written_is_said_once_and_its_deletion_mends_it() {
    let Some(cluster) = Cluster::shared() else { return };
    let filled = base64(&vec![0; 1024 * 1024 - 100]);
    let rows = [
        ("certs-immutable", json!({"immutable": true}), "field is immutable when `immutable` is set"),
        ("certs-filled", json!({"data": {"foreign": filled}}), "may not be more than 1048576 bytes"),
    ];
    for (name, mut secret, says) in rows {
        let namespace = Namespace::new(&cluster.control_plane, name).with_rights();
        secret["apiVersion"] = json!("v1");
        secret["kind"] = json!("Secret");
        secret["metadata"] = json!({"name": SECRET, "namespace": name});
        namespace.kubectl.run_with(&["create", "-f", "-"], &secret.to_string()).accepted();
        let arguments = namespace.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let replica = Webhook::unready(&namespace.kubeconfig, &arguments).unwrap();
        let said = || replica.log().lines().filter(|it| it.contains(says)).count();
        assert!(eventually(SEEN, || said() > 0), "{}", replica.log());
        // A change is read, and the write is refused again.
        namespace.kubectl.run(&["label", "secret", SECRET, "-n", name, "team=x"]).accepted();
        let report = replica.ops().get("/readyz?verbose").unwrap().text().to_owned();
        assert!(report.contains(says) && report.contains("delete the Secret"), "{report}");
        namespace.kubectl.run(&["delete", "secret", SECRET, "-n", name]).accepted();
        let ready = || replica.ops().get("/readyz").unwrap().status == 200;
        assert!(eventually(Duration::from_secs(100), ready), "{}", replica.log());
        assert_eq!(said(), 1, "{}", replica.log());
        namespace.assert_all_serve(&[replica], &namespace.secret().unwrap());
    }
}

#[test]
fn without_rights_on_the_secret_it_waits_and_says_which_it_needs() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = Namespace::new(&cluster.control_plane, "certs-forbidden");
    let arguments = namespace.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut replica = Webhook::unready(&namespace.kubeconfig, &arguments).unwrap();
    let report = |replica: &Webhook| replica.ops().get("/readyz?verbose").unwrap().text().to_owned();
    let says = |replica: &Webhook, verb: &str| {
        let words = [
            "[-]certificate failed: none yet: cannot ".to_owned(),
            format!("cannot {verb} resource \"secrets\""),
            format!("in the namespace \"{}\"", namespace.name),
            "its Role must grant get, list, watch and update on this Secret, and create on secrets".to_owned(),
        ];
        eventually(Duration::from_secs(35), || words.iter().all(|it| report(replica).contains(it)))
    };
    assert!(says(&replica, "get"), "{}", report(&replica));
    namespace.kubectl.run(&["create", "secret", "generic", SECRET, "-n", &namespace.name]).accepted();
    namespace.grant(&["get", "list", "watch"]);
    assert!(says(&replica, "update"), "{}", report(&replica));
    assert!(replica.metric(EXPIRY) == 0);
    namespace.grant(&["get", "list", "watch", "update"]);
    assert!(eventually(Duration::from_secs(35), || replica.ops().get("/readyz").unwrap().status == 200));
    namespace.assert_all_serve(std::slice::from_ref(&replica), &namespace.secret().unwrap());
    let warnings = replica.log().lines().filter(|it| it.contains("no valid serving certificate yet")).count();
    assert!(warnings <= 3, "each reason is said once\n{}", replica.log());

    // Rights that are taken away later take nothing from what is served.
    namespace.kubectl.run(&["delete", "role", "kube-unions", "-n", &namespace.name]).accepted();
    let served = namespace.secret().unwrap();
    let out_of_reach = || {
        replica.log().contains("the certificate's Secret cannot be read or written; the certificate in force is served")
    };
    assert!(eventually(Duration::from_secs(45), out_of_reach), "{}", replica.log());
    assert_eq!(namespace.served(&replica, &served.text("ca.crt")), Ok(served.leaf()));
    assert_eq!(replica.ops().get("/readyz").unwrap().status, 200);
    replica.process().assert_running();
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
    let definitions = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/samples");
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
        ("half-written", &third.chain[..200], third.key.as_str(), "certificate"),
        ("the wrong key", &third.chain, &second.key, "cannot be used together"),
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

#[test]
fn a_deleted_secret_comes_back_and_the_rotation_that_it_is_is_carried_through() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = Namespace::new(&cluster.control_plane, "certs-rotation").with_rights();
    let replicas = namespace.replicas(2);
    let before = namespace.secret().unwrap();
    namespace.kubectl.run(&["delete", "secret", SECRET, "-n", &namespace.name]).accepted();
    assert!(eventually(SEEN, || namespace.secret().is_some()), "{}", replicas[0].log());
    let back = namespace.secret().unwrap();
    assert_eq!(back.authorities().len(), 2, "the old CA is kept");
    assert_eq!(back.authorities()[1], before.authorities()[0], "and the new one stands first");
    assert_ne!(back.text("ca.key"), before.text("ca.key"));
    assert_eq!(back.leaf(), before.leaf());
    for replica in &replicas {
        // By the old CA as well as by both.
        for secret in [&before, &back] {
            assert_eq!(namespace.served(replica, &secret.text("ca.crt")), Ok(before.leaf()));
        }
    }

    // No configuration holds any CA, so that all that is waited for is that no replica lags behind.
    let rotated = || namespace.secret().filter(|it| it.leaf() != before.leaf());
    assert!(eventually(Duration::from_secs(150), || rotated().is_some()), "{}", replicas[0].log());
    let after = rotated().unwrap();
    let (old, new) = (before.text("ca.crt"), after.text("ca.crt"));
    namespace.assert_all_serve(&replicas, &after);
    assert!(new.ends_with(&old), "the old CA stays, for whoever still serves what it has signed");
    for replica in &replicas {
        assert!(namespace.served(replica, &old).is_err(), "it is the new CA that has signed");
    }
}
