//! `manifests/webhook`, installed as its README says, on an API server without nodes. Its rights are those of the chart: `chart::rights`.

use crate::support::cluster::Cluster;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/webhook");

#[test]
fn the_manifests_are_accepted_in_one_go() {
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let kubectl = control_plane.kubectl("admin");
    kubectl.run(&["apply", "-k", FOLDER]).accepted().warned(&[]);
    // In a dry run: the configurations would send objects to a Service without endpoints.
    let registration = format!("{FOLDER}/registration.yaml");
    kubectl.run(&["apply", "--dry-run=server", "-f", &registration]).accepted().warned(&[]);
}
