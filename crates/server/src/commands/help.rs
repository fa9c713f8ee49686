//! Subcommands, and the replies to HELP and to unknown subcommands.

use super::parse::is;
use crate::fault::{Fault, Outcome};
use crate::resp::Reply;

/// Syntax of the subcommands of each command.
const PARTS: [(&str, &[&str]); 7] = [
    (
        "CLIENT",
        &[
            "GETNAME",
            "ID",
            "INFO",
            "KILL ID id",
            "LIST",
            "NO-EVICT ON|OFF (no effect)",
            "NO-TOUCH ON|OFF (no effect)",
            "SETINFO LIB-NAME|LIB-VER value",
            "SETNAME name",
        ],
    ),
    ("CLUSTER", &["INFO", "KEYSLOT key", "MYID", "NODES", "SHARDS", "SLOTS"]),
    (
        "COMMAND",
        &["COUNT", "DOCS [name ...]", "GETKEYS name argument ...", "INFO name ...", "LIST"],
    ),
    ("CONFIG", &["GET pattern ...", "RESETSTAT (no effect)"]),
    ("OBJECT", &["ENCODING key", "REFCOUNT key"]),
    ("SCRIPT", &["EXISTS digest ...", "FLUSH [ASYNC|SYNC] (no effect)", "KILL"]),
    ("SLOWLOG", &["GET [count]", "LEN", "RESET"]),
];

/// Replies to HELP; returns an error for an unknown subcommand.
pub(super) fn other_part(reply: &mut Reply, word: &[u8], command: &str) -> Outcome {
    let parts = PARTS.iter().find(|(name, _)| *name == command).map_or(&[][..], |(_, parts)| parts);
    if is(word, "HELP") {
        reply.array(parts.len());
        for part in parts {
            reply.simple(&format!("{command} {part}"));
        }
        return Ok(());
    }
    let is_there =
        parts.iter().any(|part| part.split(' ').next().is_some_and(|name| is(word, name)));
    let or = if is_there { " or wrong number of arguments for" } else { "" };
    let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
    Err(Fault::error(format!("unknown subcommand{or} '{word}'. Try {command} HELP.")))
}
