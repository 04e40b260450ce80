//! One thing wrong with one declaration, and how many and how long such things may be.

use super::{Severity, Source};
use crate::schema::Origin;
use std::collections::BTreeMap;
use std::fmt;

/// Longest message and longest path of a fault, in bytes. Both quote what somebody wrote.
const LONGEST: usize = 512;

/// Most faults that are told of one CRD, and of one `UnionDeclaration` on it, all versions together. The rest is counted.
/// Compiling tells half as many of one version.
const MOST: usize = 128;

/// One thing wrong with one declaration. Displays as one line that stands alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// The name of the CRD; for a built-in type its kind and group, `Deployment.apps`.
    pub definition: String,
    /// The `UnionDeclaration` at fault, if it is one.
    pub declaration: Option<String>,
    /// The version, where the fault belongs to one.
    pub version: Option<String>,
    /// The place in the schema as people write it, `spec.filters[*].type`; empty for the whole.
    pub path: String,
    /// How bad it is.
    pub severity: Severity,
    /// Where the declaration was found, if it was found at all.
    pub source: Option<Source>,
    /// What is at fault in the document of the CRD, or of the `UnionDeclaration`, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Fault {
    /// A kind that can't be read, and why.
    pub fn unreadable(definition: &str, message: String) -> Self {
        Self {
            definition: definition.to_owned(),
            declaration: None,
            version: None,
            path: String::new(),
            severity: Severity::Error,
            source: None,
            pointer: String::new(),
            message,
        }
    }

    /// The same, as the fault of a `UnionDeclaration`.
    pub(super) fn with_origin(self, origin: Option<&Origin>) -> Self {
        match origin {
            None => self,
            Some(Origin { declaration, union }) => {
                Self { declaration: Some(declaration.to_string()), pointer: format!("/spec/unions/{union}"), ..self }
            }
        }
    }

    /// The same, with nothing in it that is longer than a fault may be. A pointer that is too long leads to what is around
    /// the place.
    pub(crate) fn bounded(mut self) -> Self {
        for text in [&mut self.definition, &mut self.path, &mut self.message] {
            shorten(text);
        }
        self.declaration.iter_mut().chain(&mut self.version).for_each(shorten);
        while self.pointer.len() > LONGEST {
            let parent = self.pointer.rfind('/').unwrap_or_default();
            self.pointer.truncate(parent);
        }
        self
    }

    /// Returns the faults of one CRD, sorted: each once, and no more of each declaration than can be of use to somebody.
    /// The rest is counted in a fault of its own, which is an error if one of them is.
    pub(crate) fn limited(faults: Vec<Self>) -> Vec<Self> {
        let mut of_declarations: BTreeMap<Option<String>, Vec<Self>> = BTreeMap::new();
        for fault in faults {
            of_declarations.entry(fault.declaration.clone()).or_default().push(fault);
        }
        let mut limited = Vec::new();
        for mut faults in of_declarations.into_values() {
            // Errors first, so that none is left out for a warning.
            faults.sort_by(|one, other| (one.severity, one).cmp(&(other.severity, other)));
            faults.dedup();
            let rest = faults.split_off(faults.len().min(MOST));
            limited.append(&mut faults);
            // The first of the rest is an error if one of them is.
            let count = rest.len();
            limited.extend(rest.into_iter().next().map(|fault| fault.and_more(count)));
        }
        limited.sort();
        limited
    }

    /// A fault that stands for so many that are left out, one of which is this.
    fn and_more(self, count: usize) -> Self {
        Self {
            version: None,
            path: String::new(),
            pointer: String::new(),
            message: format!("and at least {count} more; mend those that are told, and the next are"),
            ..self
        }
    }
}

/// Cuts a text that is longer than a fault may quote.
fn shorten(text: &mut String) {
    if text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        text.truncate(end);
        text.push('…');
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.definition)?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        f.write_str(": ")?;
        match (&self.declaration, self.source) {
            (Some(declaration), _) => write!(f, "declaration `{declaration}`: ")?,
            (None, Some(source)) if source != Source::Schema => write!(f, "{source}: ")?,
            (None, _) => {}
        }
        f.write_str(&self.message)
    }
}
