//! Connections of the gRPC exporter: direct or through a proxy of the environment, plain or TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tower::Service;

/// Connects to the endpoint, whatever URI it is asked for.
#[derive(Clone)]
pub struct Connector {
    /// With the scheme that decides about proxies.
    pub endpoint: Uri,
    pub tls: Option<Arc<ClientConfig>>,
    pub proxies: Arc<Matcher>,
}

/// A connection of either kind.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

type Error = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect().await.map(TokioIo::new) })
    }
}

impl Connector {
    async fn connect(self) -> Result<Box<dyn Stream>, Error> {
        let plain = self.reach().await?;
        let Some(config) = self.tls else { return Ok(Box::new(plain)) };
        let host = self.endpoint.host().unwrap_or_default();
        // IPv6 addresses stand in brackets in URIs, and bare in certificates.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Box::new(TlsConnector::from(config).connect(name, plain).await?))
    }

    async fn reach(&self) -> Result<TcpStream, Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        let target = with_port(&self.endpoint)?;
        let stream = match self.proxies.intercept(&self.endpoint) {
            None => http.call(target).await?,
            Some(proxy) => {
                let mut tunnel = Tunnel::new(proxy.uri().clone(), http);
                if let Some(credentials) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(credentials.clone());
                }
                tunnel.call(target).await?
            }
        };
        Ok(stream.into_inner())
    }
}

/// gRPC endpoints without a port are on 443 and 80, as the schemes say; a tunnel needs it said.
fn with_port(endpoint: &Uri) -> Result<Uri, Error> {
    let host = endpoint.host().ok_or_else(|| io::Error::other("no host in the endpoint"))?;
    let https = endpoint.scheme_str() == Some("https");
    let port = endpoint.port_u16().unwrap_or(if https { 443 } else { 80 });
    Ok(format!("http://{host}:{port}").parse()?)
}
