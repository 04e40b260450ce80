//! Pairs the objects of two renderings, and counts those that cannot be compared.

use super::kind_rules::Kinds;
use super::trial::ObjectRenderings;
use crate::input::builtin;
use crate::input::kinds::entry_of;
use crate::input::manifest::{Document, Problem, line_about, place};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_manifests::misspelt::KnownKinds;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Group, kind, namespace and name. An object keeps it when its version changes.
type ObjectKey<'d> = (&'d str, &'d str, &'d str, &'d str);

/// The number of objects, by what happens to them.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreviewCounts {
    /// Objects of kinds with unions in both renderings.
    pub(super) compared: usize,
    /// Unions that the API server refuses.
    pub(super) refused: usize,
    /// Nulls that the API server refuses.
    pub(super) refused_nulls: usize,
    /// Invalid unions that are stored.
    pub(super) stored: usize,
    /// Invalid unions of which it is not known whether they are refused.
    pub(super) undecided: usize,
    pub(super) only_in_old: usize,
    pub(super) only_in_new: usize,
    pub(super) without_unions: usize,
    pub(super) not_looked_at: usize,
}

/// The objects of two renderings.
#[derive(Debug, Default)]
pub(super) struct Renderings<'d> {
    pub(super) pairs: Vec<(&'d CatalogEntry, ObjectRenderings<'d>)>,
    pub(super) counts: PreviewCounts,
    /// What keeps an object from being compared, a line each.
    pub(super) problems: Vec<String>,
    /// What was not looked at, a line each.
    pub(super) warnings: Vec<String>,
}

impl<'d> Renderings<'d> {
    pub(super) fn pair(kinds: &'d Kinds, old: &'d [Document], new: &'d [Document], live: &'d [Document]) -> Self {
        let mut renderings = Self::default();
        let [mut old, new, live] = [old, new, live].map(|documents| renderings.index(documents));
        let mut not_live = 0;
        let mut known = KnownKinds::new(kinds.assembly.kinds());
        let mut unknown: BTreeMap<GroupVersionKind, usize> = BTreeMap::new();
        let names: BTreeSet<(&str, &str, &str)> =
            old.keys().map(|(group, kind, _, name)| (*group, *kind, *name)).collect();
        for (key, document) in new {
            let (group, kind, _, name) = key;
            let before = old.remove(&key);
            let Some(entry) = entry_of(&kinds.assembly.catalog, document) else {
                let own = document.group_version_kind();
                if kinds.assembly.kinds().any(|it| *it == own) || builtin::is_group(group) {
                    renderings.counts.without_unions += 1;
                } else {
                    renderings.warnings.extend(known.warning(document));
                    *unknown.entry(own).or_default() += 1;
                }
                continue;
            };
            let Some(before) = before else {
                renderings.counts.only_in_new += 1;
                if names.contains(&(group, kind, name)) {
                    let message = "only in the new rendering; the old one has it in another namespace";
                    renderings.warnings.push(line_about(document, message));
                }
                continue;
            };
            if before.api_version != document.api_version {
                let [from, to] = [before, document].map(|it| it.api_version.as_deref().unwrap_or_default());
                let message = format!("not looked at: its apiVersion changes from `{from}` to `{to}`");
                renderings.warnings.push(line_about(document, &message));
                renderings.counts.not_looked_at += 1;
                continue;
            }
            // A rendering may leave the namespace to the command that applies it.
            let anywhere =
                |(other, _): &(&ObjectKey<'_>, &&Document)| (other.0, other.1, other.3) == (group, kind, name);
            let held = live.get(&key).copied().or_else(|| live.iter().find(anywhere).map(|(_, held)| *held));
            not_live += usize::from(held.is_none() && !live.is_empty());
            renderings.pairs.push((entry, ObjectRenderings { old: before, new: document, live: held }));
        }
        let has_unions = |document: &&&Document| entry_of(&kinds.assembly.catalog, document).is_some();
        renderings.counts.only_in_old = old.values().filter(has_unions).count();
        for (GroupVersionKind { group, version, kind }, number) in unknown {
            let objects = count(number, "object");
            let message =
                format!("{objects} of the kind `{kind}` of `{group}/{version}` not looked at: give its CRD by --from");
            renderings.warnings.push(message);
            renderings.counts.not_looked_at += number;
        }
        if not_live > 0 {
            let objects = count(not_live, "object");
            renderings.warnings.push(format!("{objects} not among the live ones: predicted from the old rendering"));
        }
        renderings.counts.compared = renderings.pairs.len();
        renderings
    }

    /// Returns the objects by their identity. Those without one, and the second of two, are problems.
    fn index(&mut self, documents: &'d [Document]) -> BTreeMap<ObjectKey<'d>, &'d Document> {
        let mut found: BTreeMap<ObjectKey<'d>, &'d Document> = BTreeMap::new();
        // An XRD or a ResourceGraphDefinition is an object, too.
        for document in documents.iter().filter(|it| !it.describes_kinds() || it.makes_definitions()) {
            let problem = |message: String| Problem::of_document(document, "", message).to_string();
            let (Some(kind), Some(name), true) = (&document.kind, &document.name, document.api_version.is_some())
            else {
                self.problems
                    .push(problem("not an object: `apiVersion`, `kind` or `metadata.name` is missing".to_owned()));
                continue;
            };
            let namespace = document.namespace.as_deref().unwrap_or_default();
            if [kind, name, namespace].iter().any(|text| text.contains("{{")) {
                let message = "a template is left in its name: render it first, for example with `helm template`";
                self.problems.push(problem(format!("{}: {message}", document.title())));
                continue;
            }
            let key = (document.group_version().0, kind.as_str(), namespace, name.as_str());
            if let Some(first) = found.get(&key) {
                self.problems.push(problem(format!(
                    "{} is there twice, first at {}",
                    document.title(),
                    place(first, "").trim_end_matches(':')
                )));
                continue;
            }
            found.insert(key, document);
        }
        found
    }
}

impl PreviewCounts {
    /// Returns the summary, for example `2 objects in both renderings: 1 union refused; 1 object only in the new one`.
    pub(super) fn sentence(&self) -> String {
        let faults = [
            (self.refused, "union", "refused"),
            (self.refused_nulls, "null", "refused"),
            (self.stored, "union", "stored although invalid"),
            (self.undecided, "union", "perhaps refused"),
        ];
        let faults = faults.iter().filter(|(number, ..)| *number > 0);
        let faults: Vec<String> =
            faults.map(|(number, noun, fate)| format!("{} {fate}", count(*number, noun))).collect();
        let fate = if faults.is_empty() { "every union is valid afterwards".to_owned() } else { faults.join(", ") };
        format!("{} in both renderings: {fate}{}", count(self.compared, "object"), self.not_compared())
    }

    /// Returns the objects that were not compared.
    pub(super) fn not_compared(&self) -> String {
        let rest = [
            (self.only_in_new, " only in the new rendering"),
            (self.only_in_old, " only in the old rendering"),
            (self.without_unions, " of kinds without unions"),
            (self.not_looked_at, " not looked at"),
        ];
        let rest = rest.iter().filter(|(number, _)| *number > 0);
        rest.fold(String::new(), |rest, (number, what)| format!("{rest}; {}{what}", grouped(*number)))
    }
}
