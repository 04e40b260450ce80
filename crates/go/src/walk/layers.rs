//! The structs that form one object: a struct and everything that is inlined into it.

use super::{ENVELOPE, KindWalk, Layer};
use crate::packages::{ResolvedType, ScopedType, TypeId, Underlying};
use crate::types::{Field, Struct};
use kube_unions_core::schema::{Place, Schema};
use std::collections::{BTreeMap, BTreeSet};

/// Most structs that are inlined into one object. Real types have far fewer; types that embed each other repeatedly have more.
const MOST_INLINED: usize = 1_000;

impl<'p> KindWalk<'p> {
    /// Returns the struct and all structs inlined into it, by depth.
    pub(super) fn inlined(
        &mut self,
        layer: Layer<'p>,
        schema: &Schema,
        place: &Place,
    ) -> BTreeMap<usize, Vec<Layer<'p>>> {
        let mut layers: BTreeMap<usize, Vec<Layer<'p>>> = BTreeMap::new();
        // Each struct comes with the types around it, so that one that contains itself is recognized.
        let within: BTreeSet<TypeId> = layer.names.iter().copied().collect();
        let mut waiting = vec![(0, layer, within)];
        let mut count = 0;
        while let Some((depth, layer, within)) = waiting.pop() {
            count += 1;
            if count > MOST_INLINED {
                self.report_cycle(layer.at, place);
                break;
            }
            for field in layer.fields.fields.iter().filter(|field| field.is_inlined()) {
                let typed = ScopedType { written: &field.written, scope: layer.scope.clone() };
                let ResolvedType { names, underlying, .. } = self.packages.resolve(&typed);
                if self.is_declared_twice(&names, place) {
                    continue;
                }
                match underlying {
                    Underlying::Struct { fields, scope } if !names.iter().any(|name| within.contains(name)) => {
                        self.reached.extend(&names);
                        let within = within.iter().copied().chain(names.iter().copied()).collect();
                        let (markers, at) = (&*field.markers, &field.at);
                        waiting.push((depth + 1, Layer { names, fields, scope, markers, direct: true, at }, within));
                    }
                    Underlying::Struct { .. } | Underlying::Cycle => self.report_cycle(&field.at, place),
                    // If the struct explains every field of the schema, nothing is missing.
                    Underlying::Unknown { name, reason } if has_unexplained(layer.fields, schema) => {
                        self.unresolved.add(name, reason, &field.at, place);
                    }
                    Underlying::Unknown { .. } | Underlying::List(_) | Underlying::Map(_) | Underlying::Plain => {}
                }
            }
            layers.entry(depth).or_default().push(layer);
        }
        layers
    }
}

/// Returns true if the schema has fields that the struct does not declare itself.
fn has_unexplained(fields: &Struct, schema: &Schema) -> bool {
    let own: BTreeSet<&str> = fields.fields.iter().filter_map(Field::json_name).chain(ENVELOPE).collect();
    schema.properties.keys().any(|name| !own.contains(&**name))
}
