//! Places as variables: each place becomes one variable, a list with an entry for every object that stands there.
//!
//! | field of an entry | content | in |
//! |---|---|---|
//! | `path` | the JSON Pointer of the object | mutation |
//! | `at` | its path for people | validation |
//! | `by` | its path as a text by which entries are sorted: list positions have ten digits | validation |
//! | `new` | the object | both |
//! | `old` | a list with the old object, empty if there was none or it is not known | both |
//! | `claims` | the fields that manifests set in it, see [`claims`](crate::claims) | both |
//! | `lost` | the old objects among which it may have been, if it is in a list without identities | validation |
//!
//! Old objects are found as in the webhook: by field, by map key, and by the keys of list items if these occur once in both
//! lists. Lists are indexed once, because a search for each item exceeds the cost that an API server allows.

use crate::cel::{fields, lists, maps, pointer, printable, text};
use crate::claims;
use crate::variables::Variables;
use kube_unions_core::union::UnionStep;
use std::collections::HashMap;

/// The use of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Mutation,
    Validation,
}

/// Fields that are followed in one expression. More fields get a variable on the way, because an API server limits the
/// depth of an expression.
pub(crate) const MOST_FIELDS: usize = 12;

/// Precedes each step in the text by which entries are sorted. It sorts before every character of a name.
pub(crate) const SEPARATOR: &str = "\\u0001";

/// The variables of the places of a policy.
#[derive(Debug)]
pub(crate) struct Places<'p> {
    purpose: Purpose,
    /// `flatten` is known to the API server. Without it every place has at most one entry.
    flattens: bool,
    known: HashMap<Vec<UnionStep<'p>>, String>,
}

/// Expressions of an entry, or of the entry around it.
struct Entry {
    path: String,
    at: String,
    by: String,
    new: String,
    old: String,
    lost: String,
    claims: String,
}

impl<'p> Places<'p> {
    pub(crate) fn new(purpose: Purpose, flattens: bool) -> Self {
        Self { purpose, flattens, known: HashMap::new() }
    }

    /// Returns the variable of a place. The entries have maps only.
    pub(crate) fn variable(&mut self, steps: &[UnionStep<'p>], variables: &mut Variables) -> String {
        self.entries(steps, false, variables)
    }

    /// Returns the variable of the entries at the end of these steps, which are lists if `hold_lists`, otherwise maps. The
    /// schema has one type for a place, so the variable of the steps is always the same.
    fn entries(&mut self, steps: &[UnionStep<'p>], hold_lists: bool, variables: &mut Variables) -> String {
        if let Some(known) = self.known.get(steps) {
            return known.clone();
        }
        let collection = steps.iter().rposition(|step| !matches!(step, UnionStep::Field(_)));
        let ends_in_collection = collection.is_some_and(|at| at.saturating_add(1) == steps.len());
        let expression = if ends_in_collection {
            self.items(steps, hold_lists, variables)
        } else {
            // The end of the steps before the last run of fields.
            let start = collection.map_or(0, |at| at.saturating_add(1));
            let split = start.max(steps.len().saturating_sub(MOST_FIELDS));
            self.objects(steps, split, variables)
        };
        let name = variables.add(&name_of(steps), expression);
        self.known.insert(steps.to_vec(), name.clone());
        name
    }

    /// Returns the entries at the end of the fields after `split`.
    fn objects(&mut self, steps: &[UnionStep<'p>], split: usize, variables: &mut Variables) -> String {
        let (around, run) = steps.split_at(split.min(steps.len()));
        let names = names(run);
        if around.is_empty() {
            let before = self.before(variables);
            if names.is_empty() {
                return format!("[{}]", self.root(&before));
            }
            let entry = self.entry(&Entry {
                path: text(&names.iter().map(|name| pointer(name)).collect::<String>()),
                at: text(&names.join(".")),
                by: sort_text("", &names),
                new: "n".to_owned(),
                old: maps(&fields(&before, &names)),
                lost: "[]".to_owned(),
                claims: claims::of_fields(claims::CLAIMS, &names),
            });
            return format!("{}.map(n, {entry})", maps(&fields("[object]", &names)));
        }
        let around = self.entries(around, false, variables);
        let entry = self.entry(&Entry {
            path: format!("p.path + {}", text(&names.iter().map(|name| pointer(name)).collect::<String>())),
            at: format!("p.at + {}", text(&dotted(&names))),
            by: sort_text("p.by + ", &names),
            new: "n".to_owned(),
            old: maps(&fields("p.old", &names)),
            lost: maps(&fields("p.lost", &names)),
            claims: claims::of_fields("p.claims", &names),
        });
        self.flat(&format!("{around}.map(p, {}.map(n, {entry}))", maps(&fields("[p.new]", &names))))
    }

    fn root(&self, before: &str) -> String {
        let empty = || "\"\"".to_owned();
        self.entry(&Entry {
            path: empty(),
            at: empty(),
            by: empty(),
            new: "object".to_owned(),
            old: before.to_owned(),
            lost: "[]".to_owned(),
            claims: claims::CLAIMS.to_owned(),
        })
    }

    /// Returns the entries of the items of a list or the values of a map.
    fn items(&mut self, steps: &[UnionStep<'p>], hold_lists: bool, variables: &mut Variables) -> String {
        let Some((step, outer)) = steps.split_last() else { return "[]".to_owned() };
        let lists = self.collections(outer, matches!(step, UnionStep::Items { .. }), variables);
        match step {
            UnionStep::Values => self.values(&lists, hold_lists),
            UnionStep::Items { keys } if keys.is_empty() => self.unkeyed(&lists, hold_lists),
            UnionStep::Items { keys } => self.keyed(&lists, keys, &name_of(steps), variables),
            UnionStep::Field(_) => "[]".to_owned(),
        }
    }

    /// Returns the variable of the lists or maps at the end of these steps. An entry has `news`, the list or map now, and
    /// `olds`, the old items of the list, or the old maps.
    fn collections(&mut self, steps: &[UnionStep<'p>], are_lists: bool, variables: &mut Variables) -> String {
        let collection = steps.iter().rposition(|step| !matches!(step, UnionStep::Field(_)));
        let start = collection.map_or(0, |at| at.saturating_add(1));
        let split = start.max(steps.len().saturating_sub(MOST_FIELDS));
        let (around, run) = steps.split_at(split.min(steps.len()));
        let names = names(run);
        let only: fn(&str) -> String = if are_lists { lists } else { maps };
        let pointers: String = names.iter().map(|name| pointer(name)).collect();
        // The items of the one list, or the one map.
        let olds = |from: &str| {
            let found = only(&fields(from, &names));
            if are_lists { format!("({found} + [[]])[0]") } else { found }
        };
        let expression = if around.is_empty() {
            let before = self.before(variables);
            let entry = self.collection(&Entry {
                path: text(&pointers),
                at: text(&names.join(".")),
                by: sort_text("", &names),
                new: "l".to_owned(),
                old: olds(&before),
                lost: "[]".to_owned(),
                claims: claims::of_fields(claims::CLAIMS, &names),
            });
            format!("{}.map(l, {entry})", only(&fields("[object]", &names)))
        } else {
            let holds_lists = names.is_empty() && are_lists;
            let around = self.entries(around, holds_lists, variables);
            let lost = only(&fields("p.lost", &names));
            let entry = self.collection(&Entry {
                path: if names.is_empty() { "p.path".to_owned() } else { format!("p.path + {}", text(&pointers)) },
                at: if names.is_empty() { "p.at".to_owned() } else { format!("p.at + {}", text(&dotted(&names))) },
                by: sort_text("p.by + ", &names),
                new: "l".to_owned(),
                old: olds("p.old"),
                lost: if are_lists { self.flat(&lost) } else { lost },
                claims: claims::of_fields("p.claims", &names),
            });
            self.flat(&format!("{around}.map(p, {}.map(l, {entry}))", only(&fields("[p.new]", &names))))
        };
        variables.add(&format!("{}_all", name_of(steps)), expression)
    }

    /// Returns the entries of the values of maps.
    fn values(&self, maps: &str, hold_lists: bool) -> String {
        let kind = kind(hold_lists);
        let entry = self.entry(&Entry {
            path: "l.path + \"/\" + k.replace(\"~\", \"~0\").replace(\"/\", \"~1\")".to_owned(),
            at: format!("l.at + \"[\" + {} + \"]\"", printable("k")),
            by: format!("l.by + \"{SEPARATOR}\" + k"),
            new: "v".to_owned(),
            old: format!("l.olds.map(o, k in o && type(o[k]) == {kind}, o[k])"),
            // The keys tell nothing about maps in a list without identities.
            lost: self.flat(&format!("l.lost.map(o, o.transformList(j, w, type(w) == {kind}, w))")),
            claims: claims::of_value("l.claims"),
        });
        self.flat(&format!("{maps}.map(l, l.news.transformList(k, v, type(v) == {kind}, {entry}))"))
    }

    /// Returns the entries of the items of lists without keys.
    fn unkeyed(&self, lists: &str, hold_lists: bool) -> String {
        let kind = kind(hold_lists);
        let entry = self.entry(&Entry { old: "[]".to_owned(), lost: "w".to_owned(), ..item() });
        let items = format!("l.news.transformList(i, n, type(n) == {kind}, {entry})");
        let witnesses = format!("(l.lost + l.olds).filter(o, type(o) == {kind})");
        self.flat(&format!("{lists}.map(l, {})", self.with_witnesses(&witnesses, &items)))
    }

    /// Returns an expression that reads old objects from `w`, with these objects. They are collected once for a list,
    /// because the cost of doing so for each item would be the square of its length.
    fn with_witnesses(&self, witnesses: &str, expression: &str) -> String {
        match self.purpose {
            Purpose::Mutation => expression.to_owned(),
            Purpose::Validation => format!("[{witnesses}].map(w, {expression})[0]"),
        }
    }

    /// Returns the entries of the items of lists with keys. Items without keys, or with keys that occur twice, have no
    /// identity.
    fn keyed(&self, lists: &str, keys: &[&str], name: &str, variables: &mut Variables) -> String {
        let key = key_text(keys);
        // For each list the texts of the keys of its items, now and before.
        let texts = variables
            .add(&format!("{name}_keys"), format!("{lists}.map(l, [l.news.map(o, {key}), l.olds.map(o, {key})])"));
        let positions = variables
            .add(&format!("{name}_positions"), format!("{texts}.map(k, [{}, {}])", grouped("k[0]"), grouped("k[1]")));
        let key = format!("{texts}[a][0][i]");
        let (now, before) = (format!("{positions}[a][0]"), format!("{positions}[a][1]"));
        let is_one = format!("{key} in {now} && size({now}[{key}]) == 1");
        let was_one = format!("size({before}[{key}]) == 1");
        let entry = self.entry(&Entry {
            old: format!("({is_one} && {key} in {before} && {was_one} ? [l.olds[int({before}[{key}][0])]] : [])"),
            lost: format!("({is_one} && (!({key} in {before}) || {was_one}) ? w[0] : w[0] + w[1])"),
            claims: claims::of_item("l.claims", keys),
            ..item()
        });
        let items = format!("l.news.transformList(i, n, type(n) == map, {entry})");
        let witnesses = "[l.lost.filter(o, type(o) == map), l.olds.filter(o, type(o) == map)]";
        self.flat(&format!("{lists}.transformList(a, l, {})", self.with_witnesses(witnesses, &items)))
    }

    /// Returns the variable with the old object, in a list.
    fn before(&mut self, variables: &mut Variables) -> String {
        // No place has this step.
        let before = vec![UnionStep::Field("")];
        if let Some(known) = self.known.get(&before) {
            return known.clone();
        }
        let name = variables.add("before", "oldObject == null ? [] : [oldObject]".to_owned());
        self.known.insert(before, name.clone());
        name
    }

    /// Returns the literal of an entry. The values of a map literal must be of one type, so all are dynamic.
    fn entry(&self, entry: &Entry) -> String {
        self.literal(entry, "new", "old")
    }

    fn collection(&self, entry: &Entry) -> String {
        self.literal(entry, "news", "olds")
    }

    fn literal(&self, entry: &Entry, new: &str, old: &str) -> String {
        let Entry { path, at, by, new: new_value, old: old_value, lost, claims } = entry;
        let both = format!("\"{new}\": dyn({new_value}), \"{old}\": dyn({old_value}), \"claims\": dyn({claims})");
        match self.purpose {
            Purpose::Mutation => format!("{{\"path\": dyn({path}), {both}}}"),
            Purpose::Validation => {
                format!("{{\"at\": dyn({at}), \"by\": dyn({by}), {both}, \"lost\": dyn({lost})}}")
            }
        }
    }

    /// Returns the items of the lists in a list.
    pub(crate) fn flat(&self, list: &str) -> String {
        if self.flattens { format!("{list}.flatten()") } else { format!("({list} + [[]])[0]") }
    }
}

/// Returns the entry of an item `n` at position `i` of the list `l`.
fn item() -> Entry {
    Entry {
        path: "l.path + \"/\" + string(i)".to_owned(),
        at: "l.at + \"[\" + string(i) + \"]\"".to_owned(),
        by: format!("l.by + \"{SEPARATOR}\" + string(1000000000 + i)"),
        new: "n".to_owned(),
        old: "[]".to_owned(),
        lost: "[]".to_owned(),
        // Nothing of a manifest belongs to an item without an identity.
        claims: "[]".to_owned(),
    }
}

fn kind(hold_lists: bool) -> &'static str {
    if hold_lists { "list" } else { "map" }
}

/// Returns a text that is the same for items `o` with the same keys; a number and its text are different keys. Empty if the
/// keys do not identify the item: if it has none of them, or one is a list or map.
fn key_text(keys: &[&str]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| text(key)).collect();
    if let [key] = &keys[..] {
        let is = |name: &str| format!("type(o[{key}]) == {name}");
        return format!(
            "type(o) == map && {key} in o ? ({} ? \":\" + o[{key}] : {} || {} || {} ? \"=\" + string(o[{key}]) : \"\") : \"\"",
            is("string"),
            is("int"),
            is("double"),
            is("bool")
        );
    }
    // Lengths keep the texts of different keys apart.
    let part = |key: &String| {
        format!(
            "({key} in o && o[{key}] != null ? string(size(string(o[{key}]))) + (type(o[{key}]) == string ? \":\" : \"=\") + string(o[{key}]) : \"-\")"
        )
    };
    let parts: Vec<String> = keys.iter().map(part).collect();
    let all = format!("[{}]", keys.join(", "));
    format!(
        "type(o) == map && {all}.exists(k, k in o && o[k] != null) && {all}.all(k, !(k in o) || type(o[k]) != map && type(o[k]) != list) ? {} : \"\"",
        parts.join(" + ")
    )
}

/// Returns a map from each text of a list to the positions where it stands. Leaves out empty texts, and texts with control
/// characters.
///
/// A query string is the one thing from which CEL builds such a map. An index by `transformMapEntry` fails if a text occurs
/// twice, and `sort` and `distinct` cost the square of the number of texts.
fn grouped(texts: &str) -> String {
    // The characters that mean something in a query string, the escape character first.
    let escaped = ["%25", "&26", "=3D", "+2B", "#23", ";3B", " 20"].into_iter().fold("x".to_owned(), |text, pair| {
        let (from, to) = pair.split_at(1);
        format!("{text}.replace(\"{from}\", \"%{to}\")")
    });
    format!(
        "url(\"https://keys/?\" + {texts}.transformList(i, x, x != \"\" && !x.matches(\"[[:cntrl:]]\"), {escaped} + \"=\" + string(i)).join(\"&\")).getQuery()"
    )
}

fn names<'p>(run: &[UnionStep<'p>]) -> Vec<&'p str> {
    let field = |step: &UnionStep<'p>| if let UnionStep::Field(name) = step { Some(*name) } else { None };
    run.iter().filter_map(field).collect()
}

/// Returns `.a.b`.
fn dotted(names: &[&str]) -> String {
    names.iter().flat_map(|name| [".", name]).collect()
}

/// Returns the expression of a text to sort by, after an expression that ends in ` + `.
fn sort_text(before: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return if before.is_empty() { "\"\"".to_owned() } else { before.trim_end_matches(" + ").to_owned() };
    }
    let separated: String = names.iter().flat_map(|name| ["\u{1}", name]).collect();
    format!("{before}{}", text(&separated))
}

/// Returns a readable name for the variable of a place.
fn name_of(steps: &[UnionStep<'_>]) -> String {
    let words: Vec<&str> = steps
        .iter()
        .map(|step| match step {
            UnionStep::Field(name) => name,
            UnionStep::Items { .. } => "item",
            UnionStep::Values => "value",
        })
        .collect();
    if words.is_empty() { "root".to_owned() } else { words.join("_") }
}
