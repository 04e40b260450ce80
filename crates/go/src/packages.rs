//! Packages and their types.
//!
//! [`names`] finds a name in its package or through an import, [`resolve`] follows the names in a type to the type behind them,
//! [`constants`] evaluates constants.

mod constants;
mod names;
mod resolve;

pub(super) use self::names::UnknownType;
pub(super) use self::resolve::{ResolvedType, Underlying};

use super::types::{ConstantType, GoFile, Type, TypeDeclaration};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Longest chain of names from a type to its underlying type, and deepest nesting of a constant.
const LONGEST: usize = 100;

/// All parsed files, by package.
#[derive(Debug, Default)]
pub struct Packages {
    all: Vec<Package>,
    /// Packages with a known import path.
    by_path: HashMap<Box<str>, usize>,
    /// Packages of folders without a `go.mod`.
    without_path: Vec<usize>,
}

/// The files of one folder that have the same package clause.
#[derive(Debug, Default)]
pub(super) struct Package {
    folder: PathBuf,
    pub(super) name: Box<str>,
    pub(super) files: Vec<GoFile>,
    /// File and index of each type, by name.
    types: HashMap<Box<str>, Vec<(usize, usize)>>,
    /// File and index of each constant, by name.
    constants: HashMap<Box<str>, (usize, usize)>,
    /// File and index of the constants that a type of this package types, by its name.
    typed_constants: HashMap<Box<str>, Vec<(usize, usize)>>,
    /// File and index of the constants that get their type from their value.
    derived_constants: Vec<(usize, usize)>,
}

/// A declared type: an index into [`Packages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TypeId {
    pub(super) package: usize,
    file: usize,
    position: usize,
}

/// The scope that resolves the names in a type: a file, and the arguments of the generic type around it.
#[derive(Debug, Clone)]
pub(super) struct Scope<'p> {
    package: usize,
    file: usize,
    arguments: Rc<HashMap<&'p str, ScopedType<'p>>>,
}

/// A type expression with the scope of its names.
#[derive(Debug, Clone)]
pub(super) struct ScopedType<'p> {
    pub(super) written: &'p Type,
    pub(super) scope: Scope<'p>,
}

impl Packages {
    /// Adds all files of a folder. `path` is its import path, if it is known.
    ///
    /// Files with different package clauses, for example `v1` and `v1_test`, become separate packages.
    pub fn add(&mut self, folder: &Path, path: Option<&str>, files: Vec<GoFile>) {
        let first = self.all.len();
        for file in files {
            let known = self.all.iter().skip(first).position(|package| package.name == file.package);
            let index = known.map_or(self.all.len(), |position| first + position);
            if known.is_none() {
                match path {
                    Some(path) => drop(self.by_path.entry(path.into()).or_insert(index)),
                    None => self.without_path.push(index),
                }
                let (folder, name) = (folder.to_owned(), file.package.clone());
                self.all.push(Package { folder, name, ..Package::default() });
            }
            if let Some(package) = self.all.get_mut(index) {
                package.add(file);
            }
        }
    }

    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.all.iter().map(|package| package.files.len()).sum()
    }

    pub(super) fn packages(&self) -> impl Iterator<Item = (usize, &Package)> {
        self.all.iter().enumerate()
    }

    pub(super) fn package(&self, index: usize) -> Option<&Package> {
        self.all.get(index)
    }

    pub(super) fn declaration(&self, id: TypeId) -> Option<&TypeDeclaration> {
        self.all.get(id.package)?.files.get(id.file)?.types.get(id.position)
    }

    /// Returns the declarations of a type name in a package. More than one is an error in the sources.
    pub(super) fn declared(&self, package: usize, name: &str) -> Vec<TypeId> {
        let found = self.all.get(package).and_then(|it| it.types.get(name)).into_iter().flatten();
        found.map(|&(file, position)| TypeId { package, file, position }).collect()
    }

    /// Returns the name of a type with its package: `v1.Rollout`.
    pub(super) fn title(&self, id: TypeId) -> String {
        let package = self.package(id.package).map_or("", |package| &package.name);
        format!("{package}.{}", self.declaration(id).map_or("", |declaration| &declaration.name))
    }

    /// Returns the definition of a declared type in the scope of its file.
    pub(super) fn typed(&self, id: TypeId) -> Option<ScopedType<'_>> {
        let written = &self.declaration(id)?.definition;
        Some(ScopedType { written, scope: Scope { package: id.package, file: id.file, arguments: Rc::default() } })
    }
}

impl Package {
    fn add(&mut self, file: GoFile) {
        let number = self.files.len();
        for (position, declaration) in file.types.iter().enumerate() {
            self.types.entry(declaration.name.clone()).or_default().push((number, position));
        }
        for (position, constant) in file.constants.iter().enumerate() {
            self.constants.entry(constant.name.clone()).or_insert((number, position));
            match constant.declared_type() {
                ConstantType::Named(name) => {
                    self.typed_constants.entry(name.into()).or_default().push((number, position));
                }
                ConstantType::FromValue => self.derived_constants.push((number, position)),
                ConstantType::Other => {}
            }
        }
        self.files.push(file);
    }

    /// Returns the API group of `+groupName`.
    pub(super) fn group(&self) -> Option<&str> {
        self.files.iter().find_map(|file| file.group.as_deref())
    }

    /// Returns the API version: the value of `+versionName`, or the name of the package.
    pub(super) fn version(&self) -> &str {
        self.files.iter().find_map(|file| file.version.as_deref()).unwrap_or(&self.name)
    }

    pub(super) fn types(&self) -> impl Iterator<Item = &TypeDeclaration> {
        self.files.iter().flat_map(|file| &file.types)
    }
}
