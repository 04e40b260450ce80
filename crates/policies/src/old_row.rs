//! The rows of several objects, now and before, and how a row finds the old one of the same object.

use crate::cel::singular;
use crate::group::Step;
use crate::members::{Algorithm, Members};
use crate::rows::{ObjectsBuilder, Side};
use crate::variables::{Variables, camel};
use crate::walk::collections;

/// How a row finds the old row of the same object, which has the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OldRow {
    /// In a map. A key never occurs twice: it is that of a map, or the API server keeps the keys of the list unique.
    ByKey,
    /// In a list. A key may occur twice, in a list of a built-in kind or of a type that nobody knows, and counts only if it does not. The
    /// rows of fields are few and searched as well. One expression makes the rows of now and of before.
    Searched,
    /// In a list, where only objects that were there before are candidates: nothing of others is cleared. So there is an old row for sure.
    Certain,
    /// Nowhere: an item of a list without keys cannot be recognised after a change.
    Unknown,
}

impl OldRow {
    fn of(builders: &[ObjectsBuilder<'_, '_>], first: &ObjectsBuilder<'_, '_>, has_candidates: bool) -> Self {
        let is_list = |step: &Step<'_>| matches!(step, Step::Items(_));
        let in_lists = builders.iter().flat_map(|it| &it.group.paths).flatten().any(is_list);
        let is_unique = !in_lists || first.facts.custom && first.group.typed;
        // An object that was not there before has nothing to clear, but its discriminator may be deduced.
        let clears_only = !matches!(Algorithm::of(first.members.union), Algorithm::Discriminated(_));
        match first.group.has_identity() {
            false => Self::Unknown,
            true if is_unique && builders.iter().any(|it| it.group.single().is_none()) => Self::ByKey,
            true if clears_only && has_candidates => Self::Certain,
            true => Self::Searched,
        }
    }

    /// Returns true if there is an old row. `row` is the expression of it.
    pub(crate) fn is_there(self, row: &str) -> String {
        match self {
            Self::ByKey | Self::Searched => format!("\"set\" in {row}"),
            Self::Certain => "true".to_owned(),
            Self::Unknown => "false".to_owned(),
        }
    }

    /// Returns a field of the old row, or a literal if there is none.
    pub(crate) fn field(self, row: &str, name: &str, default: &str) -> String {
        match self {
            Self::ByKey | Self::Searched => format!("{row}.?{name}.orValue({default})"),
            Self::Certain => format!("{row}.{name}"),
            Self::Unknown => default.to_owned(),
        }
    }
}

/// Builds the rows of the objects of unions that are treated alike.
pub(crate) struct RowsBuilder<'b, 'p> {
    /// Those of each union.
    builders: &'b [ObjectsBuilder<'b, 'p>],
    pub(crate) first: &'b ObjectsBuilder<'b, 'p>,
    pub(crate) old_row: OldRow,
    /// The condition of a row in which something may be to do. `None`: that is so in all.
    candidate: Option<String>,
    /// The words for all objects and for one of them.
    name: String,
    pub(crate) item: String,
    /// The beginning of the names of variables, and the discriminator, which tells several unions of an object apart.
    pub(crate) prefix: &'b str,
    word: &'b str,
    /// True if several paths lead to the objects.
    several: bool,
}

/// The variables of rows, as expressions.
pub(crate) struct RowLists {
    now: String,
    pub(crate) old: String,
    /// The condition of a row whose key occurs once now and once before, where old rows are searched.
    once: String,
}

impl<'b, 'p> RowsBuilder<'b, 'p> {
    /// `candidates` returns the condition of an object for its members that are set and for its value.
    pub(crate) fn new(
        builders: &'b [ObjectsBuilder<'b, 'p>],
        first: &'b ObjectsBuilder<'b, 'p>,
        candidates: impl Fn(&Members<'_>, &str, &str) -> Option<String>,
    ) -> Self {
        let is_one = builders.len() == 1;
        let word = if is_one { first.group.word() } else { "unions".to_owned() };
        let name = if word.is_empty() { "items".to_owned() } else { word };
        let item = singular(&name);
        let candidate = candidates(&first.members, &format!("{item}.set"), &format!("{item}.{}", first.value_field()));
        Self {
            builders,
            first,
            old_row: OldRow::of(builders, first, candidate.is_some()),
            candidate,
            name,
            item,
            prefix: if is_one { &first.prefix } else { "" },
            word: if first.facts.several { first.discriminator() } else { "" },
            several: builders.iter().flat_map(|it| &it.group.paths).nth(1).is_some(),
        }
    }

    /// Returns true if field managers own an object of a row as a whole.
    pub(crate) fn has_wholes(&self) -> bool {
        self.builders.iter().any(|it| it.group.owned_at.is_some())
    }

    /// Returns true if the text of a client-side apply says what it sets in an object of a row.
    pub(crate) fn has_claims_of_text(&self) -> bool {
        self.builders.iter().any(ObjectsBuilder::has_claims_of_text)
    }

    /// Returns the members whose names need escapes, if any do: then all names are escaped.
    pub(crate) fn members(&self) -> &'b Members<'p> {
        let mut all = self.builders.iter().map(|it| &it.members);
        all.find(|it| it.needs_escapes()).unwrap_or(&self.first.members)
    }

    /// Adds the variables of all rows, now and before.
    pub(crate) fn lists(&self, variables: &mut Variables) -> RowLists {
        if matches!(self.old_row, OldRow::Searched | OldRow::Certain) {
            return self.both(variables);
        }
        let by_key = self.old_row == OldRow::ByKey;
        let old = if by_key { self.map_by_key(variables) } else { self.one(Side::OldList, variables) };
        let now = self.one(Side::Now(by_key.then_some(&*old)), variables);
        RowLists { now, old, once: String::new() }
    }

    /// Adds the variable of the list of one side.
    fn one(&self, side: Side<'_>, variables: &mut Variables) -> String {
        let rows = self.rows(side, variables).join(" + ");
        self.add(side, &rows, "", variables)
    }

    /// Adds the variable of the old rows by their keys. The rows of several lists are a list before.
    fn map_by_key(&self, variables: &mut Variables) -> String {
        let is_deep = |steps: &Vec<Step<'p>>| collections(steps) > 1;
        let is_joined = self.several || self.builders.iter().flat_map(|it| &it.group.paths).any(is_deep);
        let side = if is_joined { Side::OldList } else { Side::OldMap };
        let rows = self.rows(side, variables).join(" + ");
        let rows = if self.several { format!("({rows})") } else { rows };
        let map = if is_joined { "\n  .transformMapEntry(i, old, {string(old.key): old})" } else { "" };
        self.add(side, &(rows + map), "by the keys of the items", variables)
    }

    /// Adds the variable of the rows of now and of before, a list of two lists.
    fn both(&self, variables: &mut Variables) -> RowLists {
        let mut lists = self.rows(Side::Both, variables);
        if self.several {
            lists = vec![format!("[0, 1].map(i, {}[i])", lists.join("[i] + "))];
        }
        let both = self.add(Side::Both, &lists.concat(), "a row for each, now and before", variables);
        let item = &self.item;
        // Keys that are missing make an empty text.
        let has_key = if self.first.group.typed { String::new() } else { format!("{item}.key != \"\" && ") };
        let once = format!("{has_key}{both}.all(rows, rows.exists_one(other, other.key == {item}.key))");
        RowLists { now: format!("{both}[0]"), old: format!("{both}[1]"), once }
    }

    /// Returns the rows of one side at the end of each path. Where there are several paths, each has a variable.
    fn rows(&self, side: Side<'_>, variables: &mut Variables) -> Vec<String> {
        let mut lists = Vec::new();
        for it in self.builders {
            let name = if it.prefix.is_empty() { &self.name } else { &it.prefix };
            for steps in &it.group.paths {
                // Rows of different paths have different keys.
                let tag = self.several.then(|| format!("\"{}/\"", lists.len()));
                let list = match side {
                    Side::Both => it.rows_of_both(steps, self.shared(it, steps), tag, variables),
                    Side::OldList | Side::OldMap => it.rows_of(it.walk(&it.root.was, tag), steps, side, variables),
                    Side::Now(_) => it.rows_of(it.walk(&it.root.now, tag), steps, side, variables),
                };
                lists.push(if self.several { variables.add(&camel(&[side.word(), name]), &list, "") } else { list });
            }
        }
        lists
    }

    /// Adds the variable of the rows of one side.
    fn add(&self, side: Side<'_>, rows: &str, comment: &str, variables: &mut Variables) -> String {
        let name = if self.prefix.is_empty() { &self.name } else { self.prefix };
        let all = if self.several { "all" } else { "" };
        variables.add(&camel(&[side.word(), all, name, self.word]), rows, comment)
    }

    /// Returns the beginning of a path up to its first list, if paths of several unions go on there.
    fn shared<'s>(&self, it: &ObjectsBuilder<'_, 'p>, steps: &'s [Step<'p>]) -> Option<&'s [Step<'p>]> {
        let end = steps.iter().position(|step| matches!(step, Step::Items(_)))?.checked_add(1)?;
        let outer = steps.get(..end)?;
        let goes_on = |steps: &[Step<'p>]| steps.len() > end && steps.starts_with(outer);
        let all_go_on = |it: &&ObjectsBuilder<'_, 'p>| it.group.typed && it.group.paths.iter().any(|it| goes_on(it));
        let is_shared = goes_on(steps) && self.builders.iter().filter(all_go_on).nth(1).is_some();
        // A row of an object that is owned as a whole has no field set to go on in.
        (is_shared && it.group.owned_at.is_none()).then_some(outer)
    }

    /// Adds the variable of the rows in which something may be to do, which policies call suspects.
    pub(crate) fn candidates(&self, lists: &RowLists, variables: &mut Variables) -> String {
        let Some(condition) = &self.candidate else { return lists.now.clone() };
        let (once, comment) = if self.old_row == OldRow::Certain {
            (format!(" && {}", lists.once), "those that may be changed; what has their keys was there once before")
        } else {
            (String::new(), "those in which something may be wrong")
        };
        let rows = format!("{}.filter({}, {condition}{once})", lists.now, self.item);
        variables.add(&camel(&[self.prefix, self.word, "suspects"]), &rows, comment)
    }

    /// Returns the old row of a candidate, and adds the variable of all of them if they are searched.
    pub(crate) fn old(&self, candidates: &str, lists: &RowLists, variables: &mut Variables) -> String {
        let item = &self.item;
        let found = format!("{}.filter(old, old.key == {item}.key)[0]", lists.old);
        let (found, comment) = match self.old_row {
            OldRow::ByKey => return format!("{item}.old"),
            OldRow::Unknown => return String::new(),
            OldRow::Certain => (found, "for each: the old one"),
            OldRow::Searched => {
                let comment = "for each: the old one with the same keys, if these occur once";
                (format!("{}\n  ? {found} : {{}}", lists.once), comment)
            }
        };
        let each = format!("{candidates}.map({item}, {found})");
        format!("{}[i]", variables.add(&camel(&[self.prefix, self.word, "before"]), &each, comment))
    }
}
