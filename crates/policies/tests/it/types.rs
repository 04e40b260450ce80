//! The types of the expressions, as an API server infers them when a policy is stored.

use fixtures::cel::check_policy;
use fixtures::kinds::{GeneratedKind, KINDS};
use kube_unions_policies::{CompiledKinds, KubernetesVersion, PolicyOptions, PolicyRatcheting};

/// The options with which a policy has other expressions.
fn options() -> impl Iterator<Item = PolicyOptions> {
    let servers = [36, 34, 33].into_iter().map(|minor| KubernetesVersion::new(1, minor));
    let ratcheting = [PolicyRatcheting::Enabled, PolicyRatcheting::Warn, PolicyRatcheting::Disabled];
    servers.zip(ratcheting).map(|(server, ratcheting)| PolicyOptions { server, ratcheting, ..PolicyOptions::default() })
}

/// `KUBE_UNIONS_KINDS_SEED` selects other names.
#[test]
fn an_api_server_accepts_the_types_of_every_policy_of_generated_kinds() {
    let seed = std::env::var("KUBE_UNIONS_KINDS_SEED").ok().map_or(1, |seed| seed.parse().unwrap());
    let (mut policies, mut refused) = (0, Vec::new());
    for (number, kind) in GeneratedKind::all("types.example", seed).enumerate() {
        let catalog = kind.catalog();
        // Older API servers and other treatments of old faults take turns.
        for options in options().enumerate().filter(|(turn, _)| *turn == 0 || *turn == number % 4).map(|(_, it)| it) {
            let compiled = CompiledKinds::of(&catalog, &options);
            let is_whole = options.server == KubernetesVersion::new(1, 36);
            assert!(!is_whole || compiled.refusals.is_empty(), "{}: {:?}", kind.description, compiled.refusals);
            assert!(!is_whole || !compiled.objects.is_empty(), "{}", kind.description);
            for object in &compiled.objects {
                policies += usize::from(!object.kind().ends_with("Binding"));
                let checked = check_policy(&object.to_json());
                refused.extend(checked.err().map(|error| format!("{}\n{error}", kind.description)));
            }
        }
    }
    println!("seed {seed}: {KINDS} kinds, {policies} policies, {} refused", refused.len());
    let told: Vec<&str> = refused.iter().take(5).map(String::as_str).collect();
    assert!(refused.is_empty(), "seed {seed}: {} policies would be refused:\n{}", refused.len(), told.join("\n\n"));
}
