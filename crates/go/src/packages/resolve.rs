//! Follows the names and pointers of a type to the type behind them.

use super::names::UnknownType;
use super::{LONGEST, Packages, Scope, ScopedType, TypeId};
use crate::types::{Struct, Type};
use std::rc::Rc;

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
        fields: &'p Struct,
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
}
