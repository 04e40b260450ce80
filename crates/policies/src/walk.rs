//! The path from the root to the objects of a place, as expressions.

use crate::cel::{self, concat, pointer, printable, text, token};
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
pub(crate) fn kind_of(next: &[Step<'_>]) -> &'static str {
    if matches!(next.first(), Some(Step::Items(_))) { "list" } else { "map" }
}

#[derive(Debug, Clone)]
pub(crate) enum FieldRef<'p> {
    Named(&'p str),
    /// The one that an expression names, and true if no name needs an escape in a pointer.
    AnyOf(String, bool),
}

#[derive(Debug)]
pub(crate) struct RowWalk<'p> {
    purpose: Purpose,
    /// The innermost object so far.
    pub(crate) object: UserValue,
    /// The fields below it.
    pub(crate) fields: Vec<FieldRef<'p>>,
    /// The word for what is at their end.
    pub(crate) word: String,
    /// Texts and expressions that make a JSON Pointer, or a path for people.
    path: Vec<String>,
    /// The expressions of the keys.
    pub(crate) keys: Vec<String>,
    /// The expressions that begin the text of the keys as they are.
    pub(crate) begin: Vec<String>,
    /// The field sets that the steps lead into.
    pub(crate) manifests: String,
    /// True behind a list without keys.
    keyless: bool,
    /// The steps in a field set.
    claimed: Vec<String>,
    /// The number of steps to what a field manager owns as a whole.
    pub(crate) owned_at: Option<usize>,
}

impl<'p> RowWalk<'p> {
    pub(crate) fn new(root: &Root<'p>, object: &UserValue, purpose: Purpose) -> Self {
        Self {
            purpose,
            object: object.clone(),
            fields: Vec::new(),
            word: String::new(),
            path: root.path.iter().cloned().collect(),
            keys: Vec::new(),
            begin: Vec::new(),
            manifests: MANIFESTS.to_owned(),
            keyless: false,
            claimed: Vec::new(),
            owned_at: None,
        }
    }

    /// Returns the path that goes on from a row that [`row`](Self::row) has made.
    pub(crate) fn below(root: &Root<'p>, row: &str, purpose: Purpose) -> Self {
        let (path, begin) = (vec![format!("{row}.path")], vec![format!("{row}.key")]);
        let manifests = format!("{row}.manifests");
        Self { path, begin, manifests, ..Self::new(root, &UserValue::new(format!("{row}.object")), purpose) }
    }

    /// Returns a row for the object that was entered last, from which other paths go on.
    pub(crate) fn row(&self, indent: &str) -> String {
        let steps = self.steps_claimed();
        let fields = [
            format!("\"path\": dyn({})", self.path()),
            format!("\"key\": dyn({})", self.outer_keys(&self.all_keys()).collect::<Vec<_>>().join(" + ")),
            format!("\"object\": dyn({})", self.object.text()),
            format!(
                "\"manifests\": dyn({}.map(it, {{\n{indent}    \"by\": it.by, \"fields\": it.fields{steps}.orValue(dyn({{}}))}}))",
                self.manifests
            ),
        ];
        format!("{{\n{indent}  {}\n{indent}}}", fields.join(&format!(",\n{indent}  ")))
    }

    /// Steps into all lists, maps and choices of fields of a path. `is_map`: what is innermost is made a map by key. Returns the calls that
    /// lead to the objects, to which the row of an object and the closing parentheses are missing, their number, and true if the
    /// innermost one wants an entry of a map: a key and a row.
    pub(crate) fn descend(&mut self, steps: &[Step<'p>], is_map: bool, typed: bool) -> (String, usize, bool) {
        let mut code = String::new();
        let (mut depth, mut lists) = (0_usize, 0_usize);
        let mut names: Vec<String> = Vec::new();
        let mut has_entries = false;
        for (position, step) in steps.iter().enumerate() {
            let next = steps.get(position.saturating_add(1)..).unwrap_or_default();
            let mut item = match step {
                Step::Field(name) => {
                    self.fields.push(FieldRef::Named(name));
                    (*name).clone_into(&mut self.word);
                    continue;
                }
                Step::AnyOf(_) => if kind_of(next) == "list" { "list" } else { "field" }.to_owned(),
                Step::Items(_) | Step::Values => cel::singular(&self.word),
            };
            while names.contains(&item) {
                item.push('2');
            }
            names.push(item.clone());
            if depth > 0 {
                // The steps of one object are on one line.
                code.truncate(code.trim_end().len());
                code.push('\n');
                code.push_str(&"  ".repeat(depth));
            }
            depth = depth.saturating_add(1);
            let innermost = collections(next) == 0;
            match step {
                Step::Field(_) => {}
                Step::AnyOf(fields) => {
                    let (function, index) = if is_map { ("transformMapEntry", "i, ") } else { ("map", "") };
                    has_entries |= is_map;
                    code.extend([format!("{}.{function}({index}{item}, ", cel::texts(fields.iter().copied()))]);
                    self.word = step.word().unwrap_or_default();
                    self.fields.push(FieldRef::AnyOf(item, fields.iter().all(|name| !name.contains(['~', '/']))));
                }
                Step::Items(_) | Step::Values => {
                    let values = matches!(step, Step::Values);
                    lists = lists.saturating_add(usize::from(!values));
                    let index = match (values, depth, lists) {
                        (true, 1, _) => "name".to_owned(),
                        (true, ..) => format!("name{depth}"),
                        (false, _, 1..=4) => {
                            ["", "i", "j", "k", "l"].get(lists).copied().unwrap_or_default().to_owned()
                        }
                        (false, ..) => format!("i{lists}"),
                    };
                    code.push_str(self.collection(values, typed).text());
                    let function = match (is_map, values) {
                        (true, true) => "transformMap",
                        (true, false) => "transformMapEntry",
                        (false, _) => "transformList",
                    };
                    has_entries |= is_map && !values;
                    let guard = !typed && !innermost;
                    let guard = if guard { format!("type({item}) == {}, ", kind_of(next)) } else { String::new() };
                    code.extend([format!(".{function}({index}, {item}, {guard}")]);
                    self.enter(step, &UserValue::new(item), &index, typed);
                }
            }
        }
        (code, depth, has_entries)
    }

    /// Returns the object at the end of the fields.
    pub(crate) fn object(&self) -> UserValue {
        self.fields.iter().fold(self.object.clone(), |object, field| match field {
            FieldRef::Named(name) => object.find(name),
            FieldRef::AnyOf(name, _) if self.fields.len() == 1 => object.field_at(name),
            FieldRef::AnyOf(name, _) => object.wrapped().find_at(name),
        })
    }

    /// Returns true if there is an object at the end of the fields.
    pub(crate) fn has(&self) -> String {
        match &self.fields[..] {
            [FieldRef::Named(name)] => self.object.has(&[*name]),
            [FieldRef::AnyOf(name, _)] => format!("{name} in {}", self.object.text()),
            _ => self.object().is_there(),
        }
    }

    /// Returns the list or map at the end of the fields, empty if there is none.
    pub(crate) fn collection(&self, is_map: bool, typed: bool) -> UserValue {
        let (kind, empty) = if is_map { ("map", "{}") } else { ("list", "[]") };
        if self.fields.is_empty() {
            return self.object.clone();
        }
        if let [FieldRef::AnyOf(name, _)] = &self.fields[..] {
            return self.object.find_at(name).or(empty);
        }
        if typed {
            return self.object().or(empty);
        }
        let name = |field: &FieldRef<'p>| if let FieldRef::Named(name) = field { Some(*name) } else { None };
        let mut outer: Vec<&str> = self.fields.iter().filter_map(name).collect();
        let last = text(outer.pop().unwrap_or_default());
        let found = self.object.guarded(&outer);
        UserValue::optional(format!("{found}.map(o, {last} in o && type(o[{last}]) == {kind}, o[{last}])[?0]"))
            .or(empty)
    }

    /// Steps into the items or values of the collection at the end of the fields.
    pub(crate) fn enter(&mut self, step: &Step<'p>, item: &UserValue, index: &str, typed: bool) {
        self.claimed = self.all_claimed();
        self.path = self.parts();
        self.keys.extend(self.fields.iter().filter_map(FieldRef::key));
        self.fields.clear();
        let index_text = match step {
            Step::Values => index.to_owned(),
            Step::Items(_) | Step::Field(_) | Step::AnyOf(_) => format!("string({index})"),
        };
        self.path.extend(match self.purpose {
            Purpose::Mutation if *step == Step::Values => vec![text("/"), token(index)],
            Purpose::Mutation => vec![text("/"), index_text],
            Purpose::Validation if *step == Step::Values => vec![text("["), printable(index), text("]")],
            Purpose::Validation => vec![text("["), index_text, text("]")],
        });
        match step {
            Step::Values => {
                if !self.keyless {
                    self.keys.push(index.to_owned());
                }
                self.claimed.push(manifests::value_step(index));
            }
            Step::Items(keys) => {
                self.keyless |= keys.is_empty();
                if !self.keyless {
                    let value = |name: &str| if typed { item.field(name) } else { item.find(name).or("\"\"") };
                    self.keys.extend(keys.iter().map(|key| key_text(key, item, typed)));
                    self.claimed.push(manifests::item_step(keys, typed, value));
                }
            }
            Step::Field(_) | Step::AnyOf(_) => {}
        }
        item.clone_into(&mut self.object);
    }

    /// Returns the parts of the path to the end of the fields.
    fn parts(&self) -> Vec<String> {
        let mut parts = self.path.clone();
        for field in &self.fields {
            if self.purpose == Purpose::Validation && !parts.is_empty() {
                parts.push(text("."));
            }
            match (field, self.purpose) {
                (FieldRef::Named(name), Purpose::Mutation) => parts.push(text(&pointer(name))),
                (FieldRef::Named(name), Purpose::Validation) => parts.push(text(name)),
                (FieldRef::AnyOf(name, false), Purpose::Mutation) => parts.extend([text("/"), token(name)]),
                (FieldRef::AnyOf(name, true), Purpose::Mutation) => parts.extend([text("/"), name.clone()]),
                (FieldRef::AnyOf(name, _), Purpose::Validation) => parts.push(name.clone()),
            }
        }
        parts
    }

    pub(crate) fn path(&self) -> String {
        concat(&self.parts())
    }

    /// Returns the steps in a field set to the end of the fields, or to what is owned as a whole.
    pub(crate) fn steps_claimed(&self) -> String {
        self.all_claimed().into_iter().take(self.owned_at.unwrap_or(usize::MAX)).collect()
    }

    fn all_claimed(&self) -> Vec<String> {
        let steps = self.fields.iter().map(|field| match field {
            FieldRef::Named(name) => manifests::field_step(name),
            FieldRef::AnyOf(name, _) => manifests::value_step(name),
        });
        self.claimed.iter().cloned().chain(steps).collect()
    }

    /// Returns the text of the keys. Numbers end with a colon, and texts but the last are quoted, so that
    /// different keys have different texts.
    pub(crate) fn key(&self) -> String {
        let mut all = self.all_keys();
        let last = all.pop();
        let texts: Vec<String> = self.outer_keys(&all).chain(last).collect();
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

impl FieldRef<'_> {
    /// Returns the expression that tells the objects below several fields apart.
    pub(crate) fn key(&self) -> Option<String> {
        match self {
            Self::Named(_) => None,
            Self::AnyOf(name, true) => Some(format!("{name} + \"/\"")),
            Self::AnyOf(name, false) => Some(name.clone()),
        }
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
