//! Inspects a `UnionDeclaration` before it is stored: compiles it with the schema of its target.
//!
//! Reads the schema from the API server at each inspection, so that a CRD applied a moment before counts. Concurrent
//! inspections share their requests.

use super::raw::RawCrd;
use super::schemas::{DocumentIndex, SchemaFetchError};
use super::{BuiltinUnions, Cluster};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{Declaration, Fault, OpenApi};
use kube_unions_core::workspace::unreadable_declaration;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::time::Instant;

/// Requests that concurrent inspections share, so that the API server gets few.
#[derive(Default)]
pub(super) struct Requests {
    /// JSON texts, by name.
    definitions: Coalesced<Result<Option<Arc<str>>, SchemaFetchError>>,
    index: Coalesced<Result<DocumentIndex, SchemaFetchError>>,
    /// By group and versions.
    editions: Coalesced<Result<Vec<Arc<OpenApi>>, SchemaFetchError>>,
    /// Held while a schema is compiled, one at a time. Compiling goes on after the inspection is cancelled.
    compiling: Arc<tokio::sync::Mutex<()>>,
}

impl Cluster {
    /// Returns the faults that a `UnionDeclaration`, given as the JSON text of the whole object, would have if it were applied
    /// now. A target that the cluster does not have is a warning, since it may be installed later.
    pub async fn inspect(&self, object: &str) -> Result<Vec<Fault>, SchemaFetchError> {
        let Self { requests, schemas, workspace, builtin_unions, .. } = self;
        let published = *builtin_unions == BuiltinUnions::OpenApi;
        let (declaration, mut faults) = match Declaration::from_json(object) {
            Ok(read) => read,
            Err(error) => return Ok(vec![unreadable_declaration(with_causes(&error))]),
        };
        let kind = declaration.target().group_kind();
        if kind.kind.is_empty() {
            return Ok(faults);
        }
        let (shared, target) = (Arc::clone(workspace), kind.clone());
        // A large catalog may be in the making.
        let surroundings = tokio::task::spawn_blocking(move || {
            let workspace = shared.lock();
            (workspace.around(&target), workspace.crd_of(&target).map(str::to_owned))
        });
        let (mut around, crd) = surroundings.await.map_err(|_| cut_off())?;
        let name = declaration.name().to_owned();
        around.set_declaration(&name, Ok((declaration, Vec::new())));

        let definition = match crd {
            Some(name) => {
                let read = async { Ok(schemas.definition(&name).await?.map(Arc::from)) };
                requests.definitions.read(&name, read).await?.map(|text| (name, text))
            }
            None => None,
        };
        let documents = if definition.is_none() {
            let versions = if published { None } else { around.versions_of(&kind) };
            let read = async {
                let index = requests.index.read("", schemas.index()).await?;
                schemas.documents(&index, &kind, versions.as_ref()).await
            };
            requests.editions.read(&format!("{} {versions:?}", kind.group), read).await?
        } else {
            Vec::new()
        };
        let seat = Arc::clone(&requests.compiling).lock_owned().await;
        // A large schema takes milliseconds to compile.
        let compiled = tokio::task::spawn_blocking(move || {
            let _seat = seat;
            if let Some((name, text)) = definition {
                // A CRD that does not count has a fault of its own; the declaration is not at fault.
                around.set_crd(&name, RawCrd::texts(&RawCrd::read(&text)));
            } else {
                around.set_publishing(published.then(|| kind.clone()).into_iter().collect());
                around.set_documents(&kind, documents);
            }
            while let Some(job) = around.next_job() {
                let compiled = job.compile();
                if let Some(error) = compiled.error() {
                    let reason = with_causes(error);
                    return Err(SchemaFetchError(format!("the schema of the target cannot be used: {reason}")));
                }
                around.finish(compiled);
            }
            Ok(around.catalog())
        });
        let catalog = compiled.await.map_err(|_| cut_off())??;
        let own = catalog.faults().iter().filter(|fault| fault.declaration.as_deref() == Some(&*name));
        faults.extend(own.cloned());
        Ok(faults)
    }
}

/// The error if the thread panicked, or the program is stopping.
fn cut_off() -> SchemaFetchError {
    SchemaFetchError("compiling was interrupted: try again".to_owned())
}

/// Reads in progress, by name. A name is kept while a task waits for it.
pub(super) struct Coalesced<T> {
    readings: Mutex<HashMap<String, Weak<CachedRead<T>>>>,
}

/// The last read of one name, and the time at which it began.
type CachedRead<T> = tokio::sync::Mutex<Option<(Instant, T)>>;

impl<T> Default for Coalesced<T> {
    fn default() -> Self {
        Self { readings: Mutex::default() }
    }
}

impl<T: Clone> Coalesced<T> {
    /// Returns a value whose read began after this call, so that it is no older than the result of a read alone. One task reads
    /// a name at a time.
    pub(super) async fn read(&self, name: &str, read: impl Future<Output = T>) -> T {
        let asked = Instant::now();
        let reading = self.reading(name);
        let mut last = reading.lock().await;
        if let Some((began, value)) = &*last
            && *began >= asked
        {
            return value.clone();
        }
        let began = Instant::now();
        let value = read.await;
        *last = Some((began, value.clone()));
        value
    }

    fn reading(&self, name: &str) -> Arc<CachedRead<T>> {
        let mut readings = self.readings.lock();
        if let Some(reading) = readings.get(name).and_then(Weak::upgrade) {
            return reading;
        }
        readings.retain(|_, reading| reading.strong_count() > 0);
        let reading = Arc::<CachedRead<T>>::default();
        readings.insert(name.to_owned(), Arc::downgrade(&reading));
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn callers_that_arrive_during_a_read_share_the_next_one() {
        let (coalesced, read, go) = (Coalesced::default(), AtomicUsize::new(0), Notify::new());
        let ask = |name: &'static str| {
            let (coalesced, read, go) = (&coalesced, &read, &go);
            async move {
                let reading = async {
                    let number = read.fetch_add(1, Ordering::Relaxed) + 1;
                    go.notified().await;
                    number
                };
                coalesced.read(name, reading).await
            }
        };
        let first = ask("a");
        let others = futures::future::join_all((0..100).map(|_| ask("a")));
        let elsewhere = ask("b");
        let release = async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
                go.notify_one();
            }
        };
        let (first, others, elsewhere, ()) = futures::join!(first, others, elsewhere, release);
        assert_eq!(first, 1);
        // The first reader may have read before the others asked, and another name is another object.
        assert!(others.iter().all(|number| *number == others[0] && *number > 1), "{others:?}");
        assert!(elsewhere > 1 && elsewhere != others[0]);
        assert_eq!(read.load(Ordering::Relaxed), 3);
        assert!(coalesced.readings.lock().values().all(|reading| reading.upgrade().is_none()));
    }

    #[tokio::test]
    async fn a_cancelled_read_is_taken_over_by_the_next_caller() {
        let coalesced = Coalesced::default();
        let mut given_up = Box::pin(coalesced.read("a", std::future::pending()));
        assert!(futures::poll!(&mut given_up).is_pending());
        let mut next = Box::pin(coalesced.read("a", async { 7 }));
        assert!(futures::poll!(&mut next).is_pending());
        drop(given_up);
        assert_eq!(next.await, 7);
    }
}
