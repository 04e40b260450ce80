//! The rules of a kind in the API server: its patches, its defaults and its refusals. The ways to apply a rendering use them.

use crate::cli::commands::check_cel::subjects::{fields_of, schema_step};
use crate::cli::input::crd;
use crate::cli::input::kinds::{self, Assembly, BuiltinUnionsArg};
use crate::cli::input::manifest::{self, Document};
use anyhow::Context;
use clap::ValueEnum;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::Segment;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::Schema;
use kube_unions_core::union::{Part, Union, UnionStep};
use kube_unions_evidence::{Decision, TruthTable};
use kube_unions_manifests::BuiltInDefaults;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use strategic_merge_patch::json_merge::{merge, two_way};
use strategic_merge_patch::{ApplyEngines, ApplySides, Patcher, ServerSideApply};

/// The schemas of built-in kinds with unions, as Kubernetes publishes them.
const SCHEMAS: &str = include_str!("schemas.json");

/// The presets, which declare their unions.
const PRESETS: [&str; 8] = [
    include_str!("../../../../manifests/presets/autoscaling.yaml"),
    include_str!("../../../../manifests/presets/env.yaml"),
    include_str!("../../../../manifests/presets/handlers.yaml"),
    include_str!("../../../../manifests/presets/ingress.yaml"),
    include_str!("../../../../manifests/presets/persistent-volumes.yaml"),
    include_str!("../../../../manifests/presets/profiles.yaml"),
    include_str!("../../../../manifests/presets/strategies.yaml"),
    include_str!("../../../../manifests/presets/volumes.yaml"),
];

/// The answer of the API server to an object that violates a union, without kube-unions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApiServerAnswer {
    /// It refuses the object.
    Refused,
    /// It stores the object.
    Stored,
    /// Its validation cannot be evaluated here.
    Unknown(String),
}

/// Every kind with unions.
#[derive(Debug)]
pub(super) struct Kinds {
    pub(super) assembly: Assembly,
    defaults: BuiltInDefaults,
    /// The names of the presets.
    presets: BTreeSet<String>,
    rules: BTreeMap<GroupVersionKind, KindRules>,
}

#[derive(Debug)]
struct KindRules {
    engines: ApplyEngines,
    schema: Schema,
    /// The schema of a CRD as it is written.
    written: Option<Value>,
    /// The tables of unions that were asked about, by path and members.
    tables: RefCell<BTreeMap<(String, Vec<String>), TruthTable>>,
}

/// A union, and the place of its object in an object.
#[derive(Debug)]
pub(super) struct UnionAt<'c> {
    pub(super) union: &'c Union,
    /// The steps to the union's object.
    pub(super) steps: Vec<UnionStep<'c>>,
}

impl Kinds {
    /// Reads the kinds of documents, and adds the built-in ones. Prepares for one way to apply.
    pub(super) fn read(given: Vec<Document>, way: ApplyWay) -> anyhow::Result<Self> {
        let parse = |text: &str| manifest::parse(Path::new("built in"), text.as_bytes().to_vec());
        let named: BTreeSet<String> =
            given.iter().filter(|it| it.is_declaration()).filter_map(|it| it.name.clone()).collect();
        let (mut documents, mut presets) = (parse(SCHEMAS)?, BTreeSet::new());
        for preset in PRESETS {
            let declarations = parse(preset)?;
            presets.extend(declarations.iter().filter_map(|declaration| declaration.name.clone()));
            documents.extend(
                declarations.into_iter().filter(|it| it.name.as_ref().is_none_or(|name| !named.contains(name))),
            );
        }
        documents.extend(given);
        let assembly = kinds::assemble(documents, BuiltinUnionsArg::Ignored);
        let defaults = BuiltInDefaults::read().map_err(anyhow::Error::msg)?;
        let mut kinds = Self { rules: BTreeMap::new(), defaults, presets, assembly };
        kinds.read_rules(way)?;
        Ok(kinds)
    }

    fn read_rules(&mut self, way: ApplyWay) -> anyhow::Result<()> {
        for (document, definition) in self.assembly.declared_definitions() {
            let crd: Value = serde_json::from_str(&document.text)?;
            for version in definition.versions().iter().filter(|version| version.served) {
                let written =
                    crd::schemas(&crd).find(|(_, name, _)| **name == *version.name).map(|(.., it)| it.clone());
                let applier = || ServerSideApply::for_resource(definition.kind(), &version.schema);
                let server_side = (way == ApplyWay::Ssa).then(applier).transpose()?;
                let engines = ApplyEngines { strategic: None, server_side };
                let rules = KindRules { engines, schema: version.schema.clone(), written, tables: RefCell::default() };
                self.rules.insert(definition.group_kind().at(&version.name), rules);
            }
        }
        for entry in self.assembly.catalog.entries() {
            let kind = entry.gvk();
            if self.rules.contains_key(kind) {
                continue;
            }
            let described = self.assembly.openapi().find(|(_, openapi)| openapi.kinds().any(|it| it == kind));
            let Some((_, openapi)) = described else { continue };
            let Some(schema) = openapi.schema(kind)? else { continue };
            let applier = || ServerSideApply::from_openapi(openapi, kind);
            let server_side = (way == ApplyWay::Ssa).then(applier).transpose()?;
            let engines = ApplyEngines { strategic: Some(Patcher::from_openapi(openapi, kind)?), server_side };
            self.rules.insert(kind.clone(), KindRules { engines, schema, written: None, tables: RefCell::default() });
        }
        Ok(())
    }

    /// Adds the defaults of the API server to an object, and removes nulls.
    pub(super) fn complete(&self, kind: &GroupVersionKind, object: &mut Value) -> anyhow::Result<()> {
        let Some(rules) = self.rules.get(kind) else { return Ok(()) };
        rules.schema.complete(object)?;
        if rules.is_built_in() {
            self.defaults.add(&kind.group_kind(), object);
        }
        Ok(())
    }

    /// Returns the object that an apply asks the API server to store.
    pub(super) fn applied(
        &self,
        kind: &GroupVersionKind,
        way: ApplyWay,
        apply: ApplySides<'_>,
    ) -> anyhow::Result<Value> {
        let rules = self.rules.get(kind).context("its schema is not known")?;
        let mut after = way.apply(&rules.engines, apply)?;
        self.complete(kind, &mut after)?;
        Ok(after)
    }

    /// Returns true if a kind is built in.
    pub(super) fn is_built_in(&self, kind: &GroupVersionKind) -> bool {
        self.rules.get(kind).is_some_and(KindRules::is_built_in)
    }

    /// Returns what the API server does with an object in which a union has these members.
    pub(super) fn enforcement(
        &self,
        kind: &GroupVersionKind,
        at: &UnionAt<'_>,
        value: Option<&str>,
        members: &[&str],
    ) -> ApiServerAnswer {
        let Some(rules) = self.rules.get(kind) else {
            return ApiServerAnswer::Unknown("its kind is not known".to_owned());
        };
        let Some(written) = &rules.written else {
            return match at.union.declaration() {
                Some(name) if self.presets.contains(name) => ApiServerAnswer::Refused,
                _ => ApiServerAnswer::Unknown(
                    "the API server's own validation of this field is not known here".to_owned(),
                ),
            };
        };
        let key = (at.union.path().to_owned(), at.union.members().map(str::to_owned).collect());
        let mut tables = rules.tables.borrow_mut();
        let table = tables.entry(key).or_insert_with(|| {
            let place = at.steps.iter().map(schema_step).collect();
            TruthTable::at(written, &place, &fields_of(at.union)).unwrap_or_default()
        });
        match table.decision(value, members) {
            Some(Decision::Rejected { .. }) => ApiServerAnswer::Refused,
            Some(Decision::Undecided { why }) => ApiServerAnswer::Unknown(why.clone()),
            Some(Decision::Allowed) => ApiServerAnswer::Stored,
            None if table.evidence().is_empty() => ApiServerAnswer::Stored,
            None => ApiServerAnswer::Unknown("this combination of fields was not tried with its rules".to_owned()),
        }
    }
}

impl KindRules {
    /// Returns true for a kind with a Go type in the API server.
    fn is_built_in(&self) -> bool {
        self.engines.strategic.is_some()
    }
}

/// Returns the union that a violation is about: its path is that of the union's object, or of a field in it.
pub(super) fn union_at<'c>(entry: &'c CatalogEntry, path: &[Segment]) -> Option<UnionAt<'c>> {
    let places = entry.plan().places(Part::Main).into_iter();
    let mut fitting = places.filter(|place| leads_to(&place.steps, path)).flat_map(|place| {
        let field = path.get(place.steps.len()).map(Segment::to_token);
        let is_of = move |union: &&Union| {
            let mut fields = union.discriminator().into_iter().chain(union.members());
            field.as_deref().is_none_or(|field| fields.any(|it| it == field))
        };
        let steps = place.steps;
        place.unions.iter().filter(is_of).map(move |union| UnionAt { union, steps: steps.clone() }).collect::<Vec<_>>()
    });
    fitting.next()
}

fn leads_to(steps: &[UnionStep<'_>], path: &[Segment]) -> bool {
    let fits = |(step, segment): (&UnionStep<'_>, &Segment)| match (step, segment) {
        (UnionStep::Field(name), Segment::Field(field)) => *name == &**field,
        (UnionStep::Items { .. }, Segment::Index(_)) | (UnionStep::Values, Segment::Key(_)) => true,
        _ => false,
    };
    (steps.len() == path.len() || steps.len() + 1 == path.len()) && steps.iter().zip(path).all(fits)
}

/// A way to apply the new rendering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ApplyWay {
    /// Server-side apply: `kubectl apply --server-side --force-conflicts`, Flux, and Helm 4 for releases that it installed
    Ssa,
    /// Client-side apply: `kubectl apply`, and Argo CD by default
    #[default]
    Csa,
    /// The three-way merge of Helm 3, and of Helm 4 for releases that Helm 3 installed
    Helm,
    /// `kubectl patch --type=merge` with the new rendering
    Merge,
    /// `kubectl replace`
    Replace,
}

impl ApplyWay {
    /// Returns the name in the option and in JSON.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the words of reports.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Ssa => "server-side apply",
            Self::Csa => "client-side apply",
            Self::Helm => "Helm 3",
            Self::Merge => "a merge patch",
            Self::Replace => "a replace",
        }
    }

    /// Returns true if the API server tells admission which fields the author sets.
    pub(super) fn tells_manifest(self) -> bool {
        match self {
            Self::Ssa | Self::Csa => true,
            Self::Helm | Self::Merge | Self::Replace => false,
        }
    }

    /// Returns the object before the API server adds defaults.
    pub(super) fn apply(self, engines: &ApplyEngines, apply: ApplySides<'_>) -> anyhow::Result<Value> {
        let ApplySides { old, new, live, .. } = apply;
        let merged = |patch: &Value| {
            let mut after = live.clone();
            merge(&mut after, patch);
            after
        };
        Ok(match self {
            Self::Ssa => engines.server_side(apply)?,
            // Helm does not read the live object of a custom resource.
            Self::Helm if engines.strategic.is_none() => merged(&two_way(old, new)),
            Self::Csa | Self::Helm => engines.client_side(apply)?,
            Self::Merge => merged(new),
            Self::Replace => new.clone(),
        })
    }
}
