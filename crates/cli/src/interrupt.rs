//! Ctrl-C: the first asks for the end, and what there is by then is shown; the second ends at once.
//!
//! Nothing below the command line hears of signals: it is given a [`Stop`].

use std::process::{ExitCode, exit};

use workload::Stop;

use crate::output::say;

/// The exit code of a program that SIGINT ended, as shells count.
const INTERRUPTED: u8 = 130;

pub(crate) fn exit_code() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// A request that the first Ctrl-C makes.
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

/// Ends the program with these words.
pub(crate) fn end_on_interrupt(words: impl Fn() -> String + Send + 'static) {
    on_interrupt(move || {
        say(&words());
        exit(INTERRUPTED.into());
    });
}

fn on_interrupt(act: impl FnMut() + Send + 'static) {
    // Where the signal is ignored (jobs in the background of a script) it stays so.
    let _ = ctrlc::try_set_handler(act);
}
