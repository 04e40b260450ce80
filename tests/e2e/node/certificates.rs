//! Certificates in the default mode: the replicas share a Secret, and agree on a new CA.

use std::net::{IpAddr, SocketAddr};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::{CONFIGURATIONS, NAMESPACE, Release, SETTLED, no_write_is_lost};
use crate::loss::rotation::ROTATED;
use crate::registration::decoded;
use crate::support::tls;
use fixtures::wait::{eventually, for_some};

/// The name of the Service, for which the certificate is.
pub(super) const NAME: &str = "kube-unions.kube-unions.svc";

#[test]
fn another_authority_loses_no_write() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    let pods = release.two_pods();
    let before = release.certificate().expect("the replicas have agreed on a certificate");
    let writers = release.writers(&kind);

    // The replicas make another CA, and announce it before it signs.
    let secret = format!("{NAMESPACE}/secrets/kube-unions-tls");
    assert!(release.cluster.client().delete(&secret).unwrap().is_success());
    let other = || release.certificate().filter(|certificate| *certificate != before);
    let after = for_some(ROTATED, other).expect("another certificate");
    let bundle = release.bundle();
    for pod in &pods {
        let served = || tls::served_at(address(pod), NAME, &bundle);
        assert!(eventually(SETTLED, || served().as_ref() == Ok(&after)), "{:?}", served());
    }
    // The next pods are asked over new connections only.
    release.upgrade(&json!({"podAnnotations": {"example.com/revision": "second"}}));
    release.leads_to(&release.two_pods());
    no_write_is_lost("another CA, in the default mode of certificates", writers);
}

impl Release {
    /// Returns the certificate on which the replicas have agreed.
    fn certificate(&self) -> Option<CertificateDer<'static>> {
        let secret = self.cluster.client().get(&format!("{NAMESPACE}/secrets/kube-unions-tls")).unwrap().body;
        CertificateDer::from_pem_slice(decoded(&secret["data"]["tls.crt"]).as_bytes()).ok()
    }

    /// Returns the CAs that the API server trusts, PEM.
    pub(super) fn bundle(&self) -> String {
        let registered = self.cluster.client().get(CONFIGURATIONS[0]).unwrap().body;
        decoded(&registered["webhooks"][0]["clientConfig"]["caBundle"])
    }
}

/// Returns the address at which a pod answers reviews.
pub(super) fn address(pod: &Value) -> SocketAddr {
    let ip: IpAddr = pod["status"]["podIP"].as_str().expect("the pod has an address").parse().unwrap();
    SocketAddr::new(ip, 10250)
}
