//! `kube-unions explain` on a cluster: it shows what it shows of the files that the cluster got.

use crate::cluster::Cluster;
use crate::kind::Kind;
use crate::process::Workspace;
use crate::webhook::kube_unions;
use fixtures::wait::{SETTLED, eventually};

#[test]
fn a_path_of_a_kind_on_a_cluster_is_explained_as_from_its_file() {
    let Some(cluster) = Cluster::shared() else { return };
    let kind = Kind::new(cluster, "rollout");
    kind.apply_definition();
    let workspace = Workspace::new("explain");
    let file = workspace.write("crd.yaml", &kind.annotated()).display().to_string();
    let kubeconfig = format!("--kubeconfig={}", cluster.control_plane.admin_kubeconfig().display());
    let resource = kind.definition_name();
    for asked in [resource.clone(), format!("{resource}.spec.strategy"), format!("{resource}.spec.strategy.canary")] {
        let from_file = kube_unions(&["explain", "--from", &file, &asked], "").accepted();
        let live = || kube_unions(&["explain", &kubeconfig, &asked], "");
        // The CRD counts once the API server has accepted it.
        assert!(eventually(SETTLED, || live().succeeded()), "{asked}: {:?}", live());
        assert_eq!(live().accepted().stdout, from_file.stdout, "{asked}");
    }
    let unknown = kube_unions(&["explain", &kubeconfig, &format!("{resource}.spec.stratgy")], "");
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("did you mean `spec.strategy`?"), "{unknown:?}");
}
