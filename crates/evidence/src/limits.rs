//! The limits of a table. Beyond a limit a combination is undecided; nothing is guessed.

/// Longest rule that is read, in bytes.
pub const LONGEST_RULE: usize = 8 << 10;

/// Deepest expression that is evaluated.
pub const DEEPEST_EXPRESSION: usize = 64;

/// The stack of the thread that reads and evaluates rules, in bytes. The parser of the library needs up to 140 KiB for a level
/// of brackets, without optimisation.
pub(crate) const STACK: usize = 64 << 20;

/// Most rules and schema validations that a table considers.
pub const MOST_EVIDENCE: usize = 256;

/// Most combinations of a table.
pub const MOST_COMBINATIONS: usize = 4096;

/// Most judgements of a table: combinations times validations.
pub const MOST_JUDGEMENTS: usize = 100_000;

/// Most steps of one table, of one sample, or of one search for unions. A step is a part of a validation that is evaluated once,
/// or is searched for fields.
pub const MOST_STEPS: usize = 16 << 20;

/// The reason why a combination is undecided after [`MOST_STEPS`].
pub(crate) const TOO_MANY_STEPS: &str = "the validations are too long to try every combination";

/// Most members of a union of which a table has every combination. With more members, it has none, one, two and all of them.
pub const MOST_FREE_MEMBERS: usize = 6;

/// Most members of a union with a discriminator whose pairs are all combined with each value. With more members, a table has
/// the pairs with the selected member only.
pub const MOST_PAIRED_MEMBERS: usize = 12;

/// Most levels above the place whose validations are considered.
pub const MOST_LEVELS: usize = 16;

/// Most presence tests of other fields whose results are tried in all combinations, in one part of a rule.
pub const MOST_OPEN_TESTS: usize = 8;

/// Deepest nesting of `allOf`, `anyOf`, `oneOf` and `not`, and of samples.
pub const DEEPEST_SCHEMA: usize = 32;

/// Most objects of a schema in which unions are looked for.
pub const MOST_PLACES: usize = 100_000;

/// Deepest object in which unions are looked for.
pub const DEEPEST_PLACE: usize = 64;

/// Most groups of fields of a schema that are examined.
pub const MOST_PROPOSALS: usize = 2048;

/// Most combinations of a table for which objects are tried whose contents make a rule fail.
pub const MOST_FAILURES_TRIED: usize = 256;

/// Most sample objects that are tried for one combination.
pub const MOST_SAMPLES: usize = 96;

/// Most fields of a member, and most other fields, that are tried one by one to find an object for which a rule fails.
pub const MOST_FIELDS_TRIED: usize = 8;
