//! Estimates the memory that compiling takes, before it is taken.

/// Bytes for a node of a schema: the node itself, its key, and its share of a map that is half full.
const NODE: usize = 800;

/// Bytes for an item of a list, such as a value of an `enum`.
const ITEM: usize = 72;

/// Bytes for each byte of an annotation: what it declares, and what is told of that.
const ANNOTATION: usize = 64;

/// Returns the bytes that compiling a CRD takes at the most, give or take an eighth, from the JSON text of its schemas and the
/// length of its annotation. A hostile schema takes more than a hundred times its own size, one that somebody means takes
/// less than ten times.
pub fn compiling_cost(schemas: &str, annotation: usize) -> usize {
    let (mut nodes, mut items) = (0_usize, 0_usize);
    // Braces inside strings count, too: an upper bound needs no parser.
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
