//! Input of commands: files, folders, kinds and CRDs in them, the cluster, and the values of flags that commands share.

pub(crate) mod connection;
pub(crate) mod crd;
pub(crate) mod kinds;
pub(crate) mod manifest;
pub(crate) mod require;
pub(crate) mod values;
