//! `docs/reference/messages.md`: every message of the webhook, when it comes and what to do.
//!
//! The messages of the program are violations, changes and reasons by their `Display`, and refusals by the `#[error]` attributes of their
//! enum. The page has a row for each, in their order.

use super::code;
use kube_unions_core::union::{ChangeReason, ViolationKind};
use std::sync::Arc;

const PAGE: &str = include_str!("../../../docs/reference/messages.md");
const REFUSALS: &str = include_str!("../../../src/webhook/refusal.rs");
const REVIEW_ERRORS: &str = include_str!("../../../crates/core/src/admission/error.rs");
const INSPECTIONS: [&str; 2] =
    [include_str!("../../../src/webhook/inspections/answer.rs"), include_str!("../../../src/webhook/inspections.rs")];
const REVIEWS: &str = include_str!("../../../crates/core/src/admission/review.rs");

#[test]
fn the_page_of_messages_has_a_row_for_each() {
    let [denials] = &tables("Denials")[..] else { panic!("one table of denials") };
    assert_eq!(column(denials, 0), violations().map(|kind| cell(&kind.to_string())));
    let [warnings, endings] = &tables("Warnings of allowed writes")[..] else { panic!("two tables of warnings") };
    assert_eq!(column(warnings, 0), changes().map(|reason| cell(&reason.to_string())));
    for ending in column(endings, 0) {
        assert!(REVIEWS.contains(ending.trim_matches('`')), "no message of the program: {ending}");
    }
    let [inspections] = &tables("Warnings and denials of CRDs")[..] else { panic!("one table of inspections") };
    for message in column(inspections, 0) {
        let message = message.trim_matches('`').replace("…: REASON", "{later}: {reason}");
        assert!(INSPECTIONS.concat().contains(&message), "no message of the program: {message}");
    }
    let [refusals] = &tables("Refusals")[..] else { panic!("one table of refusals") };
    assert_eq!(column(refusals, 1), error_messages(REFUSALS));
    let [bad_requests] = &tables("Bad requests")[..] else { panic!("one table of bad requests") };
    assert_eq!(column(bad_requests, 0), error_messages(REVIEW_ERRORS));
}

/// Returns the rows of each table below a heading.
fn tables(heading: &str) -> Vec<Vec<Vec<&'static str>>> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let tables = section.split("\n\n").filter(|part| part.starts_with("| "));
    let cells = |line: &'static str| line.trim_matches(['|', ' ']).split(" | ").collect();
    tables.map(|table| table.lines().skip(2).map(cells).collect()).collect()
}

/// Returns a column of a table whose rows all say when a message comes, and what to do.
fn column(table: &[Vec<&'static str>], number: usize) -> Vec<&'static str> {
    assert!(table.iter().all(|row| row.len() == number + 3 && row.iter().all(|cell| !cell.is_empty())), "{table:#?}");
    table.iter().map(|row| row[number]).collect()
}

/// Returns the cell of a message.
fn cell(message: &str) -> String {
    code(&message.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"))
}

fn name(text: &str) -> Arc<str> {
    text.into()
}

/// Returns a violation of each kind, and of both reasons for one.
fn violations() -> [ViolationKind; 11] {
    let not_selected = |unchanged| ViolationKind::NotSelected {
        discriminator: name("DISCRIMINATOR"),
        values: Arc::new([name("VALUE")]),
        unchanged,
    };
    [
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

fn changes() -> [ChangeReason; 5] {
    [
        ChangeReason::ClearedByDiscriminator { discriminator: name("DISCRIMINATOR"), value: name("VALUE") },
        ChangeReason::ClearedByMember { member: name("MEMBER") },
        ChangeReason::ClearedUnowned,
        ChangeReason::ClearedNull,
        ChangeReason::Deduced { value: name("VALUE"), member: name("MEMBER"), boolean: false },
    ]
}

/// Returns the messages of an error enum, from its source. It skips transparent ones.
fn error_messages(source: &str) -> Vec<String> {
    let mut messages = Vec::new();
    for part in source.split("#[error(").skip(1) {
        let part = part.trim_start();
        let Some(text) = part.strip_prefix('"') else { continue };
        let (message, _) = text.split_once("\")]").or_else(|| text.split_once("\"\n    )]")).unwrap();
        let message = message.replace("\\\"", "\"");
        messages.push(if message == "{0}" { "see below".to_owned() } else { cell(&message) });
    }
    messages
}
