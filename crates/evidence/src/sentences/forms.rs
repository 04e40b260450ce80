//! The forms of sentences about fields, as patterns.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentenceForm {
    /// The field with the description excludes those of the list.
    Others,
    /// The fields behind the words exclude each other.
    Group,
    /// The fields of the object with the description exclude each other.
    Whole,
    /// The field of the first group excludes those of the second one.
    Combination,
    /// The fields behind the words exclude each other, if all are structs.
    Structs,
    /// The fields before the words exclude each other.
    GroupBefore,
    /// The words name the group of the field with the description.
    Member,
    /// The field with the description and those before the words are set together.
    Together,
    /// The values behind the words select the field with the description.
    Only,
    /// All values but those behind the words select it.
    Except,
    /// The fields before the words are used in place of those behind them. The field with the description is on the side without a name.
    Precedence,
}

/// The forms of sentences. A list of fields is behind the words, or where the words have a group. The words in capitals are
/// [`PARTS`].
pub(super) const FORMS: [(SentenceForm, &str); 34] = [
    (SentenceForm::Others, r"mutually[ -]exclusive (?:\w+ )?(?:with|to|of)\b"),
    (SentenceForm::Others, r"\bexclusive (?:with|of)\b"),
    (SentenceForm::Others, r"(?:incompatible|not compatible|\bconflicts) with\b"),
    (SentenceForm::Others, r"\balternative (?:to|for)\b"),
    (SentenceForm::Others, r"(?:can|may) be SET (?:instead|in place) of\b"),
    (SentenceForm::Others, r"\bone[ -]of (?:the )?fields? with\b"),
    (SentenceForm::Member, r"\bone[ -]of (?:the )?fields? (?:of|with) (\w+)"),
    (
        SentenceForm::Others,
        r"NOT be (?:SET|combined)(?: together| along| alongside| in combination| in conjunction| simultaneously)? with\b",
    ),
    (SentenceForm::Others, r"NOT be SET (?:at the same time (?:as|with)|alongside|in addition to)\b"),
    (SentenceForm::Others, r"NOT be SET (?:in|on) the same \w+ (?:as|with)\b"),
    (SentenceForm::Others, r"(?:NOT be SET|MUST be UNSET) (?:if|when) (.*?) (?:is|are) (?:also )?(?:SET|not empty)"),
    (SentenceForm::Others, r"\b(?:if|when) (?:this (?:field )?is )?SET,? (.*?) (?:NOT be SET|MUST be UNSET)$"),
    (
        SentenceForm::Others,
        r"\b(?:if|when) (.*?) (?:is|are) (?:also )?(?:SET|not empty),? (?:this(?: \w+)?|it) (?:NOT be SET|MUST be UNSET)",
    ),
    (SentenceForm::Others, r"\beither this(?: field)? or (.*?) (?:can|may) be SET"),
    (SentenceForm::Group, r"(?:at most|no more than|exactly|precisely|only|just) one (?:of|from|between)\b"),
    (
        SentenceForm::Group,
        r"(?:NOT|not (?:allowed|permitted|possible|valid) to|do not|don't|error to) (?:define|have|provide|set|specify|use) both\b",
    ),
    (SentenceForm::Group, r"^(?:choose|provide|set|specify|use) either\b"),
    (SentenceForm::Group, r"\bmust be either\b"),
    (SentenceForm::Group, r"^one of (.*?) (?:MUST|can|may) be SET"),
    (SentenceForm::Group, r"\beither (.*?) (?:can|may) be SET"),
    (SentenceForm::Structs, r"\b(?:(?:reference|refers?|points?) to|can|may) either\b"),
    (
        SentenceForm::Group,
        r"\bone of (.*?) (?:is|are|must be) \w+,? (?:but|and) (?:they|these|both) are mutually[ -]exclusive\b",
    ),
    (
        SentenceForm::Combination,
        r"\beither (\w+) or (?:a |the )?combination of (.*?) (?:MUST|can|may) be SET,? but not both\b",
    ),
    (
        SentenceForm::Whole,
        r"(?:at most|no more than|exactly|precisely|only) one(?: of (?:its|the|them|these|those)(?: \w+)?| \w+)? (?:MUST|can|may) be SET",
    ),
    (SentenceForm::GroupBefore, r"\b(?:are|is) mutually[ -]exclusive(?:(?: \w+)?\s*$|,| -| and\b)"),
    (SentenceForm::GroupBefore, r"NOT (?:both )?be SET (?:together|at the same time|simultaneously)"),
    (SentenceForm::GroupBefore, r"NOT (?:both be|be both) SET"),
    (SentenceForm::GroupBefore, r"NOT co-?exist"),
    (
        SentenceForm::GroupBefore,
        r"(?: (?:MUST|can|may) be SET)?,? (?:but )?not both(?:$|,| simultaneously| at the same time)",
    ),
    (SentenceForm::Together, r"(?:must|should|have to) (?:(?:all |both )?be SET together|also be SET)"),
    (
        SentenceForm::Only,
        r"(?:\bonly\b(?: [\w/-]+){0,5}? (?:if|when)(?: and only (?:if|when))?|\bif and only if|\brequires) (?:the )?IS",
    ),
    (
        SentenceForm::Only,
        r#"\bonly (?:be )?(?:allowed|applicable|available|supported|used|valid) (?:for|with) (?:the )?[`'"]?(\w+)[`'"]?(?: of)?\b"#,
    ),
    (SentenceForm::Except, r"NOT be SET (?:if|when) (?:the )?IS"),
    (SentenceForm::Precedence, r"\b(?:takes|has) (?:the )?precedence\b( over\b)?"),
];

/// The parts of the patterns of [`FORMS`]: a prohibition, a duty, participles, and a discriminator, with what is between it and a
/// list of its values.
pub(super) const PARTS: [(&str, &str); 5] = [
    ("NOT", "(?:can ?not|can't|may not|must not|should not)"),
    ("MUST", "(?:must|should|has to|have to|needs? to)"),
    ("UNSET", "(?:empty|left empty|unset|left unset|omitted|blank|nil)"),
    ("SET", "(?:set|used|specified|provided|defined|configured|supplied|given|present|enabled)"),
    ("IS", r#"[`'"]?(?:\w*\.)*(\w+)[`'"]?(?: field)? ?(?:=+|(?:is|to be)(?: set to| equal to)?\b|equals\b)"#),
];
