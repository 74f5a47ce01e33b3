//! The check that a peer's raw public key is the one expected key (RFC 7250, section 4.2).

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
    sign::CertifiedKey,
};

/// Takes one public key and no other, from either end.
#[derive(Debug)]
pub(super) struct Expected {
    /// The SubjectPublicKeyInfo of the key.
    key: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Expected {
    pub(super) fn new(key: &CertifiedKey, provider: &CryptoProvider) -> Result<Self, Error> {
        let key = key.end_entity_cert()?.clone().into_owned();
        Ok(Self { key, algorithms: provider.signature_verification_algorithms })
    }

    fn is(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        match shown == &self.key {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }
}

/// What both traits ask for in the same words.
macro_rules! raw_public_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _certificate: &CertificateDer<'_>,
            _signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            // It is not offered, so its signatures never come.
            Err(PeerIncompatible::Tls12NotOffered.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let key = SubjectPublicKeyInfoDer::from(certificate.as_ref());
            verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Expected {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.is(end_entity).map(|()| ServerCertVerified::assertion())
    }

    raw_public_keys!();
}

impl ClientCertVerifier for Expected {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.is(end_entity).map(|()| ClientCertVerified::assertion())
    }

    raw_public_keys!();
}
