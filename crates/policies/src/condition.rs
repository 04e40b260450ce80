//! The match condition of a policy: false for a request that cannot have changed a union, so that an ordinary write costs
//! a few comparisons.
//!
//! The checker of an API server takes time in proportion to the square of the length of an expression, so the condition
//! compares few things, rather than each union.

use crate::cel::{self, fields, texts};
use crate::places::MOST_FIELDS;
use kube_unions_core::union::UnionStep;
use std::collections::{BTreeMap, BTreeSet};

/// Most comparisons of one condition. Above it, whole top-level fields are compared.
const MOST: usize = 12;

/// The fields that a policy depends on.
#[derive(Debug, Default)]
pub(crate) struct Watched<'p> {
    /// Paths of fields outside lists.
    single: BTreeSet<Vec<&'p str>>,
    /// For each path of a list the fields of its items, `None` for the items as a whole.
    lists: BTreeMap<Vec<&'p str>, Option<BTreeSet<&'p str>>>,
}

impl<'p> Watched<'p> {
    /// Adds the union of an object, or only its discriminator.
    pub(crate) fn add(&mut self, steps: &[UnionStep<'p>], discriminator: Option<&'p str>) {
        let first = steps.iter().position(|step| !matches!(step, UnionStep::Field(_))).unwrap_or(steps.len());
        let (outer, rest) = steps.split_at(first);
        let mut outer: Vec<&str> = outer.iter().filter_map(name).collect();
        if outer.len() > MOST_FIELDS {
            outer.truncate(MOST_FIELDS);
            self.single.insert(outer);
            return;
        }
        let Some((UnionStep::Items { keys }, inner)) = rest.split_first() else {
            // The whole of a map is compared.
            outer.extend(discriminator.filter(|_| rest.is_empty()));
            self.single.insert(outer);
            return;
        };
        let field = match inner.first() {
            Some(step) => name(step),
            None => discriminator,
        };
        let items = self.lists.entry(outer).or_insert_with(|| Some(BTreeSet::new()));
        match (field, &mut *items) {
            (Some(field), Some(watched)) => watched.extend(keys.iter().copied().chain([field])),
            (None, _) => *items = None,
            (Some(_), None) => {}
        }
    }

    /// Returns the condition. Empty if nothing is watched.
    pub(crate) fn into_expression(mut self) -> String {
        if self.single.len().saturating_add(self.lists.len()) > MOST {
            let paths = self.single.iter().chain(self.lists.keys());
            self.single = paths.map(|path| path.iter().take(1).copied().collect()).collect();
            self.lists.clear();
        }
        // A field within another one need not be compared.
        let all = self.single.clone();
        let within =
            |path: &[&str]| (0..path.len()).any(|end| path.get(..end).is_some_and(|outer| all.contains(outer)));
        let single = self.single.iter().filter(|path| !within(path)).map(|path| {
            let side = |object: &str| fields(&format!("[{object}]"), path);
            format!("{} != {}", side("object"), side("oldObject"))
        });
        let lists = self.lists.iter().filter(|(path, _)| !within(path) && !all.contains(*path)).map(|(path, items)| {
            let side = |object: &str| {
                let found = fields(&format!("[{object}]"), path);
                let Some(items) = items else { return found };
                let watched = texts(items.iter().copied());
                format!(
                    "{}.map(l, l.map(i, type(i) == map ? dyn(i.transformMap(k, v, k in {watched}, v)) : dyn(i)))",
                    cel::lists(&found)
                )
            };
            format!("{} != {}", side("object"), side("oldObject"))
        });
        single.chain(lists).collect::<Vec<_>>().join(" || ")
    }
}

fn name<'p>(step: &UnionStep<'p>) -> Option<&'p str> {
    if let UnionStep::Field(name) = step { Some(name) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path<'p>(names: &[&'p str]) -> Vec<UnionStep<'p>> {
        let step = |name: &&'p str| match *name {
            "[]" => UnionStep::Items { keys: vec!["k"] },
            "*" => UnionStep::Values,
            name => UnionStep::Field(name),
        };
        names.iter().map(step).collect()
    }

    fn watched(paths: &[&[&'static str]]) -> Watched<'static> {
        let mut watched = Watched::default();
        for names in paths {
            watched.add(&path(names), Some("type"));
        }
        watched
    }

    #[test]
    fn a_list_is_compared_once_by_the_fields_that_matter() {
        let Watched { single, lists } =
            watched(&[&["a", "[]", "x", "y"], &["a", "[]", "z", "*"], &["a", "[]"], &["b"], &["m", "*", "x"]]);
        assert_eq!(lists, BTreeMap::from([(vec!["a"], Some(BTreeSet::from(["k", "type", "x", "z"])))]));
        assert_eq!(single, BTreeSet::from([vec!["b", "type"], vec!["m"]]));
    }

    #[test]
    fn fields_within_others_are_left_out_and_many_become_few() {
        let mut outer = watched(&[&["a", "b"], &["a", "[]", "x"]]);
        outer.add(&path(&["a"]), None);
        assert_eq!(outer.into_expression().matches("!=").count(), 1);
        let names: Vec<Vec<&'static str>> = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"]
            .into_iter()
            .map(|name| vec!["spec", name])
            .collect();
        let paths: Vec<&[&'static str]> = names.iter().map(|names| &names[..]).collect();
        assert_eq!(watched(&paths).into_expression().matches("!=").count(), 1);
    }
}
