//! Calls into the CEL library, which may panic on an expression of a stranger.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static EVALUATING: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on a thread that evaluates an expression. A panic is caught then, so that a program's panic hook has nothing to
/// print.
pub fn is_evaluating() -> bool {
    EVALUATING.get()
}

/// Calls into the CEL library. Returns `None` if it panics.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    let outer = EVALUATING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    EVALUATING.set(outer);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_caught_and_known_to_the_hook() {
        assert!(!is_evaluating());
        assert_eq!(guarded(is_evaluating), Some(true));
        assert_eq!(guarded(|| assert!(!is_evaluating(), "as the library would")), None);
        assert!(!is_evaluating());
    }
}
