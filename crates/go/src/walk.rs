//! Follows the fields of a kind's struct beside the schema of its CRD, and applies the rules at every struct on the way.
//!
//! The walk visits what both have: a field that the schema lacks is skipped, because the sources may have feature gates or a
//! newer version. [`subfields`] has the markers on a struct that belong to its fields, [`unresolved`] collects the types that cannot be
//! followed.

mod subfields;
mod unresolved;

use self::subfields::{Subfield, Subfields, VisibleFields};
use self::unresolved::Unresolved;
use super::finding::{FindingKind, GoFinding, Position};
use super::marked_union::MarkedUnion;
use super::marker::{Marker, Meaning};
use super::packages::{Packages, ResolvedType, Scope, ScopedType, TypeId, Underlying};
use super::rules::{MarkedStruct, OneOfGroup, OneOfObject, StructField};
use super::types::{Field, TypeDeclaration};
use kube_unions_core::schema::{Place, PlaceStep, Schema};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Fields of every object.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A walk through one version of a kind.
pub(super) struct KindWalk<'p> {
    packages: &'p Packages,
    pub(super) unions: Vec<MarkedUnion>,
    pub(super) findings: Vec<GoFinding>,
    /// Declared types on the way.
    pub(super) reached: BTreeSet<TypeId>,
    unresolved: Unresolved<'p>,
    /// The JSON of the schema, with the rules that somebody wrote.
    json: &'p Value,
}

/// Most structs that are inlined into one object. Real types have far fewer; types that embed each other repeatedly have more.
const MOST_INLINED: usize = 1_000;

/// Most unions that a note about an embedded resource names.
const MOST_NAMED: usize = 10;

/// The field or declaration that has a type.
#[derive(Debug, Clone, Copy)]
struct Site<'p> {
    at: &'p Position,
    markers: &'p [Marker],
    /// The type is that of the field, and not that of its items or values.
    direct: bool,
}

/// One of the structs whose fields form an object: the struct itself, or one that is inlined.
struct Layer<'p> {
    names: Vec<TypeId>,
    fields: &'p [Field],
    scope: Scope<'p>,
    site: Site<'p>,
}

impl<'p> Site<'p> {
    fn of(field: &'p Field) -> Self {
        Self { at: &field.at, markers: &field.markers, direct: true }
    }
}

impl<'p> KindWalk<'p> {
    /// Walks from the struct of a kind. `json` is the JSON of `schema`.
    pub(super) fn of(packages: &'p Packages, id: TypeId, schema: &Schema, json: &'p Value) -> Self {
        let mut walk = Self {
            packages,
            unions: Vec::new(),
            findings: Vec::new(),
            reached: BTreeSet::new(),
            unresolved: Unresolved::default(),
            json,
        };
        if let (Some(declaration), Some(typed)) = (packages.declaration(id), packages.typed(id)) {
            let resolved = packages.resolve(&typed);
            let resolved = ResolvedType { names: [vec![id], resolved.names].concat(), ..resolved };
            walk.refuse_other_crd(&resolved, schema, declaration);
            walk.visit_resolved(
                resolved,
                Site { at: &declaration.at, markers: &[], direct: true },
                schema,
                &Place::root(),
            );
            walk.findings.extend(std::mem::take(&mut walk.unresolved).findings(packages));
        }
        walk
    }

    fn report(&mut self, at: &Position, place: &Place, kind: FindingKind, message: String) {
        self.findings.push(GoFinding::new(at, kind, message).about(place));
    }

    /// Reports a CRD that was made from another type with the name of the kind.
    fn refuse_other_crd(&mut self, resolved: &ResolvedType<'p>, schema: &Schema, declaration: &TypeDeclaration) {
        let Underlying::Struct { fields, scope } = &resolved.underlying else { return };
        let lacks_all = |fields: &[Field], schema: &Schema| {
            let mut names =
                fields.iter().filter_map(Field::json_name).filter(|name| !ENVELOPE.contains(name)).peekable();
            names.peek().is_some()
                && !schema.properties.is_empty()
                && !names.any(|name| schema.properties.contains_key(name))
        };
        let spec = fields.iter().find(|field| field.json_name() == Some("spec"));
        let spec_lacks_all = || {
            let (spec, schema) = (spec?, schema.properties.get("spec")?);
            let typed = ScopedType { written: &spec.written, scope: scope.clone() };
            let Underlying::Struct { fields, .. } = self.packages.resolve(&typed).underlying else { return None };
            Some(!fields.iter().any(Field::is_inlined) && lacks_all(fields, schema))
        };
        if lacks_all(fields, schema) || spec_lacks_all() == Some(true) {
            let message = format!(
                "the CRD was made from another type: its schema has no field of `{}`; give the sources of that type",
                declaration.name
            );
            self.report(&declaration.at, &Place::root(), FindingKind::OtherType, message);
        }
    }

    fn visit(&mut self, typed: &ScopedType<'p>, site: Site<'p>, schema: &Schema, place: &Place) {
        let is_open = !schema.properties.is_empty() || schema.items.is_some() || schema.additional_properties.is_some();
        if !is_open {
            return;
        }
        let is_embedded = |marker: &Marker| marker.meaning == Meaning::EmbeddedResource;
        if schema.embedded_resource || site.markers.iter().any(is_embedded) {
            return self.visit_embedded(typed, site, schema, place);
        }
        self.visit_resolved(self.packages.resolve(typed), site, schema, place);
    }

    /// Visits an object of another kind. Its unions are declared on its own CRD, because no request for this kind checks them.
    fn visit_embedded(&mut self, typed: &ScopedType<'p>, site: Site<'p>, schema: &Schema, place: &Place) {
        let (unions, findings) = (self.unions.len(), self.findings.len());
        self.visit_resolved(self.packages.resolve(typed), site, schema, place);
        // Nothing is declared here, so nothing that is found here matters.
        self.findings.truncate(findings);
        let inside: Vec<String> =
            self.unions.drain(unions..).map(|union| format!("`{}`", union.place)).take(MOST_NAMED).collect();
        if !inside.is_empty() {
            let message = format!(
                "the unions in an embedded resource are not declared, because it is an object of another kind: {}; declare \
                 them on the CRD of that kind",
                inside.join(", ")
            );
            self.report(site.at, place, FindingKind::EmbeddedUnion, message);
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
                self.visit_object(Layer { names, fields, scope, site }, schema, place);
            }
            Underlying::List(element) => {
                let Some(items) = &schema.items else { return };
                self.visit(&element, Site { direct: false, ..site }, items, &place.then(PlaceStep::Items));
            }
            Underlying::Map(value) => {
                let Some(values) = &schema.additional_properties else { return };
                self.visit(&value, Site { direct: false, ..site }, values, &place.then(PlaceStep::Values));
            }
            Underlying::Unknown { name, reason } => self.unresolved.add(name, reason, site.at, place),
            Underlying::Cycle => self.report_cycle(site.at, place),
            Underlying::Plain => {}
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
            self.report(second, place, FindingKind::DuplicateType, message);
            return true;
        }
        false
    }

    fn report_cycle(&mut self, at: &Position, place: &Place) {
        let message = "the type contains itself without end; left out".to_owned();
        self.report(at, place, FindingKind::RecursiveType, message);
    }

    /// Derives the unions of a struct and of those inlined into it, then visits their fields.
    fn visit_object(&mut self, layer: Layer<'p>, schema: &Schema, place: &Place) {
        let layers: Vec<_> = self.inlined(layer, schema, place).into_values().collect();
        // As in Go, an outer field hides an inner one of the same name.
        let mut visible = VisibleFields::new();
        let mut order = Vec::new();
        let first = self.unions.len();
        let subfields = self.subfields(&layers);
        for level in &layers {
            let mut names_here = Vec::new();
            for layer in level {
                let own = layer.fields.iter().filter_map(|field| Some((field.json_name()?, field)));
                let own: Vec<_> = own.filter(|(name, _)| !visible.contains_key(name)).collect();
                names_here.extend(own.iter().map(|(name, field)| (*name, (*field, layer.scope.clone()))));
                let fields: Vec<&Field> = own.into_iter().map(|(_, field)| field).collect();
                self.derive_unions(layer, &fields, &subfields.of_types, schema, place);
            }
            order.extend(names_here.iter().cloned());
            for (name, field) in names_here {
                visible.entry(name).or_insert(field);
            }
        }
        self.derive_subfields(&subfields, &visible, schema, place);
        self.derive_one_of(&layers, &subfields, &visible, schema, place, first);
        for (name, (field, scope)) in order {
            let Some(property) = schema.properties.get(name) else { continue };
            let (typed, place) = (ScopedType { written: &field.written, scope }, place.property(name));
            self.refuse_subfields(field, &typed, &place);
            self.visit(&typed, Site::of(field), property, &place);
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
                self.report_cycle(layer.site.at, place);
                break;
            }
            for field in layer.fields.iter().filter(|field| field.is_inlined()) {
                let typed = ScopedType { written: &field.written, scope: layer.scope.clone() };
                let ResolvedType { names, underlying, .. } = self.packages.resolve(&typed);
                if self.is_declared_twice(&names, place) {
                    continue;
                }
                match underlying {
                    Underlying::Struct { fields, scope } if !names.iter().any(|name| within.contains(name)) => {
                        self.reached.extend(&names);
                        let within = within.iter().copied().chain(names.iter().copied()).collect();
                        waiting.push((depth + 1, Layer { names, fields, scope, site: Site::of(field) }, within));
                    }
                    Underlying::Struct { .. } | Underlying::Cycle => self.report_cycle(&field.at, place),
                    // If the struct explains every field of the schema, nothing is missing.
                    Underlying::Unknown { name, reason } if has_unexplained(layer.fields, schema) => {
                        self.unresolved.add(name, reason, &field.at, place);
                    }
                    Underlying::Unknown { .. } | Underlying::List(_) | Underlying::Map(_) | Underlying::Plain => {}
                }
            }
            layers.entry(depth).or_default().push(layer);
        }
        layers
    }

    fn derive_unions(
        &mut self,
        layer: &Layer<'p>,
        fields: &[&'p Field],
        subfields: &[Subfield<'p>],
        schema: &Schema,
        place: &Place,
    ) {
        let declaration = layer.names.first().and_then(|id| self.packages.declaration(*id));
        let own = fields.iter().filter_map(|field| {
            let name = field.json_name()?;
            let own = field.markers.iter().map(|marker| (&marker.meaning, &marker.at));
            let meanings = own.chain(subfields.iter().filter(|subfield| subfield.name == name).map(Subfield::meaning));
            Some(StructField::of((name, field), meanings.collect(), &layer.scope, schema))
        });
        // A field's markers apply to its anonymous struct.
        let of_field =
            layer.site.markers.iter().filter(|marker| layer.names.is_empty() && marker.meaning == Meaning::Union);
        let marked = MarkedStruct {
            title: self.title(layer),
            at: declaration.map_or(layer.site.at, |declaration| &declaration.at),
            markers: self.type_markers(layer).chain(of_field).collect(),
            fields: own.collect(),
            place,
            json: self.json,
        };
        let derived = marked.unions(self.packages);
        self.add(derived, place);
    }

    /// Derives the unions of `ExactlyOneOf`, `AtMostOneOf` and `dependentForbidden`, whose fields may be those of inlined structs.
    /// `first` is the first union of the object.
    fn derive_one_of(
        &mut self,
        layers: &[Vec<Layer<'p>>],
        subfields: &Subfields<'p>,
        visible: &VisibleFields<'p>,
        schema: &Schema,
        place: &Place,
        first: usize,
    ) {
        let mut groups = Vec::new();
        for layer in layers.iter().flatten() {
            let markers = self.type_markers(layer);
            groups.extend(markers.filter_map(|marker| OneOfGroup::of(marker, self.title(layer))));
        }
        let own = visible
            .iter()
            .flat_map(|(name, (field, _))| field.markers.iter().map(|marker| (*name, (&marker.meaning, &marker.at))));
        let of_subfields = subfields.all().map(|subfield| (subfield.name, subfield.meaning()));
        let excluding = own.chain(of_subfields);
        groups.extend(
            excluding.filter_map(|(name, (meaning, at))| OneOfGroup::excluding(name, meaning, at, &subfields.title)),
        );
        if groups.is_empty() {
            return;
        }
        let (packages, marked) = (self.packages, self.unions.get(first..).unwrap_or_default());
        let derived = OneOfObject { fields: visible, schema, place, packages, marked }.unions(&groups);
        self.add(derived, place);
    }

    /// Returns the markers that belong to the fields of an object.
    fn subfields(&self, layers: &[Vec<Layer<'p>>]) -> Subfields<'p> {
        let layers = || layers.iter().flatten();
        let of_types = layers().flat_map(|layer| self.type_markers(layer)).filter_map(Subfield::of);
        let of_site =
            layers().filter(|layer| layer.site.direct).flat_map(|layer| layer.site.markers).filter_map(Subfield::of);
        let title = layers().next().map_or_else(String::new, |layer| self.title(layer));
        Subfields { of_types: of_types.collect(), of_site: of_site.collect(), title }
    }

    /// Derives the unions of the markers on the field with an object.
    fn derive_subfields(
        &mut self,
        subfields: &Subfields<'p>,
        visible: &VisibleFields<'p>,
        schema: &Schema,
        place: &Place,
    ) {
        self.add((Vec::new(), subfields.unknown(visible)), place);
        let Some(first) = subfields.of_site.first() else { return };
        let (title, markers, json) = (subfields.title.clone(), Vec::new(), self.json);
        let fields = subfields.marked(visible, schema);
        let derived = MarkedStruct { title, at: first.at, markers, fields, place, json }.unions(self.packages);
        self.add(derived, place);
    }

    /// Reports the markers for the fields of a field that is no struct.
    fn refuse_subfields(&mut self, field: &'p Field, typed: &ScopedType<'p>, place: &Place) {
        let mut subfields = field.markers.iter().filter_map(Subfield::of).peekable();
        if subfields.peek().is_none() {
            return;
        }
        let underlying = self.packages.resolve(typed).underlying;
        if matches!(underlying, Underlying::Struct { .. } | Underlying::Unknown { .. }) {
            return;
        }
        for Subfield { name, at, .. } in subfields {
            let message = format!("`+k8s:subfield({name})` has no effect on a field that is not a struct");
            self.report(at, place, FindingKind::MisplacedMarker, message);
        }
    }

    fn add(&mut self, (unions, findings): (Vec<MarkedUnion>, Vec<GoFinding>), place: &Place) {
        self.findings.extend(findings.into_iter().map(|finding| finding.about(place)));
        self.unions.extend(unions);
    }

    fn title(&self, layer: &Layer<'_>) -> String {
        layer.names.first().map_or_else(|| "struct".to_owned(), |id| self.packages.title(*id))
    }

    /// Returns the markers of the declarations behind a struct.
    fn type_markers(&self, layer: &Layer<'p>) -> impl Iterator<Item = &'p Marker> + use<'p> {
        let packages = self.packages;
        let names = layer.names.clone();
        names.into_iter().filter_map(|id| packages.declaration(id)).flat_map(|declaration| &declaration.markers)
    }
}

/// Returns true if the schema has fields that the struct does not declare itself.
fn has_unexplained(fields: &[Field], schema: &Schema) -> bool {
    let own: BTreeSet<&str> = fields.iter().filter_map(Field::json_name).chain(ENVELOPE).collect();
    schema.properties.keys().any(|name| !own.contains(&**name))
}
