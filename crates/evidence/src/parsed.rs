//! The expression of a rule: parses it, within bounds, and visits its parts.

use crate::guard::guarded;
use crate::limits::{DEEPEST_EXPRESSION, LONGEST_RULE};
use cel::Env;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr};

/// The expression of a rule.
#[derive(Debug)]
pub(crate) enum Parsed {
    Expression(Box<IdedExpr>),
    /// The rule compares with the old object, so it does not apply to a create.
    Transition,
    /// The rule cannot be read, for this reason.
    Unreadable(String),
}

impl Parsed {
    /// Parses a rule as one that applies to a create.
    pub(crate) fn of(text: &str, env: &Env) -> Self {
        parse(text, env).map_or_else(Self::Unreadable, |expression| Self::Expression(Box::new(expression)))
    }
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
            return Err(format!("the rule is not CEL: {message}"));
        }
        None => return Err("the rule is not CEL".to_owned()),
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

/// Returns the direct parts of an expression.
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
