//! Nested comprehensions over objects.

use crate::group::Step;

/// Comprehensions inside one another, to which the row is missing that they make of each object.
#[derive(Debug, Default)]
pub(crate) struct Comprehension {
    /// The calls up to their bodies, outermost first. None: there is one object.
    pub(crate) calls: Vec<String>,
    /// The names of their items.
    items: Vec<String>,
    /// The number of those that are items of lists.
    lists: usize,
    /// The key of an object, where the rows are a map. `None`: they are a list, or a call knows the keys itself.
    pub(crate) key: Option<String>,
    /// The condition of an object that has a row. `None`: all have one.
    pub(crate) condition: Option<String>,
}

impl Comprehension {
    /// Names the item of the next call, similar to a word. A row reads the items of all calls, so they differ.
    pub(crate) fn item(&mut self, word: &str) -> String {
        let mut item = word.to_owned();
        while self.items.contains(&item) {
            item.push('2');
        }
        self.items.push(item.clone());
        item
    }

    /// Names the index of the newest item: the number of an item of a list, or the name of a value of a map.
    pub(crate) fn index(&mut self, step: &Step<'_>) -> String {
        if *step == Step::Values {
            let depth = self.items.len();
            return if depth == 1 { "name".to_owned() } else { format!("name{depth}") };
        }
        self.lists = self.lists.saturating_add(1);
        let name = ["", "i", "j", "k", "l"].get(self.lists);
        name.map_or_else(|| format!("i{}", self.lists), |name| (*name).to_owned())
    }

    /// Returns the list of the rows of all objects, or the map of them.
    pub(crate) fn of(&self, row: &str) -> String {
        let row = self.key.as_ref().map_or_else(|| row.to_owned(), |key| format!("{{{key}: {row}}}"));
        let Some((outermost, inner)) = self.calls.split_first() else {
            let condition = self.condition.as_deref().unwrap_or("true");
            return format!("({condition} ? [{row}] : [])");
        };
        let mut code = outermost.clone();
        for (depth, call) in (1..).zip(inner) {
            code.extend(["\n", &"  ".repeat(depth), call]);
        }
        if let Some(condition) = &self.condition {
            code.extend([" ", condition, ","]);
        }
        let flatten = match inner.len() {
            0 => String::new(),
            1 => ".flatten()".to_owned(),
            depth => format!(".flatten({depth})"),
        };
        format!("{code} {row}{}{flatten}", ")".repeat(self.calls.len()))
    }
}

/// Returns a row with these fields, which are expressions. It is so deep in calls.
pub(crate) fn row_of<'n>(fields: impl IntoIterator<Item = (&'n str, String)>, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let fields = fields.into_iter().map(|(name, value)| format!("{indent}  \"{name}\": dyn({value})"));
    format!("{{\n{}\n{indent}}}", fields.collect::<Vec<_>>().join(",\n"))
}
