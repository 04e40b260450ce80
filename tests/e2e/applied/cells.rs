//! The cells of the matrix: each row at each place, by each way, with each enforcement.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::place::Place;
use super::rows::{Answer, Before, Enforcement, OwnPlace, Preset, Row, Suite, Way, group, suites};
use crate::cluster::some_or_all;

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
    /// True if kubectl writes it, and not a client that sends the same requests.
    pub(super) by_tool: bool,
}

/// The author of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Author {
    Own,
    Manager,
    Controller,
}

/// Returns every cell of the matrix.
pub(super) fn cells() -> Vec<Cell> {
    suites().iter().flat_map(|(path, suite)| suite.cells(path.trim_end_matches(".yaml"))).collect()
}

impl Suite {
    /// Returns each row at the first place, by each way. At every other place, one of three ways plays a row, another one at the next
    /// place. Helm 3 sends the same whatever enforces unions, and Helm 4 what server-side apply does.
    fn cells(&self, file: &str) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            for enforcement in [Enforcement::Webhook, Enforcement::Policies, Enforcement::Rules] {
                for (turn, way) in self.ways.iter().enumerate() {
                    let name = |place: usize| format!("{file}-{number}-{place}-{way:?}-{enforcement:?}").to_lowercase();
                    let is_told = |place: usize| match way {
                        Way::Helm3 | Way::Helm4 => enforcement == Enforcement::Webhook,
                        Way::ServerSide | Way::ClientSide | Way::Replace => {
                            place == 0 || (number + place + turn).is_multiple_of(3)
                        }
                    };
                    let plays = |place: usize| some_or_all(is_told(place), true);
                    let by_tool = |place: usize, cell: Cell| Cell { by_tool: place == 0 || cell.is_built_in(), ..cell };
                    let own = self.places.iter().enumerate().filter(|(place, _)| plays(*place));
                    for (position, place) in own {
                        let form = self.form.as_deref().expect("places are of a form");
                        let cell = place.cell(form, row, enforcement, *way, name(position));
                        cells.extend(cell.map(|cell| by_tool(position, cell)));
                    }
                    let presets = (self.places.len()..).zip(&self.presets).filter(|(place, _)| plays(*place));
                    for (position, preset) in presets {
                        let cell = preset.cell(row, enforcement, *way, name(position));
                        cells.extend(cell.map(|cell| by_tool(position, cell)));
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
        let then = row.rules_then.as_ref().filter(|_| enforcement == Enforcement::Rules).or(row.then.as_ref());
        let cell = row.cell(enforcement, way, name, &format!("/apis/{group}/v1"), "things", self.at(form), &bare)?;
        Some(Cell {
            hidden: if self == Self::ShortItem { &["protocol"] } else { &[] },
            says: find(&row.says, enforcement, way).cloned(),
            then: then.unwrap_or(&row.manifest).clone(),
            expected: row.of_list(enforcement, way).filter(|_| is_list).unwrap_or(cell.expected),
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
        cell.expected = row.of_list(enforcement, way).filter(|_| self.replaces).unwrap_or(cell.expected);
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
            about: format!("{}, at {place}", self.situation),
            collection: format!("{root}/namespaces/default/{plural}"),
            place,
            hidden: &[],
            bare,
            before: self.before.iter().cloned().map(Before::parts).collect(),
            manifest: self.manifest.clone(),
            then: Value::Null,
            expected,
            says: None,
            by_tool: true,
        })
    }
}

impl Row {
    /// Returns the answer where the item of a list is replaced as a whole, if it is another.
    fn of_list(&self, enforcement: Enforcement, way: Way) -> Option<Answer> {
        self.answers.get(&format!("{} lists", of(enforcement, way))).copied()
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

    /// Returns true if kubectl applies the kind by a strategic merge patch.
    fn is_built_in(&self) -> bool {
        matches!(self.bare["kind"].as_str(), Some("Deployment" | "StatefulSet" | "Ingress"))
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
