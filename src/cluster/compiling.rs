//! Compiling beside everything else: a large CRD takes a while, and nothing else waits for it.

use super::raw::RawDefinition;
use kube_unions_core::catalog::{CompiledDefinition, compiling_cost};
use kube_unions_core::declaration::{ClaimedKind, Declaration, Definition, DefinitionError, OpenApi};
use kube_unions_core::names::GroupKind;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Schemas that are compiled at a time, on threads of their own.
pub(super) const AT_A_TIME: usize = 4;

/// Bytes that compiling one CRD may take. A CRD that somebody means takes a few MiB.
const MEMORY: usize = 32 * 1024 * 1024;

/// A schema to compile, with everything that is declared of its kind.
pub(super) struct Job {
    ticket: Ticket,
    source: Source,
    declarations: Vec<Arc<Declaration>>,
}

/// Where the schema comes from.
pub(super) enum Source {
    /// A CRD, with the names that it counts by.
    Definition { raw: Box<RawDefinition>, claim: ClaimedKind },
    /// Documents of a built-in type, and whether their own unions count.
    Documents { documents: Vec<Arc<OpenApi>>, published: bool },
}

/// The result of a job.
pub(super) struct Finished {
    pub(super) ticket: Ticket,
    /// `None`: compiling was cut off.
    pub(super) outcome: Option<Result<CompiledDefinition, DefinitionError>>,
    /// The declarations that were taken into account.
    pub(super) declarations: Vec<Arc<Declaration>>,
}

/// Tells one job from another of the same kind.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    /// The name in the working set.
    pub(super) name: Box<str>,
    pub(super) kind: GroupKind,
    number: u64,
}

/// Jobs that wait, and those whose results are awaited.
#[derive(Default)]
pub(super) struct Compiling {
    waiting: VecDeque<Job>,
    /// By name: the number of the only job whose result counts, and its kind.
    awaited: HashMap<Box<str>, (u64, GroupKind)>,
    last: u64,
}

impl Job {
    /// Compiles on a thread of its own.
    pub(super) async fn run(self) -> Finished {
        let Self { ticket, source, declarations } = self;
        let (kind, taken) = (ticket.kind.clone(), declarations.clone());
        let compiled = tokio::task::spawn_blocking(move || compile(&source, &kind, &taken)).await;
        Finished { ticket, outcome: compiled.ok(), declarations }
    }
}

/// Nothing here depends on anything but its arguments.
fn compile(
    source: &Source,
    kind: &GroupKind,
    declarations: &[Arc<Declaration>],
) -> Result<CompiledDefinition, DefinitionError> {
    let mut definition = match source {
        Source::Definition { raw, claim } => {
            if let Ok(parts) = raw.parts()
                && compiling_cost(parts.spec.get(), parts.annotations.values().map(String::len).sum()) > MEMORY
            {
                let message = "to compile its schemas would take more than 32 MiB of memory, so that no union of it counts; make \
                               them smaller"
                    .to_owned();
                return Err(DefinitionError::Malformed { path: "spec.versions".to_owned(), message });
            }
            raw.with_accepted_names(claim.clone())?
        }
        Source::Documents { documents, published } => {
            Definition::from_openapi(documents.iter().map(AsRef::as_ref), &kind.group, &kind.kind, *published)?
        }
    };
    for declaration in declarations {
        definition.declare(declaration);
    }
    Ok(CompiledDefinition::new(definition))
}

impl Compiling {
    /// Has a schema compiled. Of two of one name only the later one counts.
    pub(super) fn start(&mut self, name: &str, kind: &GroupKind, source: Source, declarations: Vec<Arc<Declaration>>) {
        self.cancel(name);
        self.last = self.last.wrapping_add(1);
        let ticket = Ticket { name: name.into(), kind: kind.clone(), number: self.last };
        self.awaited.insert(name.into(), (self.last, kind.clone()));
        self.waiting.push_back(Job { ticket, source, declarations });
    }

    /// Drops the result of a job that is no longer wanted.
    pub(super) fn cancel(&mut self, name: &str) {
        if self.awaited.remove(name).is_some() {
            self.waiting.retain(|job| *job.ticket.name != *name);
        }
    }

    /// The next job to run.
    pub(super) fn next(&mut self) -> Option<Job> {
        self.waiting.pop_front()
    }

    /// True if the result of a job still counts.
    pub(super) fn take(&mut self, ticket: &Ticket) -> bool {
        let counts = self.awaited.get(&ticket.name).is_some_and(|(number, _)| *number == ticket.number);
        if counts {
            self.awaited.remove(&ticket.name);
        }
        counts
    }

    /// True if a job waits for its turn. Each holds a whole CRD.
    pub(super) fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if no result is awaited.
    pub(super) fn is_idle(&self) -> bool {
        self.awaited.is_empty()
    }

    /// True if a result of this kind is awaited.
    pub(super) fn is_behind(&self, kind: &GroupKind) -> bool {
        self.awaited.values().any(|(_, of)| of == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_unions_core::declaration::Resource;

    fn compiled(parts: usize) -> Result<CompiledDefinition, DefinitionError> {
        let parts = vec!["{}"; parts].join(",");
        let schema = format!(r#"{{"type": "object", "allOf": [{parts}]}}"#);
        let raw = RawDefinition::read(&format!(
            r#"{{"metadata": {{"name": "things.g.example"}}, "spec": {{"group": "g.example", "scope": "Cluster",
                "names": {{"kind": "Thing", "plural": "things"}},
                "versions": [{{"name": "v1", "served": true, "schema": {{"openAPIV3Schema": {schema}}}}}]}}}}"#
        ));
        let resource = Resource {
            plural: "things".into(),
            singular: "thing".into(),
            short_names: Vec::new(),
            namespaced: false,
            custom: true,
        };
        let claim = ClaimedKind { kind: GroupKind::new("g.example", "Thing"), resource };
        let kind = GroupKind::new("g.example", "Thing");
        compile(&Source::Definition { raw: Box::new(raw), claim }, &kind, &[])
    }

    #[test]
    fn a_crd_that_takes_more_memory_than_anybody_means_is_not_compiled() {
        assert!(compiled(1_000).is_ok());
        let error = compiled(100_000).err().unwrap().to_string();
        assert!(error.contains("more than 32 MiB") && error.contains("make them smaller"), "{error}");
    }
}
