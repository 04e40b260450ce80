//! Whether the machine had more to give while it was written, and how much of what it gave went to the replicas: a rate alone
//! says nothing on a machine that is slow, or that others have a part of.

use std::fmt;
use std::fs;

/// Of the machine's time, from where nothing more is to be had of it.
const SATURATED: f64 = 0.9;
/// Of that, up to where it is not the replicas that want it.
const LITTLE: f64 = 0.25;

/// What the machine does from its start on.
pub(crate) struct Meter {
    machine: Times,
    replicas: u64,
}

/// What the machine did, each a part of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// Of all the time that its processors have.
    busy: f64,
    /// Of what was busy. That of processes which have ended meanwhile counts, too.
    replicas: f64,
}

/// Of all processors, in ticks of the clock.
#[derive(Debug, Clone, Copy)]
struct Times {
    all: u64,
    idle: u64,
}

impl Meter {
    /// `None` where there is no `/proc` that tells.
    pub(crate) fn start(replicas: &[u32]) -> Option<Self> {
        Some(Self { machine: Times::now()?, replicas: of_processes(replicas)? })
    }

    /// What was done since; the replicas may be others than at the start.
    pub(crate) fn finish(&self, replicas: &[u32]) -> Option<Usage> {
        let (now, replicas) = (Times::now()?, of_processes(replicas)?);
        let all = now.all - self.machine.all;
        let busy = all - (now.idle - self.machine.idle).min(all);
        let number = |ticks: u64| f64::from(u32::try_from(ticks).unwrap_or(u32::MAX));
        let part = |of: u64, whole: u64| number(of) / number(whole.max(1));
        Some(Usage { busy: part(busy, all), replicas: part(replicas.saturating_sub(self.replicas), busy) })
    }
}

impl Usage {
    /// Whether others than the replicas had all that there was.
    pub(crate) fn is_of_others(self) -> bool {
        self.busy >= SATURATED && self.replicas <= LITTLE
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: f64| 100.0 * part;
        write!(out, "the machine was busy for {:.0} % of its time, ", percent(self.busy))?;
        write!(out, "the replicas had {:.0} % of that", percent(self.replicas))
    }
}

impl Times {
    /// `cpu  user nice system idle iowait irq softirq steal …`: what was stolen is not idle.
    fn now() -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let times: Vec<u64> =
            stat.lines().next()?.split_whitespace().skip(1).take(8).map_while(|it| it.parse().ok()).collect();
        Some(Self { all: times.iter().sum(), idle: times.get(3)? + times.get(4)? })
    }
}

/// What these processes have had, and those that this one has waited for: a replica that was restarted is among them.
fn of_processes(pids: &[u32]) -> Option<u64> {
    let field = |fields: &[u64], number: usize| fields.get(number - FIRST).copied();
    let mut all = 0;
    for pid in pids {
        let fields = stat_of(&pid.to_string())?;
        all += field(&fields, 14)? + field(&fields, 15)?;
    }
    let own = stat_of("self")?;
    Some(all + field(&own, 16)? + field(&own, 17)?)
}

/// The first field of `/proc/PID/stat` that [`stat_of`] gives, as proc(5) counts them.
const FIRST: usize = 4;

/// The numbers behind the name, which may hold anything, and the state.
fn stat_of(pid: &str) -> Option<Vec<u64>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(") ")?;
    Some(behind.split_whitespace().skip(1).map(|field| field.parse().unwrap_or_default()).collect())
}
