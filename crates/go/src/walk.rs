//! Follows the fields of a kind's struct beside the schema of its CRD, and applies the rules at every struct on the way.
//!
//! The walk visits what both have: a field that the schema lacks is skipped, because the sources may have feature gates or a
//! newer version.

use super::finding::{FindingReason, GoFinding};
use super::marked_union::MarkedUnion;
use super::marker::{Marker, Meaning};
use super::packages::{Packages, ResolvedType, Scope, ScopedType, TypeId, Underlying};
use super::position::Position;
use super::rules::{MarkedStruct, StructField, UnionDraft};
use super::severity::Severity;
use super::types::{Field, Struct, TypeDeclaration};
use kube_unions_core::schema::{Place, PlaceStep, Schema};
use std::collections::{BTreeMap, BTreeSet};

/// Packages that nearly every kind imports and that declare no unions.
const WITHOUT_UNIONS: [&str; 2] = ["k8s.io/apimachinery/", "k8s.io/apiextensions-apiserver/"];

/// Fields of every object.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Most structs that are inlined into one object. Real types have far fewer; types that embed each other repeatedly have more.
const MOST_INLINED: usize = 1_000;

/// A walk through one version of a kind.
pub(super) struct KindWalk<'p> {
    packages: &'p Packages,
    pub(super) unions: Vec<MarkedUnion>,
    pub(super) findings: Vec<GoFinding>,
    /// Declared types on the way.
    pub(super) reached: BTreeSet<TypeId>,
    /// Packages whose sources were not given: their first type on the way, and the number of places that need them.
    missing: BTreeMap<Box<str>, (MissingType, usize)>,
}

/// A type that cannot be followed.
struct MissingType {
    name: Box<str>,
    path: String,
    at: Position,
}

/// One of the structs whose fields form an object: the struct itself, or one that is inlined.
struct Layer<'p> {
    names: Vec<TypeId>,
    fields: &'p Struct,
    scope: Scope<'p>,
    /// Markers of the field with an anonymous struct.
    markers: &'p [Marker],
    at: &'p Position,
}

/// The field or declaration that has a type.
#[derive(Clone, Copy)]
struct Site<'p> {
    at: &'p Position,
    markers: &'p [Marker],
}

impl<'p> KindWalk<'p> {
    /// Walks from the struct of a kind.
    pub(super) fn of(packages: &'p Packages, id: TypeId, schema: &Schema) -> Self {
        let mut walk = Self {
            packages,
            unions: Vec::new(),
            findings: Vec::new(),
            reached: BTreeSet::new(),
            missing: BTreeMap::new(),
        };
        if let (Some(declaration), Some(typed)) = (packages.declaration(id), packages.typed(id)) {
            let resolved = packages.resolve(&typed);
            let resolved = ResolvedType { names: [vec![id], resolved.names].concat(), ..resolved };
            walk.refuse_other_crd(&resolved, schema, declaration);
            walk.visit_resolved(resolved, Site { at: &declaration.at, markers: &[] }, schema, &Place::root());
            walk.report_missing();
        }
        walk
    }

    fn report(&mut self, at: &Position, place: &Place, severity: Severity, reason: FindingReason, message: String) {
        self.findings.push(GoFinding { position: at.clone(), path: place.to_string(), severity, reason, message });
    }

    /// Reports each package whose sources were not given, once.
    fn report_missing(&mut self) {
        for (package, (missing, times)) in std::mem::take(&mut self.missing) {
            let more = if times > 1 { format!(", nor at {} more places", times - 1) } else { String::new() };
            self.findings.push(GoFinding {
                position: missing.at,
                path: missing.path,
                severity: Severity::Note,
                reason: FindingReason::Package,
                message: format!(
                    "the sources of the package `{package}` were not given: unions in `{}` are not declared here{more}; give them",
                    missing.name
                ),
            });
        }
    }

    /// Reports a CRD that was made from another type with the name of the kind.
    fn refuse_other_crd(&mut self, resolved: &ResolvedType<'p>, schema: &Schema, declaration: &TypeDeclaration) {
        let Underlying::Struct { fields, scope } = &resolved.underlying else { return };
        let lacks_all = |fields: &Struct, schema: &Schema| {
            let mut names =
                fields.fields.iter().filter_map(Field::json_name).filter(|name| !ENVELOPE.contains(name)).peekable();
            names.peek().is_some()
                && !schema.properties.is_empty()
                && !names.any(|name| schema.properties.contains_key(name))
        };
        let spec = fields.fields.iter().find(|field| field.json_name() == Some("spec"));
        let spec_lacks_all = || {
            let (spec, schema) = (spec?, schema.properties.get("spec")?);
            let typed = ScopedType { written: &spec.written, scope: scope.clone() };
            let Underlying::Struct { fields, .. } = self.packages.resolve(&typed).underlying else { return None };
            Some(!fields.fields.iter().any(Field::is_inlined) && lacks_all(fields, schema))
        };
        if lacks_all(fields, schema) || spec_lacks_all() == Some(true) {
            let message = format!(
                "the CRD was made from another type: its schema has no field of `{}`; give the sources of that type",
                declaration.name
            );
            self.report(&declaration.at, &Place::root(), Severity::Error, FindingReason::Kind, message);
        }
    }

    fn visit(&mut self, typed: &ScopedType<'p>, site: Site<'p>, schema: &Schema, place: &Place) {
        let is_open = !schema.properties.is_empty() || schema.items.is_some() || schema.additional_properties.is_some();
        if is_open {
            self.visit_resolved(self.packages.resolve(typed), site, schema, place);
        }
    }

    fn visit_resolved(&mut self, resolved: ResolvedType<'p>, site: Site<'p>, schema: &Schema, place: &Place) {
        let ResolvedType { names, underlying, .. } = resolved;
        if self.is_declared_twice(&names, place) {
            return;
        }
        self.reached.extend(&names);
        match underlying {
            Underlying::Struct { fields, scope } => {
                let layer = Layer { names, fields, scope, markers: site.markers, at: site.at };
                self.visit_object(layer, schema, place);
            }
            Underlying::List(element) => {
                let Some(items) = &schema.items else { return };
                self.visit(&element, site, items, &place.then(PlaceStep::Items));
            }
            Underlying::Map(value) => {
                let Some(values) = &schema.additional_properties else { return };
                self.visit(&value, site, values, &place.then(PlaceStep::Values));
            }
            Underlying::Missing { package, name } => self.add_missing(package, name, site.at, place),
            Underlying::Cycle => self.report_cycle(site.at, place),
            Underlying::Plain => {}
        }
    }

    fn add_missing(&mut self, package: Box<str>, name: Box<str>, at: &Position, place: &Place) {
        if !WITHOUT_UNIONS.iter().any(|known| package.starts_with(known)) {
            let missing = || (MissingType { name, path: place.to_string(), at: at.clone() }, 0);
            self.missing.entry(package).or_insert_with(missing).1 += 1;
        }
    }

    /// Reports a type that two files of the build declare.
    fn is_declared_twice(&mut self, names: &[TypeId], place: &Place) -> bool {
        for id in names {
            let Some(declaration) = self.packages.declaration(*id) else { continue };
            let all = self.packages.declared(id.package, &declaration.name);
            let mut positions = all.iter().filter_map(|id| Some(&self.packages.declaration(*id)?.at));
            let (Some(first), Some(second)) = (positions.next(), positions.next()) else { continue };
            let message = format!(
                "`{}` is also declared at {first}: separate the files by build constraints and select the build by its tags; \
                 left out",
                declaration.name
            );
            self.report(second, place, Severity::Error, FindingReason::Ambiguous, message);
            return true;
        }
        false
    }

    fn report_cycle(&mut self, at: &Position, place: &Place) {
        let message = "the type contains itself without end; left out".to_owned();
        self.report(at, place, Severity::Error, FindingReason::Fault, message);
    }

    /// Derives the unions of a struct and of those inlined into it, then visits their fields.
    fn visit_object(&mut self, layer: Layer<'p>, schema: &Schema, place: &Place) {
        let layers = self.inlined(layer, schema, place);
        // As in Go, an outer field hides an inner one of the same name.
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        let mut inner: Vec<(&'p Field, Scope<'p>)> = Vec::new();
        for (_, level) in layers {
            let mut names_here = Vec::new();
            for layer in level {
                let fields: Vec<_> = layer
                    .fields
                    .fields
                    .iter()
                    .filter(|field| field.json_name().is_some_and(|name| !taken.contains(name)))
                    .collect();
                names_here.extend(fields.iter().filter_map(|field| field.json_name()));
                inner.extend(fields.iter().map(|field| (*field, layer.scope.clone())));
                self.derive_unions(&layer, &fields, schema, place);
            }
            taken.extend(names_here);
        }
        for (field, scope) in inner {
            let Some((name, property)) = field.json_name().and_then(|name| Some((name, schema.properties.get(name)?)))
            else {
                continue;
            };
            let typed = ScopedType { written: &field.written, scope };
            self.visit(&typed, Site { at: &field.at, markers: &field.markers }, property, &place.property(name));
        }
    }

    /// Returns the struct and all structs inlined into it, by depth.
    fn inlined(&mut self, layer: Layer<'p>, schema: &Schema, place: &Place) -> BTreeMap<usize, Vec<Layer<'p>>> {
        let mut layers: BTreeMap<usize, Vec<Layer<'p>>> = BTreeMap::new();
        // Each struct comes with the types around it, so that one that contains itself is recognized.
        let within: BTreeSet<TypeId> = layer.names.iter().copied().collect();
        let mut waiting = vec![(0, layer, within)];
        let mut count = 0;
        while let Some((depth, layer, within)) = waiting.pop() {
            count += 1;
            if count > MOST_INLINED {
                self.report_cycle(layer.at, place);
                break;
            }
            for field in layer.fields.fields.iter().filter(|field| field.is_inlined()) {
                let typed = ScopedType { written: &field.written, scope: layer.scope.clone() };
                let ResolvedType { names, underlying, .. } = self.packages.resolve(&typed);
                if self.is_declared_twice(&names, place) {
                    continue;
                }
                match underlying {
                    Underlying::Struct { fields, scope } if !names.iter().any(|name| within.contains(name)) => {
                        self.reached.extend(&names);
                        let within = within.iter().copied().chain(names.iter().copied()).collect();
                        let (markers, at) = (&*field.markers, &field.at);
                        waiting.push((depth + 1, Layer { names, fields, scope, markers, at }, within));
                    }
                    Underlying::Struct { .. } | Underlying::Cycle => self.report_cycle(&field.at, place),
                    Underlying::Missing { package, name } => {
                        // If the struct explains every field of the schema, nothing is missing.
                        if has_unexplained(layer.fields, schema) {
                            self.add_missing(package, name, &field.at, place);
                        }
                    }
                    Underlying::List(_) | Underlying::Map(_) | Underlying::Plain => {}
                }
            }
            layers.entry(depth).or_default().push(layer);
        }
        layers
    }

    fn derive_unions(&mut self, layer: &Layer<'p>, fields: &[&'p Field], schema: &Schema, place: &Place) {
        let declaration = layer.names.first().and_then(|id| self.packages.declaration(*id));
        let own = fields.iter().filter_map(|field| {
            let name = field.json_name()?;
            let required = schema.required.iter().any(|required| **required == *name);
            Some(StructField { field, name, scope: layer.scope.clone(), schema: schema.properties.get(name), required })
        });
        let of_names = layer.names.iter().filter_map(|id| self.packages.declaration(*id)).flat_map(|it| &it.markers);
        // A field's markers apply to its anonymous struct.
        let of_field = layer.markers.iter().filter(|marker| layer.names.is_empty() && marker.meaning == Meaning::Union);
        let title = layer.names.first().map_or_else(|| "struct".to_owned(), |id| self.packages.title(*id));
        let marked = MarkedStruct {
            title,
            at: declaration.map_or(layer.at, |declaration| &declaration.at),
            markers: of_names.chain(of_field).collect(),
            fields: own.collect(),
        };
        let (drafts, omissions) = marked.unions(self.packages);
        self.findings.extend(omissions.into_iter().map(|omission| omission.into_finding(place.to_string())));
        self.unions.extend(drafts.into_iter().map(|draft| {
            let UnionDraft { form, discriminator, choices, at: source, members } = draft;
            MarkedUnion {
                place: place.clone(),
                form,
                discriminator,
                choices,
                go_type: marked.title.clone(),
                source,
                members,
            }
        }));
    }
}

/// Returns true if the schema has fields that the struct does not declare itself.
fn has_unexplained(fields: &Struct, schema: &Schema) -> bool {
    let own: BTreeSet<&str> = fields.fields.iter().filter_map(Field::json_name).chain(ENVELOPE).collect();
    schema.properties.keys().any(|name| !own.contains(&**name))
}
