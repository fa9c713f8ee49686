//! `levelhead compact`.

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use levelhead::{Inside, Store};
use report::units::{bytes_text, count_text};
use serde_json::{Value, json};

use super::open::{Does, Place};
use crate::host::Stopwatch;
use crate::{output, progress};

#[derive(Args)]
pub(crate) struct CompactArguments {
    #[command(flatten)]
    place: Place,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Interval at which the progress is refreshed.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn compact(arguments: &CompactArguments) -> anyhow::Result<ExitCode> {
    let store = arguments.place.open(Does::Write)?;
    let stopwatch = Stopwatch::start();
    let before = store.inside();
    compact_and_show(&store)?;
    let after = store.inside();
    let text = if arguments.json {
        let json = json!({ "before": json(&before), "after": json(&after) });
        serde_json::to_string_pretty(&json)?
    } else {
        table(&before, &after, &progress::time_text(stopwatch.elapsed()))
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Compacts the store on a thread of its own while this thread shows the progress.
fn compact_and_show(store: &Store) -> anyhow::Result<()> {
    let bar = progress::bar("compact {spinner} {msg}", 0);
    progress::line_without(&bar, "compact ...");
    let (done, is_done) = channel();
    thread::scope(|scope| {
        let compaction = scope.spawn(move || {
            let compacted = store.compact();
            drop(done);
            compacted
        });
        while is_done.recv_timeout(LOOK) == Err::<(), _>(RecvTimeoutError::Timeout) {
            if !bar.is_hidden() {
                bar.set_message(state(&store.inside()));
                bar.tick();
            }
        }
        bar.finish_and_clear();
        compaction.join().map_err(|_| anyhow!("the compaction panicked"))??;
        Ok(())
    })
}

/// Describes the state of a store in one line.
fn state(inside: &Inside) -> String {
    format!(
        "{} entries above the last level, {} in use, {} collected",
        count_text(inside.entries_above_last()),
        bytes_text(inside.used_bytes),
        count_text(collected(inside)),
    )
}

/// Returns the number of extents that garbage collection has freed.
fn collected(inside: &Inside) -> u64 {
    let stats = &inside.stats;
    stats.gc_data_extents + stats.gc_meta_extents + stats.gc_empty_extents
}

fn json(inside: &Inside) -> Value {
    json!({
        "entries": inside.entries(),
        "entries_above_last": inside.entries_above_last(),
        "used_bytes": inside.used_bytes,
        "memtable_bytes": inside.memory.memtables,
    })
}

fn table(before: &Inside, after: &Inside, took: &str) -> String {
    let mut text = String::new();
    let mut row = |name: &str, before: &str, after: &str| {
        writeln!(text, "{name:<14} {before:>14} {after:>14}").expect("a string takes any text");
    };
    row("", "before", "after");
    row("entries", &count_text(before.entries()), &count_text(after.entries()));
    let above = |inside: &Inside| count_text(inside.entries_above_last());
    row("  above last", &above(before), &above(after));
    row("in use", &bytes_text(before.used_bytes), &bytes_text(after.used_bytes));
    writeln!(text, "took {took}").expect("a string takes any text");
    text.trim_end().to_owned()
}
