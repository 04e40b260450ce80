//! `audit`: finds stored objects that the webhook would reject, before enforcement is turned on.
//!
//! Objects come from a cluster ([`live`]) or from files ([`offline`]). The [`auditor`] judges one after the other with the rules
//! of the webhook, and prints findings as it goes: memory does not grow with the number of stored objects.

mod arguments;
mod auditor;
mod live;
mod offline;
mod report;
mod rules;
mod stop;
mod tally;

pub(super) use self::arguments::AuditArgs;

use crate::cli::report::Verdict;

pub(super) fn run(arguments: &AuditArgs) -> anyhow::Result<Verdict> {
    match (arguments.from.is_empty(), arguments.cluster.is_given()) {
        (true, _) => return live::run(arguments),
        (false, true) => {
            anyhow::bail!("give --from, or --kubeconfig and --context: files are audited without a cluster")
        }
        (false, false) => {}
    }
    offline::run(arguments)
}
