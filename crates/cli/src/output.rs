//! Output of the program: results on stdout, everything else on stderr. A closed reader is no
//! error; a stdout that fails otherwise is.

use std::io;
use std::io::{ErrorKind, Write};

use anyhow::Context;
use levelhead::Error;

/// Prints a result and a newline.
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

/// Describes why a command failed, with advice for the command line.
pub(crate) fn why(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let of_store = error.chain().find_map(|cause| cause.downcast_ref::<Error>());
    match of_store {
        Some(Error::Damaged { .. }) => {
            format!(
                "{text}; `levelhead repair` saves what can be read of a damaged store to a new one"
            )
        }
        // The library advises to close and reopen the store, which the next command does anyway.
        Some(error @ Error::ReadOnly(what)) => text.replace(
            &error.to_string(),
            &format!(
                "{what}; see to the cause and try again: what was acknowledged as durable is there"
            ),
        ),
        _ => text,
    }
}

/// Prints a message to stderr. A closed stderr does not end the work.
pub(crate) fn say(text: &str) {
    let text = report::units::printable(text);
    let _ = writeln!(io::stderr(), "levelhead: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_command_line_say_what_to_do_there() {
        let path = "s/LEVELHEAD".into();
        let damaged = Error::Damaged { path, offset: None, what: "it is no file".to_owned() };
        let words = why(&anyhow::Error::from(damaged).context("p.tsv, line 3"));
        assert!(
            words.starts_with("p.tsv, line 3: s/LEVELHEAD: it is no file; `levelhead repair`"),
            "{words}"
        );
        let full = Error::ReadOnly("s/data: no space".to_owned());
        let words = why(&anyhow::Error::from(full).context("p.tsv, line 3"));
        assert!(words.starts_with("p.tsv, line 3: s/data: no space; see to"), "{words}");
        assert!(!words.contains("close the store"), "{words}");
        let other = why(&Error::Full("it is full".to_owned()).into());
        assert_eq!(other, "it is full");
    }
}
