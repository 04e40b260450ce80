//! Replaces optional fields: `self.?field`.

use super::{Closed, PartialEvaluator, boolean, nothing};
use crate::facts::Fact;
use crate::selection::{FieldSelection, lacking};
use cel::common::ast::{CallExpr, Expr};

impl PartialEvaluator<'_, '_, '_> {
    /// Replaces `self.?field.hasValue()` and `self.?field.orValue(other)`, and `oldSelf.hasValue()`, which is false on create.
    pub(super) fn optional(&mut self, call: &CallExpr) -> Option<Closed> {
        let target = call.target.as_deref()?;
        let (is_test, other) = match (call.func_name.as_str(), &*call.args) {
            ("hasValue", []) => (true, None),
            ("orValue", [other]) => (false, Some(other)),
            _ => return None,
        };
        if matches!(&target.expr, Expr::Ident(name) if name == "oldSelf") {
            return Some(other.map_or_else(|| Ok(boolean(false)), |other| self.close(other)));
        }
        let selection = FieldSelection::of(target).filter(FieldSelection::is_optional)?;
        let root = self.variable(&selection)?;
        let (names, path) = (selection.names(), selection.fields);
        let strict: Vec<&str> = path.iter().take_while(|(_, optional)| !optional).map(|(name, _)| *name).collect();
        match root.follow(&strict).fact {
            Fact::Absent => return Some(self.error()),
            Fact::Maybe(_) => {
                self.unknown = true;
                return Some(Ok(nothing()));
            }
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) | Fact::Nowhere => {}
        }
        // After the first optional step, a plain step on a field that is set fails if the next field is not set.
        let mut strictly_lacks = false;
        for (length, (_, optional)) in (1_usize..).zip(&path) {
            if length <= strict.len() || *optional {
                continue;
            }
            let upto = |length: usize| names.get(..length).unwrap_or_default();
            let parent = root.follow(upto(length.saturating_sub(1))).fact;
            let is_set = !matches!(parent, Fact::Absent);
            strictly_lacks |= is_set && !matches!(root.follow(upto(length)).fact, Fact::Value(..) | Fact::Present(..));
        }
        if strictly_lacks {
            self.refuse("a field after an optional one");
        }
        Some(match root.follow(&names).fact {
            Fact::Nowhere => {
                self.refuse_because(lacking(&names));
                Ok(nothing())
            }
            Fact::Absent => other.map_or_else(|| Ok(boolean(false)), |other| self.close(other)),
            Fact::Maybe(_) => {
                self.unknown = true;
                Ok(nothing())
            }
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) if is_test => Ok(boolean(true)),
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) => self.read(root, &names),
        })
    }
}
