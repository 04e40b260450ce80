//! Random edits of built-in kinds as patches: the API server has to understand each created patch as it was meant. What it makes of the
//! patch is compared with what it makes of the edited object itself.
//!
//! `KUBE_UNIONS_PATCH_SEED` and `KUBE_UNIONS_PATCH_EDITS` select other edits and more of them, as `make patch-differential` does. Each
//! write is a dry run, so one stored object serves all edits of its kind.

use std::collections::BTreeMap;
use std::env;

use fixtures::dice::Dice;
use serde::Deserialize;
use serde_json::{Map, Value};
use strategic_merge_patch::{BrokenRule, Conflicts, GroupVersionKind, OpenApi, PatchError, Patcher, ThreeWay};

use super::content;
use crate::builtin::{self, Objects};
use crate::support::kind::parse;

/// Number of edits without `KUBE_UNIONS_PATCH_EDITS`.
const EDITS: u64 = 96;

const STRATEGIC: &str = "application/strategic-merge-patch+json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edits {
    kinds: Vec<EditedKind>,
}

/// A kind with the places that edits change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditedKind {
    /// The path of its OpenAPI document.
    document: String,
    object: Value,
    values: BTreeMap<String, Vec<Value>>,
    lists: BTreeMap<String, Vec<Value>>,
}

/// What became of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// The patch has the result of the edit.
    Understood,
    /// The same, by a patch that replaces a list.
    Replaced,
    /// The edited object is invalid, and so is the result of the patch.
    Invalid,
    /// No patch has the result, and an error says why.
    Refused,
}

impl EditedKind {
    fn patcher(&self, objects: &Objects) -> Patcher {
        let document = objects.send("GET", &format!("/openapi/v3/{}", self.document), "application/json", &Value::Null);
        let document = OpenApi::parse(&document.body.to_string()).expect("the API server sends a document");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let version = text(&self.object["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let kind = text(&self.object["kind"]);
        let kind = GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() };
        Patcher::from_openapi(&document, &kind).unwrap()
    }

    /// Changes some places of an object.
    fn edit(&self, object: &mut Value, dice: &mut Dice) {
        let (values, lists): (Vec<_>, Vec<_>) = (self.values.iter().collect(), self.lists.iter().collect());
        for _ in 0..=dice.below(3) {
            if dice.chance(35) {
                let (place, all) = *dice.pick(&values);
                let value = dice.pick(all).clone();
                set(object, place, value);
            } else {
                let (place, all) = *dice.pick(&lists);
                let mut items: Vec<Value> = all.iter().filter(|_| dice.chance(60)).cloned().collect();
                if dice.chance(40) {
                    dice.shuffle(&mut items);
                }
                let list = if items.is_empty() { Value::Null } else { Value::Array(items) };
                set(object, place, list);
            }
        }
    }
}

/// Sets the value at a JSON Pointer, or removes it. Does nothing if there is nothing around it.
fn set(object: &mut Value, place: &str, value: Value) {
    let (around, name) = place.rsplit_once('/').expect("a place is a JSON Pointer");
    if object.pointer(around).is_none_or(Value::is_null) && !value.is_null() {
        set(object, around, Value::Object(Map::new()));
    }
    let Some(Value::Object(fields)) = object.pointer_mut(around) else { return };
    if value.is_null() {
        fields.remove(name);
    } else {
        fields.insert(name.to_owned(), value);
    }
}

#[test]
fn the_api_server_understands_the_patches_of_random_edits() {
    let Some(objects) = Objects::without_presets() else { return };
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("KUBE_UNIONS_PATCH_SEED").unwrap_or(1);
    let wanted = number("KUBE_UNIONS_PATCH_EDITS").unwrap_or(EDITS);
    let mut dice = Dice(seed);
    let edits: Edits = serde_json::from_value(parse(include_str!("edits.yaml"))).unwrap();
    let kinds: Vec<_> = edits.kinds.into_iter().map(|kind| (kind.patcher(&objects), kind)).collect();
    for (_, kind) in &kinds {
        let created = objects.create(&kind.object);
        assert!(created.is_success(), "{created:?}");
    }
    let (mut fates, mut faults) = (BTreeMap::<Fate, usize>::new(), Vec::new());
    for edit in 0..wanted {
        if faults.len() >= 5 {
            break;
        }
        let (patcher, kind) = &kinds[usize::try_from(edit).unwrap() % kinds.len()];
        let url = format!("{}?dryRun=All&fieldValidation=Strict", builtin::path(&kind.object));
        let stored = objects.stored(&kind.object);
        let three_way = dice.chance(30);
        // What was applied last: sometimes somebody else has changed the object since.
        let mut applied = kind.object.clone();
        if dice.chance(50) {
            kind.edit(&mut applied, &mut dice);
        }
        let mut modified = if three_way { applied.clone() } else { stored.clone() };
        kind.edit(&mut modified, &mut dice);
        let created: Result<Value, PatchError> = if three_way {
            let sides =
                ThreeWay { original: &applied, modified: &modified, current: &stored, conflicts: Conflicts::Overwrite };
            patcher.create_three_way(&sides)
        } else {
            patcher.create_two_way(&stored, &modified)
        };
        let fate =
            match created {
                Err(PatchError::Refused {
                    rule: BrokenRule::Duplicate | BrokenRule::Apart(_) | BrokenRule::RepeatedValue,
                    ..
                }) => Fate::Refused,
                Err(error) => panic!("seed {seed}, edit {edit}: {error}"),
                Ok(patch) => {
                    let meant = if three_way { patcher.apply(&stored, &patch).unwrap() } else { modified };
                    let (theirs, direct) = (
                        objects.send("PATCH", &url, STRATEGIC, &patch),
                        objects.send("PUT", &url, "application/json", &meant),
                    );
                    if theirs.is_success() != direct.is_success()
                        || theirs.is_success() && content(&theirs.body) != content(&direct.body)
                    {
                        faults.push(format!(
                        "edit {edit} of {} {}\n  patch {patch}\n  meant {meant}\n  patch gives {}\n object gives {}",
                        kind.object["kind"], if three_way { "(three-way)" } else { "" }, theirs.body, direct.body
                    ));
                    }
                    match (theirs.is_success(), patch.to_string().contains(r#"{"$patch":"replace"}"#)) {
                        (false, _) => Fate::Invalid,
                        (true, true) => Fate::Replaced,
                        (true, false) => Fate::Understood,
                    }
                }
            };
        *fates.entry(fate).or_default() += 1;
    }
    println!("seed {seed}: {wanted} edits: {fates:?}");
    assert!(
        faults.is_empty(),
        "seed {seed}: {} patches are understood otherwise:\n{}",
        faults.len(),
        faults.join("\n\n")
    );
    if (seed, wanted) == (1, EDITS) {
        assert_eq!(fates.len(), 4, "each fate: {fates:?}");
    }
}
