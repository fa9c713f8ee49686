//! A server from its start to its end.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use levelhead::Store;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};

use crate::client::Clients;
use crate::clock::{Clock, Stopwatch};
use crate::cluster::Cluster;
use crate::commits::Commits;
use crate::cursors::Cursors;
use crate::data::count::Count;
use crate::data::database::Database;
use crate::data::sweep::Sweeper;
use crate::fault::Fault;
use crate::listen::{self, Doors};
use crate::metrics;
use crate::observed::{AGE, Observer};
use crate::options::Options;
use crate::slowlog::Slowlog;
use crate::state::State;
use crate::statistics::Statistics;

/// How often is looked for what has expired.
const SWEEP: Duration = Duration::from_millis(100);
/// Commands that walk far at a time.
const FAR: usize = 4;
/// Steps of a sweep that become durable together: some milliseconds of work, and 100 KB of the log. Whoever commits beside it waits for both.
const STEPS: u64 = 8;
/// Keys that expire while a step of parts is done: each is looked up and locked, and has two entries.
const KEYS_OF_STEP: u64 = 32;
/// The longest pause behind them.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// How long commands that walk far have to come to their end when the server stops.
const LAST_WALK: Duration = Duration::from_millis(500);

/// Why a server could not be started, or not be stopped properly.
#[derive(Clone, Debug)]
pub struct ServeError(String);

impl ServeError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

impl From<Fault> for ServeError {
    fn from(fault: Fault) -> Self {
        let message = fault.message();
        Self(message.strip_prefix("ERR ").unwrap_or(message).to_owned())
    }
}

/// Where a server listens, as it turned out.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// For TCP.
    pub tcp: Option<SocketAddr>,
    /// For TLS.
    pub tls: Option<SocketAddr>,
    /// The Unix socket.
    pub unix: Option<PathBuf>,
    /// Of metrics and dashboard.
    pub metrics: Option<SocketAddr>,
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.tcp.map(|address| format!("tcp {address}")));
        parts.extend(self.tls.map(|address| format!("tls {address}")));
        parts.extend(self.unix.as_ref().map(|path| format!("unix {}", path.display())));
        parts.extend(self.metrics.map(|address| format!("metrics http://{address}/")));
        f.write_str(&parts.join(", "))
    }
}

/// A server that runs.
pub struct Server {
    state: Arc<State>,
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    addresses: Addresses,
}

/// A server that listens and does not answer yet: whether the addresses can be had is known before there is a store.
pub struct Listening {
    runtime: Runtime,
    doors: Doors,
    addresses: Addresses,
    cluster: Option<Cluster>,
    options: Options,
}

impl Listening {
    /// Takes the addresses. Clients wait until [`Self::serve`].
    ///
    /// # Errors
    /// [`ServeError`]: an address that cannot be had or should not be, a certificate that is none.
    pub fn open(options: Options) -> Result<Self, ServeError> {
        if let Some(complaint) = options.complaint() {
            return Err(ServeError(complaint));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.workers)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(|error| ServeError(format!("no threads to serve with: {error}")))?;
        let doors = runtime.block_on(Doors::open(&options))?;
        let addresses = doors.addresses();
        let cluster = match (&options.cluster, addresses.tcp) {
            (Some(map), Some(own)) => {
                Some(Cluster::parse(map, &own.to_string()).map_err(ServeError)?)
            }
            (Some(_), None) => return Err(ServeError::new("servers of a cluster listen on TCP")),
            (None, _) => None,
        };
        Ok(Self { runtime, doors, addresses, cluster, options })
    }

    /// Serves a store.
    ///
    /// # Errors
    /// [`ServeError`]: a store that no server wrote, no threads.
    pub fn serve(self, store: Store, clock: Clock) -> Result<Server, ServeError> {
        let Self { runtime, doors, addresses, cluster, options } = self;
        let (database, count) = Database::open(store.clone(), clock, options.durability)?;
        let statistics = Arc::new(Statistics::new());
        let commits = Commits::start(store, Arc::clone(&statistics))
            .map_err(|error| ServeError(format!("no thread for commits: {error}")))?;
        let state = Arc::new(State {
            clients: Clients::new(options.client_bytes),
            cursors: Cursors::new(),
            slowlog: Slowlog::default(),
            begun_ms: database.clock.now_ms(),
            port: addresses.tcp.map_or(0, |address| address.port()),
            drawn: AtomicU64::new(0),
            observer: Observer::new(&database.store, database.clock.now_ms()),
            in_store: Semaphore::new(options.workers.saturating_sub(1).max(1)),
            far: Semaphore::new(FAR),
            options,
            database,
            commits,
            cluster,
            statistics,
        });
        let (stop, stopped) = watch::channel(false);
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = background(&state, &is_over, count)?;
        listen::spawn(&runtime, &state, doors, &stopped);
        runtime.spawn(metrics::count_seconds(Arc::clone(&state)));
        Ok(Server { state, runtime: Some(runtime), stop, is_over, threads, addresses })
    }
}

impl Server {
    /// Starts to serve a store. Clients may come when it returns.
    ///
    /// # Errors
    /// [`ServeError`]: an address that cannot be had or should not be, a store that no server wrote, a certificate that is none.
    pub fn start(store: Store, options: Options, clock: Clock) -> Result<Self, ServeError> {
        Listening::open(options)?.serve(store, clock)
    }

    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Waits until the process is asked to end, by SIGTERM or SIGINT. From when `ready` is called on, that is heard.
    ///
    /// # Errors
    /// [`ServeError`] if it cannot hear of signals.
    pub fn wait_for_signal(&self, ready: impl FnOnce()) -> Result<(), ServeError> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = self.runtime.as_ref().expect("it runs until it is stopped");
        let waited = runtime.block_on(async {
            let mut terminated = signal(SignalKind::terminate())?;
            let mut interrupted = signal(SignalKind::interrupt())?;
            ready();
            poll_fn(|context| {
                let is_asked = terminated.poll_recv(context).is_ready()
                    || interrupted.poll_recv(context).is_ready();
                if is_asked { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            std::io::Result::Ok(())
        });
        waited.map_err(|error| ServeError(format!("signals cannot be heard: {error}")))
    }

    /// Stops: nobody new is let in, commands under way are carried out and answered, and the store is closed. Those that take long are told that they
    /// were not carried out.
    ///
    /// # Errors
    /// [`ServeError`] if what was written could not be made durable.
    pub fn stop(mut self) -> Result<(), ServeError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ServeError> {
        let Some(runtime) = self.runtime.take() else { return Ok(()) };
        let _ = self.stop.send(true);
        let state = &self.state;
        let grace = Duration::from_millis(state.options.grace_ms);
        runtime.block_on(async {
            let gone = async {
                while state.clients.count() > 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let cut_short = async {
                tokio::time::sleep(LAST_WALK).await;
                state.database.stops.store(true, Ordering::SeqCst);
                std::future::pending::<()>().await;
            };
            let (mut gone, mut cut_short) = (pin!(gone), pin!(cut_short));
            let gone = poll_fn(|context| {
                let _ = cut_short.as_mut().poll(context);
                gone.as_mut().poll(context)
            });
            // Those who do not take their replies are left behind.
            let _ = tokio::time::timeout(grace, gone).await;
            state.database.stops.store(true, Ordering::SeqCst);
        });
        self.is_over.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
        state.commits.stop();
        if let Some(path) = &self.addresses.unix {
            let _ = std::fs::remove_file(path);
        }
        Ok(state.database.close()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Who wants to know whether it worked calls `stop`.
        let _ = self.end();
    }
}

/// What a thread does until the server is over.
type Work = Box<dyn FnOnce(&State, &AtomicBool) + Send>;

/// Threads that sweep, that ask the store for its counters, and count keys if they have to be counted.
fn background(
    state: &Arc<State>,
    is_over: &Arc<AtomicBool>,
    count: Option<Count>,
) -> Result<Vec<JoinHandle<()>>, ServeError> {
    let start = |name: &str, run: Work| {
        let (state, is_over) = (Arc::clone(state), Arc::clone(is_over));
        let thread = thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(move || run(&state, &is_over));
        started.map_err(|error| ServeError(format!("no thread to {name} with: {error}")))
    };
    let mut threads = vec![start("sweep", Box::new(sweep))?, start("observe", Box::new(observe))?];
    if let Some(count) = count {
        threads.push(start(
            "count",
            Box::new(move |state, is_over| {
                // If they cannot be counted those hear of it who ask how many there are.
                let _ = count.run(&state.database, &|| is_over.load(Ordering::SeqCst));
            }),
        )?);
    }
    Ok(threads)
}

fn observe(state: &State, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        let database = &state.database;
        state.observer.ask(&database.store, database.clock.now_ms());
        thread::park_timeout(AGE);
    }
}

/// Sweeps half of the time at most: where the store keeps it waiting, others wait as well, and have their turn in the pause. What it writes
/// stands in the log before what others wait for, so it waits itself until that is durable.
fn sweep(state: &State, is_over: &AtomicBool) {
    let mut sweeper = Sweeper::default();
    while !is_over.load(Ordering::SeqCst) {
        let watch = Stopwatch::start();
        let mut goes_on = true;
        let mut steps = 0;
        while goes_on && steps < STEPS {
            // What cannot be swept now is tried again: clients are told by their own commands if the store is beyond use.
            let (swept, outcome) = sweeper.step(&state.database);
            state.statistics.expired.fetch_add(swept.expired, Ordering::Relaxed);
            state.statistics.swept.fetch_add(swept.parts, Ordering::Relaxed);
            goes_on = swept.is_unfinished && outcome.is_ok();
            steps += 1 + swept.expired / KEYS_OF_STEP;
            // As long walks do.
            thread::yield_now();
        }
        if goes_on {
            let _ = state.database.store.sync();
        }
        let pause = Duration::from_micros(watch.micros()).min(LONGEST_PAUSE);
        thread::park_timeout(if goes_on { pause } else { SWEEP });
    }
}

#[cfg(test)]
mod turns_tests;
