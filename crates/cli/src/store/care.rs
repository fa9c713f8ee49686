//! `levelhead verify`, `repair` and `backup`.
//!
//! Exit codes are similar to those of `fsck`: 0 if all is well, 1 if something is damaged, 2 on any
//! other error.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::Args;
use indicatif::ProgressBar;
use levelhead::{Error, Finding, Report, Salvaged, Store, Verified};
use report::units::{bytes_text, count_text};
use serde_json::{Value, json};

use super::encoding::Encoding;
use super::place;
use super::place::{Does, NewStore, Place};
use crate::host::Stopwatch;
use crate::{output, progress};

#[derive(Args)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    place: Place,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct RepairArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    new: NewStore,
    /// Directory for the new store; must not contain a store
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct BackupArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    new: NewStore,
    /// Directory for the copy; must not contain a store
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Maximum number of findings in the table; JSON has all of them.
const SHOWN: usize = 20;
const CANNOT: u8 = 2;

pub(crate) fn verify(arguments: &VerifyArguments) -> ExitCode {
    let work = Work::begin("verify");
    let outcome =
        arguments.place.open(Does::Read).and_then(|store| Ok(store.verify(work.verified())?));
    end(&work, outcome, arguments.json, "")
}

pub(crate) fn repair(arguments: &RepairArguments) -> ExitCode {
    let work = Work::begin("repair");
    let (directories, options) =
        (arguments.place.directories(), arguments.place.options_of_new(&arguments.new));
    let outcome = place::check_is_no_file(&arguments.out).and_then(|()| {
        let repaired = levelhead::repair(directories, &arguments.out, &options, work.progress());
        repaired.map_err(|error| match error {
            Error::Missing(_) if matches!(Store::is_in(directories), Ok(false)) => {
                anyhow!("{} has no store, and nothing that is left of one", arguments.place)
            }
            // Formatted as text, because the advice of `error` to run a repair would be wrong here.
            other => anyhow!("{other}"),
        })
    });
    end(&work, outcome, arguments.json, &format!("saved to {}", arguments.out.display()))
}

pub(crate) fn backup(arguments: &BackupArguments) -> ExitCode {
    let work = Work::begin("backup");
    let options = arguments.place.options_of_new(&arguments.new);
    let outcome = check_target(&arguments.place, &arguments.to).and_then(|()| {
        let store = arguments.place.open(Does::Read)?;
        let copied = store.checkpoint(&arguments.to, &options, work.progress());
        copied.map_err(damage_ends_it)
    });
    let outcome = match outcome {
        Err(error) if error.downcast_ref::<Refused>().is_some() => {
            work.bar.finish_and_clear();
            output::say(&output::why(&error));
            return ExitCode::FAILURE;
        }
        other => other,
    };
    end(&work, outcome, arguments.json, &format!("copied to {}", arguments.to.display()))
}

/// Refuses a target within the store's own directories: the copy would be lost together with them.
fn check_target(place: &Place, to: &Path) -> anyhow::Result<()> {
    place::check_is_no_file(to)?;
    // The part of the path that exists.
    let parents = to.ancestors().skip(1);
    let Some(parent) = parents.into_iter().find_map(|path| path.canonicalize().ok()) else {
        return Ok(());
    };
    let own = place.directories().iter().filter_map(|path| path.canonicalize().ok());
    if own.into_iter().any(|own| parent.starts_with(own)) {
        bail!("{} is within the store: name a directory elsewhere", to.display());
    }
    Ok(())
}

/// An error: a store cannot be copied because a part of it is damaged.
#[derive(Debug)]
struct Refused(Error);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = &self.0;
        write!(
            f,
            "{error}; a backup has all pairs or is none: delete what was begun, and see `levelhead verify` and `repair`"
        )
    }
}

impl std::error::Error for Refused {}

fn damage_ends_it(error: Error) -> anyhow::Error {
    match error {
        Error::Damaged { .. } => Refused(error).into(),
        other => other.into(),
    }
}

/// The progress bar and the time of a command.
struct Work {
    bar: ProgressBar,
    stopwatch: Stopwatch,
}

impl Work {
    fn begin(name: &str) -> Self {
        let bar =
            progress::bar(&format!("{name} {{spinner}} {{human_pos}} pairs {{per_sec}}{{msg}}"), 0);
        progress::line_without(&bar, &format!("{name} ..."));
        Self { bar, stopwatch: Stopwatch::start() }
    }

    /// Returns a callback that shows the progress of `verify`: pairs first, then stripes.
    fn verified(&self) -> impl FnMut(Verified) + use<> {
        let bar = self.bar.clone();
        move |verified| match verified {
            Verified::Pairs(pairs) => bar.set_position(pairs),
            Verified::Stripes { parts, all } => {
                bar.set_message(format!("; stripes compared in {parts} of {all} parts"));
            }
            _ => {}
        }
    }

    fn progress(&self) -> impl FnMut(u64) + use<> {
        let bar = self.bar.clone();
        move |pairs| bar.set_position(pairs)
    }
}

/// Prints the result and returns the exit code.
fn end(work: &Work, outcome: anyhow::Result<Report>, as_json: bool, what: &str) -> ExitCode {
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
