//! Random kinds with unions, and random objects of them.

use fixtures::dice::Dice;
use serde_json::{Map, Value, json};

/// A part of an object that has unions: a field of `spec` or `status`.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    around: Around,
    item: Item,
}

/// The surroundings of objects with unions.
#[derive(Debug, Clone)]
enum Around {
    /// So many objects, each inside the other.
    Structs(usize),
    /// A list, with the keys that identify its items together.
    Keyed(Vec<String>),
    /// A list without identities.
    Unkeyed,
    /// A map.
    Values,
    /// A list or a map of these surroundings.
    Within(Outer, Box<Around>),
}

/// A container of lists or maps.
#[derive(Debug, Clone, Copy)]
enum Outer {
    /// A list without identities.
    List,
    Map,
}

/// An object with unions.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    unions: Vec<Choices>,
    /// Fields with more unions.
    inner: Vec<(String, Place)>,
}

/// A union.
#[derive(Debug, Clone)]
struct Choices {
    discriminator: Option<String>,
    /// True if the discriminator is a boolean.
    boolean: bool,
    members: Vec<Member>,
    /// `None`: the 2019 form.
    map_form: Option<Vec<SelectingValue>>,
    required: bool,
    /// The names of the members whose empty values count as not set.
    empty_is_unset: Vec<String>,
}

/// A value of the 2022 form, with the positions of its members and whether each is optional.
type SelectingValue = (String, Vec<(usize, bool)>);

#[derive(Debug, Clone)]
struct Member {
    name: String,
    kind: MemberKind,
    /// The value of the 2019 form.
    value: String,
}

#[derive(Debug, Clone)]
enum MemberKind {
    Text,
    Number,
    Flag,
    Object,
    Open,
    Nullable,
    Set,
    Keyed,
    Atomic,
    /// Objects with unions.
    Place(Box<Place>),
}

/// Words that expressions reserve, as names of fields.
const RESERVED: [&str; 20] = [
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
    "let", "loop", "package", "return", "var", "void", "while",
];

/// Words of expressions and of policies, as names of fields.
const KNOWN: [&str; 9] = ["namespace", "size", "map", "object", "oldObject", "variables", "p", "m", "has"];

/// Names of fields that need escapes in an expression, a JSON Pointer or a path, and names that look like escapes.
const ESCAPED: [&str; 19] = [
    "a-b", "a.b", "a/b", "a__b", "__dash__", "a~b", "~0", "~1", "$x", "${x}", "a b", " ", "ünï", "日本", "\"", "'",
    "\\", "-", "__i",
];

/// Values of discriminators that need care in a literal or a message.
const VALUES: [&str; 14] =
    ["true", "a\"b", "a\\b", "a\\", "a\nb", "a\tb", "${x}", "'", "`", "日本", " ", "a; b", "%s", "\u{1f600}"];

/// Unusual names and values, which are dealt in turn.
#[derive(Default)]
pub(crate) struct Unusual {
    names: usize,
    values: usize,
    /// True if members may be lists.
    lists: bool,
    /// True if members may have unions, and lists may be in maps and in lists.
    is_nested: bool,
}

impl Unusual {
    pub(crate) fn with_lists() -> Self {
        Self { lists: true, ..Self::default() }
    }

    /// Deals members that are lists and unusual shapes, too.
    pub(crate) fn nested() -> Self {
        Self { is_nested: true, ..Self::with_lists() }
    }

    pub(crate) fn name(&mut self) -> String {
        let mut all = RESERVED.into_iter().chain(KNOWN).chain(ESCAPED).cycle().skip(self.names);
        self.names += 1;
        all.next().expect("it begins again").to_owned()
    }

    fn value(&mut self) -> String {
        self.values += 1;
        VALUES[self.values % VALUES.len()].to_owned()
    }

    /// Returns true if each name and each value has been dealt.
    pub(crate) fn is_used_up(&self) -> bool {
        self.names >= RESERVED.len() + KNOWN.len() + ESCAPED.len() && self.values >= VALUES.len()
    }
}

const KEYS: [&str; 3] = ["name", "port", "key-3"];

impl Place {
    pub(crate) fn random(random: &mut Dice, unusual: &mut Unusual, depth: usize) -> Self {
        let item = Item::random(random, unusual, depth);
        Self { around: Around::random(random, unusual, depth), item }
    }

    /// Returns the object itself, without surroundings.
    pub(crate) fn bare(random: &mut Dice, unusual: &mut Unusual) -> Self {
        Self { around: Around::Structs(0), item: Item::random(random, unusual, 0) }
    }

    /// Returns a pod template, with some of the unions that `podTemplates` of a declaration finds in one.
    pub(crate) fn pod_template() -> Self {
        let text = |name: &str| Member { name: name.to_owned(), kind: MemberKind::Text, value: "Localhost".to_owned() };
        let object = |name: &&str| Member { kind: MemberKind::Object, ..text(name) };
        let one_of = |names: &[&str]| vec![Choices::one_of(names.iter().map(object).collect())];
        let env = Choices::one_of(vec![text("value"), object(&"valueFrom")]);
        let profile = Choices {
            discriminator: Some("type".to_owned()),
            map_form: Some(vec![("RuntimeDefault".to_owned(), vec![]), ("Localhost".to_owned(), vec![(0, false)])]),
            ..Choices::one_of(vec![text("localhostProfile")])
        };
        let place = |around, unions, inner: Vec<(&str, Self)>| {
            let inner = inner.into_iter().map(|(name, place)| (name.to_owned(), place));
            Self { around, item: Item { unions, inner: inner.collect() } }
        };
        let fields = |unions, inner| place(Around::Structs(0), unions, inner);
        let named = |unions, inner| place(Around::Keyed(vec!["name".to_owned()]), unions, inner);
        let probe = fields(one_of(&["exec", "httpGet", "tcpSocket"]), vec![]);
        let containers = named(vec![], vec![("env", named(vec![env], vec![])), ("livenessProbe", probe)]);
        let security = fields(vec![], vec![("seccompProfile", fields(vec![profile], vec![]))]);
        let volumes = named(one_of(&["configMap", "emptyDir", "hostPath"]), vec![]);
        let spec = vec![("containers", containers), ("securityContext", security), ("volumes", volumes)];
        fields(vec![], vec![("spec", fields(vec![], spec))])
    }

    /// Returns the schema, with unions.
    pub(crate) fn schema(&self) -> Value {
        self.around.schema(self.item.schema(self.around.keys()))
    }

    /// Returns a value of the field. `None`: the field is missing.
    pub(crate) fn value(&self, random: &mut Dice) -> Option<Value> {
        if random.chance(8) {
            return None;
        }
        Some(self.present(random))
    }

    /// Returns a value of a field that is there.
    fn present(&self, random: &mut Dice) -> Value {
        self.around.value(random, &|random: &mut Dice| self.item.value(random))
    }

    /// Returns the field after a write: often only one union differs.
    pub(crate) fn changed(&self, old: Option<&Value>, random: &mut Dice) -> Option<Value> {
        let Some(old) = old.filter(|_| random.chance(80)) else { return self.value(random) };
        if random.chance(10) {
            return Some(old.clone());
        }
        let mut new = old.clone();
        self.around.rearrange(&mut new, random);
        for fields in self.around.items(&mut new) {
            if matches!(self.around, Around::Structs(_)) || random.chance(60) {
                self.item.change(fields, random);
            }
        }
        Some(new)
    }

    /// Writes nulls for some members of a value of the field that can be null, as a manifest may have them.
    pub(crate) fn write_nulls(&self, value: &mut Value, random: &mut Dice) {
        for fields in self.around.items(value) {
            let union = random.pick(&self.item.unions);
            let member = random.pick(&union.members);
            if matches!(member.kind, MemberKind::Nullable) {
                fields.insert(member.name.clone(), Value::Null);
            }
        }
    }

    /// Returns the number of unions in a value of the field.
    pub(crate) fn unions_in(&self, value: &Value) -> usize {
        self.around.items(&mut value.clone()).into_iter().map(|fields| self.item.unions_in(fields)).sum()
    }
}

impl Around {
    fn random(random: &mut Dice, unusual: &mut Unusual, depth: usize) -> Self {
        match random.below(if depth == 0 { 12 } else { 9 } - usize::from(!unusual.is_nested)) {
            0..=2 => Self::Structs(random.below(3)),
            3..=4 => Self::keyed(random, unusual),
            5 => Self::Unkeyed,
            6 => Self::Values,
            7 if !unusual.is_nested => Self::Within(Outer::List, Box::new(Self::Unkeyed)),
            7..=8 if unusual.is_nested => {
                let mut inner = match random.below(5) {
                    0..=2 => Self::keyed(random, unusual),
                    3 => Self::Unkeyed,
                    _ => Self::Values,
                };
                for _ in 0..=usize::from(random.chance(20)) {
                    let outer = *random.pick(&[Outer::List, Outer::Map, Outer::Map]);
                    inner = Self::Within(outer, Box::new(inner));
                }
                inner
            }
            _ => Self::Structs(0),
        }
    }

    fn keyed(random: &mut Dice, unusual: &mut Unusual) -> Self {
        let count = 1 + random.below(KEYS.len());
        let mut keys: Vec<String> = KEYS[..count].iter().map(|key| (*key).to_owned()).collect();
        if random.chance(60) {
            keys[0] = unusual.name();
        }
        Self::Keyed(keys)
    }

    /// Returns the keys of the objects.
    fn keys(&self) -> &[String] {
        match self {
            Self::Keyed(keys) => keys,
            Self::Within(_, inner) => inner.keys(),
            Self::Structs(_) | Self::Unkeyed | Self::Values => &[],
        }
    }

    fn schema(&self, item: Value) -> Value {
        match self {
            Self::Structs(depth) => {
                (0..*depth).fold(item, |inner, _| json!({"type": "object", "properties": {"d": inner}}))
            }
            Self::Keyed(keys) => json!({
                "type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            }),
            Self::Unkeyed => json!({"type": "array", "items": item}),
            Self::Values => json!({"type": "object", "additionalProperties": item}),
            Self::Within(Outer::List, inner) => json!({"type": "array", "items": inner.schema(item)}),
            Self::Within(Outer::Map, inner) => json!({"type": "object", "additionalProperties": inner.schema(item)}),
        }
    }

    fn value(&self, random: &mut Dice, item: &dyn Fn(&mut Dice) -> Map<String, Value>) -> Value {
        match self {
            Self::Structs(depth) => (0..*depth).fold(item(random).into(), |value, _| json!({"d": value})),
            Self::Keyed(keys) => {
                let count = random.below(4);
                let identities = identities(keys, count, random);
                identities.into_iter().map(|identity| with(item(random), identity)).collect()
            }
            Self::Unkeyed => list(random, |random| item(random).into()),
            Self::Values => map(random, |random| item(random).into()),
            Self::Within(Outer::List, inner) => list(random, |random| inner.value(random, item)),
            Self::Within(Outer::Map, inner) => map(random, |random| inner.value(random, item)),
        }
    }

    /// Returns the objects in a value.
    fn items<'v>(&self, value: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        let values: Vec<&mut Value> = match (self, value) {
            (Self::Structs(depth), value) => vec![(0..*depth).fold(value, |value, _| &mut value["d"])],
            (_, Value::Array(items)) => items.iter_mut().collect(),
            (_, Value::Object(fields)) => fields.values_mut().collect(),
            _ => Vec::new(),
        };
        match self {
            Self::Within(_, inner) => values.into_iter().flat_map(|value| inner.items(value)).collect(),
            Self::Structs(_) | Self::Keyed(_) | Self::Unkeyed | Self::Values => {
                values.into_iter().filter_map(Value::as_object_mut).collect()
            }
        }
    }

    /// Reorders lists, and removes items and values.
    fn rearrange(&self, value: &mut Value, random: &mut Dice) {
        let is_keyed = matches!(self, Self::Keyed(_));
        if let Value::Array(items) = value {
            if random.chance(if is_keyed { 40 } else { 30 }) {
                random.shuffle(items);
            }
            if is_keyed && random.chance(15) {
                items.pop();
            }
        }
        if let Self::Within(_, inner) = self {
            let values: Vec<&mut Value> = match value {
                Value::Array(items) => items.iter_mut().collect(),
                Value::Object(fields) => fields.values_mut().collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            };
            for value in values {
                inner.rearrange(value, random);
            }
        }
    }
}

impl Item {
    fn random(random: &mut Dice, unusual: &mut Unusual, depth: usize) -> Self {
        let mut names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        random.shuffle(&mut names);
        let mut names = names.map(str::to_owned).into();
        let count = if random.chance(20) { 2 } else { 1 };
        let unions = (0..count).map(|number| Choices::random(number, &mut names, random, unusual, depth)).collect();
        let has_inner = depth < 2 && random.chance(25);
        let inner = has_inner.then(|| ("inner".to_owned(), Place::random(random, unusual, depth + 1)));
        Self { unions, inner: inner.into_iter().collect() }
    }

    fn schema(&self, keys: &[String]) -> Value {
        let (mut properties, mut list_form) = (Map::new(), Vec::new());
        for union in &self.unions {
            union.describe(&mut properties, &mut list_form);
        }
        properties.insert("note".to_owned(), json!({"type": "string"}));
        for (name, place) in &self.inner {
            properties.insert(name.clone(), place.schema());
        }
        for key in keys {
            let kind = if key == "port" { "integer" } else { "string" };
            properties.insert(key.clone(), json!({"type": kind}));
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !list_form.is_empty() {
            schema["x-kubernetes-unions"] = list_form.into();
        }
        if !keys.is_empty() {
            schema["required"] = json!(keys);
        }
        schema
    }

    fn value(&self, random: &mut Dice) -> Map<String, Value> {
        let mut fields = Map::new();
        for union in &self.unions {
            union.fill(&mut fields, random);
        }
        if random.chance(30) {
            fields.insert("note".to_owned(), json!("n"));
        }
        for (name, place) in &self.inner {
            if let Some(value) = place.value(random) {
                fields.insert(name.clone(), value);
            }
        }
        fields
    }

    fn change(&self, fields: &mut Map<String, Value>, random: &mut Dice) {
        for union in &self.unions {
            if random.chance(70) {
                union.change(fields, random);
            }
        }
        for (name, place) in &self.inner {
            if random.chance(60) {
                match place.changed(fields.get(name), random) {
                    Some(value) => fields.insert(name.clone(), value),
                    None => fields.remove(name),
                };
            }
        }
    }

    fn unions_in(&self, fields: &Map<String, Value>) -> usize {
        let inner = self.inner.iter().filter_map(|(name, place)| Some(place.unions_in(fields.get(name)?)));
        let members = self.unions.iter().flat_map(|union| &union.members);
        let of_members = members.filter_map(|member| {
            let MemberKind::Place(place) = &member.kind else { return None };
            Some(place.unions_in(fields.get(&member.name)?))
        });
        self.unions.len() + inner.sum::<usize>() + of_members.sum::<usize>()
    }
}

impl Choices {
    /// Returns a union without a discriminator.
    fn one_of(members: Vec<Member>) -> Self {
        let (discriminator, map_form, empty_is_unset) = (None, None, Vec::new());
        Self { discriminator, boolean: false, members, map_form, required: false, empty_is_unset }
    }

    fn random(number: usize, names: &mut Vec<String>, random: &mut Dice, unusual: &mut Unusual, depth: usize) -> Self {
        let has_map_form = random.chance(45);
        let has_discriminator = has_map_form || random.chance(60);
        let count = (2 + random.below(3)).min(names.len());
        let members = names.split_off(names.len() - count);
        let mut members: Vec<_> =
            members.into_iter().map(|name| Member::random(name, random, unusual, depth)).collect();
        let boolean = has_discriminator && random.chance(12);
        let has_groups = boolean || random.chance(30);
        if boolean {
            for (position, member) in members.iter_mut().enumerate() {
                member.value = (position % 2 == 0).to_string();
            }
        } else if let [first, .., last] = &mut members[..]
            && has_groups
            && count > 2
        {
            last.value.clone_from(&first.value);
        }
        // Each union has a discriminator of its own: a field of two unions is the fault `shared-field`.
        let discriminator =
            has_discriminator.then(|| if random.chance(25) { unusual.name() } else { format!("type{number}") });
        let map_form = has_map_form.then(|| {
            let mut choices: Vec<SelectingValue> = Vec::new();
            for (position, member) in members.iter().enumerate() {
                let selected = (position, random.chance(40));
                match choices.iter_mut().find(|(value, _)| *value == member.value) {
                    Some((_, members)) => members.push(selected),
                    None => choices.push((member.value.clone(), vec![selected])),
                }
            }
            // Fields that several values share.
            for (_, selected) in choices.iter_mut().filter(|_| has_groups) {
                let position = random.below(members.len());
                if selected.iter().all(|(known, _)| *known != position) {
                    selected.push((position, random.chance(60)));
                }
            }
            if !boolean && random.chance(40) {
                choices.push(("None".to_owned(), Vec::new()));
            }
            if random.chance(10) {
                choices.push((String::new(), Vec::new()));
            }
            if !boolean && random.chance(20) {
                choices.push(("Other".to_owned(), vec![(0, random.chance(50))]));
            }
            choices
        });
        let some_unset = random.chance(40);
        let unset = members.iter().filter(|_| some_unset && random.chance(60)).map(|member| member.name.clone());
        let empty_is_unset = unset.collect();
        Self { discriminator, boolean, members, map_form, required: random.chance(25), empty_is_unset }
    }

    fn discriminator_schema(&self) -> Value {
        json!({"type": if self.boolean { "boolean" } else { "string" }})
    }

    fn describe(&self, properties: &mut Map<String, Value>, list_form: &mut Vec<Value>) {
        for member in &self.members {
            properties.insert(member.name.clone(), member.kind.schema());
        }
        if let Some(choices) = &self.map_form {
            let name = |position: usize| self.members[position].name.clone();
            let choice = |(value, members): &SelectingValue| {
                let selected = match members[..] {
                    [] => Value::Null,
                    [(position, optional)] => json!({"name": name(position), "optional": optional}),
                    _ => {
                        let field =
                            |(position, optional): &(usize, bool)| (name(*position), json!({"optional": optional}));
                        json!({"fields": members.iter().map(field).collect::<Map<_, _>>()})
                    }
                };
                (value.clone(), selected)
            };
            let choices: Map<_, _> = choices.iter().map(choice).collect();
            let discriminator = self.discriminator.clone().expect("the 2022 form has a discriminator");
            let union = self.with_options(json!({"fieldMembers": choices}));
            let mut schema = self.discriminator_schema();
            schema["x-kubernetes-unions"] = union;
            properties.insert(discriminator, schema);
            return;
        }
        let fields: Map<_, _> =
            self.members.iter().map(|member| (member.name.clone(), member.value.clone().into())).collect();
        let mut union = json!({"fields-to-discriminateBy": fields});
        if let Some(name) = &self.discriminator {
            union["discriminator"] = json!(name);
            properties.insert(name.clone(), self.discriminator_schema());
        }
        list_form.push(self.with_options(union));
    }

    /// Returns the union with its options, as `lift_unions` reads them.
    fn with_options(&self, mut union: Value) -> Value {
        union["required"] = self.required.into();
        union["emptyIsUnset"] = json!(self.empty_is_unset);
        union
    }

    /// Returns a value of the discriminator, as the union names it.
    fn choice(&self, random: &mut Dice) -> String {
        match random.below(20) {
            0 | 1 if self.boolean => random.pick(&["true", "false"]).to_string(),
            0 => String::new(),
            1 => "Bogus".to_owned(),
            _ => match &self.map_form {
                Some(choices) => random.pick(choices).0.clone(),
                None => random.pick(&self.members).value.clone(),
            },
        }
    }

    /// Sets the fields at random. About half of the unions are valid.
    fn fill(&self, fields: &mut Map<String, Value>, random: &mut Dice) {
        let choice = self.discriminator.as_ref().filter(|_| random.chance(80)).map(|_| self.choice(random));
        let is_valid = random.chance(60);
        for (position, member) in self.members.iter().enumerate() {
            let selected = match (&choice, &self.map_form) {
                (Some(choice), Some(choices)) => {
                    let selects = |members: &[(usize, bool)]| members.iter().any(|member| member.0 == position);
                    choices.iter().any(|(value, members)| value == choice && selects(members))
                }
                (Some(choice), None) => member.value == *choice,
                (None, _) => position == 0,
            };
            if if is_valid { selected && random.chance(90) } else { random.chance(35) } {
                member.set(fields, random);
            }
        }
        if let (Some(name), Some(choice)) = (&self.discriminator, choice) {
            self.choose(name, &choice, fields);
        }
    }

    /// Sets the discriminator. A boolean has no empty value, so it is removed.
    fn choose(&self, name: &str, choice: &str, fields: &mut Map<String, Value>) {
        let value = match choice {
            "" if self.boolean => Value::Null,
            _ if self.boolean => (choice == "true").into(),
            _ => choice.into(),
        };
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.to_owned(), value);
        }
    }

    /// Changes the fields as a client would: switches the discriminator, sets or unsets a member, or both.
    fn change(&self, fields: &mut Map<String, Value>, random: &mut Dice) {
        let what = random.below(10);
        if let Some(name) = self.discriminator.as_ref().filter(|_| what < 5) {
            if random.chance(10) {
                fields.remove(name);
            } else {
                let choice = self.choice(random);
                self.choose(name, &choice, fields);
            }
        }
        if what >= 3 {
            let member = random.pick(&self.members);
            if random.chance(75) {
                member.set(fields, random);
            } else {
                fields.remove(&member.name);
            }
        }
        if what == 9 {
            self.members.iter().for_each(|member| drop(fields.remove(&member.name)));
            self.fill(fields, random);
        }
    }
}

impl Member {
    fn random(name: String, random: &mut Dice, unusual: &mut Unusual, depth: usize) -> Self {
        const KINDS: [MemberKind; 6] = [
            MemberKind::Text,
            MemberKind::Number,
            MemberKind::Flag,
            MemberKind::Object,
            MemberKind::Open,
            MemberKind::Nullable,
        ];
        const LISTS: [MemberKind; 3] = [MemberKind::Set, MemberKind::Keyed, MemberKind::Atomic];
        let name = if random.chance(15) { unusual.name() } else { name };
        let value = if random.chance(10) { unusual.value() } else { format!("{}1", name.to_uppercase()) };
        let kind = if unusual.is_nested && depth < 2 && random.chance(10) {
            MemberKind::Place(Box::new(Place::random(random, unusual, depth + 1)))
        } else if unusual.lists && random.chance(40) {
            random.pick(&LISTS).clone()
        } else {
            random.pick(&KINDS).clone()
        };
        Self { name, kind, value }
    }

    /// Sets the member, or changes it.
    fn set(&self, fields: &mut Map<String, Value>, random: &mut Dice) {
        let value = if let MemberKind::Place(place) = &self.kind {
            place.changed(fields.get(&self.name), random).unwrap_or_else(|| place.present(random))
        } else {
            self.kind.value(random)
        };
        fields.insert(self.name.clone(), value);
    }
}

impl MemberKind {
    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Number => json!({"type": "integer"}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Object => json!({"type": "object", "properties": {"x": {"type": "string"}}}),
            Self::Open => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            Self::Nullable => json!({"type": "string", "nullable": true}),
            Self::Set => json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            Self::Keyed => json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
            }),
            Self::Atomic => json!({"type": "array", "items": {"type": "string"}}),
            Self::Place(place) => place.schema(),
        }
    }

    /// Returns a value of a member without unions.
    fn value(&self, random: &mut Dice) -> Value {
        match self {
            Self::Text => (*random.pick(&["1", "2", ""])).into(),
            Self::Number => random.below(2).into(),
            Self::Flag => random.chance(50).into(),
            Self::Object | Self::Place(_) => random.pick(&[json!({}), json!({"x": "1"}), json!({"x": "2"})]).clone(),
            Self::Open => random.pick(&[json!({}), json!({"y": [1, {"z": null}]}), json!({"y": 2})]).clone(),
            Self::Nullable => random.pick(&[json!("1"), json!("2"), Value::Null]).clone(),
            Self::Set | Self::Atomic => random.pick(&[json!([]), json!([]), json!(["1"]), json!(["1", "2"])]).clone(),
            Self::Keyed => random.pick(&[json!([]), json!([]), json!([{"k": "1"}]), json!([{"k": "2"}])]).clone(),
        }
    }
}

fn list(random: &mut Dice, mut item: impl FnMut(&mut Dice) -> Value) -> Value {
    let count = random.below(3);
    Value::Array((0..count).map(|_| item(random)).collect())
}

fn map(random: &mut Dice, mut value: impl FnMut(&mut Dice) -> Value) -> Value {
    let mut names = ["x", "y/z", "u~v", "w.1", "ö"];
    random.shuffle(&mut names);
    let count = random.below(4);
    Value::Object(names[..count].iter().map(|name| ((*name).to_owned(), value(random))).collect())
}

/// Returns the keys of as many distinct items.
fn identities(keys: &[String], count: usize, random: &mut Dice) -> Vec<Map<String, Value>> {
    let mut all: Vec<Map<String, Value>> = vec![Map::new()];
    for key in keys {
        let values =
            if key == "port" { [json!(1), json!(12), json!(2)] } else { [json!("1"), json!("1:2"), json!("")] };
        all = all
            .iter()
            .flat_map(|before| values.iter().map(move |value| with_key(before.clone(), key, value)))
            .collect();
    }
    random.shuffle(&mut all);
    all.truncate(count);
    all
}

fn with_key(mut identity: Map<String, Value>, key: &str, value: &Value) -> Map<String, Value> {
    identity.insert(key.to_owned(), value.clone());
    identity
}

fn with(mut fields: Map<String, Value>, identity: Map<String, Value>) -> Value {
    fields.extend(identity);
    Value::Object(fields)
}
