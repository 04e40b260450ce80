//! The truth table of a union: which combinations of discriminator value and members the validations of a CRD allow.

use crate::answer::{Evidence, UnionFields};
use crate::combination::Combination;
use crate::decision::{Decision, OtherMembers, decision};
use crate::env::CelEnv;
use crate::facts::Content;
use crate::limits::{MOST_FAILURES_TRIED, MOST_JUDGEMENTS, STACK};
use crate::node::SchemaNode;
use crate::place::PlaceValidations;
use crate::rule::{RULES, mentions};
use crate::sample::{Sample, Sampler};
use kube_unions_core::schema::Place;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::rc::Rc;

pub(crate) const NO_MEMORY: &str = "there is not enough memory to evaluate rules";

/// A combination and its decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    pub combination: Combination,
    /// The decision of all validations.
    pub decision: Decision,
    /// The positions in [`TruthTable::evidence`] of the validations that reject the combination only if none of its members is
    /// `false`, `0`, `""`, `{}` or `[]`.
    pub rejected_unless_empty: Vec<usize>,
    /// An object with the combination for which a rule fails, although the combination is allowed.
    pub failure: Option<RuleFailure>,
    /// True if a rule may fail for some contents.
    may_fail: bool,
}

/// An object for which a rule fails, so that the API server refuses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFailure {
    /// The object at the place.
    pub object: Value,
    /// The position of the rule in [`TruthTable::evidence`].
    pub rule: usize,
}

/// The decisions on all combinations of a union.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TruthTable {
    evidence: Vec<Evidence>,
    rows: Vec<TableRow>,
    complete: bool,
    has_all_validations: bool,
}

impl TableRow {
    /// Returns the validations that reject the combination if its members are not empty.
    pub(crate) fn rejecting(&self) -> &[usize] {
        match &self.decision {
            Decision::Rejected { by, .. } => by,
            Decision::Allowed => &self.rejected_unless_empty,
            Decision::Undecided { .. } => &[],
        }
    }

    /// Returns true if no validation rejects the combination, whatever its members are.
    pub(crate) fn is_allowed(&self) -> bool {
        self.decision == Decision::Allowed && self.rejected_unless_empty.is_empty()
    }
}

impl TruthTable {
    /// Makes the table of a union from the schema of the object that has its fields.
    pub fn of(node: &Value, union: &UnionFields) -> Self {
        Self::at(node, &Place::root(), union).unwrap_or_default()
    }

    /// Makes the table of a union at a place below a schema. The validations of every object on the way are considered.
    ///
    /// Returns `None` if the schema does not have the place.
    pub fn at(schema: &Value, place: &Place, union: &UnionFields) -> Option<Self> {
        let schema = &*with_names(schema);
        // Without the stack, no rule is read.
        with_stack(|| {
            let env = CelEnv::new();
            let sample_env = CelEnv::new();
            let place = PlaceValidations::find(schema, place, union, &env)?;
            let mut sampler = Sampler::new(&sample_env);
            let mut keeps = |node, value: &Value| sampler.keeps(node, value);
            let union = &union.with_other_values(place.node(), &mut keeps);
            let (combinations, complete) = union.combinations();
            let combinations = union.with_unset(place.node(), &mut keeps, combinations);
            let mut table = Self::of_combinations(&place, union, combinations, OtherMembers::Absent);
            table.complete = complete && table.complete && !env.is_exhausted();
            let rows = table.rows.iter_mut().filter(|row| row.may_fail && row.decision == Decision::Allowed);
            for row in rows.take(MOST_FAILURES_TRIED) {
                let failing = Sampler::new(&sample_env).failing(&place, union, &row.combination);
                row.failure = failing.map(|(object, rule)| RuleFailure { object, rule });
            }
            Some(table)
        })
        .unwrap_or_else(|| Some(Self::undecided(union)))
    }

    /// Returns the decision on one combination, which may have more members than those of a table, and the validations that it names.
    ///
    /// Returns `None` if the schema does not have the place.
    pub fn decide(
        schema: &Value,
        place: &Place,
        union: &UnionFields,
        combination: &Combination,
    ) -> Option<(Decision, Vec<Evidence>)> {
        let schema = &*with_names(schema);
        let decided = with_stack(|| {
            let place = PlaceValidations::find(schema, place, union, &CelEnv::new())?;
            let mut evidence = place.evidence();
            let content = |member: &str| union.content(member);
            let (decision, _) = decision(&place, union, combination, content, OtherMembers::Absent, &mut evidence);
            Some((decision, evidence))
        });
        decided.unwrap_or_else(|| Some((Decision::Undecided { why: NO_MEMORY.to_owned() }, Vec::new())))
    }

    /// Makes the table on this thread.
    pub(crate) fn make(
        schema: &Value,
        place: &Place,
        union: &UnionFields,
        rest: OtherMembers,
        env: &Rc<CelEnv>,
    ) -> Option<Self> {
        let place = PlaceValidations::find(schema, place, union, env)?;
        let (combinations, complete) = union.combinations();
        let table = Self::of_combinations(&place, union, combinations, rest);
        Some(Self { complete: complete && table.complete && !env.is_exhausted(), ..table })
    }

    fn of_combinations(
        place: &PlaceValidations<'_>,
        union: &UnionFields,
        combinations: Vec<Combination>,
        rest: OtherMembers,
    ) -> Self {
        let mut evidence = place.evidence();
        let most = MOST_JUDGEMENTS / evidence.len().max(1);
        let complete = !place.cut && combinations.len() <= most;
        let rows = combinations.into_iter().take(most).map(|combination| {
            let content = |member: &str| union.content(member);
            let (decided, doubt) = decision(place, union, &combination, content, rest, &mut evidence);
            let is_open = doubt.is_open && !combination.members.is_empty() && decided == Decision::Allowed;
            let not_empty = |_: &str| Content::NotEmpty;
            let not_empty = is_open.then(|| decision(place, union, &combination, not_empty, rest, &mut evidence).0);
            let rejected_unless_empty = match not_empty {
                Some(Decision::Rejected { by, .. }) => by,
                Some(Decision::Allowed | Decision::Undecided { .. }) | None => Vec::new(),
            };
            TableRow { combination, decision: decided, rejected_unless_empty, failure: None, may_fail: doubt.may_fail }
        });
        let rows = rows.collect();
        Self { evidence, rows, complete, has_all_validations: !place.cut }
    }

    fn undecided(union: &UnionFields) -> Self {
        let rows = union.combinations().0.into_iter().map(|combination| {
            let why = NO_MEMORY.to_owned();
            let decision = Decision::Undecided { why };
            TableRow { combination, decision, rejected_unless_empty: Vec::new(), failure: None, may_fail: false }
        });
        Self { rows: rows.collect(), ..Self::default() }
    }

    /// Returns the smallest object with a combination, if possible one that every validation of the place accepts.
    ///
    /// Returns `None` if the schema does not have the place.
    pub fn sample(schema: &Value, place: &Place, union: &UnionFields, combination: &Combination) -> Option<Sample> {
        let schema = with_names(schema);
        let node = place.steps().iter().try_fold(SchemaNode(&schema), SchemaNode::below)?;
        with_stack(|| {
            let env = CelEnv::new();
            Sampler::new(&env).sample(node, union, combination)
        })
    }

    /// Returns the validations that name a field of the union.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Returns the combinations, those with fewer members first.
    pub fn rows(&self) -> &[TableRow] {
        &self.rows
    }

    /// Returns false if combinations or validations were left out, because of a limit.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    pub(crate) fn has_all_validations(&self) -> bool {
        self.has_all_validations
    }

    /// Returns the decision on a combination, `None` if it is not in the table.
    pub fn decision(&self, value: Option<&str>, members: &[&str]) -> Option<&Decision> {
        self.row(value, members).map(|row| &row.decision)
    }

    pub(crate) fn row(&self, value: Option<&str>, members: &[&str]) -> Option<&TableRow> {
        let members: BTreeSet<&str> = members.iter().copied().collect();
        // INVARIANT: the rows are in the order of this comparison, see `UnionFields::combinations`.
        let found = self.rows.binary_search_by(|row| {
            let of_row = &row.combination;
            let by_size = of_row.members.len().cmp(&members.len());
            let by_value = by_size.then_with(|| of_row.value.as_deref().cmp(&value));
            let by_members = || of_row.members.iter().map(String::as_str).cmp(members.iter().copied());
            by_value.then_with(by_members).then_with(|| of_row.unset.len().cmp(&0))
        });
        found.ok().and_then(|position| self.rows.get(position))
    }

    /// Returns true if a rule or keyword about several fields rejects the combination of a row whose members are not empty.
    pub(crate) fn is_rejection(&self, row: &TableRow) -> bool {
        row.rejecting().iter().filter_map(|&at| self.evidence.get(at)).any(Evidence::is_about_fields)
    }

    /// Returns [`Self::is_rejection`] of a combination.
    pub(crate) fn is_rejected(&self, value: Option<&str>, members: &[&str]) -> bool {
        self.row(value, members).is_some_and(|row| self.is_rejection(row))
    }

    /// Returns true if an object with a value of the discriminator is rejected without a member, and allowed with it.
    pub fn requires(&self, value: &str, member: &str) -> bool {
        matches!(self.decision(Some(value), &[]), Some(Decision::Rejected { .. }))
            && self.decision(Some(value), &[member]) == Some(&Decision::Allowed)
    }
}

/// Computes on a thread with the stack that the library needs. Returns `None` if there is no memory for it.
pub(crate) fn with_stack<T: Send>(compute: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, compute);
        thread.ok().and_then(|thread| thread.join().ok())
    })
}

/// Returns the schema of a kind as the API server gives it to CEL: every object has a name. A schema whose rules do not read
/// `metadata` is returned as it is.
pub(crate) fn with_names(schema: &Value) -> Cow<'_, Value> {
    let root = SchemaNode(schema);
    let rules = root.list(RULES).iter().filter_map(|rule| SchemaNode(rule).text("rule"));
    let is_kind = root.property("metadata").is_some_and(|it| it.type_name() == Some("object") && !it.is_open());
    if !is_kind || !rules.into_iter().any(|rule| mentions(rule, "metadata")) {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let name = json!({"type": "string", "minLength": 1});
        let names = json!({"name": name, "generateName": {"type": "string"}});
        properties.insert("metadata".to_owned(), json!({"type": "object", "required": ["name"], "properties": names}));
    }
    let required: Vec<Value> = root.required().chain(["metadata"]).map(Value::from).collect();
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("required".to_owned(), required.into());
    }
    Cow::Owned(schema)
}
