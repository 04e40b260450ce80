//! Selects the unions that `KIND[.PATH]` names, as in `kubectl explain`.

use crate::cli::input::kinds;
use anyhow::bail;
use kube_unions_core::catalog::{CatalogEntry, KindNames};
use kube_unions_core::near::nearest;
use kube_unions_core::union::Union;

/// A kind and its unions that the user asks for, at least one.
pub(super) struct SelectedKind<'c> {
    pub(super) entry: &'c CatalogEntry,
    pub(super) unions: Vec<&'c Union>,
}

/// Returns the kinds and unions that a user asks for; all for no argument.
///
/// The longest part of the argument that names a kind is the kind, so that `deployments.apps` has no path. A path selects the
/// unions at it and below it. A path into a union, for example to one of its members, selects this union.
pub(super) fn select<'c>(
    entries: &'c [CatalogEntry],
    asked: Option<&str>,
    place: &str,
) -> anyhow::Result<Vec<SelectedKind<'c>>> {
    let find = |kind: &str| kinds::asked::entries(entries, &[kind.to_owned()], place);
    let Some(asked) = asked else { return Ok(entries.iter().map(SelectedKind::whole).collect()) };
    let unknown = match find(asked) {
        Ok(found) => return Ok(found.into_iter().map(SelectedKind::whole).collect()),
        Err(unknown) => unknown,
    };
    let names: Vec<KindNames<'_>> = entries.iter().map(KindNames::of).collect();
    if KindNames::suggest(&names, asked).is_some() {
        return Err(unknown.into());
    }
    for (dot, _) in asked.rmatch_indices('.') {
        let (kind, path) = (asked.get(..dot).unwrap_or_default(), asked.get(dot + 1..).unwrap_or_default());
        if let Ok(found) = find(kind) {
            let selected: Vec<_> = found.iter().filter_map(|entry| SelectedKind::at(entry, path)).collect();
            match selected.is_empty() {
                false => return Ok(selected),
                true if is_path(path, &found) => return no_union(asked, path, &found),
                // It is a version or a group that the kind does not have.
                true => return Err(unknown.into()),
            }
        }
    }
    if let Some((kind, _)) = asked.split_once('.') {
        find(kind)?;
    }
    Err(unknown.into())
}

impl<'c> SelectedKind<'c> {
    fn whole(entry: &'c CatalogEntry) -> Self {
        Self { entry, unions: entry.plan().unions().iter().collect() }
    }

    fn at(entry: &'c CatalogEntry, path: &str) -> Option<Self> {
        let (asked, all) = (fields(path), entry.plan().unions());
        let mut unions: Vec<_> = all.iter().filter(|union| fields(union.path()).starts_with(&asked)).collect();
        if unions.is_empty() {
            unions = all.iter().filter(|union| is_into(union, &asked)).collect();
        }
        (!unions.is_empty()).then_some(Self { entry, unions })
    }
}

/// Returns true if the path leads to or through a member, or to the discriminator.
fn is_into(union: &Union, asked: &[&str]) -> bool {
    let next = asked.strip_prefix(&*fields(union.path())).and_then(<[_]>::first);
    next.is_some_and(|next| union.discriminator() == Some(next) || union.members().any(|member| member == *next))
}

/// Returns true if the text begins as the path of a field does.
fn is_path(text: &str, kinds: &[&CatalogEntry]) -> bool {
    let mut unions = kinds.iter().flat_map(|entry| entry.plan().unions());
    fields(text).first().is_some_and(|first| {
        ["metadata", "spec", "status"].contains(first)
            || unions.any(|union| fields(union.path()).first() == Some(first))
    })
}

/// Returns the fields of a path, without the `[*]` of lists and maps.
fn fields(path: &str) -> Vec<&str> {
    path.split(['.', '[', ']']).filter(|field| !matches!(*field, "" | "*")).collect()
}

fn no_union<'c>(asked: &str, path: &str, kinds: &[&'c CatalogEntry]) -> anyhow::Result<Vec<SelectedKind<'c>>> {
    let unions = || kinds.iter().flat_map(|entry| entry.plan().unions()).map(Union::path);
    let mut paths: Vec<&str> = unions().collect();
    paths.sort_unstable();
    paths.dedup();
    let near = nearest(path, paths.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    let listed: Vec<_> = paths.iter().map(|path| if path.is_empty() { "the root" } else { *path }).collect();
    bail!(
        "no kind `{asked}`, and no union at `{path}` of {}; there are: {}{}",
        kinds::asked::list(kinds.iter().map(|entry| entry.gvk())),
        listed.join(", "),
        near.unwrap_or_default()
    )
}
