//! The parts of a policy that normalisation and validation share.

use crate::condition::RequestCondition;
use crate::group::{self, PlaceGroup, PlacedUnion};
use crate::manifests::{self, ManifestNeeds};
use crate::root::{PodOwner, Root};
use crate::rows::PolicyFacts;
use crate::target::PolicyTarget;
use crate::variables::Variables;
use kube_unions_core::union::Union;

/// A policy without its frame: one that normalises, or one that validates for a binding with some actions.
#[derive(Debug)]
pub(crate) struct PolicyBody<'g, 'u> {
    /// The unions that it is about.
    pub(crate) unions: Vec<PlacedUnion<'g, 'u>>,
    pub(crate) variables: Variables,
    /// The JSON Patch, or true if there is no fault.
    pub(crate) expression: String,
    /// All faults, in the order of paths.
    pub(crate) message: Option<String>,
    /// True if it has something to say about an object that is created.
    pub(crate) on_create: bool,
    /// False for a request about which it has nothing to say.
    pub(crate) condition: Option<RequestCondition>,
}

/// The unions of a policy, before their expressions are compiled.
pub(crate) struct PolicyInputs<'g, 'u> {
    pub(crate) unions: Vec<PlacedUnion<'g, 'u>>,
    /// The unions that share their rows.
    pub(crate) joined: Vec<Vec<PlacedUnion<'g, 'u>>>,
    pub(crate) root: Root<'u>,
    pub(crate) facts: PolicyFacts,
}

impl<'g, 'u> PolicyInputs<'g, 'u> {
    /// Returns the unions of groups that are wanted, and adds the variables that all of them read. `target` is one of the kinds of the
    /// policy. `None` without unions.
    pub(crate) fn new(
        groups: impl Iterator<Item = &'g PlaceGroup<'u>>,
        is_wanted: impl Fn(&PlaceGroup<'_>, &Union) -> bool,
        owners: &[PodOwner<'u>],
        target: &PolicyTarget<'_>,
        facts: PolicyFacts,
        variables: &mut Variables,
    ) -> Option<Self>
    where
        'u: 'g,
    {
        let unions = groups.flat_map(|group| group.unions.iter().map(move |union| (group, union)));
        let unions: Vec<PlacedUnion<'g, 'u>> = unions.filter(|(group, union)| is_wanted(group, union)).collect();
        if unions.is_empty() {
            return None;
        }
        let joined = group::joined(&unions, facts.list_functions);
        let facts = PolicyFacts { several: joined.len() > 1, ..facts };
        let root = Root::new(owners, facts.purpose, variables);
        let evidence = ManifestNeeds::of(unions.iter().map(|(_, union)| *union), facts.purpose);
        let counts = manifests::counts(target);
        manifests::add(facts.part, counts.as_deref(), evidence, &root.fields, facts.list_functions, variables);
        Some(Self { unions, joined, root, facts })
    }
}
