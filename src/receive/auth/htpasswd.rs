//! Password files as `htpasswd` writes them: bcrypt, apr1 (Apache's MD5) and SHA.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use sha1::Sha1;
use subtle::ConstantTimeEq;

/// Users and their hashes.
pub struct Htpasswd {
    users: BTreeMap<Vec<u8>, Hashed>,
}

enum Hashed {
    Bcrypt(String),
    Apr1 { salt: String, hash: String },
    Sha(Vec<u8>),
}

impl Htpasswd {
    /// Reads `user:hash` lines; `#` begins a comment.
    ///
    /// # Errors
    /// The number of the line that cannot be read, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut users = BTreeMap::new();
        let lines = text.lines().map(str::trim).enumerate();
        for (number, line) in lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
            let known = line
                .split_once(':')
                .and_then(|(user, hash)| Some((user.as_bytes().to_vec(), Hashed::parse(hash)?)));
            let Some((user, hash)) = known else {
                return Err(format!(
                    "line {} is not user:hash with a bcrypt, apr1 or SHA hash (htpasswd -B)",
                    number + 1
                ));
            };
            users.insert(user, hash);
        }
        if users.is_empty() {
            return Err("it names no user".into());
        }
        Ok(Htpasswd { users })
    }

    /// Whether this is the user's password. An unknown user costs as much time as a known one.
    pub fn verify(&self, user: &[u8], password: &[u8]) -> bool {
        let known = self.users.get(user);
        let hash = known.or_else(|| self.users.values().next());
        hash.is_some_and(|hash| hash.verify(password)) && known.is_some()
    }
}

impl Hashed {
    fn parse(hash: &str) -> Option<Self> {
        if let Some(coded) = hash.strip_prefix("{SHA}") {
            return STANDARD.decode(coded).ok().map(Hashed::Sha);
        }
        if let Some(rest) = hash.strip_prefix("$apr1$") {
            let (salt, hash) = rest.split_once('$')?;
            let salt = salt.chars().take(8).collect();
            return Some(Hashed::Apr1 { salt, hash: hash.into() });
        }
        let bcrypt = ["$2y$", "$2b$", "$2a$"].iter().any(|prefix| hash.starts_with(prefix));
        bcrypt.then(|| Hashed::Bcrypt(hash.into()))
    }

    fn verify(&self, password: &[u8]) -> bool {
        match self {
            Hashed::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Hashed::Apr1 { salt, hash } => {
                apr1(password, salt.as_bytes()).as_bytes().ct_eq(hash.as_bytes()).into()
            }
            Hashed::Sha(hash) => Sha1::digest(password).as_slice().ct_eq(hash).into(),
        }
    }
}

/// Apache's variant of MD5-crypt: 1000 rounds, then a base64 of its own.
fn apr1(password: &[u8], salt: &[u8]) -> String {
    let md5 = |parts: &[&[u8]]| -> [u8; 16] {
        let mut hash = Md5::new();
        parts.iter().for_each(|part| hash.update(part));
        hash.finalize().into()
    };
    let inner = md5(&[password, salt, password]);
    let mut first = Md5::new();
    first.update(password);
    first.update(b"$apr1$");
    first.update(salt);
    for at in (0..password.len()).step_by(16) {
        first.update(&inner[..(password.len() - at).min(16)]);
    }
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &[0] } else { &password[..1] });
        bits >>= 1;
    }
    let mut hash: [u8; 16] = first.finalize().into();
    for round in 0..1000 {
        let odd = round & 1 == 1;
        hash = md5(&[
            if odd { password } else { &hash },
            if round % 3 == 0 { &[] } else { salt },
            if round % 7 == 0 { &[] } else { password },
            if odd { &hash } else { password },
        ]);
    }
    encode(&hash)
}

fn encode(hash: &[u8; 16]) -> String {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut out = String::with_capacity(22);
    let mut put = |mut value: u32, characters: u32| {
        for _ in 0..characters {
            out.push(char::from(ALPHABET[(value & 63) as usize]));
            value >>= 6;
        }
    };
    for [high, middle, low] in ORDER {
        let byte = |at: usize| u32::from(hash[at]);
        put(byte(high) << 16 | byte(middle) << 8 | byte(low), 4);
    }
    put(u32::from(hash[11]), 2);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes made by `openssl passwd -apr1`, `htpasswd -B` and `htpasswd -s`.
    #[test]
    fn the_three_kinds() {
        for (hash, password) in [
            ("$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00", "password"),
            ("$apr1$RandSalt$PgCXHRrkpSt4cbyC2C6bm/", "password"),
            ("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "password"),
            ("$2y$05$nC6nErr9XZJuMJ57WyCob.EuZEjylDt2KaHfbfOtyb.EgL1I2jCVa", "password"),
        ] {
            let file = Htpasswd::parse(&format!("bob:{hash}")).unwrap();
            assert!(file.verify(b"bob", password.as_bytes()), "{hash}");
            assert!(!file.verify(b"bob", b"other"), "{hash}");
            assert!(!file.verify(b"ann", password.as_bytes()), "{hash}");
        }
    }

    #[test]
    fn what_is_no_password_file_says_where() {
        for text in ["", "# nobody", "ann", "ann:plain", "ann:$1$salt$hash"] {
            assert!(Htpasswd::parse(text).is_err(), "{text}");
        }
        let error = Htpasswd::parse("a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\nb:secret").err().unwrap();
        assert!(error.contains("line 2") && !error.contains("secret"), "{error}");
    }
}
