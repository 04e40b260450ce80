//! What is known of the cluster, event by event, and the catalog that comes of it.

mod declared;

use super::inspect::missing;
use super::known::{GroupKind, Known};
use super::raw::RawDefinition;
use super::rounds::{Answers, Fetched, Order, Schedule};
use super::schemas::{Edition, Schemas};
use super::status::Statuses;
use super::{BuiltinUnions, Cluster};
use crate::catalog::{Builder, Catalog};
use crate::declaration::{Definition, DefinitionError, Fault};
use crate::telemetry::with_causes;
use declared::Declared;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Under an unbroken stream of changes a catalog is published at least this often.
const PUBLISH_WITHIN: Duration = Duration::from_millis(200);

/// So many times as long as it took to publish is rested after it, so that with thousands of declarations, too, there is
/// time for anything else. A small catalog takes no time at all.
const REST: u32 = 4;

/// The CRD that the declarations need themselves.
pub(super) const OWN_DEFINITION: &str = "uniondeclarations.kube-unions.dev";

/// Nobody receives catalogs any more.
pub(super) struct Unwanted;

/// What is known of the cluster. Definitions are compiled as they arrive and then dropped: what stays are plans.
pub(super) struct State {
    builder: Builder,
    known: Arc<Mutex<Known>>,
    schemas: Arc<Schemas>,
    builtin_unions: BuiltinUnions,
    fingerprints: RandomState,
    /// A fingerprint of each CRD by name, so that a change of what is not read (`status`, mostly) costs nothing.
    definitions: HashMap<Box<str>, u64>,
    declarations: BTreeMap<Box<str>, Declared>,
    /// Kinds in force whose schema came from documents.
    builtin: BTreeMap<GroupKind, Builtin>,
    /// Targets that nothing describes, with the documents of their group.
    missing: BTreeMap<GroupKind, Vec<String>>,
    /// Kinds of which the server's own documents declare unions.
    publishing: BTreeSet<GroupKind>,
    schedule: Schedule,
    /// A round is under way.
    fetching: bool,
    /// What lists that are under way have brought so far.
    listing: Listing,
    /// Since when the builder holds something that is not published.
    changed: Option<Instant>,
    /// Nothing is published before.
    rest: Instant,
    /// The CRDs have been listed completely at least once.
    defined: bool,
    /// The declarations, too, or there are none.
    declared: bool,
    published: Option<Arc<Catalog>>,
    /// Whether there is the CRD of declarations.
    declarable: watch::Sender<bool>,
    /// Declarations whose condition may have something new to say.
    unsaid: BTreeSet<Box<str>>,
}

#[derive(Default)]
struct Listing {
    definitions: Option<HashSet<String>>,
    declarations: Option<HashSet<String>>,
}

struct Builtin {
    name: Box<str>,
    urls: Vec<String>,
}

impl State {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            builder: Builder::new(),
            known: Arc::clone(&cluster.known),
            schemas: Arc::clone(&cluster.schemas),
            builtin_unions: cluster.builtin_unions,
            fingerprints: RandomState::new(),
            definitions: HashMap::new(),
            declarations: BTreeMap::new(),
            builtin: BTreeMap::new(),
            missing: BTreeMap::new(),
            publishing: BTreeSet::new(),
            schedule: Schedule::new(cluster.builtin_unions == BuiltinUnions::OpenApi),
            fetching: false,
            listing: Listing::default(),
            changed: None,
            rest: Instant::now(),
            defined: false,
            declared: false,
            published: None,
            declarable: cluster.declarable.clone(),
            unsaid: BTreeSet::new(),
        }
    }

    /// A list of CRDs begins.
    pub(super) fn list_definitions(&mut self) {
        self.listing.definitions = Some(HashSet::new());
    }

    /// It is complete: forgets what it has not brought.
    pub(super) fn definitions_listed(&mut self) {
        if let Some(listed) = self.listing.definitions.take() {
            let gone: Vec<_> = self.definitions.keys().filter(|name| !listed.contains(&***name)).cloned().collect();
            for name in gone {
                self.undefine(&name);
            }
        }
        if !self.defined {
            self.defined = true;
            self.touch();
        }
    }

    /// A CRD is new or has changed.
    pub(super) fn define(&mut self, raw: &RawDefinition) {
        let name = raw.name();
        if name.is_empty() {
            let reason = raw.parts().err().unwrap_or("it has no name");
            tracing::warn!(reason, "a definition without a name was passed over");
            return;
        }
        if let Some(listing) = &mut self.listing.definitions {
            listing.insert(name.to_owned());
        }
        let fingerprint = self.fingerprints.hash_one(raw.parts().map(|it| (&it.annotations, it.spec.get())));
        if self.definitions.insert(name.into(), fingerprint) != Some(fingerprint) {
            self.compile(raw);
        }
    }

    /// A CRD is gone.
    pub(super) fn undefine(&mut self, name: &str) {
        if self.definitions.remove(name).is_none() {
            return;
        }
        self.builder.remove(name);
        self.touch();
        let freed = self.known().undefine(name);
        if let Some(kind) = freed {
            self.kind_changed(&kind);
        }
    }

    /// Whether a CRD is there.
    pub(super) fn has_definition(&self, name: &str) -> bool {
        self.definitions.contains_key(name)
    }

    /// The server may be another one now.
    pub(super) fn suspect(&mut self) {
        self.schedule.hurry();
    }

    /// When there will be something to fetch, if nothing happens.
    pub(super) fn next_fetch(&self) -> Option<Instant> {
        (self.defined && self.declared).then(|| self.schedule.next())
    }

    /// When there will be something to publish, if nothing happens.
    pub(super) fn next_publication(&self) -> Option<Instant> {
        (self.rest > Instant::now() && (self.changed.is_some() || !self.unsaid.is_empty())).then_some(self.rest)
    }

    /// What is to be fetched now.
    pub(super) fn orders(&mut self) -> Option<(Vec<Order>, bool)> {
        // Until the lists are complete most of what is wanted is about to come by itself.
        if !self.defined || !self.declared {
            return None;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let editions = self.builtin.iter().map(|(kind, builtin)| (kind, builtin.urls.as_slice()));
        let whole = self.builtin_unions == BuiltinUnions::OpenApi;
        let orders = self.schedule.orders(&known, editions, &self.missing, whole);
        self.fetching = orders.is_some();
        orders
    }

    /// Takes in what a round has brought.
    pub(super) fn answer(&mut self, answers: Answers) {
        self.fetching = false;
        match answers.publishing {
            None => {}
            Some(Ok(publishing)) => {
                let changed: Vec<_> = publishing.symmetric_difference(&self.publishing).cloned().collect();
                self.publishing = publishing;
                for kind in changed {
                    if self.known().definition(&kind).is_none() {
                        self.kind_changed(&kind);
                    }
                }
            }
            Some(Err(error)) => {
                tracing::warn!(reason = with_causes(&error), "published unions cannot be read; retrying");
                self.schedule.hurry();
            }
        }
        let mut failed: BTreeMap<String, Vec<GroupKind>> = BTreeMap::new();
        for (kind, fetched) in answers.kinds {
            if !self.schedule.take(&kind) {
                continue;
            }
            self.unsay(&kind);
            match fetched {
                Err(error) => {
                    let reason = with_causes(&error);
                    if self.schedule.fail(&kind, &reason) {
                        failed.entry(reason).or_default().push(kind);
                    }
                }
                // The watch is about to say so.
                Ok(Fetched::Gone) => drop(self.schedule.fail(&kind, "")),
                Ok(Fetched::Unchanged) => self.schedule.succeed(&kind),
                Ok(Fetched::Definition(raw)) => {
                    let fingerprint =
                        self.fingerprints.hash_one(raw.parts().map(|it| (&it.annotations, it.spec.get())));
                    self.definitions.insert(raw.name().into(), fingerprint);
                    self.compile(&raw);
                    self.schedule.succeed(&kind);
                }
                Ok(Fetched::Documents(edition)) => self.compile_builtin(&kind, edition),
            }
        }
        for (reason, kinds) in failed {
            let first = kinds.first().map(ToString::to_string);
            tracing::warn!(
                first,
                kinds = kinds.len(),
                reason,
                "schemas cannot be had; what is in force stays, retrying"
            );
        }
        let (builtin, missing) = (&self.builtin, &self.missing);
        self.schemas.retain(|group| builtin.keys().chain(missing.keys()).any(|kind| *kind.group == *group));
    }

    /// Whether a change has waited too long.
    pub(super) fn is_overdue(&self) -> bool {
        self.changed.is_some_and(|since| since.elapsed() > PUBLISH_WITHIN)
    }

    /// Publishes what has changed, unless a list is under way, or what it takes was not tried yet.
    pub(super) fn publish(
        &mut self,
        catalogs: &watch::Sender<Option<Arc<Catalog>>>,
        statuses: &mut Statuses,
    ) -> Result<(), Unwanted> {
        let first = self.published.is_none();
        if !self.defined || self.listing.definitions.is_some() {
            return Ok(());
        }
        if first && !(self.declared && !self.fetching && self.schedule.is_tried()) {
            return Ok(());
        }
        let start = Instant::now();
        if start < self.rest {
            return Ok(());
        }
        if self.changed.take().is_some() {
            let declarable = self.has_definition(OWN_DEFINITION);
            self.declarable.send_if_modified(|known| std::mem::replace(known, declarable) != declarable);
            let catalog = Arc::new(self.builder.build());
            catalogs.send(Some(Arc::clone(&catalog))).map_err(|_| Unwanted)?;
            self.published = Some(catalog);
            self.unsaid.extend(self.declarations.keys().cloned());
        }
        self.say(statuses);
        self.rest = Instant::now() + start.elapsed().saturating_mul(REST).min(PUBLISH_WITHIN);
        Ok(())
    }

    /// Whether everything that is wanted was fetched, or could not be.
    pub(super) fn is_tried(&self) -> bool {
        self.schedule.is_tried()
    }

    /// The catalog of what is known now.
    pub(super) fn catalog(&self) -> Catalog {
        self.builder.build()
    }

    /// Compiles a CRD, with everything that is declared of its kind.
    fn compile(&mut self, raw: &RawDefinition) {
        self.touch();
        let name = raw.name();
        let definition = raw.parts().map_err(str::to_owned).and_then(|parts| {
            Definition::from_parts(name, &parts.annotations, parts.spec.get()).map_err(|error| with_causes(&error))
        });
        let mut definition = match definition {
            Ok(definition) => definition,
            Err(message) => return self.builder.reject(name, Fault::unreadable(name, message)),
        };
        let kind = GroupKind::defined_by(&definition);
        let (before, declarations) = {
            let mut known = self.known();
            (known.define(name, &kind), known.declarations(&kind))
        };
        for declaration in &declarations {
            definition.declare(declaration);
        }
        self.builder.apply(definition);
        self.forget_builtin(&kind);
        self.schedule.drop(&kind);
        self.unsay(&kind);
        if let Some(before) = before {
            self.kind_changed(&before);
        }
    }

    /// Compiles a kind from documents, with everything that is declared of it.
    fn compile_builtin(&mut self, kind: &GroupKind, edition: Edition) {
        let published = self.publishing.contains(kind);
        let documents = edition.documents.iter().map(AsRef::as_ref);
        match Definition::from_openapi(documents, &kind.group, &kind.kind, published) {
            Ok(mut definition) => {
                self.forget_missing(kind);
                let declarations = self.known().declarations(kind);
                for declaration in &declarations {
                    definition.declare(declaration);
                }
                let name = definition.name().into();
                self.builder.apply(definition);
                self.builtin.insert(kind.clone(), Builtin { name, urls: edition.urls });
                self.schedule.succeed(kind);
            }
            Err(DefinitionError::NotDescribed(_)) => {
                self.forget_builtin(kind);
                self.missing.insert(kind.clone(), edition.urls);
                let declarations = self.known().declarations(kind);
                for declaration in declarations {
                    let mut faults = self.faults_of(declaration.name());
                    faults.push(missing(kind, declaration.name()));
                    self.builder.report(declaration.name(), faults);
                }
                self.schedule.succeed(kind);
                // It may be about to come.
                self.schedule.hurry();
            }
            Err(error) => {
                let reason = with_causes(&error);
                if self.schedule.fail(kind, &reason) {
                    tracing::warn!(%kind, reason, "the schema cannot be used; what is in force stays, retrying");
                }
                return;
            }
        }
        self.touch();
    }

    /// What is declared of a kind, or what defines it, has changed.
    fn kind_changed(&mut self, kind: &GroupKind) {
        let (defined, declared) = {
            let known = self.known();
            (known.definition(kind).is_some(), known.is_declared(kind))
        };
        if defined || declared || self.publishing.contains(kind) {
            self.schedule.want(kind);
        } else {
            self.forget_builtin(kind);
            self.schedule.drop(kind);
        }
    }

    /// A kind comes from no document any more, nor is it missing there.
    fn forget_builtin(&mut self, kind: &GroupKind) {
        if let Some(builtin) = self.builtin.remove(kind) {
            self.builder.remove(&builtin.name);
            self.touch();
        }
        self.forget_missing(kind);
    }

    fn forget_missing(&mut self, kind: &GroupKind) {
        if self.missing.remove(kind).is_some() {
            self.touch();
            let declarations = self.known().declarations(kind);
            for declaration in declarations {
                self.builder.report(declaration.name(), self.faults_of(declaration.name()));
            }
        }
    }

    fn touch(&mut self) {
        self.changed.get_or_insert_with(Instant::now);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
