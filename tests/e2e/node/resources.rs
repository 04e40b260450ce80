//! Memory and processor time of the pods, as the kubelets report them. `make bench-node` prints them.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Release;
use crate::loss::wait_for;
use crate::support::cluster::say;
use crate::support::writers::{Spread, Writers};

/// Writes per second. Each is a review of `/mutate` and one of `/validate`.
const RATE: u32 = 200;
const MEASURED: Duration = Duration::from_mins(1);

#[test]
#[ignore = "prints measurements and asserts nothing: `make bench-node` runs it"]
fn memory_and_cpu_of_the_pods() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    print(&release, "idle", || ());
    print(&release, &format!("{RATE} writes a second"), || {
        let client = || release.cluster.client().clone();
        let writers = Writers::start_at(RATE, client, kind.group(), &kind.path(""), Spread::Even);
        wait_for(&writers, u64::from(RATE) * MEASURED.as_secs());
        say(&writers.finish().to_string());
    });
    print(&release, "idle again", || ());
}

/// Prints what the pods used in at least a minute, while something went on.
fn print(release: &Release, what: &str, something: impl FnOnce()) {
    let (before, start) = (used(release), Instant::now());
    something();
    thread::sleep(MEASURED.saturating_sub(start.elapsed()));
    for ((pod, cpu, _), (_, cpu_after, memory)) in before.iter().zip(used(release)) {
        let millicores = (cpu_after - cpu) / start.elapsed().as_secs_f64() / 1e6;
        say(&format!("{what}: {pod}: {millicores:.0} m of a processor, {memory:.1} MiB of memory"));
    }
}

/// Returns the name of each pod, the nanoseconds of a processor that it has used, and its working set in MiB.
fn used(release: &Release) -> Vec<(String, f64, f64)> {
    let container = |pod: &Value| {
        let node = pod["spec"]["nodeName"].as_str().unwrap();
        // The kubelet measures anew about every ten seconds.
        let path = format!("/api/v1/nodes/{node}/proxy/stats/summary");
        let summary = release.cluster.client().get(&path).unwrap().body;
        let mut pods = summary["pods"].as_array().unwrap().iter();
        let pod = pods.find(|it| it["podRef"]["uid"] == pod["metadata"]["uid"]).expect("the kubelet knows its pod");
        let container = &pod["containers"][0];
        let number = |place: &str| container.pointer(place).and_then(Value::as_f64).unwrap_or_default();
        let name = pod["podRef"]["name"].as_str().unwrap().to_owned();
        (name, number("/cpu/usageCoreNanoSeconds"), number("/memory/workingSetBytes") / 1024.0 / 1024.0)
    };
    release.two_pods().iter().map(container).collect()
}
