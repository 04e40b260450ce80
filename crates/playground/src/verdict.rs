//! The verdicts on a write, and those on all writes together.

use crate::place::InputPlace;
use kube_unions_manifests::Document;
use kube_unions_manifests::counts::count;
use serde::Serialize;

/// An answer to a write.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewVerdict {
    /// The fate of the write.
    pub outcome: PlaygroundOutcome,
    /// The fate in one sentence, with the first reason.
    pub headline: String,
    /// True if there is an old object.
    pub is_update: bool,
    /// The words of the denial, or the reason why nothing is judged.
    pub message: Option<String>,
    /// The violations.
    pub causes: Vec<ShownCause>,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The violations that only the audit log has.
    pub audit: Vec<String>,
}

/// The fate of a write, that of most writes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PlaygroundOutcome {
    /// No union forbids it.
    Allowed,
    /// There is nothing to judge by, or not everything.
    #[default]
    NotJudged,
    /// The object is invalid, and nothing refuses it.
    StoredInvalid,
    /// The object is invalid, and it is not known whether the API server refuses it.
    Undecided,
    /// A union forbids it.
    Denied,
}

/// A violation.
#[derive(Debug, Clone, Serialize)]
pub struct ShownCause {
    /// The path of the field.
    pub path: String,
    /// The words about it.
    pub message: String,
    /// Its place in the inputs.
    pub place: Option<InputPlace>,
    /// The page of the book about the words, below the root of the site.
    pub help: Option<String>,
}

/// The verdicts on all writes, today and with kube-unions.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerdictSummary {
    /// The answer of the API server without kube-unions.
    pub today: VerdictLine,
    /// Its answer with kube-unions.
    pub with_kube_unions: VerdictLine,
}

/// A verdict in one sentence.
#[derive(Debug, Default, Serialize)]
pub struct VerdictLine {
    /// The worst of all.
    pub outcome: PlaygroundOutcome,
    /// The sentence.
    pub headline: String,
}

/// The verdicts on one of several objects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectVerdict {
    /// Kind and name.
    pub title: String,
    /// The line of the new input that it begins at.
    pub line: Option<usize>,
    /// The outcome without kube-unions.
    pub today: PlaygroundOutcome,
    /// The outcome with kube-unions.
    pub with_kube_unions: PlaygroundOutcome,
    /// The reason why it is not judged.
    pub reason: Option<String>,
    /// True if its kind has no unions, so that none can forbid it.
    #[serde(skip)]
    pub has_no_unions: bool,
}

impl ReviewVerdict {
    /// Returns the verdict on what cannot be judged.
    pub(crate) fn not_judged(reason: String) -> Self {
        Self { message: Some(reason), ..Self::default() }.finished()
    }

    /// Adds the words of a denial of an object, made of the causes.
    pub(crate) fn titled(mut self, object: &Document) -> Self {
        let (kind, name) = (object.kind.as_deref().unwrap_or("?"), object.name.as_deref().unwrap_or("?"));
        self.message = self.causes.split_first().map(|(first, others)| {
            let more = if others.is_empty() { String::new() } else { format!(", and {} more", others.len()) };
            format!("{kind} \"{name}\" is invalid: {}: {}{more}", first.path, first.message)
        });
        self.finished()
    }

    /// Writes the headline.
    pub(crate) fn finished(mut self) -> Self {
        let message = self.message.clone().unwrap_or_default();
        self.headline = match self.outcome {
            PlaygroundOutcome::Allowed => {
                let operation = if self.is_update { "update" } else { "create" };
                let warnings = match self.warnings.len() {
                    0 => String::new(),
                    number => format!(", with {}", count(number, "warning")),
                };
                format!("Allowed: no union forbids this {operation}{warnings}.")
            }
            PlaygroundOutcome::NotJudged => format!("Not judged: {message}"),
            PlaygroundOutcome::StoredInvalid => format!("Stored, and nothing refuses it: {message}"),
            PlaygroundOutcome::Undecided => format!("Perhaps denied: {message}"),
            PlaygroundOutcome::Denied => format!("Denied: {message}"),
        };
        self
    }

    pub(crate) fn line(&self) -> VerdictLine {
        VerdictLine { outcome: self.outcome, headline: self.headline.clone() }
    }
}

impl VerdictLine {
    /// Returns the verdict on several objects. `unread` documents could not be read.
    pub(crate) fn of_all(
        objects: &[ObjectVerdict],
        of: fn(&ObjectVerdict) -> PlaygroundOutcome,
        unread: usize,
    ) -> Self {
        let number = |outcome| objects.iter().filter(|it| of(it) == outcome && !it.has_no_unions).count();
        let without = objects.iter().filter(|it| it.has_no_unions).count();
        let allowed = number(PlaygroundOutcome::Allowed);
        let parts = [
            (PlaygroundOutcome::Denied, number(PlaygroundOutcome::Denied), "denied"),
            (PlaygroundOutcome::Undecided, number(PlaygroundOutcome::Undecided), "perhaps denied"),
            (PlaygroundOutcome::StoredInvalid, number(PlaygroundOutcome::StoredInvalid), "stored, though invalid"),
            (PlaygroundOutcome::NotJudged, number(PlaygroundOutcome::NotJudged), "of unknown kinds or not judged"),
            (PlaygroundOutcome::NotJudged, unread, "not readable"),
            (PlaygroundOutcome::Allowed, allowed, "allowed"),
            (PlaygroundOutcome::Allowed, without, "of kinds without unions"),
        ];
        let there = parts.iter().filter(|(_, number, _)| *number > 0);
        let nothing = if allowed == 0 { PlaygroundOutcome::NotJudged } else { PlaygroundOutcome::Allowed };
        let outcome = there.clone().map(|(outcome, ..)| *outcome).max().unwrap_or_default().max(nothing);
        // Something that is denied decides, although nothing is allowed.
        let title = match outcome {
            PlaygroundOutcome::Allowed => "Allowed",
            PlaygroundOutcome::NotJudged => "Not judged",
            PlaygroundOutcome::StoredInvalid => "Stored, and nothing refuses it",
            PlaygroundOutcome::Undecided => "Perhaps denied",
            PlaygroundOutcome::Denied => "Denied",
        };
        let listed: Vec<String> = there.map(|(_, number, words)| format!("{number} {words}")).collect();
        let total = count(objects.len() + unread, "object");
        Self { outcome, headline: format!("{title}: {total}: {}.", listed.join(", ")) }
    }
}
