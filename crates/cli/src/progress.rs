//! Progress on stderr: a bar on a terminal; elsewhere a plain line at the start and the end of each
//! piece of work.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use report::units::count_text;
use serde_json::Value;

/// Form of the progress report.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub(crate) enum ProgressForm {
    /// A bar on a terminal, lines elsewhere
    #[default]
    Auto,
    /// JSON lines on stderr, one per second and at the start and end
    Json,
    /// No progress report
    None,
}

/// Interval of progress lines in JSON.
pub(crate) const JSON_EVERY: Duration = Duration::from_secs(1);

/// Writes a line of JSON to stderr.
pub(crate) fn json_line(line: &Value) {
    // A closed stderr does not end the work.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns a bar from 0 to `length`. The indicatif template may use `done`, `all` and `rate`:
/// counts formatted as in our tables.
pub(crate) fn bar(template: &str, length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is right");
    let style = style
        .with_key("done", |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = text.write_str(&count_text(state.pos()));
        })
        .with_key("all", |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = text.write_str(&count_text(state.len().unwrap_or(0)));
        })
        .with_key("rate", |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = write!(text, "{}/s", count_text(state.per_sec().max(0.0) as u64));
        });
    ProgressBar::new(length).with_style(style)
}

/// Writes a line to stderr if `bar` is hidden.
pub(crate) fn line_without(bar: &ProgressBar, line: &str) {
    if bar.is_hidden() {
        // A closed stderr does not end the work.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Formats a time: `0.4 s`, `12 s`, `4 min 10 s`, `1 h 2 min`.
pub(crate) fn time_text(time: Duration) -> String {
    let tenths = (time.as_millis() + 50) / 100;
    if tenths < 100 {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = (time.as_millis() + 500) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_for_people() {
        for (millis, text) in [
            (0, "0.0 s"),
            (449, "0.4 s"),
            (9_949, "9.9 s"),
            (9_950, "10 s"),
            (59_499, "59 s"),
            (59_500, "1 min 0 s"),
            (250_000, "4 min 10 s"),
            (3_599_499, "59 min 59 s"),
            (3_599_500, "1 h 0 min"),
            (3_720_000, "1 h 2 min"),
        ] {
            assert_eq!(time_text(Duration::from_millis(millis)), text, "{millis} ms");
        }
    }
}
