//! The entries for kinds, and their conditions: kinds whose writes meet the same condition share an entry.

use kube_unions_core::names::{GroupVersionKind, is_dns_subdomain};
use kube_unions_core::union::Plan;
use kube_unions_policies::{EveryWrite, TouchCondition};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Most entries of a configuration with a condition of their own. The API server matches each write against every entry.
pub(super) const MOST_ENTRIES: usize = 64;

/// Most bytes of what all entries with a condition of their own repeat, CAs first of all. etcd stores at most 1.5 MiB, and rules take a part.
const MOST_REPEATED_BYTES: usize = 1 << 19;

/// The largest sum of the squares of the lengths of conditions, in bytes. An API server compiles a condition in a time that grows so: this is
/// about two seconds of a CPU, which the next write of each kind waits for.
const MOST_SQUARES: usize = 160 << 20;

/// The bytes of a rule without group, versions and resource.
const RULE: usize = 120;

/// The longest part of the name of an entry that tells a resource. The name is a DNS subdomain.
const LONGEST_LABEL: usize = 200;

/// The part of the name of the entry that kinds without a condition of their own share, if all of them have one.
pub(super) const OTHERS: &str = "others";

/// The part of the rules that one kind needs.
pub(super) struct RegisteredKind<'c> {
    pub(super) gvk: &'c GroupVersionKind,
    pub(super) plural: &'c str,
    pub(super) custom: bool,
    /// The plans of its versions.
    pub(super) plans: Vec<&'c Plan>,
    pub(super) scope: &'static str,
    /// The resources and subresources that a version with unions is written through.
    pub(super) paths: BTreeSet<String>,
    /// The served versions, those without unions included: the API server would convert an object of a version that is missing.
    pub(super) versions: BTreeSet<&'c str>,
}

/// The rules of one entry, and its condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controllers::registration) struct EntryRules {
    /// The part of the name that tells the first of its resources. `None`: every write of these resources is sent.
    pub(in crate::controllers::registration) label: Option<String>,
    /// An expression in CEL that is false for writes that are not sent.
    pub(in crate::controllers::registration) condition: Option<String>,
    pub(in crate::controllers::registration) rules: Vec<Value>,
}

/// The condition on which an API server sends a write of a kind. The metrics count kinds by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::controllers::registration) enum KindCondition {
    /// The write touches a union.
    Unions,
    /// The write changes a field of the root that has unions.
    Fields,
    /// There is none: every write is sent.
    None(Sent),
}

/// The reason why every write of a kind is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::controllers::registration) enum Sent {
    /// The settings want no condition.
    Off,
    /// A condition would miss something, or there is none.
    Needed(EveryWrite),
    /// The API server refuses the condition.
    Refused,
}

impl KindCondition {
    /// All of them.
    pub(in crate::controllers::registration) const ALL: [Self; 7] = [
        Self::Unions,
        Self::Fields,
        Self::None(Sent::Off),
        Self::None(Sent::Needed(EveryWrite::Audited)),
        Self::None(Sent::Needed(EveryWrite::Deduced)),
        Self::None(Sent::Needed(EveryWrite::TooMany)),
        Self::None(Sent::Refused),
    ];

    /// Returns the value of the label of the metric.
    pub(in crate::controllers::registration) fn name(self) -> &'static str {
        match self {
            Self::Unions => "unions",
            Self::Fields => "fields",
            Self::None(Sent::Off) => "off",
            Self::None(Sent::Needed(EveryWrite::Audited)) => "audited",
            Self::None(Sent::Needed(EveryWrite::Deduced)) => "deduced",
            Self::None(Sent::Needed(EveryWrite::TooMany)) => "too_many",
            Self::None(Sent::Refused) => "refused",
        }
    }
}

/// The conditions that entries may have.
#[derive(Debug, Clone, Copy)]
pub(in crate::controllers::registration) enum EntryConditions<'r> {
    /// None: every write is sent.
    None,
    /// Those that an API server does not refuse.
    AllBut {
        /// The expressions that it refuses.
        refused: &'r BTreeSet<String>,
        /// The bytes that every entry repeats.
        repeated: usize,
    },
}

/// Group, versions and scope of a rule.
type RuleKey<'c> = (&'c str, Vec<&'c str>, &'static str);

/// Resources and subresources, by the other fields of a rule.
type Grouped<'c> = BTreeMap<RuleKey<'c>, BTreeSet<String>>;

/// The room that is left for conditions.
pub(super) struct ConditionRoom {
    entries: usize,
    squares: usize,
}

impl ConditionRoom {
    /// Returns the room of a configuration whose entries repeat so many bytes.
    pub(super) fn whole(repeated: usize) -> Self {
        let fitting = MOST_REPEATED_BYTES.checked_div(repeated).unwrap_or(MOST_ENTRIES);
        Self { entries: fitting.min(MOST_ENTRIES), squares: MOST_SQUARES }
    }

    fn take(&mut self, condition: &str) -> bool {
        let square = condition.len().saturating_mul(condition.len());
        let left = self.entries.checked_sub(1).zip(self.squares.checked_sub(square));
        if let Some((entries, squares)) = left {
            *self = Self { entries, squares };
        }
        left.is_some()
    }
}

/// The entries of a configuration, as they are made.
pub(super) struct EntryMaker<'r> {
    conditions: EntryConditions<'r>,
    room: ConditionRoom,
    /// The number of kinds with each condition.
    pub(super) counts: BTreeMap<KindCondition, usize>,
}

impl<'r> EntryMaker<'r> {
    pub(super) fn new(conditions: EntryConditions<'r>) -> Self {
        let repeated = match conditions {
            EntryConditions::None => 0,
            EntryConditions::AllBut { repeated, .. } => repeated,
        };
        Self { conditions, room: ConditionRoom::whole(repeated), counts: BTreeMap::new() }
    }

    /// Returns the entries for kinds of one class: first that of the kinds of which every write is sent.
    pub(super) fn entries(&mut self, mut kinds: Vec<RegisteredKind<'_>>) -> Vec<EntryRules> {
        kinds.sort_by_key(|kind| kind.gvk);
        let mut alike: BTreeMap<String, (TouchCondition, Vec<RegisteredKind<'_>>)> = BTreeMap::new();
        let mut always = Vec::new();
        for kind in kinds {
            match self.condition(&kind) {
                Ok(condition) => {
                    let group = alike.entry(condition.expression().to_owned());
                    group.or_insert_with(|| (condition, Vec::new())).1.push(kind);
                }
                Err(sent) => {
                    self.count(KindCondition::None(sent), 1);
                    always.push(kind);
                }
            }
        }
        let mut alike: Vec<_> = alike.into_values().collect();
        // With the conditions for which there is room, the fewest writes are sent in vain: those that no coarse one replaces come first, and
        // then those of most kinds.
        alike.sort_by_key(|(condition, kinds)| {
            (condition.fields().is_some(), Reverse(kinds.len()), kinds.first().map(|kind| kind.gvk))
        });
        let is_in_bounds = |fields: &BTreeSet<String>| TouchCondition::of_fields(fields.clone()).is_some();
        let mut own = Vec::new();
        let (mut others, mut fields) = (Vec::new(), BTreeSet::new());
        for (condition, kinds) in alike {
            let label = kinds.first().and_then(RegisteredKind::label);
            if let Some(label) = label.filter(|_| self.room.take(condition.expression())) {
                let looks_into = condition.looks_into_fields();
                self.count(if looks_into { KindCondition::Unions } else { KindCondition::Fields }, kinds.len());
                own.push(EntryRules::of(Some(label), Some(condition.expression().to_owned()), kinds));
            } else if let Some(with_its_own) = condition.fields().map(|its_own| &fields | its_own).filter(is_in_bounds)
            {
                fields = with_its_own;
                others.extend(kinds);
            } else {
                self.count(KindCondition::None(Sent::Needed(EveryWrite::TooMany)), kinds.len());
                always.extend(kinds);
            }
        }
        match self.permitted(TouchCondition::of_fields(fields).ok_or(EveryWrite::TooMany)) {
            Ok(condition) => {
                self.count(KindCondition::Fields, others.len());
                own.push(EntryRules::of(Some(OTHERS.to_owned()), Some(condition.expression().to_owned()), others));
            }
            Err(sent) => {
                self.count(KindCondition::None(sent), others.len());
                always.extend(others);
            }
        }
        own.sort_by(|one, other| one.label.cmp(&other.label));
        let always = (!always.is_empty()).then(|| EntryRules::of(None, None, always));
        always.into_iter().chain(own).collect()
    }

    fn count(&mut self, condition: KindCondition, kinds: usize) {
        *self.counts.entry(condition).or_default() += kinds;
    }

    fn condition(&self, kind: &RegisteredKind<'_>) -> Result<TouchCondition, Sent> {
        match self.conditions {
            EntryConditions::None => Err(Sent::Off),
            EntryConditions::AllBut { .. } => self.permitted(TouchCondition::of(kind.plans.iter().copied())),
        }
    }

    fn permitted(&self, condition: Result<TouchCondition, EveryWrite>) -> Result<TouchCondition, Sent> {
        let condition = condition.map_err(Sent::Needed)?;
        match self.conditions {
            EntryConditions::AllBut { refused, .. } if refused.contains(condition.expression()) => Err(Sent::Refused),
            EntryConditions::AllBut { .. } | EntryConditions::None => Ok(condition),
        }
    }
}

impl EntryRules {
    fn of(label: Option<String>, condition: Option<String>, kinds: Vec<RegisteredKind<'_>>) -> Self {
        let mut groups = Grouped::new();
        for RegisteredKind { gvk, versions, scope, paths, .. } in kinds {
            groups.entry((&gvk.group, versions.into_iter().collect(), scope)).or_default().extend(paths);
        }
        Self { label, condition, rules: groups.into_iter().map(|(key, resources)| rule(key, resources)).collect() }
    }

    /// Returns true if the entry has all that stored rules name.
    pub(in crate::controllers::registration) fn covers(&self, stored: &Value) -> bool {
        let has = |own: &Value, kept: &Value, field: &str| {
            let [own, kept] = [own, kept].map(|rule| rule.get(field).and_then(Value::as_array));
            own.zip(kept).is_some_and(|(own, kept)| kept.iter().all(|name| own.contains(name)))
        };
        let covers =
            |own: &Value, kept: &Value| ["apiGroups", "apiVersions", "resources"].iter().all(|it| has(own, kept, it));
        stored.as_array().into_iter().flatten().all(|kept| self.rules.iter().any(|own| covers(own, kept)))
    }
}

impl RegisteredKind<'_> {
    /// Returns the bytes of rules for this kind alone. Rules that kinds share are smaller.
    pub(super) fn bytes(&self) -> usize {
        let versions = self.versions.iter().map(|version| version.len() + 3).sum::<usize>();
        self.paths.iter().map(|path| RULE + self.gvk.group.len() + path.len() + versions).sum()
    }

    /// Returns the part of the name of an entry that tells the resource. `None`: the API server would refuse the name, and with it the whole
    /// configuration, or it would be that of another entry.
    fn label(&self) -> Option<String> {
        let group = if self.gvk.group.is_empty() { String::new() } else { format!(".{}", self.gvk.group) };
        let label = format!("{}{group}", self.plural);
        let is_free = !["builtin", OTHERS].contains(&&*label) && self.plural != "builtin";
        (is_free && label.len() <= LONGEST_LABEL && is_dns_subdomain(&label)).then_some(label)
    }
}

/// Returns a rule of an entry, with every field written out.
pub(in crate::controllers::registration) fn rule<R: Into<Value>>(
    (group, versions, scope): RuleKey<'_>,
    resources: impl IntoIterator<Item = R>,
) -> Value {
    let resources: Value = resources.into_iter().collect();
    json!({
        "apiGroups": [group],
        "apiVersions": versions,
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
        "scope": scope,
    })
}
