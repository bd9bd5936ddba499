//! TLS of the receivers: certificates read from files, and read again while running.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{ServerConfig, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    ConfigBuilder, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    WantsVerifier,
};

use super::settings::Tls;

/// Certificates or keys that cannot be used.
#[derive(Debug)]
pub struct TlsError {
    pub path: PathBuf,
    pub why: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for TlsError {}

fn fault(path: &Path, why: impl fmt::Display) -> TlsError {
    TlsError { path: path.to_owned(), why: why.to_string() }
}

/// The certificate in force, exchanged while connections go on.
pub struct Certificates {
    from: Tls,
    protocols: &'static [&'static [u8]],
    current: ArcSwap<ServerConfig>,
}

impl Certificates {
    /// Reads the files. `protocols`: what ALPN offers.
    ///
    /// # Errors
    /// When a file cannot be read or key and certificate do not fit.
    pub fn open(from: &Tls, protocols: &'static [&'static [u8]]) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(read(from, protocols)?);
        Ok(Certificates { from: from.clone(), protocols, current })
    }

    /// Reads the files again; on an error the old ones stay in force.
    ///
    /// # Errors
    /// As [`Certificates::open`].
    pub fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(read(&self.from, self.protocols)?));
        Ok(())
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.load_full())
    }

    /// Reloads every `reload_interval`, for ever.
    pub async fn keep_fresh(self: Arc<Self>) {
        if self.from.reload_interval.is_zero() {
            return;
        }
        loop {
            tokio::time::sleep(self.from.reload_interval).await;
            if let Err(error) = self.reload() {
                tracing::warn!(%error, "certificates were not reloaded, the old ones stay");
            }
        }
    }
}

fn read(from: &Tls, protocols: &[&[u8]]) -> Result<ServerConfig, TlsError> {
    let chain = certificates(&from.cert_file)?;
    let key = PrivateKeyDer::from_pem_file(&from.key_file);
    let key = key.map_err(|error| fault(&from.key_file, error))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(&from.cert_file, error))?;
    let builder = match &from.client_ca_file {
        None => builder.with_no_client_auth(),
        Some(path) => with_client_auth(builder, path)?,
    };
    let config = builder.with_single_cert(chain, key);
    let mut config = config.map_err(|error| fault(&from.cert_file, error))?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

type Verified = ConfigBuilder<ServerConfig, tokio_rustls::rustls::server::WantsServerCert>;

fn with_client_auth(
    builder: ConfigBuilder<ServerConfig, WantsVerifier>,
    path: &Path,
) -> Result<Verified, TlsError> {
    let pinned = certificates(path)?;
    let mut roots = RootCertStore::empty();
    for certificate in &pinned {
        roots.add(certificate.clone()).map_err(|error| fault(path, error))?;
    }
    let provider = Arc::new(ring::default_provider());
    let usual = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let usual = usual.map_err(|error| fault(path, error))?;
    Ok(builder.with_client_cert_verifier(Arc::new(Pinned { usual, pinned })))
}

/// The usual rules; and a client may show the very certificate that `client_ca_file` holds, as
/// self-signed ones do, which the usual rules refuse because it is an authority's.
#[derive(Debug)]
struct Pinned {
    usual: Arc<dyn ClientCertVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.usual.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        cert: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.pinned.iter().any(|pinned| pinned == cert) {
            true => Ok(ClientCertVerified::assertion()),
            false => self.usual.verify_client_cert(cert, others, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| fault(path, error))?;
    let all: Result<Vec<_>, _> = read.collect();
    let all = all.map_err(|error| fault(path, error))?;
    if all.is_empty() {
        return Err(fault(path, "it holds no certificate"));
    }
    Ok(all)
}
