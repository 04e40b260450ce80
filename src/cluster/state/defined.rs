//! The kinds: which CRD or which documents describe each, and what compiling them brings.

use super::super::compiling::{Finished, Job, Source, Ticket};
use super::super::inspect::missing;
use super::super::raw::RawDefinition;
use super::super::schemas::Edition;
use super::{Builtin, State};
use crate::causes::with_causes;
use kube_unions_core::declaration::{
    Acceptance, ClaimedKind, Declaration, DefinitionError, Fault, Source as DeclaredIn,
};
use kube_unions_core::names::GroupKind;
use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Arc;

impl State {
    /// A list of CRDs begins.
    pub(in crate::cluster) fn list_definitions(&mut self) {
        self.listing.definitions = Some(HashSet::new());
    }

    /// It is complete: forgets what it has not brought.
    pub(in crate::cluster) fn definitions_listed(&mut self) {
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
    pub(in crate::cluster) fn define(&mut self, raw: RawDefinition) {
        if raw.name().is_empty() {
            let reason = raw.parts().err().unwrap_or("it has no name");
            tracing::warn!(reason, "a definition without a name was passed over");
            return;
        }
        if let Some(listing) = &mut self.listing.definitions {
            listing.insert(raw.name().to_owned());
        }
        let (standing, fingerprint) = self.judge(&raw);
        if self.definitions.insert(raw.name().into(), fingerprint) != Some(fingerprint) {
            self.settle(raw, standing);
        }
    }

    /// A CRD was fetched, since something is declared of its kind.
    pub(super) fn define_again(&mut self, raw: RawDefinition) {
        let (standing, fingerprint) = self.judge(&raw);
        self.definitions.insert(raw.name().into(), fingerprint);
        self.settle(raw, standing);
    }

    /// A CRD is gone.
    pub(in crate::cluster) fn undefine(&mut self, name: &str) {
        if self.definitions.remove(name).is_none() {
            return;
        }
        if self.builder.remove(name) {
            self.touch();
        }
        self.release(name);
    }

    /// True if a CRD speaks for its kind, and a fingerprint of that and of all that is read of it: a change of anything else,
    /// as of most of a status, costs nothing.
    fn judge(&self, raw: &RawDefinition) -> (Result<Acceptance, String>, u64) {
        let own = self.known().own_groups();
        let standing = raw.acceptance(&own);
        let parts = raw.parts().map(|parts| (&parts.annotations, parts.spec.get()));
        let fingerprint = self.fingerprints.hash_one((parts, format!("{standing:?}")));
        (standing, fingerprint)
    }

    /// Puts a CRD in force, or takes it out of force, as it stands.
    fn settle(&mut self, raw: RawDefinition, standing: Result<Acceptance, String>) {
        let name: Box<str> = raw.name().into();
        match standing {
            Ok(Acceptance::Accepted(claim)) => self.accept(raw, claim),
            Ok(Acceptance::Pending) => {
                if self.builder.remove(&name) {
                    self.touch();
                }
                self.release(&name);
            }
            Ok(Acceptance::Ignored(kind, why)) => {
                // What somebody does with a CRD that has no unions is no concern of ours.
                self.builder.ignore(&name, kind, raw.mentions_unions().then_some(why));
                self.touch();
                self.release(&name);
            }
            Err(message) => {
                self.builder.reject(&name, Fault::unreadable(&name, message));
                self.touch();
                self.release(&name);
            }
        }
    }

    fn accept(&mut self, raw: RawDefinition, claim: ClaimedKind) {
        let (name, kind) = (raw.name().to_owned(), claim.kind.clone());
        let (before, declarations) = {
            let mut known = self.known();
            (known.define(&name, &kind), known.declarations(&kind))
        };
        if let Some(before) = before {
            // The plans of another kind must not stay in force until this one is compiled.
            self.builder.remove(&name);
            self.touch();
            self.kind_changed(&before);
        }
        self.forget_builtin(&kind);
        self.schedule.drop(&kind);
        let source = Source::Definition { raw: Box::new(raw), claim };
        self.compiling.start(&name, &kind, source, declarations);
    }

    /// A CRD defines no kind any more.
    fn release(&mut self, name: &str) {
        self.compiling.cancel(name);
        let freed = self.known().undefine(name);
        if let Some(kind) = freed {
            self.kind_changed(&kind);
        }
    }

    /// Documents of a built-in type were fetched.
    pub(super) fn describe(&mut self, kind: &GroupKind, edition: Edition) {
        let Edition { urls, documents } = edition;
        self.editions.insert(kind.clone(), urls);
        let declarations = self.known().declarations(kind);
        let source = Source::Documents { documents, published: self.publishing.contains(kind) };
        self.compiling.start(&kind.to_string(), kind, source, declarations);
    }

    /// The next schema to compile.
    pub(in crate::cluster) fn next_job(&mut self) -> Option<Job> {
        self.compiling.next()
    }

    /// True if no further CRD should be taken in, since one waits for its turn to be compiled.
    pub(in crate::cluster) fn is_full(&self) -> bool {
        self.compiling.is_full()
    }

    /// A schema was compiled.
    pub(in crate::cluster) fn compiled(&mut self, finished: Finished) {
        let Finished { ticket, outcome, declarations } = finished;
        if !self.compiling.take(&ticket) {
            return;
        }
        let Some(outcome) = outcome else {
            tracing::error!(kind = %ticket.kind, "compiling ended badly; what is in force of the kind stays");
            return;
        };
        let custom = self.known().definition(&ticket.kind).is_some();
        let urls = self.editions.remove(&ticket.kind).filter(|_| !custom);
        if let (Some(_), Err(DefinitionError::NotDescribed(_))) = (&urls, &outcome) {
            self.miss(&ticket.kind, urls.unwrap_or_default());
        } else {
            if let Some(urls) = urls {
                self.forget_missing(&ticket.kind);
                self.builtin.insert(ticket.kind.clone(), Builtin { name: ticket.name.clone(), urls });
            }
            match outcome {
                Ok(compiled) => self.builder.insert(compiled),
                Err(error) => self.builder.reject_all(&ticket.name, unusable(&ticket, &declarations, &error)),
            }
        }
        self.unsay(&ticket.kind);
        self.touch();
    }

    /// Nothing describes a kind of which something is declared.
    fn miss(&mut self, kind: &GroupKind, urls: Vec<String>) {
        self.forget_builtin(kind);
        self.missing.insert(kind.clone(), urls);
        let declarations = self.known().declarations(kind);
        for declaration in declarations {
            let mut faults = self.faults_of(declaration.name());
            faults.push(missing(kind, declaration.name()));
            self.builder.report(declaration.name(), faults);
        }
        // It may be about to come.
        self.schedule.hurry();
    }

    /// What is declared of a kind, or what defines it, has changed.
    pub(super) fn kind_changed(&mut self, kind: &GroupKind) {
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
    pub(super) fn forget_builtin(&mut self, kind: &GroupKind) {
        self.compiling.cancel(&kind.to_string());
        self.editions.remove(kind);
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
}

/// The schema of a kind can't be used: a fault of what describes it, and of each declaration about it, so that none is said
/// to be in force.
fn unusable(ticket: &Ticket, declarations: &[Arc<Declaration>], error: &DefinitionError) -> Vec<Fault> {
    let of_kind = Fault::unreadable(&ticket.name, with_causes(error));
    let of_declarations = declarations.iter().map(|declaration| Fault {
        declaration: Some(declaration.name().to_owned()),
        source: Some(DeclaredIn::Declaration),
        pointer: "/spec/target".to_owned(),
        ..Fault::unreadable(&ticket.name, format!("the schema of `{}` cannot be used; mend it", ticket.kind))
    });
    std::iter::once(of_kind).chain(of_declarations).collect()
}
