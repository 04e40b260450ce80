//! The ways to switch a member of a custom resource.

use serde_json::Value;

use crate::support::client_side;
use crate::support::http::{Answer, Client};
use crate::support::resource::Resource;

/// A way to switch a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// The object is created, and a patch sets the new member.
    Patch,
    /// `kubectl apply` has one member, then the other.
    ApplyThenApply,
    /// The object is created, and `kubectl apply` has the new member only.
    CreateThenApply,
    /// Server-side apply has one member, then the other, with the same field manager.
    SameManager,
    /// Server-side apply has one member, then the other, with another field manager.
    OtherManager,
    /// The object is created, and server-side apply has the new member only.
    CreateThenServerSide,
}

impl Way {
    pub(crate) const ALL: [Self; 6] = [
        Self::Patch,
        Self::ApplyThenApply,
        Self::CreateThenApply,
        Self::SameManager,
        Self::OtherManager,
        Self::CreateThenServerSide,
    ];

    /// Returns true for a way that leaves the old member behind.
    pub(crate) fn leaves_the_old(self) -> bool {
        !matches!(self, Self::ApplyThenApply | Self::SameManager)
    }

    /// Stores an object that has the first member, and returns the answer to the request for the second one. A list is a JSON patch,
    /// and an object is a merge patch.
    pub(crate) fn switch(
        self,
        client: &Client,
        resource: &Resource,
        [first, second]: [&Value; 2],
        patch: &Value,
    ) -> Answer {
        let (collection, url) = (resource.path(""), resource.path(first["metadata"]["name"].as_str().expect("a name")));
        let apply =
            |object: &Value| client_side::apply(client, &collection, object).expect("each manifest is another one");
        let send = |url: &str, content_type: &str, body: &Value| {
            client.send("PATCH", url, content_type, body.to_string().as_bytes()).unwrap()
        };
        let server_side = |object: &Value, manager: &str| {
            send(&format!("{url}?fieldManager={manager}&force=true"), "application/apply-patch+yaml", object)
        };
        let stored = match self {
            Self::ApplyThenApply => apply(first),
            Self::Patch | Self::CreateThenApply | Self::CreateThenServerSide => {
                client.post(&collection, first).unwrap()
            }
            Self::SameManager | Self::OtherManager => server_side(first, "first"),
        };
        assert!(stored.is_success() && stored.warnings.is_empty(), "{self:?}: {first}: {stored:?}");
        match self {
            Self::Patch if patch.is_array() => send(&url, "application/json-patch+json", patch),
            Self::Patch => send(&url, "application/merge-patch+json", patch),
            Self::ApplyThenApply | Self::CreateThenApply => apply(second),
            Self::SameManager | Self::CreateThenServerSide => server_side(second, "first"),
            Self::OtherManager => server_side(second, "second"),
        }
    }
}
