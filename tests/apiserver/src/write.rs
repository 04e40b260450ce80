//! Creates, replacements, patches and deletions.
//!
//! As in a real API server, a change is computed from the stored object, goes through admission, and is stored if the object is still
//! the one that it was computed from. Otherwise it is computed again, or is a conflict.

use crate::admission::Operation;
use crate::answer::{Answer, Warnings};
use crate::controllers::{finalizers, is_being_deleted};
use crate::error::{ApiError, FieldError, OPTIMISTIC_LOCK};
use crate::instance::Instance;
use crate::kinds::{self, DecodedObject};
use crate::patch::Change;
use crate::query::Query;
use crate::read::presented;
use crate::resource::{BuiltinKind, ResourceInfo};
use crate::state::set_condition;
use crate::storage::{key_of, version_of};
use crate::validate;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// The object that a request is about.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) resource: ResourceInfo,
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: String,
}

/// The parameters of a write.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: String,
    /// True if the request names the manager, and it does not come from the name of the client.
    pub(crate) is_manager_named: bool,
    pub(crate) field_validation: FieldValidation,
    pub(crate) user: String,
    /// The warnings of the answer.
    pub(crate) warnings: Warnings,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The outcome of one attempt at a change.
pub(crate) enum Attempt {
    Done(Answer),
    /// Another write was faster.
    Again,
}

/// Attempts at a change that does not name a version.
pub(crate) const ATTEMPTS: usize = 64;

impl WriteOptions {
    pub(crate) fn parse(query: &Query, user_agent: &str, user: &str, kind: &str) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        if dry_run.iter().any(|it| *it != "All") {
            let value = json!(dry_run);
            errors.push(FieldError::not_supported("dryRun", &value, &["All"]));
        }
        let field_validation = match query.text("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            "" | "Warn" => FieldValidation::Warn,
            other => {
                let supported = ["", "Ignore", "Warn", "Strict"];
                errors.push(FieldError::not_supported("fieldValidation", &other.into(), &supported));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(ApiError::invalid("meta.k8s.io", kind, "", &errors));
        }
        let named = query.text("fieldManager");
        let agent = user_agent.split('/').next().unwrap_or_default();
        let field_manager = if named.is_empty() { agent } else { named };
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            field_manager: if field_manager.is_empty() { "unknown".to_owned() } else { field_manager.to_owned() },
            is_manager_named: !named.is_empty(),
            field_validation,
            user: user.to_owned(),
            warnings: Warnings::default(),
        })
    }
}

impl Target {
    pub(crate) fn key(&self) -> String {
        key_of(&self.namespace, &self.name)
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.resource, &self.name)
    }
}

impl Instance {
    /// Creates an object.
    pub(crate) async fn create(
        &self,
        target: &Target,
        body: Value,
        options: &WriteOptions,
    ) -> Result<Answer, ApiError> {
        let mut object = decoded(target, body, options)?;
        check_namespace(target, &mut object)?;
        wipe_system_fields(&mut object);
        self.manage_update(target, None, &mut object, options);
        self.create_decoded(target, object, options).await
    }

    /// Creates an object that was read.
    async fn create_decoded(
        &self,
        target: &Target,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Answer, ApiError> {
        let resource = &target.resource;
        if resource.custom.as_ref().is_some_and(|custom| custom.is_terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            let name = text_at(&object, "/metadata/name");
            return Err(ApiError::forbidden(resource, name, why));
        }
        let mut target = target.clone();
        if target.name.is_empty() {
            target.name = text_at(&object, "/metadata/name").to_owned();
        }
        let has_version = object.pointer("/metadata/resourceVersion").is_some();
        object = self.admit(&target, Operation::Create, (object, None), options).await?;
        self.name_new(&mut target, &mut object);
        kinds::prepare_create(resource, &mut object);
        check_admitted_kind(resource, &object)?;
        let mut errors = validate::new_object(resource, &object);
        errors.extend(self.condition_errors(resource, &object));
        if !errors.is_empty() {
            return Err(ApiError::invalid(&resource.group, &resource.kind, &target.name, &errors));
        }
        self.validate(&target, Operation::Create, (&object, None), options).await?;
        if has_version {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::new(500, "", message));
        }
        self.store_new(&target, object, options)
    }

    /// Gives a new object its UID, its time, and a generated name.
    fn name_new(&self, target: &mut Target, object: &mut Value) {
        let mut state = self.shared.state();
        let (uid, time) = (state.new_uid(), state.timestamp(Instant::now()));
        let prefix = text_at(object, "/metadata/generateName").to_owned();
        if target.name.is_empty() && !prefix.is_empty() {
            target.name = format!("{prefix}{}", state.new_suffix());
        }
        let name = target.name.clone();
        let metadata = metadata(object);
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), time);
        if !name.is_empty() {
            metadata.insert("name".to_owned(), name.clone().into());
        }
        if target.resource.builtin == Some(BuiltinKind::Namespace) {
            let labels = metadata.entry("labels").or_insert_with(|| json!({}));
            if let Some(labels) = labels.as_object_mut() {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
            }
        }
    }

    fn store_new(&self, target: &Target, mut object: Value, options: &WriteOptions) -> Result<Answer, ApiError> {
        let mut state = self.shared.state();
        let (collection, key, now) = (target.resource.collection(), target.key(), Instant::now());
        if let Some(stored) = state.get(&collection, &key) {
            let is_ending = is_being_deleted(&stored.object);
            return Err(ApiError::already_exists(&target.resource, &target.name, is_ending));
        }
        match target.resource.builtin {
            Some(BuiltinKind::Service) if target.subresource.is_empty() => {
                crate::service::allocate(&state, &mut object);
            }
            Some(BuiltinKind::ApiService) if object.pointer("/spec/service").is_none() => {
                let time = state.timestamp(now);
                let condition = ["Available", "True", "Local", "Local APIServices are always available"];
                set_condition(&mut object, condition, &time);
            }
            _ => {}
        }
        if options.dry_run {
            return Ok(Answer::created(presented(&target.resource, &object)));
        }
        let stored = state.store(&collection, &key, Some(object), now);
        drop(state);
        self.shared.notify();
        Ok(Answer::created(presented(&target.resource, &stored)))
    }

    /// Changes an object, or creates it if the change says so.
    pub(crate) async fn change(
        &self,
        target: &Target,
        change: Change,
        options: &WriteOptions,
    ) -> Result<Answer, ApiError> {
        for _ in 0..ATTEMPTS {
            if let Attempt::Done(answer) = self.attempt(target, &change, options).await? {
                return Ok(answer);
            }
        }
        Err(ApiError::conflict(&target.resource, &target.name, OPTIMISTIC_LOCK))
    }

    async fn attempt(&self, target: &Target, change: &Change, options: &WriteOptions) -> Result<Attempt, ApiError> {
        let resource = &target.resource;
        let stored = self.shared.state().get(&resource.collection(), &target.key()).cloned();
        let Some(stored) = stored else {
            return self.create_by_change(target, change, options).await.map(Attempt::Done);
        };
        let old = presented(resource, &stored.object);
        check_uid(target, change, &old, options)?;
        let mut object = self.changed(target, change, &old, options)?;
        check_namespace(target, &mut object)?;
        check_name(target, &object)?;
        let operation = Operation::Update;
        object = self.admit(target, operation, (object, Some(&old)), options).await?;
        check_version(target, &mut object, stored.revision, &old)?;
        prepare_update(target, &mut object, &old);
        check_admitted_kind(resource, &object)?;
        let mut errors = validate::changed_object(resource, &object, &old);
        errors.extend(self.condition_errors(resource, &object));
        if !errors.is_empty() {
            return Err(ApiError::invalid(&resource.group, &resource.kind, &target.name, &errors));
        }
        ignore_times(&mut object, &old);
        self.validate(target, operation, (&object, Some(&old)), options).await?;
        Ok(self.store_change(target, &object, &old, stored.revision, options))
    }

    async fn create_by_change(
        &self,
        target: &Target,
        change: &Change,
        options: &WriteOptions,
    ) -> Result<Answer, ApiError> {
        let mut object = match change {
            Change::Replace(body) if creates_by_replacement(target) => {
                check_uid(target, change, &json!({}), options)?;
                let mut object = decoded(target, body.clone(), options)?;
                metadata(&mut object).remove("resourceVersion");
                self.manage_update(target, None, &mut object, options);
                object
            }
            Change::Apply { configuration, .. } if creates_by_apply(target) => {
                self.applied_new(target, configuration, options)?
            }
            Change::Apply { .. } | Change::Replace(_) | Change::Json(_) | Change::Merge(_) => {
                return Err(target.not_found());
            }
        };
        check_namespace(target, &mut object)?;
        check_name(target, &object)?;
        let uid = text_at(&object, "/metadata/uid").to_owned();
        if !uid.is_empty() && matches!(change, Change::Apply { .. }) {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(ApiError::conflict(&target.resource, &target.name, &why));
        }
        wipe_system_fields(&mut object);
        self.create_decoded(target, object, options).await
    }

    fn store_change(
        &self,
        target: &Target,
        object: &Value,
        old: &Value,
        revision: u64,
        options: &WriteOptions,
    ) -> Attempt {
        let (collection, key) = (target.resource.collection(), target.key());
        let mut state = self.shared.state();
        if state.get(&collection, &key).is_none_or(|stored| stored.revision != revision) {
            return Attempt::Again;
        }
        let has_content = object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
        let is_gone = finalizers(object).next().is_none()
            && is_being_deleted(old)
            && (target.resource.builtin != Some(BuiltinKind::Namespace) || !has_content);
        if options.dry_run || (!is_gone && object == old) {
            return Attempt::Done(Answer::of(presented(&target.resource, object)));
        }
        let stored = state.store(&collection, &key, (!is_gone).then_some(object.clone()), Instant::now());
        drop(state);
        self.shared.notify();
        // A last change that ends a deletion is answered with the object as it was changed.
        let answered = presented(&target.resource, if is_gone { object } else { &stored });
        Attempt::Done(Answer::of(answered))
    }
}

/// Reads an object that was sent. Unknown fields are warned about, or refused.
pub(crate) fn decoded(target: &Target, mut body: Value, options: &WriteOptions) -> Result<Value, ApiError> {
    let resource = &target.resource;
    check_kind(resource, &mut body)?;
    let kind = &resource.kind;
    let DecodedObject { object, unknown } = kinds::decode(resource, body).map_err(|error| {
        let version = &resource.version;
        ApiError::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}"))
    })?;
    let unknown: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    match options.field_validation {
        FieldValidation::Strict if !unknown.is_empty() => {
            let unknown = unknown.join(", ");
            let version = &resource.version;
            Err(ApiError::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {unknown}"
            )))
        }
        FieldValidation::Warn => {
            options.warnings.extend(unknown);
            Ok(object)
        }
        FieldValidation::Ignore | FieldValidation::Strict => Ok(object),
    }
}

/// Restores what a write cannot change.
fn prepare_update(target: &Target, object: &mut Value, old: &Value) {
    let generation = old.pointer("/metadata/generation").cloned();
    kinds::set_or_remove(object.get_mut("metadata").unwrap_or(&mut Value::Null), "generation", generation);
    kinds::prepare_update(&target.resource, &target.subresource, object, old);
    let metadata = metadata(object);
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        match old.pointer(&format!("/metadata/{field}")) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    if !metadata.contains_key("uid")
        && let Some(uid) = old.pointer("/metadata/uid")
    {
        metadata.insert("uid".to_owned(), uid.clone());
    }
    if target.resource.builtin == Some(BuiltinKind::Service) && target.subresource.is_empty() {
        crate::service::keep_allocated(object, old);
    }
}

/// Checks the kind of a custom resource, which admission may have changed.
pub(crate) fn check_admitted_kind(resource: &ResourceInfo, object: &Value) -> Result<(), ApiError> {
    let kind = text_at(object, "/kind");
    if resource.custom.is_none() || kind == resource.kind {
        return Ok(());
    }
    let error = FieldError::invalid("kind", &kind.into(), format!("must be {}", resource.kind));
    Err(ApiError::invalid(&resource.group, kind, text_at(object, "/metadata/name"), &[error]))
}

/// Checks `apiVersion` and `kind`. Those of a built-in kind default to those of the resource.
pub(crate) fn check_kind(resource: &ResourceInfo, body: &mut Value) -> Result<(), ApiError> {
    let wanted = resource.api_version();
    let Some(fields) = body.as_object_mut() else {
        return Err(ApiError::bad_request(
            "the object provided is unrecognized (must be of type ".to_owned()
                + &resource.kind
                + "): couldn't get version/kind; json parse error",
        ));
    };
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let is_custom = resource.builtin.is_none();
    if is_custom && (version.is_empty() || kind.is_empty()) {
        let missing = if kind.is_empty() { "Object 'Kind' is missing" } else { "Object 'apiVersion' is missing" };
        let message = if kind.is_empty() {
            let text = Value::from(fields.clone()).to_string();
            let summary: String = text.chars().take(30).collect();
            let dots = if summary.len() < text.len() { " ..." } else { "" };
            let named = &resource.kind;
            format!(
                "the object provided is unrecognized (must be of type {named}): {missing} in '{text}' ({summary}{dots})"
            )
        } else {
            format!("{kind} in version \"\" cannot be handled as a {}: {missing}", resource.kind)
        };
        return Err(ApiError::bad_request(message));
    }
    if !version.is_empty() && version != wanted {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({wanted})"
        )));
    }
    if !is_custom && !kind.is_empty() && kind != resource.kind {
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {}: no kind \"{kind}\" is registered",
            resource.version, resource.kind
        )));
    }
    fields.insert("apiVersion".to_owned(), wanted.into());
    if !is_custom {
        fields.insert("kind".to_owned(), resource.kind.clone().into());
    }
    fields.entry("metadata").or_insert_with(|| json!({}));
    Ok(())
}

/// Checks the namespace and the name of an object that was sent.
pub(crate) fn check_place(target: &Target, object: &mut Value) -> Result<(), ApiError> {
    check_namespace(target, object)?;
    check_name(target, object)
}

fn check_namespace(target: &Target, object: &mut Value) -> Result<(), ApiError> {
    let namespace = text_at(object, "/metadata/namespace").to_owned();
    let metadata = metadata(object);
    if target.namespace.is_empty() {
        metadata.remove("namespace");
    } else if namespace.is_empty() {
        metadata.insert("namespace".to_owned(), target.namespace.clone().into());
    } else if namespace != target.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

fn check_name(target: &Target, object: &Value) -> Result<(), ApiError> {
    let (name, of_url) = (text_at(object, "/metadata/name"), &target.name);
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({of_url} based on URL) was undeterminable: name must be provided"
        )));
    }
    if name != of_url {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({of_url})"
        )));
    }
    Ok(())
}

/// Returns true if an apply creates the object. That of a status creates none, with one exception.
fn creates_by_apply(target: &Target) -> bool {
    let creates_by_status =
        matches!(target.resource.builtin, Some(BuiltinKind::ValidatingAdmissionPolicy | BuiltinKind::Service));
    target.subresource.is_empty() || creates_by_status
}

/// Returns true if a replacement creates an object that is missing: of a Service its status does, too.
fn creates_by_replacement(target: &Target) -> bool {
    let is_whole = target.subresource.is_empty() || target.resource.builtin == Some(BuiltinKind::Service);
    is_whole && target.resource.allows_create_on_update()
}

/// Compares the UID that a replacement names with the stored one.
fn check_uid(target: &Target, change: &Change, old: &Value, options: &WriteOptions) -> Result<(), ApiError> {
    let Change::Replace(body) = change else { return Ok(()) };
    let (uid, stored) = (text_at(body, "/metadata/uid"), text_at(old, "/metadata/uid"));
    if uid.is_empty() || uid == stored {
        return Ok(());
    }
    let prefix = if options.dry_run { "" } else { "/registry" };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {prefix}/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {uid}, UID in object meta: {stored}",
        target.resource.storage_prefix(),
        target.key()
    );
    Err(ApiError::conflict(&target.resource, &target.name, &why))
}

/// Compares the version that a change names with the stored one.
fn check_version(target: &Target, object: &mut Value, revision: u64, old: &Value) -> Result<(), ApiError> {
    let resource = &target.resource;
    let named = text_at(object, "/metadata/resourceVersion");
    let is_unnamed = named.is_empty() || named == "0";
    if is_unnamed && !resource.allows_unconditional_update() {
        let error = FieldError::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
        return Err(ApiError::invalid(&resource.group, &resource.plural, &target.name, &[error]));
    }
    if !is_unnamed && named.parse() != Ok(revision) {
        return Err(ApiError::conflict(resource, &target.name, OPTIMISTIC_LOCK));
    }
    debug_assert_eq!(version_of(old), revision);
    metadata(object).insert("resourceVersion".to_owned(), revision.to_string().into());
    Ok(())
}

/// Keeps the managed fields if only their times would change.
fn ignore_times(object: &mut Value, old: &Value) {
    let without_times = |value: &Value| {
        let mut managed = value.pointer("/metadata/managedFields").cloned().unwrap_or_default();
        for entry in managed.as_array_mut().into_iter().flatten() {
            kinds::set_or_remove(entry, "time", None);
        }
        managed
    };
    let without_managed = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value.get_mut("metadata") {
            kinds::set_or_remove(metadata, "managedFields", None);
        }
        value
    };
    if without_times(object) == without_times(old) && without_managed(object) == without_managed(old) {
        let managed = old.pointer("/metadata/managedFields").cloned();
        if let Some(metadata) = object.get_mut("metadata") {
            kinds::set_or_remove(metadata, "managedFields", managed);
        }
    }
}

fn wipe_system_fields(object: &mut Value) {
    let metadata = metadata(object);
    for field in
        ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid", "selfLink", "generation"]
    {
        metadata.remove(field);
    }
}

/// Returns the metadata of an object, which has some.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let has_metadata = object.get("metadata").is_some_and(Value::is_object);
    if let Value::Object(fields) = object {
        if !has_metadata {
            fields.insert("metadata".to_owned(), json!({}));
        }
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            return metadata;
        }
    }
    unreachable!("the metadata were just inserted")
}

pub(crate) fn text_at<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
