//! New certificates for the replicas of an installation, and new authorities.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::support::tls;
use fixtures::certificates::TestAuthority;
use fixtures::wait::{eventually, for_some};

use super::SETTLED;
use super::installation::{Installation, REPLICAS, SECRET};

/// From the Secret's deletion until a certificate of the new CA is served: the configurations are to hold that for a
/// minute, and each replica looks at the Secret twice a minute.
pub(crate) const ROTATED: Duration = Duration::from_mins(3);

/// The Secret that the replicas agree on.
pub(super) struct Agreed {
    certificate: CertificateDer<'static>,
    /// PEM, the newest first.
    pub(super) authorities: String,
}

impl Installation {
    /// Gives a replica a new certificate of the authority at hand, and waits until it is served.
    pub(crate) fn renew(&mut self, replica: usize) {
        let (authority, volume) = self.mounted(replica);
        let trusted = volume.trusted();
        volume.renew(authority, &trusted);
        self.wait_until_served(replica);
    }

    /// From one authority to the next: both are trusted before any replica has a certificate of the new one, and until
    /// none has one of the old one.
    pub(crate) fn change_authority(&mut self) {
        let old = self.next_authority();
        let both = format!("{old}{}", self.authority.pem());
        self.trust(&both);
        for replica in 0..REPLICAS {
            self.renew(replica);
            self.reconnect(replica);
        }
        let next = self.authority.pem().to_owned();
        self.trust(&next);
    }

    /// Has the next certificates signed by another authority; the one before it, PEM.
    pub(crate) fn next_authority(&mut self) -> String {
        let next = TestAuthority::new("kube-unions loss tests, the next");
        std::mem::replace(&mut self.authority, next).pem().to_owned()
    }

    /// Gives a replica a new certificate and the authority that has signed it, which nobody has heard of yet, in one swap.
    pub(crate) fn replace(&mut self, replica: usize) {
        let (authority, volume) = self.mounted(replica);
        volume.renew(authority, authority.pem());
        self.wait_until_served(replica);
        self.registration.wait_until_held(self.authority.pem());
    }

    /// Has the API server leave the connections it has, and open others: it has connections of their own for every bundle,
    /// so one more CA is announced, by one replica.
    pub(crate) fn reconnect(&mut self, replica: usize) {
        let opened = self.balancer.opened();
        let one_more = TestAuthority::new("kube-unions loss tests, one more").pem().to_owned();
        let before = std::mem::replace(&mut self.one_more, one_more);
        let one_more = self.one_more.clone();
        let (_, volume) = self.mounted(replica);
        let trusted = volume.trusted();
        volume.trust(&format!("{}{one_more}", trusted.strip_suffix(&before).unwrap_or(&trusted)));
        self.registration.wait_until_held(&one_more);
        assert!(eventually(SETTLED, || self.balancer.opened() > opened), "the API server connects anew");
    }

    /// Deletes the Secret that the replicas agree on, which forces another CA, and waits until all serve what that has
    /// signed.
    pub(crate) fn rotate(&mut self) {
        let before = self.agreed().expect("the replicas have agreed on a Secret");
        let deleted = self.control_plane.client().delete(&secret()).expect("the API server answers");
        assert!(deleted.is_success(), "{deleted:?}");
        let signed = || self.agreed().filter(|it| it.certificate != before.certificate);
        let after = for_some(ROTATED, signed).unwrap_or_else(|| panic!("no other certificate:\n{}", self.log()));
        assert!(self.registration.holds(&after.authorities), "a CA is registered before it signs");
        let all = || (0..REPLICAS).all(|it| self.served(it, &after.authorities).as_ref() == Ok(&after.certificate));
        assert!(eventually(SETTLED, all), "all serve what they have agreed on:\n{}", self.log());
        for replica in 0..REPLICAS {
            let refused = self.served(replica, &before.authorities);
            assert!(refused.is_err(), "it is the new CA that has signed: {refused:?}");
        }
        assert!(after.authorities.ends_with(&before.authorities), "the old CA stays");
        self.registration.wait_until_held(&after.authorities);
    }

    /// The Secret, where it is there, and whole.
    pub(super) fn agreed(&self) -> Option<Agreed> {
        let answer = self.control_plane.client().get(&secret()).expect("the API server answers");
        let text = |key: &str| String::from_utf8(STANDARD.decode(answer.body["data"][key].as_str()?).ok()?).ok();
        let certificate = CertificateDer::from_pem_slice(text("tls.crt")?.as_bytes()).ok()?;
        Some(Agreed { certificate, authorities: text("ca.crt")? })
    }

    fn served(&self, replica: usize, authorities: &str) -> Result<CertificateDer<'static>, String> {
        tls::served(self.port(replica), "kube-unions.kube-unions.svc", authorities)
    }

    /// Waits until a replica serves what it was given, and fails where it does so before its CA is registered.
    fn wait_until_served(&mut self, replica: usize) {
        let (authority, volume) = self.mounted(replica);
        let (authority, certificate) = (authority.pem().to_owned(), volume.certificate());
        let mut held = false;
        let served = eventually(SETTLED, || {
            // First this, so that there is no time in between in which both can come about.
            held = held || self.registration.holds(&authority);
            let served = self.served(replica, &authority).is_ok_and(|served| served == certificate);
            assert!(held || !served, "a certificate is served before its CA is registered:\n{}", self.log());
            served
        });
        assert!(served, "the new certificate is never served:\n{}", self.log());
    }

    fn trust(&mut self, authorities: &str) {
        for replica in 0..REPLICAS {
            self.mounted(replica).1.trust(authorities);
        }
        self.registration.wait_until_held(authorities);
    }
}

pub(super) fn secret() -> String {
    format!("/api/v1/namespaces/kube-unions/secrets/{SECRET}")
}
