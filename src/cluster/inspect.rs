//! Inspects a `UnionDeclaration` before it is stored: compiles it with the schema of its target.
//!
//! Reads the schema from the API server at each inspection, so that a CRD applied a moment before counts. Concurrent
//! inspections share their requests.

use super::coalesce::Coalesced;
use super::inputs::{Inputs, KindDocuments, versions};
use super::raw::RawDefinition;
use super::rebuild::{MAX_COMPILE_MEMORY, missing_target};
use super::schemas::{DocumentIndex, SchemaFetchError, Schemas};
use crate::causes::with_causes;
use kube_unions_core::catalog::{Builder, compiling_cost};
use kube_unions_core::declaration::{Acceptance, Declaration, Definition, DefinitionError, Fault, FaultKind, Source};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// An error of [`Cluster::inspect`](super::Cluster::inspect).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The schema of the target cannot be read.
    #[error(transparent)]
    Schema(#[from] SchemaFetchError),
    /// The schema of the target cannot be used.
    #[error("the schema of the target cannot be used")]
    Target(#[from] DefinitionError),
    /// The CRD of the target takes too much memory to compile.
    #[error("the CRD `{0}` takes more than 32 MiB of memory to compile: make its schemas smaller")]
    TooLarge(String),
    /// The thread panicked, or the program is stopping.
    #[error("compiling was interrupted: try again")]
    CutOff,
}

/// Requests that concurrent inspections share, so that the API server gets few.
pub(super) struct Requests {
    /// By name.
    definitions: Coalesced<Result<Option<Arc<RawDefinition>>, SchemaFetchError>>,
    index: Coalesced<Result<DocumentIndex, SchemaFetchError>>,
    /// By group and versions.
    editions: Coalesced<Result<KindDocuments, SchemaFetchError>>,
    /// Held while a schema is compiled. Compiling goes on after the inspection is cancelled.
    compiling: Arc<Semaphore>,
}

impl Default for Requests {
    fn default() -> Self {
        let compiling = Arc::new(Semaphore::new(COMPILING));
        Self {
            definitions: Coalesced::default(),
            index: Coalesced::default(),
            editions: Coalesced::default(),
            compiling,
        }
    }
}

/// Concurrent compilations.
const COMPILING: usize = 1;

/// Returns the faults that a declaration, given as the JSON text of the whole object, would have if it were applied now.
pub(super) async fn inspect(
    requests: &Requests,
    schemas: &Schemas,
    inputs: &Mutex<Inputs>,
    published: bool,
    object: &str,
) -> Result<Vec<Fault>, InspectError> {
    let (declaration, mut faults) = match Declaration::from_json(object) {
        Ok(read) => read,
        Err(error) => return Ok(vec![unreadable(&error)]),
    };
    let kind = declaration.target().group_kind();
    if kind.kind.is_empty() {
        return Ok(faults);
    }
    let (own, defined_by, mut declarations) = {
        let inputs = inputs.lock().unwrap_or_else(PoisonError::into_inner);
        (inputs.builtin_groups(), inputs.definition_of(&kind).map(str::to_owned), inputs.declarations_of(&kind))
    };
    let name = declaration.name().to_owned();
    declarations.retain(|other| other.name() != name);
    declarations.push(Arc::new(declaration));
    declarations.sort_by(|one, other| one.name().cmp(other.name()));

    let raw = match defined_by {
        Some(name) => {
            let read = async { Ok(schemas.definition(&name).await?.map(Arc::new)) };
            requests.definitions.read(&name, read).await?
        }
        None => None,
    };
    let definition = if let Some(raw) = raw {
        // A CRD that does not count has a fault of its own; the declaration is not at fault.
        let Ok(parts) = raw.parts() else { return Ok(faults) };
        let Ok(Acceptance::Accepted(claim)) = raw.acceptance(&own) else { return Ok(faults) };
        let annotations = parts.annotations.values().map(String::len).sum();
        if compiling_cost(parts.spec.get(), annotations) > MAX_COMPILE_MEMORY {
            return Err(InspectError::TooLarge(raw.name().to_owned()));
        }
        Some(Definition::with_accepted_names(claim, raw.name(), &parts.annotations, parts.spec.get())?)
    } else {
        let versions = if published { None } else { versions(declarations.iter().map(AsRef::as_ref)) };
        let read = async {
            let index = requests.index.read("", schemas.index()).await?;
            schemas.documents(&index, &kind, versions.as_ref()).await
        };
        let edition = requests.editions.read(&format!("{} {versions:?}", kind.group), read).await?;
        match Definition::from_openapi(edition.documents.iter().map(AsRef::as_ref), &kind.group, &kind.kind, published)
        {
            Ok(definition) => Some(definition),
            Err(DefinitionError::NotDescribed(_)) => None,
            Err(error) => return Err(error.into()),
        }
    };
    let Some(mut definition) = definition else {
        faults.push(missing_target(&kind, &name));
        return Ok(faults);
    };
    let seat = Arc::clone(&requests.compiling).acquire_owned().await.map_err(|_| InspectError::CutOff)?;
    // A large schema takes milliseconds to compile.
    let compiled = tokio::task::spawn_blocking(move || {
        let _seat = seat;
        for declaration in &declarations {
            definition.declare(declaration);
        }
        let mut builder = Builder::new();
        builder.apply(definition);
        builder.build()
    });
    let catalog = compiled.await.map_err(|_| InspectError::CutOff)?;
    let own = catalog.faults().iter().filter(|fault| fault.declaration.as_deref() == Some(&*name));
    faults.extend(own.cloned());
    Ok(faults)
}

fn unreadable(error: &dyn std::error::Error) -> Fault {
    Fault {
        source: Some(Source::Declaration),
        pointer: "/spec".to_owned(),
        ..Fault::new(FaultKind::UnreadableDeclaration, "UnionDeclaration", with_causes(error))
    }
}
