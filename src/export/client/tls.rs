//! TLS towards backends: the system's authorities or a file's, our own certificate if asked for.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::Fault;
use crate::export::settings::Tls;

/// The configuration of an exporter's connections.
pub fn config(tls: &Tls, protocols: &[&[u8]]) -> Result<ClientConfig, Fault> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault(error.to_string()))?;
    let builder = if tls.insecure_skip_verify {
        let verifier = Arc::new(Unverified(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier)
    } else {
        let verifier = Arc::new(Pinned::new(roots(tls)?, provider)?);
        builder.dangerous().with_custom_certificate_verifier(verifier)
    };
    let mut config = match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => {
            let key_der = PrivateKeyDer::from_pem_file(key).map_err(|e| Fault::file(key, e))?;
            let chain = certificates(cert)?;
            builder.with_client_auth_cert(chain, key_der).map_err(|e| Fault::file(cert, e))?
        }
        (None, None) => builder.with_no_client_auth(),
        _ => return Err(Fault("tls: cert_file and key_file go together".into())),
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Whom to trust: the certificates of `ca_file`, else the system's.
fn roots(tls: &Tls) -> Result<Roots, Fault> {
    match &tls.ca_file {
        Some(path) => {
            let pinned = certificates(path)?;
            let mut store = RootCertStore::empty();
            for certificate in &pinned {
                store.add(certificate.clone()).map_err(|error| Fault::file(path, error))?;
            }
            Ok(Roots { store, pinned })
        }
        None => {
            // A certificate of the system's that cannot be parsed is no reason to trust none.
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Ok(Roots { store, pinned: Vec::new() })
        }
    }
}

struct Roots {
    store: RootCertStore,
    pinned: Vec<CertificateDer<'static>>,
}

/// The usual rules; and a server may show the very certificate that `ca_file` holds, as
/// self-signed ones do, which the usual rules refuse because it is an authority's.
#[derive(Debug)]
struct Pinned {
    /// `None` where nobody at all is trusted: a system without certificates.
    usual: Option<Arc<WebPkiServerVerifier>>,
    pinned: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn new(roots: Roots, provider: Arc<CryptoProvider>) -> Result<Self, Fault> {
        let Roots { store, pinned } = roots;
        let usual = match store.is_empty() {
            true => None,
            false => {
                let store = Arc::new(store);
                let built =
                    WebPkiServerVerifier::builder_with_provider(store, provider.clone()).build();
                Some(built.map_err(|error| Fault(error.to_string()))?)
            }
        };
        Ok(Pinned { usual, pinned, provider })
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        cert: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.pinned.iter().any(|pinned| pinned == cert) {
            verify_server_name(&ParsedCertificate::try_from(cert)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        match &self.usual {
            Some(usual) => usual.verify_server_cert(cert, others, name, ocsp, now),
            None => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| Fault::file(path, error))?;
    read.collect::<Result<_, _>>().map_err(|error| Fault::file(path, error))
}

/// `insecure_skip_verify: true`: encrypted, to whoever answers.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
