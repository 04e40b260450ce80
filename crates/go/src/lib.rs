//! Go sources: what authors of types say of unions by markers, and what that comes to on the schema of a CRD.
//!
//! Three steps. [`GoParser`] makes of a file's text what is kept of it ([`GoFile`]): declared types, constants, markers.
//! [`Packages`] puts files together, so that names can be followed. [`Packages::unions`] walks from a kind's struct along its
//! fields, beside the schema, and derives the unions of every struct on the way.
//!
//! Sources are parsed, never run, and no tool of Go's is needed. May not know files, folders or clusters: text and schemas in,
//! unions and findings out.

mod build;
mod check;
mod finding;
mod kinds;
mod marker;
mod packages;
mod rules;
mod syntax;
mod types;
mod values;
mod walk;

pub use build::BuildContext;
pub use finding::{FindingReason, GoFinding, Severity};
pub use kinds::KindVersion;
pub use packages::Packages;
pub use syntax::{GoParser, SyntaxError};
pub use types::{GoFile, Position};

use self::rules::UnionDraft;
use self::walk::KindWalk;
use kube_unions_core::declaration::DefinitionVersion;
use kube_unions_core::schema::Place;
use kube_unions_core::union::Form;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A union that markers declare.
#[derive(Debug)]
pub struct MarkedUnion {
    /// The object that has its fields.
    pub place: Place,
    /// The form that the markers ask for.
    pub form: Form,
    /// The name of the discriminator, in the object.
    pub discriminator: Option<Box<str>>,
    /// Each value with the member that it selects; `None` is an empty member.
    pub choices: BTreeMap<Box<str>, Option<Selection>>,
    /// The Go type that the fields are of: `v1.Strategy`.
    pub go_type: String,
    /// The discriminator in the sources, or the first member where there is none.
    pub source: Position,
    members: BTreeMap<Box<str>, Position>,
}

/// The member that a value selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Its name, in the object.
    pub name: Box<str>,
    /// Whether it may be missing although it is selected.
    pub optional: bool,
}

/// What the sources say of one version of a kind.
#[derive(Debug, Default)]
pub struct Derivation {
    /// The kind's struct.
    pub source: Option<Position>,
    /// The unions that hold on the schema.
    pub unions: Vec<MarkedUnion>,
    /// What was left out, and what may surprise.
    pub findings: Vec<GoFinding>,
    reached: BTreeSet<packages::TypeId>,
}

impl Packages {
    /// Derives the unions of one version of a kind. What the schema declares already at their places is left out of account.
    pub fn unions(&self, asked: KindVersion<'_>, mut version: DefinitionVersion) -> Derivation {
        let id = match kinds::find(self, asked) {
            Ok(Some(id)) => id,
            Ok(None) => return Derivation::default(),
            Err(finding) => return Derivation { findings: vec![*finding], ..Derivation::default() },
        };
        let mut walk = KindWalk::new(self);
        walk.kind(id, &version.schema);
        walk.finish();
        let KindWalk { unions, mut findings, reached, .. } = walk;
        let (unions, faults) = check::holding(&mut version, unions);
        findings.extend(faults);
        findings.sort();
        findings.dedup();
        let source = self.declaration(id).map(|declaration| declaration.at.clone());
        Derivation { source, unions, findings, reached }
    }

    /// Markers of unions that have no effect: in the packages that these walks reached, or wherever they stand.
    pub fn misplaced(&self, outcomes: Option<&mut dyn Iterator<Item = &Derivation>>) -> Vec<GoFinding> {
        let reached = outcomes.map(|outcomes| {
            outcomes.flat_map(|outcome| outcome.reached.iter().map(|id| id.package)).collect::<BTreeSet<_>>()
        });
        let is_meant = |index: &usize| reached.as_ref().is_none_or(|reached| reached.contains(index));
        let meant = self.packages().filter(|(index, _)| is_meant(index));
        let files = meant.flat_map(|(_, package)| &package.files);
        let finding = |misplaced: &types::Misplaced| GoFinding {
            position: Some(misplaced.at.clone()),
            path: String::new(),
            severity: misplaced.severity,
            reason: FindingReason::Marker,
            message: misplaced.message.clone(),
        };
        files.flat_map(|file| file.misplaced.iter().map(finding)).collect()
    }

    /// Structs with markers of unions that no walk reached, in packages that one did.
    pub fn unreached<'o>(&self, outcomes: impl IntoIterator<Item = &'o Derivation>) -> Vec<GoFinding> {
        let reached: BTreeSet<packages::TypeId> =
            outcomes.into_iter().flat_map(|it| it.reached.iter().copied()).collect();
        let looked_at: BTreeSet<usize> = reached.iter().map(|id| id.package).collect();
        let mut findings = Vec::new();
        for index in looked_at {
            let Some(package) = self.package(index) else { continue };
            let is_reached = |name: &str| self.declared(index, name).iter().any(|id| reached.contains(id));
            let marked = package.types().filter(|declaration| declaration.has_union_markers());
            let unreached: Vec<_> = marked.filter(|declaration| !is_reached(&declaration.name)).collect();
            let Some(first) = unreached.first() else { continue };
            let names: Vec<_> = unreached.iter().take(3).map(|declaration| format!("`{}`", declaration.name)).collect();
            let more = unreached.len() - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            findings.push(GoFinding {
                position: Some(first.at.clone()),
                path: String::new(),
                severity: Severity::Note,
                reason: FindingReason::Unreached,
                message: format!(
                    "in none of these kinds, though there are markers of unions in it: {}{more} of the package `{}`",
                    names.join(", "),
                    package.name
                ),
            });
        }
        findings
    }
}

impl Derivation {
    /// What the version declares by its unions: place → the value of `x-kubernetes-unions` there.
    pub fn declarations(&self) -> BTreeMap<Place, Value> {
        check::declarations(&self.unions)
    }
}

impl MarkedUnion {
    fn new(place: Place, draft: UnionDraft, go_type: String) -> Self {
        let UnionDraft { form, discriminator, choices, at: source, members } = draft;
        Self { place, form, discriminator, choices, go_type, source, members }
    }

    /// The names of its members, in the order of the sources.
    pub fn members(&self) -> Vec<&str> {
        let mut members: Vec<_> = self.members.iter().collect();
        members.sort_by_key(|(_, at)| (at.line, at.column));
        members.into_iter().map(|(name, _)| &**name).collect()
    }

    /// The value of the extension for this union alone; in the form of 2019, its item of the list.
    pub fn value(&self) -> Value {
        match self.form {
            Form::Map => {
                let member = |selection: &Selection| {
                    let name = ("name".to_owned(), Value::from(&*selection.name));
                    let optional = selection.optional.then(|| ("optional".to_owned(), Value::Bool(true)));
                    [name].into_iter().chain(optional).collect::<Map<_, _>>()
                };
                let members = self
                    .choices
                    .iter()
                    .map(|(value, selected)| (value.to_string(), selected.as_ref().map(member).into()));
                json!({"fieldMembers": members.collect::<Map<_, _>>()})
            }
            Form::List => {
                let fields = self.choices.iter().filter_map(|(value, selected)| {
                    let selected = selected.as_ref()?;
                    Some((selected.name.to_string(), Value::from(&**value)))
                });
                let fields: BTreeMap<String, Value> = fields.collect();
                match &self.discriminator {
                    Some(name) => json!({"discriminator": name, "fields-to-discriminateBy": fields}),
                    None => json!({"fields-to-discriminateBy": fields}),
                }
            }
        }
    }
}
