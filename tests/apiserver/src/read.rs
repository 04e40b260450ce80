//! Reads: one object, and lists in pages.

use crate::answer::Answer;
use crate::error::{ApiError, FieldError};
use crate::instance::Instance;
use crate::kinds::set_or_remove;
use crate::query::Query;
use crate::resource::{BuiltinKind, ResourceInfo};
use crate::schema;
use crate::selector::Selection;
use crate::storage::StoredPage;
use crate::write::Target;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Time in which a cache has to reach a version that a read asks for.
pub(crate) const FRESHNESS: Duration = Duration::from_secs(3);

/// The revision at which a list is read.
enum ListRevision {
    /// The present.
    Now,
    /// Any version that the cache has, at least this one.
    NotOlderThan(u64),
    Exactly(u64),
}

/// A token with which a list continues.
struct ContinueToken {
    /// Below 0: the present.
    revision: i64,
    start: String,
}

impl Instance {
    /// Returns one object.
    pub(crate) async fn get(&self, target: &Target, query: &Query) -> Result<Answer, ApiError> {
        let asked = version_parameter(query)?;
        let (collection, key) = (target.resource.collection(), target.key());
        let object = match asked {
            None => self.shared.state().get(&collection, &key).map(|stored| (*stored.object).clone()),
            Some(asked) => {
                let seen = self.wait_for(asked).await?;
                self.shared.state().storage.get_at(&collection, &key, seen).map(|object| (*object).clone())
            }
        };
        let object = object.ok_or_else(|| target.not_found())?;
        Ok(Answer::of(presented(&target.resource, &object)))
    }

    /// Returns a list of objects.
    pub(crate) async fn list(&self, target: &Target, query: &Query) -> Result<Answer, ApiError> {
        let resource = &target.resource;
        let [labels, fields] = ["labelSelector", "fieldSelector"].map(|name| query.text(name));
        Selection::check(labels, fields)?;
        check_list_options(query)?;
        let selection = Selection::parse(resource, labels, fields)?;
        let limit = query.number("limit")?.unwrap_or_default();
        let token = query.text("continue");
        let mut start = String::new();
        let revision = if token.is_empty() {
            let asked = version_parameter(query)?;
            match (query.text("resourceVersionMatch"), asked) {
                (_, None) => ListRevision::Now,
                ("Exact", Some(asked)) => ListRevision::Exactly(asked),
                ("", Some(asked)) if asked > 0 && limit > 0 => ListRevision::Exactly(asked),
                (_, Some(asked)) => ListRevision::NotOlderThan(asked),
            }
        } else {
            if !matches!(query.text("resourceVersion"), "" | "0") {
                let message = "specifying resource version is not allowed when using continue";
                return Err(ApiError::bad_request(message));
            }
            let token = ContinueToken::parse(token)?;
            start = token.start;
            u64::try_from(token.revision).map_or(ListRevision::Now, ListRevision::Exactly)
        };
        let is_cached = matches!(revision, ListRevision::NotOlderThan(_));
        let revision = match revision {
            ListRevision::Now => self.shared.state().storage.revision(),
            ListRevision::NotOlderThan(asked) => self.wait_for(asked).await?,
            ListRevision::Exactly(asked) => self.kept(asked, &start)?,
        };
        // The cache answers without pages, except to a list at a version.
        let limit = if is_cached && version_parameter(query)? == Some(0) { 0 } else { limit };
        Ok(Answer::of(self.page(target, &selection, revision, &start, limit)))
    }

    /// Checks that the history has a revision.
    fn kept(&self, asked: u64, start: &str) -> Result<u64, ApiError> {
        let state = self.shared.state();
        let (current, compacted) = (state.storage.revision(), state.storage.compacted());
        if asked > current {
            return Err(ApiError::too_large_version(asked, current, 0));
        }
        if asked >= compacted {
            return Ok(asked);
        }
        if start.is_empty() {
            return Err(ApiError::expired("The resourceVersion for the provided list is too old."));
        }
        Err(ApiError::continue_expired(ContinueToken { revision: -1, start: start.to_owned() }.format()))
    }

    fn page(&self, target: &Target, selection: &Selection, revision: u64, start: &str, limit: u64) -> Value {
        let resource = &target.resource;
        // A list that continues is not narrowed by its fields.
        let begins = start.is_empty();
        let selected = selection.namespace().filter(|_| begins && resource.namespaced && target.namespace.is_empty());
        let namespace = selected.unwrap_or(&target.namespace);
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let limit = if limit == 0 { usize::MAX } else { limit };
        let start = if start.is_empty() { String::new() } else { format!("{prefix}{start}") };
        let state = self.shared.state();
        let is_selected = |object: &Value| selection.selects(object);
        let StoredPage { objects, remaining } =
            state.storage.page(&resource.collection(), revision, (&prefix, &start), limit, is_selected);
        drop(state);
        let is_in_one_place = !resource.namespaced || !namespace.is_empty();
        let remaining = if begins && is_in_one_place && selection.is_single() { 0 } else { remaining };
        let mut metadata = Map::new();
        if resource.custom.is_some() {
            metadata.insert("continue".to_owned(), "".into());
        }
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
        if let Some((last, _)) = objects.last().filter(|_| remaining > 0) {
            let behind = format!("{}\0", last.strip_prefix(&prefix).unwrap_or(last));
            let token = ContinueToken { revision: i64::try_from(revision).unwrap_or(-1), start: behind };
            metadata.insert("continue".to_owned(), token.format().into());
            if selection.is_everything() {
                metadata.insert("remainingItemCount".to_owned(), remaining.into());
            }
        }
        let items: Vec<Value> = objects
            .iter()
            .map(|(_, stored)| {
                let mut item = presented(resource, &stored.object);
                if resource.builtin.is_some() {
                    set_or_remove(&mut item, "apiVersion", None);
                    set_or_remove(&mut item, "kind", None);
                }
                item
            })
            .collect();
        json!({
            "kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": metadata, "items": items,
        })
    }
}

impl ContinueToken {
    fn parse(text: &str) -> Result<Self, ApiError> {
        let invalid = |why: &str| ApiError::bad_request(format!("continue key is not valid{why}"));
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid(": illegal base64 data"))?;
        let token: Value = serde_json::from_slice(&bytes).map_err(|_| invalid(""))?;
        if token.get("v").and_then(Value::as_str) != Some("meta.k8s.io/v1") {
            return Err(invalid(": server does not recognize this encoded version"));
        }
        let revision = token.get("rv").and_then(Value::as_i64).unwrap_or_default();
        if revision == 0 {
            return Err(invalid(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = token.get("start").and_then(Value::as_str).unwrap_or_default();
        if start.is_empty() {
            return Err(invalid(": encoded start key empty (version meta.k8s.io/v1)"));
        }
        Ok(Self { revision, start: start.to_owned() })
    }

    fn format(&self) -> String {
        let token = json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.start});
        BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
    }
}

/// Returns the `resourceVersion` that a read asks for, `None` for the present.
pub(crate) fn version_parameter(query: &Query) -> Result<Option<u64>, ApiError> {
    let text = query.text("resourceVersion");
    if text.is_empty() {
        return Ok(None);
    }
    let message =
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax");
    text.parse().map(Some).map_err(|_| ApiError::new(500, "", message))
}

fn check_list_options(query: &Query) -> Result<(), ApiError> {
    let of = query.text("resourceVersionMatch");
    let field = "resourceVersionMatch";
    let mut errors = Vec::new();
    if !of.is_empty() {
        if query.text("resourceVersion").is_empty() {
            let message = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(field, message));
        }
        if !query.text("continue").is_empty() {
            let message = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(field, message));
        }
        if of != "Exact" && of != "NotOlderThan" {
            errors.push(FieldError::not_supported(field, &of.into(), &["Exact", "NotOlderThan", ""]));
        }
        if of == "Exact" && query.text("resourceVersion") == "0" {
            let message = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(field, message));
        }
    }
    if !query.text("sendInitialEvents").is_empty() {
        let message = "sendInitialEvents is forbidden for list";
        errors.push(FieldError::forbidden("sendInitialEvents", message));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &errors)) }
}

/// Returns a stored object as a version of its resource has it.
pub(crate) fn presented(resource: &ResourceInfo, object: &Value) -> Value {
    let mut object = object.clone();
    let Some(custom) = &resource.custom else {
        if resource.builtin == Some(BuiltinKind::CustomResourceDefinition)
            && let Some(status) = object.get_mut("status")
            && status.get("conditions").is_none()
        {
            set_or_remove(status, "conditions", Some(Value::Null));
        }
        return object;
    };
    set_or_remove(&mut object, "apiVersion", Some(resource.api_version().into()));
    if let Some(of) = custom.version.pointer("/schema/openAPIV3Schema") {
        if custom.definition.pointer("/spec/preserveUnknownFields") != Some(&Value::Bool(true)) {
            schema::prune(of, &mut object, &mut Vec::new());
        }
        schema::set_defaults(of, &mut object);
    }
    object
}
