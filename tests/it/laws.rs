//! The invariants of unions that hold for every write whatsoever: no row and no generated case goes without them.

use crate::api_server::{Answer, Verdict, Write, admit, ask};
use kube_unions::admission::Phase;
use kube_unions::catalog::Catalog;

/// Admits a write and holds the answer to the invariants:
///
/// 1. normalising twice is normalising once: a webhook may be reinvoked;
/// 2. the patch applies, every operation of it changes something (see [`ask`]), and each change is told;
/// 3. what was let through and is written again unchanged is not touched;
/// 4. the order of keys does not matter.
///
/// That nothing panics is seen by whoever calls this.
pub(crate) fn admit_lawfully(catalog: &Catalog, write: &Write) -> Answer {
    let answer = admit(catalog, write);
    if let Verdict::Allowed(Some(object)) = &answer.verdict {
        let again = Write { new: Some(object.clone()), ..write.clone() };
        let reinvoked = ask(catalog, Phase::Mutate, &again);
        assert!(
            reinvoked.operations.is_empty(),
            "normalising twice changes more than once: {:?}",
            reinvoked.operations
        );

        let told = answer.changes().count();
        let cut = answer.warnings.iter().map(String::len).sum::<usize>() > 4096 - 256;
        assert!(told == answer.operations.len() || cut, "each change is told: {answer:?}");

        let nothing_was_let_through = answer.warnings.len() == told;
        if write.operation == "UPDATE" && nothing_was_let_through && !cut {
            let unchanged = Write { old: Some(object.clone()), new: Some(object.clone()), ..write.clone() };
            let untouched = Answer { verdict: answer.verdict.clone(), warnings: Vec::new(), operations: Vec::new() };
            assert_eq!(admit(catalog, &unchanged), untouched, "a valid and unchanged object is touched");
        }
    }
    let reversed = admit(catalog, &write.with_reversed_keys());
    assert_eq!(reversed.verdict, answer.verdict, "the order of keys matters");
    assert_eq!(reversed.warnings, answer.warnings, "the order of keys matters");
    answer
}
