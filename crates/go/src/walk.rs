//! The walk from a kind's struct along its fields, beside the schema: what is in both is looked at.

use super::MarkedUnion;
use super::finding::{FindingReason, GoFinding, Severity};
use super::marker::{Marker, Meaning};
use super::packages::{Packages, ResolvedType, Scope, ScopedType, TypeId, Underlying};
use super::rules::{MarkedStruct, StructField};
use super::types::{Field, Position, Struct, TypeDeclaration};
use kube_unions_core::schema::{Place, PlaceStep, Schema};
use std::collections::{BTreeMap, BTreeSet};

/// Packages whose types are in every kind and hold no unions.
const WITHOUT_UNIONS: [&str; 2] = ["k8s.io/apimachinery/", "k8s.io/apiextensions-apiserver/"];

/// The fields that every object has.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// How many structs may join one object: more than any type has, and few enough for types that join each other over and over.
const MOST_JOINED: usize = 1_000;

/// A walk through one version of one kind.
pub(super) struct KindWalk<'p> {
    packages: &'p Packages,
    pub(super) unions: Vec<MarkedUnion>,
    pub(super) findings: Vec<GoFinding>,
    /// The declared types that were reached.
    pub(super) reached: BTreeSet<TypeId>,
    /// The packages that were not given: where they are needed first, and how often.
    missing: BTreeMap<Box<str>, (MissingType, usize)>,
}

/// A type that could not be followed.
struct MissingType {
    name: Box<str>,
    path: String,
    at: Position,
}

/// A struct whose fields are in one object, with others that join it.
struct Layer<'p> {
    names: Vec<TypeId>,
    fields: &'p Struct,
    scope: Scope<'p>,
    /// The markers of the field that has the struct's type written in place.
    markers: &'p [Marker],
    at: &'p Position,
}

/// Where a type stands.
#[derive(Clone, Copy)]
struct Site<'p> {
    at: &'p Position,
    markers: &'p [Marker],
}

impl<'p> KindWalk<'p> {
    pub(super) fn new(packages: &'p Packages) -> Self {
        Self { packages, unions: Vec::new(), findings: Vec::new(), reached: BTreeSet::new(), missing: BTreeMap::new() }
    }

    /// Walks from a kind's struct.
    pub(super) fn kind(&mut self, id: TypeId, schema: &Schema) {
        let (Some(declaration), Some(typed)) = (self.packages.declaration(id), self.packages.typed(id)) else { return };
        let resolved = self.packages.resolve(&typed);
        let resolved = ResolvedType { names: [vec![id], resolved.names].concat(), ..resolved };
        self.refuse_stranger(&resolved, schema, declaration);
        self.end(resolved, Site { at: &declaration.at, markers: &[] }, schema, &Place::root());
    }

    /// What is said once at the end: the packages that were missed.
    pub(super) fn finish(&mut self) {
        for (package, (missing, times)) in std::mem::take(&mut self.missing) {
            let more = if times > 1 { format!(", and in {} more places", times - 1) } else { String::new() };
            self.findings.push(GoFinding {
                position: Some(missing.at),
                path: missing.path,
                severity: Severity::Note,
                reason: FindingReason::Package,
                message: format!(
                    "`{}` is of the package `{package}`, which was not given: unions in it are not seen here{more}; give its folder by --go",
                    missing.name
                ),
            });
        }
    }

    /// A CRD may well be of another type than the struct that is called as its kind is.
    fn refuse_stranger(&mut self, resolved: &ResolvedType<'p>, schema: &Schema, declaration: &TypeDeclaration) {
        let Underlying::Struct { fields, scope } = &resolved.end else { return };
        let own: Vec<_> =
            fields.fields.iter().filter_map(Field::json_name).filter(|name| !ENVELOPE.contains(name)).collect();
        let known = |schema: &Schema, name: &&str| schema.properties.contains_key(*name);
        let strange = |names: &[&str], schema: &Schema| {
            !names.is_empty() && !schema.properties.is_empty() && !names.iter().any(|name| known(schema, name))
        };
        let mut is_strange = strange(&own, schema);
        for field in &fields.fields {
            let Some(inner) = field.json_name().and_then(|name| schema.properties.get(name)) else { continue };
            let typed = ScopedType { written: &field.written, scope: scope.clone() };
            if let Underlying::Struct { fields, .. } = self.packages.resolve(&typed).end {
                let joined = fields.fields.iter().any(Field::joins);
                let names: Vec<_> = fields.fields.iter().filter_map(Field::json_name).collect();
                is_strange |= field.json_name() == Some("spec") && !joined && strange(&names, inner);
            }
        }
        if is_strange {
            let message = format!(
                "no field of `{}` is in the schema of the CRD, which seems to be made from another type; give the sources that it was made from",
                declaration.name
            );
            let position = Some(declaration.at.clone());
            self.findings.push(GoFinding {
                position,
                path: String::new(),
                severity: Severity::Error,
                reason: FindingReason::Kind,
                message,
            });
        }
    }

    fn typed(&mut self, typed: &ScopedType<'p>, site: Site<'p>, schema: &Schema, place: &Place) {
        if !is_open(schema) {
            return;
        }
        let resolved = self.packages.resolve(typed);
        self.end(resolved, site, schema, place);
    }

    fn end(&mut self, resolved: ResolvedType<'p>, site: Site<'p>, schema: &Schema, place: &Place) {
        let ResolvedType { names, end, .. } = resolved;
        if self.is_declared_twice(&names, place) {
            return;
        }
        self.reached.extend(&names);
        match end {
            Underlying::Struct { fields, scope } => {
                let layer = Layer { names, fields, scope, markers: site.markers, at: site.at };
                self.object(layer, schema, place);
            }
            Underlying::List(element) => {
                let Some(items) = &schema.items else { return };
                self.typed(&element, site, items, &place.then(PlaceStep::Items));
            }
            Underlying::Map(value) => {
                let Some(values) = &schema.additional_properties else { return };
                self.typed(&value, site, values, &place.then(PlaceStep::Values));
            }
            Underlying::Missing { package, name } => self.miss(package, name, site, place),
            Underlying::Cycle => self.report_cycle(site.at, place),
            Underlying::Plain => {}
        }
    }

    fn miss(&mut self, package: Box<str>, name: Box<str>, site: Site<'_>, place: &Place) {
        if !WITHOUT_UNIONS.iter().any(|known| package.starts_with(known)) {
            let missing = || (MissingType { name, path: place.to_string(), at: site.at.clone() }, 0);
            self.missing.entry(package).or_insert_with(missing).1 += 1;
        }
    }

    /// Two files of a package declare a type, and the build that is read has both.
    fn is_declared_twice(&mut self, names: &[TypeId], place: &Place) -> bool {
        for id in names {
            let Some(declaration) = self.packages.declaration(*id) else { continue };
            let all = self.packages.declared(id.package, &declaration.name);
            let [one, other, ..] = all.as_slice() else { continue };
            let at = |id: TypeId| self.packages.declaration(id).map(|declaration| declaration.at.clone());
            let first = at(*one).map(|at| at.to_string()).unwrap_or_default();
            self.findings.push(GoFinding {
                position: at(*other),
                path: place.to_string(),
                severity: Severity::Error,
                reason: FindingReason::Ambiguous,
                message: format!(
                    "`{}` is declared here and at {first}; tell the files apart by build constraints, and say by --tags which build is meant; \
                     left out",
                    declaration.name
                ),
            });
            return true;
        }
        false
    }

    fn report_cycle(&mut self, at: &Position, place: &Place) {
        self.findings.push(GoFinding {
            position: Some(at.clone()),
            path: place.to_string(),
            severity: Severity::Error,
            reason: FindingReason::Fault,
            message: "the type leads back to itself without end; left out".to_owned(),
        });
    }

    /// An object: the unions of its struct and of those that join it, and what is in its fields.
    fn object(&mut self, layer: Layer<'p>, schema: &Schema, place: &Place) {
        let layers = self.joined(layer, schema, place);
        // Of two fields with one name the outer counts, as in Go.
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
                self.unions(&layer, &fields, schema, place);
            }
            taken.extend(names_here);
        }
        for (field, scope) in inner {
            let Some((name, property)) = field.json_name().and_then(|name| Some((name, schema.properties.get(name)?)))
            else {
                continue;
            };
            let typed = ScopedType { written: &field.written, scope };
            self.typed(&typed, Site { at: &field.at, markers: &field.markers }, property, &place.property(name));
        }
    }

    /// The struct and all that join it, by depth.
    fn joined(&mut self, layer: Layer<'p>, schema: &Schema, place: &Place) -> BTreeMap<usize, Vec<Layer<'p>>> {
        let mut layers: BTreeMap<usize, Vec<Layer<'p>>> = BTreeMap::new();
        // With each the types that it is within: one that is within itself has no end.
        let within: BTreeSet<TypeId> = layer.names.iter().copied().collect();
        let mut waiting = vec![(0, layer, within)];
        let mut joined = 0;
        while let Some((depth, layer, within)) = waiting.pop() {
            joined += 1;
            if joined > MOST_JOINED {
                self.report_cycle(layer.at, place);
                break;
            }
            for field in layer.fields.fields.iter().filter(|field| field.joins()) {
                let typed = ScopedType { written: &field.written, scope: layer.scope.clone() };
                let ResolvedType { names, end, .. } = self.packages.resolve(&typed);
                if self.is_declared_twice(&names, place) {
                    continue;
                }
                match end {
                    Underlying::Struct { fields, scope } if !names.iter().any(|name| within.contains(name)) => {
                        self.reached.extend(&names);
                        let within = within.iter().copied().chain(names.iter().copied()).collect();
                        let (markers, at) = (&*field.markers, &field.at);
                        waiting.push((depth + 1, Layer { names, fields, scope, markers, at }, within));
                    }
                    Underlying::Struct { .. } | Underlying::Cycle => self.report_cycle(&field.at, place),
                    Underlying::Missing { package, name } => {
                        // Without fields that nobody knows there is nothing to miss.
                        if has_unexplained(layer.fields, schema) {
                            self.miss(package, name, Site { at: &field.at, markers: &[] }, place);
                        }
                    }
                    Underlying::List(_) | Underlying::Map(_) | Underlying::Plain => {}
                }
            }
            layers.entry(depth).or_default().push(layer);
        }
        layers
    }

    fn unions(&mut self, layer: &Layer<'p>, fields: &[&'p Field], schema: &Schema, place: &Place) {
        let declaration = layer.names.first().and_then(|id| self.packages.declaration(*id));
        let own = fields.iter().filter_map(|field| {
            let name = field.json_name()?;
            let required = schema.required.iter().any(|required| **required == *name);
            Some(StructField { field, name, scope: layer.scope.clone(), schema: schema.properties.get(name), required })
        });
        let of_names = layer.names.iter().filter_map(|id| self.packages.declaration(*id)).flat_map(|it| &it.markers);
        // Markers on a field are the struct's where it has no name of its own.
        let of_field = layer.markers.iter().filter(|marker| layer.names.is_empty() && marker.meaning == Meaning::Union);
        let title = layer.names.first().map_or_else(|| "struct".to_owned(), |id| self.packages.title(*id));
        let marked = MarkedStruct {
            title,
            at: declaration.map_or(layer.at, |declaration| &declaration.at),
            markers: of_names.chain(of_field).collect(),
            fields: own.collect(),
        };
        let (drafts, left_out) = marked.unions(self.packages);
        self.findings.extend(left_out.into_iter().map(|why| why.into_finding(place.to_string())));
        for draft in drafts {
            self.unions.push(MarkedUnion::new(place.clone(), draft, marked.title.clone()));
        }
    }
}

/// Whether a schema says what is inside.
fn is_open(schema: &Schema) -> bool {
    !schema.properties.is_empty() || schema.items.is_some() || schema.additional_properties.is_some()
}

/// Whether the schema has fields that are not the struct's own.
fn has_unexplained(fields: &Struct, schema: &Schema) -> bool {
    let own: BTreeSet<&str> = fields.fields.iter().filter_map(Field::json_name).chain(ENVELOPE).collect();
    schema.properties.keys().any(|name| !own.contains(&**name))
}
