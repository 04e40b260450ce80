//! `verify` against an API server that answers when it is too late.

use super::{Folder, binary};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/probes.verify.kube-unions.dev";

/// What is waited for comes at once; only a test that fails waits so long.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn what_an_interrupt_leaves_without_an_answer_is_deleted_all_the_same() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (asked, requests) = mpsc::channel();
    let router = Router::new().fallback(move |request: Request| {
        let method = request.method().as_str().to_owned();
        asked.send((method.clone(), request.uri().path().to_owned())).unwrap();
        async move {
            if method == "PATCH" {
                return std::future::pending().await;
            }
            let gone = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "it is gone"});
            let response = Response::builder().status(404).header("content-type", "application/json");
            response.body(Body::from(gone.to_string())).unwrap()
        }
    });
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(async move { axum::serve(listener, router).await });
    let folder = Folder::new(&[]);
    folder.kubeconfig(&json!({"server": server}));

    let mut command = Command::new(binary());
    command.current_dir(folder.path()).args(["verify", "--kubeconfig=kubeconfig"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(requests.recv_timeout(SOON).unwrap(), ("PATCH".to_owned(), DEFINITION.to_owned()));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(requests.recv_timeout(SOON).unwrap(), ("DELETE".to_owned(), DEFINITION.to_owned()));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "ok      what was made is deleted again\n");
}
