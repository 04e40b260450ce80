//! Compares policies on the API server with the webhook's library, write by write.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Api, IN_FORCE, compile_all, fields_of_kind, policy_message, policy_warnings, sorted, without_nulls};
use crate::support::background::in_parallel;
use crate::support::http::Answer;
use crate::support::kind::forget_unions;
use crate::support::resource::Resource;
use fixtures::crds::crd;
use fixtures::reviews::{self, Cause, Verdict, Write, catalog, version};
use fixtures::wait::eventually;
use kube_unions_core::admission::Phase;
use kube_unions_core::catalog::Catalog;
use kube_unions_policies::PolicyOptions;

/// The result of a write, in the form in which policies and the webhook are compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The object is stored, with these fields of the kind, and with these faults that are let through.
    Stored { fields: Value, let_through: String },
    /// The write is denied with this text.
    Denied(String),
}

impl Outcome {
    /// Reads an answer of the API server. The error is a denial by something else than a policy.
    pub(crate) fn of_answer(answer: &Answer, part: &str) -> Result<Self, String> {
        if !answer.is_success() {
            let message = policy_message(answer).map(sorted);
            return message.map(Self::Denied).ok_or_else(|| answer.body.to_string());
        }
        Ok(Self::Stored {
            fields: part_of(&answer.body, part),
            let_through: sorted(&policy_warnings(answer).join("; ")),
        })
    }

    /// Reads an answer of the webhook's library.
    pub(crate) fn of_review(answer: &reviews::Answer, part: &str) -> Self {
        match &answer.verdict {
            Verdict::Denied(causes) => {
                // The root has no path.
                let told = |Cause { field, message, .. }: &Cause| match &**field {
                    "" => message.clone(),
                    field => format!("{field}: {message}"),
                };
                let causes: Vec<_> = causes.iter().map(told).collect();
                Self::Denied(sorted(&causes.join("; ")))
            }
            Verdict::Allowed(object) => {
                let object = object.as_ref().expect("a write has an object");
                let warnings = answer.warnings.iter().filter(|it| it.contains("let through"));
                let warnings: Vec<_> = warnings.map(String::as_str).collect();
                Self::Stored { fields: part_of(object, part), let_through: sorted(&warnings.join("; ")) }
            }
        }
    }
}

/// Returns a field of an object without nulls. With an empty name, all fields of its kind.
fn part_of(object: &Value, part: &str) -> Value {
    if part.is_empty() { without_nulls(&fields_of_kind(object)) } else { without_nulls(&object[part]) }
}

/// The query of every write that is compared.
const QUERY: &str = "dryRun=All&fieldValidation=Ignore";

/// A kind, and writes of it.
pub(crate) struct Subject {
    pub(crate) api: Resource,
    /// The CRD as the API server stores it.
    pub(crate) definition: Value,
    pub(crate) catalog: Catalog,
    /// The fields of the stored objects that writes replace.
    olds: Vec<Value>,
    writes: Vec<SubjectWrite>,
}

/// An object that writes replace.
pub(crate) struct StoredObject {
    pub(crate) name: String,
    resource_version: Value,
}

struct SubjectWrite {
    description: String,
    /// The position of the old object.
    old: Option<usize>,
    /// The part that is written and compared, or nothing for all.
    part: &'static str,
    new: Value,
    expected: Outcome,
    /// True if the write has another result without unions.
    tells: bool,
}

impl Subject {
    /// Returns a kind with this schema.
    pub(crate) fn new(group: &str, kind: &str, schema: &Value) -> Self {
        Self::of_definition(crd(group, kind, &[version("v1", schema, false)]))
    }

    /// Returns the kind of a CRD of one version with unions.
    pub(crate) fn of_definition(mut definition: Value) -> Self {
        let catalog = catalog(&[&definition]);
        forget_unions(&mut definition);
        Self::of_catalog(definition, catalog)
    }

    /// Returns the kind of a CRD, with these unions.
    pub(crate) fn of_catalog(definition: Value, catalog: Catalog) -> Self {
        let api = Resource::of_definition(&definition);
        Self { api, definition, catalog, olds: Vec::new(), writes: Vec::new() }
    }

    pub(crate) fn kind(&self) -> &str {
        &self.api.kind
    }

    /// Adds a write of an object with these fields, after one with the old fields is stored.
    pub(crate) fn write(&mut self, description: &str, old: Option<Value>, new: Value) {
        let expected = self.expected(old.as_ref(), &new);
        self.push(description, old, "", new, expected);
    }

    /// Adds a write that is validated and not normalised before.
    pub(crate) fn write_without_mutation(&mut self, description: &str, old: Option<Value>, new: Value) {
        let write = self.review("", old.as_ref(), &new);
        let expected = Outcome::of_review(&reviews::ask(&self.catalog, Phase::Validate, &write), "");
        self.push(description, old, "", new, expected);
    }

    /// Adds a write of `spec` or `status`. Returns its result by the webhook.
    pub(crate) fn write_part(&mut self, part: &'static str, old: Option<Value>, new: Value) -> &Outcome {
        let review = reviews::admit(&self.catalog, &self.review(part, old.as_ref(), &new));
        self.push("a write", old, part, new, Outcome::of_review(&review, part));
        &self.writes.last().expect("a write").expected
    }

    /// Returns the result of a write by the webhook.
    pub(crate) fn expected(&self, old: Option<&Value>, new: &Value) -> Outcome {
        Outcome::of_review(&reviews::admit(&self.catalog, &self.review("", old, new)), "")
    }

    /// Returns a write of this part as the webhook sees it.
    pub(crate) fn review(&self, part: &str, old: Option<&Value>, new: &Value) -> Write {
        let object = |fields: &Value| self.api.object("example", fields);
        let subresource = (part == "status").then(|| part.to_owned());
        Write { subresource, ..Write::new(old.map(object), object(new)) }
    }

    fn push(&mut self, description: &str, old: Option<Value>, part: &'static str, new: Value, expected: Outcome) {
        let unchanged = Outcome::Stored { fields: part_of(&new, part), let_through: String::new() };
        let old = old.map(|old| {
            self.olds.iter().position(|known| *known == old).unwrap_or_else(|| {
                self.olds.push(old);
                self.olds.len() - 1
            })
        });
        let (description, tells) = (description.to_owned(), expected != unchanged);
        self.writes.push(SubjectWrite { description, old, part, new, expected, tells });
    }

    /// Returns the fields of each object that is written.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Value> {
        self.writes.iter().map(|write| &write.new)
    }

    /// Stores an object.
    pub(crate) fn store(&self, native: &Api, name: &str, fields: &Value) -> StoredObject {
        let mut answer = native.send("POST", &self.api.path(""), &self.api.object(name, fields));
        assert!(answer.is_success(), "{}: not stored: {}", self.kind(), answer.body);
        if self.definition["spec"]["versions"][0]["subresources"]["status"].is_object() && !fields["status"].is_null() {
            answer.body["status"] = fields["status"].clone();
            answer = native.send("PUT", &format!("{}/status", self.api.path(name)), &answer.body);
            assert!(answer.is_success(), "{}: not stored: {}", self.kind(), answer.body);
        }
        StoredObject { name: name.to_owned(), resource_version: answer.body["metadata"]["resourceVersion"].clone() }
    }

    /// Returns an object that is stored.
    pub(crate) fn find(&self, native: &Api, name: &str) -> StoredObject {
        let object = native.get(&self.api.path(name)).body;
        StoredObject { name: name.to_owned(), resource_version: object["metadata"]["resourceVersion"].clone() }
    }

    /// Creates an object in a dry run, or replaces a stored one.
    pub(crate) fn ask(&self, native: &Api, stored: Option<&StoredObject>, new: &Value) -> Answer {
        self.try_ask(native, stored, "", new).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Does the same with a part or a subresource, and returns an error if there is no answer in time.
    pub(crate) fn try_ask(
        &self,
        native: &Api,
        stored: Option<&StoredObject>,
        part: &str,
        new: &Value,
    ) -> Result<Answer, String> {
        let (method, path, object) = match stored {
            None => ("POST", self.api.path(""), self.api.object("new", new)),
            Some(StoredObject { name, resource_version }) => {
                let mut object = self.api.object(name, new);
                object["metadata"]["resourceVersion"] = resource_version.clone();
                let path = self.api.path(name);
                ("PUT", if ["", "spec"].contains(&part) { path } else { format!("{path}/{part}") }, object)
            }
        };
        let body = object.to_string();
        native.client().send(method, &format!("{path}?{QUERY}"), "application/json", body.as_bytes())
    }

    /// Applies a manifest server-side as a dry run. Returns an error if there is no answer in time.
    pub(crate) fn try_apply(&self, native: &Api, name: &str, fields: &Value) -> Result<Answer, String> {
        let path = format!("{}?fieldManager=other&force=true&dryRun=All", self.api.path(name));
        let body = self.api.object(name, fields).to_string();
        native.client().send("PATCH", &path, "application/apply-patch+yaml", body.as_bytes())
    }

    /// Compares the result of a write with that of the webhook. An error tells both.
    fn compare(&self, native: &Api, stored: &[StoredObject], write: &SubjectWrite) -> Result<(), String> {
        let SubjectWrite { description, part, new, expected, .. } = write;
        let answer = self.try_ask(native, write.old.map(|old| &stored[old]), part, new)?;
        let got = Outcome::of_answer(&answer, part);
        if got.as_ref() == Ok(expected) {
            return Ok(());
        }
        let old = write.old.map_or(&Value::Null, |old| &self.olds[old]);
        Err(format!(
            "{}: {description}\n  old: {old}\n  new: {new}\n  webhook:  {expected:?}\n  policies: {got:?}",
            self.kind()
        ))
    }
}

/// Installs the kinds and their policies, and returns each write whose result is not the same by both, or each policy that
/// the API server does not accept.
pub(crate) fn differences(native: &Api, subjects: &[Subject], options: &PolicyOptions) -> Vec<String> {
    for subject in subjects {
        native.apply(&subject.definition);
    }
    let mut all = Vec::new();
    let store = |subject: &Subject| -> Vec<StoredObject> {
        native.wait_until_served(&subject.api.path(""));
        let olds = subject.olds.iter().enumerate();
        olds.map(|(number, old)| subject.store(native, &format!("object{number}"), old)).collect()
    };
    let stored: Vec<Vec<StoredObject>> = subjects.iter().map(store).collect();
    let mut found = Vec::new();
    for (subject, stored) in subjects.iter().zip(&stored) {
        all.extend(subject.writes.iter().map(|write| (subject, stored, write)));
        for object in compile_all(&subject.catalog, options).iter().flat_map(|it| &it.objects) {
            let answer = native.try_apply(&object.to_json());
            if !answer.is_success() {
                found.push(format!("{}: not accepted: {}", subject.kind(), answer.body["message"]));
            }
        }
    }
    // The policies are in force for the writes that have the same result without them, too.
    let (telling, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(.., write)| write.tells);
    let deadline = Instant::now() + if found.is_empty() { IN_FORCE } else { Duration::ZERO };
    let found = Mutex::new(found);
    for writes in [telling, others] {
        in_parallel(&writes, |(subject, stored, write)| {
            let within = if write.tells { deadline.saturating_duration_since(Instant::now()) } else { Duration::ZERO };
            let mut compared = Ok(());
            eventually(within, || {
                compared = subject.compare(native, stored, write);
                compared.is_ok()
            });
            found.lock().unwrap().extend(compared.err());
        });
    }
    found.into_inner().unwrap()
}
