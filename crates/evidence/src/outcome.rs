//! The possible results of a validation with unknown inputs.

use std::rc::Rc;

/// The reason why several results are possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The result depends on other fields, or on the contents of members.
    Content,
    /// The validation cannot be evaluated here.
    Beyond(Rc<str>),
}

/// The results that a validation can have. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcomes {
    pass: bool,
    fail: bool,
    error: bool,
    doubt: Option<Doubt>,
}

impl Outcomes {
    /// The evaluation fails. The API server rejects the object.
    pub(crate) fn error() -> Self {
        Self { pass: false, fail: false, error: true, doubt: None }
    }

    pub(crate) fn certain(holds: bool) -> Self {
        Self { pass: holds, fail: !holds, error: false, doubt: None }
    }

    /// Any result, because it depends on contents.
    pub(crate) fn content() -> Self {
        Self { pass: true, fail: true, error: true, doubt: Some(Doubt::Content) }
    }

    /// Any result, because the validation cannot be evaluated.
    pub(crate) fn beyond(why: impl Into<Rc<str>>) -> Self {
        Self { doubt: Some(Doubt::Beyond(why.into())), ..Self::content() }
    }

    /// Pass or fail.
    pub(crate) fn open() -> Self {
        Self { error: false, ..Self::content() }
    }

    /// The same results, which depend on contents if there are several.
    pub(crate) fn of_contents(self) -> Self {
        let doubt = merge(self.doubt.clone(), Some(Doubt::Content));
        self.doubted(doubt)
    }

    /// The same results, or an error.
    pub(crate) fn or_error(self) -> Self {
        let doubt = if self.error { self.doubt } else { self.doubt.or(Some(Doubt::Content)) };
        Self { error: true, doubt, ..self }
    }

    /// Returns true if every result rejects the object.
    pub(crate) fn rejects(&self) -> bool {
        !self.pass
    }

    /// Returns true if the evaluation surely fails.
    pub(crate) fn is_error(&self) -> bool {
        self.error && !self.pass && !self.fail
    }

    /// Returns true if the evaluation may fail.
    pub(crate) fn may_fail(&self) -> bool {
        self.error
    }

    /// Returns true if it accepts or rejects, both for a reason that is known.
    pub(crate) fn is_open(&self) -> bool {
        self.pass && self.fail && self.beyond_reason().is_none()
    }

    /// Returns true if every result accepts the object.
    pub(crate) fn accepts(&self) -> bool {
        self.pass && !self.fail && !self.error
    }

    /// Returns the reason why the validation cannot be evaluated, if one result rejects and another does not.
    pub(crate) fn beyond_reason(&self) -> Option<&str> {
        match &self.doubt {
            Some(Doubt::Beyond(why)) if self.pass => Some(why),
            _ => None,
        }
    }

    pub(crate) fn either(self, other: Self) -> Self {
        Self {
            pass: self.pass || other.pass,
            fail: self.fail || other.fail,
            error: self.error || other.error,
            doubt: merge(self.doubt, other.doubt),
        }
    }

    /// `&&`: an error is absorbed if the other side is false, whichever side it is.
    pub(crate) fn and(self, other: Self) -> Self {
        let results = Self {
            pass: self.pass && other.pass,
            fail: self.fail || other.fail,
            error: (self.error && (other.pass || other.error)) || (other.error && self.pass),
            doubt: None,
        };
        results.doubted(merge(self.doubt, other.doubt))
    }

    pub(crate) fn all(results: impl Iterator<Item = Self>) -> Self {
        results.fold(Self::certain(true), Self::and)
    }

    /// `||`: an error is absorbed if the other side is true, whichever side it is.
    pub(crate) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    pub(crate) fn not(self) -> Self {
        Self { pass: self.fail, fail: self.pass, ..self }
    }

    /// `==` of two booleans.
    pub(crate) fn equal(self, other: Self) -> Self {
        let results = Self {
            pass: (self.pass && other.pass) || (self.fail && other.fail),
            fail: (self.pass && other.fail) || (self.fail && other.pass),
            error: self.error || other.error,
            doubt: None,
        };
        results.doubted(merge(self.doubt, other.doubt))
    }

    /// `condition ? self : other`.
    pub(crate) fn choose(condition: &Self, then: Self, otherwise: Self) -> Self {
        let branches =
            [condition.pass.then_some(then), condition.fail.then_some(otherwise), condition.error.then(Self::error)];
        let chosen = branches.into_iter().flatten().reduce(Self::either).unwrap_or_else(Self::content);
        let doubt = merge(chosen.doubt.clone(), condition.doubt.clone());
        chosen.doubted(doubt)
    }

    /// Sets the doubt, unless only one result is possible.
    fn doubted(self, doubt: Option<Doubt>) -> Self {
        let is_one = [self.pass, self.fail, self.error].into_iter().filter(|is_possible| *is_possible).count() == 1;
        Self { doubt: doubt.filter(|_| !is_one), ..self }
    }
}

fn merge(one: Option<Doubt>, other: Option<Doubt>) -> Option<Doubt> {
    match (one, other) {
        (Some(beyond @ Doubt::Beyond(_)), _) | (_, Some(beyond @ Doubt::Beyond(_))) => Some(beyond),
        (Some(Doubt::Content), _) | (_, Some(Doubt::Content)) => Some(Doubt::Content),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_absorbed_on_either_side() {
        let (pass, fail, error) = (Outcomes::certain(true), Outcomes::certain(false), Outcomes::error());
        assert_eq!(error.clone().or(pass.clone()), pass);
        assert_eq!(pass.clone().or(error.clone()), pass);
        assert_eq!(error.clone().and(fail.clone()), fail);
        assert_eq!(fail.clone().and(error.clone()), fail);
        assert_eq!(error.clone().or(fail.clone()), error);
        assert_eq!(pass.and(error.clone()), error);
    }

    #[test]
    fn an_unknown_part_matters_only_where_it_decides() {
        let fail = Outcomes::certain(false);
        assert_eq!(Outcomes::content().and(fail.clone()), fail);
        assert!(!Outcomes::content().or(fail.clone()).rejects());
        assert!(Outcomes::choose(&Outcomes::content(), fail.clone(), fail.clone()).rejects());
        assert_eq!(Outcomes::beyond("f").or(Outcomes::content()).beyond_reason(), Some("f"));
        assert_eq!(Outcomes::beyond("f").and(fail).beyond_reason(), None);
    }
}
