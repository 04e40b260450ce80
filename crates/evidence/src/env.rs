//! The means of judging rules: parses expressions, within bounds, visits their parts, and calls into the CEL library, which may panic on
//! an expression of a stranger.

use crate::limits::{DEEPEST_EXPRESSION, LONGEST_RULE, MOST_STEPS};
use cel::Env;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// The begin of the reason why a text that is not CEL cannot be read. Other reasons are limits.
pub(crate) const NOT_CEL: &str = "the rule is not CEL";

/// The standard library of CEL, the rules that were parsed already, and the steps that are left.
pub(crate) struct CelEnv {
    pub(crate) library: Arc<Env>,
    /// By the text of the rule.
    parsed: RefCell<HashMap<String, Rc<Parsed>>>,
    left: Cell<usize>,
}

impl CelEnv {
    pub(crate) fn new() -> Rc<Self> {
        let (parsed, left) = (RefCell::default(), Cell::new(MOST_STEPS));
        Rc::new(Self { library: Arc::new(Env::stdlib()), parsed, left })
    }

    pub(crate) fn parse(&self, text: &str) -> Rc<Parsed> {
        if let Some(known) = self.parsed.borrow().get(text) {
            return Rc::clone(known);
        }
        let parsed = parse(text, &self.library);
        let parsed = parsed.map_or_else(Parsed::Unreadable, |expression| Parsed::Expression(Box::new(expression)));
        let parsed = Rc::new(parsed);
        self.parsed.borrow_mut().insert(text.to_owned(), Rc::clone(&parsed));
        parsed
    }

    /// Takes steps. Returns false if too few are left.
    pub(crate) fn take(&self, steps: usize) -> bool {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

impl std::fmt::Debug for CelEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CelEnv")
    }
}

#[derive(Debug)]
pub(crate) enum Parsed {
    Expression(Box<IdedExpr>),
    /// The rule compares with the old object, so it does not apply to a create.
    Transition,
    /// The rule cannot be read, for this reason.
    Unreadable(String),
}

/// Parses an expression of bounded length and depth.
fn parse(text: &str, env: &Env) -> Result<IdedExpr, String> {
    if text.trim().is_empty() {
        return Err("the rule is empty".to_owned());
    }
    if text.len() > LONGEST_RULE {
        return Err(format!("the rule is longer than {LONGEST_RULE} bytes"));
    }
    if nesting(text) > DEEPEST_EXPRESSION {
        return Err(format!("the rule is nested deeper than {DEEPEST_EXPRESSION} levels"));
    }
    // No text is known on which the generated parser of the library panics.
    let parsed = guarded(|| env.parser().enable_ident_escape_syntax(true).parse(text));
    let expression = match parsed {
        Some(Ok(expression)) => expression,
        Some(Err(errors)) => {
            let first = errors.errors.first();
            let message =
                first.map_or_else(String::new, |error| format!("{}:{}: {}", error.pos.0, error.pos.1, error.msg));
            return Err(format!("{NOT_CEL}: {message}"));
        }
        None => return Err(NOT_CEL.to_owned()),
    };
    if is_deep(&expression) {
        return Err(format!("the rule is nested deeper than {DEEPEST_EXPRESSION} levels"));
    }
    Ok(expression)
}

/// Returns an upper bound of the depth of brackets and prefix operators.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut prefixes) = (0_usize, 0_usize, 0_usize);
    for it in text.chars() {
        match it {
            '(' | '[' | '{' => depth = depth.saturating_add(1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        prefixes = if matches!(it, '!' | '-') { prefixes.saturating_add(1) } else { 0 };
        deepest = deepest.max(depth.saturating_add(prefixes));
    }
    deepest
}

fn is_deep(expression: &IdedExpr) -> bool {
    let mut open = vec![(expression, 0_usize)];
    while let Some((expression, depth)) = open.pop() {
        if depth > DEEPEST_EXPRESSION {
            return true;
        }
        open.extend(children(&expression.expr).into_iter().map(|child| (child, depth.saturating_add(1))));
    }
    false
}

/// Returns true if an expression or a part of it has a property.
pub(crate) fn any(expression: &IdedExpr, has: &mut dyn FnMut(&Expr) -> bool) -> bool {
    has(&expression.expr) || children(&expression.expr).into_iter().any(|child| any(child, has))
}

pub(crate) fn children(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(it) => {
            vec![&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(it) => entries(&it.entries),
    }
}

fn entries(entries: &[IdedEntryExpr]) -> Vec<&IdedExpr> {
    let parts = entries.iter().flat_map(|entry| match &entry.expr {
        EntryExpr::StructField(field) => [Some(&field.value), None],
        EntryExpr::MapEntry(entry) => [Some(&entry.key), Some(&entry.value)],
    });
    parts.flatten().collect()
}

thread_local! {
    static EVALUATING: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on a thread that evaluates an expression. A panic is caught then, so that a program's panic hook has nothing to
/// print.
pub fn is_evaluating() -> bool {
    EVALUATING.get()
}

/// Calls into the CEL library. Returns `None` if it panics.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    let outer = EVALUATING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    EVALUATING.set(outer);
    result.ok()
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_panic_of_the_library_is_caught_and_known_to_the_hook() {
        assert!(!is_evaluating());
        assert_eq!(guarded(is_evaluating), Some(true));
        assert_eq!(guarded(|| assert!(!is_evaluating(), "as the library would")), None);
        assert!(!is_evaluating());
    }
}
