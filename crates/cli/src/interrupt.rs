//! Ctrl-C: the first one requests a stop, and the results so far are shown; the second one exits at
//! once.
//!
//! Code below the command line does not handle signals: it gets a [`Stop`].

use std::process::{ExitCode, exit};

use workload::Stop;

use crate::output::say;

/// The exit code of a program ended by SIGINT, by the convention of shells (128 + 2).
const INTERRUPTED: u8 = 130;

pub(crate) fn exit_code() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// Returns a stop that the first Ctrl-C requests.
pub(crate) fn stop_on_interrupt() -> Stop {
    let stop = Stop::default();
    let asked = stop.clone();
    on_interrupt(move || {
        if asked.is_asked() {
            exit(INTERRUPTED.into());
        }
        asked.ask();
        say("interrupted: ending what is under way; once more ends at once");
    });
    stop
}

/// Exits on Ctrl-C after printing `words`.
pub(crate) fn end_on_interrupt(words: impl Fn() -> String + Send + 'static) {
    on_interrupt(move || {
        say(&words());
        exit(INTERRUPTED.into());
    });
}

fn on_interrupt(act: impl FnMut() + Send + 'static) {
    // A signal that is ignored (background jobs of a script) stays ignored.
    let _ = ctrlc::try_set_handler(act);
}
