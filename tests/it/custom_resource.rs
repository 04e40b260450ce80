//! The CRD of `UnionDeclaration`: what is checked in is what the code says.

use fixtures::files::assert_generated;
use kube::CustomResourceExt;
use kube_unions_core::declaration::UnionDeclaration;
use serde_json::Value;

const HEADER: &str = "# Made from the code by `make manifests`.\n";

/// The checked-in file. The chart has a link to it.
const FILE: &str = "manifests/webhook/crd.yaml";

#[test]
fn the_checked_in_crd_is_the_one_of_the_code() {
    let crd = serde_json::to_value(UnionDeclaration::crd()).unwrap();
    let text = format!("{HEADER}{}", serde_saphyr::to_string(&crd).unwrap());
    assert_generated(FILE, &text, "make manifests");
    // The text reads back as the same value, so no string became another type.
    assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), crd);
    // A default would add the field to stored declarations, and an older replica refuses a field that it does not know.
    let normalization = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/normalization";
    assert_eq!(crd.pointer(normalization).expect("the field").get("default"), None);
}
