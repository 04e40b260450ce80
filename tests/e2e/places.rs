//! Unions in keyed lists, maps, atomic lists and `status`, and several unions in one object.

use serde_json::{Value, json};

use crate::cluster::AnyCluster;
use crate::kind::Kind;

#[test]
fn an_item_of_a_keyed_list_is_compared_with_its_own_old_self_in_whatever_order() {
    let Some(monitors) = Kind::shared("monitor") else { return };
    let basic = json!({"port": 80, "path": "/a", "auth": {"type": "Basic", "basic": {"secretName": "s"}}});
    let bearer = json!({"port": 81, "path": "/b", "auth": {"type": "Bearer", "bearer": {"secretName": "t"}}});
    monitors.apply("reordered", &json!({"endpoints": [basic, bearer]})).accepted().warned(&[]);

    monitors
        .read_modify_write("reordered", |object| {
            let endpoints = object["spec"]["endpoints"].as_array_mut().unwrap();
            endpoints.reverse();
            endpoints[1]["auth"]["type"] = json!("Bearer");
            endpoints[1]["auth"]["bearer"] = json!({"secretName": "new"});
        })
        .accepted()
        .warned(&["spec.endpoints[1].auth.basic: cleared because `type` changed to \"Bearer\""]);
    let changed = json!({"port": 80, "path": "/a", "auth": {"type": "Bearer", "bearer": {"secretName": "new"}}});
    assert_eq!(monitors.spec("reordered"), json!({"endpoints": [bearer, changed]}));
}

#[test]
fn an_item_of_a_keyed_list_within_a_keyed_list_is_found_by_both_keys() {
    let Some(monitors) = Kind::shared("monitor") else { return };
    let relabeling = |name: &str| json!({"name": name, "action": "Replace", "replace": {"targetLabel": "t"}});
    let endpoint = |path: &str| json!({"port": 80, "path": path, "relabelings": [relabeling("x"), relabeling("y")]});
    monitors.apply("nested", &json!({"endpoints": [endpoint("/a"), endpoint("/b")]})).accepted().warned(&[]);

    monitors
        .read_modify_write("nested", |object| {
            object["spec"]["endpoints"].as_array_mut().unwrap().reverse();
            let relabelings = object["spec"]["endpoints"][1]["relabelings"].as_array_mut().unwrap();
            relabelings.reverse();
            relabelings[0]["action"] = json!("LabelDrop");
        })
        .accepted()
        .warned(&["spec.endpoints[1].relabelings[0].replace: cleared because `action` changed to \"LabelDrop\""]);
    let changed =
        json!({"port": 80, "path": "/a", "relabelings": [{"name": "y", "action": "LabelDrop"}, relabeling("x")]});
    assert_eq!(monitors.spec("nested"), json!({"endpoints": [endpoint("/b"), changed]}));
}

#[test]
fn an_item_of_a_keyed_list_under_a_new_key_has_no_old_self_and_is_never_cleared() {
    let Some(monitors) = Kind::shared("monitor") else { return };
    let endpoint = json!({"port": 80, "path": "/a", "auth": {"type": "Basic", "basic": {"secretName": "s"}}});
    monitors.apply("renamed", &json!({"endpoints": [endpoint]})).accepted();
    monitors
        .read_modify_write("renamed", |object| {
            let endpoint = &mut object["spec"]["endpoints"][0];
            endpoint["path"] = json!("/b");
            endpoint["auth"]["type"] = json!("Bearer");
            endpoint["auth"]["bearer"] = json!({"secretName": "t"});
        })
        .rejected(&monitors.invalid(
            "renamed",
            &["spec.endpoints[0].auth.basic: Forbidden: may only be specified when `type` is \"Basic\""],
        ));
}

#[test]
fn the_unions_of_two_items_are_reported_together() {
    let Some(monitors) = Kind::shared("monitor") else { return };
    let spec = json!({"endpoints": [
        {"port": 80, "path": "/a", "auth": {"type": "Bearer"}},
        {"port": 80, "path": "/b", "relabelings": [{"name": "x", "action": "LabelDrop", "keep": {"regex": "r"}}]},
    ]});
    monitors.apply("both", &spec).rejected(&monitors.invalid(
        "both",
        &[
            "spec.endpoints[0].auth.bearer: Required value: must be specified when `type` is \"Bearer\"",
            "spec.endpoints[1].relabelings[0].keep: Forbidden: may only be specified when `action` is \"Keep\"",
        ],
    ));
}

#[test]
fn a_value_of_a_map_is_compared_with_the_old_one_of_its_key() {
    let Some(pipelines) = Kind::shared("pipeline") else { return };
    pipelines
        .apply("steps", &json!({"steps": {"build": step("script"), "test": step("script")}}))
        .accepted()
        .warned(&[]);
    pipelines
        .merge("steps", &json!({"spec": {"steps": {"build": step("container")}}}))
        .accepted()
        .warned(&["spec.steps[build].script: cleared because `container` was set"]);
    assert_eq!(pipelines.spec("steps"), json!({"steps": {"build": step("container"), "test": step("script")}}));
}

#[test]
fn two_unions_of_one_object_are_kept_apart() {
    let Some(pipelines) = Kind::shared("pipeline") else { return };
    let mut build = step("script");
    build["on"] = json!("Success");
    build["onSuccess"] = on_success();
    pipelines.apply("apart", &json!({"steps": {"build": build}})).accepted().warned(&[]);
    pipelines
        .merge("apart", &json!({"spec": {"steps": {"build": {"on": "Always"}}}}))
        .accepted()
        .warned(&["spec.steps[build].onSuccess: cleared because `on` changed to \"Always\""]);
    build["on"] = json!("Always");
    build.as_object_mut().unwrap().remove("onSuccess");
    assert_eq!(pipelines.spec("apart"), json!({"steps": {"build": build}}));
}

#[test]
fn a_key_with_a_slash_and_a_tilde_is_patched_at_the_right_place() {
    let Some(pipelines) = Kind::shared("pipeline") else { return };
    pipelines.apply("slash", &json!({"steps": {"a/b~c": step("script")}})).accepted();
    pipelines
        .merge("slash", &json!({"spec": {"steps": {"a/b~c": step("container")}}}))
        .accepted()
        .warned(&["spec.steps[a/b~c].script: cleared because `container` was set"]);
    assert_eq!(pipelines.spec("slash"), json!({"steps": {"a/b~c": step("container")}}));
}

#[test]
fn an_item_of_an_atomic_list_is_never_cleared_and_still_validated() {
    let Some(routes) = Kind::shared("route") else { return };
    let redirect =
        json!({"type": "RequestRedirect", "requestRedirect": {"hostname": "example.com", "statusCode": 301}});
    routes.apply("atomic", &json!({"backend": "b", "filters": [redirect]})).accepted().warned(&[]);
    routes.read_modify_write("atomic", |object| object["spec"]["filters"][0]["type"] = json!("None")).rejected(
        &routes.invalid(
            "atomic",
            &["spec.filters[0].requestRedirect: Forbidden: may only be specified when `type` is \"RequestRedirect\""],
        ),
    );
    routes
        .read_modify_write("atomic", |object| object["spec"]["filters"] = json!([{"type": "None"}, redirect]))
        .accepted()
        .warned(&[]);
    assert_eq!(routes.spec("atomic"), json!({"backend": "b", "filters": [{"type": "None"}, redirect]}));
}

#[test]
fn an_invalid_item_of_an_atomic_list_may_move_and_may_not_multiply() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let routes = Kind::new(cluster, "route");
    routes.apply_definition_without_unions();
    let invalid = json!({"type": "None", "requestRedirect": {"hostname": "example.com", "statusCode": 301}});
    routes.apply("moved", &json!({"backend": "b", "filters": [invalid, {"type": "None"}]})).accepted();
    routes.apply_definition();
    routes.enforce();

    let cause = |index: usize| {
        format!(
            "spec.filters[{index}].requestRedirect: Forbidden: may only be specified when `type` is \"RequestRedirect\""
        )
    };
    routes
        .read_modify_write("moved", |object| object["spec"]["filters"].as_array_mut().unwrap().reverse())
        .accepted()
        .warned(&[&format!("{}; let through because the union did not change", cause(1))]);
    routes
        .read_modify_write("moved", |object| {
            object["spec"]["filters"][0]["urlRewrite"] = json!({"path": "/"});
        })
        .refused("spec.filters[0].urlRewrite: Forbidden: may only be specified when `type` is \"URLRewrite\"");
}

#[test]
fn on_the_status_subresource_only_the_status_counts() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let backups = Kind::new(cluster, "backup");
    backups.apply_definition_without_unions();
    let spec = json!({"destination": {"type": "S3", "gcs": {"bucket": "c"}}});
    backups.apply("status", &spec).accepted();
    backups.apply_definition();
    backups.enforce();

    // The spec is invalid, and nobody asked about the spec.
    backups
        .merge_status("status", &json!({"status": {"running": started()}}))
        .accepted()
        .warned(&["status.phase: set to \"Running\" because `running` is set"]);
    backups.merge_status("status", &json!({"status": {"failed": {"message": "m"}}})).accepted().warned(&[
        "status.phase: set to \"Failed\" because `failed` is set",
        "status.running: cleared because `failed` was set",
    ]);
    let stored = backups.stored("status");
    assert_eq!(stored["status"], json!({"phase": "Failed", "failed": {"message": "m"}}));
    assert_eq!(stored["spec"], spec);
}

#[test]
fn a_contradiction_in_the_status_is_rejected_on_the_status_subresource_alone() {
    let Some(backups) = Kind::shared("backup") else { return };
    backups.apply("phases", &json!({"destination": {"type": "S3", "s3": {"bucket": "b"}}})).accepted();
    let both = json!({"running": started(), "failed": {"message": "m"}});
    backups.merge_status("phases", &json!({"status": both})).rejected(
        &backups.invalid("phases", &["status.running: Forbidden: at most one of `failed`, `running` may be set"]),
    );
    // On the main resource the API server drops whatever is said about the status.
    backups
        .merge("phases", &json!({"spec": {"destination": {"s3": {"bucket": "d"}}}, "status": both}))
        .accepted()
        .warned(&[]);
    assert_eq!(backups.stored("phases")["status"], Value::Null);
}

fn started() -> Value {
    json!({"startedAt": "2026-01-01T00:00:00Z"})
}

fn on_success() -> Value {
    json!({"next": "test"})
}

/// A step of a pipeline with one member set.
fn step(member: &str) -> Value {
    match member {
        "script" => json!({"script": "make"}),
        _ => json!({"container": {"image": "i"}}),
    }
}
