//! `levelhead scan` and `dump`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use levelhead::{Error, Store};
use report::units::count_text;

use super::Format;
use super::encoding::{Encoding, EncodingArguments};
use super::load::format_by_name;
use super::open::{Does, Place};
use super::output::{PairWriter, unless_nobody_reads};
use crate::{files, output, values};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ScanArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// First key [default: the first key of the store]
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// End of the range, exclusive [default: the end of the store]
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Print only keys with this prefix
    #[arg(long)]
    prefix: Option<OsString>,
    /// Maximum number of pairs to print [default: unlimited]
    #[arg(long, value_name = "PAIRS", value_parser = values::count)]
    limit: Option<u64>,
    /// Scan from the last key to the first; --limit counts from the last
    #[arg(long)]
    reverse: bool,
    /// Print only keys; values are not read
    #[arg(long, visible_alias = "keys")]
    keys_only: bool,
    /// Output format
    #[arg(long, default_value = "tsv")]
    format: Format,
}

#[derive(Args)]
pub(crate) struct DumpArguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// Output format; `levelhead load` reads each one back byte for byte [default: by the extension
    /// of --out, else jsonl]
    #[arg(long)]
    format: Option<Format>,
    /// File to write; appears only once it is complete [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    force: bool,
}

/// A key and its value.
type Pair = (Box<[u8]>, Vec<u8>);

/// A range of keys: `from` is inclusive, `to` is exclusive.
#[derive(Default)]
struct Span {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    is_reversed: bool,
}

impl Span {
    fn of(arguments: &ScanArguments) -> anyhow::Result<Self> {
        let encoding = arguments.encoding.encoding();
        let decoded = |typed: &Option<OsString>| -> anyhow::Result<Option<Vec<u8>>> {
            let bytes = typed.as_ref().map(|typed| encoding.decode(typed.as_bytes()));
            bytes.transpose().map_err(|error| anyhow!(error))
        };
        let (from, to) = (decoded(&arguments.from)?, decoded(&arguments.to)?);
        let span = Self { from, to, is_reversed: arguments.reverse };
        Ok(match decoded(&arguments.prefix)? {
            None => span,
            Some(prefix) => span.within_prefix(&prefix),
        })
    }

    /// Restricts the range to keys that begin with `prefix`.
    fn within_prefix(self, prefix: &[u8]) -> Self {
        let from = self.from.filter(|from| from[..] > *prefix);
        let to = match (self.to, after_prefix(prefix)) {
            (Some(to), Some(end)) => Some(to.min(end)),
            (to, end) => to.or(end),
        };
        Self { from: Some(from.unwrap_or_else(|| prefix.to_owned())), to, ..self }
    }

    fn is_empty(&self) -> bool {
        matches!((&self.from, &self.to), (Some(from), Some(to)) if from >= to)
    }
}

/// Returns the first key after all keys that begin with `prefix`, if one exists.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut after = prefix[..=last].to_owned();
    after[last] += 1;
    Some(after)
}

/// Writes the pairs of a span, at most `limit`. Returns the number written.
fn write<W: Write>(
    store: &Store,
    span: &Span,
    limit: u64,
    writer: &mut PairWriter<W>,
) -> anyhow::Result<u64> {
    writer.header()?;
    if span.is_empty() || limit == 0 {
        return Ok(0);
    }
    let lower = span.from.as_deref().map_or(Bound::Unbounded, Bound::Included);
    let upper = span.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let range = store.range((lower, upper));
    if writer.has_values() {
        return write_each(in_order(range, span.is_reversed), limit, writer);
    }
    let keys = in_order(range.keys(), span.is_reversed);
    write_each(keys.map(|key| Ok((key?, Vec::new()))), limit, writer)
}

/// Iterates forward, or backward if `is_reversed`.
fn in_order<I: DoubleEndedIterator>(
    mut items: I,
    is_reversed: bool,
) -> impl Iterator<Item = I::Item> {
    std::iter::from_fn(move || if is_reversed { items.next_back() } else { items.next() })
}

/// Writes at most `limit` pairs and reads no more than it writes. Returns the number written.
fn write_each<W: Write>(
    pairs: impl Iterator<Item = Result<Pair, Error>>,
    limit: u64,
    writer: &mut PairWriter<W>,
) -> anyhow::Result<u64> {
    let mut count = 0;
    for pair in pairs {
        let (key, value) = pair?;
        writer.pair(&key, &value)?;
        count += 1;
        if count == limit {
            break;
        }
    }
    Ok(count)
}

/// Writes the pairs to standard output. Returns `None` if its reader has gone.
fn print(
    store: &Store,
    span: &Span,
    limit: u64,
    format: Format,
    encoding: Encoding,
    has_values: bool,
) -> anyhow::Result<Option<u64>> {
    let out = BufWriter::new(io::stdout().lock());
    let mut writer = PairWriter::new(out, format, encoding, has_values);
    let written = write(store, span, limit, &mut writer).and_then(|count| {
        writer.finish()?;
        Ok(count)
    });
    match written {
        Ok(count) => Ok(Some(count)),
        Err(error) => match error.downcast::<io::Error>() {
            Ok(error) => unless_nobody_reads(Err(error)).map(|()| None),
            Err(error) => Err(error),
        },
    }
}

pub(crate) fn scan(arguments: &ScanArguments) -> anyhow::Result<ExitCode> {
    let span = Span::of(arguments)?;
    let store = arguments.place.open(Does::Read)?;
    let ScanArguments { format, keys_only, encoding, .. } = arguments;
    let limit = arguments.limit.unwrap_or(u64::MAX);
    print(&store, &span, limit, *format, encoding.encoding(), !keys_only)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn dump(arguments: &DumpArguments) -> anyhow::Result<ExitCode> {
    let store = arguments.place.open(Does::Read)?;
    let by_name = arguments.out.as_deref().and_then(format_by_name);
    let format = arguments.format.or(by_name).unwrap_or(Format::Jsonl);
    let encoding = arguments.encoding.encoding();
    let (all, limit) = (Span::default(), u64::MAX);
    let count = match &arguments.out {
        None => print(&store, &all, limit, format, encoding, true)?,
        Some(file) => Some(write_file(file, arguments.force, |out| {
            let mut writer = PairWriter::new(BufWriter::new(out), format, encoding, true);
            let count = write(&store, &all, limit, &mut writer)?;
            writer.finish()?;
            Ok(count)
        })?),
    };
    if let Some(count) = count {
        let plural = if count == 1 { "" } else { "s" };
        output::say(&format!("dumped {} pair{plural}", count_text(count)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file under a temporary name and renames it to `path` once it is complete.
fn write_file<R>(
    path: &Path,
    may_write_over: bool,
    write: impl FnOnce(&mut File) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let part = files::part_of(path);
    let cannot = || format!("cannot write {}", path.display());
    if !may_write_over && fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0) {
        bail!(
            "{} is there already: give another file, or --force to write over it",
            path.display()
        );
    }
    // Checked before the work: `path` may be a directory, for example.
    files::check(path)?;
    if path.exists() && !path.is_file() {
        // A pipe or a device is written in place instead of being replaced by a file.
        let mut file = File::options().write(true).open(path).with_context(cannot)?;
        return write(&mut file).with_context(cannot);
    }
    let mut file = File::create(&part).with_context(cannot)?;
    let written = write(&mut file).and_then(|result| {
        file.sync_all().and_then(|()| fs::rename(&part, path))?;
        // The rename is durable only after the directory has been synced.
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))
            .and_then(|directory| directory.sync_all())?;
        Ok(result)
    });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: Option<&str>, to: Option<&str>, prefix: &[u8]) -> Span {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        Span { from: bytes(from), to: bytes(to), ..Span::default() }.within_prefix(prefix)
    }

    #[test]
    fn a_prefix_is_the_span_of_its_keys() {
        for (prefix, after) in [
            (&b"a"[..], Some(&b"b"[..])),
            (b"az\xff", Some(b"a{")),
            (b"\xff\xff", None),
            (b"", None),
        ] {
            assert_eq!(after_prefix(prefix).as_deref(), after, "{prefix:?}");
        }
    }

    #[test]
    fn bounds_within_a_prefix_narrow_it_and_others_do_not() {
        let all = span(Some("A"), Some("z"), b"k");
        assert_eq!((all.from.as_deref(), all.to.as_deref()), (Some(&b"k"[..]), Some(&b"l"[..])));
        let some = span(Some("k3"), Some("k5"), b"k");
        assert_eq!(
            (some.from.as_deref(), some.to.as_deref()),
            (Some(&b"k3"[..]), Some(&b"k5"[..]))
        );
        assert!(span(Some("m"), None, b"k").is_empty());
        assert!(span(None, Some("a"), b"k").is_empty());
    }
}
