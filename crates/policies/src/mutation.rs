//! Normalisation as a JSON Patch: the expression of a `MutatingAdmissionPolicy`.
//!
//! It follows [`normalize`](kube_unions_core::union) rule by rule.

use crate::cel::pointer;
use crate::cel::text;
use crate::claims::{self, ClaimExpressions};
use crate::condition::Watched;
use crate::members::{Algorithm, Members, name_of};
use crate::places::{Places, Purpose};
use crate::variables::Variables;
use kube_unions_core::union::{Part, UnionPlace, UnionStep};

/// A mutating policy, without its frame.
#[derive(Debug)]
pub(crate) struct Mutation {
    pub(crate) variables: Variables,
    /// The JSON Patch.
    pub(crate) expression: String,
    /// True if the creation of an object may change it.
    pub(crate) on_create: bool,
    /// False for a request that changes nothing. `None` if every request may.
    pub(crate) condition: Option<String>,
}

/// Compiles the normalisation of places. Returns `None` if nothing can be cleared or deduced.
pub(crate) fn compile(part: Part, places: &[UnionPlace<'_>]) -> Option<Mutation> {
    let mut variables = Variables::default();
    claims::add(part, &mut variables);
    let mut entries = Places::new(Purpose::Mutation, true);
    let (mut cleared, mut deduced, mut watched) = (Vec::new(), Vec::new(), Watched::default());
    let mut deepest_first: Vec<&UnionPlace<'_>> = places.iter().collect();
    deepest_first.sort_by_key(|place| std::cmp::Reverse(place.steps.len()));
    for place in deepest_first {
        let has_identity = !place.steps.contains(&UnionStep::Items { keys: Vec::new() });
        for union in place.unions.iter().filter(|union| union.is_normalized()) {
            let algorithm = Algorithm::of(union);
            // In a list without keys nothing is known to be changed, so nothing is cleared.
            if !has_identity && !matches!(algorithm, Algorithm::Discriminated(_)) {
                continue;
            }
            let place_variable = entries.variable(&place.steps, &mut variables);
            let name = name_of(&place_variable, union);
            let members = Members::new(union, &name, &mut variables);
            let clears = match algorithm {
                Algorithm::Map(discriminator) => {
                    watched.add(&place.steps, Some(discriminator));
                    cleared_by_change(&place_variable, &members)
                }
                Algorithm::Undiscriminated => {
                    watched.add(&place.steps, None);
                    cleared_by_addition(&place_variable, &members)
                }
                Algorithm::Discriminated(discriminator) => {
                    let chosen = chosen(&place_variable, &members);
                    let chosen = variables.add(&format!("{name}_chosen"), chosen);
                    let path = text(&pointer(discriminator));
                    let sets = format!(
                        "{chosen}.filter(u, u.value != u.now).map(u, {{\"path\": dyn(u.path + {path}), \"value\": dyn(u.value)}})"
                    );
                    deduced.push(variables.add(&format!("{name}_deduced"), sets));
                    if !has_identity {
                        continue;
                    }
                    let (value, pointer) = (&members.value, members.pointer());
                    format!(
                        "{chosen}.map(u, u.set.filter(m, {value}[m] != u.value).map(m, u.path + {pointer})).flatten()"
                    )
                }
            };
            cleared.push(variables.add(&format!("{name}_cleared"), clears));
        }
    }
    let mut parts = Vec::new();
    if !deduced.is_empty() {
        parts.push(format!("({}).map(s, JSONPatch{{op: \"add\", path: s.path, value: s.value}})", deduced.join(" + ")));
    }
    if !cleared.is_empty() {
        parts.push(format!("({}).map(c, JSONPatch{{op: \"remove\", path: c}})", cleared.join(" + ")));
    }
    let on_create = !deduced.is_empty();
    // A missing discriminator is deduced whatever the request changes.
    let condition = (!on_create).then(|| watched.into_expression());
    (!parts.is_empty()).then(|| Mutation { variables, expression: parts.join(" + "), on_create, condition })
}

/// Returns the pointers that are cleared in the 2022 form: a change of the discriminator wins, unless the manifest sets a member
/// that the value does not select.
fn cleared_by_change(place: &str, members: &Members<'_>) -> String {
    let (now, was) = (members.discriminator_in("p.new"), members.discriminator_in("p.old[0]"));
    let Members { selects, .. } = members;
    let (set, pointer, wrong) = (members.set_in("p.new"), members.pointer(), members.is_wrong_type());
    let claims = ClaimExpressions { members, object: "u.p" };
    format!(
        "{place}.map(p, size(p.old) == 1 && !({wrong}) && {now} != {was} && {now} in {selects}, \
         {{\"p\": dyn(p), \"now\": dyn({now}), \"clear\": dyn({set}.filter(m, m != {selects}[{now}]))}})\
         .filter(u, !u.clear.exists(m, {}) || {}).map(u, u.clear.map(m, u.p.path + {pointer})).flatten()",
        claims.sets(),
        // A client that changes the value by an update applies nothing.
        format_args!("!{} && {}", claims.sets_value("u.now"), claims.names_value())
    )
}

/// Returns the pointers that are cleared in the 2019 form without a discriminator: the one member that was added wins, unless the
/// manifest sets others as well, or two manifests contest it.
fn cleared_by_addition(place: &str, members: &Members<'_>) -> String {
    let (set, added, pointer) = (members.set_in("p.new"), members.added(), members.pointer());
    let claims = ClaimExpressions { members, object: "u" };
    let sets = claims.sets();
    let contested = format!(
        "{} && u.set.exists(m, m != u.added[0] && {})",
        claims.sets_again("u.added[0]"),
        claims.claims("other", "m")
    );
    format!(
        "{place}.map(p, size(p.old) == 1, {{\"path\": dyn(p.path), \"claims\": dyn(p.claims), \"set\": dyn({set}), \"added\": dyn({added})}})\
         .filter(u, size(u.set) > 1 && size(u.added) == 1 && size(u.set.filter(m, {sets})) < 2 && !({contested}))\
         .map(u, u.set.filter(m, m != u.added[0]).map(m, u.path + {pointer})).flatten()"
    )
}

/// Returns the unions of the 2019 form with a discriminator whose request tells the choice, with the value of the choice. Leaves out
/// those in which this would overwrite a field that the manifest sets, or that two manifests contest.
fn chosen(place: &str, members: &Members<'_>) -> String {
    let now = members.discriminator_in("p.new");
    let changed = ClaimExpressions { members, object: "p" }.changed();
    let (set, added, wrong) = (members.set_in("p.new"), members.added(), members.is_wrong_type());
    let value = &members.value;
    let claims = ClaimExpressions { members, object: "u" };
    let clears = |what: &str| format!("u.set.exists(m, {value}[m] != u.value && {what})");
    let clears_own = clears(&claims.sets());
    let overwrites = format!(
        "({} ? u.value != u.now || {clears_own} : {clears_own} && size(u.set.filter(m, {})) > 1)",
        claims.sets_value("u.now"),
        claims.sets()
    );
    let contested = format!(
        "(!u.changed && u.set.exists(m, {value}[m] == u.value && {}) && ({} || u.value != u.now && u.now != \"\" && {}))",
        claims.sets_again("m"),
        clears(&claims.claims("other", "m")),
        claims.other_sets_value()
    );
    format!(
        "{place}.map(p, !({wrong}), {{\"path\": dyn(p.path), \"claims\": dyn(p.claims), \"now\": dyn({now}), \"changed\": dyn({changed}), \
         \"set\": dyn({set}), \"added\": dyn({added})}})\
         .map(u, u.changed ? u.added.all(m, {value}[m] == u.now) : size(u.set) == 1 || size(u.set) > 1 && size(u.added) == 1, \
         {{\"path\": dyn(u.path), \"claims\": dyn(u.claims), \"now\": dyn(u.now), \"changed\": dyn(u.changed), \"set\": dyn(u.set), \
         \"value\": dyn(u.changed ? u.now : {value}[(size(u.set) == 1 ? u.set : u.added)[0]])}})\
         .filter(u, !{overwrites} && !{contested})"
    )
}
