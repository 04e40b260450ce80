//! `verify` against an API server that answers when it is too late.

use super::{Folder, binary};
use fixtures::api_server::Loopback;
use fixtures::wait::SOON;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::{Command, Stdio};
use std::sync::mpsc;

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/probes.verify.kube-unions.dev";

#[test]
fn what_an_interrupt_leaves_without_an_answer_is_deleted_all_the_same() {
    let (asked, requests) = mpsc::channel();
    let server = Loopback::start(move |call| {
        asked.send((call.method.to_string(), call.path.clone())).unwrap();
        if call.method == "PATCH" { call.ignore() } else { call.not_found() }
    });
    let folder = Folder::new(&[]);
    folder.kubeconfig(&json!({"server": server.url()}));

    let mut command = Command::new(binary());
    command.current_dir(folder.path()).args(["verify", "--kubeconfig=kubeconfig"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(requests.recv_timeout(SOON).unwrap(), ("PATCH".to_owned(), DEFINITION.to_owned()));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(requests.recv_timeout(SOON).unwrap(), ("DELETE".to_owned(), DEFINITION.to_owned()));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "ok      the CRD is deleted again\n");
}
