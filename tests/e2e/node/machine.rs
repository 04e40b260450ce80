//! The processes of the nodes. `tests/node.sh` runs the tests in the namespace of these processes, so `/proc` shows them.

use std::fs;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A process of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeProcess(Pid);

impl NodeProcess {
    /// Returns the process of a pod's only container. `None`: it does not run.
    pub(super) fn of_pod(pod: &Value) -> Option<Self> {
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str()?.strip_prefix("containerd://")?;
        Self::find(|process| process.read("cgroup").contains(id))
    }

    /// Returns the process of a program of Kubernetes with this argument.
    pub(super) fn of_program(program: &str, argument: &str) -> Option<Self> {
        Self::find(|process| {
            let line = process.read("cmdline");
            let mut arguments = line.split('\0');
            arguments.next().is_some_and(|name| name.ends_with(&format!("/{program}")))
                && arguments.any(|it| it.ends_with(argument))
        })
    }

    fn find(is_wanted: impl Fn(Self) -> bool) -> Option<Self> {
        let entries = fs::read_dir("/proc").expect("/proc is mounted");
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter_map(Pid::from_raw).map(Self).find(|process| is_wanted(*process))
    }

    /// Sends a signal. Returns false if the process has ended.
    pub(super) fn signal(self, signal: Signal) -> bool {
        match kill_process(self.0, signal) {
            Ok(()) => true,
            Err(Errno::SRCH) => false,
            Err(error) => panic!("{self:?} cannot be sent {signal:?}: {error}"),
        }
    }

    /// Returns a file of `/proc`, empty if the process has ended.
    pub(super) fn read(self, file: &str) -> String {
        fs::read(format!("/proc/{}/{file}", self.0.as_raw_nonzero()))
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns a setting of a controller of its control group: the file of version 1, or the file of version 2.
    pub(super) fn control(self, controller: &str, first: &str, second: &str) -> String {
        let groups = self.read("cgroup");
        let mut files = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, group) = (parts.next()?, parts.next()?.trim_start_matches('/'));
            let root = PathBuf::from("/sys/fs/cgroup");
            if controllers.split(',').any(|it| it == controller) {
                Some(root.join(controllers).join(group).join(first))
            } else {
                controllers.is_empty().then(|| root.join(group).join(second))
            }
        });
        let text = files.find_map(|file| fs::read_to_string(file).ok());
        text.unwrap_or_else(|| panic!("{self:?} has no setting of `{controller}`: {groups}")).trim().to_owned()
    }
}

/// A process that does not run until this is dropped.
pub(super) struct Paused(NodeProcess);

impl Paused {
    pub(super) fn new(process: NodeProcess) -> Self {
        assert!(process.signal(Signal::STOP), "{process:?} has ended");
        Self(process)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}
