//! `docs/reference/messages.md`: every message of the webhook, when it comes and what to do.
//!
//! The messages come from the program: violations, changes and reasons by their `Display`, refusals by the `#[error]` attributes
//! of their enum. A message without an explanation here fails the test.

use super::{assert_page, code, table};
use kube_unions_core::union::{ChangeReason, ViolationKind};
use std::fmt::Display;
use std::sync::Arc;

const INTRODUCTION: &str = "\
# Messages

Every message of the union rules and of the webhook: when it comes, and what to do. This page is generated from the program:
change the program and run `make reference`. Words in capitals and in braces stand for names and values.
";

const REFUSALS: &str = include_str!("../../../src/webhook/refusal.rs");
const REVIEW_ERRORS: &str = include_str!("../../../crates/core/src/admission/error.rs");
const INSPECTIONS: &str = include_str!("../../../src/webhook/inspections/answer.rs");
const REVIEWS: &str = include_str!("../../../crates/core/src/admission/review.rs");

/// When a message comes, and what to do about it.
type Explanation = (&'static str, &'static str);

/// The refusals by their variants: HTTP status, and explanation. `BadRequest` and `NeverFits` carry their own message.
const REFUSAL_ROWS: [(&str, u16, Explanation); 15] = [
    ("BadRequest", 400, ("The body cannot be answered.", "See the messages of bad requests below.")),
    ("NotFound", 404, ("A request to another path of the webhook port.", "Use /mutate or /validate.")),
    ("NotFoundOps", 404, ("A request to another path of the ops port.", "Use /livez, /readyz or /metrics.")),
    ("MethodNotAllowed", 405, ("A request with another method.", "Use the method that `Allow` names.")),
    (
        "BodyTimeout",
        408,
        ("The body took longer than 10 seconds.", "Check the network between the API server and the webhook."),
    ),
    ("TooLarge", 413, ("The review is longer than 7 MiB.", "Make the object smaller.")),
    ("MediaType", 415, ("The content type is not JSON.", "Send `Content-Type: application/json`.")),
    (
        "Budget",
        429,
        (
            "Other requests use all the memory of `--max-bytes-in-flight`.",
            "The API server retries by itself. If it lasts, add replicas or memory.",
        ),
    ),
    (
        "NeverFits",
        413,
        ("One review needs more memory than the whole budget.", "Split the object, or raise `--max-bytes-in-flight`."),
    ),
    (
        "Inspections",
        429,
        ("Many CRDs or UnionDeclarations are applied at the same time.", "The API server retries by itself."),
    ),
    (
        "Late",
        429,
        (
            "Large reviews are ahead that take longer than the `timeout` of this request.",
            "The API server retries by itself. If it lasts, add replicas or processors.",
        ),
    ),
    (
        "Deadline",
        504,
        (
            "The review did not get its turn, or took too long, and was given up.",
            "Send the write again. If it lasts, add replicas or processors, or split the object.",
        ),
    ),
    ("Internal", 500, ("A bug: a request ended in a panic.", "Report the location that the webhook's log names.")),
    (
        "NotReady",
        503,
        ("The webhook has just started.", "Wait until `/readyz` answers 200. If it lasts, see the log of the webhook."),
    ),
    (
        "TooSlow",
        429,
        (
            "A slow client sends a large body while memory is short.",
            "Check the network between the API server and the webhook.",
        ),
    ),
];

/// The errors of a body that is not a review. `Exhausted` never reaches a client: it becomes 413 or 429.
const BAD_REQUEST_ROWS: [(&str, Explanation); 10] = [
    ("Empty", ("The request has no body.", "Send an AdmissionReview.")),
    ("NotUtf8", ("The body is not UTF-8.", "Send JSON in UTF-8.")),
    ("Malformed", ("The body is not JSON, or a field has another type.", "Correct the field that the message names.")),
    ("Unsupported", ("The body is another object, or has another version.", "Register the webhook for `v1`.")),
    ("NoRequest", ("The review has no `request`.", "Send an AdmissionReview with a request.")),
    ("NoUid", ("The review has no uid.", "Set `request.uid`.")),
    ("TooLong", ("The body is longer than an offset can be.", "Make the object smaller.")),
    ("NoKind", ("The review does not name the kind of its object.", "Set `request.kind`.")),
    ("UnknownOperation", ("The operation is not one of the four.", "Correct `request.operation`.")),
    ("NotAnObject", ("An object is missing or has another type.", "Send the object of the request.")),
];

#[test]
fn the_page_of_messages_is_up_to_date() {
    let mut page = INTRODUCTION.to_owned();
    page +=
        "\n## Denials\n\nThe API server shows them as `KIND \"NAME\" is invalid: FIELD: MESSAGE`, with status 422.\n\n";
    page +=
        &table(["message", "when", "what to do"], violations().iter().map(|kind| row(kind, explain_violation(kind))));
    page += "\n## Warnings of allowed writes\n\nThey begin with the field.\n\n";
    page +=
        &table(["message", "when", "what to do"], changes().iter().map(|reason| row(reason, explain_change(reason))));
    page += "\nA violation that does not count ends with the reason:\n\n";
    page += &table(["ending", "when", "what to do"], let_through());
    page += "\n## Warnings and denials of CRDs and UnionDeclarations\n\n";
    page += "A denial is `FIELD: Invalid value: \"PLACE\": FAULT`. `kube-unions lint` lists the same faults with their remedies.\n\n";
    page += &table(["message", "when", "what to do"], inspections());
    page +=
        "\n## Refusals\n\nThe webhook answers them with a `Status`. With 429 and 503 the API server tries again.\n\n";
    page += &table(["status", "message", "when", "what to do"], refusals());
    page += "\n## Bad requests\n\nStatus 400. They come from a client other than the API server.\n\n";
    page += &table(["message", "when", "what to do"], bad_requests());
    assert_page("messages.md", &page);
}

fn row(message: &impl Display, (when, todo): Explanation) -> [String; 3] {
    [code(&message.to_string()), when.to_owned(), todo.to_owned()]
}

fn name(text: &str) -> Arc<str> {
    text.into()
}

fn violations() -> Vec<ViolationKind> {
    let not_selected = |unchanged| ViolationKind::NotSelected {
        discriminator: name("DISCRIMINATOR"),
        values: Arc::new([name("VALUE")]),
        unchanged,
    };
    vec![
        ViolationKind::UnknownValue { value: name("VALUE"), supported: Arc::new([name("A"), name("B")]) },
        ViolationKind::DiscriminatorRequired { member: name("MEMBER") },
        ViolationKind::OneRequired { members: Arc::new([name("MEMBER"), name("OTHER")]) },
        ViolationKind::ChoiceRequired { supported: Arc::new([name("A"), name("B")]) },
        ViolationKind::MemberRequired { discriminator: name("DISCRIMINATOR"), value: name("VALUE") },
        not_selected(false),
        not_selected(true),
        ViolationKind::TooMany { set: Arc::new([name("MEMBER"), name("OTHER")]) },
        ViolationKind::SeveralApplied { members: Arc::new([name("MEMBER"), name("OTHER")]) },
        ViolationKind::NotSelectedApplied {
            discriminator: name("DISCRIMINATOR"),
            value: name("VALUE"),
            members: Arc::new([name("MEMBER")]),
        },
        ViolationKind::Contested { member: name("MEMBER"), others: Arc::new([name("OTHER")]) },
    ]
}

fn explain_violation(kind: &ViolationKind) -> Explanation {
    match kind {
        ViolationKind::UnknownValue { .. } => {
            ("The discriminator has a value that no member has.", "Use a value of the list.")
        }
        ViolationKind::DiscriminatorRequired { .. } => {
            ("A member is set, and the discriminator is empty.", "Set the discriminator to the member's value.")
        }
        ViolationKind::OneRequired { .. } => {
            ("No member is set, and the UnionDeclaration has `required: true`.", "Set one of the members.")
        }
        ViolationKind::ChoiceRequired { .. } => (
            "Neither the discriminator nor a member is set, and the UnionDeclaration has `required: true`.",
            "Set the discriminator to a value of the list.",
        ),
        ViolationKind::MemberRequired { .. } => {
            ("The discriminator selects a member that is not set.", "Set the member, or change the discriminator.")
        }
        ViolationKind::NotSelected { unchanged: false, .. } => (
            "A member is set that the discriminator does not select.",
            "Remove the member, or change the discriminator.",
        ),
        ViolationKind::NotSelected { unchanged: true, .. } => (
            "An update sets another member and leaves the discriminator.",
            "Remove the member. To switch to it, change the discriminator as well; the webhook then clears the old member.",
        ),
        ViolationKind::TooMany { .. } => (
            "Several members are set, and nothing tells which one counts.",
            "Remove all but one, or set the discriminator.",
        ),
        ViolationKind::SeveralApplied { .. } => (
            "The manifest that is applied sets several members. Each apply would put back what another one cleared.",
            "Keep one of them in the manifest.",
        ),
        ViolationKind::NotSelectedApplied { .. } => (
            "The manifest that is applied sets the discriminator, and a member that its value does not select.",
            "Remove the member from the manifest, or set it to null to clear the member of another client.",
        ),
        ViolationKind::Contested { .. } => (
            "The manifest is applied again, and its member was cleared since by the manifest of another field manager.",
            "Decide which of the two manifests sets a member, and remove it from the other one.",
        ),
    }
}

fn changes() -> [ChangeReason; 3] {
    [
        ChangeReason::ClearedByDiscriminator { discriminator: name("DISCRIMINATOR"), value: name("VALUE") },
        ChangeReason::ClearedByMember { member: name("MEMBER") },
        ChangeReason::Deduced { value: name("VALUE"), member: name("MEMBER"), boolean: false },
    ]
}

fn explain_change(reason: &ChangeReason) -> Explanation {
    match reason {
        ChangeReason::ClearedByDiscriminator { .. } => (
            "The new discriminator does not select the old member.",
            "Nothing. Remove the member from your manifest to avoid it.",
        ),
        ChangeReason::ClearedByMember { .. } => {
            ("An update sets another member.", "Nothing. Remove the old member from your manifest to avoid it.")
        }
        ChangeReason::Deduced { .. } => (
            "A member is set, and the discriminator is empty.",
            "Nothing. Set the discriminator in your manifest to avoid it.",
        ),
        other => panic!("`{other}` has no explanation"),
    }
}

fn let_through() -> Vec<[String; 3]> {
    let rows = [
        (
            "let through because the union did not change",
            "The old object has the same violation.",
            "Correct the object when you can.",
        ),
        (
            "let through because its declaration only warns",
            "The declaration has the action `Warn`.",
            "Correct the object before the declaration denies.",
        ),
    ];
    rows.map(|(message, when, todo)| {
        assert!(REVIEWS.contains(message), "the message has changed: {message}");
        [code(message), when.to_owned(), todo.to_owned()]
    })
    .to_vec()
}

fn inspections() -> Vec<[String; 3]> {
    let rows = [
        (
            "not checked, {later}: {reason}",
            "not checked, …: REASON",
            "The object was allowed, and its unions were not checked.",
            "Look at the condition of the UnionDeclaration, or run `kube-unions lint` with the CRD.",
        ),
        (
            "it has too many entries",
            "it has too many entries",
            "The reason of `not checked`: the check would need more than 32 MiB.",
            "Split the declaration.",
        ),
        (
            "the cluster did not answer in time",
            "the cluster did not answer in time",
            "The reason of `not checked`: the schema of the target did not arrive within 3 seconds.",
            "Look at the condition of the UnionDeclaration.",
        ),
    ];
    let sources = [INSPECTIONS, include_str!("../../../src/webhook/inspections.rs")].concat();
    rows.map(|(text, message, when, todo)| {
        assert!(sources.contains(text), "the message has changed: {text}");
        [code(message), when.to_owned(), todo.to_owned()]
    })
    .to_vec()
}

fn refusals() -> Vec<[String; 4]> {
    let messages = error_messages(REFUSALS);
    assert_eq!(messages.len(), REFUSAL_ROWS.len(), "each refusal has an explanation: {messages:?}");
    let row = |(variant, message): (String, String)| {
        let row = REFUSAL_ROWS.iter().find(|(of, ..)| *of == variant);
        let (_, status, (when, todo)) = row.unwrap_or_else(|| panic!("`{variant}` has no explanation"));
        let message = if message == "{0}" { "see below".to_owned() } else { code(&message) };
        [status.to_string(), message, (*when).to_owned(), (*todo).to_owned()]
    };
    messages.into_iter().map(row).collect()
}

fn bad_requests() -> Vec<[String; 3]> {
    let messages = error_messages(REVIEW_ERRORS);
    assert_eq!(messages.len(), BAD_REQUEST_ROWS.len(), "each error has an explanation: {messages:?}");
    let row = |(variant, message): (String, String)| {
        let row = BAD_REQUEST_ROWS.iter().find(|(of, _)| *of == variant);
        let (_, explanation) = row.unwrap_or_else(|| panic!("`{variant}` has no explanation"));
        self::row(&message, *explanation)
    };
    messages.into_iter().map(row).collect()
}

/// Returns the variants of an error enum with their messages, from its source. It skips transparent ones.
fn error_messages(source: &str) -> Vec<(String, String)> {
    let mut messages = Vec::new();
    for part in source.split("#[error(").skip(1) {
        let part = part.trim_start();
        let Some(text) = part.strip_prefix('"') else { continue };
        let (message, rest) = text.split_once("\")]").or_else(|| text.split_once("\"\n    )]")).unwrap();
        let rest = rest.trim_start();
        let variant: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        messages.push((variant, message.replace("\\\"", "\"")));
    }
    messages
}
