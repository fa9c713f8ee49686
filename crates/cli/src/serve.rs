//! `levelhead serve`: serves a store to Redis clients.

use std::env::VarError;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use levelhead::Store;
use report::units::parse_bytes;
use server::{Clock, Listening, OpenFiles, Tls};

use crate::store::{Does, WindowsArguments, check_directories, say_if_refused, say_what_is_lost};
use crate::{allocator, output, values};

/// Environment variable of the password. Unlike arguments, other users cannot see it.
const PASSWORD: &str = "LEVELHEAD_PASSWORD";

#[derive(Args)]
pub(crate) struct ServeArguments {
    /// Directory of the store, created if missing
    ///
    /// Three to 64 directories make a store that survives the loss of one of them.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Address to listen on for TCP, or 'none'
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6379")]
    listen: String,
    /// Path of a Unix socket to listen on
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Address to listen on for TLS
    #[arg(long, value_name = "ADDR:PORT", requires = "tls_cert_file")]
    tls_listen: Option<SocketAddr>,
    /// Certificate of the server, followed by its chain, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Private key of the certificate, as PEM
    #[arg(long, value_name = "FILE")]
    tls_key_file: Option<PathBuf>,
    /// Require client certificates signed by one of these CAs, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_ca_cert_file: Option<PathBuf>,
    /// When to acknowledge a write
    #[arg(long, value_enum, default_value = "group")]
    durability: Durability,
    /// Address of the Prometheus endpoint /metrics and of a status page
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// File whose first line is the password for clients [default: environment variable
    /// `LEVELHEAD_PASSWORD`]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Refuse an address that other hosts can reach while no password is set
    #[arg(long, value_enum, default_value = "yes", value_name = "yes|no")]
    protected_mode: YesNo,
    /// Maximum number of client connections
    #[arg(
        long,
        alias = "maxclients",
        value_name = "N",
        default_value = "10000",
        value_parser = values::clients
    )]
    max_clients: u64,
    /// Memory for the buffers of all connections, 1 MiB at least
    ///
    /// Once it is exceeded, the connection with the largest buffers is closed.
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "256MiB",
        value_parser = values::bytes(1 << 20..=1 << 50)
    )]
    maxmemory_clients: u64,
    /// Maximum bytes of unanswered requests per connection
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = parse_bytes)]
    client_query_buffer_limit: u64,
    /// Log commands to SLOWLOG that take at least this many microseconds
    #[arg(long, value_name = "US", default_value_t = 10_000)]
    slowlog_log_slower_than: u64,
    /// Maximum number of commands in SLOWLOG
    #[arg(long, value_name = "N", default_value_t = 128)]
    slowlog_max_len: usize,
    /// Slot map of a cluster: '127.0.0.1:7001 0-5460; ...', or a file with one line per server
    #[arg(long, value_name = "MAP|FILE")]
    cluster_map: Option<String>,
    /// Maximum size of each of the store's files [default: unchanged; 16GiB for a new store]
    ///
    /// A larger size than before lets the store grow.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    capacity: Option<u64>,
    /// Allocate all of --capacity on the disk at once
    ///
    /// A full store then accepts deletes even if other programs have filled the disk.
    #[arg(long)]
    preallocate: bool,
    /// Memory for the store's index and caches
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = parse_bytes)]
    memory: u64,
    /// Part of --memory for recently read values
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = parse_bytes)]
    value_cache: u64,
    /// Open the store without a directory that does not exist, even if the others do not know its
    /// path
    ///
    /// Without this flag a mistyped path is refused.
    #[arg(long)]
    degraded: bool,
    /// Recreate the lost directory after its disk was replaced, and rebuild its data from the
    /// others
    #[arg(long)]
    replace_lost: bool,
    #[command(flatten)]
    windows: WindowsArguments,
}

#[derive(Clone, Copy, ValueEnum)]
enum Durability {
    /// Once it is durable, in a commit group of its own
    Each,
    /// Once it is durable, in a commit group with concurrent writes
    Group,
    /// At once; it is written to the drive a millisecond later
    Interval,
    /// At once; it is written to the drive with its memtable
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

impl From<Durability> for levelhead::Durability {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Each => Self::Each,
            Durability::Group => Self::Group,
            Durability::Interval => Self::Interval,
            Durability::None => Self::None,
        }
    }
}

pub(crate) fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    allocator::keep_nothing_back();
    let options = options(arguments, allow_files(arguments.max_clients as usize))?;
    let store_options = arguments.windows.added_to(levelhead::Options {
        capacity_bytes: arguments.capacity.unwrap_or(0),
        preallocate: arguments.preallocate,
        memory_bytes: arguments.memory,
        value_cache_bytes: arguments.value_cache,
        degraded: arguments.degraded,
        replace_lost: arguments.replace_lost,
        durability: options.durability,
        ..levelhead::Options::default()
    });
    check_directories(&arguments.directories)?;
    // Bind the addresses first: if one is unavailable, no new store is left behind.
    let listening = Listening::open(options)?;
    let is_new = !Store::is_in(&arguments.directories)?;
    let store = Store::open_over(&arguments.directories, &store_options)?;
    if is_new {
        let paths = arguments.directories.iter().map(|path| path.display().to_string());
        output::say(&format!("made a new store in {}", paths.collect::<Vec<_>>().join(", ")));
    }
    say_what_is_lost(&store, Does::Write);
    say_if_refused(&store, store_options.windows);
    if let Some(why) = store.io_uring_refused() {
        output::say(&format!(
            "the system refuses io_uring ({why}): files are read by threads, which is slower; let it have io_uring_setup (seccomp, kernel.io_uring_disabled)"
        ));
    }
    let server = listening.serve(store, Clock::system())?;
    let said = std::cell::Cell::new(Ok(()));
    server.wait_for_signal(|| {
        said.set(output::print(&format!("levelhead serves on {}", server.addresses())));
    })?;
    said.into_inner()?;
    output::say("asked to end: answering what is under way");
    server.stop()?;
    Ok(ExitCode::SUCCESS)
}

/// Raises the limit of open files as far as `connections` need. Prints the change, and returns the
/// number of connections possible.
fn allow_files(connections: usize) -> usize {
    let files = OpenFiles::allow(connections);
    let shown = |limit: Option<u64>| limit.map_or("none".to_owned(), |limit| limit.to_string());
    let (before, now) = (shown(files.before), shown(files.now));
    if files.before != files.now {
        output::say(&format!("limit of open files: {now}, was {before}"));
    }
    if files.connections < connections {
        output::say(&format!(
            "at most {} connections: the system lets this process have {now} open files",
            files.connections
        ));
    }
    files.connections
}

fn options(arguments: &ServeArguments, max_clients: usize) -> anyhow::Result<server::Options> {
    let listen = match arguments.listen.as_str() {
        "none" => None,
        address => {
            let parsed = address.parse();
            Some(parsed.with_context(|| {
                format!("--listen {address} is no address and port, such as 127.0.0.1:6379")
            })?)
        }
    };
    let tls = match (arguments.tls_listen, &arguments.tls_cert_file, &arguments.tls_key_file) {
        (Some(listen), Some(certificate), Some(key)) => Some(Tls {
            listen,
            certificate: certificate.clone(),
            key: key.clone(),
            clients: arguments.tls_ca_cert_file.clone(),
        }),
        (None, None, None) => None,
        _ => bail!("TLS needs --tls-listen, --tls-cert-file and --tls-key-file"),
    };
    Ok(server::Options {
        listen,
        unix: arguments.unix.clone(),
        tls,
        metrics: arguments.metrics,
        password: password(arguments.password_file.as_deref())?,
        protected: arguments.protected_mode == YesNo::Yes,
        durability: arguments.durability.into(),
        max_clients,
        client_bytes: arguments.maxmemory_clients as usize,
        query_bytes: arguments.client_query_buffer_limit as usize,
        slow_us: arguments.slowlog_log_slower_than,
        slow_kept: arguments.slowlog_max_len,
        cluster: arguments.cluster_map.as_deref().map(cluster_map).transpose()?,
        ..server::Options::default()
    })
}

#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
fn password(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let Some(file) = file else { return password_in(std::env::var(PASSWORD)) };
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    match catalogue::without_mark(&text).lines().next() {
        Some(line) if !line.is_empty() => Ok(Some(line.to_owned())),
        _ => bail!("{} has no password in its first line", file.display()),
    }
}

/// Returns the password of the environment variable. A variable that is set but empty or not UTF-8
/// is an error: ignoring it would start a server without a password.
fn password_in(variable: Result<String, VarError>) -> anyhow::Result<Option<String>> {
    match variable {
        Ok(password) if password.is_empty() => {
            bail!("{PASSWORD} is set and empty: give it a password, or unset it to have none")
        }
        Ok(password) => Ok(Some(password)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => bail!("{PASSWORD} is no text in UTF-8"),
    }
}

/// Returns the cluster map. An argument that does not look like a map is the name of a file.
fn cluster_map(given: &str) -> anyhow::Result<String> {
    if given.contains([' ', '=', ';']) {
        return Ok(given.to_owned());
    }
    let text = fs::read_to_string(given).with_context(|| format!("cannot read {given}"))?;
    Ok(catalogue::without_mark(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_set_holds_a_password() {
        assert_eq!(password_in(Err(VarError::NotPresent)).expect("none is wanted"), None);
        let given = password_in(Ok("secret".to_owned())).expect("it is one");
        assert_eq!(given.as_deref(), Some("secret"));
        let empty = password_in(Ok(String::new())).expect_err("it would keep nobody out");
        assert!(empty.to_string().contains("set and empty"), "{empty}");
        assert!(password_in(Err(VarError::NotUnicode("x".into()))).is_err());
    }
}
