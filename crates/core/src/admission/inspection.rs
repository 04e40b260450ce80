//! The secret path of inspections: reviews of CRDs and `UnionDeclaration`s.
//!
//! An inspection costs more than a review and reveals more, so only the API server may request one. The API server learns
//! the path from the webhook configuration, which ordinary clients may not read.

use std::fmt;

/// Length of a token in bytes. Its text has two hexadecimal digits for each.
const BYTES: usize = 16;

/// A random token of 128 bits, as lower-case hexadecimal digits.
///
/// It must not be logged: `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct InspectionToken(Box<str>);

impl InspectionToken {
    /// The path before the token.
    pub const PREFIX: &str = "/validate/inspect/";

    /// Makes a token from random bytes.
    pub fn from_random(bytes: [u8; BYTES]) -> Self {
        Self(format!("{:032x}", u128::from_be_bytes(bytes)).into())
    }

    /// Reads the token from a path. Returns `None` unless the path is the prefix and a well-formed token.
    pub fn of_path(path: &str) -> Option<Self> {
        let token = path.strip_prefix(Self::PREFIX)?;
        let is_digit = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
        (token.len() == 2 * BYTES && token.bytes().all(is_digit)).then(|| Self(token.into()))
    }

    /// Returns the whole path.
    pub fn path(&self) -> String {
        format!("{}{}", Self::PREFIX, self.0)
    }

    /// Returns true if `path` is the path of this token. The time that this takes does not depend on where they differ.
    pub fn is_path(&self, path: &str) -> bool {
        let own = self.path();
        own.len() == path.len() && own.bytes().zip(path.bytes()).fold(0, |all, (own, path)| all | (own ^ path)) == 0
    }
}

impl fmt::Debug for InspectionToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("InspectionToken").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_from_its_own_path_and_from_no_other() {
        let token = InspectionToken::from_random([0x0a; BYTES]);
        assert_eq!(token.path(), "/validate/inspect/0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a");
        assert_eq!(InspectionToken::of_path(&token.path()), Some(token.clone()));
        assert!(token.is_path(&token.path()));
        for path in [
            "",
            "/validate",
            "/validate/inspect/",
            "/validate/inspect/0a0a",
            "/validate/inspect/0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A",
            "/validate/inspect/0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a/",
            "/validate/inspect/0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0?",
        ] {
            assert_eq!(InspectionToken::of_path(path), None, "{path}");
            assert!(!token.is_path(path), "{path}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        let token = InspectionToken::from_random([0x0a; BYTES]);
        assert!(!format!("{token:?}").contains("0a0a"));
    }
}
