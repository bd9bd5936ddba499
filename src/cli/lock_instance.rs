//! What a running mcp-verdict has seen of tools: their digests, from `GET /v1/contracts`.
//!
//! Promises: digests alone, so that nothing is pinned that the instance did not see whole; where it
//! holds several lines of a tool that differ, none is chosen.

use super::lock::{Stop, failed};
use super::lock_input::{Found, Listed};
use crate::catalog::lockfile::Holder;
use crate::export;
use crate::model::digest::Digest;
use clap::Args;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A running instance, and how to be let in.
#[derive(Args, Debug, Default)]
pub(super) struct Instance {
    /// A running mcp-verdict, as in http://127.0.0.1:55679, instead of files
    #[arg(long, value_name = "URL", conflicts_with = "files")]
    pub(super) from_instance: Option<String>,
    /// The token that its page asks for
    #[arg(long, value_name = "FILE", requires = "from_instance")]
    bearer_token_file: Option<PathBuf>,
    /// USER:PASSWORD, where its page asks for that
    #[arg(long, value_name = "FILE", conflicts_with = "bearer_token_file")]
    basic_file: Option<PathBuf>,
    /// Certificates to trust it by, instead of the system's
    #[arg(long, value_name = "FILE", requires = "from_instance")]
    ca_file: Option<PathBuf>,
}

/// One line of an answer.
struct Line {
    server: String,
    holder: Holder,
    found: Found,
}

impl Instance {
    /// The tools of one server, as one holder has them.
    ///
    /// # Errors
    /// When the instance cannot be asked, or what it says leaves a choice.
    pub(super) fn listed(
        &self,
        url: &str,
        server: Option<&str>,
        holder: &Holder,
    ) -> Result<Listed, Stop> {
        let lines = self.lines(url, server)?;
        let servers: BTreeSet<&str> = lines.iter().map(|line| line.server.as_str()).collect();
        let server = match (server, servers.len()) {
            (_, 0) => return Err(failed("the instance has seen no tool definitions of it")),
            (Some(server), _) => server.to_owned(),
            (None, 1) => lines[0].server.clone(),
            (None, _) => {
                return Err(failed(format!(
                    "the instance has seen {servers:?}; say --server NAME"
                )));
            }
        };
        let mut tools: BTreeMap<String, Found> = BTreeMap::new();
        let wanted = |line: &Line| *holder == Holder::Anyone || line.holder == *holder;
        for line in lines.iter().filter(|line| wanted(line)) {
            let known = tools.insert(line.found.name.clone(), line.found.clone());
            if known.is_some_and(|known| known.digest != line.found.digest) {
                return Err(several(&lines, &line.found.name));
            }
        }
        let gone = |found: &&Found| found.digest.is_none();
        let gone = tools.values().filter(gone).map(|found| found.name.clone()).collect();
        let tools = tools.into_values().filter(|found| found.digest.is_some()).collect();
        Ok(Listed { tools, server: Some(server), whole: false, gone })
    }

    fn lines(&self, url: &str, server: Option<&str>) -> Result<Vec<Line>, Stop> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = self.client()?;
        let mut lines = Vec::new();
        let mut token = String::new();
        loop {
            let page = runtime.block_on(self.page(&client, url, server, &token))?;
            let Some(items) = page["contracts"].as_array() else { return Err(no_answer(url)) };
            for item in items {
                lines.push(line(item).ok_or_else(|| no_answer(url))?);
            }
            match page["next_page_token"].as_str() {
                Some(next) if !items.is_empty() => token = next.to_owned(),
                _ => return Ok(lines),
            }
        }
    }

    fn client(&self) -> Result<reqwest::Client, Stop> {
        let tls = export::settings::Tls { ca_file: self.ca_file.clone(), ..Default::default() };
        let tls = export::tls_config(&tls, &[b"h2", b"http/1.1"]);
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.map_err(|fault| failed(fault.0))?)
            .timeout(Duration::from_secs(30))
            .redirect(reqwest::redirect::Policy::none())
            .build();
        client.map_err(|error| failed(error.to_string()))
    }

    async fn page(
        &self,
        client: &reqwest::Client,
        url: &str,
        server: Option<&str>,
        token: &str,
    ) -> Result<Value, Stop> {
        let mut url = reqwest::Url::parse(url)
            .and_then(|url| url.join("v1/contracts"))
            .map_err(|_| failed("--from-instance takes a URL such as http://127.0.0.1:55679"))?;
        url.query_pairs_mut()
            .append_pair("server", server.unwrap_or_default())
            .append_pair("page_token", token);
        let mut request = client.get(url.clone());
        if let Some(file) = &self.bearer_token_file {
            request = request.bearer_auth(secret(file)?);
        }
        if let Some(file) = &self.basic_file {
            let pair = secret(file)?;
            let (user, password) = pair.split_once(':').unwrap_or((&pair, ""));
            request = request.basic_auth(user, Some(password));
        }
        let response = request.send().await;
        let response = response.map_err(|error| failed(format!("{url}: {}", cause(&error))))?;
        match response.status().as_u16() {
            200 => {}
            401 => {
                return Err(failed(
                    "the instance asks who you are: --bearer-token-file FILE or --basic-file FILE",
                ));
            }
            status => return Err(failed(format!("{url}: answered {status}"))),
        }
        let body = response.bytes().await;
        let body = body.map_err(|error| failed(format!("{url}: {}", cause(&error))))?;
        serde_json::from_slice(&body).map_err(|_| no_answer(url.as_str()))
    }
}

/// The innermost reason: what stands around it says that a request failed.
fn cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn no_answer(url: &str) -> Stop {
    failed(format!("{url}: that is no answer of mcp-verdict; is it the port of its page?"))
}

fn secret(file: &Path) -> Result<String, Stop> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| failed(format!("{}: cannot read: {error}", file.display())))?;
    Ok(text.trim().to_owned())
}

fn several(lines: &[Line], tool: &str) -> Stop {
    let of_tool = lines.iter().filter(|line| line.found.name == tool);
    let holders = of_tool.filter_map(|line| match &line.holder {
        Holder::Auth(auth) => Some(format!("--auth {auth}")),
        Holder::Client(client) => Some(format!("--client {client}")),
        Holder::Anyone => None,
    });
    let holders: Vec<String> = holders.collect();
    failed(format!("{tool:?} is not the same for all callers; say one of {}", holders.join(", ")))
}

fn line(item: &Value) -> Option<Line> {
    let text = |key: &str| item[key].as_str().map(str::to_owned);
    let holder = match (text("auth"), text("client")) {
        (Some(auth), _) => Holder::Auth(auth),
        (None, Some(client)) => Holder::Client(client),
        (None, None) => Holder::Anyone,
    };
    let digest = match item["digest"].as_str() {
        Some(digest) => Some(Digest::parse(digest)?),
        None => None,
    };
    let members = item["members"].as_object()?.iter();
    let members: Option<BTreeMap<String, Digest>> =
        members.map(|(at, digest)| Some((at.clone(), Digest::parse(digest.as_str()?)?))).collect();
    let found = Found { name: text("tool")?, digest, members: members?, definition: None };
    Some(Line { server: text("server")?, holder, found })
}
