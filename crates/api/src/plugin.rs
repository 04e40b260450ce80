//! The exec plugin of a kubeconfig: a program that prints credentials.
//!
//! kube can run it, too, but blocks its thread meanwhile, and its errors quote what the plugin was given and what it said. Here it
//! runs until nobody waits for it any more, and no error has an argument, a variable or an output of it.

use super::retry::Doubling;
use hyper::Request;
use hyper::header::{AUTHORIZATION, HeaderValue};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use serde::Deserialize;
use serde_json::json;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Mutex;

/// Maximum size of what a plugin prints, in bytes.
const LONGEST: u64 = 1 << 20;

/// A token that expires within this time is replaced.
const MARGIN: Duration = Duration::from_mins(1);

/// First and longest wait between two looks at a plugin that has closed its output.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// Time in which a plugin may end by itself before it is killed.
const FAREWELL: Duration = Duration::from_millis(500);

/// The reason why a plugin gave no credentials.
#[derive(Debug, thiserror::Error)]
pub(super) enum PluginError {
    #[error("the exec plugin of the kubeconfig has no `command`")]
    NoCommand,
    #[error("cannot run the exec plugin of the kubeconfig: {0}")]
    Run(#[from] io::Error),
    #[error("the exec plugin of the kubeconfig failed ({0}): run its command to see why")]
    Failed(ExitStatus),
    #[error(
        "the exec plugin of the kubeconfig printed no ExecCredential with a token, or with a client certificate and its \
         key: run its command to see why"
    )]
    NoCredential,
}

/// Credentials that a plugin printed: a token, or a client certificate with its key.
pub(super) struct PluginCredential {
    pub(super) token: Option<PluginToken>,
    /// PEM.
    pub(super) identity: Option<[String; 2]>,
}

/// The token of a plugin, which is run again before the token expires.
#[derive(Clone)]
pub(super) struct PluginToken {
    exec: Arc<ExecConfig>,
    current: Arc<Mutex<TimedHeader>>,
}

/// A header, and the time until which it counts.
struct TimedHeader {
    header: HeaderValue,
    expiry: Option<SystemTime>,
}

/// A plugin's output, in YAML or JSON.
#[derive(Deserialize)]
struct ExecAnswer {
    status: ExecStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    expiration_timestamp: Option<Time>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Takes the plugin out of a user of a kubeconfig. Returns `None` if the user has no plugin, or other credentials, which come first.
pub(super) fn take(user: &mut AuthInfo) -> Option<ExecConfig> {
    let has_password = user.username.is_some() && user.password.is_some();
    let has_other = user.auth_provider.is_some() || user.token.is_some() || user.token_file.is_some();
    user.exec.take().filter(|_| !has_password && !has_other)
}

impl PluginCredential {
    /// Runs a plugin. It ends if the result is dropped.
    pub(super) async fn ask(exec: ExecConfig) -> Result<Self, PluginError> {
        // A signal that ends this command is not sent to the group, and a shell that runs the actual plugin passes none on.
        let status = ask(&exec, true).await?;
        let identity = status.client_certificate_data.clone().zip(status.client_key_data.clone());
        let exec = Arc::new(exec);
        let token = status.token.is_some().then(|| status.header()).transpose()?;
        if token.is_none() && identity.is_none() {
            return Err(PluginError::NoCredential);
        }
        Ok(Self {
            token: token.map(|header| PluginToken { exec, current: Arc::new(Mutex::new(header)) }),
            identity: identity.map(|(certificate, key)| [certificate, key]),
        })
    }
}

impl PluginToken {
    /// Returns a request with the token.
    pub(super) async fn authorized<T>(self, mut request: Request<T>) -> Result<Request<T>, PluginError> {
        let mut current = self.current.lock().await;
        if current.expiry.is_some_and(|expiry| SystemTime::now() + MARGIN >= expiry) {
            // It stays in the group of this process: a signal to the group ends both, and here nothing else would end the plugin
            // with this process. The deadline of the request ends it as well, but not what it has started.
            *current = ask(&self.exec, false).await?.header()?;
        }
        request.headers_mut().insert(AUTHORIZATION, current.header.clone());
        Ok(request)
    }
}

impl ExecStatus {
    fn header(&self) -> Result<TimedHeader, PluginError> {
        let token = self.token.as_deref().ok_or(PluginError::NoCredential)?;
        let header = HeaderValue::try_from(format!("Bearer {token}"));
        let mut header = header.map_err(|_| PluginError::NoCredential)?;
        header.set_sensitive(true);
        Ok(TimedHeader { header, expiry: self.expiration_timestamp.as_ref().map(|time| time.0.into()) })
    }
}

/// Runs a plugin and returns its answer. `leads`: it leads a group of processes of its own, which ends as a whole.
async fn ask(exec: &ExecConfig, leads: bool) -> Result<ExecStatus, PluginError> {
    let mut command = Command::new(exec.command.as_ref().ok_or(PluginError::NoCommand)?);
    command.args(exec.args.iter().flatten());
    let variables = exec.env.iter().flatten();
    command.envs(variables.filter_map(|variable| Some((variable.get("name")?, variable.get("value")?))));
    let is_interactive = exec.interactive_mode != Some(ExecInteractiveMode::Never);
    let cluster = exec.cluster.as_ref().filter(|_| exec.provide_cluster_info);
    let specification = match cluster {
        Some(cluster) => json!({"interactive": is_interactive, "cluster": cluster}),
        None => json!({"interactive": is_interactive}),
    };
    let information = json!({"kind": "ExecCredential", "apiVersion": exec.api_version, "spec": specification});
    command.env("KUBERNETES_EXEC_INFO", information.to_string());
    if !is_interactive {
        command.stdin(Stdio::null()).stderr(Stdio::null());
    }
    // A process of another group cannot ask at the terminal. The terminal sends its signals to both.
    let has_terminal = is_interactive && (io::stdin().is_terminal() || io::stderr().is_terminal());
    let printed = printed_by(&mut command, leads && !has_terminal).await?;
    let answer = serde_saphyr::from_slice::<ExecAnswer>(&printed);
    answer.map(|answer| answer.status).map_err(|_| PluginError::NoCredential)
}

/// Runs a command, and returns its output if it succeeds.
async fn printed_by(command: &mut Command, leads: bool) -> Result<Vec<u8>, PluginError> {
    command.stdout(Stdio::piped());
    if leads {
        command.process_group(0);
    }
    let mut plugin = RunningPlugin { process: command.spawn()?, leads, answered: false };
    let mut printed = Vec::new();
    if let Some(output) = plugin.process.stdout.take() {
        Receiver::from_owned_fd(OwnedFd::from(output))?.take(LONGEST).read_to_end(&mut printed).await?;
    }
    let status = plugin.status().await?;
    plugin.answered = true;
    if status.success() { Ok(printed) } else { Err(PluginError::Failed(status)) }
}

/// A plugin that ends when this is dropped, with its group.
struct RunningPlugin {
    process: Child,
    leads: bool,
    /// True once it has ended by itself. Processes that it leaves behind then, for example a cache of tokens, are meant to go on.
    answered: bool,
}

impl RunningPlugin {
    async fn status(&mut self) -> io::Result<ExitStatus> {
        let mut waits = Doubling::new(LOOKS);
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(waits.next_wait()).await;
        }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Returns true if the plugin has ended, and every process of its group.
    fn is_gone(&mut self) -> bool {
        let group = Pid::from_child(&self.process);
        self.has_ended() && !(self.leads && test_kill_process_group(group).is_ok())
    }

    fn signal(&mut self, signal: Signal) {
        let process = Pid::from_child(&self.process);
        // They may have ended meanwhile.
        let _ = if self.leads {
            kill_process_group(process, signal)
        } else if self.has_ended() {
            Ok(())
        } else {
            kill_process(process, signal)
        };
    }
}

impl Drop for RunningPlugin {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        // A plugin that hides what is typed has to restore the terminal.
        self.signal(Signal::TERM);
        let end = Instant::now() + FAREWELL;
        while Instant::now() < end {
            if self.is_gone() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.signal(Signal::KILL);
        let _ = self.process.wait();
    }
}
