//! Finds the nodes of a schema by their places, and walks over them.

use super::Schema;
use super::place::{Place, PlaceStep};

impl Schema {
    /// Returns the node at a place, if the schema has it.
    pub fn at(&self, place: &Place) -> Option<&Schema> {
        place.0.iter().try_fold(self, Self::child)
    }

    /// Returns the child after a step, if the schema has it.
    pub(super) fn child(&self, step: &PlaceStep) -> Option<&Self> {
        match step {
            PlaceStep::Property(name) => self.properties.get(name),
            PlaceStep::Items => self.items.as_deref(),
            PlaceStep::Values => self.additional_properties.as_deref(),
        }
    }

    /// Returns the node at a place for changes, if the schema has it.
    pub(crate) fn at_mut(&mut self, place: &Place) -> Option<&mut Schema> {
        place.0.iter().try_fold(self, |node, step| match step {
            PlaceStep::Property(name) => node.properties.get_mut(name),
            PlaceStep::Items => node.items.as_deref_mut(),
            PlaceStep::Values => node.additional_properties.as_deref_mut(),
        })
    }

    /// Returns the direct children of this node.
    pub fn children(&self) -> impl Iterator<Item = (PlaceStep, &Schema)> {
        let properties = self.properties.iter().map(|(name, node)| (PlaceStep::Property(name.clone()), node));
        let items = self.items.as_deref().map(|node| (PlaceStep::Items, node));
        let values = self.additional_properties.as_deref().map(|node| (PlaceStep::Values, node));
        properties.chain(items).chain(values)
    }

    /// Calls `visit` for this node and every node below it, outermost first.
    pub fn walk(&self, visit: &mut impl FnMut(&Place, &Schema)) {
        fn step(node: &Schema, place: &mut Place, visit: &mut impl FnMut(&Place, &Schema)) {
            visit(place, node);
            for (inwards, child) in node.children() {
                place.0.push(inwards);
                step(child, place, visit);
                place.0.pop();
            }
        }
        step(self, &mut Place::root(), visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_node_is_found_at_its_place() {
        let schema: Schema = serde_json::from_value(json!({"properties": {
            "a": {"items": {"properties": {"b": {}}}}, "m": {"additionalProperties": {"type": "string"}}}}))
        .unwrap();
        let mut places = Vec::new();
        schema.walk(&mut |place, node| {
            assert!(std::ptr::eq(schema.at(place).unwrap(), node));
            places.push(place.to_string());
        });
        assert_eq!(places, ["", "a", "a[*]", "a[*].b", "m", "m.*"]);
    }
}
