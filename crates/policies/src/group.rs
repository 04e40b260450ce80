//! Places whose objects have the same unions: one piece of a policy is about all of them.

use crate::cel;
use crate::members::Algorithm;
use kube_unions_core::union::{ItemKey, Union, UnionPlace, UnionStep, have_same_unions};
use std::collections::{BTreeMap, BTreeSet};

/// A step on the path to several places at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step<'p> {
    Field(&'p str),
    /// One of several fields of an object, which hold the same. At least two.
    AnyOf(Vec<&'p str>),
    /// The items of a list, and the fields that identify them.
    Items(Vec<ItemKey<'p>>),
    Values,
}

/// Places whose objects have the same unions, for example those of the containers and of the init containers of a pod.
#[derive(Debug, Clone)]
pub(crate) struct PlaceGroup<'p> {
    /// The paths to them: steps, outermost first. There is at least one, and each leads to at least one place.
    pub(crate) paths: Vec<Vec<Step<'p>>>,
    /// The unions, as one of the places has them.
    pub(crate) unions: &'p [Union],
    /// True if the schema tells the types of everything on the paths.
    pub(crate) typed: bool,
    /// True if null may stand where an object is.
    pub(crate) nullable: bool,
    /// True if an object may have fields that are of no union and do not identify it in its list.
    pub(crate) has_others: bool,
    /// The number of steps to the outermost part that field managers own as a whole. `None`: they own single fields.
    pub(crate) owned_at: Option<usize>,
}

impl<'p> PlaceGroup<'p> {
    /// Groups the places of a kind, in the order of the first place of each group. An API server without functions for lists needs a group
    /// for each place.
    pub(crate) fn of_places(places: &[UnionPlace<'p>], list_functions: bool) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for place in places {
            let steps: Vec<Step<'p>> = place.steps.iter().map(Step::of).collect();
            // Nothing of a manifest belongs to an item without an identity.
            let owned_at = place.owned_at.filter(|_| has_identity(&steps));
            // Where nothing is known of types, each place has its own guards.
            match groups
                .iter_mut()
                .find(|group| list_functions && place.typed && group.owned_at == owned_at && group.is_alike(place))
            {
                Some(group) => {
                    group.paths.push(steps);
                    group.has_others |= place.has_others;
                }
                None => groups.push(Self {
                    paths: vec![steps],
                    unions: place.unions,
                    typed: place.typed,
                    nullable: place.nullable,
                    has_others: place.has_others,
                    owned_at,
                }),
            }
        }
        // A place is cleared before the places around it, so a group with a place around another one is split.
        let nests = |group: &Self| {
            let lengths: BTreeSet<usize> = group.paths.iter().map(Vec::len).collect();
            let mut others = groups.iter().flat_map(|other| &other.paths);
            lengths.len() > 1
                && others.any(|other| group.paths.iter().any(|steps| steps != other && meet(steps, other)))
        };
        let nested: Vec<bool> = groups.iter().map(nests).collect();
        let mut groups: Vec<Self> =
            groups.into_iter().zip(nested).flat_map(|(group, is_nested)| group.split(is_nested)).collect();
        for group in &mut groups {
            group.join_paths();
        }
        groups
    }

    /// Returns groups of places of the same depth, or the group itself.
    fn split(self, by_depth: bool) -> Vec<Self> {
        if !by_depth {
            return vec![self];
        }
        let mut of_depth: BTreeMap<usize, Vec<Vec<Step<'p>>>> = BTreeMap::new();
        for steps in self.paths {
            of_depth.entry(steps.len()).or_default().push(steps);
        }
        of_depth.into_values().map(|paths| Self { paths, ..self }).collect()
    }

    fn is_alike(&self, place: &UnionPlace<'p>) -> bool {
        self.typed
            && self.nullable == place.nullable
            // The root has a policy's first words for itself.
            && !place.steps.is_empty()
            && self.paths.iter().all(|steps| !steps.is_empty())
            && self.has_identity() == has_identity(&place.steps.iter().map(Step::of).collect::<Vec<_>>())
            && have_same_unions(self.unions, place.unions)
    }

    /// Joins paths that differ in one field.
    fn join_paths(&mut self) {
        let longest = self.paths.iter().map(Vec::len).max().unwrap_or_default();
        for position in (0..longest).rev() {
            let mut joined: BTreeMap<Vec<Step<'p>>, Vec<&'p str>> = BTreeMap::new();
            let mut order = Vec::new();
            for steps in std::mem::take(&mut self.paths) {
                let Some(Step::Field(name)) = steps.get(position) else {
                    order.push(steps);
                    continue;
                };
                let mut others = steps.clone();
                if let Some(step) = others.get_mut(position) {
                    *step = Step::AnyOf(Vec::new());
                }
                let names = joined.entry(others.clone()).or_default();
                if names.is_empty() {
                    order.push(others);
                }
                names.push(name);
            }
            for mut steps in order {
                if let Some(names) = joined.remove(&steps)
                    && let Some(step) = steps.get_mut(position)
                {
                    *step = match &names[..] {
                        [name] => Step::Field(name),
                        _ => Step::AnyOf(names),
                    };
                }
                self.paths.push(steps);
            }
        }
    }

    /// Returns the only path to a single object: fields.
    pub(crate) fn single(&self) -> Option<Vec<&'p str>> {
        let [steps] = &self.paths[..] else { return None };
        steps.iter().map(Step::field).collect()
    }

    /// Returns true if an object can be recognised after a change: it is in no list without keys.
    pub(crate) fn has_identity(&self) -> bool {
        self.paths.iter().all(|steps| has_identity(steps))
    }

    /// Returns true if the objects are values of maps, or of several fields, which have no order.
    pub(crate) fn is_unordered(&self) -> bool {
        let has_no_order = |step: &Step<'_>| matches!(step, Step::Values | Step::AnyOf(_));
        self.paths.len() > 1 || self.paths.iter().flatten().any(has_no_order)
    }

    /// Returns the number of fields that every object has, because they identify it in its list.
    pub(crate) fn keys(&self) -> usize {
        let of_path = |steps: &Vec<Step<'p>>| if let Some(Step::Items(keys)) = steps.last() { keys.len() } else { 0 };
        self.paths.iter().map(of_path).min().unwrap_or_default()
    }

    pub(crate) fn depth(&self) -> usize {
        self.paths.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// Returns the fields at the beginning of each path, before its first list, map or choice of fields.
    pub(crate) fn leading_fields(&self) -> impl Iterator<Item = Vec<&'p str>> + '_ {
        self.paths.iter().map(|steps| leading_fields(steps))
    }

    /// Returns a word for the places: the last field, or the last word that several fields have in common.
    pub(crate) fn word(&self) -> String {
        let word = |steps: &Vec<Step<'p>>| steps.iter().rev().find_map(Step::word);
        self.paths.iter().find_map(word).unwrap_or_default()
    }

    /// Describes the places as a path: `spec.{containers,initContainers}[*].env[*]`.
    pub(crate) fn text_path(&self) -> String {
        let paths: Vec<String> = self.paths.iter().map(|steps| text_path(steps)).collect();
        paths.join(" and ")
    }
}

/// A union, and the places where it is.
pub(crate) type PlacedUnion<'g, 'p> = (&'g PlaceGroup<'p>, &'p Union);

/// Joins the unions that are treated alike, whatever their members are called: those without a discriminator of which nothing is required,
/// and whose members all have owners.
/// The order of the others and of the joined ones stays. An API server without functions for lists needs each alone.
pub(crate) fn joined<'g, 'p>(unions: &[PlacedUnion<'g, 'p>], list_functions: bool) -> Vec<Vec<PlacedUnion<'g, 'p>>> {
    let is_joined = |(group, union): &PlacedUnion<'_, '_>| {
        let is_below = group.paths.iter().all(|steps| !steps.is_empty());
        let can_be_row = group.typed && is_below && group.has_identity();
        let is_plain = !union.is_required() && !union.has_groups() && union.ownerless().next().is_none();
        can_be_row && Algorithm::of(union) == Algorithm::Undiscriminated && is_plain
    };
    let (alike, others): (Vec<_>, Vec<_>) = unions.iter().copied().partition(is_joined);
    let nests = |(one, _): &PlacedUnion<'_, 'p>| {
        let mut others = alike.iter().flat_map(|(other, _)| &other.paths);
        others.any(|other| one.paths.iter().any(|steps| meet(steps, other)))
    };
    let actions = |(_, union): &PlacedUnion<'_, '_>| union.actions();
    if !list_functions
        || alike.len() < 2
        || others.iter().any(nests)
        || alike.windows(2).any(|pair| pair.first().map(actions) != pair.last().map(actions))
    {
        return unions.iter().map(|union| vec![*union]).collect();
    }
    std::iter::once(alike).chain(others.into_iter().map(|union| vec![union])).collect()
}

/// Returns the fields at the beginning of a path.
pub(crate) fn leading_fields<'p>(steps: &[Step<'p>]) -> Vec<&'p str> {
    steps.iter().map_while(Step::field).collect()
}

/// Returns true if one path may lead through the end of the other one.
fn meet<'p>(one: &[Step<'p>], other: &[Step<'p>]) -> bool {
    one.iter().zip(other).all(|(one, other)| one.meets(other))
}

fn has_identity(steps: &[Step<'_>]) -> bool {
    !steps.iter().any(|step| matches!(step, Step::Items(keys) if keys.is_empty()))
}

fn text_path(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        let dot = if path.is_empty() { "" } else { "." };
        match step {
            Step::Field(name) => path.extend([format!("{dot}{name}")]),
            Step::AnyOf(names) => path.extend([format!("{dot}{{{}}}", names.join(","))]),
            Step::Items(_) | Step::Values => path.push_str("[*]"),
        }
    }
    path
}

impl<'p> Step<'p> {
    fn of(step: &UnionStep<'p>) -> Self {
        match step {
            UnionStep::Field(name) => Self::Field(name),
            UnionStep::Items { keys } => Self::Items(keys.clone()),
            UnionStep::Values => Self::Values,
        }
    }

    fn field(&self) -> Option<&'p str> {
        if let Self::Field(name) = self { Some(name) } else { None }
    }

    /// Returns true if two steps may lead to the same.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Field(one), Step::Field(other)) => one == other,
            (Self::Field(name), Step::AnyOf(names)) | (Self::AnyOf(names), Step::Field(name)) => names.contains(name),
            (Self::AnyOf(ones), Step::AnyOf(others)) => ones.iter().any(|name| others.contains(name)),
            _ => true,
        }
    }

    /// Returns the word of a field, or the last one that several fields have in common.
    pub(crate) fn word(&self) -> Option<String> {
        match self {
            Self::Field(name) => Some((*name).to_owned()),
            Self::AnyOf(names) => common_word(names),
            Self::Items(_) | Self::Values => None,
        }
    }
}

/// Returns the words with which all names end: `probe` for `livenessProbe` and `startupProbe`.
fn common_word(names: &[&str]) -> Option<String> {
    let first = names.first()?;
    let is_start = |(at, it): &(usize, char)| *at == 0 || it.is_ascii_uppercase();
    let tails = first.char_indices().filter(is_start).filter_map(|(at, _)| first.get(at..));
    let ends_with = |name: &str, tail: &str| {
        let end = name.len().checked_sub(tail.len()).and_then(|start| Some((start, name.get(start..)?)));
        end.is_some_and(|(start, end)| {
            end.eq_ignore_ascii_case(tail) && (start == 0 || end.starts_with(|it: char| it.is_ascii_uppercase()))
        })
    };
    let word = tails.into_iter().find(|tail| tail.len() > 2 && names.iter().all(|name| ends_with(name, tail)))?;
    let mut letters = word.chars();
    let word: String = letters.next().map(|it| it.to_ascii_lowercase()).into_iter().chain(letters).collect();
    cel::is_name(&word).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_unions_core::schema::Schema;
    use kube_unions_core::union::Part;
    use serde_json::{Value, json};

    fn grouped(properties: &Value) -> Vec<(String, usize)> {
        let schema: Schema = serde_json::from_value(
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
        )
        .unwrap();
        let plan = kube_unions_core::union::compile(&schema, true).plan;
        let groups = PlaceGroup::of_places(&plan.places(Part::Main), true);
        groups.iter().map(|group| (group.text_path(), group.unions.len())).collect()
    }

    fn union(members: [&str; 2]) -> Value {
        let fields = members.map(|name| (name, json!({"type": "object"})));
        json!({"type": "object", "properties": serde_json::Map::from_iter(fields.clone().map(|(name, it)| (name.to_owned(), it))),
            "x-kubernetes-unions": [{"fields-to-discriminateBy": serde_json::Map::from_iter(fields.map(|(name, _)| (name.to_owned(), name.into())))}]})
    }

    #[test]
    fn places_with_the_same_unions_are_one_group() {
        let list = |item: Value, keys: Value| {
            json!({"type": "array", "items": item, "x-kubernetes-list-type": if keys == json!([]) { "atomic" } else { "map" },
                "x-kubernetes-list-map-keys": keys})
        };
        let probes = |fields: [&str; 2]| {
            let fields = fields.map(|name| (name.to_owned(), union(["a", "b"])));
            let mut fields = serde_json::Map::from_iter(fields);
            fields.insert("name".to_owned(), json!({"type": "string"}));
            json!({"type": "object", "properties": fields})
        };
        let item = probes(["aProbe", "bProbe"]);
        assert_eq!(
            grouped(
                &json!({"containers": list(item.clone(), json!(["name"])), "initContainers": list(item, json!(["name"]))})
            ),
            [("spec.{containers,initContainers}[*].{aProbe,bProbe}".to_owned(), 1)]
        );
        // A list without keys is a group of its own, as is another union.
        assert_eq!(
            grouped(&json!({"a": union(["a", "b"]), "b": list(union(["a", "b"]), json!([])), "c": union(["a", "c"])})),
            [("spec.a".to_owned(), 1), ("spec.b[*]".to_owned(), 1), ("spec.c".to_owned(), 1)]
        );
        assert_eq!(
            grouped(&json!({"x": probes(["p", "q"]), "y": union(["a", "b"])})),
            [("spec.x.{p,q} and spec.y".to_owned(), 1)]
        );
    }

    #[test]
    fn a_place_around_another_one_is_no_part_of_its_group() {
        let mut inside = union(["a", "b"]);
        inside["properties"]["a"]["properties"] = json!({"deep": union(["a", "b"])});
        assert_eq!(
            grouped(&json!({"x": inside, "y": union(["a", "b"])})),
            [("spec.{x,y}".to_owned(), 1), ("spec.x.a.deep".to_owned(), 1)]
        );
    }

    #[test]
    fn several_fields_have_a_word_in_common() {
        for (names, word) in [
            (&["livenessProbe", "startupProbe"][..], Some("probe")),
            (&["containers", "initContainers"], Some("containers")),
            (&["postStart", "preStop"], None),
            (&["aB", "bB"], None),
            (&["restart", "start"], None),
        ] {
            assert_eq!(common_word(names).as_deref(), word, "{names:?}");
        }
    }
}
