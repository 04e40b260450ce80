//! Who makes a CRD of another document, and where the document has what the CRD gets. [`made`](crate::made) makes the CRDs.

/// Who makes a CRD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrdMaker {
    /// Crossplane, from a `CompositeResourceDefinition`.
    Crossplane,
    /// kro, from a `ResourceGraphDefinition`.
    Kro,
}

/// The origin of a CRD that somebody else makes.
#[derive(Debug, Clone)]
pub struct MadeCrd {
    /// Who makes it.
    pub maker: CrdMaker,
    /// True for the CRD of a claim, which has the unions of its composite resource.
    pub of_claim: bool,
    /// The annotation on the document itself, which the CRD does not get.
    pub misplaced: Option<String>,
    /// The JSON Pointers in the document of validations that the CRD does not get.
    pub dropped: Vec<String>,
}

impl CrdMaker {
    /// Returns the path in the source of a value in the CRD, or that of the nearest value around it that the source has.
    pub(crate) fn path_in_source<'p>(self, path: &[&'p str]) -> Vec<&'p str> {
        match (self, path) {
            (Self::Crossplane, ["metadata", ..]) => [&["spec"], path].concat(),
            (Self::Crossplane, _) => path.to_vec(),
            (Self::Kro, ["metadata", ..]) => [&["spec", "schema"], path].concat(),
            (Self::Kro, ["spec", "versions", _, "schema", "openAPIV3Schema", inner @ ..]) => {
                let mut fields = vec!["spec", "schema"];
                let mut tokens = inner.iter();
                while let Some(token) = tokens.next() {
                    match *token {
                        "properties" => fields.extend(tokens.next()),
                        // A list or map and its items are one text.
                        "items" | "additionalProperties" => {}
                        _ => break,
                    }
                }
                fields
            }
            (Self::Kro, _) => vec!["spec", "schema"],
        }
    }

    /// Returns the place where the annotation reaches the CRD.
    pub fn annotations(self) -> &'static str {
        match self {
            Self::Crossplane => "spec.metadata.annotations",
            Self::Kro => "spec.schema.metadata.annotations",
        }
    }
}
