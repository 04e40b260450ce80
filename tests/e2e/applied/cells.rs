//! The cells of the matrix: each row at each place, by each way, with each enforcement.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::place::Place;
use super::player::Case;
use super::rows::{Answer, Enforcement, OwnPlace, Preset, Row, Suite, Way, group, suites};
use crate::support::cluster::some_or_all;

/// A situation at one place, by one way, with one enforcement.
pub(super) struct Cell {
    pub(super) enforcement: Enforcement,
    /// The suite, the place and the situation.
    pub(super) about: String,
    pub(super) case: Case,
    /// The content of the place in the end.
    pub(super) then: Value,
    pub(super) expected: Answer,
    /// A part of each refusal.
    pub(super) says: Option<String>,
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
                    let is_told = |place: usize| match way {
                        Way::Helm3 | Way::Helm4 => enforcement == Enforcement::Webhook,
                        Way::ServerSide | Way::ClientSide | Way::Replace => {
                            place == 0 || (number + place + turn).is_multiple_of(3)
                        }
                    };
                    let own = self.places.iter().map(|place| {
                        place.cell(self.form.as_deref().expect("places are of a form"), row, enforcement, *way)
                    });
                    let presets = self.presets.iter().map(|preset| preset.cell(row, enforcement, *way));
                    for (place, cell) in own.chain(presets).enumerate() {
                        let Some(mut cell) = cell.filter(|_| some_or_all(is_told(place), true)) else { continue };
                        let name = format!("{file}-{number}-{place}-{way:?}-{enforcement:?}").to_lowercase();
                        cell.about = format!("{file}: {}, at {}", row.situation, cell.case.place.pointer);
                        cell.case.by_tool = place == 0 || place >= self.places.len();
                        cell.case.bare["metadata"] = json!({"name": name, "namespace": "default"});
                        cell.case.name = name;
                        cells.push(cell);
                    }
                }
            }
        }
        cells
    }
}

impl OwnPlace {
    fn at(self, form: &str) -> Place {
        let (pointer, keys) = match self {
            Self::Struct => (format!("/spec/{form}"), json!({})),
            Self::Item => (format!("/spec/{form}Items/0"), json!({"name": "x"})),
            Self::QuotedItem => (format!("/spec/{form}Items/0"), json!({"name": "x\"y\\'z`:,{}"})),
            Self::ShortItem => (format!("/spec/{form}Ports/0"), json!({"port": 80, "protocol": null})),
            Self::Value => (format!("/spec/{form}Values/x\"y\\'z.:,{{}}"), json!({})),
            Self::Status => (format!("/status/{form}"), json!({})),
        };
        Place::new(&pointer, &keys)
    }

    fn cell(self, form: &str, row: &Row, enforcement: Enforcement, way: Way) -> Option<Cell> {
        if self == Self::Status && way != Way::ServerSide {
            return None;
        }
        let group = group(enforcement);
        let bare = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing"});
        let is_list = matches!(self, Self::Item | Self::QuotedItem | Self::ShortItem);
        let then = row.rules_then.as_ref().filter(|_| enforcement == Enforcement::Rules).or(row.then.as_ref());
        let cell = row.cell(enforcement, way, is_list, &bare, "things", self.at(form))?;
        Some(Cell {
            says: find(&row.says, enforcement, way).cloned(),
            then: then.unwrap_or(&row.manifest).clone(),
            ..cell
        })
    }
}

impl Preset {
    fn cell(&self, row: &Row, enforcement: Enforcement, way: Way) -> Option<Cell> {
        if enforcement == Enforcement::Rules {
            return None;
        }
        let mut cell = row.cell(enforcement, way, self.replaces, &self.object, &self.plural, self.at.clone())?;
        for (_, content) in &mut cell.case.before {
            *content = self.translate(content, false);
        }
        cell.then = self.translate(row.then.as_ref().unwrap_or(&row.manifest), true);
        cell.case.manifest = self.translate(&cell.case.manifest, false);
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
    /// Returns the cell of a kind, whose object has no name yet. `None`: the situation cannot arise. `replaces`: the item of a list is
    /// replaced as a whole.
    fn cell(
        &self,
        enforcement: Enforcement,
        way: Way,
        replaces: bool,
        bare: &Value,
        plural: &str,
        place: Place,
    ) -> Option<Cell> {
        let expected = *find(&self.answers, enforcement, way).expect("an answer for each cell");
        // Only an object that is there can be replaced.
        if expected == Answer::Impossible || (way == Way::Replace && self.before.is_empty()) {
            return None;
        }
        let of_list = self.answers.get(&format!("{} lists", of(enforcement, way))).filter(|_| replaces);
        let of_fields = self.answers.get(&format!("{} fields", of(enforcement, way))).filter(|_| place.is_of_fields());
        let api_version = bare["apiVersion"].as_str().expect("an object has an API version");
        let case = Case {
            way,
            name: String::new(),
            collection: format!("/apis/{api_version}/namespaces/default/{plural}"),
            place,
            bare: bare.clone(),
            before: self.before.iter().flatten().map(|(author, content)| (*author, content.clone())).collect(),
            manifest: self.manifest.clone(),
            by_tool: false,
        };
        let expected = *of_list.or(of_fields).unwrap_or(&expected);
        Some(Cell { enforcement, about: String::new(), case, then: Value::Null, expected, says: None })
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
