//! Estimates the memory that compiling a CRD takes, before it is compiled.

/// Bytes of one node of a schema: the node, its key, and its share of a map that is half full.
const NODE: usize = 800;

/// Bytes of one item of a list, for example a value of an `enum`.
const ITEM: usize = 72;

/// Bytes for each byte of an annotation: its declarations and their faults.
const ANNOTATION: usize = 64;

/// Returns an upper bound, within an eighth, of the bytes that compiling a CRD takes. `schemas` is the JSON text of its
/// schemas, `annotation` the length of its annotation.
///
/// An ordinary schema takes less than ten times the size of its text, a hostile one more than a hundred times.
pub fn compiling_cost(schemas: &str, annotation: usize) -> usize {
    let (mut nodes, mut items) = (0_usize, 0_usize);
    // Braces inside strings count as well. An upper bound needs no parser.
    for byte in schemas.bytes() {
        nodes += usize::from(byte == b'{');
        items += usize::from(byte == b',');
    }
    let annotation = annotation.saturating_mul(ANNOTATION);
    nodes.saturating_mul(NODE).saturating_add(items.saturating_mul(ITEM)).saturating_add(annotation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_costs_by_what_is_in_it() {
        assert_eq!(compiling_cost("", 0), 0);
        assert_eq!(compiling_cost(&"x".repeat(1 << 20), 0), 0);
        assert_eq!(compiling_cost(r#"{"a":{},"b":[1,2]}"#, 10), 2 * NODE + 2 * ITEM + 10 * ANNOTATION);
    }
}
