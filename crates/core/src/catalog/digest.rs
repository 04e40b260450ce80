//! Digests: numbers by which two replicas can tell that they have the same catalog.

use std::collections::hash_map::DefaultHasher;
use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};

/// Returns the digest of everything that a value shows of itself. The same value has the same digest in every process that
/// runs the same version of this program.
pub(super) fn digest(value: &impl Debug) -> u64 {
    struct Into(DefaultHasher);

    impl Write for Into {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }

    // The keys of `DefaultHasher::new` are fixed.
    let mut into = Into(DefaultHasher::new());
    // Hashing can't fail.
    let _ = write!(into, "{value:?}");
    into.0.finish()
}

/// Returns the digest of many things, in their order.
pub(super) fn digest_of_all(things: impl IntoIterator<Item = impl Hash>) -> u64 {
    let mut hasher = DefaultHasher::new();
    things.into_iter().for_each(|thing| thing.hash(&mut hasher));
    hasher.finish()
}
