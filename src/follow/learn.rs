//! Reads a cluster once, for a command: all of its unions, with the [`state`](super::state) that the webhook uses while it watches,
//! or the schema of one kind, with the unions that `UnionDeclaration`s declare.

use super::schemas::{SchemaFetchError, Schemas};
use super::state::{ClusterState, run};
use super::{BuiltinUnions, Cluster};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{Client, Resource};
use kube_unions_api::{DiscoveredResource, ListedObject, LiveError, Pages, WatchChange};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::{
    BuiltinGroups, Declaration, Definition, DefinitionError, OpenApi, UnionDeclaration,
};
use kube_unions_core::names::GroupKind;
use kube_unions_core::workspace::Workspace;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The unions of a cluster, and the gaps.
#[derive(Debug)]
pub struct Learnt {
    /// The unions in force.
    pub catalog: Catalog,
    /// Objects that could not be read and may declare unions, with the reason.
    pub lacking: BTreeMap<String, String>,
}

/// The schema of a kind.
#[derive(Debug)]
pub enum KindDescription {
    /// From its CRD, with the unions of `UnionDeclaration`s.
    Custom(Definition),
    /// From the API server's own document: the document, and the definition with the unions of `UnionDeclaration`s.
    BuiltIn(Arc<OpenApi>, Definition),
}

/// Returns the unions that the webhook would enforce on a cluster. Calls `read` for each CRD.
pub async fn learn(client: &Client, unions: BuiltinUnions, read: impl Fn()) -> Result<Learnt, LiveError> {
    let cluster = Cluster::new(client.clone(), unions, Gauge::default());
    let mut state = ClusterState::new(&cluster);
    let mut lacking = BTreeMap::new();

    // Read the declarations first, so that each CRD is compiled once.
    state.observe_declaration(WatchChange::Listing);
    let declared =
        each(client, UnionDeclaration::url_path(&(), None), |object| state.observe_declaration(object.into()));
    match declared.await {
        Ok(()) => state.observe_declaration(WatchChange::Listed),
        Err(error) if error.code() == Some(404) => state.declarations_unavailable(true),
        Err(error) if error.code() == Some(403) => {
            lacking.insert("UnionDeclarations".to_owned(), error.to_string());
            state.declarations_unavailable(false);
        }
        Err(error) => return Err(error),
    }

    // The services tell which CRDs count. Without them, CRDs of some groups do not.
    state.observe_service(WatchChange::Listing);
    let served = each(client, APIService::url_path(&(), None), |object| state.observe_service(object.into()));
    let mut refused = None;
    match served.await {
        Ok(()) => state.observe_service(WatchChange::Listed),
        Err(error) if error.code() == Some(404) => {}
        Err(error) if error.code() == Some(403) => refused = Some(error.to_string()),
        Err(error) => return Err(error),
    }

    state.observe_definition(WatchChange::Listing);
    let mut pages = Pages::at(client, CustomResourceDefinition::url_path(&(), None));
    while let Some(page) = pages.next().await? {
        for object in page.objects() {
            // The name of a CRD is `plural.group`. Report the gap if a CRD is in such a group.
            let group = object.name.split_once('.').map_or("", |(_, group)| group);
            if BuiltinGroups::Guessed.has(group)
                && let Some(why) = refused.take()
            {
                lacking.insert("CRDs of groups that end in .k8s.io or .kubernetes.io".to_owned(), why);
            }
            state.observe_definition(object.into());
            read();
        }
        compile(&mut state).await;
    }
    state.observe_definition(WatchChange::Listed);

    while !state.is_settled() {
        let Some(fetch) = state.next_fetch() else { break };
        let answers = fetch.run(Arc::clone(&cluster.schemas)).await;
        if let Some(Err(error)) = &answers.publishing {
            lacking.insert("unions that OpenAPI documents publish".to_owned(), error.to_string());
        }
        for (kind, fetched) in &answers.kinds {
            match fetched {
                Ok(_) => drop(lacking.remove(&kind.to_string())),
                Err(error) => drop(lacking.insert(kind.to_string(), error.to_string())),
            }
        }
        state.fetched(answers);
        compile(&mut state).await;
    }
    Ok(Learnt { catalog: state.workspace().catalog(), lacking })
}

/// Returns the schema of a resource, from its CRD or from the OpenAPI document of a built-in type.
pub async fn described(client: &Client, resource: &DiscoveredResource) -> Result<KindDescription, SchemaFetchError> {
    let schemas = Schemas::new(client.clone());
    let declarations = declarations(client).await.map_err(|error| SchemaFetchError(error.to_string()))?;
    let unusable = |name: &str, reason: &str| SchemaFetchError(format!("cannot use the definition `{name}`: {reason}"));
    let name = format!("{}.{}", resource.plural, resource.group);
    let crd = if resource.group.is_empty() { None } else { schemas.definition(&name).await? };
    // Anybody who may create CRDs may name one as a built-in resource.
    let reserved = BuiltinGroups::Guessed.has(&resource.group);
    if let Some(crd) = crd
        && !(reserved && schemas.is_own(&resource.group, &resource.version).await)
    {
        let definition = Definition::from_json(&crd).map_err(|error| unusable(&name, &error.to_string()))?;
        return Ok(KindDescription::Custom(declarations.declared(definition)));
    }
    let kind = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
    let version = BTreeSet::from([resource.version.to_string()]);
    let edition = schemas.documents(&schemas.index().await?, &kind, Some(&version)).await?;
    let not_described = || {
        let ways = "neither by a CustomResourceDefinition nor in its OpenAPI documents";
        SchemaFetchError(format!("the server does not describe {resource}: {ways}"))
    };
    let document = edition.into_iter().next().ok_or_else(not_described)?;
    match Definition::from_openapi([&*document], &kind.group, &kind.kind, false) {
        Ok(definition) => Ok(KindDescription::BuiltIn(document, declarations.declared(definition))),
        Err(DefinitionError::NotDescribed(_)) => Err(not_described()),
        Err(error) => Err(unusable(&kind.to_string(), &error.to_string())),
    }
}

/// Returns all `UnionDeclaration`s; none if the cluster lacks their CRD, or the user may not list them.
async fn declarations(client: &Client) -> Result<Workspace, LiveError> {
    let mut declarations = Workspace::of_files();
    let read = each(client, UnionDeclaration::url_path(&(), None), |object| {
        // A malformed declaration declares nothing; its status has the reason.
        if let Ok(read) = Declaration::from_json(object.text) {
            let name = read.0.name().to_owned();
            declarations.set_declaration(&name, Ok(read));
        }
    });
    match read.await {
        Err(error) if !matches!(error.code(), Some(403 | 404)) => Err(error),
        _ => Ok(declarations),
    }
}

/// Compiles every subject whose inputs changed.
async fn compile(state: &mut ClusterState) {
    loop {
        let job = state.workspace().next_job();
        let Some(job) = job else { return };
        state.compiled(run(job).await);
    }
}

/// Calls `see` with each object of a collection.
async fn each(client: &Client, path: String, mut see: impl FnMut(ListedObject<'_>)) -> Result<(), LiveError> {
    let mut pages = Pages::at(client, path);
    while let Some(page) = pages.next().await? {
        page.objects().for_each(&mut see);
    }
    Ok(())
}
