//! Metrics for Prometheus, and a self-contained dashboard page.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use levelhead::DirectoryState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::accept::next;
use crate::observed::Observed;
use crate::state::State;
use crate::statistics::{BUCKETS_US, Class, GAUGES};

const PAGE: &str = include_str!("dashboard.html");
/// Timeout of a request with its response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a request, in bytes.
const REQUEST: usize = 8 << 10;
/// Maximum number of concurrent requests.
const READERS: usize = 16;

/// Ends each second of the statistics.
pub(crate) async fn count_seconds(state: Arc<State>) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let gauges = state.gauges();
        state.statistics.end_second(state.database.clock.now_ms(), gauges);
    }
}

/// Answers requests until the server stops.
pub(crate) async fn serve(
    state: Arc<State>,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let readers = Arc::new(Semaphore::new(READERS));
    while let Some(accepted) = next(listener.accept(), &mut stop).await {
        let (Ok((stream, _)), Ok(reader)) = (accepted, Arc::clone(&readers).try_acquire_owned())
        else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, answer(&state, stream)).await;
            drop(reader);
        });
    }
}

async fn answer(state: &State, mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let (status, kind, body) = respond(state, &request);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// Returns status, content type and body.
fn respond(state: &State, request: &[u8]) -> (&'static str, &'static str, String) {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    let plain = "text/plain; charset=utf-8";
    match (method, path) {
        (b"GET", b"/") => ("200 OK", "text/html; charset=utf-8", PAGE.to_owned()),
        (b"GET", b"/metrics") => {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", prometheus(state))
        }
        (b"GET", b"/data.json") => ("200 OK", "application/json", data(state)),
        (b"GET", _) => ("404 Not Found", plain, "there is / and /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", plain, "GET only\n".to_owned()),
    }
}

/// Reports the counters of the store's windows.
fn of_windows(windows: &levelhead::WindowStatistics, count: &mut dyn FnMut(&str, &str, u64)) {
    count("window_slots_total", "Slots of members.", windows.slots);
    count("window_rebuilt_reads_total", "Pages rebuilt beside a slot.", windows.rebuilt_reads);
    count("plm_cache_waits_total", "Stripes that waited for room.", windows.waits_for_room);
    count(
        "journal_writes_outside_slots_total",
        "Writes of log and manifest outside slots.",
        windows.journal_writes,
    );
}

/// Reports the free space, the snapshots and the space they hold, and file errors.
fn of_room(observed: &Observed, metric: &mut dyn FnMut(&str, &str, &str, u64)) {
    let store = &observed.statistics;
    let age = store.oldest_snapshot.map_or(0, |age| age.as_secs());
    metric("store_free_bytes", "gauge", "Bytes of the files without anything.", store.free_bytes);
    metric("store_snapshots", "gauge", "Instants that ranges hold.", store.snapshots);
    metric("store_oldest_snapshot_seconds", "gauge", "Age of the oldest of them.", age);
    metric(
        "store_oldest_snapshot_held_bytes",
        "gauge",
        "Bytes of the files that the oldest of them keeps from being written again.",
        store.held_bytes,
    );
    metric(
        "store_snapshot_memory_bytes",
        "gauge",
        "Memory of snapshots and ranges.",
        store.snapshot_bytes,
    );
    metric(
        "store_troubles_total",
        "counter",
        "Complaints of files: INFO persistence has the last one.",
        observed.complaints.count,
    );
}

/// Reports the counters of connections.
fn of_connections(state: &State, metric: &mut dyn FnMut(&str, &str, &str, u64)) {
    let statistics = &state.statistics;
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    metric("connected_clients", "gauge", "Connections.", state.clients.count() as u64);
    metric("connections_total", "counter", "Connections since the start.", state.clients.joined());
    metric(
        "rejected_connections_total",
        "counter",
        "Connections that were refused.",
        read(&statistics.refused),
    );
    metric(
        "client_buffer_bytes",
        "gauge",
        "Bytes in buffers of connections.",
        state.clients.bytes() as u64,
    );
    metric("net_input_bytes_total", "counter", "Bytes received.", read(&statistics.bytes_in));
    metric("net_output_bytes_total", "counter", "Bytes sent.", read(&statistics.bytes_out));
}

/// Returns the metrics in Prometheus's text format.
fn prometheus(state: &State) -> String {
    let (statistics, observed) = (&state.statistics, state.observer.last());
    let store = &observed.statistics;
    let mut text = String::new();
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut metric = |name: &str, kind: &str, help: &str, value: u64| {
        let _ = write!(
            text,
            "# HELP levelhead_{name} {help}\n# TYPE levelhead_{name} {kind}\nlevelhead_{name} {value}\n"
        );
    };
    of_connections(state, &mut metric);
    metric(
        "io_uring_refused",
        "gauge",
        "Whether the system refuses io_uring, for which threads stand in.",
        state.database.store.io_uring_refused().is_some().into(),
    );
    metric("error_replies_total", "counter", "Commands that failed.", read(&statistics.faults));
    metric("keys", "gauge", "Keys.", state.database.count());
    metric("expired_keys_total", "counter", "Keys that expired.", read(&statistics.expired));
    metric("commits_total", "counter", "Groups of writes made durable.", read(&statistics.commits));
    metric(
        "committed_total",
        "counter",
        "Batches of commands in those groups.",
        read(&statistics.committed),
    );
    metric("store_index_bytes", "gauge", "Memory for index and caches.", store.index_bytes);
    metric("store_memtable_bytes", "gauge", "Memory for memtables.", store.memtable_bytes);
    metric("store_flushes_total", "counter", "Memtables flushed.", store.flushes);
    metric("store_stalls_total", "counter", "Writes that waited for room.", store.stalls);
    metric("store_writes_total", "counter", "Pairs written or deleted.", store.writes);
    metric(
        "store_user_bytes_total",
        "counter",
        "Bytes of keys and values written.",
        store.user_bytes,
    );
    metric(
        "store_value_cache_hits_total",
        "counter",
        "Values found in memory.",
        store.value_cache_hits,
    );
    metric(
        "store_value_cache_misses_total",
        "counter",
        "Values looked for there in vain.",
        store.value_cache_misses,
    );
    for how in DirectoryState::ALL {
        let count = store.directories.iter().filter(|(_, found)| *found == how).count();
        let name = format!("directories_{}", how.name());
        metric(&name, "gauge", "Directories of the store that are so.", count as u64);
    }
    of_room(&observed, &mut metric);
    if let Some(windows) = &store.windows {
        of_windows(windows, &mut |name, help, value| metric(name, "counter", help, value));
    }
    latencies(state, &mut text);
    text.push_str("# HELP levelhead_store_gets_total Gets by reads they took.\n# TYPE levelhead_store_gets_total counter\n");
    for (reads, gets) in store.reads_per_get.iter().enumerate() {
        let _ = writeln!(text, "levelhead_store_gets_total{{reads=\"{reads}\"}} {gets}");
    }
    text
}

fn latencies(state: &State, text: &mut String) {
    let name = "levelhead_command_duration_seconds";
    let _ = write!(
        text,
        "# HELP {name} How long commands take until they can be answered.\n# TYPE {name} histogram\n"
    );
    let seconds = |micros: u64| micros as f64 / 1e6;
    for class in Class::ALL {
        let (class, totals) = (class.name(), state.statistics.totals(class));
        for (end, count) in BUCKETS_US.iter().zip(&totals.up_to) {
            let end = seconds(*end);
            let _ = writeln!(text, "{name}_bucket{{class=\"{class}\",le=\"{end}\"}} {count}");
        }
        let (count, sum) = (totals.count, seconds(totals.sum_us));
        let _ = writeln!(text, "{name}_bucket{{class=\"{class}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{class=\"{class}\"}} {sum}");
        let _ = writeln!(text, "{name}_count{{class=\"{class}\"}} {count}");
    }
}

/// Returns the recent seconds as JSON, for the dashboard.
fn data(state: &State) -> String {
    let windows = state.statistics.windows();
    let mut text = String::from("{\"seconds\":[");
    for (number, window) in windows.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{{\"at\":{}", window.at_ms);
        for (class, second) in Class::ALL.iter().zip(&window.classes) {
            let (name, count) = (class.name(), second.count);
            let (p50, p99, p999, max) =
                (second.p50_us, second.p99_us, second.p999_us, second.max_us);
            let _ = write!(
                text,
                ",\"{name}\":{{\"n\":{count},\"p50\":{p50},\"p99\":{p99},\"p999\":{p999},\"max\":{max}}}"
            );
        }
        for (name, value) in GAUGES.iter().zip(&window.gauges) {
            let _ = write!(text, ",\"{name}\":{value}");
        }
        text.push('}');
    }
    text.push_str("],\"levels\":[");
    for (number, level) in state.observer.last().inside.levels.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma}{{\"segments\":{},\"most\":{},\"entries\":{},\"pinned\":{}}}",
            level.segments, level.capacity_segments, level.entries, level.is_pinned
        );
    }
    text.push(']');
    if let Some(windows) = &state.observer.last().statistics.windows {
        windows_data(windows, &mut text);
    }
    let durability = format!("{:?}", state.options.durability).to_lowercase();
    let _ = write!(
        text,
        ",\"durability\":\"{durability}\",\"version\":\"{}\"}}",
        env!("CARGO_PKG_VERSION")
    );
    text
}

/// Appends the state of the windows; figures that change every second are gauges.
fn windows_data(windows: &levelhead::WindowStatistics, text: &mut String) {
    let members = windows.members.iter().map(|member| format!("\"{member}\""));
    let members = members.collect::<Vec<_>>().join(",");
    let _ = write!(
        text,
        ",\"windows\":{{\"members\":[{members}],\"slots\":{},\"unfinished\":{},\"most_bytes\":{},\"waited_us\":{},\
         \"journal_writes\":{},\"other_writes\":{},\"lost\":{}}}",
        windows.slots,
        windows.unfinished_slots,
        windows.most_cached_bytes,
        windows.waited.as_micros(),
        windows.journal_writes,
        windows.writes_in_dtwin,
        windows.lost_windows,
    );
}
