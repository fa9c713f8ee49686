//! `levelhead load`.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use indicatif::ProgressBar;
use levelhead::{Batch, Durability, Error, Store};
use report::units::count_text;

use super::Format;
use super::durability::DurabilityArgument;
use super::encoding::EncodingArguments;
use super::input::{Column, Input, Shape};
use super::open::{NewStore, Place};
use crate::host::Stopwatch;
use crate::{interrupt, output, progress};

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a flag")]
pub(crate) struct LoadArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    new: NewStore,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// Format of the file: tsv, csv, jsonl [default: by its extension; required for standard input]
    #[arg(long)]
    format: Option<Format>,
    /// Column of the key: a number from 1, or a name from the header or of a JSON member [default:
    /// `key`; without a header the first column]
    #[arg(long, value_name = "COLUMN", value_parser = Column::parse)]
    key_column: Option<Column>,
    /// Column of the value: a number from 1, or a name from the header or of a JSON member
    /// [default: `value`; without a header the second column]
    ///
    /// A JSON member that is not a string is loaded as its JSON text.
    #[arg(long, value_name = "COLUMN", value_parser = Column::parse)]
    value_column: Option<Column>,
    /// Treat the first line of a TSV file as a header with column names
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// Treat the first line of a CSV file as a pair, not as a header
    #[arg(long)]
    no_header: bool,
    /// Do not process backslash escapes in a TSV file
    #[arg(long)]
    verbatim: bool,
    /// Skip lines that are not valid pairs
    ///
    /// Reports the first ten of them and counts all; the exit code is then 1.
    #[arg(long)]
    skip_bad: bool,
    /// When to acknowledge each batch of pairs
    ///
    /// With any setting all loaded pairs are durable when the command ends. If the disk is full,
    /// the command reports how many pairs may be lost, and the line to resume at.
    #[arg(long, default_value = "interval")]
    durability: DurabilityArgument,
    /// File with pairs; `-` is standard input
    ///
    /// Of several pairs with the same key the last one is kept. Keys have 1 to 255 bytes, values at
    /// most 2 MiB (2097152 bytes). Stores with files of 4 GiB or less take less: 229376 bytes in
    /// files of 64 MiB.
    file: PathBuf,
}

/// Number of bad lines that are reported one by one.
const NAMED: u64 = 10;
/// Size of a batch in bytes; a larger pair is written by itself. The smallest memtable holds eight
/// batches.
const BATCH_BYTES: usize = 64 << 10;
/// Maximum length of a key, in bytes.
const LONGEST_KEY: usize = 255;
/// Lines between two updates of the progress bar.
const STEP: u64 = 256;
/// Interval of syncs: if the disk turns out to be full, at most the pairs of this time are in
/// doubt.
const SYNC_EVERY: Duration = Duration::from_secs(1);
const BAR: &str = "load {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}";
const SPINNER: &str = "load {spinner} {bytes} {bytes_per_sec}";

pub(crate) fn load(arguments: &LoadArguments) -> anyhow::Result<ExitCode> {
    let name = name(&arguments.file);
    let shape = shape(arguments)?;
    let (file, length) = open(&arguments.file)?;
    let read = Rc::new(Cell::new(0));
    let counted = Counted { file, read: Rc::clone(&read) };
    // An error in the file must be found before a store is created for it.
    let mut input = Input::new(counted, shape).with_context(|| name.clone())?;
    let store = arguments.place.open_or_make(&arguments.new)?;
    let mut work = Work::new(arguments, &name, length);
    let done = work.run(&store, &mut input, &read);
    // Pairs that were loaded before an error are kept.
    let synced = work.sync(&store);
    work.end(done.is_ok() && synced.is_ok() && !work.stop.is_asked());
    done?;
    synced?;
    store.close()?;
    Ok(work.exit_code())
}

fn name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// Opens the file. Returns it with its length in bytes, if it is a regular file.
fn open(file: &Path) -> anyhow::Result<(Box<dyn Read>, Option<u64>)> {
    if file == Path::new("-") {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let cannot = || format!("cannot read {}", file.display());
    let opened = File::open(file).with_context(cannot)?;
    let metadata = opened.metadata().with_context(cannot)?;
    if metadata.is_dir() {
        bail!("cannot read {}: it is a directory", file.display());
    }
    let length = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(opened), length))
}

fn shape(arguments: &LoadArguments) -> anyhow::Result<Shape> {
    let format = match arguments.format {
        Some(format) => format,
        None => format_of(&arguments.file)?,
    };
    let flags = [
        ("--header", arguments.header, format == Format::Tsv),
        ("--verbatim", arguments.verbatim, format == Format::Tsv),
        ("--no-header", arguments.no_header, format == Format::Csv),
    ];
    for (flag, is_given, has_sense) in flags {
        if is_given && !has_sense {
            bail!("{flag} is not for files of this format");
        }
    }
    Ok(Shape {
        format,
        encoding: arguments.encoding.encoding(),
        has_header: arguments.header || format == Format::Csv && !arguments.no_header,
        is_verbatim: arguments.verbatim,
        key: arguments.key_column.clone(),
        value: arguments.value_column.clone(),
    })
}

fn format_of(file: &Path) -> anyhow::Result<Format> {
    format_by_name(file).ok_or_else(|| {
        anyhow!("{} does not say what it is: give --format tsv, csv or jsonl", name(file))
    })
}

/// Returns the format of the file's extension, if it has a known one.
pub(super) fn format_by_name(file: &Path) -> Option<Format> {
    let extension = file.extension().map(OsStr::to_ascii_lowercase);
    match extension.as_ref().and_then(|extension| extension.to_str()) {
        Some("tsv" | "tab") => Some(Format::Tsv),
        Some("csv") => Some(Format::Csv),
        Some("jsonl" | "ndjson") => Some(Format::Jsonl),
        _ => None,
    }
}

/// A reader that counts the bytes read.
struct Counted {
    file: Box<dyn Read>,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(into)?;
        self.read.set(self.read.get() + length as u64);
        Ok(length)
    }
}

/// Returns an error unless a store takes a key of this length.
pub(super) fn check_key(key: &[u8]) -> Result<(), String> {
    if (1..=LONGEST_KEY).contains(&key.len()) {
        return Ok(());
    }
    Err(format!("keys have 1 to {LONGEST_KEY} bytes, this one has {}", key.len()))
}

/// Returns the pair, or an error if its key or its value (longer than `longest` bytes) is not
/// allowed.
fn checked((key, value): (Vec<u8>, Vec<u8>), longest: usize) -> Result<(Vec<u8>, Vec<u8>), String> {
    check_key(&key)?;
    if value.len() > longest {
        let has = value.len();
        return Err(format!("values of this store have {longest} bytes at most, this one {has}"));
    }
    Ok((key, value))
}

/// The progress of a load.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Reached {
    pairs: u64,
    /// The line on which the last pair ends.
    line: u64,
}

/// Describes the result of a load, of which the pairs up to `durable` are durable. An unfinished
/// load (`is_whole` is false) names the line to resume at.
fn reached_text(taken: Reached, durable: Reached, is_whole: bool, rate: &str) -> String {
    let Reached { pairs, line } = durable;
    let plural = if pairs == 1 { "" } else { "s" };
    let up_to = if is_whole || line == 0 { String::new() } else { format!(", up to line {line},") };
    let doubtful = match taken.pairs - pairs {
        0 => String::new(),
        more => {
            format!("; {} more may be lost: load from line {} on again", count_text(more), line + 1)
        }
    };
    format!("loaded {} pair{plural}{up_to} {rate}{doubtful}", count_text(pairs))
}

/// A load in progress.
struct Work<'a> {
    name: &'a str,
    skips_bad: bool,
    durability: Durability,
    stop: workload::Stop,
    bar: ProgressBar,
    stopwatch: Stopwatch,
    batch: Batch,
    /// Bytes of keys and values in the batch.
    batch_bytes: usize,
    /// The line on which the last pair of the batch ends.
    batch_line: u64,
    /// Pairs written to the store.
    taken: Reached,
    /// Pairs known to be durable.
    durable: Reached,
    synced_at: Duration,
    bad: u64,
}

impl<'a> Work<'a> {
    fn new(arguments: &LoadArguments, name: &'a str, length: Option<u64>) -> Self {
        let bar = progress::bar(if length.is_some() { BAR } else { SPINNER }, length.unwrap_or(0));
        progress::line_without(&bar, &format!("load: {name} ..."));
        Self {
            name,
            skips_bad: arguments.skip_bad,
            durability: arguments.durability.into(),
            stop: interrupt::stop_on_interrupt(),
            bar,
            stopwatch: Stopwatch::start(),
            batch: Batch::new(),
            batch_bytes: 0,
            batch_line: 0,
            taken: Reached::default(),
            durable: Reached::default(),
            synced_at: Duration::ZERO,
            bad: 0,
        }
    }

    /// Puts every pair until the user interrupts or a line is bad. Pairs before that are put in any
    /// case.
    fn run<R: Read>(
        &mut self,
        store: &Store,
        input: &mut Input<R>,
        read: &Cell<u64>,
    ) -> anyhow::Result<()> {
        let done = self.put_all(store, input, read);
        done.and(self.write(store).map_err(Into::into))
    }

    fn put_all<R: Read>(
        &mut self,
        store: &Store,
        input: &mut Input<R>,
        read: &Cell<u64>,
    ) -> anyhow::Result<()> {
        let longest = store.max_value_bytes() as usize;
        while !self.stop.is_asked() {
            let Some(line) = input.next().with_context(|| format!("cannot read {}", self.name))?
            else {
                break;
            };
            let pair = line.pair.and_then(|pair| checked(pair, longest));
            match pair {
                Ok((key, value)) => self
                    .put(store, line.last, &key, &value)
                    .with_context(|| self.place(line.number))?,
                Err(what) => self.bad(line.number, &what)?,
            }
            if line.number.is_multiple_of(STEP) {
                self.bar.set_position(read.get());
            }
        }
        Ok(())
    }

    fn put(&mut self, store: &Store, line: u64, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let bytes = key.len() + value.len();
        if self.batch_bytes + bytes > BATCH_BYTES {
            self.write(store)?;
        }
        if bytes > BATCH_BYTES {
            store.put_with(key, value, self.durability)?;
            return self.took(store, 1, line);
        }
        self.batch.put(key, value);
        self.batch_bytes += bytes;
        self.batch_line = line;
        Ok(())
    }

    /// Writes the current batch.
    fn write(&mut self, store: &Store) -> Result<(), Error> {
        let pairs = self.batch.len() as u64;
        if pairs == 0 {
            return Ok(());
        }
        store.write_with(&self.batch, self.durability)?;
        self.batch.clear();
        self.batch_bytes = 0;
        self.took(store, pairs, self.batch_line)
    }

    /// Counts `pairs` written to the store, up to `line`.
    fn took(&mut self, store: &Store, pairs: u64, line: u64) -> Result<(), Error> {
        self.taken = Reached { pairs: self.taken.pairs + pairs, line };
        if matches!(self.durability, Durability::Each | Durability::Group) {
            self.durable = self.taken;
        } else if self.stopwatch.elapsed() >= self.synced_at + SYNC_EVERY {
            self.sync(store)?;
        }
        Ok(())
    }

    /// Syncs the store, so that all written pairs are durable.
    fn sync(&mut self, store: &Store) -> Result<(), Error> {
        store.sync()?;
        self.durable = self.taken;
        self.synced_at = self.stopwatch.elapsed();
        Ok(())
    }

    fn place(&self, line: u64) -> String {
        format!("{}, line {line}", self.name)
    }

    /// Handles a line that is not a valid pair.
    fn bad(&mut self, line: u64, what: &str) -> anyhow::Result<()> {
        let words = format!("{}: {what}", self.place(line));
        if !self.skips_bad {
            bail!("{words} (--skip-bad goes on after such lines)");
        }
        self.bad += 1;
        if self.bad <= NAMED {
            self.bar.suspend(|| output::say(&words));
        }
        Ok(())
    }

    /// Prints the result of the load.
    fn end(&self, is_whole: bool) {
        self.bar.finish_and_clear();
        let took = self.stopwatch.elapsed();
        let rate = (self.durable.pairs as f64 / took.as_secs_f64().max(1e-9)).round() as u64;
        let skipped = match self.bad {
            0 => String::new(),
            1 => ", 1 bad line skipped".to_owned(),
            bad => format!(", {} bad lines skipped", count_text(bad)),
        };
        let rate =
            format!("in {}, {} a second{skipped}", progress::time_text(took), count_text(rate));
        output::say(&reached_text(self.taken, self.durable, is_whole, &rate));
    }

    fn exit_code(&self) -> ExitCode {
        if self.stop.is_asked() {
            return interrupt::exit_code();
        }
        if self.bad > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_durable_counts_as_loaded() {
        let at = |pairs, line| Reached { pairs, line };
        let of = |taken, durable, is_whole| reached_text(taken, durable, is_whole, "in 1 s");
        assert_eq!(of(at(9, 10), at(9, 10), true), "loaded 9 pairs in 1 s");
        assert_eq!(of(at(1, 2), at(1, 2), false), "loaded 1 pair, up to line 2, in 1 s");
        assert_eq!(
            of(at(2_880, 2_881), at(64, 65), false),
            "loaded 64 pairs, up to line 65, in 1 s; 2 816 more may be lost: load from line 66 on again"
        );
        assert_eq!(
            of(at(7, 7), at(0, 0), false),
            "loaded 0 pairs in 1 s; 7 more may be lost: load from line 1 on again"
        );
    }
}
