//! Packages: files that share their names, found by the path under which others import them.

use super::types::{Constant, Expression, GoFile, Import, Position, Struct, Type, TypeDeclaration, WrittenType};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How many names may lead to one type.
const LONGEST: usize = 100;

/// Everything that was read, by package.
#[derive(Debug, Default)]
pub struct Packages {
    all: Vec<Package>,
    /// Where the module of a package is known: its import path.
    by_path: HashMap<Box<str>, usize>,
    /// The others.
    without_path: Vec<usize>,
}

/// The files of one folder that say the same `package`.
#[derive(Debug)]
pub(super) struct Package {
    folder: PathBuf,
    pub(super) name: Box<str>,
    pub(super) files: Vec<GoFile>,
    /// Name → file and position in it, in the order of the files.
    types: HashMap<Box<str>, Vec<(usize, usize)>>,
    constants: HashMap<Box<str>, (usize, usize)>,
    /// The same by the name of the type that they are written with.
    typed_constants: HashMap<Box<str>, Vec<(usize, usize)>>,
    /// Those of which only their value can tell the type.
    derived_constants: Vec<(usize, usize)>,
}

/// A declared type, by its place in [`Packages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TypeId {
    pub(super) package: usize,
    file: usize,
    position: usize,
}

/// What the names in a type mean: those of its file, and the arguments of the generic type around it.
#[derive(Debug, Clone)]
pub(super) struct Scope<'p> {
    package: usize,
    file: usize,
    arguments: Rc<HashMap<&'p str, ScopedType<'p>>>,
}

/// A type as it is written, with what its names mean.
#[derive(Debug, Clone)]
pub(super) struct ScopedType<'p> {
    pub(super) written: &'p Type,
    pub(super) scope: Scope<'p>,
}

/// What a type comes to when its names are followed.
#[derive(Debug, Clone)]
pub(super) struct ResolvedType<'p> {
    /// Whether there is a pointer on the way.
    pub(super) pointer: bool,
    /// The declarations on the way, outermost first.
    pub(super) names: Vec<TypeId>,
    pub(super) end: Underlying<'p>,
}

/// What stands where the names end.
#[derive(Debug, Clone)]
pub(super) enum Underlying<'p> {
    Struct {
        fields: &'p Struct,
        scope: Scope<'p>,
    },
    List(ScopedType<'p>),
    Map(ScopedType<'p>),
    /// A type of the language, or of which nothing is known: nothing can be in it.
    Plain,
    /// A type of a package that was not given.
    Missing {
        package: Box<str>,
        name: Box<str>,
    },
    /// Names that lead back to each other.
    Cycle,
}

impl Packages {
    /// Adds the files of a folder, all at once. `path` is under which path the folder is imported, where that is known.
    ///
    /// Files of one folder that belong to different packages, `v1` and `v1_test`, are packages apart.
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
                self.all.push(Package {
                    folder: folder.to_owned(),
                    name: file.package.clone(),
                    files: Vec::new(),
                    types: HashMap::new(),
                    constants: HashMap::new(),
                    typed_constants: HashMap::new(),
                    derived_constants: Vec::new(),
                });
            }
            if let Some(package) = self.all.get_mut(index) {
                package.add(file);
            }
        }
    }

    /// How many files there are.
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

    /// All types of a name in a package.
    pub(super) fn declared(&self, package: usize, name: &str) -> Vec<TypeId> {
        let found = self.all.get(package).and_then(|it| it.types.get(name)).into_iter().flatten();
        found.map(|&(file, position)| TypeId { package, file, position }).collect()
    }

    /// `v1.Rollout`, as it is said of a declared type.
    pub(super) fn title(&self, id: TypeId) -> String {
        let package = self.package(id.package).map_or("", |package| &package.name);
        format!("{package}.{}", self.declaration(id).map_or("", |declaration| &declaration.name))
    }

    /// What a declared type is, as the type of something.
    pub(super) fn typed(&self, id: TypeId) -> Option<ScopedType<'_>> {
        let written = &self.declaration(id)?.definition;
        Some(ScopedType { written, scope: Scope { package: id.package, file: id.file, arguments: Rc::default() } })
    }

    /// Follows the names of a type to their end.
    pub(super) fn resolve<'p>(&'p self, typed: &ScopedType<'p>) -> ResolvedType<'p> {
        let mut resolved = ResolvedType { pointer: false, names: Vec::new(), end: Underlying::Cycle };
        let mut typed = typed.clone();
        for _ in 0..LONGEST {
            let inner = |written| ScopedType { written, scope: typed.scope.clone() };
            match typed.written {
                Type::Pointer(target) => {
                    resolved.pointer = true;
                    typed = inner(target);
                }
                Type::List(element) => return ResolvedType { end: Underlying::List(inner(element)), ..resolved },
                Type::Map(value) => return ResolvedType { end: Underlying::Map(inner(value)), ..resolved },
                Type::Struct(fields) => {
                    return ResolvedType { end: Underlying::Struct { fields, scope: typed.scope.clone() }, ..resolved };
                }
                Type::Other => return ResolvedType { end: Underlying::Plain, ..resolved },
                Type::Named { qualifier, name, arguments } => {
                    if let Some(argument) = qualifier.is_none().then(|| typed.scope.arguments.get(&**name)).flatten() {
                        typed = argument.clone();
                        continue;
                    }
                    match self.find(&typed.scope, qualifier.as_deref(), name) {
                        Ok(Some(id)) => {
                            resolved.names.push(id);
                            let Some(next) = self.instance(id, arguments, &typed.scope) else { break };
                            typed = next;
                        }
                        Ok(None) => return ResolvedType { end: Underlying::Plain, ..resolved },
                        Err(package) => {
                            let name = name.clone();
                            return ResolvedType { end: Underlying::Missing { package, name }, ..resolved };
                        }
                    }
                }
            }
        }
        resolved
    }

    /// A declared type with its arguments.
    fn instance<'p>(&'p self, id: TypeId, arguments: &'p [Type], scope: &Scope<'p>) -> Option<ScopedType<'p>> {
        let declaration = self.declaration(id)?;
        let typed = arguments.iter().map(|written| ScopedType { written, scope: scope.clone() });
        let arguments = declaration.parameters.iter().map(|name| &**name).zip(typed).collect();
        let scope = Scope { package: id.package, file: id.file, arguments: Rc::new(arguments) };
        Some(ScopedType { written: &declaration.definition, scope })
    }

    /// The declaration of a name; none for the language's own. Fails with the path of a package that was not given.
    fn find(&self, scope: &Scope<'_>, qualifier: Option<&str>, name: &str) -> Result<Option<TypeId>, Box<str>> {
        let first = |package| self.declared(package, name).first().copied();
        let Some(qualifier) = qualifier else {
            if let Some(id) = first(scope.package) {
                return Ok(Some(id));
            }
            let joined = self.imports(scope).filter(|import| import.alias.as_deref() == Some("."));
            return Ok(joined.filter_map(|import| self.imported(&import.path)).find_map(first));
        };
        let path = self.import(scope, qualifier).ok_or_else(|| Box::<str>::from(qualifier))?;
        match self.imported(path) {
            Some(package) => Ok(first(package)),
            None => Err(path.into()),
        }
    }

    fn imports(&self, scope: &Scope<'_>) -> impl Iterator<Item = &Import> {
        let file = self.all.get(scope.package).and_then(|package| package.files.get(scope.file));
        file.into_iter().flat_map(|file| &file.imports)
    }

    /// The path that a file imports under a name.
    fn import(&self, scope: &Scope<'_>, name: &str) -> Option<&str> {
        let is_called = |import: &&Import| match import.alias.as_deref() {
            Some(alias) => alias == name,
            // The name is what the package says; of one that was not given it can only be guessed.
            None => match self.imported(&import.path).and_then(|index| self.package(index)) {
                Some(package) => *package.name == *name,
                None => may_be_called(&import.path, name),
            },
        };
        self.imports(scope).find(is_called).map(|import| &*import.path)
    }

    /// The package that is imported under a path.
    fn imported(&self, path: &str) -> Option<usize> {
        if let Some(&index) = self.by_path.get(path) {
            return Some(index);
        }
        // In a tree without modules, GOPATH's or what was vendored, a folder's path ends with the import path.
        let is_at = |index: &usize| self.package(*index).is_some_and(|package| package.folder.ends_with(path));
        self.without_path.iter().copied().find(is_at)
    }

    /// The text of a constant and the type that its value gives it, if it has a text that can be told.
    pub(super) fn text(&self, package: usize, file: usize, value: &Expression) -> Option<(Option<TypeId>, String)> {
        self.text_at(package, file, value, 0)
    }

    fn text_at(
        &self,
        package: usize,
        file: usize,
        value: &Expression,
        depth: usize,
    ) -> Option<(Option<TypeId>, String)> {
        if depth > LONGEST {
            return None;
        }
        let scope = Scope { package, file, arguments: Rc::default() };
        match value {
            Expression::Text(text) => Some((None, text.to_string())),
            Expression::Sum(left, right) => {
                let (one, left) = self.text_at(package, file, left, depth + 1)?;
                let (other, right) = self.text_at(package, file, right, depth + 1)?;
                Some((one.or(other), left + &right))
            }
            Expression::Conversion { to: Type::Named { qualifier, name, .. }, value } => {
                let (_, text) = self.text_at(package, file, value, depth + 1)?;
                let to = self.find(&scope, qualifier.as_deref(), name).ok().flatten();
                (to.is_some() || &**name == "string").then_some((to, text))
            }
            Expression::Name { qualifier, name } => {
                let package = match qualifier.as_deref() {
                    None => package,
                    Some(qualifier) => self.imported(self.import(&scope, qualifier)?)?,
                };
                let held = self.package(package)?;
                let &(file, position) = held.constants.get(name)?;
                let constant = held.files.get(file)?.constants.get(position)?;
                let (converted, text) = self.text_at(package, file, &constant.value, depth + 1)?;
                Some((self.type_of(package, file, constant).or(converted), text))
            }
            Expression::Conversion { .. } | Expression::Other => None,
        }
    }

    /// The type that a constant is declared with.
    fn type_of(&self, package: usize, file: usize, constant: &Constant) -> Option<TypeId> {
        let Some(Type::Named { qualifier, name, .. }) = &constant.written else { return None };
        self.find(&Scope { package, file, arguments: Rc::default() }, qualifier.as_deref(), name).ok().flatten()
    }

    /// The constants of a type that its own package declares: their text, if it can be told, and where they stand.
    pub(super) fn constants_of(&self, id: TypeId) -> Vec<(Option<String>, &Position)> {
        let (Some(package), Some(declaration)) = (self.package(id.package), self.declaration(id)) else {
            return Vec::new();
        };
        let typed = package.typed_constants.get(&declaration.name).into_iter().flatten();
        let candidates = typed.chain(&package.derived_constants);
        let constant = |&(file, position): &(usize, usize)| {
            let constant = package.files.get(file)?.constants.get(position)?;
            let text = self.text(id.package, file, &constant.value);
            let converted = text.as_ref().and_then(|(converted, _)| *converted);
            let of_type = self.type_of(id.package, file, constant).or(converted) == Some(id);
            of_type.then_some((text.map(|(_, text)| text), &constant.at))
        };
        candidates.filter_map(constant).collect()
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
            match constant.written_type() {
                WrittenType::Named(name) => {
                    self.typed_constants.entry(name.into()).or_default().push((number, position));
                }
                WrittenType::OfValue => self.derived_constants.push((number, position)),
                WrittenType::Other => {}
            }
        }
        self.files.push(file);
    }

    /// The API group that a marker gives it.
    pub(super) fn group(&self) -> Option<&str> {
        self.files.iter().find_map(|file| file.group.as_deref())
    }

    /// The API version: what a marker says, or the package's name.
    pub(super) fn version(&self) -> &str {
        self.files.iter().find_map(|file| file.version.as_deref()).unwrap_or(&self.name)
    }

    pub(super) fn types(&self) -> impl Iterator<Item = &TypeDeclaration> {
        self.files.iter().flat_map(|file| &file.types)
    }
}

/// Whether a package may be called so of which only the path is known: as its last part, or as the one before a major version.
fn may_be_called(path: &str, name: &str) -> bool {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let is_major = last.strip_prefix('v').is_some_and(|digits| digits.parse::<u32>().is_ok());
    let before = parts.next().filter(|_| is_major);
    // `gopkg.in/inf.v0` is called `inf`.
    [Some(last), before].into_iter().flatten().any(|part| part == name || part.split(".v").next() == Some(name))
}
