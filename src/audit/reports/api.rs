//! The APIs for reports: `OpenReports`, and the older `PolicyReport`. Their objects have the same fields.

use kube_unions_api::DiscoveredResource;
use kube_unions_manifests::counts::count;

/// The versions whose fields are known, in the order of preference: group, version, kind for namespaces, kind for the cluster.
const KNOWN: [(&str, &str, &str, &str); 3] = [
    ("openreports.io", "v1alpha1", "Report", "ClusterReport"),
    ("wgpolicyk8s.io", "v1beta1", "PolicyReport", "ClusterPolicyReport"),
    ("wgpolicyk8s.io", "v1alpha2", "PolicyReport", "ClusterPolicyReport"),
];

/// The kinds of reports that a cluster serves at one version, at least one.
#[derive(Debug)]
pub struct ReportApi<'r> {
    /// The kind of reports in namespaces.
    pub of_namespaces: Option<&'r DiscoveredResource>,
    /// The kind of reports about objects without a namespace.
    pub of_cluster: Option<&'r DiscoveredResource>,
    names: (&'static str, &'static str, &'static str, &'static str),
}

/// A cluster serves no kind of reports that is known.
#[derive(Debug, thiserror::Error)]
pub enum NoReportApi {
    /// It serves none.
    #[error(
        "the cluster serves no reports: install the CRDs of OpenReports (openreports.io/v1alpha1) or of PolicyReport \
         (wgpolicyk8s.io/v1alpha2)"
    )]
    NotInstalled,
    /// It serves them at other versions only.
    #[error("the cluster serves reports as {}, of which only {} can be written: serve one of these versions", .0.join(", "), known())]
    OtherVersions(Vec<String>),
}

impl<'r> ReportApi<'r> {
    /// Returns the first known version that a cluster with these resources serves.
    pub fn of(resources: &'r [DiscoveredResource]) -> Result<Self, NoReportApi> {
        for names @ (group, version, of_namespaces, of_cluster) in KNOWN {
            let find = |kind: &str, namespaced: bool| {
                let is = |it: &&DiscoveredResource| (&*it.group, &*it.version, &*it.kind) == (group, version, kind);
                resources.iter().find(|it| is(it) && it.namespaced == namespaced)
            };
            let (of_namespaces, of_cluster) = (find(of_namespaces, true), find(of_cluster, false));
            if of_namespaces.is_some() || of_cluster.is_some() {
                return Ok(Self { of_namespaces, of_cluster, names });
            }
        }
        let is_report = |it: &&DiscoveredResource| {
            KNOWN
                .iter()
                .any(|(group, _, kind, of_cluster)| *group == &*it.group && [*kind, *of_cluster].contains(&&*it.kind))
        };
        let others: Vec<String> = resources.iter().filter(is_report).map(ToString::to_string).collect();
        Err(if others.is_empty() { NoReportApi::NotInstalled } else { NoReportApi::OtherVersions(others) })
    }

    /// Returns the problem of reports whose kind is not served.
    pub(super) fn not_served(&self, reports: usize) -> String {
        let (group, version, of_namespaces, of_cluster) = self.names;
        let kind = if self.of_namespaces.is_none() { of_namespaces } else { of_cluster };
        let reports = count(reports, "report");
        format!(
            "{reports} cannot be written, because the cluster does not serve {kind} of {group}/{version}: install its CRD"
        )
    }
}

/// Lists the known versions, for an error.
fn known() -> String {
    KNOWN.map(|(group, version, ..)| format!("{group}/{version}")).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::reports::kind_of_reports as resource;

    #[test]
    fn openreports_come_first_and_then_the_newest_version() {
        let open = ["Report", "ClusterReport"].map(|kind| resource("openreports.io", "v1alpha1", kind));
        let older =
            |version| ["PolicyReport", "ClusterPolicyReport"].map(|kind| resource("wgpolicyk8s.io", version, kind));
        let versions = |resources: &[DiscoveredResource]| {
            let api = ReportApi::of(resources).unwrap();
            [api.of_namespaces, api.of_cluster].map(|it| it.map(ToString::to_string))
        };
        let all = [&older("v1alpha1")[..], &older("v1alpha2"), &older("v1beta1"), &open].concat();
        let named = |namespaces: &str, cluster: &str| [Some(namespaces.to_owned()), Some(cluster.to_owned())];
        assert_eq!(
            versions(&all),
            named("`reports.v1alpha1.openreports.io`", "`clusterreports.v1alpha1.openreports.io`")
        );
        let newest = named("`policyreports.v1beta1.wgpolicyk8s.io`", "`clusterpolicyreports.v1beta1.wgpolicyk8s.io`");
        assert_eq!(versions(&all[..6]), newest);
        let newest = named("`policyreports.v1alpha2.wgpolicyk8s.io`", "`clusterpolicyreports.v1alpha2.wgpolicyk8s.io`");
        assert_eq!(versions(&all[..4]), newest);
    }

    #[test]
    fn a_cluster_without_a_known_version_is_an_error_that_says_what_there_is() {
        let said = |resources: &[DiscoveredResource]| ReportApi::of(resources).unwrap_err().to_string();
        let unrelated = [resource("example.com", "v1", "Report")];
        assert!(said(&unrelated).starts_with("the cluster serves no reports: install the CRDs of OpenReports"));
        let newer =
            [resource("openreports.io", "v1", "Report"), resource("wgpolicyk8s.io", "v1alpha1", "PolicyReport")];
        assert_eq!(
            said(&newer),
            "the cluster serves reports as `reports.v1.openreports.io`, `policyreports.v1alpha1.wgpolicyk8s.io`, of which only \
             openreports.io/v1alpha1, wgpolicyk8s.io/v1beta1, wgpolicyk8s.io/v1alpha2 can be written: serve one of these versions"
        );
    }

    #[test]
    fn half_an_installation_says_which_kind_is_missing() {
        let resources = [resource("openreports.io", "v1alpha1", "Report")];
        let api = ReportApi::of(&resources).unwrap();
        assert_eq!(
            api.not_served(1),
            "1 report cannot be written, because the cluster does not serve ClusterReport of openreports.io/v1alpha1: install its CRD"
        );
    }
}
