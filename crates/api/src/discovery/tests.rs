use super::*;

impl DiscoveredResource {
    pub(crate) fn named(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase().into(),
            short_names: Vec::new(),
            namespaced: false,
        }
    }
}

#[test]
fn a_resource_is_found_by_every_name_that_kubectl_takes() {
    let nicknamed = |resource: DiscoveredResource, name: &str| DiscoveredResource {
        short_names: vec![name.to_owned()],
        ..resource
    };
    let all = [
        nicknamed(DiscoveredResource::named("", "v1", "Service", "services"), "svc"),
        nicknamed(DiscoveredResource::named("apps", "v1", "Deployment", "deployments"), "deploy"),
        DiscoveredResource::named("example.com", "v1", "Widget", "widgets"),
        DiscoveredResource::named("example.com", "v1beta1", "Widget", "widgets"),
        DiscoveredResource::named("serving.example.com", "v1", "Service", "services"),
        // Its plural is another's short name.
        DiscoveredResource::named("example.com", "v1", "Svc", "deploy"),
    ];
    for (asked, position) in [
        ("services", Some(0)),
        ("Service", Some(0)),
        ("svc", Some(5)),
        ("svc.v1.", Some(0)),
        ("deploy", Some(5)),
        ("deploy.apps", Some(1)),
        ("deployments.v1.apps", Some(1)),
        ("widget", Some(2)),
        ("widgets.example.com", Some(2)),
        ("widgets.v1beta1.example.com", Some(3)),
        ("widgets.exam", Some(2)),
        ("services.serving.example.com", Some(4)),
        ("widgets.v2.example.com", None),
        ("widgets.other.com", None),
        ("gadgets", None),
        ("", None),
    ] {
        let found = find(&all, asked).map(|it| all.iter().position(|one| one == it).unwrap());
        assert_eq!(found, position, "{asked}");
    }
}

#[test]
fn an_object_has_the_title_that_kubectl_prints() {
    assert_eq!(DiscoveredResource::named("example.com", "v1", "Widget", "widgets").title("a"), "widget.example.com/a");
    assert_eq!(DiscoveredResource::named("", "v1", "Pod", "pods").title("a"), "pod/a");
}
