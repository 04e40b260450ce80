//! The rows of `applied/*.yaml`, and the cells that they expand to: one for each place, way and enforcement.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::place::Place;
use fixtures::files::{files, parse};

/// What enforces the unions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Enforcement {
    Webhook,
    Policies,
    /// Rules in the CRD, and nothing else.
    Rules,
}

/// A way to apply a manifest.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Way {
    /// Server-side apply, which takes fields over.
    ServerSide,
    /// `kubectl apply`.
    ClientSide,
    /// `kubectl replace`.
    Replace,
    /// `helm upgrade` by Helm 3.
    Helm3,
    /// `helm upgrade` by Helm 4, which applies server-side.
    Helm4,
}

/// The answers to three applies of one manifest.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    /// Each is accepted and changes nothing.
    Kept,
    /// The first is stored, and the others change nothing.
    Stored,
    /// Each is refused in the same words.
    Refused,
    /// The first is stored, and the others are refused in the same words.
    Late,
    /// The first and the second are stored, and the third changes nothing.
    Settles,
    /// Each is stored and changes the object.
    Flips,
    /// The situation cannot arise.
    Impossible,
}

/// A form of a union, the places where it is, and what applies of it do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    /// The name of the form, which is part of the names of fields.
    form: Option<String>,
    /// The schema of an object with the union. Another suite may have it.
    schema: Option<Value>,
    /// The places in our own kind.
    #[serde(default)]
    places: Vec<OwnPlace>,
    /// Places in kinds that have a preset.
    #[serde(default)]
    presets: Vec<Preset>,
    #[serde(default = "usual_ways")]
    ways: Vec<Way>,
    rows: Vec<Row>,
}

/// A place of a form in our own kind.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum OwnPlace {
    Struct,
    /// An item of a list with one key.
    Item,
    /// The same, and its key has quotes.
    QuotedItem,
    /// An item of a list with two keys, one of which has a default that no manifest names.
    ShortItem,
    /// A value of a map.
    Value,
    /// A field of `status`.
    Status,
}

/// The place of a union in a kind that has a preset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Preset {
    /// The rest of the object.
    object: Value,
    plural: String,
    at: Place,
    /// The fields to use for a field of the rows.
    #[serde(default)]
    fields: BTreeMap<String, Value>,
    /// The values to use for a value of the discriminator.
    #[serde(default)]
    values: BTreeMap<String, String>,
    /// The same fields as `fields`, with the defaults of the API server.
    #[serde(default)]
    stored: BTreeMap<String, Value>,
    /// True if nothing but the preset minds two members. A preset does not deny.
    #[serde(default)]
    accepts_both: bool,
}

/// A situation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Row {
    situation: String,
    /// The writes that lead to it.
    #[serde(default)]
    before: Vec<Before>,
    /// The content of the place in the manifest.
    manifest: Value,
    /// The content of the place in the end, unless it is the manifest's.
    then: Option<Value>,
    /// The content of the place in the end by rules, which deduce nothing, if it is not `then`.
    rules_then: Option<Value>,
    /// The answers for an enforcement and a way, for a way, for an enforcement, or for `all`. The first of these counts. Before these
    /// comes an enforcement and a way with `lists`, for the items of lists of our own kind: `kubectl apply` replaces a list of a
    /// custom resource as a whole.
    answers: BTreeMap<String, Answer>,
    /// A part of each refusal, likewise.
    #[serde(default)]
    says: BTreeMap<String, String>,
}

/// A write that leads to a situation.
#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
enum Before {
    /// The way and the field manager of the cell.
    Own(Value),
    /// Server-side apply by another field manager.
    Manager(Value),
    /// A controller reads the object, sets these fields, and replaces it.
    Controller(Value),
}

/// The author of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Author {
    Own,
    Manager,
    Controller,
}

/// A situation at one place, by one way, with one enforcement.
pub(super) struct Cell {
    pub(super) enforcement: Enforcement,
    pub(super) way: Way,
    /// The name of the object, which no other cell has.
    pub(super) name: String,
    /// The suite, the place and the situation.
    pub(super) about: String,
    /// The path of the collection.
    pub(super) collection: String,
    pub(super) place: Place,
    /// Fields at the place that are no part of its content.
    hidden: &'static [&'static str],
    /// The object without a union.
    pub(super) bare: Value,
    pub(super) before: Vec<(Author, Value)>,
    /// The content of the place in the manifest.
    manifest: Value,
    /// The content of the place in the end.
    pub(super) then: Value,
    pub(super) expected: Answer,
    /// A part of each refusal.
    pub(super) says: Option<String>,
}

/// The group of our own kind for each enforcement.
pub(super) fn group(enforcement: Enforcement) -> &'static str {
    match enforcement {
        Enforcement::Webhook => "webhook.applied.example",
        Enforcement::Policies => "policies.applied.example",
        Enforcement::Rules => "rules.applied.example",
    }
}

/// Returns the schema of our own kind, with every form at every place.
pub(super) fn schema() -> Value {
    let (mut spec, mut status) = (Map::new(), Map::new());
    for suite in suites().into_iter().map(|(_, suite)| suite).filter(|suite| suite.schema.is_some()) {
        let (form, schema) = (suite.form.expect("a schema has a form"), suite.schema.unwrap());
        let keyed = |keys: Value| {
            let mut item = schema.clone();
            let names: Vec<String> = keys.as_object().unwrap().keys().cloned().collect();
            item["properties"].as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
            json!({"type": "array", "maxItems": 4, "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": names})
        };
        let text = json!({"type": "string", "maxLength": 40, "default": "TCP"});
        let mut items = keyed(json!({"name": {"type": "string", "maxLength": 40}}));
        items["items"]["required"] = json!(["name"]);
        let mut short = keyed(json!({"port": {"type": "integer"}, "protocol": text}));
        short["items"]["required"] = json!(["port"]);
        let values = json!({"type": "object", "maxProperties": 4, "additionalProperties": schema});
        spec.extend([
            (form.clone(), schema.clone()),
            (format!("{form}Items"), items),
            (format!("{form}Ports"), short),
            (format!("{form}Values"), values),
        ]);
        status.insert(form, schema);
    }
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec}, "status": {"type": "object", "properties": status}}})
}

/// Returns every cell of the matrix.
pub(super) fn cells() -> Vec<Cell> {
    suites().iter().flat_map(|(path, suite)| suite.cells(path.trim_end_matches(".yaml"))).collect()
}

fn suites() -> Vec<(String, Suite)> {
    let files = files("tests/e2e/applied", "yaml").into_iter();
    files
        .map(|(path, text)| {
            let value: Value = parse(&path, &text);
            let suite = serde_json::from_value(value).unwrap_or_else(|error| panic!("{path}: {error}"));
            (path, suite)
        })
        .collect()
}

/// Returns the value of a row for a cell.
fn find<T>(map: &BTreeMap<String, T>, enforcement: Enforcement, way: Way) -> Option<&T> {
    let both = of(enforcement, way);
    let (enforcement, way) = both.split_once(' ').expect("two words");
    [both.as_str(), way, enforcement, "all"].iter().find_map(|key| map.get(*key))
}

/// Returns an enforcement and a way as in the rows.
fn of(enforcement: Enforcement, way: Way) -> String {
    let camel = |text: String| text[..1].to_lowercase() + &text[1..];
    format!("{} {}", camel(format!("{enforcement:?}")), camel(format!("{way:?}")))
}

fn usual_ways() -> Vec<Way> {
    vec![Way::ServerSide, Way::ClientSide, Way::Replace]
}

impl Way {
    /// Returns true if a request by this way tells its manifest.
    pub(super) fn tells_its_manifest(self) -> bool {
        !matches!(self, Self::Replace | Self::Helm3)
    }
}

impl Suite {
    fn cells(&self, file: &str) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            for enforcement in [Enforcement::Webhook, Enforcement::Policies, Enforcement::Rules] {
                for way in &self.ways {
                    let name =
                        |place: usize| format!("{file}-{number}-{place}-{way:?}-{enforcement:?}").to_lowercase();
                    for (position, place) in self.places.iter().enumerate() {
                        let form = self.form.as_deref().expect("places are of a form");
                        cells.extend(place.cell(form, row, enforcement, *way, name(position)));
                    }
                    for (position, preset) in self.presets.iter().enumerate() {
                        cells.extend(preset.cell(row, enforcement, *way, name(100 + position)));
                    }
                }
            }
        }
        for cell in &mut cells {
            cell.about = format!("{file}: {}", cell.about);
        }
        cells
    }
}

impl OwnPlace {
    fn at(self, form: &str) -> Place {
        Place::from(match self {
            Self::Struct => format!("spec.{form}"),
            Self::Item => format!("spec.{form}Items[name=x]"),
            Self::QuotedItem => format!("spec.{form}Items[name=x\"y\\'z`:,{{}}]"),
            Self::ShortItem => format!("spec.{form}Ports[port=80]"),
            Self::Value => return Place::from(format!("spec.{form}Values")).field("x\"y\\'z.:,{}"),
            Self::Status => format!("status.{form}"),
        })
    }

    fn cell(self, form: &str, row: &Row, enforcement: Enforcement, way: Way, name: String) -> Option<Cell> {
        if self == Self::Status && way != Way::ServerSide {
            return None;
        }
        let group = group(enforcement);
        let bare = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing"});
        let is_list = matches!(self, Self::Item | Self::QuotedItem | Self::ShortItem);
        let expected = is_list.then(|| row.answers.get(&format!("{} lists", of(enforcement, way)))).flatten();
        let then = row.rules_then.as_ref().filter(|_| enforcement == Enforcement::Rules).or(row.then.as_ref());
        let cell = row.cell(enforcement, way, name, &format!("/apis/{group}/v1"), "things", self.at(form), &bare)?;
        Some(Cell {
            hidden: if self == Self::ShortItem { &["protocol"] } else { &[] },
            says: find(&row.says, enforcement, way).cloned(),
            then: then.unwrap_or(&row.manifest).clone(),
            expected: expected.copied().unwrap_or(cell.expected),
            ..cell
        })
    }
}

impl Preset {
    fn cell(&self, row: &Row, enforcement: Enforcement, way: Way, name: String) -> Option<Cell> {
        if enforcement == Enforcement::Rules {
            return None;
        }
        let root = match self.object["apiVersion"].as_str().expect("an object has an API version") {
            version if version.contains('/') => format!("/apis/{version}"),
            version => format!("/api/{version}"),
        };
        let mut cell = row.cell(enforcement, way, name, &root, &self.plural, self.at.clone(), &self.object)?;
        for (_, content) in &mut cell.before {
            *content = self.translate(content, false);
        }
        cell.then = self.translate(row.then.as_ref().unwrap_or(&row.manifest), true);
        cell.manifest = self.translate(&cell.manifest, false);
        if self.accepts_both && matches!(cell.expected, Answer::Refused | Answer::Late) {
            cell.expected = if cell.expected == Answer::Refused { Answer::Stored } else { Answer::Settles };
            for (_, content) in &cell.before {
                json_patch::merge(&mut cell.then, content);
            }
            json_patch::merge(&mut cell.then, &cell.manifest);
        }
        Some(cell)
    }

    /// Returns a content of the rows in the words of this kind.
    fn translate(&self, content: &Value, stored: bool) -> Value {
        let mut fields = Map::new();
        for (name, value) in content.as_object().expect("a content has fields") {
            let defaulted = self.stored.get(name).filter(|_| stored);
            if let Some(own) = defaulted.or_else(|| self.fields.get(name)) {
                fields.extend(own.as_object().expect("fields").clone());
            } else {
                let value = value.as_str().and_then(|value| self.values.get(value)).expect("a translation");
                fields.insert(name.clone(), json!(value));
            }
        }
        Value::Object(fields)
    }
}

impl Row {
    #[expect(clippy::too_many_arguments, reason = "the parts of a cell")]
    fn cell(
        &self,
        enforcement: Enforcement,
        way: Way,
        name: String,
        root: &str,
        plural: &str,
        place: Place,
        bare: &Value,
    ) -> Option<Cell> {
        let expected = *find(&self.answers, enforcement, way).expect("an answer for each cell");
        // Only an object that is there can be replaced.
        if expected == Answer::Impossible || (way == Way::Replace && self.before.is_empty()) {
            return None;
        }
        let mut bare = bare.clone();
        bare["metadata"] = json!({"name": name, "namespace": "default"});
        Some(Cell {
            enforcement,
            way,
            name,
            about: format!("{} at {place:?}", self.situation),
            collection: format!("{root}/namespaces/default/{plural}"),
            place,
            hidden: &[],
            bare,
            before: self.before.iter().cloned().map(Before::parts).collect(),
            manifest: self.manifest.clone(),
            then: Value::Null,
            expected,
            says: None,
        })
    }
}

impl Before {
    fn parts(self) -> (Author, Value) {
        match self {
            Self::Own(content) => (Author::Own, content),
            Self::Manager(content) => (Author::Manager, content),
            Self::Controller(content) => (Author::Controller, content),
        }
    }
}

impl Cell {
    /// Returns the path of the object.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    /// Returns true if the place is below `status`.
    pub(super) fn is_of_status(&self) -> bool {
        self.place.root() == "status"
    }

    /// Returns the object with this content at the place.
    pub(super) fn object(&self, content: &Value) -> Value {
        let mut object = self.bare.clone();
        self.place.merge(&mut object, content);
        object
    }

    pub(super) fn manifest(&self) -> Value {
        self.object(&self.manifest)
    }

    /// Returns the content of the place of an object.
    pub(super) fn content(&self, object: &Value) -> Option<Value> {
        let mut content = self.place.content(object)?;
        if let Some(fields) = content.as_object_mut() {
            fields.retain(|name, _| !self.hidden.contains(&name.as_str()));
        }
        Some(content)
    }
}
