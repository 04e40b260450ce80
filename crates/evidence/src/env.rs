//! The means of judging rules.

use crate::limits::MOST_STEPS;
use crate::parsed::Parsed;
use cel::Env;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

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

    /// Parses a rule, once.
    pub(crate) fn parse(&self, text: &str) -> Rc<Parsed> {
        if let Some(known) = self.parsed.borrow().get(text) {
            return Rc::clone(known);
        }
        let parsed = Rc::new(Parsed::of(text, &self.library));
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
