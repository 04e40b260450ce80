//! Finds the kinds that KIND arguments ask for.

use kube_unions_core::catalog::{CatalogEntry, KindNames};
use kube_unions_core::declaration::Definition;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use std::collections::BTreeSet;

/// Most kinds that a message lists.
const MOST_LISTED: usize = 20;

/// No kind has the name that a user asks for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnknownKind(String);

/// Returns the entries of the kinds that a user asks for, in the order of the catalog; all for no argument.
pub(crate) fn entries<'c>(
    entries: &'c [CatalogEntry],
    asked: &[String],
    place: &str,
) -> Result<Vec<&'c CatalogEntry>, UnknownKind> {
    let names: Vec<KindNames<'_>> = entries.iter().map(KindNames::of).collect();
    let Some(wanted) = all_positions(&names, asked, place)? else { return Ok(entries.iter().collect()) };
    Ok(wanted.into_iter().filter_map(|position| entries.get(position)).collect())
}

/// Returns the kinds of the CRDs that a user asks for, `None` for no argument.
pub(crate) fn definitions(
    definitions: &[Definition],
    asked: &[String],
    place: &str,
) -> Result<Option<BTreeSet<GroupKind>>, UnknownKind> {
    let names: Vec<(KindNames<'_>, &Definition)> = definitions
        .iter()
        .flat_map(|definition| definition.versions().iter().map(move |version| (definition, &version.name)))
        .map(|(definition, version)| (KindNames::of_version(definition, version), definition))
        .collect();
    let (names, owners): (Vec<KindNames<'_>>, Vec<&Definition>) = names.into_iter().unzip();
    let wanted = all_positions(&names, asked, place)?;
    Ok(wanted.map(|wanted| {
        let owners = wanted.into_iter().filter_map(|position| owners.get(position));
        owners.map(|definition| definition.group_kind().clone()).collect()
    }))
}

/// Returns the positions of the kinds that a user asks for, at least one.
pub(crate) fn positions(all: &[KindNames<'_>], asked: &str, place: &str) -> Result<BTreeSet<usize>, UnknownKind> {
    let found = KindNames::find_all(all, asked);
    if found.is_empty() {
        return Err(unknown(all, asked, place));
    }
    Ok(found.into_iter().collect())
}

fn all_positions(all: &[KindNames<'_>], asked: &[String], place: &str) -> Result<Option<BTreeSet<usize>>, UnknownKind> {
    let mut wanted = BTreeSet::new();
    for asked in asked {
        wanted.extend(positions(all, asked, place)?);
    }
    Ok((!asked.is_empty()).then_some(wanted))
}

/// Names the kinds that there are, and the one that was probably meant. `place` is for example "with unions in `crds/`".
fn unknown(all: &[KindNames<'_>], asked: &str, place: &str) -> UnknownKind {
    let known = match all {
        [] => "none".to_owned(),
        all => listed(all.iter().map(|it| title(it.group, it.version, it.kind))),
    };
    let near = KindNames::suggest(all, asked).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    UnknownKind(format!("no kind `{asked}` {place}; there are: {known}{near}"))
}

/// Lists the titles of some kinds, and counts the rest.
pub(crate) fn list<'k>(kinds: impl Iterator<Item = &'k GroupVersionKind>) -> String {
    listed(kinds.map(|kind| title(&kind.group, &kind.version, &kind.kind)))
}

fn listed(titles: impl Iterator<Item = String>) -> String {
    let mut titles: Vec<String> = titles.collect();
    let more = titles.len().saturating_sub(MOST_LISTED);
    titles.truncate(MOST_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    titles.join(", ") + &more
}

/// Returns `Kind.group/version`.
fn title(group: &str, version: &str, kind: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{version}")
}
