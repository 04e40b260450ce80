//! The walk from the root to the objects of a place, as expressions.

use crate::cel::{concat, pointer, printable, singular, text, texts, token};
use crate::comprehension::{Comprehension, row_of};
use crate::group::Step;
use crate::manifests::{self, MANIFESTS};
use crate::root::{Purpose, Root};
use crate::value::UserValue;
use kube_unions_core::union::ItemKey;

/// Returns the number of steps that lead to several objects.
pub(crate) fn collections(steps: &[Step<'_>]) -> usize {
    steps.iter().filter(|step| !matches!(step, Step::Field(_))).count()
}

/// Returns the type of an item into which the next step of a path goes.
fn kind_of(next: &[Step<'_>]) -> &'static str {
    if matches!(next.first(), Some(Step::Items(_))) { "list" } else { "map" }
}

/// A walk along a path, which has come to an object or to fields of it.
#[derive(Debug)]
pub(crate) struct RowWalk<'p> {
    purpose: Purpose,
    /// True if the schema tells the types of everything on the path.
    pub(crate) typed: bool,
    /// The root, or the item or value that was entered last.
    object: UserValue,
    /// The fields below it.
    fields: Vec<FieldRef<'p>>,
    /// The word for what is at their end.
    word: String,
    /// Texts and expressions that make a JSON Pointer, or a path for people.
    path: Vec<String>,
    /// The expressions that begin the text of the keys as they are.
    begin: Vec<String>,
    /// The expressions of the keys.
    keys: Vec<String>,
    /// True behind a list without keys, where nothing is identified.
    keyless: bool,
    /// The field sets in which the walk began.
    pub(crate) manifests: String,
    /// The steps in them.
    field_set: Vec<String>,
    /// The number of steps to what a field manager owns as a whole. Field sets go no deeper.
    pub(crate) owned_at: Option<usize>,
}

#[derive(Debug, Clone)]
enum FieldRef<'p> {
    Named(&'p str),
    /// One of several, which a variable names.
    AnyOf(String),
}

impl<'p> RowWalk<'p> {
    pub(crate) fn new(root: &Root<'p>, object: &UserValue, tag: Option<String>, purpose: Purpose) -> Self {
        Self {
            purpose,
            typed: true,
            object: object.clone(),
            fields: Vec::new(),
            word: String::new(),
            path: root.path.iter().cloned().collect(),
            begin: tag.into_iter().collect(),
            keys: Vec::new(),
            keyless: false,
            manifests: MANIFESTS.to_owned(),
            field_set: Vec::new(),
            owned_at: None,
        }
    }

    /// Returns the walk that goes on from a row that [`row`](Self::row) has made.
    pub(crate) fn below(root: &Root<'p>, row: &str, tag: Option<String>, purpose: Purpose) -> Self {
        let mut walk = Self::new(root, &UserValue::new(format!("{row}.object")), tag, purpose);
        walk.begin.push(format!("{row}.key"));
        Self { path: vec![format!("{row}.path")], manifests: format!("{row}.manifests"), ..walk }
    }

    /// Returns a row, so deep in calls, for the object that was entered last, from which several walks go on.
    pub(crate) fn row(&self, depth: usize) -> String {
        let keys: Vec<String> = self.keys.iter().map(|key| outer_key(key)).collect();
        let manifests = format!(
            "{}.map(it, {{\n{}\"by\": it.by, \"fields\": it.fields{}.orValue(dyn({{}}))}})",
            self.manifests,
            "  ".repeat(depth.saturating_add(2)),
            self.field_set()
        );
        let (path, key, object) = (self.path(), keys.join(" + "), self.object.text().to_owned());
        row_of([("path", path), ("key", key), ("object", object), ("manifests", manifests)], depth)
    }

    /// Steps to the end of a path. Returns the comprehensions over the objects there. `is_map`: they make a map by key, and are one.
    pub(crate) fn descend(&mut self, steps: &[Step<'p>], is_map: bool) -> Comprehension {
        let mut comprehension = Comprehension::default();
        for (position, step) in steps.iter().enumerate() {
            let next = steps.get(position.saturating_add(1)..).unwrap_or_default();
            match step {
                Step::Field(name) => self.enter_field(name),
                Step::AnyOf(names) => {
                    let field = comprehension.item(if kind_of(next) == "list" { "list" } else { "field" });
                    let function = if is_map { "transformMapEntry(i, " } else { "map(" };
                    comprehension.calls.push(format!("{}.{function}{field},", texts(names.iter().copied())));
                    self.enter_any(field, names);
                    self.word = step.word().unwrap_or_default();
                }
                Step::Items(_) | Step::Values => {
                    let item = comprehension.item(&singular(&self.word));
                    let index = comprehension.index(step);
                    let function = match (is_map, step) {
                        (true, Step::Values) => "transformMap",
                        (true, _) => "transformMapEntry",
                        (false, _) => "transformList",
                    };
                    let is_guarded = !self.typed && collections(next) > 0;
                    let guard = if is_guarded { format!(" type({item}) == {},", kind_of(next)) } else { String::new() };
                    let list = self.collection(step);
                    comprehension.calls.push(format!("{}.{function}({index}, {item},{guard}", list.text()));
                    self.enter(step, UserValue::new(item), &index);
                }
            }
        }
        // `transformMap` keeps the keys of a map.
        comprehension.key = (is_map && !steps.contains(&Step::Values)).then(|| self.key());
        comprehension
    }

    /// Steps into a field.
    pub(crate) fn enter_field(&mut self, name: &'p str) {
        name.clone_into(&mut self.word);
        self.extend_path(vec![text(&pointer(name))], text(name));
        self.field_set.push(manifests::field_step(name));
        self.fields.push(FieldRef::Named(name));
    }

    /// Steps into that one of several fields which the variable `field` names.
    fn enter_any(&mut self, field: String, names: &[&str]) {
        // A name without a slash ends at one, and needs neither escapes nor quotes.
        let is_plain = names.iter().all(|name| !name.contains(['~', '/']));
        let (token, key) =
            if is_plain { (field.clone(), format!("{field} + \"/\"")) } else { (token(&field), field.clone()) };
        self.extend_path(vec![text("/"), token], field.clone());
        self.keys.push(key);
        self.field_set.push(manifests::value_step(&field));
        self.fields.push(FieldRef::AnyOf(field));
    }

    /// Adds a field to the path: the parts of its pointer, or its name.
    fn extend_path(&mut self, pointer: Vec<String>, name: String) {
        match self.purpose {
            Purpose::Mutation => self.path.extend(pointer),
            Purpose::Validation if self.path.is_empty() => self.path.push(name),
            Purpose::Validation => self.path.extend([text("."), name]),
        }
    }

    /// Steps into the items or values of the collection at the end of the fields.
    fn enter(&mut self, step: &Step<'p>, item: UserValue, index: &str) {
        let (token, shown) = match step {
            Step::Values => (token(index), printable(index)),
            Step::Items(_) | Step::Field(_) | Step::AnyOf(_) => {
                (format!("string({index})"), format!("string({index})"))
            }
        };
        match self.purpose {
            Purpose::Mutation => self.path.extend([text("/"), token]),
            Purpose::Validation => self.path.extend([text("["), shown, text("]")]),
        }
        if let Step::Items(keys) = step {
            self.keyless |= keys.is_empty();
            if !self.keyless {
                let value = |name: &str| if self.typed { item.field(name) } else { item.find(name).or("\"\"") };
                self.keys.extend(keys.iter().map(|key| key_text(key, &item, self.typed)));
                self.field_set.push(manifests::item_step(keys, self.typed, value));
            }
        } else {
            self.keys.extend((!self.keyless).then(|| index.to_owned()));
            self.field_set.push(manifests::value_step(index));
        }
        self.fields.clear();
        self.object = item;
    }

    /// Returns true if the walk began at the object or at its root, and not at a row.
    pub(crate) fn begins_at_object(&self) -> bool {
        self.manifests == MANIFESTS
    }

    /// Returns the variable that names one of several fields.
    pub(crate) fn any_of(&self) -> Option<&str> {
        self.fields.iter().find_map(|field| if let FieldRef::AnyOf(name) = field { Some(&**name) } else { None })
    }

    /// Returns the object at the end of the fields.
    pub(crate) fn object(&self) -> UserValue {
        self.fields.iter().fold(self.object.clone(), |object, field| match field {
            FieldRef::Named(name) => object.find(name),
            FieldRef::AnyOf(name) if self.fields.len() == 1 => object.field_at(name),
            FieldRef::AnyOf(name) => object.wrapped().find_at(name),
        })
    }

    /// Returns true if there is an object at the end of the fields. `None`: there are no fields.
    pub(crate) fn is_there(&self, nullable: bool) -> Option<String> {
        let object = self.object();
        Some(match &self.fields[..] {
            [] => return None,
            [FieldRef::AnyOf(name)] => {
                let is_not_null = if nullable { format!(" && {} != null", object.text()) } else { String::new() };
                format!("{name} in {}{is_not_null}", self.object.text())
            }
            _ if nullable => object.is_not_null(),
            [FieldRef::Named(name)] => self.object.has(&[*name]),
            _ => object.is_there(),
        })
    }

    /// Returns the list or map at the end of the fields, into which a step leads, empty if there is none.
    fn collection(&self, step: &Step<'p>) -> UserValue {
        let (kind, empty) = if *step == Step::Values { ("map", "{}") } else { ("list", "[]") };
        match &self.fields[..] {
            [] => self.object.clone(),
            [FieldRef::AnyOf(name)] => self.object.find_at(name).or(empty),
            _ if self.typed => self.object().or(empty),
            fields => {
                let name = |field: &FieldRef<'p>| if let FieldRef::Named(name) = field { Some(*name) } else { None };
                let names: Vec<&str> = fields.iter().filter_map(name).collect();
                self.object.find_guarded(&names, kind).or(empty)
            }
        }
    }

    pub(crate) fn path(&self) -> String {
        concat(&self.path)
    }

    /// Returns the steps in a field set, at most to what is owned as a whole.
    pub(crate) fn field_set(&self) -> String {
        self.field_set.iter().take(self.owned_at.unwrap_or(usize::MAX)).map(String::as_str).collect()
    }

    /// Returns the text of the keys. Numbers end with a colon, and texts but the last are quoted, so that
    /// different keys have different texts.
    pub(crate) fn key(&self) -> String {
        let mut outer = self.keys.clone();
        let last = outer.pop();
        let outer = outer.iter().map(|key| outer_key(key));
        let texts: Vec<String> = self.begin.iter().cloned().chain(outer).chain(last).collect();
        if texts.is_empty() { "\"\"".to_owned() } else { texts.join(" + ") }
    }
}

/// Returns the text of a key before others.
fn outer_key(key: &str) -> String {
    if key.starts_with("string(") {
        format!("{key} + \":\"")
    } else if key.ends_with('"') {
        key.to_owned()
    } else {
        format!("strings.quote({key})")
    }
}

fn key_text(key: &ItemKey<'_>, item: &UserValue, typed: bool) -> String {
    match (typed, key.is_string) {
        (true, true) => item.field(key.name).text().to_owned(),
        (true, false) => format!("string({})", item.field(key.name).text()),
        (false, _) => item.find(key.name).key(),
    }
}
