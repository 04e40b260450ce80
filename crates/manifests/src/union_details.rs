//! Describes unions to people. The command line and the playground show them as trees.

use kube_unions_core::declaration::Actions;
use kube_unions_core::union::{Form, SelectedMember, Union};

/// Returns the year of the proposal of a form.
pub fn form(form: Form) -> &'static str {
    match form {
        Form::List => "2019",
        Form::Map => "2022",
    }
}

/// Describes the discriminator of a union, or its absence.
pub fn discriminator(name: Option<&str>) -> String {
    name.map_or_else(|| "no discriminator".to_owned(), |name| format!("discriminator `{name}`"))
}

/// Returns the form, the discriminator and the source of a union, and its settings that are not the default.
pub fn details(union: &Union) -> Vec<String> {
    let declaration = union.declaration().map(|name| format!(" {name}")).unwrap_or_default();
    let unset: Vec<&str> = union.empty_is_unset().collect();
    let settings = [
        (union.actions() != Actions::DENY).then(|| union.actions().names().join(", ")),
        (!union.is_normalized()).then(|| "not normalised".to_owned()),
    ];
    let mut details = vec![
        format!("{} form", form(union.form())),
        discriminator(union.discriminator()),
        format!("from {}{declaration}", union.source()),
    ];
    details.extend(settings.into_iter().flatten().chain(options(union.is_required(), &unset)));
    details
}

/// Describes the options of a union that are not the default.
pub fn options(required: bool, empty_is_unset: &[&str]) -> impl Iterator<Item = String> + use<> {
    let unset = (!empty_is_unset.is_empty()).then(|| format!("empty is unset: {}", empty_is_unset.join(", ")));
    required.then(|| "required".to_owned()).into_iter().chain(unset)
}

/// Returns true for a member of a choice that is shown as optional. In the 2019 form every member is optional, so none is shown so.
pub fn is_shown_optional(union: &Union, member: &SelectedMember) -> bool {
    member.is_optional() && union.form() == Form::Map
}
