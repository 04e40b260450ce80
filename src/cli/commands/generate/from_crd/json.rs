//! Prints proposals as JSON for programs.

use super::{VersionProposals, path};
use crate::cli::report::tree::{ChoiceItem, MemberItem};
use kube_unions_evidence::{Evidence, EvidenceKind, ProposedChoice, ProposedUnion};
use serde_json::{Value, json};

/// Returns a list with an item for the versions of each CRD that are alike.
pub(super) fn print(all: &[VersionProposals<'_>]) -> anyhow::Result<String> {
    let all: Vec<Value> = all.iter().map(VersionProposals::json).collect();
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

impl VersionProposals<'_> {
    fn json(&self) -> Value {
        let unions = |unions: &[ProposedUnion]| unions.iter().map(|union| self.union(union)).collect::<Vec<_>>();
        let doubts = self.proposals.doubts.iter();
        let doubts = doubts.map(|it| json!({"path": it.path, "fields": it.fields, "why": it.why})).collect::<Vec<_>>();
        json!({
            "file": (!self.is_on_cluster).then_some(&self.document.file),
            "definition": self.definition.name(),
            "group": self.definition.group(),
            "kind": self.definition.kind(),
            // Empty for all that are served.
            "versions": self.versions,
            "unions": unions(&self.proposals.unions),
            "podTemplates": self.proposals.pod_templates,
            "doubts": doubts,
            // Unions that no validation enforces.
            "suggestions": unions(&self.suggestions),
        })
    }

    fn union(&self, union: &ProposedUnion) -> Value {
        let choices = union.choices.iter().map(choice).collect::<Vec<_>>();
        json!({
            "path": union.path,
            "discriminator": union.discriminator,
            "members": union.members,
            "choices": choices,
            "required": union.exactly_one,
            "emptyIsUnset": union.empty_is_unset,
            // True in a list whose items have no keys: nothing is cleared there.
            "keyless": union.keyless,
            // True if a rule compares the union with the old object.
            "immutable": union.immutable,
            "evidence": union.evidence.iter().map(|it| self.evidence(it)).collect::<Vec<_>>(),
        })
    }

    fn evidence(&self, evidence: &Evidence) -> Value {
        let (line, column) = self.position(evidence).unzip();
        let (kind, text) = match &evidence.kind {
            EvidenceKind::Rule(_) => ("rule", &evidence.text),
            EvidenceKind::Keyword(keyword) => ("keyword", keyword),
            EvidenceKind::Description => ("description", &evidence.text),
        };
        json!({
            "line": line,
            "column": column,
            "path": path(evidence),
            "pointer": format!("{}{}", self.pointer, evidence.position()),
            "kind": kind,
            "text": text,
            "message": evidence.message,
        })
    }
}

fn choice(choice: &ProposedChoice) -> ChoiceItem<'_> {
    let members = choice.members.iter();
    let members = members.map(|it| MemberItem { name: &it.name, optional: it.optional, evidence: None });
    ChoiceItem { value: &choice.value, members: members.collect() }
}
