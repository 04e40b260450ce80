//! The samples as they are on disk, in their own group: an API server takes each CRD and each valid object, and unions are enforced.
//! `cli::test` of `tests/it` plays every file.

use crate::support::cluster::AnyCluster;
use crate::support::kind::{Kind, SAMPLES, SAMPLES_GROUP, parse};

#[test]
fn every_sample_is_accepted_and_enforced() {
    let Some(cluster) = AnyCluster::shared() else { return };
    for sample in SAMPLES {
        let kind = Kind::in_group(cluster, sample, SAMPLES_GROUP.to_owned());
        // On a cluster that was there before this run, so may be the kind.
        kind.delete_definition();
        kind.kubectl().apply(&kind.annotated()).accepted().not_warned_by_the_server();
        kind.wait_until_served();
        // By a case that is normalised, and one that is rejected.
        kind.enforce();
        let files = kind.files();
        let valid: Vec<_> = files.iter().filter(|file| file.starts_with("valid-")).collect();
        assert!(!valid.is_empty(), "{sample} has a valid object");
        for file in valid {
            let mut object = parse(&kind.read(file));
            object["metadata"]["namespace"] = "default".into();
            let answer = kind.post_dry(&object).expect("the API server answers");
            assert!(answer.is_success() && answer.warnings.is_empty(), "{sample}/{file}: {answer:?}");
            // The schema's defaults may have joined it; nothing of it is gone.
            let mut merged = answer.body["spec"].clone();
            json_patch::merge(&mut merged, &object["spec"]);
            assert_eq!(merged, answer.body["spec"], "{sample}/{file}");
        }
    }
}
