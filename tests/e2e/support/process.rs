//! A server as a child process that cannot outlive the tests.
//!
//! Statics are never dropped and a test run can be interrupted, so `Drop` alone would leave servers behind. Each server
//! is therefore the child of a small shell watchdog that holds the read end of a pipe whose write end only this process
//! has: words on the pipe are signals to send, and its end, however this process came to its own, ends the server.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use fixtures::wait::{SETTLED, eventually};

/// `$@` is the server, `OPEN_FILES` what `ulimit` is told for it. Its output goes to the watchdog's stderr, which is a log file; stdout only carries its pid.
const WATCHDOG: &str = r#"
exec 3<&0 </dev/null
if [ -n "${OPEN_FILES:-}" ]; then ulimit ${OPEN_FILES}; fi
"$@" 3<&- >&2 &
server=$!
echo "$server"
(
  while read -r signal <&3; do kill -s "$signal" "$server"; done
  kill -s KILL "$server"
) 2>/dev/null &
lifeline=$!
exec 3<&-
wait "$server"
status=$?
kill -s KILL "$lifeline" 2>/dev/null
exit "$status"
"#;

/// Removes the folder `$1` when the pipe on its stdin ends; the servers that wrote into it may need a moment to be gone.
const SWEEPER: &str = r#"
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1" 2>/dev/null && exit
  sleep 0.2
done
"#;

/// A running server. Dropping it kills it.
pub(crate) struct Process {
    name: String,
    watchdog: Child,
    lifeline: Option<ChildStdin>,
    pid: u32,
    log: PathBuf,
}

impl Process {
    /// Starts `program`; what it prints is appended to the file `log`.
    pub(crate) fn start(program: &Path, args: &[String], envs: &[(&str, &str)], log: &Path) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = File::options().create(true).append(true).open(log).expect("the log file can be opened");
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "sh"])
            .arg(program)
            .args(args)
            .envs(envs.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            // Out of reach of the terminal's Ctrl-C: the end of the pipe is what ends the server.
            .process_group(0)
            .spawn()
            .expect("`sh` can be started");
        let mut line = String::new();
        BufReader::new(watchdog.stdout.take().expect("stdout is piped"))
            .read_line(&mut line)
            .expect("the watchdog can be read");
        let pid = line.trim().parse().unwrap_or_else(|_| panic!("`{name}` did not start: {}", tail(log)));
        let lifeline = watchdog.stdin.take();
        Self { name, watchdog, lifeline, pid, log: log.to_owned() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns its output so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The last lines of the log, for the message of a failed test.
    pub(crate) fn log_tail(&self) -> String {
        tail(&self.log)
    }

    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.watchdog.try_wait().expect("a child's status can be read")
    }

    /// Fails when the server is no longer there, with what it said last.
    pub(crate) fn assert_running(&mut self) {
        if let Some(status) = self.exit_status() {
            panic!("`{}` ended by itself ({status}):\n{}", self.name, self.log_tail());
        }
    }

    /// Sends SIGTERM. Does not wait.
    pub(crate) fn terminate(&mut self) {
        self.signal("TERM");
    }

    /// Sends SIGKILL, which no server can handle. Does not wait.
    pub(crate) fn kill(&mut self) {
        self.signal("KILL");
    }

    /// Sends SIGSTOP: it hangs, and its connections stay open.
    pub(crate) fn pause(&mut self) {
        self.signal("STOP");
        let stat = format!("/proc/{}/stat", self.pid());
        let has_stopped = || {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        };
        assert!(eventually(SETTLED, has_stopped), "it never stops");
    }

    /// Ends a pause.
    pub(crate) fn go_on(&mut self) {
        self.signal("CONT");
    }

    fn signal(&mut self, name: &str) {
        let lifeline = self.lifeline.as_mut().expect("the lifeline is there until the process is dropped");
        writeln!(lifeline, "{name}").expect("the watchdog takes signals while the server runs");
    }

    /// Waits for the server to end by itself.
    pub(crate) fn wait_for_exit(&mut self, within: Duration) -> ExitStatus {
        let (name, log) = (self.name.clone(), self.log.clone());
        let watchdog = &mut self.watchdog;
        fixtures::wait::for_some(within, || watchdog.try_wait().expect("a child's status can be read"))
            .unwrap_or_else(|| panic!("`{name}` still runs after {within:?}:\n{}", tail(&log)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // The watchdog has just been told to kill the server, and ends with it.
        let _ = self.watchdog.wait();
    }
}

/// A folder that is removed when it is dropped, or when this process ends without dropping it.
pub(crate) struct Workspace {
    path: PathBuf,
    sweeper: Child,
}

impl Workspace {
    pub(crate) fn new(what: &str) -> Self {
        let path = tempfile::Builder::new()
            .prefix(&format!("kube-unions-{what}-"))
            .tempdir()
            .expect("a temporary folder can be made")
            .keep();
        let sweeper = Command::new("sh")
            .args(["-c", SWEEPER, "sh"])
            .arg(&path)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("`sh` can be started");
        Self { path, sweeper }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::write(&path, content).unwrap_or_else(|error| panic!("cannot write `{}`: {error}", path.display()));
        path
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        let _ = self.sweeper.wait();
    }
}

/// Returns the CPU that a process has used.
pub(crate) fn seconds_of_cpu(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("the name is in parentheses").1.split(' ').collect();
    // Its own time and the kernel's, in hundredths of a second.
    [fields[11], fields[12]]
        .map(|ticks| ticks.parse::<u32>().expect("a number"))
        .into_iter()
        .map(f64::from)
        .sum::<f64>()
        / 100.0
}

/// Waits until `ready` holds; gives up early when one of the servers it depends on has ended.
pub(crate) fn wait_until_ready(
    what: &str,
    within: Duration,
    servers: &mut [&mut Process],
    ready: impl Fn() -> bool,
) -> Result<(), String> {
    let done = eventually(within, || ready() || servers.iter_mut().any(|server| server.exit_status().is_some()));
    if done && servers.iter_mut().all(|server| server.exit_status().is_none()) {
        return Ok(());
    }
    let mut message = format!("{what} was not ready within {within:?}");
    for server in servers {
        let state = server.exit_status().map_or("running".to_owned(), |status| status.to_string());
        let _ = write!(message, "\n--- {} ({state})\n{}", server.name, server.log_tail());
    }
    Err(message)
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Returns the program of an example. Cargo puts examples beside the folder of the tests.
pub(crate) fn example(package: &str, name: &str, source: &str) -> PathBuf {
    let tests = env::current_exe().expect("a test has a binary");
    let folder = tests.parent().and_then(Path::parent).expect("it is in a folder of the target");
    built(folder.join("examples").join(name), source, &format!("cargo build --package {package} --example {name}"))
}

/// Returns the path of a file. Panics if it is missing or older than its source.
fn built(file: PathBuf, source: &str, build: &str) -> PathBuf {
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let is_newer = modified(&file) > modified(&fixtures::files::root().join(source));
    assert!(is_newer, "`{}` is missing or older than its source; run `{build}`", file.display());
    file
}

/// Returns the program of the Go example and the WebAssembly module, which `make go-example` builds. `None`: it was not asked for,
/// because the first build compiles all of client-go.
pub(crate) fn go_example() -> Option<(PathBuf, PathBuf)> {
    let made = [
        ("go/patch-custom-resource", "go/example/patch.go"),
        ("wasm32-wasip1/wasm/strategic-merge-patch.wasm", "crates/strategic-stdio/src/serve.rs"),
    ];
    built_by_go(made, "go-example", "e2e-go").map(|[program, module]| (program, module))
}

/// Returns the program that applies manifests as GitOps tools do, which `make gitops` builds. `None`: it was not asked for.
pub(crate) fn go_gitops() -> Option<PathBuf> {
    built_by_go([("go/gitops", "tests/gitops/main.go")], "gitops", "e2e-gitops").map(|[program]| program)
}

/// Returns the paths of files in the target, each given with a source. `None`: `KUBE_UNIONS_E2E_GO` does not require them. Panics if a
/// file is missing or older than its source.
fn built_by_go<const N: usize>(made: [(&str, &str); N], build: &str, test: &str) -> Option<[PathBuf; N]> {
    if env::var("KUBE_UNIONS_E2E_GO").as_deref() != Ok("require") {
        crate::support::cluster::say(&format!(
            "left out, since its program in Go was not asked for (`make {test}` builds it)"
        ));
        return None;
    }
    let tests = env::current_exe().expect("a test has a binary");
    let target = tests.ancestors().nth(3).expect("it is in a folder of a profile in the target");
    Some(made.map(|(file, source)| built(target.join(file), source, &format!("make {build}"))))
}
