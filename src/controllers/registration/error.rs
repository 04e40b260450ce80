//! The errors of a step.

use super::stored::{ConfigurationKind, NAME};
use crate::api::RequestError;
use crate::controllers::reconciler::StepError;

/// An error of reading or writing a configuration.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigurationError {
    #[error("cannot {doing}")]
    Request { doing: String, writes: bool, source: RequestError },
    #[error(
        "cannot create {kind}/{NAME}: its owner, the ClusterRole `{1}`, cannot be read; apply the chart or the manifests again, \
         or name another owner with --owner-cluster-role",
        kind = .0.kind()
    )]
    NoOwner(ConfigurationKind, String),
    #[error("{}/{NAME} was stored with changes: {}; find the admission webhook or policy that changes it", .0.kind(), .1)]
    NotKept(ConfigurationKind, String),
    #[error("cannot register: the CA bundle holds no certificate")]
    NoCa,
}

/// Returns the failure of a request that does not write a configuration.
pub(super) fn request(doing: String, source: RequestError) -> ConfigurationError {
    ConfigurationError::Request { doing, writes: false, source }
}

impl ConfigurationError {
    /// Returns true if the API server has answered and is healthy itself.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            // etcd does not take the object, for example because it is too large.
            Self::Request { writes: true, source, .. } if source.code() == Some(500) => true,
            Self::Request { source, .. } => source.is_final(),
            Self::NotKept(..) | Self::NoOwner(..) | Self::NoCa => true,
        }
    }

    /// Returns true if the API server refuses the owner because this user may not delete the object (admission plugin
    /// `OwnerReferencesPermissionEnforcement`).
    pub(super) fn is_owner_refused(&self) -> bool {
        matches!(self, Self::Request { writes: true, source: RequestError::Status(status), .. }
            if status.code == 403 && status.message.contains("ownerRef"))
    }
}

impl StepError for ConfigurationError {
    fn is_conflict(&self) -> bool {
        // The object of a PUT may have been deleted, and the object of an apply may have been created.
        matches!(self, Self::Request { writes: true, source, .. } if matches!(source.code(), Some(404 | 409)))
    }
}
