//! Laws of server-side apply, for every schema, object and configuration.

use super::generate::{self, Objects};
use fixtures::dice::Dice;
use proptest::prelude::*;
use serde_json::{Value, json};
use strategic_merge_patch::{ApplyError, Conflicts, Managers, Schema, ServerSideApply};

/// A kind, an object of it, and its managers.
struct World {
    schema: Value,
    kind: ServerSideApply,
    dice: Dice,
    live: Value,
    managers: Managers,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let schema = generate::kind(&mut dice, false);
        let read: Schema = serde_json::from_value(schema.clone()).unwrap();
        let kind = ServerSideApply::for_resource("Thing", &read).unwrap();
        let mut world = Self { schema, kind, dice, live: json!({}), managers: Managers::default() };
        let first = world.object();
        world.apply("first", &first, Conflicts::Overwrite).unwrap();
        let changed =
            Objects { root: &world.schema, odd: 0, nulls: 0, duplicates: 0 }.changed(&mut world.dice, &world.live);
        world.managers = world.kind.update(&world.live, &world.managers, "writer", &changed).unwrap();
        world.live = changed;
        world
    }

    fn object(&mut self) -> Value {
        let mut object = Objects { root: &self.schema, odd: 0, nulls: 0, duplicates: 0 }.object(&mut self.dice);
        object["metadata"]["name"] = json!("it");
        object
    }

    fn apply(&mut self, manager: &str, config: &Value, conflicts: Conflicts) -> Result<(), ApplyError> {
        let applied = self.kind.apply(&self.live, &self.managers, manager, config, conflicts)?;
        (self.live, self.managers) = (applied.object, applied.managers);
        Ok(())
    }

    /// Returns what an applier owns.
    fn owned(&self, manager: &str) -> Option<Value> {
        let entries = self.managers.to_managed_fields();
        let is_own = |entry: &&Value| entry["manager"] == manager && entry["operation"] == "Apply";
        entries.as_array().unwrap().iter().find(is_own).map(|entry| entry["fieldsV1"].clone())
    }
}

/// Returns true if an object has everything that a configuration sets. What has no scalar sets nothing.
fn has(object: &Value, config: &Value) -> bool {
    match (object, config) {
        _ if scalars(config) == 0 => true,
        (Value::Object(fields), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| has(&fields.get(name).cloned().unwrap_or_default(), wanted))
        }
        (Value::Array(items), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| scalars(wanted) == 0 || items.iter().any(|item| has(item, wanted)))
        }
        (Value::Number(number), Value::Number(wanted)) => number.as_f64() == wanted.as_f64(),
        (object, config) => object == config,
    }
}

/// Returns true if the values at the same places are of the same kinds.
fn same_kinds(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.iter().all(|(name, value)| other.get(name).is_none_or(|other| same_kinds(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.iter().all(|one| other.iter().all(|other| same_kinds(one, other)))
        }
        (one, other) => one.is_object() == other.is_object() && one.is_array() == other.is_array(),
    }
}

/// Returns a configuration that sets nothing.
fn bare() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "it"}})
}

/// Counts the scalars of a value.
fn scalars(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(scalars).sum(),
        Value::Array(items) => items.iter().map(scalars).sum(),
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn applying_twice_is_applying_once(seed: u64) {
        let mut world = World::new(seed);
        let config = world.object();
        world.apply("a", &config, Conflicts::Overwrite).unwrap();
        let (live, managers) = (world.live.clone(), world.managers.clone());
        world.apply("a", &config, Conflicts::Refuse).unwrap();
        prop_assert_eq!(&world.live, &live);
        if managers.is_empty() {
            // Nobody owns an empty list, so the API server takes the object for one that nobody applied yet.
            return Ok(());
        }
        prop_assert_eq!(&world.managers, &managers);
        // Text gives the same result.
        let again = world.kind.apply(&*live.to_string(), &managers, "a", &*config.to_string(), Conflicts::Refuse).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&again.object).unwrap(), live);
    }

    #[test]
    fn what_is_applied_is_in_the_object_and_owned(seed: u64) {
        let mut world = World::new(seed);
        let config = world.object();
        world.apply("a", &config, Conflicts::Overwrite).unwrap();
        prop_assert!(has(&world.live, &config), "{} lacks a part of {}", world.live, config);
        // What an applier owns does not depend on the object.
        let owned = world.owned("a");
        (world.live, world.managers) = (json!({}), Managers::default());
        world.apply("a", &config, Conflicts::Refuse).unwrap();
        prop_assert_eq!(owned, world.owned("a"));
    }

    #[test]
    fn what_another_manager_owns_stays_unless_the_apply_is_forced(seed: u64) {
        let mut world = World::new(seed);
        let (first, other) = (world.object(), world.object());
        world.apply("a", &first, Conflicts::Overwrite).unwrap();
        let before = (world.live.clone(), world.managers.clone(), world.owned("a"));
        match world.apply("b", &other, Conflicts::Refuse) {
            Ok(()) => {
                // A field without a type in the schema changes its owner without a conflict if it becomes a list or a scalar.
                prop_assume!(same_kinds(&first, &other));
                prop_assert_eq!(world.owned("a"), before.2);
                // The other one leaves again, and only its own fields go.
                world.apply("b", &bare(), Conflicts::Refuse).unwrap();
                prop_assert!(has(&world.live, &first), "{} lacks a part of {}", world.live, first);
            }
            Err(ApplyError::Conflicts(conflicts)) => {
                prop_assert!(!conflicts.is_empty());
                prop_assert_eq!((&world.live, &world.managers), (&before.0, &before.1));
                world.apply("b", &other, Conflicts::Overwrite).unwrap();
                prop_assert!(has(&world.live, &other));
                prop_assert_ne!(world.managers, before.1);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn what_only_the_applier_owned_goes_with_it(seed: u64) {
        let mut world = World::new(seed);
        let config = world.object();
        (world.live, world.managers) = (json!({}), Managers::default());
        world.apply("a", &config, Conflicts::Refuse).unwrap();
        world.apply("a", &bare(), Conflicts::Refuse).unwrap();
        prop_assert_eq!(scalars(&world.live), 3, "{} of {}", world.live, config);
        prop_assert_eq!(world.owned("a"), None);
    }

    #[test]
    fn a_write_without_a_change_changes_no_owner(seed: u64) {
        let world = World::new(seed);
        let after = world.kind.update(&world.live, &world.managers, "somebody", &world.live).unwrap();
        prop_assert_eq!(after, world.managers);
    }
}
