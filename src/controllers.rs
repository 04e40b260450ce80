//! Keeps objects in a cluster: the two webhook configurations, policies, and the Secret with the certificate of the replicas.
//!
//! It must not know how catalogs are made or reviews are answered: catalogs enter through channels. Start with `registration` for
//! the webhook configurations, with `policies` for the policies, and with `certificate` for the Secret.

mod certificate;
mod handover;
mod object;
mod pace;
mod policies;
mod reconciler;
mod registration;
mod service_reference;

pub use certificate::{CertificateSignals, Timing, renewed, share_certificate};
pub use handover::{CaBundle, Coverage, RegisteredBundle, RegisteredKinds, Trust, ca_bundle};
pub(crate) use object::named_installation;
pub(crate) use policies::SELECTOR;
pub use policies::{MAINTAINED_BY, PolicyDuty, PolicyEnforcement, PolicyResource, PolicySignals, enforce};
pub(crate) use reconciler::{Controller, Reconciled, StepError, news, run};
pub use registration::{
    EntryOptions, FailurePolicy, LabelSelector, MatchCondition, MatchConditions, Registering, Registration, Signals,
    register,
};
pub(crate) use registration::{NAME, other_installation, skips_untouched};
pub use service_reference::ServiceReference;
