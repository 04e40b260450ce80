//! Pairs the objects of two renderings, and counts those that cannot be compared.

use super::kind_rules::Kinds;
use super::trial::ObjectRenderings;
use crate::input::kinds::entry_of;
use crate::input::manifest::{Document, Problem, line_about, place};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_manifests::is_built_in_group;
use kube_unions_manifests::misspelt::KnownKinds;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The identity of an object, which it keeps when its version changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ObjectKey<'d> {
    group: &'d str,
    kind: &'d str,
    name: &'d str,
    /// Empty if the document leaves it to the command that applies it.
    namespace: &'d str,
}

type Documents<'d> = BTreeMap<ObjectKey<'d>, &'d Document>;

impl<'d> ObjectKey<'d> {
    fn id(&self) -> [&'d str; 3] {
        [self.group, self.kind, self.name]
    }

    /// Returns true if both may be one object, because a document leaves the namespace out.
    fn may_be(&self, other: &Self) -> bool {
        self.id() == other.id() && (self.namespace.is_empty() || other.namespace.is_empty())
    }
}

/// Takes the old documents of the new objects, by the identity of the new ones. An object without a namespace is the one of that name with
/// a namespace, if there are no others.
fn take_same<'d>(old: &mut Documents<'d>, new: &Documents<'d>) -> Documents<'d> {
    let mut found: Documents<'d> = new.keys().filter_map(|key| Some((*key, old.remove(key)?))).collect();
    let rest: Documents<'d> =
        new.iter().filter(|(key, _)| !found.contains_key(key)).map(|(key, it)| (*key, *it)).collect();
    for key in rest.keys() {
        let before: Vec<ObjectKey<'d>> = of_name(old, key).map(|(other, _)| *other).take(2).collect();
        if let [one] = before[..]
            && one.may_be(key)
            && of_name(&rest, key).count() == 1
        {
            found.extend(old.remove(&one).map(|document| (*key, document)));
        }
    }
    found
}

/// Returns the documents of this name in any namespace.
fn of_name<'m, 'd>(
    documents: &'m Documents<'d>,
    key: &ObjectKey<'d>,
) -> impl Iterator<Item = (&'m ObjectKey<'d>, &'m &'d Document)> {
    let first = ObjectKey { namespace: "", ..*key };
    documents.range(first..).take_while(move |(other, _)| other.id() == first.id())
}

/// The number of objects, by what happens to them.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreviewCounts {
    /// Objects of kinds with unions in both renderings that were compared.
    pub(super) compared: usize,
    /// Objects of kinds with unions only in the new rendering that were judged as the API server judges their create.
    pub(super) only_in_new: usize,
    /// Unions that the API server refuses.
    pub(super) refused: usize,
    /// Nulls that the API server refuses.
    pub(super) refused_nulls: usize,
    /// Changes of unions that the API server refuses in every update.
    pub(super) refused_changes: usize,
    /// Invalid unions that are stored.
    pub(super) stored: usize,
    /// Invalid unions of which it is not known whether they are refused.
    pub(super) undecided: usize,
    /// Unions with a variable or a part of a template in place of a choice.
    pub(super) left_over: usize,
    pub(super) only_in_old: usize,
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
    /// Pairs the documents of `[old, new, live]`. `namespace` is that of objects without one.
    pub(super) fn pair(kinds: &'d Kinds, documents: [&'d [Document]; 3], namespace: Option<&'d str>) -> Self {
        let mut renderings = Self::default();
        let [mut old, new, live] =
            documents.map(|documents| renderings.index(documents, namespace.unwrap_or_default()));
        let mut earlier = take_same(&mut old, &new);
        let mut not_live = 0;
        let mut known = KnownKinds::new(kinds.assembly.kinds());
        let mut unknown: BTreeMap<GroupVersionKind, usize> = BTreeMap::new();
        for (key, document) in new {
            let before = earlier.remove(&key);
            let Some(entry) = entry_of(&kinds.assembly.catalog, document) else {
                if let Some(problem) = known.problem(document, |_| true) {
                    renderings.problems.push(problem.to_string());
                    continue;
                }
                let own = document.group_version_kind();
                if kinds.assembly.kinds().any(|it| *it == own) || is_built_in_group(key.group) {
                    renderings.counts.without_unions += 1;
                } else {
                    renderings.warnings.extend(known.warning(document));
                    *unknown.entry(own).or_default() += 1;
                }
                continue;
            };
            if before.is_none() && of_name(&old, &key).next().is_some() {
                let message = "only in the new rendering; the old one has it in another namespace \
                               (--namespace names that of objects without one)";
                renderings.warnings.push(line_about(document, message));
            }
            if let Some(before) = before.filter(|before| before.api_version != document.api_version) {
                let [from, to] = [before, document].map(|it| it.api_version.as_deref().unwrap_or_default());
                let message = format!("not looked at: its apiVersion changes from `{from}` to `{to}`");
                renderings.warnings.push(line_about(document, &message));
                renderings.counts.not_looked_at += 1;
                continue;
            }
            let mut held = of_name(&live, &key).filter(|(other, _)| other.may_be(&key)).map(|(_, held)| *held);
            let held = live.get(&key).copied().or_else(|| held.next());
            not_live += usize::from(held.is_none() && before.is_some() && !live.is_empty());
            *renderings.counts.judged(before.is_some()) += 1;
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
        renderings
    }

    /// Returns the objects by their identity, where `otherwise` is the namespace of objects without one. Those without an identity, and the
    /// second of two, are problems.
    fn index(&mut self, documents: &'d [Document], otherwise: &'d str) -> Documents<'d> {
        let mut found = Documents::new();
        // A CRD, an XRD or a ResourceGraphDefinition is an object, too.
        for document in documents.iter().filter(|it| !it.is_declaration() && !it.is_openapi()) {
            let problem = |message: String| Problem::of_document(document, "", message).to_string();
            let (Some(kind), Some(name), true) = (&document.kind, &document.name, document.api_version.is_some())
            else {
                self.problems
                    .push(problem("not an object: `apiVersion`, `kind` or `metadata.name` is missing".to_owned()));
                continue;
            };
            let namespace = document.namespace.as_deref().unwrap_or(otherwise);
            if [kind, name, namespace].iter().any(|text| text.contains("{{")) {
                let message = "a template is left in its name: render it first, for example with `helm template`";
                self.problems.push(problem(format!("{}: {message}", document.title())));
                continue;
            }
            if let Some(of_no_kind) = Problem::of_left_over_kind(document) {
                self.problems.push(of_no_kind.to_string());
                continue;
            }
            let key = ObjectKey { group: document.group_version().0, kind, name, namespace };
            if let Some(first) = found.get(&key) {
                let first = place(first, "");
                let first = first.trim_end_matches(':');
                if is_hook(document) {
                    let message = format!("not looked at: a hook of Helm of the same name is at {first}");
                    self.warnings.push(line_about(document, &message));
                    self.counts.not_looked_at += 1;
                } else {
                    self.problems.push(problem(format!("{} is there twice, first at {first}", document.title())));
                }
                continue;
            }
            found.insert(key, document);
        }
        found
    }
}

/// Returns true for a hook of Helm. A chart may have one of each name for each event.
fn is_hook(document: &Document) -> bool {
    let object: Option<Value> = serde_json::from_str(&document.text).ok();
    object.is_some_and(|object| object.pointer("/metadata/annotations/helm.sh~1hook").is_some())
}

impl PreviewCounts {
    /// Returns the number of the objects that are in both renderings, or only in the new one.
    pub(super) fn judged(&mut self, in_both: bool) -> &mut usize {
        if in_both { &mut self.compared } else { &mut self.only_in_new }
    }

    /// Returns the summary, for example `2 objects in both renderings: 1 union refused; 1 of kinds without unions`.
    pub(super) fn sentence(&self) -> String {
        let faults = [
            (self.refused, "union", "refused"),
            (self.refused_nulls, "null", "refused"),
            (self.refused_changes, "change", "refused"),
            (self.stored, "union", "stored although invalid"),
            (self.undecided, "union", "perhaps refused"),
            (self.left_over, "union", "undecided"),
        ];
        let faults = faults.iter().filter(|(number, ..)| *number > 0);
        let faults: Vec<String> =
            faults.map(|(number, noun, fate)| format!("{} {fate}", count(*number, noun))).collect();
        let judged = [(self.compared, "in both renderings"), (self.only_in_new, "only in the new rendering")];
        let judged = judged.iter().filter(|(number, _)| *number > 0);
        let judged: Vec<String> =
            judged.map(|(number, place)| format!("{} {place}", count(*number, "object"))).collect();
        let fate = match (judged.is_empty(), faults.is_empty()) {
            (true, _) => return format!("no object was judged{}", self.not_judged()),
            (false, true) => "every union is valid afterwards".to_owned(),
            (false, false) => faults.join(", "),
        };
        format!("{}: {fate}{}", judged.join(", "), self.not_judged())
    }

    /// Returns the objects that were not judged.
    pub(super) fn not_judged(&self) -> String {
        let rest = [
            (self.only_in_old, " only in the old rendering"),
            (self.without_unions, " of kinds without unions"),
            (self.not_looked_at, " not looked at"),
        ];
        let rest = rest.iter().filter(|(number, _)| *number > 0);
        rest.fold(String::new(), |rest, (number, what)| format!("{rest}; {}{what}", grouped(*number)))
    }
}
