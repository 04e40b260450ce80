//! Formats an error together with its causes. Knows nothing else of the program; every other module may use it.

pub(crate) use kube_unions_core::causes::{append_cause, with_causes};
