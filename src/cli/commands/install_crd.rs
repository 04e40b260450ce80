//! `install-crd`: installs or upgrades the CRD of `UnionDeclaration`. [`crate::cluster`] does the work.

use crate::cli::input::connection::ClusterArgs;
use crate::cli::report::{Verdict, output};
use crate::cli::serve;
use crate::cluster::{self, InstalledCrd};
use clap::Args;
use std::time::Duration;

/// Arguments of `install-crd`.
#[derive(Debug, Args)]
#[command(after_help = "\
Applies the CRD, and waits until the API server serves it. UnionDeclarations stay. The annotation kube-unions.dev/version names \
the version that wrote the CRD; the CRD of a newer version is left as it is. Helm never changes a CRD, so the chart runs this \
command before an installation and an upgrade.

Exit codes:
  0  the CRD is of this version or newer
  2  the installation failed; standard error has the reason

Example:
  kube-unions install-crd")]
pub(crate) struct InstallCrdArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Time to repeat failed attempts
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = serve::duration)]
    timeout: Duration,
}

pub(super) fn run(arguments: &InstallCrdArgs) -> anyhow::Result<Verdict> {
    arguments.cluster.run(async |client| {
        let name = cluster::crd_name();
        output::note(match cluster::install_crd(&client, arguments.timeout).await? {
            InstalledCrd::Created => format!("created the CRD {name}"),
            InstalledCrd::Updated => format!("updated the CRD {name}"),
            InstalledCrd::Unchanged => format!("the CRD {name} is up to date"),
            InstalledCrd::Newer(version) => {
                format!("the CRD {name} is of the newer version {version} and stays as it is")
            }
        });
        Ok(Verdict::Accepted)
    })
}
