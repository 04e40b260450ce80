//! End to end: a real kube-apiserver, etcd and kubectl, and the release binary as a process of its own.
//!
//! The control plane's binaries come from `KUBEBUILDER_ASSETS`, or from `make assets`. `KUBE_UNIONS_BIN` names another
//! binary than `target/release/kube-unions`. `KUBE_UNIONS_E2E=skip` leaves out what needs a control plane, and says so.
//! `KUBE_UNIONS_E2E=full` plays all combinations, and the largest numbers, where else one of each class is played.
//! `KUBE_UNIONS_E2E_LOSS_SECONDS` is for [`loss`], `KUBE_UNIONS_TRUTH_SEED` and `KUBE_UNIONS_TRUTH_KINDS` for `native::truth`,
//! `KUBE_UNIONS_NATIVE_SEED` and `KUBE_UNIONS_NATIVE_TRANSITIONS` for
//! [`native`], `KUBE_UNIONS_LAW_SEED` and `KUBE_UNIONS_LAW_CASES` for [`applied`], `KUBE_UNIONS_REPORT_CRDS` for `audit::reports`,
//! `KUBE_UNIONS_PLAYER_SEED` and `KUBE_UNIONS_PLAYER_REQUESTS` for [`simulated`],
//! `KUBE_UNIONS_UNTOUCHED_SEED` and `KUBE_UNIONS_UNTOUCHED_WRITES` for [`untouched`]. Without kube-controller-manager beside the
//! others, the test of garbage collection checks less, and says so.
//!
//! `KUBE_UNIONS_E2E_KUBECONFIG` names the kubeconfig of a cluster that has the webhook installed, as `make e2e-kind`
//! makes one, to be thrown away afterwards. The same tests then run on that, but those that need the processes in hand.
//!
//! `KUBE_UNIONS_E2E_NODE` names the kubeconfig of a cluster with a real node, for [`node`], and `KUBE_UNIONS_E2E_IMAGE` the image that
//! the node has. `make e2e-node` starts one.
//!
//! The tests of a process share one control plane and one webhook ([`support::cluster`]) and keep apart by API groups: each
//! takes a sample's CRD and gives it a group of its own ([`support::kind`]). Whatever is started ends with the process that runs
//! the tests, even when that is killed ([`support::process`]).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod builtin;
mod builtin_kinds;
mod enforcement;
mod faults;
mod support;
mod switches;

mod applied;
mod audit;
mod author;
mod builtin_types;
mod certificates;
mod chart;
mod chart_values;
mod compile;
mod contrib;
mod corpus;
mod declarations;
mod enforcement_by_policies;
mod errors;
mod generate;
mod gitops;
mod guide;
mod hang;
mod hostile;
mod image;
mod inspections;
mod install;
mod kustomize;
mod loss;
mod matrix;
mod memory;
mod native;
mod node;
mod observability;
mod observe;
mod outage;
mod patch;
mod pod_templates;
mod presets;
mod pressure;
mod preview;
mod quickstart;
mod ratcheting;
mod registration;
mod replicas;
mod rows;
mod samples;
mod simulated;
mod takeover;
mod union_declarations;
mod untouched;
mod versions;
