//! Evaluates the constants of a package, as far as they are texts.

use super::{LONGEST, Packages, Scope, TypeId};
use crate::position::Position;
use crate::types::{Constant, ConstantExpression, Type};
use std::rc::Rc;

impl Packages {
    /// Returns the text of a constant expression and the type that its conversions give it. `None` if it is not a text that
    /// the sources determine.
    fn text(&self, package: usize, file: usize, value: &ConstantExpression) -> Option<(Option<TypeId>, String)> {
        self.text_at(package, file, value, 0)
    }

    fn text_at(
        &self,
        package: usize,
        file: usize,
        value: &ConstantExpression,
        depth: usize,
    ) -> Option<(Option<TypeId>, String)> {
        if depth > LONGEST {
            return None;
        }
        let scope = Scope { package, file, arguments: Rc::default() };
        match value {
            ConstantExpression::Text(text) => Some((None, text.to_string())),
            ConstantExpression::Sum(left, right) => {
                let (one, left) = self.text_at(package, file, left, depth + 1)?;
                let (other, right) = self.text_at(package, file, right, depth + 1)?;
                Some((one.or(other), left + &right))
            }
            ConstantExpression::Conversion { to: Type::Named { qualifier, name, .. }, value } => {
                let (_, text) = self.text_at(package, file, value, depth + 1)?;
                let to = self.find_declared(&scope, qualifier.as_deref(), name);
                (to.is_some() || &**name == "string").then_some((to, text))
            }
            ConstantExpression::Name { qualifier, name } => {
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
            ConstantExpression::Conversion { .. } | ConstantExpression::Other => None,
        }
    }

    /// Returns the type in the declaration of a constant.
    fn type_of(&self, package: usize, file: usize, constant: &Constant) -> Option<TypeId> {
        let Some(Type::Named { qualifier, name, .. }) = &constant.written else { return None };
        self.find_declared(&Scope { package, file, arguments: Rc::default() }, qualifier.as_deref(), name)
    }

    /// Returns the constants of a type in its own package: their text, if the sources determine it, and their position.
    pub(crate) fn constants_of(&self, id: TypeId) -> Vec<(Option<String>, &Position)> {
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
        // A declaration that the parser cannot read may have any constant of the types that it names.
        let broken = package.files.iter().flat_map(|file| &file.broken);
        let broken = broken.filter(|broken| broken.names.contains(&declaration.name));
        candidates.filter_map(constant).chain(broken.map(|broken| (None, &broken.at))).collect()
    }
}
