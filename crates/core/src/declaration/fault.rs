//! Faults of declarations, with limits on their number and length.

use super::{FaultKind, Severity, Source};
use crate::listed::listed;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Longest message and longest path of a fault, in bytes. Both quote user input.
const LONGEST: usize = 512;

/// Most faults of one CRD, and of one `UnionDeclaration` for it, of all versions together. The rest is counted. Compiling
/// reports half as many of each version.
const MOST: usize = 128;

/// A fault of a declaration. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// The name of the CRD. A built-in type has kind and group, for example `Deployment.apps`.
    pub definition: String,
    /// The `UnionDeclaration`, if the fault is in one.
    pub declaration: Option<String>,
    /// The version, if the fault belongs to one.
    pub version: Option<String>,
    /// The place in the schema, for example `spec.filters[*].type`. Empty for the whole.
    pub path: String,
    /// The source of the declaration, if there is one.
    pub source: Option<Source>,
    /// The JSON Pointer (RFC 6901) of the fault in the document of the CRD or `UnionDeclaration`.
    pub pointer: String,
    /// The fault, and how to repair it.
    pub message: String,
    /// True if the fault is a note about a part of the declaration that is left out, because the schema lacks it.
    pub left_out: bool,
    /// The kind.
    pub kind: FaultKind,
}

impl Fault {
    /// Returns a fault of a whole definition. It is left out if its kind is.
    pub fn new(kind: FaultKind, definition: &str, message: String) -> Self {
        Self {
            definition: definition.to_owned(),
            declaration: None,
            version: None,
            path: String::new(),
            source: None,
            pointer: String::new(),
            message,
            left_out: kind.is_left_out(),
            kind,
        }
    }

    /// Returns a fault of a `UnionDeclaration` for a definition, at a JSON Pointer in the declaration.
    pub fn of_declaration(
        kind: FaultKind,
        definition: &str,
        declaration: &str,
        pointer: &str,
        message: String,
    ) -> Self {
        Self {
            declaration: Some(declaration.to_owned()),
            source: Some(Source::Declaration),
            pointer: pointer.to_owned(),
            ..Self::new(kind, definition, message)
        }
    }

    /// Returns the severity, which depends on the kind alone.
    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }

    /// Cuts long texts. A long pointer is cut to an enclosing place.
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

    /// Returns the faults of one CRD, sorted, cut, without duplicates and up to a limit for each declaration. A last fault
    /// counts the rest; it is an error if one of the rest is.
    pub(crate) fn limited(faults: Vec<Self>) -> Vec<Self> {
        let mut of_declarations: BTreeMap<Option<String>, Vec<Self>> = BTreeMap::new();
        for fault in faults.into_iter().map(Self::bounded) {
            of_declarations.entry(fault.declaration.clone()).or_default().push(fault);
        }
        let mut limited = Vec::new();
        for mut faults in of_declarations.into_values() {
            // Sort errors first, so that none is left out for a warning or note.
            faults.sort_by(|one, other| {
                (one.severity(), !one.left_out, one).cmp(&(other.severity(), !other.left_out, other))
            });
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

    /// Returns a fault that stands for `count` faults, including this one.
    fn and_more(self, count: usize) -> Self {
        Self {
            version: None,
            path: String::new(),
            pointer: String::new(),
            kind: FaultKind::more(self.severity()),
            message: format!("and at least {count} more; repair those above to see the next"),
            ..self
        }
    }
}

/// A fault that one or several versions have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultOfVersions<'f> {
    /// The fault in the first of the versions.
    pub fault: &'f Fault,
    /// The versions that have it, in the order of the faults. Empty if it belongs to none.
    pub versions: Vec<&'f str>,
}

impl<'f> FaultOfVersions<'f> {
    /// Groups faults that differ only in their version, in the order of the first of each group.
    pub fn group(faults: impl IntoIterator<Item = &'f Fault>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let mut known = HashMap::new();
        for fault in faults {
            let Fault { definition, declaration, version: _, path, source, pointer, message, left_out, kind } = fault;
            // The annotation has an entry for each version.
            let pointer = Some(pointer).filter(|_| *source != Some(Source::Annotation));
            let same = (definition, declaration, path, source, pointer, message, left_out, kind);
            let position = *known.entry(same).or_insert(groups.len());
            if position == groups.len() {
                groups.push(Self { fault, versions: Vec::new() });
            }
            if let (Some(group), Some(version)) = (groups.get_mut(position), fault.version.as_deref())
                && !group.versions.contains(&version)
            {
                group.versions.push(version);
            }
        }
        groups
    }

    /// Returns the names of the versions, the first of many.
    pub fn versions_text(&self) -> String {
        listed(self.versions.iter(), 8)
    }
}

/// Cuts a text that is too long for a fault.
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
