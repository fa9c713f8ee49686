//! `levelhead stats`.

use std::fmt::Write;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use levelhead::{Inside, Store, WindowStatistics};
use report::units::{bytes_text, count_text};
use serde_json::{Value, json};

use super::open::{Does, Place};
use crate::output;

#[derive(Args)]
pub(crate) struct StatsArguments {
    #[command(flatten)]
    place: Place,
    /// Count the pairs, which reads the whole index
    ///
    /// Without it only the number of entries is shown. A key that was overwritten or deleted has
    /// several entries until compactions have merged them.
    #[arg(long)]
    count: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// The data that is shown.
struct Facts {
    directories: Vec<Directory>,
    inside: Inside,
    pairs: Option<u64>,
    windows: Option<WindowStatistics>,
}

struct Directory {
    path: String,
    /// Bytes that its files occupy on the file system, or the size of a drive; `None` if the
    /// directory is lost.
    taken_bytes: Option<u64>,
}

pub(crate) fn stats(arguments: &StatsArguments) -> anyhow::Result<ExitCode> {
    let store = arguments.place.open(Does::Read)?;
    let pairs = if arguments.count { Some(count(&store)?) } else { None };
    let directories = arguments
        .place
        .directories()
        .iter()
        .map(|path| Directory { path: path.display().to_string(), taken_bytes: taken_bytes(path) });
    let (directories, windows) = (directories.collect(), store.statistics().windows);
    let facts = Facts { directories, inside: store.inside(), pairs, windows };
    let text =
        if arguments.json { serde_json::to_string_pretty(&json(&facts))? } else { table(&facts) };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn count(store: &Store) -> anyhow::Result<u64> {
    store.range(..).keys().try_fold(0, |count, key| Ok(key.map(|_| count + 1)?))
}

fn taken_bytes(directory: &Path) -> Option<u64> {
    let found = directory.metadata().ok()?;
    if found.file_type().is_block_device() {
        return std::fs::File::open(directory).ok()?.seek(SeekFrom::End(0)).ok();
    }
    let files = std::fs::read_dir(directory).ok()?;
    let blocks = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.blocks()));
    Some(blocks.map(|blocks| blocks * 512).sum())
}

fn json(facts: &Facts) -> Value {
    let Facts { directories, inside, pairs, windows } = facts;
    let memory = &inside.memory;
    let levels = inside.levels.iter().map(|level| {
        json!({
            "entries": level.entries,
            "segments": level.segments,
            "capacity_segments": level.capacity_segments,
            "is_pinned": level.is_pinned,
        })
    });
    let directories = directories
        .iter()
        .map(|directory| json!({ "path": directory.path, "taken_bytes": directory.taken_bytes }));
    let mut json = json!({
        "directories": directories.collect::<Vec<_>>(),
        "capacity_bytes": inside.capacity_bytes,
        "entries": inside.entries(),
        "levels": levels.collect::<Vec<_>>(),
        "memory_bytes": {
            "index": memory.index_bytes(),
            "level_lists": memory.level_lists,
            "range_pointers": memory.range_pointers,
            "pinned_segments": memory.pinned_segments,
            "caches": memory.caches,
            "memtables": memory.memtables,
        },
    });
    if let Some(pairs) = pairs {
        json["pairs"] = (*pairs).into();
    }
    if let Some(windows) = windows {
        json["windows"] = windows_json(windows);
    }
    json
}

fn windows_json(windows: &WindowStatistics) -> Value {
    let members = windows.members.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "members": members,
        "slots": windows.slots,
        "unfinished_slots": windows.unfinished_slots,
        "direct_reads": windows.direct_reads,
        "rebuilt_reads": windows.rebuilt_reads,
        "busy_reads": windows.busy_reads,
        "cached_reads": windows.cached_reads,
        "cached_bytes": windows.cached_bytes,
        "most_cached_bytes": windows.most_cached_bytes,
        "waits_for_room": windows.waits_for_room,
        "waited_us": windows.waited.as_micros() as u64,
        "journal_writes": windows.journal_writes,
        "writes_in_dtwin": windows.writes_in_dtwin,
        "lost_windows": windows.lost_windows,
    })
}

/// Describes the windows in one line.
pub(crate) fn windows_text(windows: &WindowStatistics) -> String {
    let members = windows.members.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "now {members}; {} slots; pages read: {} where they are, {} rebuilt, {} from plm_cache; \
         {} stripes waited for room in it; writes outside slots: {} of the journal, {} others",
        count_text(windows.slots),
        count_text(windows.direct_reads),
        count_text(windows.rebuilt_reads),
        count_text(windows.cached_reads),
        count_text(windows.waits_for_room),
        count_text(windows.journal_writes),
        count_text(windows.writes_in_dtwin),
    );
    if windows.busy_reads + windows.lost_windows > 0 {
        write!(
            text,
            "; {} pages read from busy members, {} windows lost",
            count_text(windows.busy_reads),
            count_text(windows.lost_windows)
        )
        .expect("a string takes any text");
    }
    text
}

fn table(facts: &Facts) -> String {
    let Facts { directories, inside, pairs, windows } = facts;
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        writeln!(text, "{name:<12} {value}").expect("a string takes any text");
    };
    for directory in directories {
        let taken = directory.taken_bytes.map_or("lost".to_owned(), bytes_text);
        row("directory", &format!("{}: {taken}", report::units::printable(&directory.path)));
    }
    row("capacity", &format!("{} for each directory, at most", bytes_text(inside.capacity_bytes)));
    if let Some(pairs) = pairs {
        row("pairs", &count_text(*pairs));
    }
    row("entries", &format!("{} in levels", count_text(inside.entries())));
    let memory = &inside.memory;
    row("index", &format!("{} of memory", bytes_text(memory.index_bytes())));
    row("memtables", &format!("{} of memory", bytes_text(memory.memtables)));
    if let Some(windows) = windows {
        row("windows", &windows_text(windows));
    }
    text.push_str("\nlevel        entries     segments   may have  in memory\n");
    for (number, level) in (1..).zip(&inside.levels) {
        writeln!(
            text,
            "L{number:<4} {:>14} {:>12} {:>10}  {}",
            count_text(level.entries),
            count_text(level.segments),
            count_text(level.capacity_segments),
            if level.is_pinned { "yes" } else { "no" }
        )
        .expect("a string takes any text");
    }
    text.trim_end().to_owned()
}
