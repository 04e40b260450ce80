//! The rules that compare a union with the old object: where they are, and what they say about an update.

use crate::answer::UnionFields;
use crate::env::{CelEnv, Parsed, children};
use crate::facts::Fact;
use crate::node::SchemaNode;
use crate::rule::{OLD, RULES, reads_old};
use crate::scene::{FieldSelection, Scene};
use crate::table::{NO_MEMORY, with_names, with_stack};
use cel::common::ast::{Expr, IdedExpr};
use kube_unions_core::schema::cel_name::unescape;
use kube_unions_core::schema::{Place, PlaceStep};
use serde_json::Value;
use std::rc::Rc;

/// A rule that compares a union with the old object, and that an update does not surely pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTransition {
    /// The number of steps from the root to the object with the rule.
    pub level: usize,
    /// The field of the object that has the rule. `None`: the object has it itself.
    pub field: Option<String>,
    /// The message of the API server.
    pub message: String,
    /// The reason why the rule cannot be evaluated. `None`: it refuses the update.
    pub undecided: Option<String>,
}

/// The old and the new value of an object.
pub type ObjectUpdate<'v> = [&'v Value; 2];

impl RefusedTransition {
    /// Judges an update by the rules about a union. `updates` has the object of the kind, and those on the way to the union that were there
    /// before and still are.
    pub fn find(schema: &Value, place: &Place, union: &UnionFields, updates: &[ObjectUpdate<'_>]) -> Vec<Self> {
        let schema = &*with_names(schema);
        with_stack(|| {
            let env = CelEnv::new();
            let rules = ComparingRule::find(schema, place, &union.fields().collect::<Vec<_>>(), &env);
            rules.iter().filter_map(|rule| rule.judge(updates, &env)).collect()
        })
        .unwrap_or_else(|| {
            let undecided = Some(NO_MEMORY.to_owned());
            vec![Self { level: 0, field: None, message: "a rule may refuse the update".to_owned(), undecided }]
        })
    }
}

/// A rule about a union that reads the old object.
#[derive(Debug)]
pub(crate) struct ComparingRule<'s> {
    level: usize,
    field: Option<&'s str>,
    /// The schema of the value that the rule judges.
    node: SchemaNode<'s>,
    rule: SchemaNode<'s>,
    parsed: Rc<Parsed>,
    /// True if it compares the object, or a field of the union as a whole, with the old one.
    pub(crate) restricts: bool,
}

impl<'s> ComparingRule<'s> {
    /// Finds the rules of the objects on the way to a union, of the union's object and of the union's fields.
    pub(crate) fn find(schema: &'s Value, place: &Place, fields: &[&str], env: &CelEnv) -> Vec<Self> {
        let mut found = Vec::new();
        let mut node = SchemaNode(schema);
        let mut way: &[PlaceStep] = place.steps();
        let is_at = |name: &str, step: &PlaceStep| matches!(step, PlaceStep::Property(property) if **property == *name);
        for level in 0.. {
            // The number of names in a path behind a field of the union, none for an object around the fields.
            let behind = |path: &[String]| {
                let steps = path.iter().zip(way).take_while(|(name, step)| is_at(name, step)).count();
                match path.get(steps..).unwrap_or_default() {
                    [] => Some(0),
                    [field, rest @ ..] => (steps == way.len() && fields.contains(&&**field)).then_some(rest.len()),
                }
            };
            found.extend(Self::of_node(node, None, level, behind, env));
            let Some((step, rest)) = way.split_first() else {
                let nodes = node.properties().filter(|(name, _)| fields.contains(name));
                let whole = |path: &[String]| path.is_empty().then_some(0);
                found.extend(nodes.flat_map(|(name, below)| Self::of_node(below, Some(name), level, whole, env)));
                break;
            };
            let Some(below) = node.below(step) else { break };
            (node, way) = (below, rest);
        }
        found
    }

    /// Returns the rules of a node that compare with the old object and read what a union has.
    fn of_node(
        node: SchemaNode<'s>,
        field: Option<&'s str>,
        level: usize,
        behind: impl Fn(&[String]) -> Option<usize>,
        env: &CelEnv,
    ) -> Vec<Self> {
        let rules = node.list(RULES).iter().map(SchemaNode).filter_map(|rule| {
            let parsed = env.parse(rule.text("rule").unwrap_or_default());
            let Parsed::Expression(expression) = &*parsed else { return None };
            let mut reads = Vec::new();
            if reads_old(expression) {
                read_fields(expression, &mut reads);
            }
            let is_about = reads.iter().any(|(_, path)| behind(path).is_some());
            let restricts = reads.iter().any(|(is_old, path)| *is_old && behind(path) == Some(0));
            is_about.then_some(Self { level, field, node, rule, parsed, restricts })
        });
        rules.collect()
    }

    /// Returns `None` if the rule accepts the update, or if a value that it compares is not in both objects.
    fn judge(&self, updates: &[ObjectUpdate<'_>], env: &CelEnv) -> Option<RefusedTransition> {
        let [old, new] = updates.get(self.level)?.map(|object| match self.field {
            Some(field) => object.get(field),
            None => Some(object),
        });
        let fact = |value| Fact::Value(value, Some(self.node));
        let (old, object) = (Some(fact(old?)), fact(new?));
        let Parsed::Expression(expression) = &*self.parsed else { return None };
        let outcomes = Scene { object, old, env, bound: None }.judge(expression);
        if outcomes.accepts() {
            return None;
        }
        let why = || outcomes.beyond_reason().unwrap_or("a part of the rule is not known here").to_owned();
        let (level, field) = (self.level, self.field.map(str::to_owned));
        Some(RefusedTransition { level, field, message: self.message(), undecided: (!outcomes.rejects()).then(why) })
    }

    fn message(&self) -> String {
        let text = |keyword: &str| self.rule.text(keyword).map(str::trim).filter(|text| !text.is_empty());
        let rule = || format!("failed rule: {}", text("rule").unwrap_or_default());
        let detail = text("message").map_or_else(rule, str::to_owned);
        let type_name = self.node.type_name().unwrap_or_default();
        match text("reason") {
            Some("FieldValueForbidden") => format!("Forbidden: {detail}"),
            Some("FieldValueRequired") => format!("Required value: {detail}"),
            Some("FieldValueDuplicate") => format!("Duplicate value: {type_name:?}"),
            _ => format!("Invalid value: {type_name:?}: {detail}"),
        }
    }
}

/// Adds the paths that an expression reads, of the old object, then with true, and of the new one.
fn read_fields(expression: &IdedExpr, reads: &mut Vec<(bool, Vec<String>)>) {
    let (mut value, mut tested) = (expression, None);
    if let Expr::Select(select) = &expression.expr
        && select.test
    {
        (value, tested) = (&*select.operand, Some(select.field.as_str()));
    }
    match FieldSelection::of(value) {
        Some(it) if [OLD, "self"].contains(&it.variable) => {
            let path = it.names().into_iter().chain(tested).filter_map(unescape).collect();
            reads.push((it.variable == OLD, path));
        }
        _ => children(&expression.expr).into_iter().for_each(|part| read_fields(part, reads)),
    }
}
