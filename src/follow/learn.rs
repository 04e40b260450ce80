//! Reads the unions of a cluster once, with the [`state`](super::state) that the webhook uses while it watches.

use super::raw::{RawDeclaration, RawDefinition};
use super::state::{ClusterState, run};
use super::{BuiltinUnions, Cluster};
use crate::api::{LiveError, Pages};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::runtime::watcher::Event;
use kube::{Client, Resource};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::BuiltinGroups;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The unions of a cluster, and the gaps.
#[derive(Debug)]
pub struct Learnt {
    /// The unions in force.
    pub catalog: Catalog,
    /// Objects that could not be read and may declare unions, with the reason.
    pub lacking: BTreeMap<String, String>,
}

/// Returns the unions that the webhook would enforce on a cluster. Calls `read` for each CRD.
pub async fn learn(client: &Client, unions: BuiltinUnions, read: impl Fn()) -> Result<Learnt, LiveError> {
    let cluster = Cluster::new(client.clone(), unions, Gauge::default());
    let mut state = ClusterState::new(&cluster);
    let mut lacking = BTreeMap::new();

    // Read the declarations first, so that each CRD is compiled once.
    state.declaration_heard(Event::Init);
    let declared = each(client, RawDeclaration::url_path(&(), None), |text| {
        state.declaration_heard(Event::InitApply(RawDeclaration::read(text)));
    });
    match declared.await {
        Ok(()) => state.declaration_heard(Event::InitDone),
        Err(error) if error.code() == Some(404) => state.declarations_unavailable(true),
        Err(error) if error.code() == Some(403) => {
            lacking.insert("UnionDeclarations".to_owned(), error.to_string());
            state.declarations_unavailable(false);
        }
        Err(error) => return Err(error),
    }

    // The services tell which CRDs count. Without them, CRDs of some groups do not.
    state.service_heard(Event::Init);
    let served = each(client, APIService::url_path(&(), None), |text| {
        if let Ok(service) = serde_json::from_str(text) {
            state.service_heard(Event::InitApply(service));
        }
    });
    let mut refused = None;
    match served.await {
        Ok(()) => state.service_heard(Event::InitDone),
        Err(error) if error.code() == Some(404) => {}
        Err(error) if error.code() == Some(403) => refused = Some(error.to_string()),
        Err(error) => return Err(error),
    }

    state.definition_heard(Event::Init);
    let mut pages = Pages::at(client, RawDefinition::url_path(&(), None));
    while let Some(page) = pages.next().await? {
        for object in page.objects() {
            let definition = RawDefinition::read(object.text);
            // The name of a CRD is `plural.group`. Report the gap if a CRD is in such a group.
            let group = definition.name().split_once('.').map_or("", |(_, group)| group);
            if BuiltinGroups::Guessed.has(group)
                && let Some(why) = refused.take()
            {
                lacking.insert("CRDs of groups that end in .k8s.io or .kubernetes.io".to_owned(), why);
            }
            state.definition_heard(Event::InitApply(definition));
            read();
        }
        compile(&mut state).await;
    }
    state.definition_heard(Event::InitDone);

    while !state.is_settled() {
        let Some(fetch) = state.next_fetch() else { break };
        let answers = fetch.run(Arc::clone(&cluster.schemas)).await;
        if let Some(Err(error)) = &answers.publishing {
            lacking.insert("unions that OpenAPI documents publish".to_owned(), with_causes(error));
        }
        for (kind, fetched) in &answers.kinds {
            match fetched {
                Ok(_) => drop(lacking.remove(&kind.to_string())),
                Err(error) => drop(lacking.insert(kind.to_string(), with_causes(error))),
            }
        }
        state.fetched(answers);
        compile(&mut state).await;
    }
    Ok(Learnt { catalog: state.catalog(), lacking })
}

/// Compiles every subject whose inputs changed.
async fn compile(state: &mut ClusterState) {
    while let Some(job) = state.next_job() {
        state.compiled(run(job).await);
    }
}

/// Calls `see` with each object of a collection.
pub(super) async fn each(client: &Client, path: String, mut see: impl FnMut(&str)) -> Result<(), LiveError> {
    let mut pages = Pages::at(client, path);
    while let Some(page) = pages.next().await? {
        page.objects().for_each(|object| see(object.text));
    }
    Ok(())
}
