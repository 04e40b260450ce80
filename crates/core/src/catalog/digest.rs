//! Digests, by which replicas compare their catalogs.

use std::collections::hash_map::DefaultHasher;
use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};

/// Returns a digest of the `Debug` output of a value. Equal values have equal digests in every process that runs the same
/// version of this program.
pub(super) fn digest(value: &impl Debug) -> u64 {
    struct Into(DefaultHasher);

    impl Write for Into {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }

    // `DefaultHasher::new` has fixed keys.
    let mut into = Into(DefaultHasher::new());
    // Hashing cannot fail.
    let _ = write!(into, "{value:?}");
    into.0.finish()
}

/// Returns the digest of a sequence.
pub(super) fn digest_of_all(things: impl IntoIterator<Item = impl Hash>) -> u64 {
    let mut hasher = DefaultHasher::new();
    things.into_iter().for_each(|thing| thing.hash(&mut hasher));
    hasher.finish()
}
