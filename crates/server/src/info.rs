//! The reply of INFO.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::data::keys::{MAX_KEY_BYTES, MAX_MEMBER_BYTES};
use crate::state::State;
use crate::statistics::Class;

/// Returns the names and values of a section, given the state and the time in milliseconds since
/// 1970.
type Section = fn(&State, u64) -> Vec<(String, String)>;

/// Returns the text of the requested sections, or of all sections if none is requested.
pub(crate) fn text(state: &State, now_ms: u64, asked: &[String]) -> String {
    let everything = ["all", "everything", "default"];
    let is_asked_for = |name: &str| {
        let by_name = |asked: &String| asked == name || everything.contains(&asked.as_str());
        asked.is_empty() || asked.iter().any(by_name)
    };
    let sections: [(&str, Section); 12] = [
        ("Server", server),
        ("Clients", clients),
        ("Memory", memory),
        ("Persistence", persistence),
        ("Stats", stats),
        ("Replication", |_, _| replication()),
        ("Directories", directories),
        ("Windows", windows),
        ("Errorstats", errors),
        ("Cluster", cluster),
        ("Keyspace", keyspace),
        ("Limits", limits),
    ];
    let mut text = String::new();
    for (name, lines) in sections {
        if !is_asked_for(&name.to_lowercase()) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {name}\r\n");
        for (key, value) in lines(state, now_ms) {
            let _ = write!(text, "{key}:{value}\r\n");
        }
    }
    text
}

#[expect(clippy::needless_pass_by_value, reason = "most are numbers")]
fn line(key: &str, value: impl ToString) -> (String, String) {
    (key.to_owned(), value.to_string())
}

fn server(state: &State, now_ms: u64) -> Vec<(String, String)> {
    let uptime = now_ms.saturating_sub(state.begun_ms) / 1_000;
    vec![
        line("redis_version", crate::REDIS_VERSION),
        line("levelhead_version", env!("CARGO_PKG_VERSION")),
        line("redis_mode", if state.cluster.is_some() { "cluster" } else { "standalone" }),
        line("os", std::env::consts::OS),
        line("arch_bits", usize::BITS),
        line("process_id", std::process::id()),
        line("io_uring_refused", state.database.store.io_uring_refused().unwrap_or_default()),
        line("tcp_port", state.port),
        line("uptime_in_seconds", uptime),
        line("uptime_in_days", uptime / 86_400),
    ]
}

fn clients(state: &State, _: u64) -> Vec<(String, String)> {
    vec![
        line("connected_clients", state.clients.count()),
        line("maxclients", state.options.max_clients),
        line("client_buffer_bytes", state.clients.bytes()),
    ]
}

fn memory(state: &State, _: u64) -> Vec<(String, String)> {
    let store = &state.observer.last().statistics;
    let used = store.index_bytes + store.memtable_bytes + state.clients.bytes() as u64;
    vec![
        line("used_memory", used),
        line("used_memory_index", store.index_bytes),
        line("used_memory_memtables", store.memtable_bytes),
        line("used_memory_clients", state.clients.bytes()),
        line("maxmemory_clients", state.options.client_bytes),
        line("maxmemory_policy", "noeviction"),
    ]
}

fn persistence(state: &State, now_ms: u64) -> Vec<(String, String)> {
    let observed = state.observer.last();
    let (store, complaints) = (&observed.statistics, &observed.complaints);
    let durability = format!("{:?}", state.options.durability).to_lowercase();
    let statistics = &state.statistics;
    let mut lines = vec![
        line("loading", 0),
        line("durability", durability),
        line("commits", read(&statistics.commits)),
        line("commands_committed", read(&statistics.committed)),
        line("flushes", store.flushes),
        line("stalls", store.stalls),
        line("store_writes", store.writes),
        line("store_user_bytes", store.user_bytes),
        line("store_free_bytes", store.free_bytes),
    ];
    lines.extend(snapshots(store));
    lines.push(line("store_troubles", complaints.count));
    if let Some(last) = &complaints.last {
        let ago = now_ms.saturating_sub(complaints.at_ms) / 1_000;
        lines.push(line("last_store_trouble", last));
        lines.push(line("last_store_trouble_seconds_ago", ago));
    }
    lines
}

/// Snapshots that ranges hold (long commands hold ranges), and the cost of the oldest one, which is
/// dropped first when room runs out.
fn snapshots(store: &levelhead::Statistics) -> [(String, String); 5] {
    let oldest = store.oldest_snapshot.map_or(0, |age| age.as_millis());
    [
        line("store_snapshots", store.snapshots),
        line("oldest_snapshot_msec", oldest),
        line("oldest_snapshot_held_bytes", store.held_bytes),
        line("snapshot_memory_bytes", store.snapshot_bytes),
        line("most_snapshot_memory_bytes", store.most_snapshot_bytes),
    ]
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn stats(state: &State, _: u64) -> Vec<(String, String)> {
    let (statistics, observed) = (&state.statistics, state.observer.last());
    let store = &observed.statistics;
    let last = statistics.windows().last().cloned();
    let last = last.map_or(0, |window| window.classes.iter().map(|class| class.count).sum());
    let mut lines = vec![
        line("total_connections_received", state.clients.joined()),
        line("total_commands_processed", statistics.commands()),
        line("instantaneous_ops_per_sec", last),
        line("total_net_input_bytes", read(&statistics.bytes_in)),
        line("total_net_output_bytes", read(&statistics.bytes_out)),
        line("rejected_connections", read(&statistics.refused)),
        line("clients_ended_that_took_no_replies", read(&statistics.stuck)),
        line("expired_keys", read(&statistics.expired)),
        line("swept_parts", read(&statistics.swept)),
        line("keyspace_hits", store.gets_found),
        line("keyspace_misses", store.gets_missing),
        line("total_error_replies", read(&statistics.faults)),
        line("value_cache_hits", store.value_cache_hits),
        line("value_cache_misses", store.value_cache_misses),
    ];
    for class in Class::ALL {
        let totals = statistics.totals(class);
        lines.push(line(&format!("commands_{}", class.name()), totals.count));
    }
    for (reads, gets) in store.reads_per_get.iter().enumerate() {
        lines.push(line(&format!("gets_with_{reads}_reads"), gets));
    }
    lines
}

/// State of each directory of the store.
fn directories(state: &State, _: u64) -> Vec<(String, String)> {
    let observed = state.observer.last();
    let numbered = observed.statistics.directories.iter().enumerate();
    let said = numbered.map(|(n, (path, how))| {
        line(&format!("directory{n}"), format!("path={},state={}", path.display(), how.name()))
    });
    said.collect()
}

fn windows(state: &State, _: u64) -> Vec<(String, String)> {
    let observed = state.observer.last();
    let Some(windows) = &observed.statistics.windows else {
        return vec![line("windows", "off")];
    };
    let members = windows.members.iter().map(ToString::to_string).collect::<Vec<_>>();
    vec![
        line("windows", members.join(",")),
        line("window_slots", windows.slots),
        line("window_unfinished_slots", windows.unfinished_slots),
        line("window_direct_reads", windows.direct_reads),
        line("window_rebuilt_reads", windows.rebuilt_reads),
        line("window_busy_reads", windows.busy_reads),
        line("plm_cache_reads", windows.cached_reads),
        line("plm_cache_bytes", windows.cached_bytes),
        line("plm_cache_waits", windows.waits_for_room),
        line("plm_cache_waited_usec", windows.waited.as_micros()),
        line("journal_writes_outside_slots", windows.journal_writes),
        line("other_writes_outside_slots", windows.writes_in_dtwin),
        line("windows_lost", windows.lost_windows),
    ]
}

/// There is no replication: this server is a master without replicas.
fn replication() -> Vec<(String, String)> {
    vec![
        line("role", "master"),
        line("connected_slaves", 0),
        line("master_failover_state", "no-failover"),
        line("master_replid", "0".repeat(40)),
        line("master_repl_offset", 0),
    ]
}

fn errors(state: &State, _: u64) -> Vec<(String, String)> {
    let kinds = state.statistics.faults_by_kind();
    let count = |(kind, count)| line(&format!("errorstat_{kind}"), format!("count={count}"));
    kinds.into_iter().map(count).collect()
}

/// Maximum lengths of keys, values, commands and replies, in bytes.
fn limits(state: &State, _: u64) -> Vec<(String, String)> {
    vec![
        line("max_key_bytes", MAX_KEY_BYTES),
        line("max_hash_field_bytes", MAX_KEY_BYTES),
        line("max_sorted_set_member_bytes", MAX_MEMBER_BYTES),
        line("max_string_bytes", state.database.longest_value),
        line("max_reply_bytes", state.options.reply_bytes),
        line("max_query_bytes", state.options.query_bytes),
    ]
}

fn cluster(state: &State, _: u64) -> Vec<(String, String)> {
    vec![line("cluster_enabled", u8::from(state.cluster.is_some()))]
}

fn keyspace(state: &State, _: u64) -> Vec<(String, String)> {
    let database = &state.database;
    let is_counting = database.is_counting.load(Ordering::SeqCst);
    // Keys with an expiry are not counted: SET does not read whether the value it replaces had one.
    let mut lines =
        vec![line("keys_being_counted", u8::from(is_counting)), line("expires_are_counted", 0)];
    if database.count() > 0 {
        lines.push(line("db0", format!("keys={},expires=0,avg_ttl=0", database.count())));
    }
    lines
}
