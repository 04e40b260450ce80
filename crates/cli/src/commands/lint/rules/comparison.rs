//! Compares what a union says with what the rules of its CRD say, combination by combination.

use super::reported_rule::ReportedRule;
use super::subjects::CheckedUnion;
use super::union_verdict::{UnionVerdict, judge};
use kube_unions_core::report_kinds;
use kube_unions_core::union::Form;
use kube_unions_evidence::{
    Combination, Decision, Evidence, EvidenceState, RuleFailure, TableRow, TruthTable, UnionFields,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

report_kinds! {
    /// The result of comparing a union with rules.
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    RuleVerdict:
    Agrees "agrees" Note "The rules and the union say the same.",
    TooWeak "too-weak" Error "The rules allow an object that the union rejects.",
    TooStrong "too-strong" Error "The rules reject an object that the union allows.",
    NoRules "no-rules" Note "No rule is about the union.",
    Undecided "undecided" Warning "A rule could not be evaluated.",
    Fails "fails" Note "A rule fails for an object that the union rejects, too, so nobody reads its message.",
}

impl RuleVerdict {
    pub(crate) fn words(self) -> String {
        self.name().replace('-', " ")
    }
}

/// A union with its comparison, and the place of both in the CRD's file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ComparedUnion<'s> {
    pub(crate) file: &'s Path,
    /// The name of the CRD.
    #[serde(skip)]
    pub(crate) definition: Option<&'s str>,
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    pub(crate) group: &'s str,
    pub(crate) kind: &'s str,
    pub(crate) version: &'s str,
    /// The path of the object with the union, empty for the root.
    pub(crate) path: &'s str,
    pub(crate) source: String,
    declaration: Option<&'s str>,
    /// Never empty. Several, if the rules are too weak and too strong.
    pub(crate) verdicts: BTreeSet<RuleVerdict>,
    pub(crate) disagreements: Vec<RuleDisagreement>,
    /// The reasons why combinations are undecided, without duplicates.
    pub(crate) undecided: BTreeSet<String>,
    /// True if the rules require a member, which the union does not say.
    pub(crate) requires_member: bool,
    /// The validations that name a field of the union, with their places.
    pub(crate) rules: Vec<ReportedRule>,
    /// The same validations.
    #[serde(skip)]
    evidence: Vec<Evidence>,
    /// The number of combinations that no rule rejects, and for which no object was found that every rule accepts.
    #[serde(skip)]
    samples_without_proof: usize,
}

/// A combination on which union and rules disagree. They agree on every smaller one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleDisagreement {
    pub(crate) verdict: RuleVerdict,
    /// The object at the place.
    pub(crate) object: Value,
    /// The message of the union, if it rejects the object.
    pub(crate) violation: Option<String>,
    /// The positions of the validations that reject the object in [`ComparedUnion::rules`].
    pub(crate) rejected_by: Vec<usize>,
    /// True if the rule is not false, but fails, for example because it reads a field that is not set.
    pub(crate) fails: bool,
    /// The other values of the discriminator with which the same members disagree.
    pub(crate) also: Vec<String>,
    #[serde(skip)]
    combination: Combination,
}

/// Most disagreements of a union in each direction that are reported.
const MOST_DISAGREEMENTS: usize = 16;

impl<'s> ComparedUnion<'s> {
    pub(crate) fn of(subject: &CheckedUnion<'s>) -> Self {
        let fields = subject.fields();
        let table = TruthTable::at(subject.schema, &subject.place, &fields).unwrap_or_default();
        let (line, column) = subject.document.position(&subject.place_pointer()).unzip();
        let (kind, union) = (subject.entry.gvk(), subject.union);
        let mut comparison = Self {
            file: &subject.document.file,
            definition: subject.document.name.as_deref(),
            line,
            column,
            group: &kind.group,
            kind: &kind.kind,
            version: &kind.version,
            path: union.path(),
            source: union.source().to_string(),
            declaration: union.declaration(),
            verdicts: BTreeSet::new(),
            disagreements: Vec::new(),
            undecided: BTreeSet::new(),
            requires_member: false,
            rules: table.evidence().iter().map(|evidence| ReportedRule::new(subject, evidence.clone())).collect(),
            evidence: table.evidence().to_vec(),
            samples_without_proof: 0,
        };
        let has_rules = comparison.has_rules();
        for row in table.rows() {
            let is_valid = || matches!(judge(subject, &fields, &row.combination), UnionVerdict::Valid);
            // Rules about something else are not too weak, but one may fail.
            if has_rules || (row.failure.is_some() && is_valid()) {
                comparison.compare(subject, &fields, &table, row);
            }
        }
        if !has_rules {
            comparison.verdicts.insert(RuleVerdict::NoRules);
        }
        if has_rules && !table.is_complete() {
            comparison.undecided.insert("the union has too many members or rules to try every combination".to_owned());
        }
        let disagreements = comparison.disagreements.iter().map(|it| it.verdict);
        comparison.verdicts.extend(disagreements);
        if comparison.verdicts.iter().all(|verdict| *verdict == RuleVerdict::Fails) {
            let decided = comparison.undecided.is_empty();
            comparison.verdicts.insert(if decided { RuleVerdict::Agrees } else { RuleVerdict::Undecided });
        }
        comparison
    }

    fn has_rules(&self) -> bool {
        self.evidence.iter().any(|it| match it.state {
            EvidenceState::Decides => it.is_about_fields(),
            EvidenceState::Unreadable(_) | EvidenceState::Beyond(_) => true,
            EvidenceState::Elsewhere | EvidenceState::Transition => false,
        })
    }

    fn compare(&mut self, subject: &CheckedUnion<'_>, fields: &UnionFields, table: &TruthTable, row: &TableRow) {
        let TableRow { combination, decision, failure, .. } = row;
        match (judge(subject, fields, combination), decision) {
            (UnionVerdict::Normalized, _) => {}
            (UnionVerdict::Valid, Decision::Allowed) => {
                if let Some(RuleFailure { object, rule }) = failure
                    && self.is_news(RuleVerdict::TooStrong, combination, (&[*rule], true))
                {
                    let found = RuleDisagreement::new(RuleVerdict::TooStrong, combination, object.clone());
                    self.disagreements.push(RuleDisagreement { rejected_by: vec![*rule], fails: true, ..found });
                }
            }
            (UnionVerdict::Invalid(_), Decision::Rejected { by, fails }) => {
                let is_known = |it: &RuleDisagreement| it.verdict == RuleVerdict::Fails && it.rejected_by == *by;
                if by == fails && !self.disagreements.iter().any(is_known) {
                    self.add_rejected(subject, fields, RuleVerdict::Fails, combination, (by, fails));
                }
            }
            (UnionVerdict::Valid, Decision::Rejected { by, fails }) => {
                if !self.is_about_fields(by) {
                    return;
                }
                // A rule that fails was not written to reject anything.
                if cannot_be_said(subject, combination) && by != fails && rejects_as_missing(table, combination) {
                    // Without a value, the rules require the discriminator.
                    self.requires_member |= fields.discriminator.is_none() || combination.value.is_some();
                    return;
                }
                self.add_rejected(subject, fields, RuleVerdict::TooStrong, combination, (by, fails));
            }
            (UnionVerdict::Invalid(violation), Decision::Allowed) => {
                if self.samples_without_proof >= MOST_DISAGREEMENTS
                    || !self.is_news(RuleVerdict::TooWeak, combination, (&[], false))
                {
                    return;
                }
                match TruthTable::sample(subject.schema, &subject.place, fields, combination) {
                    Some(sample) if sample.accepted => {
                        let found = RuleDisagreement::new(RuleVerdict::TooWeak, combination, sample.object);
                        self.disagreements.push(RuleDisagreement { violation: Some(violation), ..found });
                    }
                    _ => {
                        self.samples_without_proof = self.samples_without_proof.saturating_add(1);
                        self.undecided.insert(
                            "no rule rejects a combination that the union rejects, but no object was found that every rule \
                             accepts"
                                .to_owned(),
                        );
                    }
                }
            }
            (UnionVerdict::Valid | UnionVerdict::Invalid(_), Decision::Undecided { why }) => {
                self.undecided.insert(why.clone());
            }
        }
    }

    /// Adds an object that validations reject, if it is worth reporting.
    fn add_rejected(
        &mut self,
        subject: &CheckedUnion<'_>,
        fields: &UnionFields,
        verdict: RuleVerdict,
        combination: &Combination,
        (by, fails): (&[usize], &[usize]),
    ) {
        if self.is_news(verdict, combination, (by, by == fails))
            && let Some(sample) = TruthTable::sample(subject.schema, &subject.place, fields, combination)
        {
            let found = RuleDisagreement::new(verdict, combination, sample.object);
            self.disagreements.push(RuleDisagreement { rejected_by: by.to_vec(), fails: by == fails, ..found });
        }
    }

    /// Returns true if a disagreement is worth reporting: no smaller combination of the same value disagrees in the same way, by one of the
    /// same rules. A rejection is not the same as a failure. Notes the value if the same fields disagree with another value.
    fn is_news(&mut self, verdict: RuleVerdict, combination: &Combination, (by, fails): (&[usize], bool)) -> bool {
        let mut alike = 0_usize;
        for known in self.disagreements.iter_mut().filter(|known| known.verdict == verdict) {
            alike = alike.saturating_add(1);
            let is_other = !by.is_empty() && known.rejected_by.iter().all(|rule| !by.contains(rule));
            if is_other || (fails && !known.fails) {
                continue;
            }
            let Combination { value, members, unset } = &known.combination;
            let has_unset = unset.iter().all(|(name, value)| combination.unset.get(name) == Some(value));
            let smaller = has_unset && members.is_subset(&combination.members);
            if smaller && (*value == combination.value || known.knows(combination)) {
                return false;
            }
            if smaller && *members == combination.members && *unset == combination.unset {
                known.also.extend(combination.value.clone());
                return false;
            }
        }
        alike < MOST_DISAGREEMENTS
    }

    fn is_about_fields(&self, by: &[usize]) -> bool {
        by.iter().filter_map(|&position| self.evidence.get(position)).any(Evidence::is_about_fields)
    }
}

impl RuleDisagreement {
    fn new(verdict: RuleVerdict, combination: &Combination, object: Value) -> Self {
        let combination = combination.clone();
        Self { verdict, object, violation: None, rejected_by: Vec::new(), fails: false, also: Vec::new(), combination }
    }

    fn knows(&self, combination: &Combination) -> bool {
        combination.value.as_ref().is_some_and(|value| self.also.contains(value))
    }
}

/// Returns true for a combination without members. `x-kubernetes-unions` cannot reject it, so a rule may. A union that declares the
/// empty value allows it.
fn cannot_be_said(subject: &CheckedUnion<'_>, combination: &Combination) -> bool {
    let is_list = subject.union.form() == Form::List;
    let has_value = combination.value.as_ref().is_some_and(|value| !value.is_empty());
    let is_declared = || subject.union.choices().iter().any(|choice| choice.value().is_empty());
    combination.members.is_empty() && (is_list || (!has_value && !is_declared()))
}

/// Returns true if validations reject a combination without its fields that are not set, too. Otherwise they reject what a field has.
fn rejects_as_missing(table: &TruthTable, combination: &Combination) -> bool {
    let members: Vec<&str> = combination.members.iter().map(String::as_str).collect();
    matches!(table.decision(combination.value.as_deref(), &members), Some(Decision::Rejected { .. }))
}
