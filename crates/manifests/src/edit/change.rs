//! The change that an edit makes to a value.

use kube_unions_core::field_path::pointer;
use serde_json::Value;

/// A change to a member of an object, by the path of the member.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Removes the member.
    Remove(Vec<String>),
    /// Adds the member or replaces its value. The object must exist.
    Set(Vec<String>, Value),
    /// Keeps some items of a list and adds others after them. Adds a list that does not exist, and removes one without items.
    Items {
        /// The path of the list.
        path: Vec<String>,
        /// The positions of the items that stay, ascending.
        kept: Vec<usize>,
        /// The items that follow them.
        added: Vec<Value>,
    },
}

impl Edit {
    /// Returns the path of the member.
    pub fn path(&self) -> &[String] {
        match self {
            Self::Remove(path) | Self::Set(path, _) | Self::Items { path, .. } => path,
        }
    }

    pub(super) fn apply(&self, value: &mut Value) {
        let Some((name, parents)) = self.path().split_last() else { return };
        let Some(Value::Object(members)) = value.pointer_mut(&pointer(parents)) else { return };
        match self {
            Self::Remove(_) => {
                members.shift_remove(name);
            }
            Self::Set(_, value) => {
                members.insert(name.clone(), value.clone());
            }
            Self::Items { kept, added, .. } => {
                let before = members.get(name).and_then(Value::as_array);
                let kept = kept.iter().filter_map(|position| before?.get(*position)).cloned();
                let items: Vec<Value> = kept.chain(added.iter().cloned()).collect();
                if items.is_empty() {
                    members.shift_remove(name);
                } else {
                    members.insert(name.clone(), items.into());
                }
            }
        }
    }
}
