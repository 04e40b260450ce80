//! Which fields of a struct make a union together, and which discriminator it has.

use super::{MarkedStruct, Omission, StructField};
use crate::marker::{Family, Meaning};
use crate::types::Position;

/// The fields of one union.
#[derive(Debug)]
pub(super) struct UnionGroup<'m> {
    pub(super) discriminator: Option<&'m StructField<'m, 'm>>,
    pub(super) chosen: Membership<'m>,
}

/// How members are chosen.
#[derive(Debug)]
pub(super) enum Membership<'m> {
    /// By markers of their own, and no others.
    Marked(Vec<MarkedMember<'m>>),
    /// By their names, which are values of the discriminator.
    ByName,
}

/// A field, chosen by a marker. One that is chosen by two markers is here twice.
#[derive(Debug)]
pub(super) struct MarkedMember<'m> {
    pub(super) own: &'m StructField<'m, 'm>,
    /// The marker.
    pub(super) at: Position,
    pub(super) value: Option<&'m str>,
    pub(super) optional: bool,
    pub(super) family: Family,
}

/// A discriminator with the name of its union.
struct Discriminator<'m> {
    own: &'m StructField<'m, 'm>,
    union: Option<&'m str>,
}

/// What tells one union of a struct from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnionKey<'m> {
    /// The discriminator at this position.
    Discriminator(usize),
    /// No discriminator: the name of the union if it has one, and whether its members say that none belongs to it.
    Alone { union: Option<&'m str>, zero_or_one: bool },
}

pub(super) fn groups<'m>(marked: &'m MarkedStruct<'m, 'm>) -> (Vec<UnionGroup<'m>>, Vec<Omission>) {
    let discriminators: Vec<Discriminator<'m>> = marked
        .fields
        .iter()
        .flat_map(|own| {
            own.field.markers.iter().filter_map(move |marker| {
                let Meaning::Discriminator { union } = &marker.meaning else { return None };
                Some(Discriminator { own, union: union.as_deref() })
            })
        })
        .collect();
    let is_marked = marked.markers.iter().any(|marker| marker.meaning == Meaning::Union);
    let mut members: Vec<(UnionKey<'m>, MarkedMember<'m>)> = Vec::new();
    let mut left_out = Vec::new();
    for own in &marked.fields {
        let by = own.field.markers.iter().find_map(|marker| {
            let Meaning::DiscriminatedBy(name) = &marker.meaning else { return None };
            Some((&**name, &marker.at))
        });
        let mut chosen = false;
        for marker in &own.field.markers {
            let Meaning::Member(member) = &marker.meaning else { continue };
            chosen = true;
            match key(&discriminators, member.union.as_deref(), member.family, by, &marker.at) {
                Ok(key) => {
                    let (value, optional, family) = (member.value.as_deref(), member.optional, member.family);
                    members.push((key, MarkedMember { own, at: marker.at.clone(), value, optional, family }));
                }
                Err(why) => left_out.push(why),
            }
        }
        if let Some((_, at)) = by.filter(|_| !chosen) {
            let message = "`+unionDiscriminatedBy` stands on a field that is no member; add `+unionMember`";
            left_out.push(Omission::fault(at, message.to_owned()));
        }
    }
    // A member less is another union: with one that can't be placed, none is sure.
    if !left_out.is_empty() {
        return (Vec::new(), left_out);
    }
    if members.is_empty() {
        return by_name(marked, &discriminators, is_marked);
    }
    if let Some(why) = in_two_unions(&members) {
        return (Vec::new(), vec![why]);
    }

    let mut groups: Vec<(UnionKey<'m>, Vec<MarkedMember<'m>>)> = Vec::new();
    for (key, member) in members {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(member),
            None => groups.push((key, vec![member])),
        }
    }
    for (position, discriminator) in discriminators.iter().enumerate() {
        if !groups.iter().any(|(key, _)| *key == UnionKey::Discriminator(position)) {
            let message = format!(
                "the discriminator `{}` has no members, while other fields of `{}` are marked as members; mark its own, too, or remove its \
                 marker",
                discriminator.own.name, marked.title
            );
            left_out.push(Omission::ambiguous(discriminator.own.at(), message));
        }
    }
    let groups = groups.into_iter().map(|(key, members)| {
        let discriminator = match key {
            UnionKey::Discriminator(position) => discriminators.get(position).map(|discriminator| discriminator.own),
            UnionKey::Alone { .. } => None,
        };
        UnionGroup { discriminator, chosen: Membership::Marked(members) }
    });
    (groups.collect(), left_out)
}

/// To which union of its struct a member belongs.
fn key<'m>(
    discriminators: &[Discriminator<'m>],
    union: Option<&'m str>,
    family: Family,
    by: Option<(&str, &Position)>,
    at: &Position,
) -> Result<UnionKey<'m>, Omission> {
    let zero_or_one = family == Family::ZeroOrOneOf;
    if let Some((name, at)) = by {
        let named = |discriminator: &Discriminator<'_>| {
            *discriminator.own.field.name == *name || discriminator.own.name == name
        };
        let position = discriminators.iter().position(named);
        return position.map(UnionKey::Discriminator).ok_or_else(|| {
            let message = format!("`+unionDiscriminatedBy={name}` names no field beside it that is a discriminator");
            Omission::fault(at, message)
        });
    }
    // Such a union has no discriminator, whatever stands beside it.
    if zero_or_one {
        return match discriminators.iter().find(|discriminator| union.is_some() && discriminator.union == union) {
            None => Ok(UnionKey::Alone { union, zero_or_one }),
            Some(discriminator) => {
                let message = format!(
                    "`+k8s:zeroOrOneOfMember` is of a union without a discriminator, and `{}` is one of that name; write `+k8s:unionMember`",
                    discriminator.own.name
                );
                Err(Omission::fault(at, message))
            }
        };
    }
    let fitting: Vec<usize> =
        (0..).zip(discriminators).filter(|(_, discriminator)| discriminator.union == union).map(|(at, _)| at).collect();
    match (fitting.as_slice(), union) {
        ([only], _) => Ok(UnionKey::Discriminator(*only)),
        ([], Some(_)) => Ok(UnionKey::Alone { union, zero_or_one }),
        ([], None) if discriminators.is_empty() => Ok(UnionKey::Alone { union, zero_or_one }),
        ([], None) => {
            let message =
                "the member names no union, and every discriminator beside it does; name the one it belongs to";
            Err(Omission::ambiguous(at, message.to_owned()))
        }
        (_, _) => {
            let message = "more than one discriminator may be the member's; add `+unionDiscriminatedBy=Field` to it, or name the unions";
            Err(Omission::ambiguous(at, message.to_owned()))
        }
    }
}

/// A union whose members are not marked.
fn by_name<'m>(
    marked: &'m MarkedStruct<'m, 'm>,
    discriminators: &[Discriminator<'m>],
    is_marked: bool,
) -> (Vec<UnionGroup<'m>>, Vec<Omission>) {
    match discriminators {
        [] if !is_marked => (Vec::new(), Vec::new()),
        [] => {
            let message = format!(
                "`{}` is marked as a union, with no discriminator and no marked members to tell these from other fields; mark them with \
                 `+unionMember`",
                marked.title
            );
            (Vec::new(), vec![Omission::ambiguous(marked.at, message)])
        }
        [only] => (vec![UnionGroup { discriminator: Some(only.own), chosen: Membership::ByName }], Vec::new()),
        [_, second, ..] => {
            let message = format!(
                "`{}` has more than one discriminator and no marked members; mark the members of each with `+unionMember` and \
                 `+unionDiscriminatedBy=Field`",
                marked.title
            );
            (Vec::new(), vec![Omission::ambiguous(second.own.at(), message)])
        }
    }
}

fn in_two_unions(members: &[(UnionKey<'_>, MarkedMember<'_>)]) -> Option<Omission> {
    for (position, (key, member)) in members.iter().enumerate() {
        let before = members.iter().take(position);
        let twice = before.filter(|(_, other)| other.own.name == member.own.name).any(|(other, _)| other != key);
        if twice {
            let message = format!("the field `{}` is a member of two unions; it can be in one only", member.own.name);
            return Some(Omission::fault(&member.at, message));
        }
    }
    None
}
