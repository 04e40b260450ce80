//! The program `kube-unions`: the command line and the webhook.

pub mod authority;
pub mod cli;
pub mod cluster;
pub mod guide;
pub mod telemetry;
pub mod webhook;
