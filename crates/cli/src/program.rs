//! The identity of this build of the program.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

/// Returns an identifier of this build: a hash of the program's file, which is read at the first
/// call.
pub(crate) fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let bytes = std::env::current_exe().and_then(fs::read).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        format!("levelhead {} {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
    })
}
