//! Kubernetes union types on the clusters of today.
//!
//! A *union* is a group of fields of an object of which at most one is set, often with a *discriminator* that tells which
//! one. Kubernetes proposed an `x-kubernetes-unions` extension for them (KEP-1027) and never shipped it. This crate gives
//! unions their meaning: it reads where they are declared, normalises objects so that switching a union is one change, and
//! refuses invalid ones in the API server's own words, as an admission webhook or offline.
//!
//! # How it flows
//!
//! ```text
//! CRDs ─▶ declaration (grafts what it finds onto the schema) ─▶ schema ─▶ union::compile ─▶ Plan ─▶ catalog
//!
//! bytes ─▶ admission::review ─▶ catalog (kind → Plan) ─▶ union::Projection (new, old) ─▶ union::judge ─▶ bytes
//! ```
//!
//! # Rooms
//!
//! | module | what is in it |
//! |---|---|
//! | [`field_path`], [`json_patch`] | where a field is, and the operations on it |
//! | [`schema`] | structural schemas as far as unions need them |
//! | [`union`] | what a union is: compile, project, normalise, validate |
//! | [`declaration`] | where a CRD declares unions, and which source wins |
//! | [`strategic`] | strategic merge patch: create, apply, compose |
//! | [`catalog`] | kind → plan, published whole |
//! | [`admission`] | an `AdmissionReview` in, an `AdmissionReview` out |
#![cfg_attr(feature = "schemars", doc = "| [`author`] | unions on types in Rust, and CRDs that carry them |")]
#![cfg_attr(
    any(feature = "cli", feature = "server"),
    doc = "| [`authority`] | certificate authorities, and what they sign |"
)]
#![cfg_attr(feature = "server", doc = "| [`cluster`] | the watch of a cluster's CRDs, and registration there |")]
#![cfg_attr(feature = "server", doc = "| [`server`] | the webhook's listeners, limits and drain |")]
#![cfg_attr(feature = "server", doc = "| [`telemetry`] | logs, metrics and traces |")]
#![cfg_attr(feature = "go", doc = "| [`go`] | what markers in Go sources say of unions |")]
#![cfg_attr(feature = "cli", doc = "| [`cli`] | the command line |")]
//! | [`guide`] | for users: semantics, declaring, operating |
//!
//! Dependencies point upwards in this table, and `tests/it/layers.rs` holds them to it.
//!
//! # Features
//!
//! Without features the crate is its pure core: no runtime, no network, no clock. `server` adds the webhook, `cli` the
//! command line; both are on by default. `go` is a part of `cli` that can be had alone. `otlp` adds traces of reviews, `schemars`
//! unions on types that derive `JsonSchema`; neither is on by default.
//!
//! # Example
//!
//! ```
//! use kube_unions::admission::{Phase, Ratcheting, review};
//! use kube_unions::{catalog::Builder, declaration::Definition};
//!
//! let crd = r#"{
//!   "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
//!   "metadata": {"name": "rollouts.example.com"},
//!   "spec": {"group": "example.com", "names": {"kind": "Rollout"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
//!     "type": "object", "properties": {
//!       "type": {"type": "string", "enum": ["Canary", "Recreate"],
//!                "x-kubernetes-unions": {"fieldMembers": {"Canary": {"name": "canary"}, "Recreate": null}}},
//!       "canary": {"type": "object"}}}}}]}}"#;
//! let mut builder = Builder::new();
//! builder.apply(Definition::from_json(crd)?);
//! let catalog = builder.build();
//!
//! let request = r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
//!   "uid": "1", "operation": "UPDATE", "kind": {"group": "example.com", "version": "v1", "kind": "Rollout"},
//!   "object": {"type": "Recreate", "canary": {}}, "oldObject": {"type": "Canary", "canary": {}}}}"#;
//! let answer = review(&catalog, Phase::Mutate, Ratcheting::Enabled, request.as_bytes())?;
//! assert_eq!(answer.warnings(), ["canary: cleared because `type` changed to \"Recreate\""]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admission;
#[cfg(feature = "schemars")]
pub mod author;
#[cfg(any(feature = "cli", feature = "server"))]
pub mod authority;
pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "server")]
pub mod cluster;
pub mod declaration;
pub mod field_path;
#[cfg(feature = "go")]
pub mod go;
pub mod guide;
pub mod json_patch;
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
pub mod strategic;
#[cfg(feature = "server")]
pub mod telemetry;
pub mod union;
