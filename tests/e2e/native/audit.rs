//! Policies of declarations that audit: the API server itself writes the audit annotation.

use serde_json::{Value, json};

use super::{IN_FORCE, Native, policy_warnings};
use crate::support::resource::Resource;
use fixtures::crds;
use fixtures::reviews::{declaration, declared_catalog};
use fixtures::wait::eventually;
use kube_unions_policies::PolicyOptions;

const GROUP: &str = "audited.native.example";

/// The annotation of the API server with the violations that policies audit.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

#[test]
fn policies_of_a_declaration_that_audits_leave_the_annotation_to_the_api_server() {
    let Some(native) = Native::start() else { return };
    let log = native.control_plane().audit_log();
    let part = json!({"type": "object", "properties": {"note": {"type": "string"}}});
    let spec = json!({"type": "object", "properties": {"a": part, "b": part}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let violation = "spec.b: Forbidden: at most one of `a`, `b` may be set";
    let told = format!("{violation}; let through because its declaration only warns");
    for (kind, actions, message, warnings) in
        [("Observed", json!(["Audit"]), violation, vec![]), ("Warned", json!(["Warn", "Audit"]), &told, vec![&*told])]
    {
        let definition = crds::crd(GROUP, kind, &[crds::version("v1", &schema)]);
        let union = json!({"path": "spec", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}});
        let spec = json!({"normalization": "Disabled", "validationActions": actions, "unions": [union]});
        let catalog = declared_catalog(&definition, &[declaration("observe", GROUP, kind, &spec)]);
        native.apply(&definition);
        let resource = Resource::of_definition(&definition);
        let collection = resource.path("");
        native.wait_until_served(&collection);
        for compiled in native.install(&catalog, &PolicyOptions::default()) {
            assert_eq!(compiled.refusals, []);
        }
        let both = json!({"spec": {"a": {"note": "s3cret"}, "b": {"note": "s3cret"}}});
        let object = |name: &str| resource.object(name, &both);
        let failures = |name: &str| -> Vec<Value> {
            let events = log.events(&resource.plural, name);
            let texts = events.iter().filter_map(|event| event["annotations"][FAILURE].as_str());
            texts.map(|text| serde_json::from_str(text).unwrap()).collect()
        };
        let in_force = eventually(IN_FORCE, || {
            native.send("POST", &format!("{collection}?dryRun=All"), &object("probe"));
            !failures("probe").is_empty()
        });
        assert!(in_force, "{kind}: the policies never came into force");

        let answer = native.send("POST", &collection, &object("x"));
        assert!(answer.is_success(), "{answer:?}");
        assert_eq!(policy_warnings(&answer), warnings, "{kind}");
        assert_eq!(native.get(&format!("{collection}/x")).body["spec"], object("x")["spec"], "{kind}");
        let [failure] = &failures("x")[..] else { panic!("{kind}: one write, one annotation: {:?}", failures("x")) };
        assert_eq!(failure[0]["message"], message, "{failure}");
        assert_eq!(failure[0]["validationActions"], actions, "{failure}");
        assert_eq!(failure.as_array().map(Vec::len), Some(1), "{failure}");
    }
    let text = log.text();
    assert!(!text.contains("s3cret"), "{:?}", text.lines().find(|line| line.contains("s3cret")));
}
