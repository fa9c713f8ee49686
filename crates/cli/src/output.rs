//! What the program says: results on stdout, everything else on stderr. A reader who has gone is no
//! error; a stdout that cannot take the result is.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;

/// Prints a result and a line end.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let printed = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("cannot write the result to standard output"),
    }
}

/// Says something to whoever watches. That nobody can hear it does not end the work.
pub(crate) fn say(text: &str) {
    let text = lab::printable(text);
    let _ = writeln!(io::stderr(), "levelhead: {text}");
}
