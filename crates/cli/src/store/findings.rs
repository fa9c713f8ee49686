//! The result of `verify`, `repair` and `backup`: the damage found in a store.
//!
//! Exit codes are similar to those of `fsck`: 0 if all is well, 1 if something is damaged, 2 on any
//! other error.

use std::fmt::Write;
use std::process::ExitCode;

use indicatif::ProgressBar;
use levelhead::{Error, Finding, Report, Salvaged, Verified};
use report::units::{bytes_text, count_text};
use serde_json::{Value, json};

use super::encoding::Encoding;
use crate::host::Stopwatch;
use crate::{output, progress};

/// Maximum number of findings in the table; JSON has all of them.
const SHOWN: usize = 20;
const CANNOT: u8 = 2;

/// The progress bar and the time of a command.
pub(super) struct Work {
    pub(super) bar: ProgressBar,
    stopwatch: Stopwatch,
}

impl Work {
    pub(super) fn begin(name: &str) -> Self {
        let bar =
            progress::bar(&format!("{name} {{spinner}} {{human_pos}} pairs {{per_sec}}{{msg}}"), 0);
        progress::line_without(&bar, &format!("{name} ..."));
        Self { bar, stopwatch: Stopwatch::start() }
    }

    /// Returns a callback that shows the progress of `verify`: pairs first, then stripes.
    pub(super) fn verified(&self) -> impl FnMut(Verified) + use<> {
        let bar = self.bar.clone();
        move |verified| match verified {
            Verified::Pairs(pairs) => bar.set_position(pairs),
            Verified::Stripes { parts, all } => {
                bar.set_message(format!("; stripes compared in {parts} of {all} parts"));
            }
            _ => {}
        }
    }

    /// Returns a callback that shows the number of pairs.
    pub(super) fn progress(&self) -> impl FnMut(u64) + use<> {
        let bar = self.bar.clone();
        move |pairs| bar.set_position(pairs)
    }
}

/// Prints the result and returns the exit code.
pub(super) fn end(
    work: &Work,
    outcome: anyhow::Result<Report>,
    as_json: bool,
    what: &str,
) -> ExitCode {
    work.bar.finish_and_clear();
    let printed = outcome.and_then(|report| {
        let text = if as_json {
            serde_json::to_string_pretty(&json(&report))?
        } else {
            let took = progress::time_text(work.stopwatch.elapsed());
            table(&report, &took, what)
        };
        output::print(&text)?;
        Ok(report)
    });
    match printed {
        Ok(report) if report.findings.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            output::say(&output::why(&error));
            CANNOT.into()
        }
    }
}

fn table(report: &Report, took: &str, what: &str) -> String {
    let mut text = format!(
        "pairs        {}\nbytes        {}\ntook         {took}\ndamage       {}\n",
        count_text(report.pairs),
        bytes_text(report.bytes),
        match report.findings.len() {
            0 => "none".to_owned(),
            places => format!("{} places", count_text(places as u64)),
        }
    );
    if report.stripes + report.unchecked_stripes > 0 {
        let (compared, not) = (report.stripes, report.unchecked_stripes);
        let not =
            if not == 0 { String::new() } else { format!(", {} could not be", count_text(not)) };
        let _ = writeln!(text, "stripes      {} compared{not}", count_text(compared));
    }
    if report.rescued > 0 {
        let _ = writeln!(
            text,
            "rescued      {} of the pairs, whose part of the index is damaged, from the pages with their values: keys that were deleted may be back among \
             them, and older values may stand for newer ones",
            count_text(report.rescued)
        );
    }
    for finding in report.findings.iter().take(SHOWN) {
        let _ = writeln!(text, "  {}\n    {}", finding.error, keys(finding));
    }
    if report.findings.len() > SHOWN {
        let more = (report.findings.len() - SHOWN) as u64;
        let _ = writeln!(text, "  and {} more (--json lists all)", count_text(more));
    }
    if let Some(salvaged) = &report.salvaged {
        text.push_str(&salvaged_text(salvaged));
    }
    if !what.is_empty() {
        let _ = writeln!(text, "{what}");
    }
    text
}

/// Describes the data saved from a store that did not open.
fn salvaged_text(salvaged: &Salvaged) -> String {
    let mut text =
        "the store does not open; of each key the newest version that a whole page has was taken\n"
            .to_owned();
    for doubt in &salvaged.doubts {
        let _ = writeln!(text, "  {doubt}");
    }
    if salvaged.doubts.is_empty() {
        text.push_str("  index and log are whole: nothing is missing\n");
    } else if !(salvaged.lost.is_empty() && salvaged.older.is_empty()) {
        text.push_str("  (--json names the keys)\n");
    }
    text
}

/// Describes the keys that may be lost.
fn keys(finding: &Finding) -> String {
    if finding.is_redundancy {
        return "no pair is lost by it, as the other directories have what it is of".to_owned();
    }
    let shown = |key: &[u8]| String::from_utf8_lossy(key).escape_debug().to_string();
    match (&finding.after, &finding.before) {
        (Some(after), Some(before)) => {
            format!("keys between {} and {}", shown(after), shown(before))
        }
        (Some(after), None) => format!("keys behind {}", shown(after)),
        (None, Some(before)) => format!("keys before {}", shown(before)),
        (None, None) => "any key".to_owned(),
    }
}

fn json(report: &Report) -> Value {
    let text = |key: &[u8]| String::from_utf8(Encoding::Hex.encode(key).into_owned()).ok();
    let hex = |key: &Option<Box<[u8]>>| key.as_deref().and_then(text);
    let all = |keys: &[Box<[u8]>]| keys.iter().map(|key| text(key)).collect::<Vec<_>>();
    let salvaged = |salvaged: &Salvaged| {
        json!({
            "why": salvaged.why.to_string(),
            "doubts": salvaged.doubts,
            "unsure": salvaged.unsure,
            "lost_hex": all(&salvaged.lost),
            "older_hex": all(&salvaged.older),
        })
    };
    let finding = |finding: &Finding| {
        let (file, offset) = match &finding.error {
            Error::Damaged { path, offset, .. } => (Some(path.display().to_string()), *offset),
            _ => (None, None),
        };
        json!({
            "what": finding.error.to_string(),
            "file": file,
            "offset": offset,
            "after_hex": hex(&finding.after),
            "before_hex": hex(&finding.before),
            "is_redundancy": finding.is_redundancy,
        })
    };
    json!({
        "pairs": report.pairs,
        "bytes": report.bytes,
        "stripes": report.stripes,
        "unchecked_stripes": report.unchecked_stripes,
        "rescued": report.rescued,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "salvaged": report.salvaged.as_ref().map(salvaged),
    })
}
