//! The unions of a cluster, learnt once as the webhook learns them while it watches: by the same working set, from the same
//! CRDs, declarations and documents.

use super::super::raw::{Declarations, Definitions, RawDeclaration, RawDefinition, RawResource};
use super::super::rounds;
use super::super::state::State;
use super::super::{BuiltinUnions, Cluster};
use super::LiveError;
use super::list::Pages;
use crate::catalog::Catalog;
use crate::telemetry::with_causes;
use kube::Client;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was learnt, and what was not.
#[derive(Debug)]
pub struct Learnt {
    /// The unions in force.
    pub catalog: Catalog,
    /// What may have unions that are not known, and why.
    pub lacking: BTreeMap<String, String>,
}

pub(super) async fn learn(client: &Client, unions: BuiltinUnions, read: impl Fn()) -> Result<Learnt, LiveError> {
    let cluster = Cluster::new(client.clone(), unions);
    let mut state = State::new(&cluster);
    let mut lacking = BTreeMap::new();

    // The declarations first, so that each definition is compiled once, and dropped.
    state.list_declarations();
    let declared = each(client, Declarations::collection(), |text| state.declare(&RawDeclaration::read(text))).await;
    match declared {
        Ok(()) => state.declarations_listed(),
        Err(LiveError::Refused(refusal)) if refusal.code() == 404 => state.no_declarations(true),
        Err(LiveError::Refused(refusal)) if refusal.code() == 403 => {
            lacking.insert("UnionDeclarations".to_owned(), refusal.to_string());
            state.no_declarations(false);
        }
        Err(error) => return Err(error),
    }

    state.list_definitions();
    each(client, Definitions::collection(), |text| {
        state.define(&RawDefinition::read(text));
        read();
    })
    .await?;
    state.definitions_listed();

    while !state.is_tried() {
        let Some((orders, publishing)) = state.orders() else { break };
        let answers = rounds::fetch(Arc::clone(&cluster.schemas), orders, publishing).await;
        if let Some(Err(error)) = &answers.publishing {
            lacking.insert("unions that OpenAPI documents publish".to_owned(), with_causes(error));
        }
        for (kind, fetched) in &answers.kinds {
            match fetched {
                Ok(_) => drop(lacking.remove(&kind.to_string())),
                Err(error) => drop(lacking.insert(kind.to_string(), with_causes(error))),
            }
        }
        state.answer(answers);
    }
    Ok(Learnt { catalog: state.catalog(), lacking })
}

/// Has each object of a collection seen.
async fn each(client: &Client, path: String, mut see: impl FnMut(&str)) -> Result<(), LiveError> {
    let mut pages = Pages::new(client.clone(), path);
    while let Some(page) = pages.next().await? {
        page.objects().for_each(|object| see(object.text));
    }
    Ok(())
}
