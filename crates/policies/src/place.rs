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
//! Old objects are found as in the webhook: by field, by map key, and by the keys of list items. [`OldRow`] says how a row finds its own.

use crate::cel::{concat, text};
use crate::group::{PlaceGroup, PlacedUnion, Step};
use crate::manifests;
use crate::members::{Algorithm, Members};
use crate::old_row::{OldRow, RowsBuilder};
use crate::root::{Purpose, Root};
use crate::rows::{ObjectsBuilder, PolicyFacts};
use crate::value::UserValue;
use crate::variables::{Variables, camel};
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
    /// True if the text of a client-side apply may be among the claims.
    pub(crate) has_claims_of_text: bool,
    /// True if field managers may own an object as a whole.
    pub(crate) owned_as_a_whole: bool,
    /// The path of the object: a pointer, or a path for people.
    pub(crate) path: String,
    pub(crate) part: Part,
    rows: Option<Rows>,
    /// Begins the names of variables, which tells them from those of other unions.
    pub(crate) prefix: String,
}

/// The rows of several objects.
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
    old_row: OldRow,
}

impl<'p> UnionObjects<'p> {
    /// Adds the variables of unions that are treated alike.
    ///
    /// `candidates` returns the condition of objects in which something may be to do, for the expressions of their members that are set and
    /// of their value. Of many objects, the others are left out.
    pub(crate) fn new(
        unions: &[PlacedUnion<'_, 'p>],
        root: &Root<'p>,
        facts: PolicyFacts,
        candidates: impl Fn(&Members<'_>, &str, &str) -> Option<String>,
        variables: &mut Variables,
    ) -> Option<Self> {
        let several = facts.several || unions.len() > 1;
        let builders = unions.iter().map(|(group, union)| {
            let prefix = if several { name_of(group, union) } else { String::new() };
            let members = Members::new(union, &prefix, group.typed, variables);
            ObjectsBuilder { group, members, root, facts, prefix }
        });
        let builders: Vec<ObjectsBuilder<'_, 'p>> = builders.collect();
        let first = builders.first()?;
        Some(match first.group.single() {
            Some(names) if unions.len() == 1 => Self::single(first, &names, variables),
            _ => Self::several(&RowsBuilder::new(&builders, first, candidates), variables),
        })
    }

    /// Adds the variables of a single object, at the end of fields.
    fn single(it: &ObjectsBuilder<'_, 'p>, names: &[&'p str], variables: &mut Variables) -> Self {
        let prefix = &*it.prefix;
        let now = it.at(names, &it.root.now, &[prefix, "object"], variables);
        let was = it.at(names, &it.root.was, &[prefix, "old", "object"], variables);
        let is_there = |object: &UserValue| if it.group.nullable { object.is_not_null() } else { object.is_there() };
        let mut read = |is_inline: bool, words: &[&str], expression: String| {
            if is_inline { expression } else { variables.add(&camel(words), &expression, "") }
        };
        // Where the discriminator decides, the normalisation reads these once.
        let is_read_once = it.facts.purpose == Purpose::Mutation
            && matches!(Algorithm::of(it.members.union), Algorithm::Map(_))
            && it.members.ownerless().is_none();
        let set = read(is_read_once, &[prefix, "set"], it.members.set_in(&now));
        let non_null = it.sees_nulls().then(|| read(false, &[prefix, "nonNull"], it.members.non_null_in(&now)));
        let old_set = read(false, &[prefix, "old", "set"], it.members.set_in(&was));
        let word = it.discriminator();
        let value = read(word.is_empty(), &[prefix, word], it.value(&now));
        let old_value = read(word.is_empty() || is_read_once, &[prefix, "old", word], it.value(&was));
        let mut walk = it.walk(&now, None);
        for name in names {
            walk.enter_field(name);
        }
        let has_nested_claims = !it.facts.list_functions;
        let steps: Vec<Step<'p>> = names.iter().map(|name| Step::Field(name)).collect();
        let of_text = it.claims_of_text(&steps, &walk, variables);
        let claims = it.claims(&walk, &now, has_nested_claims, of_text.as_deref());
        Self {
            members: it.members.clone(),
            set,
            non_null,
            value,
            is_there: (!names.is_empty()).then(|| is_there(&now)),
            had: if names.is_empty() { "oldObject != null".to_owned() } else { is_there(&was) },
            old_set,
            old_value,
            claims: Some(variables.add(&camel(&[prefix, "claims"]), &claims, manifests::COMMENT)),
            has_nested_claims,
            has_claims_of_text: of_text.is_some(),
            owned_as_a_whole: it.group.owned_at.is_some(),
            path: walk.path(),
            part: it.facts.part,
            rows: None,
            prefix: it.prefix.clone(),
        }
    }

    /// Adds the variables of the rows of several objects.
    fn several(rows: &RowsBuilder<'_, 'p>, variables: &mut Variables) -> Self {
        let RowsBuilder { first, item, old_row, .. } = rows;
        let lists = rows.lists(variables);
        let all = rows.candidates(&lists, variables);
        let old = rows.old(&all, &lists, variables);
        let value = first.value_field();
        let has_value = !first.discriminator().is_empty();
        Self {
            members: rows.members().clone(),
            set: format!("{item}.set"),
            non_null: first.sees_nulls().then(|| format!("{item}.nonNull")),
            value: if has_value { format!("{item}.{value}") } else { "\"\"".to_owned() },
            is_there: None,
            had: old_row.is_there(&old),
            old_set: old_row.field(&old, "set", "[]"),
            old_value: old_row.field(&old, &value, "\"\""),
            claims: first.group.has_identity().then(|| format!("{item}.claims")),
            has_nested_claims: false,
            has_claims_of_text: rows.has_claims_of_text(),
            owned_as_a_whole: rows.has_wholes(),
            path: format!("{item}.{}", first.path_field()),
            part: first.facts.part,
            prefix: rows.prefix.to_owned(),
            rows: Some(Rows { all, item: item.clone(), value, old: lists.old, old_row: *old_row }),
        }
    }

    /// Defines a thing that each object has. Returns the expression of that of one object.
    pub(crate) fn define(&self, name: &str, expression: &str, comment: &str, variables: &mut Variables) -> String {
        let name = self.name(name);
        let Some(each) = self.each(expression) else { return variables.add(&name, expression, comment) };
        let of_each = if comment.is_empty() { String::new() } else { format!("for each: {comment}") };
        format!("{}[i]", variables.add(&name, &each, &of_each))
    }

    /// Returns the list of what each of several objects has. `None`: there is a single object.
    fn each(&self, expression: &str) -> Option<String> {
        let Rows { all, item, .. } = self.rows.as_ref()?;
        Some(format!("{all}.transformList(i, {item}, {expression})"))
    }

    /// Returns the variable of the members that the request sets and that were not set before.
    pub(crate) fn added(&self, variables: &mut Variables) -> String {
        self.define("added", &format!("{0}.filter(m, !(m in {1}))", self.set, self.old_set), "", variables)
    }

    pub(crate) fn name(&self, word: &str) -> String {
        camel(&[&self.prefix, word])
    }

    /// Returns the items of a list that each object has.
    pub(crate) fn collect(&self, list: &str) -> String {
        self.each(list).map_or_else(|| list.to_owned(), |each| each + ".flatten()")
    }

    /// Returns the items of a list that each object has for which a condition is true.
    pub(crate) fn collect_if(&self, condition: &str, list: &str) -> String {
        let each = self.each(&format!("{condition},\n  {list}"));
        each.map_or_else(|| format!("({condition} ? {list} : [])"), |each| each + ".flatten()")
    }

    /// Returns true if an object with the same choice stood there before.
    pub(crate) fn is_unchanged(&self) -> String {
        let Self { set, value, had, old_set, old_value, .. } = self;
        let has_value = self.members.union.discriminator().is_some();
        let same_value = |old: &str| if has_value { format!("{old} == {value} && ") } else { String::new() };
        match &self.rows {
            // Any old row with the same keys counts, also that of a list without keys.
            Some(Rows { old_row, old, item, value, .. }) if *old_row != OldRow::ByKey => {
                let same_value = same_value(&format!("old.{value}"));
                format!("{old}.exists(old, old.key == {item}.key && {same_value}old.set == {set})")
            }
            _ => format!("{had} && {}{old_set} == {set}", same_value(old_value)),
        }
    }

    /// Returns true if there is at most one object.
    pub(crate) fn is_single(&self) -> bool {
        self.rows.is_none()
    }

    /// Returns true if an object can have an old one: it is in no list without keys.
    pub(crate) fn has_identity(&self) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.old_row != OldRow::Unknown)
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

/// Returns a readable name for the variables of a union.
fn name_of(group: &PlaceGroup<'_>, union: &Union) -> String {
    let field = || union.discriminator().or_else(|| union.members().next()).unwrap_or_default().to_owned();
    Some(group.word()).filter(|word| !word.is_empty()).unwrap_or_else(field)
}
