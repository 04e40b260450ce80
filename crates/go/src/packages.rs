//! Packages and their types: finds a name in its package or through an import, follows the names in a type to the type behind them,
//! and evaluates constants, as far as they are texts.

use crate::finding::Position;
use crate::types::{
    BrokenDeclaration, Constant, ConstantExpression, Field, GoFile, Import, Type, TypeDeclaration, is_predeclared,
};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Longest chain of names from a type to its underlying type, and deepest nesting of a constant.
const LONGEST: usize = 100;

/// Most bytes of a constant. Constants that add constants double with each name.
const LONGEST_TEXT: usize = 1024;

/// All parsed files, by package.
#[derive(Debug, Default)]
pub struct Packages {
    all: Vec<Package>,
    /// Packages with a known import path.
    by_path: HashMap<Box<str>, usize>,
    /// Packages of folders without a `go.mod`.
    without_path: Vec<usize>,
    /// The constants of each type in its own package, once they are asked for.
    by_type: OnceCell<HashMap<TypeId, Vec<TypedConstant>>>,
}

#[derive(Debug)]
struct TypedConstant {
    /// Its text, if the sources determine it.
    text: Option<String>,
    id: ConstantId,
}

/// A declared constant: an index into [`Packages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ConstantId {
    package: usize,
    file: usize,
    position: usize,
}

/// The type that conversions give a constant, and its text.
type ConstantText = (Option<TypeId>, String);

/// The constants whose text is known, so that each is evaluated once.
type KnownTexts = HashMap<ConstantId, ConstantText>;

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
    /// File and index of the first broken declaration of each type name.
    broken: HashMap<Box<str>, (usize, usize)>,
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

/// A type whose names have been followed.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedType<'p> {
    /// A pointer was on the way.
    pub(crate) pointer: bool,
    /// The declared types on the way, outermost first.
    pub(crate) names: Vec<TypeId>,
    pub(crate) underlying: Underlying<'p>,
}

/// The type behind all names and pointers.
#[derive(Debug, Clone)]
pub(crate) enum Underlying<'p> {
    Struct {
        fields: &'p [Field],
        scope: Scope<'p>,
    },
    List(ScopedType<'p>),
    Map(ScopedType<'p>),
    /// A predeclared type, or one that no JSON object contains.
    Plain,
    /// A type that cannot be followed.
    Unknown {
        name: &'p str,
        reason: UnknownType<'p>,
    },
    /// A type that is defined by itself.
    Cycle,
}

impl Packages {
    /// Adds all files of a folder. `path` is its import path, if it is known.
    ///
    /// Files with different package clauses, for example `v1` and `v1_test`, become separate packages.
    pub fn add(&mut self, folder: &Path, path: Option<&str>, files: Vec<GoFile>) {
        self.by_type.take();
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

    /// Looks up a type name. Returns `None` for a predeclared type.
    fn find<'p>(
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
        if is_predeclared(name) {
            return Ok(None);
        }
        not_given.map_or(own.map(Some), |path| Err(UnknownType::NotGiven(path)))
    }

    /// Returns the declaration of a type name, if the sources have it.
    fn find_declared(&self, scope: &Scope<'_>, qualifier: Option<&str>, name: &str) -> Option<TypeId> {
        self.find(scope, qualifier, name).ok().flatten()
    }

    fn find_in(&self, package: usize, name: &str) -> Result<TypeId, UnknownType<'_>> {
        let declared = self.declared(package, name).first().copied();
        declared.ok_or_else(|| self.broken(package, name).map_or(UnknownType::Undeclared(package), UnknownType::Broken))
    }

    /// Returns the broken declaration of a type name in a package.
    pub(crate) fn broken(&self, package: usize, name: &str) -> Option<&BrokenDeclaration> {
        let package = self.all.get(package)?;
        let &(file, position) = package.broken.get(name)?;
        package.files.get(file)?.broken.get(position)
    }

    fn imports(&self, scope: &Scope<'_>) -> impl Iterator<Item = &Import> {
        let file = self.all.get(scope.package).and_then(|package| package.files.get(scope.file));
        file.into_iter().flat_map(|file| &file.imports)
    }

    /// Returns the path that a file imports under a name.
    fn import(&self, scope: &Scope<'_>, name: &str) -> Option<&str> {
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
    fn imported(&self, path: &str) -> Option<usize> {
        if let Some(&index) = self.by_path.get(path) {
            return Some(index);
        }
        // Without a module (in GOPATH), the path of the folder ends with the import path.
        let is_at = |index: &usize| self.package(*index).is_some_and(|package| package.folder.ends_with(path));
        self.without_path.iter().copied().find(is_at)
    }

    /// Returns true if declarative validation takes the zero value of a type as not set. A pointer to one is set.
    pub(crate) fn is_unset_if_empty(&self, typed: &ScopedType<'_>) -> bool {
        let ResolvedType { pointer, underlying, .. } = self.resolve(typed);
        !pointer && matches!(underlying, Underlying::List(_) | Underlying::Map(_) | Underlying::Plain)
    }

    /// Follows the names and pointers of a type.
    pub(crate) fn resolve<'p>(&'p self, typed: &ScopedType<'p>) -> ResolvedType<'p> {
        let mut resolved = ResolvedType { pointer: false, names: Vec::new(), underlying: Underlying::Cycle };
        let mut typed = typed.clone();
        for _ in 0..LONGEST {
            let inner = |written| ScopedType { written, scope: typed.scope.clone() };
            resolved.underlying = match typed.written {
                Type::Pointer(target) => {
                    resolved.pointer = true;
                    typed = inner(target);
                    continue;
                }
                Type::List(element) => Underlying::List(inner(element)),
                Type::Map(value) => Underlying::Map(inner(value)),
                Type::Struct(fields) => Underlying::Struct { fields, scope: typed.scope.clone() },
                Type::Other => Underlying::Plain,
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
                            continue;
                        }
                        Ok(None) => Underlying::Plain,
                        Err(reason) => Underlying::Unknown { name, reason },
                    }
                }
            };
            break;
        }
        resolved
    }

    /// Returns the definition of a declared type, with its type arguments in scope.
    fn instance<'p>(&'p self, id: TypeId, arguments: &'p [Type], scope: &Scope<'p>) -> Option<ScopedType<'p>> {
        let declaration = self.declaration(id)?;
        let typed = arguments.iter().map(|written| ScopedType { written, scope: scope.clone() });
        let arguments = declaration.parameters.iter().map(|name| &**name).zip(typed).collect();
        let scope = Scope { package: id.package, file: id.file, arguments: Rc::new(arguments) };
        Some(ScopedType { written: &declaration.definition, scope })
    }

    /// Returns the text of a constant expression and the type that its conversions give it. `None` if it is not a text that
    /// the sources determine, or longer than [`LONGEST_TEXT`].
    fn text(
        &self,
        scope: &Scope<'_>,
        value: &ConstantExpression,
        depth: usize,
        known: &mut KnownTexts,
    ) -> Option<ConstantText> {
        if depth > LONGEST {
            return None;
        }
        let (of_type, text) = match value {
            ConstantExpression::Text(text) => (None, text.to_string()),
            ConstantExpression::Sum(left, right) => {
                let (one, left) = self.text(scope, left, depth + 1, known)?;
                let (other, right) = self.text(scope, right, depth + 1, known)?;
                (one.or(other), left + &right)
            }
            ConstantExpression::Conversion { to: Type::Named { qualifier, name, .. }, value } => {
                let (_, text) = self.text(scope, value, depth + 1, known)?;
                let to = self.find_declared(scope, qualifier.as_deref(), name);
                (to.is_some() || &**name == "string").then_some((to, text))?
            }
            ConstantExpression::Name { qualifier, name } => {
                let package = match qualifier.as_deref() {
                    None => scope.package,
                    Some(qualifier) => self.imported(self.import(scope, qualifier)?)?,
                };
                let &(file, position) = self.package(package)?.constants.get(name)?;
                self.text_of(ConstantId { package, file, position }, depth + 1, known)?
            }
            ConstantExpression::Conversion { .. } | ConstantExpression::Other => return None,
        };
        (text.len() <= LONGEST_TEXT).then_some((of_type, text))
    }

    /// Returns the text of a declared constant and its type, as [`Self::text`] does.
    fn text_of(&self, id: ConstantId, depth: usize, known: &mut KnownTexts) -> Option<ConstantText> {
        if let Some(known) = known.get(&id) {
            return Some(known.clone());
        }
        let constant = self.constant(id)?;
        let scope = Scope { package: id.package, file: id.file, arguments: Rc::default() };
        let (converted, text) = self.text(&scope, &constant.value, depth, known)?;
        let found = (self.type_of(&scope, constant).or(converted), text);
        known.insert(id, found.clone());
        Some(found)
    }

    fn constant(&self, id: ConstantId) -> Option<&Constant> {
        self.package(id.package)?.files.get(id.file)?.constants.get(id.position)
    }

    /// Returns the type in the declaration of a constant.
    fn type_of(&self, scope: &Scope<'_>, constant: &Constant) -> Option<TypeId> {
        let Some(Type::Named { qualifier, name, .. }) = &constant.written else { return None };
        self.find_declared(scope, qualifier.as_deref(), name)
    }

    /// Returns the constants of a type in its own package: their text, if the sources determine it, and their position.
    pub(crate) fn constants_of(&self, id: TypeId) -> Vec<(Option<&str>, &Position)> {
        let (Some(package), Some(declaration)) = (self.package(id.package), self.declaration(id)) else {
            return Vec::new();
        };
        let constants = self.by_type.get_or_init(|| self.constants_by_type()).get(&id).into_iter().flatten();
        let constants = constants.filter_map(|it| Some((it.text.as_deref(), &self.constant(it.id)?.at)));
        // A declaration that the parser cannot read may have any constant of the types that it names.
        let broken = package.files.iter().flat_map(|file| &file.broken);
        let broken = broken.filter(|broken| broken.names.contains(&declaration.name));
        constants.chain(broken.map(|broken| (None, &broken.at))).collect()
    }

    fn constants_by_type(&self) -> HashMap<TypeId, Vec<TypedConstant>> {
        let mut all: HashMap<_, Vec<_>> = HashMap::new();
        let mut known = KnownTexts::new();
        for (package, held) in self.packages() {
            for (file, it) in held.files.iter().enumerate() {
                let scope = Scope { package, file, arguments: Rc::default() };
                for (position, constant) in it.constants.iter().enumerate() {
                    let id = ConstantId { package, file, position };
                    let (of_type, text) = match self.text_of(id, 0, &mut known) {
                        Some((of_type, text)) => (of_type, Some(text)),
                        None => (self.type_of(&scope, constant), None),
                    };
                    if let Some(of_type) = of_type.filter(|it| it.package == package) {
                        all.entry(of_type).or_default().push(TypedConstant { text, id });
                    }
                }
            }
        }
        all
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
        }
        for (position, broken) in file.broken.iter().enumerate() {
            for name in &broken.types {
                self.broken.entry(name.clone()).or_insert((number, position));
            }
        }
        self.files.push(file);
    }

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

/// Guesses whether the package at an import path is named `name`: by the last segment, or the one before a major version.
fn may_be_named(path: &str, name: &str) -> bool {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let is_major = last.strip_prefix('v').is_some_and(|digits| digits.parse::<u32>().is_ok());
    let before = parts.next().filter(|_| is_major);
    // The package of `gopkg.in/inf.v0` is `inf`.
    [Some(last), before].into_iter().flatten().any(|part| part == name || part.split(".v").next() == Some(name))
}
