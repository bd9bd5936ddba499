//! Who may send: a bearer token or a password, compared in constant time, read again on reload.

mod htpasswd;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Refusal;
use super::settings::Auth;
use htpasswd::Htpasswd;

/// Credentials that cannot be read. Never says what stands in the file.
#[derive(Debug)]
pub struct AuthError {
    /// The setting that names the file.
    pub key: &'static str,
    pub path: PathBuf,
    pub why: String,
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.key, self.path.display(), self.why)
    }
}

impl std::error::Error for AuthError {}

type Hash = [u8; 32];

enum Wanted {
    Nothing,
    /// SHA-256 of the token: equal lengths, so that the comparison tells nothing of it.
    Bearer(Hash),
    Basic {
        users: Htpasswd,
        /// SHA-256 of header values that were right: password hashes are slow on purpose.
        known: Mutex<BTreeSet<Hash>>,
    },
}

/// Decides on every request; shared by all ports that ask for the same credentials.
#[derive(Clone)]
pub struct Gate {
    key: &'static str,
    from: Auth,
    wanted: Arc<ArcSwap<Wanted>>,
}

/// Right header values that are remembered; beyond it all are forgotten.
const KNOWN: usize = 1024;

impl Gate {
    /// Reads the files that the setting `key` names.
    ///
    /// # Errors
    /// When one cannot be read, is empty, or holds a hash of an unknown kind.
    pub fn open(key: &'static str, from: &Auth) -> Result<Self, AuthError> {
        let wanted = Arc::new(ArcSwap::from_pointee(read(key, from)?));
        Ok(Gate { key, from: from.clone(), wanted })
    }

    /// Reads the files again; on an error the old credentials stay.
    ///
    /// # Errors
    /// As [`Gate::open`].
    pub fn reload(&self) -> Result<(), AuthError> {
        self.wanted.store(Arc::new(read(self.key, &self.from)?));
        Ok(())
    }

    /// Whether anybody may send.
    pub fn is_open(&self) -> bool {
        matches!(**self.wanted.load(), Wanted::Nothing)
    }

    /// Looks at the `authorization` header.
    ///
    /// # Errors
    /// [`Refusal::Unauthenticated`] for none and a wrong one.
    pub async fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let wanted = self.wanted.load_full();
        let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        match &*wanted {
            Wanted::Nothing => Ok(()),
            Wanted::Bearer(token) => {
                let given = given.and_then(|value| scheme(value, b"bearer")).unwrap_or_default();
                let right = hash(given).ct_eq(token).into();
                if right { Ok(()) } else { Err(Refusal::Unauthenticated("Bearer")) }
            }
            Wanted::Basic { known, .. } => {
                let Some(given) = given else { return Err(Refusal::Unauthenticated("Basic")) };
                let digest = hash(given);
                if known.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest) {
                    return Ok(());
                }
                let (wanted, given) = (wanted.clone(), given.to_vec());
                let slow = tokio::task::spawn_blocking(move || wanted.basic(&given, digest));
                if slow.await.unwrap_or(false) {
                    return Ok(());
                }
                Err(Refusal::Unauthenticated("Basic"))
            }
        }
    }
}

impl Wanted {
    fn basic(&self, header: &[u8], digest: Hash) -> bool {
        let Wanted::Basic { users, known } = self else { return false };
        let decoded = scheme(header, b"basic").and_then(|coded| STANDARD.decode(coded).ok());
        let Some(decoded) = decoded else { return false };
        let mut parts = decoded.splitn(2, |byte| *byte == b':');
        let (user, password) = (parts.next(), parts.next());
        let (Some(user), Some(password)) = (user, password) else { return false };
        let right = users.verify(user, password);
        if right {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= KNOWN {
                known.clear();
            }
            known.insert(digest);
        }
        right
    }
}

fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// What follows an authentication scheme, whose case does not matter.
fn scheme<'a>(value: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = value.split_at_checked(name.len())?;
    let rest = rest.strip_prefix(b" ")?;
    head.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
}

fn read(key: &'static str, from: &Auth) -> Result<Wanted, AuthError> {
    let fault = |path: &Path, why: &str| AuthError { key, path: path.into(), why: why.into() };
    let text = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| fault(path, &error.to_string()))
    };
    Ok(match from {
        Auth::None => Wanted::Nothing,
        Auth::Bearer { token_file } => {
            let token = text(token_file)?;
            if token.trim().is_empty() {
                return Err(fault(token_file, "it holds no token"));
            }
            Wanted::Bearer(hash(token.trim().as_bytes()))
        }
        Auth::Basic { htpasswd_file } => {
            let users = Htpasswd::parse(&text(htpasswd_file)?);
            let users = users.map_err(|why| fault(htpasswd_file, &why))?;
            Wanted::Basic { users, known: Mutex::default() }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(name: &str, content: &str, auth: fn(PathBuf) -> Auth) -> Gate {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Gate::open("auth", &auth(path)).unwrap()
    }

    async fn allows(gate: &Gate, value: Option<&str>) -> bool {
        let header = value.map(|value| (AUTHORIZATION, value.parse().unwrap()));
        gate.check(&header.into_iter().collect()).await.is_ok()
    }

    #[tokio::test]
    async fn bearer() {
        let gate = gate("token", "sesame\n", |token_file| Auth::Bearer { token_file });
        assert!(allows(&gate, Some("Bearer sesame")).await);
        assert!(allows(&gate, Some("bearer sesame")).await);
        for wrong in [None, Some("Bearer open"), Some("sesame"), Some("Bearer ")] {
            assert!(!allows(&gate, wrong).await, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn basic() {
        let file = "# people\nann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
        let gate = gate("htpasswd", file, |htpasswd_file| Auth::Basic { htpasswd_file });
        let coded = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for _ in 0..2 {
            assert!(allows(&gate, Some(&coded("ann:password"))).await);
        }
        for wrong in ["ann:Password", "bob:password", "ann", ":"] {
            assert!(!allows(&gate, Some(&coded(wrong))).await, "{wrong}");
        }
        assert!(!allows(&gate, Some("Basic ????")).await);
    }
}
