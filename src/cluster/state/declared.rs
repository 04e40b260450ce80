//! The declarations: what each is about, what is wrong with it by itself, and what its condition says.

use super::super::known::read_declaration;
use super::super::raw::RawDeclaration;
use super::super::status::StatusWriter;
use super::super::verdict::{DeclarationVerdict, StoredCondition};
use super::State;
use crate::causes::with_causes;
use kube_unions_core::declaration::{Fault, Source};
use kube_unions_core::names::GroupKind;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

/// What is kept of a declaration.
pub(super) struct Declared {
    fingerprint: u64,
    generation: Option<i64>,
    /// `None` while it can't be read.
    kind: Option<GroupKind>,
    faults: Vec<Fault>,
    condition: Option<StoredCondition>,
}

impl State {
    /// A list of declarations begins.
    pub(in crate::cluster) fn list_declarations(&mut self) {
        self.listing.declarations = Some(HashSet::new());
    }

    /// It is complete, or there are none to list: forgets what it has not brought.
    pub(in crate::cluster) fn declarations_listed(&mut self) {
        if let Some(listed) = self.listing.declarations.take() {
            let gone: Vec<_> = self.declarations.keys().filter(|name| !listed.contains(&***name)).cloned().collect();
            for name in gone {
                self.withdraw(&name);
            }
        }
        self.declared = true;
    }

    /// Declarations cannot be listed: they are not waited for. `none`: there are none, rather than that one cannot know.
    pub(in crate::cluster) fn no_declarations(&mut self, none: bool) {
        self.listing.declarations = none.then(HashSet::new);
        self.declarations_listed();
    }

    /// Whether any are known.
    pub(in crate::cluster) fn has_declarations(&self) -> bool {
        !self.declarations.is_empty()
    }

    /// A declaration is new or has changed.
    pub(in crate::cluster) fn declare(&mut self, raw: &RawDeclaration) {
        let name = raw.name();
        if name.is_empty() {
            return;
        }
        if let Some(listing) = &mut self.listing.declarations {
            listing.insert(name.to_owned());
        }
        self.unsaid.insert(name.into());
        let fingerprint = self.fingerprints.hash_one(raw.parts().map(|it| it.spec.get()));
        let condition = raw.parts().ok().and_then(StoredCondition::read);
        let before = self.declarations.remove(name);
        let read = match &before {
            Some(before) if before.fingerprint == fingerprint => None,
            Some(_) | None => Some(
                raw.parts()
                    .map_err(str::to_owned)
                    .and_then(|parts| read_declaration(name, &parts.spec).map_err(|error| with_causes(&error))),
            ),
        };
        let (kind_before, faults_before) = before.map_or((None, Vec::new()), |it| (it.kind, it.faults));
        let (kind, faults) = match read {
            None => (kind_before, faults_before),
            Some(Err(message)) => {
                let fault = Fault {
                    declaration: Some(name.to_owned()),
                    source: Some(Source::Declaration),
                    pointer: "/spec".to_owned(),
                    ..Fault::unreadable("UnionDeclaration", message)
                };
                if let Some(before) = kind_before {
                    self.known().withdraw(&before, name);
                    self.kind_changed(&before);
                }
                self.builder.report(name, vec![fault.clone()]);
                self.touch();
                (None, vec![fault])
            }
            Some(Ok((declaration, faults))) => {
                let kind = declaration.target().group_kind();
                if self.is_reported(kind_before.as_ref(), &faults_before) || !faults.is_empty() {
                    self.touch();
                }
                {
                    let mut known = self.known();
                    if let Some(before) = &kind_before {
                        known.withdraw(before, name);
                    }
                    known.declare(declaration);
                }
                if let Some(before) = kind_before.filter(|before| *before != kind) {
                    self.kind_changed(&before);
                }
                self.builder.report(name, faults.clone());
                self.kind_changed(&kind);
                (Some(kind), faults)
            }
        };
        let generation = raw.generation();
        let declared = Declared { fingerprint, generation, kind, faults, condition };
        self.declarations.insert(name.into(), declared);
    }

    /// A declaration is gone.
    pub(in crate::cluster) fn withdraw(&mut self, name: &str) {
        let Some(declared) = self.declarations.remove(name) else { return };
        self.unsaid.insert(name.into());
        if self.is_reported(declared.kind.as_ref(), &declared.faults) {
            self.builder.report(name, Vec::new());
            self.touch();
        }
        if let Some(kind) = declared.kind {
            self.known().withdraw(&kind, name);
            self.kind_changed(&kind);
        }
    }

    /// Has conditions say what the published catalog does, where nothing newer is on its way.
    pub(super) fn say(&mut self, statuses: &mut StatusWriter) {
        let Some(catalog) = self.published.as_ref().filter(|_| !self.unsaid.is_empty()) else { return };
        let mut faults: HashMap<&str, Vec<&Fault>> = HashMap::new();
        for fault in catalog.faults() {
            if let Some(declaration) = &fault.declaration
                && self.unsaid.contains(declaration.as_str())
            {
                faults.entry(declaration).or_default().push(fault);
            }
        }
        for name in std::mem::take(&mut self.unsaid) {
            let Some(declared) = self.declarations.get(&name) else {
                statuses.forget(&name);
                continue;
            };
            if declared
                .kind
                .as_ref()
                .is_some_and(|kind| self.schedule.is_behind(kind) || self.compiling.is_behind(kind))
            {
                // Its kind's answer brings it back.
                continue;
            }
            let missing = declared.kind.as_ref().is_some_and(|kind| self.missing.contains_key(kind));
            let faults = faults.get(&*name).map_or(&[][..], Vec::as_slice);
            let verdict = DeclarationVerdict::new(declared.generation, missing, faults);
            statuses.publish(&name, verdict, declared.condition.as_ref());
        }
    }

    /// The conditions of a kind's declarations may have something new to say.
    pub(super) fn unsay(&mut self, kind: &GroupKind) {
        let names: Vec<Box<str>> = self.known().declarations(kind).iter().map(|it| it.name().into()).collect();
        self.unsaid.extend(names);
    }

    /// Whether anything is reported of a declaration by itself.
    fn is_reported(&self, kind: Option<&GroupKind>, faults: &[Fault]) -> bool {
        !faults.is_empty() || kind.is_some_and(|kind| self.missing.contains_key(kind))
    }

    pub(super) fn faults_of(&self, declaration: &str) -> Vec<Fault> {
        self.declarations.get(declaration).map(|declared| declared.faults.clone()).unwrap_or_default()
    }
}
