//! The program `kube-unions`: the command line and the webhook.

pub mod authority;
mod causes;
pub mod cli;
pub mod cluster;
mod files;
pub mod guide;
pub mod telemetry;
pub mod webhook;
