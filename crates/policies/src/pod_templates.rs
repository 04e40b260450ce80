//! The kinds with the same unions in their pod templates, for which one policy is enough.

use crate::root::PodOwner;
use crate::target::{PolicyTarget, VersionScope, have_same_unions};
use kube_unions_core::declaration::is_exempt;
use kube_unions_core::union::{Part, UnionPlace, UnionStep};

/// Pod templates with the same unions.
#[derive(Debug)]
pub(crate) struct PodTemplates<'p> {
    /// The kinds that have them, and where. At least two.
    pub(crate) owners: Vec<(&'p PolicyTarget<'p>, PodOwner<'p>)>,
    /// The places of the unions in the specification of a pod.
    pub(crate) places: Vec<UnionPlace<'p>>,
}

impl<'p> PodTemplates<'p> {
    /// Returns the pod templates of which most kinds have the same unions.
    pub(crate) fn of_most(targets: &'p [PolicyTarget<'p>]) -> Option<Self> {
        let mut found: Vec<Self> = Vec::new();
        for target in targets.iter().filter(|target| can_share(target)) {
            let Some((owner, places)) = template_of(target) else { continue };
            match found.iter_mut().find(|it| are_same(&it.places, &places)) {
                Some(same) => same.owners.push((target, owner)),
                None => found.push(Self { owners: vec![(target, owner)], places }),
            }
        }
        found.into_iter().filter(|it| it.owners.len() > 1).max_by_key(|it| it.owners.len())
    }

    /// Returns true if a place of a kind is in one of these templates.
    pub(crate) fn contain(&self, target: &PolicyTarget<'_>, place: &UnionPlace<'_>) -> bool {
        let mut owners = self.owners.iter().filter(|(owner, _)| owner.gvk == target.gvk);
        owners.any(|(_, owner)| trunk_of(place).as_ref() == Some(&owner.trunk))
    }
}

/// Returns true for a built-in kind whose policies are for all versions.
fn can_share(target: &PolicyTarget<'_>) -> bool {
    !target.custom
        && !target.plural.is_empty()
        && target.scope == VersionScope::AllExcept(Vec::new())
        && !is_exempt(&target.gvk.group, Some(target.plural), &target.gvk.kind)
}

/// Returns the pod template of a kind, and its unions.
fn template_of<'p>(target: &'p PolicyTarget<'p>) -> Option<(PodOwner<'p>, Vec<UnionPlace<'p>>)> {
    let places = target.plan.places(Part::Main);
    let trunk = places.iter().find_map(trunk_of)?;
    let inside = places.into_iter().filter(|place| trunk_of(place).as_ref() == Some(&trunk));
    let inside = inside.map(|place| {
        let steps = place.steps.get(trunk.len()..).unwrap_or_default().to_vec();
        UnionPlace { steps, ..place }
    });
    Some((PodOwner { kind: &target.gvk.kind, trunk: trunk.clone() }, inside.collect()))
}

/// Returns the fields to the specification of the pods, if a place is in it.
fn trunk_of<'p>(place: &UnionPlace<'p>) -> Option<Vec<&'p str>> {
    let fields: Vec<&str> = place
        .steps
        .iter()
        .map_while(|step| if let UnionStep::Field(name) = step { Some(*name) } else { None })
        .collect();
    let start = fields.windows(2).position(|pair| pair == ["template", "spec"])?;
    fields.get(..start.checked_add(2)?).map(<[_]>::to_vec)
}

fn are_same(ones: &[UnionPlace<'_>], others: &[UnionPlace<'_>]) -> bool {
    ones.len() == others.len()
        && ones.iter().zip(others).all(|(one, other)| {
            one.steps == other.steps
                && (one.typed, one.nullable) == (other.typed, other.nullable)
                && have_same_unions(one.unions, other.unions)
        })
}
