//! The admission call that a review belongs to, and its treatment of old violations.

/// The admission call that a review belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Mutating admission. Objects are normalised. Only contradictions are denied, since no later step can resolve them.
    /// All other violations wait for validation, because another webhook may still repair the object.
    Mutate,
    /// Validating admission. Objects are judged as they will be stored, and nothing is changed.
    Validate,
    /// Mutating admission, then validating admission, in one step. For use without an API server.
    Both,
}

/// The treatment of a union that was invalid before and that the request does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ratcheting {
    /// Allow it with a warning. An old violation must not block a status update or the removal of a finalizer.
    #[default]
    Enabled,
    /// Deny it. Every write must be valid, as the 2022 proposal requires for its alpha.
    Disabled,
}
