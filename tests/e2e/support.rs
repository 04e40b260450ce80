//! The modules that tests share: the processes, the control plane and its clients, the webhook, and writers.

pub(crate) mod access;
pub(crate) mod assets;
pub(crate) mod background;
pub(crate) mod balancer;
pub(crate) mod client_side;
pub(crate) mod cluster;
pub(crate) mod control_plane;
pub(crate) mod http;
pub(crate) mod kind;
pub(crate) mod kubectl;
pub(crate) mod lending;
pub(crate) mod load;
pub(crate) mod pki;
pub(crate) mod process;
pub(crate) mod resource;
pub(crate) mod router;
pub(crate) mod tls;
pub(crate) mod version;
pub(crate) mod webhook;
pub(crate) mod writers;
