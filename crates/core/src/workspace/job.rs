//! Compiles one subject: its unions and faults follow from the inputs and from nothing else, so that replicas agree.

use super::crd::{KnownCrd, StoredCrd};
use crate::catalog::CompiledDefinition;
use crate::causes::with_causes;
use crate::declaration::{
    Acceptance, ClaimedKind, Declaration, Definition, DefinitionError, Fault, FaultKind, OpenApi,
};
use crate::names::GroupKind;
use std::fmt;
use std::sync::Arc;

/// A CRD or a built-in kind: the unit of compiling. Displays as its name in the working set of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Subject {
    /// A CRD, by name.
    Crd(Box<str>),
    Builtin(GroupKind),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crd(name) => f.write_str(name),
            Self::Builtin(kind) => kind.fmt(f),
        }
    }
}

/// A subject to compile, which may take milliseconds.
#[derive(Debug)]
pub struct CompileJob {
    pub(super) ticket: JobTicket,
    pub(super) source: SubjectSource,
    /// The declarations that target the kind, sorted by name.
    pub(super) declarations: Vec<Arc<Declaration>>,
}

/// The identity of a job. Displays as the name of the CRD or the built-in kind.
#[derive(Debug, Clone)]
pub struct JobTicket {
    pub(super) subject: Subject,
    /// The version of the inputs.
    pub(super) version: u64,
}

/// The result of a job.
#[derive(Debug)]
pub struct CompiledSubject {
    pub(super) ticket: JobTicket,
    pub(super) outcome: CompileOutcome,
}

/// The source of a subject's schemas.
#[derive(Debug)]
pub(super) enum SubjectSource {
    Crd(KnownCrd),
    /// The documents of a built-in kind's group, and whether the unions that they publish count.
    Builtin {
        kind: GroupKind,
        documents: Vec<Arc<OpenApi>>,
        published: bool,
    },
}

/// The result of compiling a subject.
#[derive(Debug)]
pub(super) enum CompileOutcome {
    /// The unions in force, and the faults of the others.
    Compiled(Box<CompiledDefinition>),
    /// The schema cannot be used: one fault of the subject and one of each declaration.
    Rejected(DefinitionError, Box<CompiledDefinition>),
    /// The API server has not accepted the CRD yet.
    Pending,
    /// No document describes the built-in kind.
    NotDescribed,
}

impl CompileJob {
    /// Returns the identity of the job.
    pub fn ticket(&self) -> &JobTicket {
        &self.ticket
    }

    /// Compiles the subject.
    pub fn compile(self) -> CompiledSubject {
        CompiledSubject { outcome: self.outcome(), ticket: self.ticket }
    }

    /// Returns the unions and faults of the subject.
    pub(super) fn outcome(&self) -> CompileOutcome {
        let Self { ticket, source, declarations } = self;
        let name = ticket.subject.to_string();
        match source {
            SubjectSource::Crd(KnownCrd::Read(definition)) => declared((**definition).clone(), declarations),
            SubjectSource::Crd(KnownCrd::Stored(stored)) => match &stored.acceptance {
                Ok(Acceptance::Accepted(claim)) => match read(&name, stored, claim) {
                    Ok(definition) => declared(definition, declarations),
                    Err(error) => reject(&name, &claim.kind, declarations, error),
                },
                Ok(Acceptance::Pending) => CompileOutcome::Pending,
                Ok(Acceptance::Ignored(kind, why)) => {
                    let why = stored.mentions_unions.then(|| why.clone());
                    CompileOutcome::Compiled(Box::new(CompiledDefinition::ignored(&name, kind.clone(), why)))
                }
                Err(message) => {
                    let fault = Fault::new(FaultKind::UnreadableCrd, &name, message.clone());
                    CompileOutcome::Compiled(Box::new(CompiledDefinition::unreadable(&name, vec![fault])))
                }
            },
            SubjectSource::Builtin { kind, documents, published } => {
                let read = documents.iter().map(AsRef::as_ref);
                match Definition::from_openapi(read, &kind.group, &kind.kind, *published) {
                    Ok(definition) => declared(definition, declarations),
                    Err(DefinitionError::NotDescribed(_)) => CompileOutcome::NotDescribed,
                    Err(error) => reject(&name, kind, declarations, error),
                }
            }
        }
    }
}

impl JobTicket {
    /// Returns the built-in kind, `None` for a CRD.
    pub fn builtin(&self) -> Option<&GroupKind> {
        match &self.subject {
            Subject::Builtin(kind) => Some(kind),
            Subject::Crd(_) => None,
        }
    }
}

impl fmt::Display for JobTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject.fmt(f)
    }
}

impl CompiledSubject {
    /// Returns the identity of the job.
    pub fn ticket(&self) -> &JobTicket {
        &self.ticket
    }

    /// Returns the error of a schema that cannot be used.
    pub fn error(&self) -> Option<&DefinitionError> {
        match &self.outcome {
            CompileOutcome::Rejected(error, _) => Some(error),
            CompileOutcome::Compiled(_) | CompileOutcome::Pending | CompileOutcome::NotDescribed => None,
        }
    }
}

fn read(name: &str, stored: &StoredCrd, claim: &ClaimedKind) -> Result<Definition, DefinitionError> {
    if stored.too_large {
        let message =
            "to compile its schemas would take more than 32 MiB of memory, so that no union of it counts; make them \
                       smaller"
                .to_owned();
        let wanted = "CustomResourceDefinition";
        return Err(DefinitionError::Malformed { wanted, path: "spec.versions".to_owned(), message });
    }
    Definition::from_parts(name, &stored.annotations, &stored.spec, Some(claim.clone()))
}

fn declared(mut definition: Definition, declarations: &[Arc<Declaration>]) -> CompileOutcome {
    for declaration in declarations {
        definition.declare(declaration);
    }
    CompileOutcome::Compiled(Box::new(CompiledDefinition::new(definition)))
}

/// No declaration about a kind is in force while its schema cannot be used, so each gets a fault, too.
fn reject(name: &str, kind: &GroupKind, declarations: &[Arc<Declaration>], error: DefinitionError) -> CompileOutcome {
    let of_subject = Fault::new(FaultKind::UnreadableCrd, name, with_causes(&error));
    let of_declarations = declarations.iter().map(|declaration| {
        let message = format!("the schema of `{kind}` cannot be used; mend it");
        Fault::of_declaration(FaultKind::UnusableTarget, name, declaration.name(), "/spec/target", message)
    });
    let faults = std::iter::once(of_subject).chain(of_declarations).collect();
    CompileOutcome::Rejected(error, Box::new(CompiledDefinition::unreadable(name, faults)))
}
