//! Every transition of small unions, compared with a model: a naive version of the proposals' algorithms on whole objects.

use fixtures::reviews::{GROUP, Verdict, Write, ask, declaration, declared_catalog, definition, thing, version};
use kube_unions_core::admission::{Phase, Ratcheting};
use kube_unions_core::catalog::Catalog;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Returns the states of a union: every combination of its members, each missing or with one of so many numbers from zero, × every
/// value of its discriminator, if it has one.
fn states(members: &[(&str, usize)], discriminators: &[Option<&str>]) -> Vec<Value> {
    let mut states: Vec<Map<String, Value>> = discriminators
        .iter()
        .map(|value| value.iter().map(|value| ("type".to_owned(), json!(value))).collect())
        .collect();
    for (member, numbers) in members {
        let with = states.iter().flat_map(|state| {
            (0..*numbers).map(move |number| {
                let mut state = state.clone();
                state.insert((*member).to_owned(), json!(number));
                state
            })
        });
        let with: Vec<_> = with.collect();
        states.extend(with);
    }
    states.into_iter().map(Value::Object).collect()
}

fn set<'m>(members: &[&'m str], state: &Value) -> Vec<&'m str> {
    members.iter().copied().filter(|member| !state[*member].is_null()).collect()
}

fn discriminator(state: &Value) -> &str {
    state["type"].as_str().unwrap_or_default()
}

/// Clears the members that are not kept.
fn keep_only(state: &Value, kept: impl Fn(&str) -> bool) -> Value {
    let mut state = state.clone();
    state.as_object_mut().unwrap().retain(|name, _| !MEMBERS.contains(&name.as_str()) || kept(name));
    state
}

/// The 2019 proposal, "Normalizing on updates", word by word and on whole objects, with groups in place of members. `values` are those of
/// [`MEMBERS`]. Returns the object that is stored, or `None` if the write is rejected, as every model does.
fn list_form(values: [&str; 3], discriminated: bool, old: Option<&Value>, new: &Value) -> Option<Value> {
    let value_of = |member: &str| values[MEMBERS.iter().position(|name| *name == member).unwrap()];
    let groups = |members: &[&str]| members.iter().map(|member| value_of(member)).collect::<BTreeSet<_>>();
    let before = old.map_or_else(Vec::new, |old| set(&MEMBERS, old));
    let now = set(&MEMBERS, new);
    let added: Vec<_> = now.iter().copied().filter(|member| !before.contains(member)).collect();
    let (was, is) = (old.map_or("", discriminator), discriminator(new));
    let select = |mut state: Value, value: &str| {
        if discriminated {
            state["type"] = json!(value);
        }
        state
    };
    let keep = |value: &str| keep_only(new, |member| value_of(member) == value);
    if discriminated && !is.is_empty() && was != is {
        let fits = groups(&added).iter().all(|value| *value == is);
        return fits.then(|| keep(is));
    }
    match (Vec::from_iter(groups(&now)).as_slice(), Vec::from_iter(groups(&added)).as_slice()) {
        ([], _) => Some(new.clone()),
        ([one], _) => Some(select(new.clone(), one)),
        (_, [one]) => Some(select(keep(one), one)),
        _ => None,
    }
}

/// A value of the 2022 form, with the members that it selects and if each may be missing.
type Row<'r> = (&'r str, &'r [(&'r str, bool)]);

/// The 2022 proposal, "Normalization" and "Validation", on whole objects, with several members for a value.
fn map_form(rows: &[Row<'_>], old: Option<&Value>, new: &Value) -> Option<Value> {
    let row = rows.iter().find(|(value, _)| *value == discriminator(new));
    let selects = |members: &[(&str, bool)], name: &str| members.iter().any(|(member, _)| *member == name);
    let mut object = new.clone();
    if let (Some(old), Some((_, members))) = (old, row)
        && discriminator(old) != discriminator(new)
    {
        object = keep_only(new, |name| selects(members, name));
    }
    let now = set(&MEMBERS, &object);
    let valid = match row {
        _ if now.is_empty() && discriminator(&object).is_empty() => true,
        Some((_, members)) => {
            now.iter().all(|name| selects(members, name))
                && members.iter().all(|(name, optional)| *optional || now.contains(name))
        }
        None => false,
    };
    valid.then_some(object)
}

/// A union of the 2019 or 2022 form in `spec`, whose members are [`MEMBERS`].
struct Case<'c> {
    /// The fields of its declaration besides the path and the options.
    union: Value,
    discriminators: &'c [Option<&'c str>],
    /// True if a choice is required, and the zeros of [`UNSET`] count as not set.
    options: bool,
}

const MEMBERS: [&str; 3] = ["a", "b", "c"];

/// The members whose zero counts as not set.
const UNSET: [&str; 2] = ["a", "b"];

impl Case<'_> {
    fn catalog(&self) -> Catalog {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "type": {"type": "string"}, "a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}}}});
        let mut union = self.union.clone();
        union["path"] = json!("spec");
        if self.options {
            (union["required"], union["emptyIsUnset"]) = (json!(true), json!(UNSET));
        }
        let definition = definition(&Map::new(), &[version("v1", &schema, false)]);
        declared_catalog(&definition, &[declaration("declared", GROUP, "Thing", &json!({"unions": [union]}))])
    }

    /// Returns the state without the zeros that count as not set.
    fn seen(&self, state: &Value) -> Value {
        let is_unset = |name: &str, value: &Value| self.options && UNSET.contains(&name) && *value == json!(0);
        let mut state = state.clone();
        state.as_object_mut().unwrap().retain(|name, value| !is_unset(name, value));
        state
    }

    /// Applies a model to states without zeros, puts the zeros back, and rejects an object without a choice that is required.
    fn modelled(
        &self,
        old: Option<&Value>,
        new: &Value,
        has_choice: impl Fn(&Value) -> bool,
        model: impl Fn(Option<&Value>, &Value) -> Option<Value>,
    ) -> Option<Value> {
        let seen = self.seen(new);
        let mut stored = model(old.map(|old| self.seen(old)).as_ref(), &seen)?;
        if self.options && !has_choice(&stored) {
            return None;
        }
        for name in UNSET.into_iter().filter(|name| seen.get(name).is_none() && new.get(name).is_some()) {
            stored[name] = new[name].clone();
        }
        Some(stored)
    }

    /// Compares every transition between the states, and every create, with the model, with and without ratcheting. The webhooks one
    /// after the other are compared with both at once elsewhere.
    fn agrees(&self, has_choice: impl Fn(&Value) -> bool, model: impl Fn(Option<&Value>, &Value) -> Option<Value>) {
        let catalog = self.catalog();
        // Those whose zero counts as not set have another number, too.
        let numbers = |name| if self.options && UNSET.contains(&name) { 2 } else { 1 };
        let states = states(&MEMBERS.map(|name| (name, numbers(name))), self.discriminators);
        let spec = |state: &Value| thing(&json!({"spec": state}));
        for new in &states {
            for old in states.iter().map(Some).chain([None]) {
                let write = Write::new(old.map(spec), spec(new));
                let modelled = self.modelled(old, new, &has_choice, &model);
                let strict = ask(&catalog, Phase::Both, &Write { ratcheting: Ratcheting::Disabled, ..write.clone() });
                let answered = match &strict.verdict {
                    Verdict::Allowed(object) => Some(object.as_ref().unwrap()["spec"].clone()),
                    Verdict::Denied(_) => None,
                };
                assert_eq!(answered, modelled, "from {old:?} to {new}");

                let choice = |state| (discriminator(state).to_owned(), set(&MEMBERS, &self.seen(state)));
                let untouched = old.is_some_and(|old| choice(old) == choice(new));
                let lenient = ask(&catalog, Phase::Both, &write);
                if modelled.is_none() && untouched {
                    assert_eq!(lenient.object(), &spec(new), "from {old:?} to {new}");
                } else {
                    assert_eq!(lenient, strict, "from {old:?} to {new}");
                }
            }
        }
    }
}

#[test]
fn every_transition_of_the_2019_form_is_as_the_proposal_has_it_and_keeps_to_its_options() {
    for (values, discriminators, options) in [
        (["A", "B", "C"], &[None, Some(""), Some("A"), Some("B"), Some("C"), Some("Other")][..], false),
        (["A", "B", "C"], &[None], false),
        (["A", "B", "C"], &[None, Some("A"), Some("C"), Some("Other")], true),
        (["A", "B", "C"], &[None], true),
        // A group of two members.
        (["A", "C", "A"], &[None, Some(""), Some("A"), Some("C"), Some("Other")], false),
        (["A", "C", "A"], &[None], false),
        (["A", "A", "C"], &[None], true),
    ] {
        let fields: Map<_, _> =
            MEMBERS.iter().zip(values).map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let mut union = json!({"fieldsToDiscriminateBy": fields});
        let discriminated = discriminators.len() > 1;
        if discriminated {
            union["discriminator"] = json!("type");
        }
        Case { union, discriminators, options }
            .agrees(|stored| !set(&MEMBERS, stored).is_empty(), |old, new| list_form(values, discriminated, old, new));
    }
}

#[test]
fn every_transition_of_the_2022_form_is_as_the_proposal_has_it_and_keeps_to_its_options() {
    let all: [Row<'_>; 6] = [
        ("A", &[("a", false)]),
        ("B", &[("b", true)]),
        ("C", &[("c", false)]),
        ("None", &[]),
        ("Also", &[("a", false)]),
        ("", &[]),
    ];
    // Two members of one value, and one that three values share.
    let groups: [Row<'_>; 5] = [
        ("A", &[("a", false), ("b", true)]),
        ("B", &[("b", false)]),
        ("C", &[("b", true), ("c", false)]),
        ("None", &[]),
        ("Also", &[("a", true), ("c", true)]),
    ];
    let discriminators = [Some("Also"), Some("None"), None, Some(""), Some("A"), Some("B"), Some("Bogus")];
    // With "" as a choice, and without.
    for (rows, discriminators, options) in [
        (&all[..], &discriminators[..], false),
        (&all[..5], &discriminators, false),
        (&all[..4], &discriminators[2..], true),
        (&groups, &[Some("Also"), Some("None"), None, Some("A"), Some("B"), Some("C"), Some("Bogus")], false),
        (&groups, &[None, Some("A")], true),
    ] {
        let members = |members: &[(&str, bool)]| match members {
            [(name, optional)] => json!({"name": name, "optional": optional}),
            several => {
                let field = |(name, optional): &(&str, bool)| ((*name).to_owned(), json!({"optional": optional}));
                json!({"fields": several.iter().map(field).collect::<Map<_, _>>()})
            }
        };
        let fields: Map<_, _> = rows.iter().map(|(value, of)| ((*value).to_owned(), members(of))).collect();
        let union = json!({"discriminator": "type", "fieldMembers": fields});
        Case { union, discriminators, options }
            .agrees(|stored| !discriminator(stored).is_empty(), |old, new| map_form(rows, old, new));
    }
}
