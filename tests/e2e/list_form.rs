//! The 2019 form, where a member that is added decides: with a discriminator (a backup) and without (a source).

use serde_json::json;

use crate::kind::Kind;

#[test]
fn the_discriminator_is_deduced_on_create() {
    let Some(backups) = Kind::shared("backup") else { return };
    backups
        .apply("deduced", &json!({"destination": {"s3": {"bucket": "b"}}}))
        .accepted()
        .warned(&["spec.destination.type: set to \"S3\" because `s3` is set"]);
    assert_eq!(backups.spec("deduced"), json!({"destination": {"s3": {"bucket": "b"}, "type": "S3"}}));
}

#[test]
fn adding_one_member_switches_the_union_to_it() {
    let Some(backups) = Kind::shared("backup") else { return };
    backups.apply("switched", &json!({"destination": {"type": "S3", "s3": {"bucket": "b"}}})).accepted().warned(&[]);
    backups.merge("switched", &json!({"spec": {"destination": {"gcs": {"bucket": "c"}}}})).accepted().warned(&[
        "spec.destination.s3: cleared because `gcs` was set",
        "spec.destination.type: set to \"GCS\" because `gcs` is set",
    ]);
    assert_eq!(backups.spec("switched"), json!({"destination": {"type": "GCS", "gcs": {"bucket": "c"}}}));
}

#[test]
fn changing_the_discriminator_clears_what_it_does_not_select() {
    let Some(backups) = Kind::shared("backup") else { return };
    backups.apply("cleared", &json!({"destination": {"type": "S3", "s3": {"bucket": "b"}}})).accepted();
    backups
        .merge("cleared", &json!({"spec": {"destination": {"type": "GCS", "gcs": {"bucket": "c"}}}}))
        .accepted()
        .warned(&["spec.destination.s3: cleared because `type` changed to \"GCS\""]);
    assert_eq!(backups.spec("cleared"), json!({"destination": {"type": "GCS", "gcs": {"bucket": "c"}}}));

    backups
        .merge("cleared", &json!({"spec": {"destination": {"type": "S3"}}}))
        .accepted()
        .warned(&["spec.destination.gcs: cleared because `type` changed to \"S3\""]);
    assert_eq!(backups.spec("cleared"), json!({"destination": {"type": "S3"}}));
}

#[test]
fn a_discriminator_that_is_dropped_is_put_back() {
    let Some(backups) = Kind::shared("backup") else { return };
    backups.apply("dropped", &json!({"destination": {"type": "S3", "s3": {"bucket": "b"}}})).accepted();
    backups
        .merge("dropped", &json!({"spec": {"destination": {"type": null}}}))
        .accepted()
        .warned(&["spec.destination.type: set to \"S3\" because `s3` is set"]);
    assert_eq!(backups.spec("dropped")["destination"]["type"], "S3");
}

#[test]
fn a_discriminator_changed_against_the_member_that_is_added_is_rejected() {
    let Some(backups) = Kind::shared("backup") else { return };
    let before = json!({"destination": {"type": "S3", "s3": {"bucket": "b"}}});
    backups.apply("against", &before).accepted();
    backups.merge("against", &json!({"spec": {"destination": {"type": "Volume", "gcs": {"bucket": "c"}}}})).rejected(
        &backups.invalid("against", &["spec.destination.gcs: Forbidden: may only be specified when `type` is \"GCS\""]),
    );
    assert_eq!(backups.spec("against"), before);
}

#[test]
fn without_a_discriminator_adding_one_member_replaces_the_other() {
    let Some(sources) = Kind::shared("source") else { return };
    sources
        .apply("replaced", &json!({"interval": "1m", "git": {"url": "https://example.com/a.git"}}))
        .accepted()
        .warned(&[]);
    sources
        .merge("replaced", &json!({"spec": {"bucket": {"name": "b"}}}))
        .accepted()
        .warned(&["spec.git: cleared because `bucket` was set"]);
    assert_eq!(sources.spec("replaced"), json!({"interval": "1m", "bucket": {"name": "b"}}));
}

#[test]
fn without_a_discriminator_a_second_manager_takes_over_by_server_side_apply() {
    let Some(sources) = Kind::shared("source") else { return };
    sources.apply_server_side("first", "ssa", &json!({"git": {"url": "https://example.com/a.git"}})).accepted();
    sources
        .apply_server_side("second", "ssa", &json!({"bucket": {"name": "b"}}))
        .accepted()
        .warned(&["spec.git: cleared because `bucket` was set"]);
    assert_eq!(sources.spec("ssa"), json!({"bucket": {"name": "b"}}));
}

#[test]
fn creating_with_two_members_and_nothing_to_choose_by_is_rejected() {
    let Some(sources) = Kind::shared("source") else { return };
    let spec = json!({"git": {"url": "https://example.com/a.git"}, "bucket": {"name": "b"}});
    sources
        .apply("two", &spec)
        .rejected(&sources.invalid("two", &["spec.git: Forbidden: at most one of `bucket`, `git` may be set"]));
}

#[test]
fn adding_two_members_at_once_is_rejected() {
    let Some(sources) = Kind::shared("source") else { return };
    let before = json!({"git": {"url": "https://example.com/a.git"}});
    sources.apply("added", &before).accepted();
    let among = "Forbidden: at most one of `bucket`, `git`, `oci` may be set";
    sources
        .merge("added", &json!({"spec": {"bucket": {"name": "b"}, "oci": {"ref": "r"}}}))
        .rejected(&sources.invalid("added", &[&format!("spec.bucket: {among}"), &format!("spec.oci: {among}")]));
    assert_eq!(sources.spec("added"), before);
}
