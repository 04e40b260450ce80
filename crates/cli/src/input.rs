//! Input of commands: files, folders, kinds and CRDs in them, the cluster, and the values of flags that commands share.

pub(crate) mod builtin;
pub(crate) mod crd;
pub(crate) mod definitions;
pub(crate) mod kinds;
pub(crate) mod learn;
pub(crate) mod more_paths;
pub(crate) mod require;

pub(crate) use kube_unions_command::{connection, manifest, values};
