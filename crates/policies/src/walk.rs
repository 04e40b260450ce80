//! The path from the root to the objects of a place, as expressions.

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

/// The walk along a path. It stands at fields of an object, or at an object itself.
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
    /// Texts and expressions that make a JSON Pointer to the object, or its path for people.
    path: Vec<String>,
    /// The expressions of the keys that identify the object.
    keys: Vec<String>,
    /// The expressions that begin the text of the keys as they are.
    begin: Vec<String>,
    /// True behind a list without keys. What is in it has no keys, not even in a map.
    keyless: bool,
    /// The field sets in which the steps to the object begin.
    pub(crate) manifests: String,
    /// The steps to the object in a field set.
    field_set: Vec<String>,
    /// The number of steps to what a field manager owns as a whole: its field set goes no deeper.
    pub(crate) owned_at: Option<usize>,
}

/// A field on a path.
#[derive(Debug, Clone)]
enum FieldRef<'p> {
    Named(&'p str),
    /// One of several, which a variable names. `is_plain`: none of their names needs an escape in a pointer.
    AnyOf {
        name: String,
        is_plain: bool,
    },
}

impl<'p> RowWalk<'p> {
    pub(crate) fn new(root: &Root<'p>, object: &UserValue, purpose: Purpose) -> Self {
        Self {
            purpose,
            typed: true,
            object: object.clone(),
            fields: Vec::new(),
            word: String::new(),
            path: root.path.iter().cloned().collect(),
            keys: Vec::new(),
            begin: Vec::new(),
            keyless: false,
            manifests: MANIFESTS.to_owned(),
            field_set: Vec::new(),
            owned_at: None,
        }
    }

    /// Returns the walk that goes on from a row that [`row`](Self::row) has made.
    pub(crate) fn below(root: &Root<'p>, row: &str, purpose: Purpose) -> Self {
        let (path, begin) = (vec![format!("{row}.path")], vec![format!("{row}.key")]);
        let manifests = format!("{row}.manifests");
        Self { path, begin, manifests, ..Self::new(root, &UserValue::new(format!("{row}.object")), purpose) }
    }

    /// Returns a row for the object that was entered last, from which other paths go on. It is so deep in calls.
    pub(crate) fn row(&self, depth: usize) -> String {
        let fields = [
            format!("\"path\": dyn({})", self.path()),
            format!("\"key\": dyn({})", self.outer_keys(&self.all_keys()).collect::<Vec<_>>().join(" + ")),
            format!("\"object\": dyn({})", self.object.text()),
            format!(
                "\"manifests\": dyn({}.map(it, {{\n{}\"by\": it.by, \"fields\": it.fields{}.orValue(dyn({{}}))}}))",
                self.manifests,
                "  ".repeat(depth.saturating_add(2)),
                self.in_field_set()
            ),
        ];
        row_of(&fields, depth)
    }

    /// Returns the name of the object that was entered last.
    pub(crate) fn item(&self) -> &str {
        self.object.text()
    }

    /// Begins the keys with a text, which tells the objects at the end of several paths apart.
    pub(crate) fn tag(&mut self, tag: &str) {
        self.begin.splice(..0, (!tag.is_empty()).then(|| tag.to_owned()));
    }

    /// Steps into a field.
    pub(crate) fn enter_field(&mut self, name: &'p str) {
        name.clone_into(&mut self.word);
        self.fields.push(FieldRef::Named(name));
    }

    /// Steps to the end of a path. Returns the comprehensions over the objects there. `is_map`: they make a map by key, of at most one list
    /// or map.
    pub(crate) fn descend(&mut self, steps: &[Step<'p>], is_map: bool) -> Comprehension {
        let mut comprehension = Comprehension::default();
        for (position, step) in steps.iter().enumerate() {
            let next = steps.get(position.saturating_add(1)..).unwrap_or_default();
            match step {
                Step::Field(name) => self.enter_field(name),
                Step::AnyOf(names) => {
                    let field = comprehension.item(if kind_of(next) == "list" { "list" } else { "field" });
                    comprehension.call(self.choose(step, names, field, is_map));
                }
                Step::Items(_) | Step::Values => {
                    let item = comprehension.item(&singular(&self.word));
                    let index = comprehension.index(step);
                    let guard = if self.typed || collections(next) == 0 {
                        String::new()
                    } else {
                        format!(" type({item}) == {},", kind_of(next))
                    };
                    let function = match (is_map, step) {
                        (true, Step::Values) => "transformMap",
                        (true, _) => "transformMapEntry",
                        (false, _) => "transformList",
                    };
                    let list = self.collection(step);
                    comprehension.call(format!("{}.{function}({index}, {item},{guard}", list.text()));
                    self.enter(step, UserValue::new(item), &index);
                }
            }
        }
        // `transformMap` leaves the keys of a map as they are.
        comprehension.key = (is_map && !steps.contains(&Step::Values)).then(|| self.key());
        comprehension
    }

    /// Steps into one of several fields, which `field` names. Returns the call over their names.
    fn choose(&mut self, step: &Step<'p>, names: &[&'p str], field: String, is_map: bool) -> String {
        let function = if is_map { "transformMapEntry(i, " } else { "map(" };
        let call = format!("{}.{function}{field},", texts(names.iter().copied()));
        self.word = step.word().unwrap_or_default();
        let is_plain = names.iter().all(|name| !name.contains(['~', '/']));
        self.fields.push(FieldRef::AnyOf { name: field, is_plain });
        call
    }

    /// Returns the object at the end of the fields.
    pub(crate) fn object(&self) -> UserValue {
        self.fields.iter().fold(self.object.clone(), |object, field| match field {
            FieldRef::Named(name) => object.find(name),
            FieldRef::AnyOf { name, .. } if self.fields.len() == 1 => object.field_at(name),
            FieldRef::AnyOf { name, .. } => object.wrapped().find_at(name),
        })
    }

    /// Returns true if there is an object at the end of the fields. `None`: there are no fields, and so there is one.
    pub(crate) fn is_there(&self, nullable: bool) -> Option<String> {
        let object = self.object();
        Some(match &self.fields[..] {
            [] => return None,
            [FieldRef::AnyOf { name, .. }] => {
                let is_not_null = if nullable { format!(" && {} != null", object.text()) } else { String::new() };
                format!("{name} in {}{is_not_null}", self.object.text())
            }
            _ if nullable => object.is_not_null(),
            [FieldRef::Named(name)] => self.object.has(&[*name]),
            _ => object.is_there(),
        })
    }

    /// Returns the list or map at the end of the fields into which a step leads, empty if there is none.
    fn collection(&self, step: &Step<'p>) -> UserValue {
        let (kind, empty) = if *step == Step::Values { ("map", "{}") } else { ("list", "[]") };
        match &self.fields[..] {
            [] => return self.object.clone(),
            [FieldRef::AnyOf { name, .. }] => return self.object.find_at(name).or(empty),
            _ if self.typed => return self.object().or(empty),
            _ => {}
        }
        let name = |field: &FieldRef<'p>| if let FieldRef::Named(name) = field { Some(*name) } else { None };
        let mut outer: Vec<&str> = self.fields.iter().filter_map(name).collect();
        let last = text(outer.pop().unwrap_or_default());
        let found = self.object.guarded(&outer);
        UserValue::optional(format!("{found}.map(o, {last} in o && type(o[{last}]) == {kind}, o[{last}])[?0]"))
            .or(empty)
    }

    /// Steps into the items or values of the collection at the end of the fields.
    fn enter(&mut self, step: &Step<'p>, item: UserValue, index: &str) {
        self.field_set = self.whole_field_set();
        self.keys = self.all_keys();
        self.path = self.parts();
        self.fields.clear();
        let (pointer, shown) = match step {
            Step::Values => (token(index), printable(index)),
            Step::Items(_) | Step::Field(_) | Step::AnyOf(_) => {
                (format!("string({index})"), format!("string({index})"))
            }
        };
        self.path.extend(match self.purpose {
            Purpose::Mutation => vec![text("/"), pointer],
            Purpose::Validation => vec![text("["), shown, text("]")],
        });
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
        self.object = item;
    }

    /// Returns the parts of the path to the end of the fields.
    fn parts(&self) -> Vec<String> {
        let mut parts = self.path.clone();
        for field in &self.fields {
            match self.purpose {
                Purpose::Mutation => parts.extend(field.pointer()),
                Purpose::Validation if parts.is_empty() => parts.push(field.name()),
                Purpose::Validation => parts.extend([text("."), field.name()]),
            }
        }
        parts
    }

    pub(crate) fn path(&self) -> String {
        concat(&self.parts())
    }

    /// Returns the steps in a field set to the end of the fields, or to what is owned as a whole.
    pub(crate) fn in_field_set(&self) -> String {
        self.whole_field_set().into_iter().take(self.owned_at.unwrap_or(usize::MAX)).collect()
    }

    fn whole_field_set(&self) -> Vec<String> {
        let steps = self.fields.iter().map(|field| match field {
            FieldRef::Named(name) => manifests::field_step(name),
            FieldRef::AnyOf { name, .. } => manifests::value_step(name),
        });
        self.field_set.iter().cloned().chain(steps).collect()
    }

    /// Returns the text of the keys. Numbers end with a colon, and texts but the last are quoted, so that
    /// different keys have different texts.
    pub(crate) fn key(&self) -> String {
        let mut outer = self.all_keys();
        let last = outer.pop();
        let texts: Vec<String> = self.outer_keys(&outer).chain(last).collect();
        if texts.is_empty() { "\"\"".to_owned() } else { texts.join(" + ") }
    }

    fn all_keys(&self) -> Vec<String> {
        self.keys.iter().cloned().chain(self.fields.iter().filter_map(FieldRef::key)).collect()
    }

    /// Returns the texts of keys before others.
    fn outer_keys(&self, keys: &[String]) -> impl Iterator<Item = String> {
        self.begin.iter().cloned().chain(keys.iter().map(|key| outer_key(key)))
    }
}

impl FieldRef<'_> {
    /// Returns the name, an expression.
    fn name(&self) -> String {
        match self {
            Self::Named(name) => text(name),
            Self::AnyOf { name, .. } => name.clone(),
        }
    }

    /// Returns the parts of the pointer to the field in its object.
    fn pointer(&self) -> Vec<String> {
        match self {
            Self::Named(name) => vec![text(&pointer(name))],
            Self::AnyOf { name, is_plain: true } => vec![text("/"), name.clone()],
            Self::AnyOf { name, is_plain: false } => vec![text("/"), token(name)],
        }
    }

    /// Returns the expression that tells the objects below several fields apart.
    fn key(&self) -> Option<String> {
        match self {
            Self::Named(_) => None,
            Self::AnyOf { name, is_plain: true } => Some(format!("{name} + \"/\"")),
            Self::AnyOf { name, is_plain: false } => Some(name.clone()),
        }
    }
}

/// Returns the text of a key before others.
fn outer_key(key: &str) -> String {
    if key.starts_with("string(") {
        format!("{key} + \":\"")
    } else if key.starts_with('"') || key.ends_with('"') {
        key.to_owned()
    } else {
        format!("strings.quote({key})")
    }
}

/// Returns the text of the key of an item.
fn key_text(key: &ItemKey<'_>, item: &UserValue, typed: bool) -> String {
    if typed {
        let value = item.field(key.name);
        return if key.is_string { value.text().to_owned() } else { format!("string({})", value.text()) };
    }
    // A number and its text are different keys. A list or map is no key.
    let value = item.find(key.name).or("null");
    format!(
        "[{}].map(k, type(k) == string ? \":\" + string(k) :\n    \
         type(k) == int || type(k) == double || type(k) == bool ? \"=\" + string(k) : \"\")[0]",
        value.text()
    )
}
