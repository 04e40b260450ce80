//! Finds the type behind a name: in its own package, or through an import.

use super::{Packages, Scope, TypeId};
use crate::types::{BrokenDeclaration, Import};

/// The predeclared types of Go. None of them contains fields.
const PREDECLARED: &str = "any bool byte comparable complex128 complex64 error float32 float64 int int16 int32 int64 int8 rune \
                           string uint uint16 uint32 uint64 uint8 uintptr";

/// The reason why the type behind a name is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnknownType<'p> {
    /// The sources of its package, by import path, were not given.
    NotGiven(&'p str),
    /// The package at this index, whose sources were given, does not declare the name.
    Undeclared(usize),
    /// The name is declared in Go that the parser cannot read.
    Broken(&'p BrokenDeclaration),
}

impl Packages {
    /// Looks up a type name. Returns `None` for a predeclared type.
    pub(super) fn find<'p>(
        &'p self,
        scope: &Scope<'p>,
        qualifier: Option<&'p str>,
        name: &str,
    ) -> Result<Option<TypeId>, UnknownType<'p>> {
        if let Some(qualifier) = qualifier {
            let path = self.import(scope, qualifier).ok_or(UnknownType::NotGiven(qualifier))?;
            let package = self.imported(path).ok_or(UnknownType::NotGiven(path))?;
            return self.find_in(package, name).map(Some);
        }
        let own = self.find_in(scope.package, name);
        if !matches!(own, Err(UnknownType::Undeclared(_))) {
            return own.map(Some);
        }
        let joined = self.imports(scope).filter(|import| import.alias.as_deref() == Some("."));
        let mut not_given = None;
        for import in joined {
            match self.imported(&import.path).map(|package| self.find_in(package, name)) {
                Some(Err(UnknownType::Undeclared(_))) => {}
                Some(found) => return found.map(Some),
                None => not_given = Some(&*import.path),
            }
        }
        if PREDECLARED.split(' ').any(|predeclared| predeclared == name) {
            return Ok(None);
        }
        not_given.map_or(own.map(Some), |path| Err(UnknownType::NotGiven(path)))
    }

    /// Returns the declaration of a type name, if the sources have it.
    pub(super) fn find_declared(&self, scope: &Scope<'_>, qualifier: Option<&str>, name: &str) -> Option<TypeId> {
        self.find(scope, qualifier, name).ok().flatten()
    }

    fn find_in(&self, package: usize, name: &str) -> Result<TypeId, UnknownType<'_>> {
        let declared = self.declared(package, name).first().copied();
        declared.ok_or_else(|| self.broken(package, name).map_or(UnknownType::Undeclared(package), UnknownType::Broken))
    }

    /// Returns the broken declaration of a type name in a package.
    pub(crate) fn broken(&self, package: usize, name: &str) -> Option<&BrokenDeclaration> {
        let broken = self.all.get(package)?.files.iter().flat_map(|file| &file.broken);
        broken.into_iter().find(|broken| broken.types.iter().any(|declared| **declared == *name))
    }

    fn imports(&self, scope: &Scope<'_>) -> impl Iterator<Item = &Import> {
        let file = self.all.get(scope.package).and_then(|package| package.files.get(scope.file));
        file.into_iter().flat_map(|file| &file.imports)
    }

    /// Returns the path that a file imports under a name.
    pub(super) fn import(&self, scope: &Scope<'_>, name: &str) -> Option<&str> {
        let is_called = |import: &&Import| match import.alias.as_deref() {
            Some(alias) => alias == name,
            // The package clause decides. Without the sources, only the path is known.
            None => match self.imported(&import.path).and_then(|index| self.package(index)) {
                Some(package) => *package.name == *name,
                None => may_be_named(&import.path, name),
            },
        };
        self.imports(scope).find(is_called).map(|import| &*import.path)
    }

    /// Returns the package with an import path.
    pub(super) fn imported(&self, path: &str) -> Option<usize> {
        if let Some(&index) = self.by_path.get(path) {
            return Some(index);
        }
        // Without a module (in GOPATH), the path of the folder ends with the import path.
        let is_at = |index: &usize| self.package(*index).is_some_and(|package| package.folder.ends_with(path));
        self.without_path.iter().copied().find(is_at)
    }
}

/// Guesses whether the package at an import path is named `name`: by the last segment, or the one before a major version.
fn may_be_named(path: &str, name: &str) -> bool {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let is_major = last.strip_prefix('v').is_some_and(|digits| digits.parse::<u32>().is_ok());
    let before = parts.next().filter(|_| is_major);
    // The package of `gopkg.in/inf.v0` is `inf`.
    [Some(last), before].into_iter().flatten().any(|part| part == name || part.split(".v").next() == Some(name))
}
