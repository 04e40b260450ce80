//! The objects of a place, as expressions.
//!
//! A place outside lists and maps has one object. What the compiler needs to know of it are variables: the members that are `set`, the value
//! of the discriminator, and both before.
//!
//! Elsewhere, and where several places have the same unions, there is a *row* for each object, a map in a list:
//!
//! | field of a row | content | in |
//! |---|---|---|
//! | `path` | the JSON Pointer of the object | mutation |
//! | `at` | its path for people | validation |
//! | `key` | the keys of the list items and maps on the path to it, as a text | rows whose old object is searched |
//! | `set`, and the name of the discriminator | the members that are set, and the value | both |
//! | `nonNull` | the members that are not null | mutation, where members can have values without an owner |
//! | `old` | the row of the old object, empty if there was none | rows whose old object is looked up |
//! | `claims` | the fields that manifests set in it, see [`claims`](crate::claims) | both |
//!
//! Old objects are found as in the webhook: by field, by map key, and by the keys of list items. Where the API server keeps these keys
//! unique, the old rows are a map by `key`. Elsewhere a key may occur twice and counts only if it does not, so each row is searched.

use crate::cel::{concat, singular, text};
use crate::group::{PlaceGroup, PlacedUnion, Step};
use crate::manifests;
use crate::members::{Algorithm, Members};
use crate::root::{Purpose, Root};
use crate::rows::{ObjectsBuilder, PolicyFacts, Side};
use crate::value::UserValue;
use crate::variables::{Variables, camel};
use crate::walk::collections;
use kube_unions_core::union::{Part, Union};

/// The objects of a place with one of its unions. The expressions are about one object.
#[derive(Debug)]
pub(crate) struct UnionObjects<'p> {
    pub(crate) members: Members<'p>,
    /// The members that are set.
    pub(crate) set: String,
    /// The members that are not null, where nulls of a server-side apply count as set.
    pub(crate) non_null: Option<String>,
    /// The value of the discriminator, empty if there is none.
    pub(crate) value: String,
    /// True if there is an object. `None`: there is for sure.
    pub(crate) is_there: Option<String>,
    /// True if there was an object before.
    pub(crate) had: String,
    /// The members that were set before.
    pub(crate) old_set: String,
    /// The value of the discriminator before.
    pub(crate) old_value: String,
    /// The claims. `None`: nothing of a manifest belongs to the object.
    pub(crate) claims: Option<String>,
    /// The claims of each manifest are a list of their own, because the API server cannot join lists.
    pub(crate) has_nested_claims: bool,
    /// The path of the object: a pointer, or a path for people.
    pub(crate) path: String,
    pub(crate) part: Part,
    rows: Option<Rows>,
    /// Tells the variables of the union from those of others.
    prefix: String,
}

#[derive(Debug)]
struct Rows {
    /// The variable of the rows.
    all: String,
    /// The name of one of them.
    item: String,
    /// The field with the value of the discriminator.
    value: String,
    /// The variable of the old rows.
    old: String,
    /// True if the old rows are a map.
    by_key: bool,
    /// True if an object has an old one, with the same keys.
    identified: bool,
}

impl<'p> UnionObjects<'p> {
    /// Adds the variables of a group of places.
    ///
    /// `suspects` returns the condition of objects in which something may be to do, for the expressions of their members that are set and
    /// of their value. Of many objects, the others are left out.
    pub(crate) fn new(
        unions: &[PlacedUnion<'_, 'p>],
        root: &Root<'p>,
        facts: PolicyFacts,
        suspects: impl Fn(&Members<'_>, &str, &str) -> Option<String>,
        variables: &mut Variables,
    ) -> Option<Self> {
        let one = match unions {
            [(group, union)] => Some(name_of(group, union)),
            _ => None,
        };
        let prefix = one.filter(|_| facts.several).unwrap_or_default();
        let builders: Vec<ObjectsBuilder<'_, 'p>> = unions
            .iter()
            .map(|(group, union)| {
                let prefix = if unions.len() > 1 { name_of(group, union) } else { prefix.clone() };
                ObjectsBuilder {
                    members: Members::new(union, &prefix, group.typed, variables),
                    group,
                    root,
                    facts,
                    prefix,
                }
            })
            .collect();
        let objects = match (&builders[..], builders.first()?.group.single()) {
            ([builder], Some(names)) => single(builder, &names, variables),
            _ => rows(&builders, suspects, variables)?,
        };
        Some(Self { prefix, ..objects })
    }

    /// Defines a thing that each object has. Returns the expression of that of one object.
    pub(crate) fn define(&self, name: &str, expression: &str, comment: &str, variables: &mut Variables) -> String {
        let name = self.name(name);
        match &self.rows {
            None => variables.add(&name, expression, comment),
            Some(Rows { all, item, .. }) => {
                let each = format!("{all}.transformList(i, {item}, {expression})");
                let of_each = if comment.is_empty() { String::new() } else { format!("for each: {comment}") };
                format!("{}[i]", variables.add(&name, &each, &of_each))
            }
        }
    }

    /// Returns the variable of the members that the request sets and that were not set before.
    pub(crate) fn added(&self, variables: &mut Variables) -> String {
        self.define("added", &format!("{0}.filter(m, !(m in {1}))", self.set, self.old_set), "", variables)
    }

    /// Returns the beginning of the names of the union's variables.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn name(&self, word: &str) -> String {
        camel(&[&self.prefix, word])
    }

    /// Returns the items of a list that each object has.
    pub(crate) fn collect(&self, list: &str) -> String {
        match &self.rows {
            None => list.to_owned(),
            Some(Rows { all, item, .. }) => format!("{all}.transformList(i, {item}, {list}).flatten()"),
        }
    }

    /// Returns the items of a list that each object has for which a condition is true.
    pub(crate) fn collect_if(&self, condition: &str, list: &str) -> String {
        match &self.rows {
            None => format!("({condition} ? {list} : [])"),
            Some(Rows { all, item, .. }) => {
                format!("{all}.transformList(i, {item}, {condition},\n  {list}).flatten()")
            }
        }
    }

    /// Returns true if an object with the same choice stood there before.
    pub(crate) fn is_unchanged(&self) -> String {
        let value = self.members.union.discriminator().map(|_| format!("{} == {} && ", self.old_value, self.value));
        let same = format!("{}{} == {}", value.unwrap_or_default(), self.old_set, self.set);
        match &self.rows {
            Some(Rows { by_key: false, old, item, value, .. }) => {
                let value = self.members.union.discriminator().map(|_| format!("old.{value} == {} && ", self.value));
                let value = value.unwrap_or_default();
                format!("{old}.exists(old, old.key == {item}.key && {value}old.set == {})", self.set)
            }
            _ => format!("{} && {same}", self.had),
        }
    }

    /// Returns true if there is at most one object.
    pub(crate) fn is_single(&self) -> bool {
        self.rows.is_none()
    }

    /// Returns true if an object can have an old one: it is in no list without keys.
    pub(crate) fn has_identity(&self) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.identified)
    }

    /// Returns the pointer to the member `m`.
    pub(crate) fn pointer_of_member(&self) -> String {
        concat(&self.path_of(&self.members.token(), Purpose::Mutation))
    }

    /// Returns the parts of the pointer to a field, or of its path for people. `name` is an expression.
    pub(crate) fn path_of(&self, name: &str, purpose: Purpose) -> Vec<String> {
        let separator = match purpose {
            Purpose::Mutation => "/",
            // The root has no path.
            Purpose::Validation if self.path == "\"\"" => "",
            Purpose::Validation => ".",
        };
        vec![self.path.clone(), text(separator), name.to_owned()]
    }

    /// Returns the parts of the path of the object with words behind it.
    pub(crate) fn path_with(&self, words: &str) -> Vec<String> {
        // The root has no path.
        let words = if self.path == "\"\"" { words.trim_start_matches(": ") } else { words };
        vec![self.path.clone(), text(words)]
    }
}

/// Adds the variables of a single object.
fn single<'p>(it: &ObjectsBuilder<'_, 'p>, names: &[&str], variables: &mut Variables) -> UnionObjects<'p> {
    let name = |word: &str| camel(&[&it.prefix, word]);
    let old_name = |word: &str| camel(&[&it.prefix, "old", word]);
    let comment = "the object, in a list of at most one: the schema does not say what stands there";
    let mut here = |root: &UserValue, name: String| {
        if it.group.typed {
            return root.follow(names);
        }
        let found = format!("{}.filter(o, {})", root.guarded(names), it.is_judged(&UserValue::new("o")));
        UserValue::optional(format!("{}[?0]", variables.add(&name, &found, comment)))
    };
    let now = here(&it.root.now, name("object"));
    let was = here(&it.root.was, old_name("object"));
    // Where the discriminator decides, the normalisation reads these once.
    let is_read_once = it.facts.purpose == Purpose::Mutation
        && matches!(Algorithm::of(it.members.union), Algorithm::Map(_))
        && it.members.ownerless().is_none();
    let set = it.members.set_in(&now);
    let set = if is_read_once { set } else { variables.add(&name("set"), &set, "") };
    let non_null = it.sees_nulls().then(|| variables.add(&name("nonNull"), &it.members.non_null_in(&now), ""));
    let old_set = variables.add(&old_name("set"), &it.members.set_in(&was), "");
    let (value, old_value) = if it.discriminator().is_empty() {
        ("\"\"".to_owned(), "\"\"".to_owned())
    } else {
        let word = it.discriminator();
        let value = variables.add(&name(word), &it.value(&now), "");
        let was = it.value(&was);
        (value, if is_read_once { was } else { variables.add(&old_name(word), &was, "") })
    };
    let there = |object: &UserValue| if it.group.nullable { object.is_not_null() } else { object.is_there() };
    let (is_there, had) =
        if names.is_empty() { (None, "oldObject != null".to_owned()) } else { (Some(there(&now)), there(&was)) };
    let mut walk = it.walk(&now);
    for name in names {
        walk.enter_field(name);
    }
    let nested = !it.facts.list_functions;
    let claims = variables.add(&name("claims"), &it.claims(&walk, nested), manifests::COMMENT);
    UnionObjects {
        members: it.members.clone(),
        set,
        non_null,
        value,
        is_there,
        had,
        old_set,
        old_value,
        claims: Some(claims),
        has_nested_claims: nested,
        path: walk.path(),
        part: it.facts.part,
        rows: None,
        prefix: String::new(),
    }
}

/// Adds the variables of the rows of several objects. Returns `None` without places.
fn rows<'p>(
    builders: &[ObjectsBuilder<'_, 'p>],
    suspects: impl Fn(&Members<'_>, &str, &str) -> Option<String>,
    variables: &mut Variables,
) -> Option<UnionObjects<'p>> {
    let (first, others) = builders.split_first()?;
    let ObjectsBuilder { facts, members, .. } = first;
    let identified = first.group.has_identity();
    let in_lists = builders.iter().any(|it| it.group.paths.iter().flatten().any(|step| matches!(step, Step::Items(_))));
    let by_key = identified && (facts.custom && first.group.typed || !in_lists);
    let word = first.group.word();
    let name = if !others.is_empty() {
        "unions"
    } else if word.is_empty() {
        "items"
    } else {
        &word
    };
    let word = members.union.discriminator().filter(|_| facts.several).unwrap_or_default();
    let table = if others.is_empty() && facts.several { &*first.prefix } else { name };
    // Where the old row of a row is searched, one expression reads the objects of now and of before.
    let are_fields = builders.iter().all(|it| it.group.single().is_some());
    let paired = identified && (!by_key || are_fields);
    let by_key = by_key && !paired;
    let both = paired.then(|| both_rows(builders, name, &[table, word], variables));
    let (rows, old) = if let Some(both) = &both {
        (format!("{both}[0]"), format!("{both}[1]"))
    } else {
        let old = rows_of_side(builders, name, &[table, word], by_key, None, variables);
        (rows_of_side(builders, name, &[table, word], by_key, Some(&old), variables), old)
    };
    let item = singular(name);
    let value = first.value_field();
    let is_in_both = both.as_ref().map(|both| {
        // Keys that are missing make an empty text.
        let has_key = if first.group.typed { String::new() } else { format!("{item}.key != \"\" && ") };
        format!("{has_key}{both}.all(rows, rows.exists_one(other, other.key == {item}.key))")
    });
    let prefix = if others.is_empty() { &*first.prefix } else { "" };
    // An object that was not there before has nothing to clear, but its discriminator may be deduced.
    let clears_only = !matches!(Algorithm::of(members.union), Algorithm::Discriminated(_));
    let condition = suspects(members, &format!("{item}.set"), &format!("{item}.{value}"));
    let is_sure = paired && clears_only && condition.is_some();
    let all = condition.map_or_else(
        || rows.clone(),
        |condition| {
            let (condition, comment) = match is_in_both.as_ref().filter(|_| is_sure) {
                Some(is_in_both) => (
                    format!("{condition} && {is_in_both}"),
                    "those that may be changed; what has their keys was there once before",
                ),
                None => (condition, "those in which something may be wrong"),
            };
            let filtered = format!("{rows}.filter({item}, {condition})");
            variables.add(&camel(&[prefix, word, "suspects"]), &filtered, comment)
        },
    );
    let old_row = if by_key {
        format!("{item}.old")
    } else if let Some(is_in_both) = &is_in_both {
        let found = format!("{old}.filter(old, old.key == {item}.key)[0]");
        let (found, comment) = if is_sure {
            (found, "for each: the old one")
        } else {
            let found = format!("{is_in_both}\n  ? {found} : {{}}");
            (found, "for each: the old one with the same keys, if these occur once")
        };
        let each = format!("{all}.map({item}, {found})");
        format!("{}[i]", variables.add(&camel(&[prefix, word, "before"]), &each, comment))
    } else {
        String::new()
    };
    let had = match identified {
        _ if is_sure => "true".to_owned(),
        true => format!("\"set\" in {old_row}"),
        false => "false".to_owned(),
    };
    let of_old = |field: &str, default: &str| {
        if is_sure {
            format!("{old_row}.{field}")
        } else if identified {
            format!("{old_row}.?{field}.orValue({default})")
        } else {
            default.to_owned()
        }
    };
    Some(UnionObjects {
        members: builders.iter().map(|it| &it.members).find(|it| it.needs_escapes()).unwrap_or(members).clone(),
        set: format!("{item}.set"),
        non_null: first.sees_nulls().then(|| format!("{item}.nonNull")),
        value: if first.discriminator().is_empty() { "\"\"".to_owned() } else { format!("{item}.{value}") },
        is_there: None,
        had,
        old_set: of_old("set", "[]"),
        old_value: of_old(&value, "\"\""),
        claims: identified.then(|| format!("{item}.claims")),
        has_nested_claims: false,
        path: format!("{item}.{}", first.path_field()),
        part: facts.part,
        rows: Some(Rows { all, item, value, old, by_key, identified }),
        prefix: String::new(),
    })
}

/// Adds the variable of the rows of one side: the old ones, or the new ones beside `old`, the variable of the old ones. `words` name it.
/// `by_key`: the old ones are looked up in a map.
fn rows_of_side(
    builders: &[ObjectsBuilder<'_, '_>],
    name: &str,
    words: &[&str; 2],
    by_key: bool,
    old: Option<&str>,
    variables: &mut Variables,
) -> String {
    let paths = builders.iter().map(|it| it.group.paths.len()).sum::<usize>();
    let [prefix, comment] = match old {
        None => ["old", if by_key { "by the keys of the items" } else { "" }],
        Some(_) => [""; 2],
    };
    let mut lists = Vec::new();
    for builder in builders {
        for steps in &builder.group.paths {
            // Rows of different paths have different keys.
            let key = if paths > 1 { format!("\"{}/\"", lists.len()) } else { String::new() };
            let (object, side) = match old {
                None if by_key && paths == 1 && collections(steps) == 1 => (&builder.root.was, Side::OldMap),
                None => (&builder.root.was, Side::OldList),
                Some(old) => (&builder.root.now, if by_key { Side::NewBeside(old) } else { Side::New }),
            };
            let list = builder.rows_of(builder.walk(object), steps, &key, side);
            let name = if builder.prefix.is_empty() { name } else { &builder.prefix };
            lists.push(if paths > 1 { variables.add(&camel(&[prefix, name]), &list, "") } else { list });
        }
    }
    let mut list = lists.join(" + ");
    let is_deep = |it: &ObjectsBuilder<'_, '_>| it.group.paths.iter().any(|steps| collections(steps) > 1);
    if old.is_none() && by_key && (paths > 1 || builders.iter().any(is_deep)) {
        let source = if paths > 1 { format!("({list})") } else { list };
        list = format!("{source}\n  .transformMapEntry(i, old, {{string(old.key): old}})");
    }
    let place = if paths > 1 { "all" } else { "" };
    let [table, word] = words;
    variables.add(&camel(&[prefix, place, table, word]), &list, comment)
}

/// Adds the variable of the rows of now and of before, a list of two lists. `words` name it.
fn both_rows(builders: &[ObjectsBuilder<'_, '_>], name: &str, words: &[&str; 2], variables: &mut Variables) -> String {
    let paths = builders.iter().map(|it| it.group.paths.len()).sum::<usize>();
    let mut lists = Vec::new();
    for builder in builders {
        for steps in &builder.group.paths {
            // Rows of different paths have different keys.
            let tag = if paths > 1 { format!("\"{}/\"", lists.len()) } else { String::new() };
            // A row of an object that is owned as a whole has no field set to go on in.
            let goes_on = builder.group.owned_at.is_none();
            let outer = outermost(steps).filter(|outer| goes_on && is_shared(builders, outer));
            let parents = outer.map(|outer| builder.parents(outer, variables));
            let list = builder.rows_of_both(steps, &tag, parents.as_ref());
            let name = if builder.prefix.is_empty() { name } else { &builder.prefix };
            lists.push(if paths > 1 { variables.add(name, &list, "") } else { list });
        }
    }
    let [table, word] = words;
    let (place, list) = match &lists[..] {
        [list] => ("", list.clone()),
        lists => {
            let sum: Vec<String> = lists.iter().map(|list| format!("{list}[i]")).collect();
            ("all", format!("[0, 1].map(i, {})", sum.join(" + ")))
        }
    };
    variables.add(&camel(&[place, table, word]), &list, "a row for each, now and before")
}

/// Returns the beginning of a path up to its first list, if it goes on.
fn outermost<'w, 'p>(steps: &'w [Step<'p>]) -> Option<&'w [Step<'p>]> {
    let end = steps.iter().position(|step| matches!(step, Step::Items(_)))?.checked_add(1)?;
    steps.get(..end).filter(|outer| outer.len() < steps.len())
}

/// Returns true if several groups have paths that go on from the same objects.
fn is_shared(builders: &[ObjectsBuilder<'_, '_>], outer: &[Step<'_>]) -> bool {
    let goes_on = |it: &&ObjectsBuilder<'_, '_>| {
        it.group.typed && it.group.paths.iter().any(|steps| steps.len() > outer.len() && steps.starts_with(outer))
    };
    builders.iter().filter(goes_on).count() > 1
}

/// Returns a readable name for the variables of a union.
fn name_of(group: &PlaceGroup<'_>, union: &Union) -> String {
    let word = group.word();
    if !word.is_empty() {
        return word;
    }
    union.discriminator().or_else(|| union.members().next()).unwrap_or_default().to_owned()
}
