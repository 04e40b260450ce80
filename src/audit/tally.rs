//! Counts audited objects and their findings.

use kube_unions_manifests::counts::{count, grouped, passed_over};
use serde::Serialize;

/// Counts of objects.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Kinds that were audited, as a whole or in part.
    pub kinds: u64,
    pub objects: u64,
    pub invalid: u64,
    /// Invalid objects that their next write makes valid.
    pub mended_by_next_write: u64,
    /// Objects, valid or not, that their next write would normalise.
    pub would_change: u64,
    pub would_warn: u64,
    pub would_audit: u64,
    /// Documents in files whose kind has no unions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<u64>,
}

impl Tally {
    /// Returns the summary of an audit.
    pub fn sentence(&self) -> String {
        let some = |number: u64, before: &str, after: &str| match number {
            0 => String::new(),
            some => format!("{before}{}{after}", grouped(some)),
        };
        let mended = some(self.mended_by_next_write, " (", " mended by the next write)");
        let warned = some(self.would_warn, ", ", " only warned of");
        let audited = some(self.would_audit, ", ", " only audited");
        let passed_over = passed_over(self.passed_over.unwrap_or_default());
        format!(
            "audited {} of {}: {} invalid{mended}, {} that normalisation would change{warned}{audited}{passed_over}",
            count(self.objects, "object"),
            count(self.kinds, "kind"),
            none_or(self.invalid),
            none_or(self.would_change),
        )
    }

    /// Returns the summary of an audit without objects.
    pub fn nothing(&self) -> String {
        let passed_over = passed_over(self.passed_over.unwrap_or_default());
        format!("nothing to audit: no object of a kind with unions{passed_over}")
    }
}

fn none_or(number: u64) -> String {
    if number == 0 { "none".to_owned() } else { grouped(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_leaves_out_what_there_is_none_of() {
        let tally = Tally { kinds: 1, objects: 1, ..Tally::default() };
        assert_eq!(tally.sentence(), "audited 1 object of 1 kind: none invalid, none that normalisation would change");
        let tally = Tally {
            kinds: 3,
            objects: 5000,
            invalid: 37,
            mended_by_next_write: 5,
            would_change: 12,
            would_warn: 2,
            would_audit: 3,
            passed_over: Some(4),
        };
        assert_eq!(
            tally.sentence(),
            "audited 5,000 objects of 3 kinds: 37 invalid (5 mended by the next write), 12 that normalisation would \
             change, 2 only warned of, 3 only audited; 4 documents of other kinds passed over"
        );
    }
}
