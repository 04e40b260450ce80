//! A client with the types of the sample, as its author's controller has one.

use super::sample::{BlueGreen, Bucket, Canary, Git, Rollout, RolloutSpec, Source, Strategy};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

#[test]
fn a_typed_client_switches_the_variants_of_both_enums() {
    let Some(rollouts) = super::rollouts() else { return };
    let canary = || RolloutSpec {
        replicas: Some(3),
        source: Some(Source::Git(Git { url: "u".to_owned() })),
        strategy: Some(Strategy::Canary { canary: Canary { weight: 5 }, stable_service: Some("s".to_owned()) }),
    };
    let blue_green = || RolloutSpec {
        replicas: Some(3),
        source: Some(Source::Bucket(Bucket { name: "b".to_owned() })),
        strategy: Some(Strategy::BlueGreen { blue_green: Some(BlueGreen { preview_service: Some("p".to_owned()) }) }),
    };
    let recreate = || RolloutSpec { strategy: Some(Strategy::Recreate), ..canary() };
    let stored_canary = json!({"replicas": 3, "source": {"git": {"url": "u"}},
        "strategy": {"type": "Canary", "canary": {"weight": 5}, "stableService": "s"}});
    let stored_blue_green = json!({"replicas": 3, "source": {"bucket": {"name": "b"}},
        "strategy": {"type": "BlueGreen", "blueGreen": {"previewService": "p"}}});
    let stored_recreate = json!({"replicas": 3, "source": {"git": {"url": "u"}}, "strategy": {"type": "Recreate"}});
    // Returns the spec as the API server stores it, after the client has read what it stores.
    let stored = |answer: kube::Result<Rollout>| -> Value {
        let read = serde_json::to_value(answer.expect("the API server accepts it").spec).expect("it is JSON");
        let stored = rollouts.spec("typed");
        assert_eq!(read, stored);
        stored
    };

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be started");
    runtime.block_on(async {
        let file = Kubeconfig::read_from(rollouts.cluster().kubeconfig()).expect("the kubeconfig can be read");
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        let client =
            kube::Client::try_from(config.expect("the kubeconfig can be used")).expect("a client can be built");
        let api = Api::<Rollout>::namespaced(client, "default");
        let post = PostParams::default();

        assert_eq!(stored(api.create(&post, &Rollout::new("typed", canary())).await), stored_canary);
        // The patch does not name the canary's fields, and both are cleared.
        let merge = Patch::Merge(json!({"spec": blue_green()}));
        assert_eq!(stored(api.patch("typed", &PatchParams::default(), &merge).await), stored_blue_green);
        let mut object = api.get("typed").await.expect("it is there");
        object.spec = canary();
        assert_eq!(stored(api.replace("typed", &post, &object).await), stored_canary);
        // The client that applies owns no field of the canary.
        let apply = Patch::Apply(Rollout::new("typed", recreate()));
        assert_eq!(stored(api.patch("typed", &PatchParams::apply("typed").force(), &apply).await), stored_recreate);
    });
}
