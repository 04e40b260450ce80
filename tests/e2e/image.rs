//! The contents of the image, run as the container of a pod: it finds its cluster through mounted files, and watches it
//! with the rights of its account.
//!
//! `make image-root` makes the folder and sets `KUBE_UNIONS_IMAGE_ROOT`; without it these tests are left out.

use std::env;
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::enforcement;
use crate::support::cluster::{Cluster, say};
use crate::support::http::Client;
use crate::support::kind::Kind;
use crate::support::pki::ServingCertificate;
use crate::support::process::{self, Process, Workspace};
use crate::support::webhook::{Endpoint, listening};
use fixtures::certificates::TestAuthority;

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/image/run.sh");
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/webhook");
const STARTUP: Duration = Duration::from_secs(30);

/// The name by which a pod may know the API server. Its certificate has it.
const API_SERVER: &str = "kubernetes.default.svc";
/// The type and the class of a question for an IPv4 address.
const INTERNET_ADDRESS: [u8; 4] = [0, 1, 0, 1];

/// The resolver of a pod: its address on loopback, and true if it knows the address of every name. Otherwise it knows no name.
type NameServer = (&'static str, bool);

#[test]
fn by_address_it_watches_its_cluster_as_the_account_of_its_pod() {
    enforces("127.0.0.1", "127.0.0.1 localhost", None);
}

#[test]
fn a_name_in_the_hosts_file_of_its_pod_counts_whatever_dns_says() {
    enforces(API_SERVER, &format!("127.0.0.1 localhost {API_SERVER}"), Some(("127.73.0.53", false)));
}

#[test]
fn a_name_that_only_dns_knows_is_found() {
    enforces(API_SERVER, "127.0.0.1 localhost", Some(("127.73.0.54", true)));
}

/// Starts the image in a cluster whose API server it is to find at `host`, and waits until it enforces a kind's unions.
fn enforces(host: &str, hosts: &str, name_server: Option<NameServer>) {
    let Some(root) = env::var_os("KUBE_UNIONS_IMAGE_ROOT") else {
        return say("left out, since KUBE_UNIONS_IMAGE_ROOT names no folder (`make image-root` does)");
    };
    let Some(cluster) = Cluster::own() else { return };
    let Some(resolver) = name_server.map_or(Some(String::new()), resolve) else { return };
    let pod = Pod::new(Path::new(&root), &cluster, hosts, &resolver);
    let mut image = pod.start(host, cluster.control_plane.port());

    let [port, ops] =
        fixtures::wait::for_some(STARTUP, || listening(&image.log()).or(image.exit_status().map(|_| [0; 2])))
            .filter(|ports| *ports != [0; 2])
            .unwrap_or_else(|| panic!("it never said where it listens:\n{}", image.log_tail()));
    let ops = Client::plain(format!("http://127.0.0.1:{ops}"));
    process::wait_until_ready("the image", STARTUP, &mut [&mut image], || {
        ops.get("/readyz").is_ok_and(|answer| answer.status == 200)
    })
    .unwrap_or_else(|message| panic!("{message}"));

    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let endpoint = Endpoint::new(port, pod.authority.pem());
    rollouts.kubectl().apply(&endpoint.registration(rollouts.group()).to_string()).accepted();
    enforcement::wait_until_seen(&rollouts, Duration::ZERO);

    image.terminate();
    let status = image.wait_for_exit(STARTUP);
    assert!(status.success(), "it ended with {status}:\n{}", image.log_tail());
}

/// The image's root folder with what kubelet mounts into it.
struct Pod {
    workspace: Workspace,
    authority: TestAuthority,
}

impl Pod {
    fn new(image: &Path, cluster: &Cluster, hosts: &str, resolver: &str) -> Self {
        let workspace = Workspace::new("pod");
        let authority = TestAuthority::new("kube-unions image tests");
        let copied = Command::new("cp").arg("-R").arg(image).arg(workspace.path().join("root")).status();
        assert!(copied.expect("`cp` can be started").success(), "`{}` can't be copied", image.display());
        let pod = Self { workspace, authority };

        let kubectl = cluster.kubectl("pod");
        for file in ["namespace.yaml", "rbac.yaml"] {
            kubectl.run(&["apply", "-f", &format!("{MANIFESTS}/{file}")]).accepted();
        }
        let token = kubectl.run(&["-n", "kube-unions", "create", "token", "kube-unions"]).accepted().stdout;
        let account = "var/run/secrets/kubernetes.io/serviceaccount";
        pod.mount(&format!("{account}/token"), token.trim());
        pod.mount(&format!("{account}/ca.crt"), cluster.control_plane.ca());
        pod.mount(&format!("{account}/namespace"), "kube-unions");
        pod.mount("etc/hosts", &format!("{hosts}\n"));
        pod.mount("etc/resolv.conf", resolver);
        let serving = ServingCertificate::issue(&pod.authority, &pod.path("etc/kube-unions/tls"));
        assert!(serving.key.is_file());
        pod.let_anybody_read();
        pod
    }

    fn start(&self, host: &str, port: u16) -> Process {
        let root = self.path("").display().to_string();
        let args = [
            root.as_str(),
            "serve",
            "--bind=127.0.0.1:0",
            "--ops-bind=127.0.0.1:0",
            "--tls-cert-dir=/etc/kube-unions/tls",
            "--shutdown-delay=0s",
            "--log-format=json",
        ]
        .map(str::to_owned);
        let port = port.to_string();
        let envs =
            [("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", port.as_str()), ("RUST_LOG", "info")];
        Process::start(Path::new(RUN), &args, &envs, &self.workspace.path().join("log"))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.workspace.path().join("root").join(file)
    }

    fn mount(&self, file: &str, content: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
        fs::write(path, content).expect("a file can be written");
    }

    /// As the pod's `fsGroup` does, so that its user can.
    fn let_anybody_read(&self) {
        let changed = Command::new("chmod").args(["-R", "a+rX"]).arg(self.workspace.path()).status();
        assert!(changed.expect("`chmod` can be started").success());
    }
}

/// Starts a name server, and returns the line of resolv.conf. `None`: the port can't be had without being root.
fn resolve((address, knows_all): NameServer) -> Option<String> {
    let socket = match UdpSocket::bind((address, 53)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            say("left out, since a name server can only listen where it is looked for as root");
            return None;
        }
        bound => bound.expect("the port of name servers is free on an address of loopback that nobody else uses"),
    };
    // It ends with the process that runs the tests.
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, client)) = socket.recv_from(&mut buffer) {
            if let Some(answer) = answer(&buffer[..length], knows_all) {
                let _ = socket.send_to(&answer, client);
            }
        }
    });
    Some(format!("nameserver {address}\n"))
}

/// The answer to a question of RFC 1035, section 4.1: 127.0.0.1, no such address, or no such name.
fn answer(query: &[u8], is_known: bool) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let name_length = query.get(HEADER..)?.iter().position(|&byte| byte == 0)? + 1;
    let question = query.get(HEADER..HEADER + name_length + 4)?;
    let has_address = is_known && question[name_length..] == INTERNET_ADDRESS;

    let mut answer = query[..2].to_vec();
    // A response, recursion available; no error, or NXDOMAIN. One question, perhaps one answer.
    answer.extend([0x81, if is_known { 0x80 } else { 0x83 }, 0, 1, 0, u8::from(has_address), 0, 0, 0, 0]);
    answer.extend(question);
    if has_address {
        // The name of the question, by its offset; its type and class; ten seconds to live; four bytes.
        answer.extend([0xc0, 0x0c]);
        answer.extend(INTERNET_ADDRESS);
        answer.extend([0, 0, 0, 10, 0, 4, 127, 0, 0, 1]);
    }
    Some(answer)
}
