//! Pairs the objects of two renderings, and counts those that cannot be compared.

use super::apply_way::ApplyWay;
use super::hooks::{Hook, HookClient, ObjectRefusal, is_helm_hook};
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

/// Returns what belongs to this name in any namespace.
fn of_name<'m, 'd, V>(
    objects: &'m BTreeMap<ObjectKey<'d>, V>,
    key: &ObjectKey<'d>,
) -> impl Iterator<Item = (&'m ObjectKey<'d>, &'m V)> {
    let first = ObjectKey { namespace: "", ..*key };
    objects.range(first..).take_while(move |(other, _)| other.id() == first.id())
}

/// Returns what belongs to an object, or to the one of its name if one of both leaves the namespace out.
fn find_same<'m, 'd, V>(objects: &'m BTreeMap<ObjectKey<'d>, V>, key: &ObjectKey<'d>) -> Option<&'m V> {
    let same = || of_name(objects, key).find(|(other, _)| other.may_be(key)).map(|(_, found)| found);
    objects.get(key).or_else(same)
}

/// The objects of one side, by what the client takes them for.
#[derive(Debug, Default)]
struct RenderedObjects<'d> {
    objects: Documents<'d>,
    /// Their names may be empty, as those of `unnamed` are: the API server generates them.
    hooks: BTreeMap<ObjectKey<'d>, Vec<(&'d Document, Hook)>>,
    unnamed: Vec<&'d Document>,
    /// The number of documents that are not looked at, because another one has their identity.
    passed_over: usize,
}

impl<'d> RenderedObjects<'d> {
    /// Takes the document that has the name of an object. A name that is to be generated is no name.
    fn take(&mut self, key: &ObjectKey<'d>) -> Option<&'d Document> {
        let hooks = if key.name.is_empty() { None } else { self.hooks.remove(key) };
        hooks.and_then(|hooks| Some(hooks.first()?.0)).or_else(|| self.objects.remove(key))
    }

    /// Returns the hooks that are still there after a write that ran them.
    fn left_hooks(&self) -> Documents<'d> {
        let all = self.hooks.iter().flat_map(|(key, hooks)| hooks.iter().map(|it| (*key, it)));
        let left = all.filter(|(_, (_, hook))| hook.has_run && !hook.deletes.after);
        left.map(|(key, (document, _))| (key, *document)).collect()
    }

    /// Returns true if the side has an object of the name.
    fn has(&self, key: &ObjectKey<'d>) -> bool {
        find_same(&self.objects, key).is_some() || find_same(&self.hooks, key).is_some()
    }
}

/// Returns what becomes of a hook that runs after the hooks and the other objects of the old rendering, with the live objects.
fn of_hook<'d>(
    way: ApplyWay,
    (key, document, hook): (&ObjectKey<'d>, &'d Document, Hook),
    [left_hooks, objects, live]: [&Documents<'d>; 3],
) -> ObjectRenderings<'d> {
    let old = find_same(left_hooks, key).or_else(|| find_same(objects, key).filter(|_| hook.meets_objects));
    let held = find_same(live, key);
    let is_there = if live.is_empty() { old.is_some() } else { held.is_some() };
    let created = ObjectRenderings { old: None, new: document, live: None, is_hook: true, refusal: None };
    if key.name.is_empty() {
        ObjectRenderings { refusal: way.refused_generated_name(Some(hook)), ..created }
    } else if hook.deletes.before || !is_there {
        created
    } else if way == ApplyWay::Helm {
        ObjectRenderings { refusal: Some(ObjectRefusal::AlreadyExists), ..created }
    } else {
        ObjectRenderings { old: old.copied(), live: held.copied(), ..created }
    }
}

/// The number of objects, by what happens to them.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreviewCounts {
    /// Objects of kinds with unions in both renderings that were compared.
    pub(super) compared: usize,
    /// Objects of kinds with unions only in the new rendering that were judged as the API server judges their create.
    pub(super) only_in_new: usize,
    /// Hooks of kinds with unions that were judged in the same way.
    pub(super) hooks: usize,
    /// Unions that the API server refuses.
    pub(super) refused: usize,
    /// Objects that the client refuses.
    pub(super) refused_objects: usize,
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
    /// The number of objects of each kind that is not known.
    unknown: BTreeMap<GroupVersionKind, usize>,
}

impl<'d> Renderings<'d> {
    /// Pairs the documents of `[old, new, live]` for a way to apply the new ones. `namespace` is that of objects without one.
    pub(super) fn pair(
        kinds: &'d Kinds,
        way: ApplyWay,
        [old, new, live]: [&'d [Document]; 3],
        namespace: Option<&'d str>,
    ) -> Self {
        let client = way.hook_client(!old.is_empty() || !live.is_empty());
        let mut renderings = Self::default();
        let mut read = |documents, client| renderings.read(documents, namespace.unwrap_or_default(), client);
        let [mut old, new] = [old, new].map(|documents| read(documents, client));
        let live = read(live, None).objects;
        let left_hooks = old.left_hooks();
        let mut known = KnownKinds::new(kinds.assembly.kinds());
        let mut idle = 0;
        let hooks =
            new.hooks.iter().flat_map(|(key, hooks)| hooks.iter().map(move |(document, hook)| (key, *document, *hook)));
        for (key, document, hook) in hooks {
            let Some(entry) = renderings.entry(kinds, &mut known, document) else { continue };
            if !hook.runs {
                idle += 1;
                continue;
            }
            renderings.push(entry, of_hook(way, (key, document, hook), [&left_hooks, &old.objects, &live]));
        }
        let mut earlier = take_same(&mut old.objects, &new.objects);
        old.objects.retain(|key, _| find_same(&new.hooks, key).is_none());
        let mut not_live = 0;
        for (key, document) in &new.objects {
            let Some(entry) = renderings.entry(kinds, &mut known, document) else { continue };
            let held = find_same(&live, key).copied();
            let mut before = earlier.remove(key);
            let mut refusal = None;
            // Without `--live`, what a client leaves is what the old rendering tells.
            let is_left = |_: &&Document| live.is_empty() || held.is_some();
            if before.is_none()
                && let Some(hook) = find_same(&left_hooks, key).copied().filter(is_left)
            {
                before = Some(hook);
                let is_helm = client.is_some_and(|client| client != HookClient::ArgoCd);
                refusal = is_helm.then_some(ObjectRefusal::NotImported);
            }
            if before.is_none() && of_name(&old.objects, key).next().is_some() {
                let message = "only in the new rendering; the old one has it in another namespace \
                               (--namespace names that of objects without one)";
                renderings.warnings.push(line_about(document, message));
            }
            not_live += usize::from(held.is_none() && before.is_some() && !live.is_empty());
            renderings
                .push(entry, ObjectRenderings { old: before, new: document, live: held, is_hook: false, refusal });
        }
        for document in &new.unnamed {
            let Some(entry) = renderings.entry(kinds, &mut known, document) else { continue };
            let refusal = way.refused_generated_name(None);
            renderings.push(entry, ObjectRenderings { old: None, new: document, live: None, is_hook: false, refusal });
        }
        let has_unions = |document: &Document| entry_of(&kinds.assembly.catalog, document).is_some();
        let gone = old.hooks.iter().filter(|(key, _)| !new.has(key));
        let gone = gone.flat_map(|(_, hooks)| hooks.iter().map(|(document, _)| *document));
        let gone = gone.chain(old.objects.values().copied());
        renderings.counts.only_in_old = gone.filter(|document| has_unions(document)).count();
        renderings.counts.not_looked_at += new.passed_over;
        renderings.tell_the_rest(client.filter(|_| idle > 0), idle, not_live);
        renderings
    }

    /// Adds what happens to one object, unless its versions cannot be compared.
    fn push(&mut self, entry: &'d CatalogEntry, documents: ObjectRenderings<'d>) {
        let ObjectRenderings { old, new, .. } = documents;
        if let Some(before) = old.filter(|before| before.api_version != new.api_version) {
            let [from, to] = [before, new].map(|it| it.api_version.as_deref().unwrap_or_default());
            let message = format!("not looked at: its apiVersion changes from `{from}` to `{to}`");
            self.warnings.push(line_about(new, &message));
            self.counts.not_looked_at += 1;
            return;
        }
        *self.counts.judged(&documents) += 1;
        self.pairs.push((entry, documents));
    }

    /// Returns the kind of an object. Counts an object of a kind without unions, or of one that is not known.
    fn entry(&mut self, kinds: &'d Kinds, known: &mut KnownKinds<'_>, document: &Document) -> Option<&'d CatalogEntry> {
        let entry = entry_of(&kinds.assembly.catalog, document);
        if entry.is_none() {
            if let Some(problem) = known.problem(document, |_| true) {
                self.problems.push(problem.to_string());
                return None;
            }
            let own = document.group_version_kind();
            if kinds.assembly.kinds().any(|it| *it == own) || is_built_in_group(&own.group) {
                self.counts.without_unions += 1;
            } else {
                self.warnings.extend(known.warning(document));
                *self.unknown.entry(own).or_default() += 1;
            }
        }
        entry
    }

    /// Adds a line about hooks that a client does not run, one about each kind that is not known, and one about objects that are not live.
    fn tell_the_rest(&mut self, client: Option<HookClient>, idle: usize, not_live: usize) {
        self.counts.not_looked_at += idle + self.unknown.values().sum::<usize>();
        if let Some(client) = client {
            let (hooks, them) = (count(idle, "hook"), if idle == 1 { "it" } else { "them" });
            self.warnings.push(format!("{hooks} not looked at: {} does not run {them}", client.words()));
        }
        for (GroupVersionKind { group, version, kind }, number) in std::mem::take(&mut self.unknown) {
            let objects = count(number, "object");
            let message =
                format!("{objects} of the kind `{kind}` of `{group}/{version}` not looked at: give its CRD by --from");
            self.warnings.push(message);
        }
        if not_live > 0 {
            let objects = count(not_live, "object");
            self.warnings.push(format!("{objects} not among the live ones: predicted from the old rendering"));
        }
    }

    /// Reads the objects of one side, where `otherwise` is the namespace of objects without one. Those without an identity, and the second of
    /// two, are problems.
    fn read(
        &mut self,
        documents: &'d [Document],
        otherwise: &'d str,
        client: Option<HookClient>,
    ) -> RenderedObjects<'d> {
        let mut side = RenderedObjects::default();
        // A CRD, an XRD or a ResourceGraphDefinition is an object, too.
        for document in documents.iter().filter(|it| !it.is_declaration() && !it.is_openapi()) {
            let Some(key) = self.identify(document, otherwise) else { continue };
            let hook = client.and_then(|client| client.hook(document));
            if client == Some(HookClient::ArgoCd)
                && let Some(earlier) = side.take(&key)
            {
                let last = place(document, "");
                let message =
                    format!("not looked at: Argo CD applies the last of one name, at {}", last.trim_end_matches(':'));
                self.warnings.push(line_about(earlier, &message));
                side.passed_over += 1;
            }
            if let Some(hook) = hook {
                side.hooks.entry(key).or_default().push((document, hook));
            } else if key.name.is_empty() {
                side.unnamed.push(document);
            } else if let Some(first) = side.objects.get(&key) {
                let first = place(first, "");
                let first = first.trim_end_matches(':');
                if is_helm_hook(document) {
                    let message = format!("not looked at: a hook of Helm of the same name is at {first}");
                    self.warnings.push(line_about(document, &message));
                    side.passed_over += 1;
                } else {
                    let message = format!("{} is there twice, first at {first}", document.title());
                    self.problems.push(Problem::of_document(document, "", message).to_string());
                }
            } else {
                side.objects.insert(key, document);
            }
        }
        side
    }

    /// Returns the identity of an object, with an empty name if the API server generates it. `None`: it has none, which is a problem.
    fn identify(&mut self, document: &'d Document, otherwise: &'d str) -> Option<ObjectKey<'d>> {
        let mut problem = |message: String| self.problems.push(Problem::of_document(document, "", message).to_string());
        let name = document.name.as_deref().filter(|name| !name.is_empty());
        let name = name.or_else(|| document.generate_name().map(|_| ""));
        let (Some(kind), Some(name), true) = (&document.kind, name, document.api_version.is_some()) else {
            problem("not an object: `apiVersion`, `kind` or `metadata.name` is missing".to_owned());
            return None;
        };
        let namespace = document.namespace.as_deref().unwrap_or(otherwise);
        if [kind, name, namespace].iter().any(|text| text.contains("{{")) {
            let message = "a template is left in its name: render it first, for example with `helm template`";
            problem(format!("{}: {message}", document.title()));
            return None;
        }
        if let Some(of_no_kind) = Problem::of_left_over_kind(document) {
            self.problems.push(of_no_kind.to_string());
            return None;
        }
        Some(ObjectKey { group: document.group_version().0, kind, name, namespace })
    }
}

impl PreviewCounts {
    /// Returns the number of the objects that are judged as this one is.
    pub(super) fn judged(&mut self, documents: &ObjectRenderings<'_>) -> &mut usize {
        match documents {
            ObjectRenderings { old: Some(_), .. } => &mut self.compared,
            ObjectRenderings { is_hook: true, live: None, .. } => &mut self.hooks,
            ObjectRenderings { .. } => &mut self.only_in_new,
        }
    }

    /// Returns the summary, for example `2 objects in both renderings: 1 union refused; 1 of kinds without unions`.
    pub(super) fn sentence(&self) -> String {
        let faults = [
            (self.refused, "union", "refused"),
            (self.refused_objects, "object", "refused"),
            (self.refused_nulls, "null", "refused"),
            (self.refused_changes, "change", "refused"),
            (self.stored, "union", "stored although invalid"),
            (self.undecided, "union", "perhaps refused"),
            (self.left_over, "union", "undecided"),
        ];
        let faults = faults.iter().filter(|(number, ..)| *number > 0);
        let faults: Vec<String> =
            faults.map(|(number, noun, fate)| format!("{} {fate}", count(*number, noun))).collect();
        let judged = [
            (self.compared, "object", "in both renderings"),
            (self.only_in_new, "object", "only in the new rendering"),
            (self.hooks, "hook", "to create"),
        ];
        let judged = judged.iter().filter(|(number, ..)| *number > 0);
        let judged: Vec<String> =
            judged.map(|(number, noun, place)| format!("{} {place}", count(*number, noun))).collect();
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
