//! The law of applies: a manifest that is applied again changes nothing. Either every apply is refused for the same reasons, or the
//! first is stored and no later one changes the object.

use fixtures::applies::Applied;
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{Answer, Verdict, Write, catalog_of, thing};
use kube_unions_core::catalog::Catalog;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The form of the union.
#[derive(Debug, Clone, Copy)]
enum Form {
    List,
    DiscriminatedList,
    /// With the empty value as a choice, or without.
    Map(bool),
}

/// The place of the objects with the union, of which each object has two.
#[derive(Debug, Clone, Copy)]
enum Place {
    Objects,
    KeyedList,
    Map,
}

/// The fields of the union that an object or a manifest has.
#[derive(Debug, Clone)]
struct Fields {
    discriminator: Option<&'static str>,
    members: u8,
}

#[derive(Debug, Clone)]
struct Apply {
    way: Way,
    manifest: [Option<Fields>; 2],
}

#[derive(Debug, Clone, Copy)]
enum Way {
    ClientSide,
    ServerSide(&'static str),
}

const MEMBERS: [&str; 3] = ["a", "b", "c"];

const PLACES: [&str; 2] = ["first", "second"];

impl Form {
    fn catalog(self, place: Place) -> Catalog {
        let mut object = json!({"type": "object", "properties": {
            "k": {"type": "string"}, "type": {"type": "string"}, "a": {"type": "object"}, "b": {"type": "object"}, "c": {"type": "object"}}});
        let values = json!({"a": "A", "b": "B", "c": "C"});
        match self {
            Self::List => object["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": values}]),
            Self::DiscriminatedList => {
                object["x-kubernetes-unions"] = json!([{"discriminator": "type", "fields-to-discriminateBy": values}]);
            }
            Self::Map(declares_none) => {
                let mut members = json!({"A": {"name": "a"}, "B": {"name": "b", "optional": true}, "C": {"name": "c", "optional": true}, "None": null});
                if declares_none {
                    members[""] = Value::Null;
                }
                object["properties"]["type"]["x-kubernetes-unions"] = json!({"fieldMembers": members});
            }
        }
        let spec = match place {
            Place::Objects => {
                json!({"type": "object", "properties": {"first": object, "second": object}})
            }
            Place::KeyedList => {
                object["required"] = json!(["k"]);
                json!({"type": "array", "items": object, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
            }
            Place::Map => json!({"type": "object", "additionalProperties": object}),
        };
        catalog_of(&json!({"type": "object", "properties": {"spec": spec}}))
    }
}

impl Place {
    /// Returns an object or manifest with these fields at the two places.
    fn object(self, both: &[Option<Fields>; 2]) -> Value {
        let named = PLACES.iter().zip(both).filter_map(|(name, fields)| Some((*name, fields.as_ref()?.object())));
        let spec: Value = match self {
            Self::Objects | Self::Map => named.map(|(name, fields)| (name.to_owned(), fields)).collect(),
            Self::KeyedList => named
                .map(|(name, mut fields)| {
                    fields["k"] = json!(name);
                    fields
                })
                .collect(),
        };
        thing(&json!({"spec": spec}))
    }

    /// Fills in the default of the discriminator, as the API server does before admission.
    fn fill_in(self, object: &mut Value, default: Option<&str>) {
        let Some(default) = default else { return };
        let spec = &mut object["spec"];
        let objects: Vec<&mut Value> = match self {
            Self::Objects | Self::Map => spec.as_object_mut().map_or_else(Vec::new, |all| all.values_mut().collect()),
            Self::KeyedList => spec.as_array_mut().map_or_else(Vec::new, |all| all.iter_mut().collect()),
        };
        for object in objects.into_iter().filter(|object| object.get("type").is_none()) {
            object["type"] = json!(default);
        }
    }
}

impl Fields {
    fn object(&self) -> Value {
        let members = MEMBERS.iter().enumerate().filter(|(position, _)| self.members >> position & 1 == 1);
        let mut fields: Map<String, Value> = members.map(|(_, name)| ((*name).to_owned(), json!({"x": "y"}))).collect();
        if let Some(value) = self.discriminator {
            fields.insert("type".to_owned(), json!(value));
        }
        Value::Object(fields)
    }
}

impl Apply {
    fn to(&self, stored: &Applied, place: Place, default: Option<&str>) -> (Applied, Write) {
        let manifest = place.object(&self.manifest);
        let (next, mut write) = match self.way {
            Way::ClientSide => stored.client_side(&manifest),
            Way::ServerSide(manager) => stored.server_side(manager, &manifest),
        };
        place.fill_in(write.new.as_mut().expect("an apply has an object"), default);
        (next, write)
    }

    /// Applies the manifest, and stores the object if it is let through.
    fn play(&self, stored: &mut Applied, catalog: &Catalog, place: Place, default: Option<&str>) -> Answer {
        let (mut next, write) = self.to(stored, place, default);
        let answer = admit_lawfully(catalog, &write);
        if let Verdict::Allowed(Some(object)) = &answer.verdict {
            next.store(object.clone());
            *stored = next;
        }
        answer
    }
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::List), Just(Form::DiscriminatedList), any::<bool>().prop_map(Form::Map)]
}

fn fields() -> impl Strategy<Value = Fields> {
    let values = prop::sample::select(vec!["A", "B", "C", "None", "", "Unknown"]);
    (option::of(values), 0_u8..8).prop_map(|(discriminator, members)| Fields { discriminator, members })
}

fn applies() -> impl Strategy<Value = Apply> {
    let way = prop_oneof![Just(Way::ClientSide), Just(Way::ServerSide("one")), Just(Way::ServerSide("two"))];
    (way, [option::of(fields()), option::of(fields())]).prop_map(|(way, manifest)| Apply { way, manifest })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_manifest_that_is_applied_again_changes_nothing(
        form in forms(),
        place in prop::sample::select(vec![Place::Objects, Place::KeyedList, Place::Map]),
        default in option::of(prop::sample::select(vec!["B", "None"])),
        first in [option::of(fields()), option::of(fields())],
        before in vec(applies(), 0..3),
        apply in applies(),
    ) {
        let catalog = form.catalog(place);
        // Stored before the union was declared, perhaps with a fault.
        let mut object = place.object(&first);
        place.fill_in(&mut object, default);
        let mut stored = Applied::new(object);
        for earlier in &before {
            earlier.play(&mut stored, &catalog, place, default);
        }
        let first = apply.play(&mut stored, &catalog, place, default);
        let after = stored.object().clone();
        for number in 2..=4 {
            let again = apply.play(&mut stored, &catalog, place, default);
            match &first.verdict {
                Verdict::Denied(_) => prop_assert_eq!(&again.verdict, &first.verdict, "apply {}", number),
                Verdict::Allowed(_) => {
                    prop_assert!(matches!(again.verdict, Verdict::Allowed(_)), "apply {}: {:?}", number, again);
                    prop_assert_eq!(stored.object(), &after, "apply {}", number);
                }
            }
        }
    }
}
