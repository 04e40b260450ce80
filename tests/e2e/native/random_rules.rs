//! Random kinds whose rules somebody could have written beside a union: members of several types, a discriminator that may be missing, and
//! rules that ask too little, too much, or read fields that are not set.

use fixtures::dice::Dice;
use kube_unions_evidence::{Combination, UnionFields, UnsetValue};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The schema of a `spec` with rules, the union that is declared for it, and values of its fields.
pub(super) struct RuledKind {
    pub(super) spec: Value,
    /// The union as a `UnionDeclaration` has it, without its path.
    pub(super) declared: Value,
    pub(super) union: UnionFields,
}

/// A member of a random kind.
struct RuledMember {
    name: &'static str,
    schema: Value,
    /// Conditions about its content.
    asked: Vec<&'static str>,
}

impl RuledMember {
    fn new(name: &'static str, dice: &mut Dice) -> Self {
        let (mut schema, asked) = match dice.below(5) {
            0 => (
                json!({"type": "string"}),
                vec![
                    "size(self.M) > 0",
                    "self.M == ''",
                    "self.M != 'x'",
                    "self.M.startsWith('x')",
                    "self.?M.orValue('') == ''",
                ],
            ),
            1 => (json!({"type": "boolean"}), vec!["self.M", "!self.M", "self.M == false"]),
            2 => (json!({"type": "integer"}), vec!["self.M > 0", "self.M == 0", "self.M != 5"]),
            3 => (
                json!({"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 9}}),
                vec![
                    "size(self.M) > 0",
                    "self.M[0] == 'x'",
                    "self.M[0] != 'y'",
                    "self.M.exists(i, i == 'x')",
                    "self.M.all(i, i != '')",
                ],
            ),
            _ => (
                json!({"type": "object", "properties": {"w": {"type": "string"}, "n": {"type": "integer"}}}),
                vec!["has(self.M.w)", "self.M.w == 'x'", "self.M.w != 'y'", "!has(self.M.n)", "size(self.M.w) > 0"],
            ),
        };
        match (schema["type"].as_str(), dice.below(10)) {
            (_, 0 | 1) => schema["nullable"] = true.into(),
            (Some("string"), 2) => schema["minLength"] = 1.into(),
            (Some("array"), 2) => schema["minItems"] = 1.into(),
            (Some("object"), 2) => schema["required"] = json!(["w"]),
            (Some("object"), 3) => schema["properties"]["w"]["default"] = "x".into(),
            _ => {}
        }
        Self { name, schema, asked }
    }
}

impl RuledKind {
    pub(super) fn new(dice: &mut Dice) -> Self {
        let count = 2 + dice.below(2);
        let members: Vec<RuledMember> =
            ["a", "b", "c"].into_iter().take(count).map(|name| RuledMember::new(name, dice)).collect();
        let mut properties: Map<_, _> = members.iter().map(|it| (it.name.to_owned(), it.schema.clone())).collect();
        properties.insert("other".to_owned(), json!({"type": "string"}));
        let mut spec = json!({"type": "object"});
        let choices = [("A", "a"), ("B", "b"), ("C", "c")].into_iter().take(count);
        let has_type = dice.chance(60);
        if has_type {
            let mut field = json!({"type": "string"});
            if dice.chance(70) {
                field["enum"] = choices.clone().map(|(value, _)| value).chain(["Z"]).collect();
            }
            match dice.below(10) {
                0..3 => spec["required"] = json!(["type"]),
                3 if field.get("enum").is_some() => field["default"] = "A".into(),
                4 if field.get("enum").is_none() => field["nullable"] = true.into(),
                _ => {}
            }
            properties.insert("type".to_owned(), field);
        }
        let names: Vec<&str> = members.iter().map(|it| it.name).collect();
        let mut declared = if has_type && dice.chance(70) {
            let selected = |(value, name): (&str, &str), optional: bool| {
                (
                    value.to_owned(),
                    if optional { json!({"name": name, "optional": true}) } else { json!({"name": name}) },
                )
            };
            let selected = choices.clone().map(|choice| selected(choice, dice.chance(40)));
            let mut selected: Map<String, Value> = selected.collect();
            selected.insert("Z".to_owned(), json!({}));
            json!({"discriminator": "type", "fieldMembers": selected})
        } else if has_type {
            let values: Map<String, Value> =
                choices.clone().map(|(value, name)| (name.to_owned(), value.into())).collect();
            json!({"discriminator": "type", "fieldsToDiscriminateBy": values})
        } else {
            json!({"members": names})
        };
        let empty: Vec<&str> = names.iter().copied().filter(|_| dice.chance(35)).collect();
        if !empty.is_empty() {
            declared["emptyIsUnset"] = json!(empty);
        }
        let rules: Vec<Value> = (0..=dice.below(3))
            .map(|number| json!({"rule": rule(&members, has_type, dice), "message": format!("r{number}")}))
            .collect();
        spec["x-kubernetes-validations"] = rules.into();
        let required = |name: &&str| json!({"required": [name]});
        match dice.below(12) {
            0 => spec["oneOf"] = names.iter().map(required).collect(),
            1 => spec["not"] = json!({"required": ["a", "b"]}),
            2 => spec["maxProperties"] = 2.into(),
            _ => {}
        }
        spec["properties"] = properties.into();
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let mut values: Vec<String> = choices.map(|(value, _)| value.to_owned()).collect();
        values.extend(declared.get("fieldMembers").map(|_| "Z".to_owned()));
        let union = UnionFields {
            discriminator: has_type.then(|| "type".to_owned()),
            values: if has_type { values } else { Vec::new() },
            members: owned(&names),
            empty_is_unset: owned(&empty).into_iter().collect(),
        };
        Self { spec, declared, union }
    }

    /// Returns a random object: each field is missing, null, empty, or has a value.
    pub(super) fn object(&self, dice: &mut Dice) -> Value {
        let mut object = Map::new();
        let properties = self.spec["properties"].as_object().unwrap();
        for (name, field) in properties {
            let set: Vec<Value> = match (name.as_str(), field["type"].as_str()) {
                ("type", _) => ["A", "B", "Z", "Other"].map(Value::from).to_vec(),
                (_, Some("boolean")) => vec![json!(true)],
                (_, Some("integer")) => vec![json!(1), json!(5)],
                (_, Some("array")) => vec![json!(["x"]), json!(["y"])],
                (_, Some("object")) => vec![json!({"w": "x"}), json!({"n": 1})],
                _ => vec![json!("x"), json!("y")],
            };
            let value = match dice.below(10) {
                0..4 => continue,
                4 => Value::Null,
                5 => UnsetValue::Empty.of(Some(field)),
                _ => dice.pick(&set).clone(),
            };
            object.insert(name.clone(), value);
        }
        object.into()
    }

    /// Returns the combination of an object as the API server stores it.
    pub(super) fn combination(&self, object: &Value) -> Combination {
        let field = |name: &str| &self.spec["properties"][name];
        let is_null = |name: &str| object.get(name).is_some_and(Value::is_null);
        let mut combination = Combination::default();
        if let Some(name) = &self.union.discriminator {
            let default = field(name).get("default").and_then(Value::as_str);
            let is_open = field(name).get("enum").is_none();
            // One unknown value stands for all.
            let known = |value: &str| !is_open || value.is_empty() || self.union.values.iter().any(|it| it == value);
            let value = object.get(name).and_then(Value::as_str);
            combination.value = value.map(|value| if known(value) { value } else { "Other" }.to_owned());
            if is_null(name) && field(name)["nullable"] == true {
                combination.unset.insert(name.clone(), UnsetValue::Null);
            } else if combination.value.is_none() {
                combination.value = default.map(str::to_owned);
            }
        }
        let is_empty = |name: &str| {
            let with_default = field(name)["properties"]["w"].get("default").is_some();
            object[name] == UnsetValue::Empty.of(Some(field(name))) && !with_default
        };
        for name in &self.union.members {
            match object.get(name) {
                None => {}
                // The API server removes another null.
                Some(Value::Null) if field(name)["nullable"] != true => {}
                Some(Value::Null) => drop(combination.unset.insert(name.clone(), UnsetValue::Null)),
                Some(_) if self.union.empty_is_unset.contains(name) && is_empty(name) => {
                    combination.unset.insert(name.clone(), UnsetValue::Empty);
                }
                Some(_) => drop(combination.members.insert(name.clone())),
            }
        }
        combination
    }

    /// Returns the object without the fields that are there and not set. `None` if it has none.
    pub(super) fn without_unset(&self, object: &Value) -> Option<Value> {
        let unset: BTreeMap<String, UnsetValue> = self.combination(object).unset;
        let names: BTreeSet<&String> = unset.keys().collect();
        let mut object = object.as_object()?.clone();
        object.retain(|name, _| !names.contains(name));
        (!names.is_empty()).then(|| object.into())
    }
}

/// Returns a rule. Most are of a kind that people write.
fn rule(members: &[RuledMember], has_type: bool, dice: &mut Dice) -> String {
    let [one, other] = [dice.below(members.len()), dice.below(members.len())].map(|at| &members[at]);
    let has = |it: &RuledMember| format!("has(self.{})", it.name);
    let counted = |how: &str| members.iter().map(|it| format!("has(self.{}){how}", it.name)).collect::<Vec<_>>();
    match dice.below(8) {
        0 => format!("!({} && {})", has(one), has(other)),
        1 => format!("[{}].filter(x, x).size() <= 1", counted("").join(", ")),
        2 => {
            let summands: Vec<String> = counted(" ? 1 : 0").iter().map(|it| format!("({it})")).collect();
            format!("{} == 1", summands.join(" + "))
        }
        3 if has_type => format!("self.type == 'A' ? {} : !{}", has(one), has(one)),
        4 if has_type => format!("self.type != 'B' || {}", condition(one, dice)),
        5 => format!("!{} || {}", has(one), condition(one, dice)),
        _ => expression(members, has_type, 2, dice),
    }
}

fn condition(member: &RuledMember, dice: &mut Dice) -> String {
    dice.pick(&member.asked).replace('M', member.name)
}

fn expression(members: &[RuledMember], has_type: bool, depth: usize, dice: &mut Dice) -> String {
    let member = &members[dice.below(members.len())];
    if depth == 0 || dice.chance(20) {
        let types = [
            "self.type == 'A'",
            "self.type != 'B'",
            "self.type in ['A', 'Z']",
            "has(self.type)",
            "self.?type.orValue('') == 'B'",
            "size(self.type) > 0",
        ];
        return match dice.below(10) {
            0..4 => format!("has(self.{})", member.name),
            4 => format!("self.?{}.hasValue()", member.name),
            5 | 6 if has_type => (*dice.pick(&types)).to_owned(),
            7 => (*dice.pick(&["has(self.other)", "self.other == 'x'"])).to_owned(),
            _ => condition(member, dice),
        };
    }
    let [one, two, three] = [(); 3].map(|()| expression(members, has_type, depth - 1, dice));
    match dice.below(7) {
        0 => format!("!({one})"),
        1 | 2 => format!("({one}) && ({two})"),
        3 | 4 => format!("({one}) || ({two})"),
        5 => format!("({one}) ? ({two}) : ({three})"),
        _ => format!("({one}) == ({two})"),
    }
}
