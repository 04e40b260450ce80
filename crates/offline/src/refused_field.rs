//! A field for which the API server refuses an object of a built-in kind although its unions are valid.

use crate::help::HelpPage;
use crate::sentences::words_of;
use kube_unions_core::admission::response::DenialCause;
use kube_unions_core::field_path::FieldPath;

/// A field for which the API server refuses an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedField {
    pub path: FieldPath,
    /// The fault, in the words of kube-unions.
    pub message: String,
    /// The message of the API server, behind the path or the name of the object. `…` stands for a value, and the end may be missing.
    pub line: String,
    /// The words of its message to a server-side apply, without the sort of the error.
    pub words_to_apply: String,
    pub help: HelpPage,
    /// The reason, a `metav1.CauseType`.
    pub reason: &'static str,
}

impl RefusedField {
    /// Returns the message of the API server without the sort of the error.
    pub fn words(&self) -> &str {
        words_of(&self.line)
    }

    /// Returns true for a value of a wrong type: the API server does not decode the object, so it judges nothing else.
    pub fn is_of_wrong_type(&self) -> bool {
        self.help == HelpPage::DECODE
    }

    /// Returns it as a cause of a denial.
    pub fn cause(&self) -> DenialCause {
        DenialCause { reason: self.reason, message: self.message.clone(), field: self.path.to_string() }
    }
}
