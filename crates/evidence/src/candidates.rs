//! Finds fields that a validation names together, and recognises pod templates by their shape.

use crate::answer::{Evidence, ProposedChoice, ProposedUnion, UnionFields};
use crate::combination::Combination;
use crate::decision::OtherMembers;
use crate::env::{CelEnv, Parsed, children};
use crate::limits::{DEEPEST_PLACE, MOST_PLACES};
use crate::node::SchemaNode;
use crate::place::PlaceValidations;
use crate::rule::ValidationRule;
use crate::scene::FieldSelection;
use crate::table::{TableRow, TruthTable};
use cel::common::ast::operators as op;
use cel::common::ast::{Expr, IdedExpr};
use kube_unions_core::schema::cel_name::unescape;
use kube_unions_core::schema::{Place, PlaceStep};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Fields of one object that validations name together.
#[derive(Debug)]
pub(crate) struct CandidateFields<'s> {
    pub(crate) object: VisitedObject<'s>,
    pub(crate) env: &'s Rc<CelEnv>,
    /// The fields, in the order of the schema.
    pub(crate) fields: Vec<String>,
    /// The fields among them, and beside them, that may be a discriminator.
    pub(crate) discriminators: Vec<String>,
    /// For each field the validations that may be about it.
    validations: BTreeMap<String, BTreeSet<usize>>,
}

#[derive(Debug, Clone)]
pub(crate) struct VisitedObject<'s> {
    pub(crate) place: Place,
    /// True if a name on the way cannot stand in a path.
    pub(crate) odd: bool,
    /// True if the object is in a list without keys.
    pub(crate) keyless: bool,
    pub(crate) schema: &'s Value,
    pub(crate) node: SchemaNode<'s>,
    depth: usize,
}

type FieldsByPlace = BTreeMap<Place, BTreeSet<String>>;

/// Returns the candidates among the objects of a schema.
pub(crate) fn of<'s>(objects: &[VisitedObject<'s>], env: &'s Rc<CelEnv>) -> Vec<CandidateFields<'s>> {
    let mut named = FieldsByPlace::new();
    for object in objects {
        object.names(env, &mut named);
    }
    objects.iter().filter_map(|object| object.clone().candidate(named.get(&object.place)?, env)).collect()
}

/// Returns the objects of a schema, and true if none was left out.
pub(crate) fn objects(schema: &Value) -> (Vec<VisitedObject<'_>>, bool) {
    let root =
        VisitedObject { place: Place::root(), odd: false, keyless: false, schema, node: SchemaNode(schema), depth: 0 };
    let (mut waiting, mut complete, mut visited) = (vec![root], true, Vec::new());
    while let Some(object) = waiting.pop() {
        if visited.len() >= MOST_PLACES || object.depth > DEEPEST_PLACE {
            complete = false;
            continue;
        }
        waiting.extend(object.children().into_iter().rev());
        visited.push(object);
    }
    (visited, complete)
}

impl CandidateFields<'_> {
    /// Returns true if a validation may be about both fields.
    pub(crate) fn are_related(&self, one: &str, other: &str) -> bool {
        let of = |field: &str| self.validations.get(field);
        of(one).zip(of(other)).is_some_and(|(one, other)| !one.is_disjoint(other))
    }

    pub(crate) fn table(&self, union: &UnionFields, rest: OtherMembers) -> Option<TruthTable> {
        TruthTable::make(self.object.schema, &self.object.place, union, rest, self.env)
    }

    /// Returns true if two fields are rejected together, and neither is alone, whatever else is set.
    pub(crate) fn excludes(&self, one: &str, other: &str) -> bool {
        let union = UnionFields::of_members(&[one, other]);
        let table = || self.table(&union, OtherMembers::Unknown);
        let table = self.are_related(one, other).then(table).flatten();
        let is_rejected = |members: &[&str]| table.as_ref().is_some_and(|table| table.is_rejected(None, members));
        is_rejected(&[one, other]) && !is_rejected(&[one]) && !is_rejected(&[other])
    }

    /// Returns true if an object without any of these members is rejected, whatever else it has.
    pub(crate) fn requires_one(&self, members: &[String]) -> bool {
        let union = UnionFields::of_members(members);
        let table = self.table(&union, OtherMembers::Absent);
        table.is_some_and(|table| table.row(None, &[]).is_some_and(|row| table.is_rejection(row)))
    }

    /// Returns the validations that reject a field without another one, if they accept both.
    pub(crate) fn requirement(&self, field: &str, other: &str) -> Option<Vec<Evidence>> {
        if !self.are_related(field, other) {
            return None;
        }
        let union = UnionFields::of_members(&[field, other]);
        let table = self.table(&union, OtherMembers::Absent)?;
        let (alone, both) = (table.row(None, &[field])?, table.row(None, &[field, other])?);
        let is_required = table.is_rejection(alone) && both.is_allowed();
        is_required.then(|| Self::evidence(&table, &[alone]))
    }

    /// Returns the members that matter only if they are not empty, by the rows of a table that count.
    pub(crate) fn empty_is_unset<'t>(
        &self,
        rows: impl Iterator<Item = &'t TableRow>,
        union: UnionFields,
        rest: OtherMembers,
    ) -> BTreeSet<String> {
        let open: BTreeSet<&Combination> =
            rows.filter(|row| !row.rejected_unless_empty.is_empty()).map(|row| &row.combination).collect();
        let mut union = UnionFields { empty_is_unset: BTreeSet::new(), ..union };
        union.empty_is_unset.extend(open.iter().flat_map(|combination| combination.members.iter().cloned()));
        for member in union.empty_is_unset.clone() {
            let mut fewer = union.clone();
            fewer.empty_is_unset.remove(&member);
            let table = self.table(&fewer, rest).unwrap_or_default();
            let is_open = |row: &TableRow| open.contains(&row.combination) && !row.rejected_unless_empty.is_empty();
            if !table.rows().iter().any(is_open) {
                union = fewer;
            }
        }
        union.empty_is_unset
    }

    /// Returns the validations that reject these combinations.
    pub(crate) fn evidence(table: &TruthTable, rows: &[&TableRow]) -> Vec<Evidence> {
        let positions: BTreeSet<usize> = rows.iter().flat_map(|row| row.rejecting()).copied().collect();
        let evidence = positions.into_iter().filter_map(|at| table.evidence().get(at));
        evidence.filter(|evidence| evidence.is_about_fields()).cloned().collect()
    }
}

impl<'s> VisitedObject<'s> {
    fn children(&self) -> Vec<Self> {
        let depth = self.depth.saturating_add(1);
        let mut children = Vec::new();
        for (name, node) in self.node.properties() {
            let odd = self.odd || name.contains(['.', '[', ']', '*']);
            children.push(Self { place: self.place.property(name), odd, node, depth, ..self.clone() });
        }
        let mut around = |step: PlaceStep, keyless: bool| {
            let Some(node) = self.node.below(&step) else { return };
            let keyless = self.keyless || keyless;
            children.push(Self { place: self.place.then(step), keyless, node, depth, ..self.clone() });
        };
        around(PlaceStep::Items, self.node.text("x-kubernetes-list-type") != Some("map"));
        around(PlaceStep::Values, false);
        if self.node.flag("x-kubernetes-embedded-resource") { Vec::new() } else { children }
    }

    /// Collects the fields that the validations of this object name.
    fn names(&self, env: &CelEnv, named: &mut FieldsByPlace) {
        for keyword in ["allOf", "anyOf", "oneOf", "not"] {
            if let Some(argument) = self.node.get(keyword) {
                required_in(argument, &self.place, named, self.depth);
            }
        }
        if let Some(most) = self.node.most_properties() {
            let (always, free): (Vec<&str>, Vec<&str>) =
                self.node.properties().map(|(name, _)| name).partition(|name| self.node.always_has(name));
            // Beside the fields that every object has, there is room for one.
            if most == always.len().saturating_add(1) {
                named.entry(self.place.clone()).or_default().extend(free.into_iter().map(str::to_owned));
            }
        }
        for rule in ValidationRule::of(self.node, env) {
            if let Parsed::Expression(expression) = &*rule.parsed {
                tested_in(expression, &[("self", self.place.clone())], named);
            }
        }
    }

    pub(crate) fn union(
        &self,
        discriminator: Option<&str>,
        choices: Vec<ProposedChoice>,
        evidence: Vec<Evidence>,
    ) -> ProposedUnion {
        let is_member = |name: &&str| choices.iter().flat_map(|it| &it.members).any(|member| member.name == **name);
        let members = self.node.properties().map(|(name, _)| name).filter(is_member).map(str::to_owned).collect();
        ProposedUnion {
            path: self.place.to_string(),
            keyless: self.keyless,
            discriminator: discriminator.map(str::to_owned),
            choices,
            members,
            exactly_one: false,
            empty_is_unset: BTreeSet::new(),
            immutable: false,
            evidence,
        }
    }

    fn candidate(self, named: &BTreeSet<String>, env: &'s Rc<CelEnv>) -> Option<CandidateFields<'s>> {
        let known = self.node.properties().filter(|(name, _)| named.contains(*name));
        let fields: Vec<String> = known.map(|(name, _)| name.to_owned()).collect();
        let may_choose = |name: &&String| self.node.property(name).is_some_and(SchemaNode::may_discriminate);
        let discriminators: Vec<String> = fields.iter().filter(may_choose).cloned().collect();
        if fields.len() < 2 {
            return None;
        }
        let union = UnionFields::of_members(&fields);
        let place = PlaceValidations::find(self.schema, &self.place, &union, env)?;
        let validations = fields.iter().map(|field| (field.clone(), place.about(field))).collect();
        Some(CandidateFields { object: self, env, fields, discriminators, validations })
    }
}

/// Collects the names of `required`, at each object that a validation describes.
fn required_in(validation: &Value, place: &Place, named: &mut FieldsByPlace, depth: usize) {
    if depth > DEEPEST_PLACE {
        return;
    }
    let below = depth.saturating_add(1);
    if let Value::Array(parts) = validation {
        for part in parts {
            required_in(part, place, named, below);
        }
    }
    let node = SchemaNode(validation);
    let required: BTreeSet<String> = node.required().map(str::to_owned).collect();
    if !required.is_empty() {
        named.entry(place.clone()).or_default().extend(required);
    }
    for keyword in ["allOf", "anyOf", "oneOf", "not"] {
        if let Some(argument) = node.get(keyword) {
            required_in(argument, place, named, below);
        }
    }
    for (name, field) in node.properties() {
        if field.values().is_some() {
            named.entry(place.clone()).or_default().insert(name.to_owned());
        }
        required_in(field.0, &place.property(name), named, below);
    }
}

/// Collects the fields that an expression tests with `has()`, counts or compares, with the places of its variables. The variable of a
/// macro over a list is an item of it.
fn tested_in(expression: &IdedExpr, variables: &[(&str, Place)], named: &mut FieldsByPlace) {
    let place_of = |value: &IdedExpr| {
        let selection = FieldSelection::of(value)?;
        let (_, root) = variables.iter().rev().find(|(name, _)| *name == selection.variable)?;
        selection.names().into_iter().try_fold(root.clone(), |place, name| Some(place.property(&unescape(name)?)))
    };
    let mut add = |place: Option<Place>| {
        let Some(place) = place else { return };
        if let (Some(object), Some(PlaceStep::Property(field))) = (place.parent(), place.steps().last()) {
            named.entry(object).or_default().insert(field.to_string());
        }
    };
    if let Expr::Select(select) = &expression.expr
        && select.test
    {
        let field = unescape(&select.field);
        add(place_of(&select.operand).zip(field).map(|(object, field)| object.property(&field)));
    }
    if let Expr::Call(call) = &expression.expr {
        match call.func_name.as_str() {
            op::OPT_SELECT => add(place_of(expression)),
            "size" => call.target.as_deref().into_iter().chain(&call.args).for_each(|sized| add(place_of(sized))),
            // A boolean stands alone.
            op::EQUALS
            | op::NOT_EQUALS
            | op::IN
            | op::LOGICAL_AND
            | op::LOGICAL_OR
            | op::LOGICAL_NOT
            | op::CONDITIONAL => call.args.iter().for_each(|side| add(place_of(side))),
            _ => {}
        }
    }
    if let Expr::Comprehension(it) = &expression.expr
        && let Some(list) = place_of(&it.iter_range)
    {
        let variables = [variables, &[(it.iter_var.as_str(), list.then(PlaceStep::Items))]].concat();
        for part in children(&expression.expr) {
            tested_in(part, &variables, named);
        }
        return;
    }
    for part in children(&expression.expr) {
        tested_in(part, variables, named);
    }
}

pub(crate) fn pod_template_paths(objects: &[VisitedObject<'_>]) -> Vec<String> {
    let templates = objects.iter().filter(|it| !it.odd && !it.place.steps().is_empty() && is_pod_template(it.node));
    templates.map(|object| object.place.to_string()).collect()
}

/// Returns true for an object whose `spec` has the fields of a pod, with containers.
fn is_pod_template(node: SchemaNode<'_>) -> bool {
    let has = |node: SchemaNode<'_>, names: &[&str]| names.iter().all(|name| node.property(name).is_some());
    let spec = node.property("spec").filter(|spec| has(*spec, &["containers", "restartPolicy", "volumes"]));
    let containers = spec.and_then(|spec| spec.property("containers")?.get("items"));
    containers.is_some_and(|it| has(SchemaNode(it), &["env", "image", "livenessProbe", "name", "volumeMounts"]))
}
