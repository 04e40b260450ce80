//! The kinds with unions, and what the API server does to their objects: patches, defaults, validation and refusals.

use super::apply_way::ApplyWay;
use super::declared_kinds::DeclaredKinds;
use crate::commands::lint::rules::subjects::{fields_of, schema_step};
use crate::input::crd;
use crate::input::kinds::Assembly;
use crate::input::manifest::Document;
use anyhow::Context;
use kube_unions_core::admission::{Phase, Ratcheting, Review};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::declaration::DefinitionVersion;
use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_core::schema::{OpenApi, Schema};
use kube_unions_core::union::{Part, Union, UnionPlace, UnionStep, Violation};
use kube_unions_evidence::{Combination, Decision, Evidence, EvidenceKind, TruthTable, UnionFields};
use kube_unions_manifests::request::{AppliedManifest, ReviewedObject};
use kube_unions_manifests::{BuiltInDefaults, BuiltinUnions};
use kube_unions_offline::{
    AddedUnions, BuiltInKinds, InvalidUnion, LeftOver, PresetNames, RefusedField, refused_fields, wrong_types,
};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use strategic_merge_patch::{ApplyEngines, Patcher, ServerSideApply};

/// The answer of the API server to an object that violates a union or has a null, without kube-unions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum ApiServerAnswer {
    /// It refuses the object.
    Refused,
    /// The client refuses the object by its name, or the API server because the object exists. Neither judges anything else.
    RefusedObject,
    /// It refuses a null of the object, and judges nothing else.
    RefusedNull,
    /// It refuses the update of what never changes.
    Immutable,
    /// It stores the object.
    Stored,
    /// Its validation cannot be evaluated here.
    Unknown(String),
}

/// Every kind with unions.
#[derive(Debug)]
pub(in crate::commands) struct Kinds {
    pub(in crate::commands) assembly: Assembly,
    defaults: BuiltInDefaults,
    presets: PresetNames,
    /// The names of the declarations that only the validations of a CRD made.
    proposed: BTreeSet<String>,
    /// Says which declarations were left out or added, a line each.
    pub(super) hints: Vec<String>,
    rules: BTreeMap<GroupVersionKind, KindRules>,
}

/// A decision, and the validations that it names.
type UnionDecision = (Decision, Vec<Evidence>);

#[derive(Debug)]
struct KindRules {
    engines: ApplyEngines,
    schema: Schema,
    /// True if an apply does not write the status.
    status_subresource: bool,
    /// The schema of a CRD as it is written.
    written: Option<Value>,
    /// True if a rule of it compares with the old object.
    has_transitions: bool,
    /// The decisions on combinations of unions that were asked about.
    decisions: RefCell<BTreeMap<(String, UnionFields, Combination), Option<UnionDecision>>>,
}

/// The kinds of the objects that are judged: a preset of another kind is not compiled.
#[derive(Debug)]
pub(in crate::commands) struct ObjectKinds(BTreeSet<GroupVersionKind>);

impl ObjectKinds {
    pub(in crate::commands) fn of<'d>(objects: impl IntoIterator<Item = &'d Document>) -> Self {
        Self(objects.into_iter().map(Document::group_version_kind).collect())
    }
}

/// A kind with unions.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct PreviewedKind<'k> {
    entry: &'k CatalogEntry,
    kinds: &'k Kinds,
    rules: &'k KindRules,
}

impl Kinds {
    /// Reads the kinds of documents, and adds the built-in ones among those of the objects. Prepares for one way to apply.
    pub(in crate::commands) fn read(
        given: Vec<Document>,
        way: ApplyWay,
        objects: &ObjectKinds,
    ) -> anyhow::Result<Self> {
        Self::read_for(given, way, objects, &BTreeSet::new())
    }

    /// Does the same for new objects of these kinds. Those without a declaration get the unions that the validations of their CRDs enforce, and
    /// declarations without a CRD are left out.
    pub(super) fn read_for(
        given: Vec<Document>,
        way: ApplyWay,
        ObjectKinds(named): &ObjectKinds,
        new: &BTreeSet<GroupKind>,
    ) -> anyhow::Result<Self> {
        let built_in = BuiltInKinds::read()?;
        let added = AddedUnions { published: BuiltinUnions::Ignored, presets: true };
        // A cluster's document may be a part of one, so that of built-in kinds comes first.
        let mut documents = built_in.beside(&given, Some(named), added);
        documents.extend(given);
        let presets = PresetNames::of(&built_in, &documents);
        let DeclaredKinds { assembly, proposed, hints } = DeclaredKinds::assemble(documents, new)?;
        let defaults = BuiltInDefaults::read().map_err(anyhow::Error::msg)?;
        let mut kinds = Self { rules: BTreeMap::new(), defaults, presets, proposed, hints, assembly };
        kinds.read_rules(way)?;
        Ok(kinds)
    }

    fn read_rules(&mut self, way: ApplyWay) -> anyhow::Result<()> {
        for (document, definition) in self.assembly.declared_definitions() {
            let crd: Value = serde_json::from_str(&document.text)?;
            let written = |version: &str| crd::schemas(&crd).find(|(_, name, _)| **name == *version);
            for version in definition.versions().iter().filter(|version| version.served) {
                let rules = KindRules::of_crd(definition.kind(), version, written(&version.name).map(|it| it.2), way)?;
                self.rules.insert(definition.group_kind().at(&version.name), rules);
            }
        }
        for kind in self.assembly.catalog.entries().iter().map(CatalogEntry::gvk) {
            if self.rules.contains_key(kind) {
                continue;
            }
            let described = self.assembly.openapi().find(|(_, openapi)| openapi.kinds().any(|it| it == kind));
            let Some((_, openapi)) = described else { continue };
            if let Some(rules) = KindRules::of_built_in(openapi, kind, way)? {
                self.rules.insert(kind.clone(), rules);
            }
        }
        Ok(())
    }

    pub(in crate::commands) fn kind<'k>(&'k self, entry: &'k CatalogEntry) -> anyhow::Result<PreviewedKind<'k>> {
        let rules = self.rules.get(entry.gvk()).context("its schema is not known")?;
        Ok(PreviewedKind { entry, kinds: self, rules })
    }
}

impl KindRules {
    fn of_crd(kind: &str, version: &DefinitionVersion, written: Option<&Value>, way: ApplyWay) -> anyhow::Result<Self> {
        let applier = || ServerSideApply::for_resource(kind, &version.schema);
        let server_side = way.reads_managers().then(applier).transpose()?;
        Ok(Self {
            engines: ApplyEngines { strategic: None, server_side },
            schema: version.schema.clone(),
            status_subresource: version.status_subresource,
            has_transitions: written.is_some_and(|written| written.to_string().contains("oldSelf")),
            written: written.cloned(),
            decisions: RefCell::default(),
        })
    }

    /// Returns `None` if the document has no schema of the kind.
    fn of_built_in(openapi: &OpenApi, kind: &GroupVersionKind, way: ApplyWay) -> anyhow::Result<Option<Self>> {
        let Some(schema) = openapi.schema(kind)? else { return Ok(None) };
        let applier = || ServerSideApply::from_openapi(openapi, kind);
        let server_side = way.reads_managers().then(applier).transpose()?;
        let engines = ApplyEngines { strategic: Some(Patcher::from_openapi(openapi, kind)?), server_side };
        let (written, decisions) = (None, RefCell::default());
        Ok(Some(Self { engines, schema, status_subresource: true, written, has_transitions: false, decisions }))
    }
}

impl<'k> PreviewedKind<'k> {
    pub(in crate::commands) fn name(self) -> &'k GroupVersionKind {
        self.entry.gvk()
    }

    /// Returns the members of the unions of the `spec` itself.
    pub(in crate::commands) fn members_at_spec(self) -> impl Iterator<Item = &'k str> {
        let places = self.places().into_iter().filter(|place| matches!(place.steps[..], [UnionStep::Field("spec")]));
        places.flat_map(|place| place.unions.iter().flat_map(Union::members))
    }

    pub(super) fn places(self) -> Vec<UnionPlace<'k>> {
        self.entry.plan().places(Part::Main)
    }

    /// Returns the schema of a CRD if a rule of it compares with the old object.
    pub(super) fn schema_with_transitions(self) -> Option<&'k Value> {
        self.rules.written.as_ref().filter(|_| self.rules.has_transitions)
    }

    pub(in crate::commands) fn schema(self) -> &'k Schema {
        &self.rules.schema
    }

    /// Returns true for a kind with a Go type in the API server.
    pub(in crate::commands) fn is_built_in(self) -> bool {
        self.rules.engines.strategic.is_some()
    }

    pub(in crate::commands) fn engines(self) -> &'k ApplyEngines {
        &self.rules.engines
    }

    /// Reads the part of an object that an apply writes.
    pub(in crate::commands) fn read(self, document: &Document) -> anyhow::Result<Value> {
        let mut object: Value = serde_json::from_str(&document.text)?;
        if let Some(fields) = object.as_object_mut().filter(|_| self.rules.status_subresource) {
            fields.remove("status");
        }
        Ok(object)
    }

    /// Returns an object with the defaults of the API server, and without nulls.
    pub(in crate::commands) fn completed(self, mut object: Value) -> anyhow::Result<Value> {
        self.rules.schema.complete(&mut object)?;
        if self.is_built_in() {
            self.kinds.defaults.add(&self.name().group_kind(), &self.rules.schema, &mut object);
        }
        Ok(object)
    }

    /// Returns an object as an update stores it, with the defaults of the API server and without what it clears of the old object itself.
    pub(in crate::commands) fn updated(self, live: &Value, asked: Value) -> anyhow::Result<Value> {
        let mut object = self.completed(asked)?;
        if self.is_built_in() {
            self.kinds.defaults.clear(&self.name().group_kind(), live, &mut object);
        }
        Ok(object)
    }

    /// Returns the unions that are invalid in an object, whatever their declarations do about them, but for those with something left over.
    /// `identity` is a document of the object.
    pub(in crate::commands) fn invalid(
        self,
        identity: &Document,
        object: &Value,
    ) -> anyhow::Result<Vec<InvalidUnion<'k>>> {
        let mut invalid = self.violated(identity, object)?;
        let left_over = LeftOver::all(self.entry, object);
        invalid.retain(|invalid| !left_over.iter().any(|it| it.is_of(invalid.union, &invalid.address)));
        Ok(invalid)
    }

    /// Returns the variables and templates in an object because of which a union cannot be judged.
    pub(in crate::commands) fn left_over(
        self,
        identity: &Document,
        object: &Value,
    ) -> anyhow::Result<Vec<LeftOver<'k>>> {
        let all = LeftOver::all(self.entry, object);
        let violated = if all.iter().any(|it| it.is_member) { self.violated(identity, object)? } else { Vec::new() };
        Ok(LeftOver::deciding(all, &violated))
    }

    fn violated(self, identity: &Document, object: &Value) -> anyhow::Result<Vec<InvalidUnion<'k>>> {
        let new = identity.with_text(object.to_string());
        let created = ReviewedObject { kind: self.name(), new: &new, old: None, subresource: None, manifest: None };
        let review = created.review(&self.kinds.assembly.catalog, Phase::Validate, Ratcheting::Disabled)?;
        let let_through = review.let_through().kept().iter().map(|(violation, _)| violation);
        let all = review.violations().kept().iter().chain(let_through).chain(review.observed().kept());
        let mut all: Vec<&Violation> = all.collect();
        all.sort();
        all.dedup();
        Ok(all.into_iter().filter_map(|violation| self.invalid_union(violation, object)).collect())
    }

    /// Returns the values of a wrong type in an object of a built-in kind, which the API server does not decode.
    pub(in crate::commands) fn wrong_types(self, object: &Value) -> Vec<RefusedField> {
        if self.is_built_in() { wrong_types(self.entry, self.schema(), object) } else { Vec::new() }
    }

    /// Returns what the API server refuses of an object of a built-in kind beside its unions.
    pub(in crate::commands) fn refused_fields(self, old: Option<&Value>, new: &Value) -> Vec<RefusedField> {
        if self.is_built_in() { refused_fields(self.entry, self.schema(), old, new) } else { Vec::new() }
    }

    /// Returns true if kube-unions never enforces a union on a cluster.
    pub(in crate::commands) fn is_never_enforced(self, union: &Union) -> bool {
        self.kinds.presets.is_never_enforced(self.name(), union)
    }

    /// Returns the type that the CRD gives to a field.
    pub(in crate::commands) fn type_of(self, path: &FieldPath) -> Option<&'k str> {
        let schema = path.segments().iter().try_fold(self.rules.written.as_ref()?, |schema, segment| match segment {
            Segment::Field(name) | Segment::Key(name) => {
                let property = schema.get("properties").and_then(|properties| properties.get(&**name));
                property.or_else(|| schema.get("additionalProperties"))
            }
            Segment::Index(_) => schema.get("items"),
        });
        schema?.get("type")?.as_str()
    }

    pub(in crate::commands) fn invalid_union(self, violation: &Violation, object: &Value) -> Option<InvalidUnion<'k>> {
        InvalidUnion::of(self.entry, violation, object)
    }

    /// Returns the answer of kube-unions to an update, or to a create without an old object.
    pub(in crate::commands) fn review(
        self,
        identity: &Document,
        old: Option<&Value>,
        new: &Value,
        manifest: Option<AppliedManifest<'_>>,
    ) -> anyhow::Result<Review> {
        let document = |object: &Value| identity.with_text(object.to_string());
        let (old, new) = (old.map(document), document(new));
        let write = ReviewedObject { kind: self.name(), new: &new, old: old.as_ref(), subresource: None, manifest };
        Ok(write.review(&self.kinds.assembly.catalog, Phase::Both, Ratcheting::Enabled)?)
    }

    /// Returns true if nothing declares a union, and the validations of its CRD enforce it.
    pub(super) fn is_proposed(self, invalid: &InvalidUnion<'_>) -> bool {
        invalid.union.declaration().is_some_and(|name| self.kinds.proposed.contains(name))
    }

    /// Returns what the API server does with an object that has the union, without kube-unions.
    pub(in crate::commands) fn enforcement(self, invalid: &InvalidUnion<'_>) -> ApiServerAnswer {
        let Some(written) = &self.rules.written else {
            if self.kinds.presets.is_refusing(invalid.union) {
                return ApiServerAnswer::Refused;
            }
            let why = "the API server's own validation of this field is not known here";
            return ApiServerAnswer::Unknown(why.to_owned());
        };
        let answer = |members: &[&str]| match self.decision(written, invalid, members) {
            Some((Decision::Rejected { .. }, _)) => ApiServerAnswer::Refused,
            Some((Decision::Undecided { why }, _)) => ApiServerAnswer::Unknown(why),
            Some((Decision::Allowed, _)) | None => ApiServerAnswer::Stored,
        };
        let of_union = answer(&invalid.members);
        if of_union == answer(&invalid.present) {
            return of_union;
        }
        ApiServerAnswer::Unknown("a rule may count an empty member as set".to_owned())
    }

    /// Returns the validation of a CRD for which the API server refuses a union, the first of several.
    pub(super) fn refusing_validation(self, invalid: &InvalidUnion<'_>) -> Option<EvidenceKind> {
        match self.decision(self.rules.written.as_ref()?, invalid, &invalid.members)? {
            (Decision::Rejected { by, .. }, evidence) => Some(evidence.get(*by.first()?)?.kind.clone()),
            (Decision::Undecided { .. } | Decision::Allowed, _) => None,
        }
    }

    /// Returns the decision of a CRD's validations on members of a union, and these validations.
    fn decision(self, written: &Value, invalid: &InvalidUnion<'_>, members: &[&str]) -> Option<UnionDecision> {
        let members = members.iter().map(|&member| member.to_owned()).collect();
        let combination = Combination { value: invalid.value.clone(), members, ..Combination::default() };
        let key = (invalid.union.path().to_owned(), fields_of(invalid.union), combination);
        let mut decisions = self.rules.decisions.borrow_mut();
        let decision = decisions.entry(key).or_insert_with_key(|(_, fields, combination)| {
            let place = invalid.steps.iter().map(schema_step).collect();
            TruthTable::decide(written, &place, fields, combination)
        });
        decision.clone()
    }
}
