//! A real kube-apiserver on a real etcd, on loopback, with ports and data of its own.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::observability::AuditLog;
use crate::support::access::Access;
use crate::support::assets;
use crate::support::http::Client;
use crate::support::kind::documents;
use crate::support::lending::Lent;
use crate::support::pki::ServingCertificate;
use crate::support::process::{self, Process, Workspace};
use fixtures::certificates::{TestAuthority, signing_key_pair};

/// With the default, Go's garbage collector takes much of the API server's time, most of all while CRDs change. The heap stays
/// bounded.
const LAZY_COLLECTOR: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "1GiB")];
/// The deadline of a start on a loaded machine. A control plane is usually ready after about five seconds.
const STARTUP: Duration = Duration::from_secs(90);
const SHUTDOWN: Duration = Duration::from_secs(90);

/// The version of the older API server.
const OLDER: &str = "1.33";

/// Logs the metadata of writes, as most clusters do.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: None, verbs: [get, list, watch]}, {level: Metadata}]
";

const ADMIN_TOKEN: &str = "admin-token";
const WEBHOOK_TOKEN: &str = "webhook-token";

/// A running control plane. Dropping it stops it and removes its data.
pub(crate) struct ControlPlane {
    // Fields are dropped in this order: the server before its storage, and both before their data.
    api_server: Process,
    etcd: Process,
    layout: Layout,
    access: Access,
}

/// Settings that survive a restart of the API server.
struct Layout {
    assets: PathBuf,
    workspace: Workspace,
    authority: TestAuthority,
    serving: ServingCertificate,
    etcd_port: u16,
    api_port: u16,
    /// Additional flags of the API server.
    flags: Vec<String>,
}

/// All rights on its API server.
impl Deref for ControlPlane {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

impl ControlPlane {
    /// Returns a control plane on which the webhook has its rights.
    pub(crate) fn with_rights() -> Result<Lent, String> {
        let control_plane = Self::start_bare(&[])?;
        control_plane.kubectl("setup").apply(&rights_of_the_webhook().to_string()).accepted();
        Ok(control_plane)
    }

    /// Starts etcd and an API server with additional flags, and waits until they answer. Without flags, the API server may have been one
    /// of another test.
    pub(crate) fn start_bare(flags: &[String]) -> Result<Lent, String> {
        if flags.is_empty() { Lent::again(|| Self::start(flags)) } else { Self::start(flags).map(Lent::once) }
    }

    fn start(flags: &[String]) -> Result<Self, String> {
        let assets = assets::control_plane()?;
        // Another process may take a free port before the server binds it: then try again.
        let mut last = String::new();
        for _ in 0..3 {
            match Self::try_start(assets, flags) {
                Ok(control_plane) => return Ok(control_plane),
                Err(message) if message.contains("address already in use") => last = message,
                Err(message) => return Err(message),
            }
        }
        Err(last)
    }

    /// Starts a control plane whose API server is an older one, which has validating but no mutating policies. `None`: that API
    /// server has not been built.
    pub(crate) fn start_older() -> Option<Lent> {
        let assets = match assets::script(&["find"], &[("K8S_VERSION", OLDER)]) {
            Ok(assets) => assets,
            Err(message) => {
                assert!(env::var("KUBE_UNIONS_E2E_OLDER").is_err(), "no kube-apiserver {OLDER}: {message}");
                crate::support::cluster::say(&format!("left out, since there is no kube-apiserver {OLDER}: {message}"));
                return None;
            }
        };
        Some(Lent::once(Self::try_start(&assets, &[]).unwrap_or_else(|message| panic!("{message}"))))
    }

    fn try_start(assets: &Path, flags: &[String]) -> Result<Self, String> {
        let workspace = Workspace::new("control-plane");
        let authority = TestAuthority::new("kube-unions tests");
        let serving = ServingCertificate::issue(&authority, &workspace.path().join("serving"));
        let [etcd_port, api_port] = free_ports();
        let (assets, flags) = (assets.to_owned(), flags.to_vec());
        let layout = Layout { assets, workspace, authority, serving, etcd_port, api_port, flags };
        layout.write_files();

        let mut etcd = layout.start_etcd()?;
        let mut api_server = layout.start_api_server();
        let client = layout.client();
        wait_until_ready(&client, &mut [&mut api_server, &mut etcd])?;
        let access =
            Access::new(client, layout.assets.join("kubectl"), layout.file("admin.kubeconfig"), layout.file("kubectl"));
        Ok(Self { api_server, etcd, layout, access })
    }

    /// Ends the API server; its data stay.
    pub(crate) fn stop_api_server(&mut self) {
        self.api_server.terminate();
        self.api_server.wait_for_exit(SHUTDOWN);
    }

    /// Starts the API server again, on the same port and the same data, and waits until it answers.
    pub(crate) fn start_api_server(&mut self) {
        self.api_server = self.layout.start_api_server();
        if let Err(message) = wait_until_ready(self.access.client(), &mut [&mut self.api_server, &mut self.etcd]) {
            panic!("{message}");
        }
    }

    /// Copies the data of etcd, which is stopped for it, and the API server as well. Calls `meanwhile` while both are away.
    pub(crate) fn save(&mut self, meanwhile: impl FnOnce()) {
        self.with_etcd_stopped(|data, saved| {
            meanwhile();
            let copied = Command::new("cp").arg("-r").args([data, saved]).status().expect("`cp` can be run");
            assert!(copied.success(), "the data of etcd can be copied");
        });
    }

    /// Replaces the data of etcd by those of [`save`](Self::save), as a restore from a snapshot does.
    pub(crate) fn restore(&mut self) {
        self.with_etcd_stopped(|data, saved| {
            fs::remove_dir_all(data).expect("the data of etcd can be removed");
            fs::rename(saved, data).expect("the data of etcd can be replaced");
        });
    }

    /// Calls `work` with the paths of the data of etcd and of its copy.
    fn with_etcd_stopped(&mut self, work: impl FnOnce(&Path, &Path)) {
        self.stop_api_server();
        self.etcd.terminate();
        self.etcd.wait_for_exit(SHUTDOWN);
        work(&self.layout.file("etcd"), &self.layout.file("etcd.saved"));
        self.etcd = self.layout.start_etcd().unwrap_or_else(|message| panic!("{message}"));
        self.start_api_server();
    }

    /// Writes to etcd so often that its revision, the `resourceVersion` of the cluster, grows by `count`.
    pub(crate) fn raise_revision(&self, count: u32) {
        let etcd = Client::plain(self.layout.etcd_url());
        let put = json!({"key": BASE64_STANDARD.encode("elsewhere"), "value": ""});
        for _ in 0..count {
            let answer = etcd.post("/v3/kv/put", &put).expect("etcd answers");
            assert!(answer.is_success(), "{answer:?}");
        }
    }

    /// Starts these controllers of kube-controller-manager. `None`: there is no kube-controller-manager beside the other binaries.
    pub(crate) fn start_controllers(&self, names: &str) -> Option<Process> {
        let binary = self.layout.assets.join("kube-controller-manager");
        if !fs::metadata(&binary).is_ok_and(|file| file.is_file()) {
            return None;
        }
        let args = [
            format!("--kubeconfig={}", self.layout.file("admin.kubeconfig").display()),
            format!("--controllers={names}"),
            "--leader-elect=false".to_owned(),
            // It listens nowhere.
            "--secure-port=0".to_owned(),
            // By default, it paces itself.
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ];
        Some(Process::start(&binary, &args, &[], &self.layout.file("kube-controller-manager.log")))
    }

    /// Returns the process id of the API server.
    pub(crate) fn api_server_pid(&self) -> u32 {
        self.api_server.pid()
    }

    /// Returns another client with all rights, with connections of its own.
    pub(crate) fn new_client(&self) -> Client {
        self.layout.client()
    }

    /// Removes all that kubectl has learnt about the API.
    pub(crate) fn forget_kubectl(&self) {
        let _ = fs::remove_dir_all(self.layout.file("kubectl"));
    }

    /// Returns the audit log from now on. A write is in it before it is answered.
    pub(crate) fn audit_log(&self) -> AuditLog {
        AuditLog::from_now(self.layout.file("audit.log"))
    }

    /// Returns the server's address on loopback.
    pub(crate) fn port(&self) -> u16 {
        self.layout.api_port
    }

    /// Returns the CA of its certificate, PEM.
    pub(crate) fn ca(&self) -> &str {
        self.layout.authority.pem()
    }

    /// The kubeconfig of a user with all rights.
    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.layout.file("admin.kubeconfig")
    }

    /// Returns the kubeconfig of an API server that does not answer: nobody listens there.
    pub(crate) fn kubeconfig_of_nobody(&self) -> PathBuf {
        let [port] = free_ports();
        let kubeconfig = self.layout.kubeconfig("admin", ADMIN_TOKEN).to_string();
        let kubeconfig = kubeconfig.replace(&self.layout.api_url(), &format!("https://127.0.0.1:{port}"));
        self.layout.workspace.write("nobody.kubeconfig", &kubeconfig)
    }

    /// Returns a kubeconfig with a token of a `ServiceAccount`, as its pods have it.
    pub(crate) fn account_kubeconfig(&self, namespace: &str, name: &str) -> PathBuf {
        let token = self.account_token(namespace, name);
        let file = format!("{namespace}-{name}.kubeconfig");
        self.layout.workspace.write(&file, &self.layout.kubeconfig(name, &token).to_string())
    }

    /// A client with the rights of a `ServiceAccount`.
    pub(crate) fn account_client(&self, namespace: &str, name: &str) -> Client {
        let token = self.account_token(namespace, name);
        Client::tls(self.layout.api_url(), self.layout.authority.pem(), Some(&token))
    }

    fn account_token(&self, namespace: &str, name: &str) -> String {
        let token = self.kubectl("setup").run(&["-n", namespace, "create", "token", name]).accepted().stdout;
        token.trim().to_owned()
    }

    /// Returns the kubeconfig of a user with exactly the rights that the manifests grant.
    pub(crate) fn webhook_kubeconfig(&self) -> PathBuf {
        self.layout.file("webhook.kubeconfig")
    }
}

impl Layout {
    fn file(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    fn api_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_port)
    }

    fn client(&self) -> Client {
        Client::tls(self.api_url(), self.authority.pem(), Some(ADMIN_TOKEN))
    }

    fn write_files(&self) {
        let (private, public) = signing_key_pair();
        self.workspace.write("service-accounts.key", &private);
        self.workspace.write("service-accounts.pub", &public);
        self.workspace.write("ca.crt", self.authority.pem());
        self.workspace.write("audit-policy.yaml", AUDIT_POLICY);
        self.workspace.write(
            "tokens.csv",
            &format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n{WEBHOOK_TOKEN},kube-unions,kube-unions\n"),
        );
        for (user, token) in [("admin", ADMIN_TOKEN), ("webhook", WEBHOOK_TOKEN)] {
            self.workspace.write(&format!("{user}.kubeconfig"), &self.kubeconfig(user, token).to_string());
        }
    }

    fn kubeconfig(&self, user: &str, token: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": {"server": self.api_url(), "certificate-authority": self.file("ca.crt")}}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
            "current-context": "e2e",
        })
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }

    /// Starts etcd, and waits until it answers.
    fn start_etcd(&self) -> Result<Process, String> {
        let url = self.etcd_url();
        let args = [
            format!("--data-dir={}", self.file("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let mut etcd = Process::start(&self.assets.join("etcd"), &args, &[], &self.file("etcd.log"));
        let health = Client::plain(url);
        process::wait_until_ready("etcd", STARTUP, &mut [&mut etcd], || {
            health.get("/health").is_ok_and(|answer| answer.body["health"] == "true")
        })?;
        Ok(etcd)
    }

    fn start_api_server(&self) -> Process {
        let mut args = vec![
            format!("--etcd-servers={}", self.etcd_url()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.api_port),
            format!("--cert-dir={}", self.file("api-server").display()),
            format!("--tls-cert-file={}", self.serving.certificate.display()),
            format!("--tls-private-key-file={}", self.serving.key.display()),
            format!("--token-auth-file={}", self.file("tokens.csv").display()),
            "--authorization-mode=RBAC".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.file("service-accounts.pub").display()),
            format!("--service-account-signing-key-file={}", self.file("service-accounts.key").display()),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            // Without this, an open watch delays the end of the server by a minute.
            "--shutdown-watch-termination-grace-period=2s".to_owned(),
            format!("--audit-policy-file={}", self.file("audit-policy.yaml").display()),
            format!("--audit-log-path={}", self.file("audit.log").display()),
            "--audit-log-mode=blocking".to_owned(),
            // It refuses to advertise loopback to pods.
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        args.extend_from_slice(&self.flags);
        let log = self.file("kube-apiserver.log");
        Process::start(&self.assets.join("kube-apiserver"), &args, &LAZY_COLLECTOR, &log)
    }
}

fn wait_until_ready(client: &Client, servers: &mut [&mut Process]) -> Result<(), String> {
    process::wait_until_ready("the control plane", STARTUP, servers, || {
        let ok = |path| client.get(path).is_ok_and(|answer| answer.status == 200);
        ok("/readyz") && ok("/api/v1/namespaces/default")
    })
}

/// Returns exactly the rights that the manifests grant the webhook, for its user here.
fn rights_of_the_webhook() -> Value {
    const SHIPPED: &str = include_str!("../../../manifests/webhook/rbac.yaml");
    let roles = documents(SHIPPED).into_iter().filter(|it| it["kind"] == "ClusterRole" || it["kind"] == "Role");
    let mut items = Vec::new();
    for role in roles {
        let (kind, name) = (&role["kind"], &role["metadata"]["name"]);
        let mut binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{}Binding", kind.as_str().unwrap_or_default()),
            "metadata": {"name": format!("{}-under-test", name.as_str().unwrap_or_default())},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kube-unions"}],
        });
        if let Some(namespace) = role["metadata"].get("namespace") {
            binding["metadata"]["namespace"] = namespace.clone();
            if namespace != "default" {
                items.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
            }
        }
        items.extend([role, binding]);
    }
    assert!(!items.is_empty(), "the manifests have roles");
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// Returns distinct free ports.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("loopback has a free port"));
    listeners.map(|listener| listener.local_addr().expect("a listener has an address").port())
}
