//! All rights on an API server, as a client of its HTTP and as a kubectl.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::support::http::Client;
use crate::support::kubectl::{self, Kubectl};

/// Access to an API server with all rights.
#[derive(Clone)]
pub(crate) struct Access {
    client: Client,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    caches: PathBuf,
}

impl Access {
    /// `caches` is the folder for what kubectl learns about the API.
    pub(crate) fn new(client: Client, kubectl: PathBuf, kubeconfig: PathBuf, caches: PathBuf) -> Self {
        Self { client, kubectl, kubeconfig, caches }
    }

    /// Reads the current context of a kubeconfig. The error names the part that is missing.
    pub(crate) fn of_kubeconfig(kubeconfig: &Path, caches: PathBuf) -> Result<Self, String> {
        let kubectl = env::var_os("KUBEBUILDER_ASSETS")
            .map_or_else(|| PathBuf::from("kubectl"), |folder| Path::new(&folder).join("kubectl"));
        let mut view = Command::new(&kubectl);
        view.arg("--kubeconfig").arg(kubeconfig).args([
            "config",
            "view",
            "--raw",
            "--minify",
            "--flatten",
            "-o",
            "json",
        ]);
        let output = kubectl::run(view, "kubectl config view", "");
        if !output.succeeded() {
            return Err(format!("kubectl cannot read `{}`: {}", kubeconfig.display(), output.stderr.trim()));
        }
        let client = client_of(&output.json())
            .map_err(|reason| format!("`{}` can't be used: {reason}", kubeconfig.display()))?;
        Ok(Self::new(client, kubectl, kubeconfig.to_owned(), caches))
    }

    /// Returns the path of kubectl.
    pub(crate) fn kubectl_binary(&self) -> &Path {
        &self.kubectl
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns a kubectl with a cache of its own for each `name`.
    pub(crate) fn kubectl(&self, name: &str) -> Kubectl {
        Kubectl::new(self.kubectl.clone(), self.kubeconfig.clone(), self.caches.join(name))
    }
}

/// A client for the only context of a kubeconfig, all of whose files are flattened into it.
fn client_of(config: &Value) -> Result<Client, String> {
    let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
    let text = |value: &Value, what: &str| {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("its current context has no {what}"))
    };
    let pem = |value: &Value, what: &str| {
        let bytes = BASE64_STANDARD.decode(text(value, what)?).map_err(|error| format!("{what}: {error}"))?;
        String::from_utf8(bytes).map_err(|error| format!("{what}: {error}"))
    };
    let server = text(&cluster["server"], "server")?;
    let ca = pem(&cluster["certificate-authority-data"], "certificate authority")?;
    if let Some(token) = user["token"].as_str() {
        return Ok(Client::tls(server, &ca, Some(token)));
    }
    let certificate = pem(&user["client-certificate-data"], "token, and no client certificate")?;
    let key = pem(&user["client-key-data"], "client key")?;
    Ok(Client::by_certificate(server, &ca, &certificate, &key))
}
