//! A server from its start to its stop.

use std::future::poll_fn;
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
use crate::error::ServeError;
use crate::fault::Fault;
use crate::listen::{self, Addresses, Doors};
use crate::metrics;
use crate::observed::{AGE, Observer};
use crate::options::Options;
use crate::slowlog::Slowlog;
use crate::state::State;
use crate::statistics::Statistics;

/// Interval between sweeps of expired keys.
const SWEEP: Duration = Duration::from_millis(100);
/// Maximum number of long walks at a time.
const FAR: usize = 4;
/// Sweep steps per sync: some milliseconds of work and 100 KB of the log, which commits at the same
/// time also wait for.
const STEPS: u64 = 8;
/// Expired keys that cost as much as one step over parts: each is looked up and locked, and has two
/// entries.
const KEYS_OF_STEP: u64 = 32;
/// Maximum pause after a group of sweep steps.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// How long long-running commands may continue when the server stops.
const LAST_WALK: Duration = Duration::from_millis(500);

/// A running server.
pub struct Server {
    state: Arc<State>,
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    addresses: Addresses,
}

/// A server that listens but does not answer yet, so that an address in use is detected before the
/// store is opened.
pub struct Listening {
    runtime: Runtime,
    doors: Doors,
    addresses: Addresses,
    cluster: Option<Cluster>,
    options: Options,
}

impl Listening {
    /// Binds the addresses. Clients can connect, but wait until [`Self::serve`].
    ///
    /// # Errors
    /// Returns [`ServeError`] if an address cannot be bound or is unsafe, or if a certificate is
    /// invalid.
    pub fn open(options: Options) -> Result<Self, ServeError> {
        if let Some(complaint) = options.complaint() {
            return Err(ServeError::new(complaint));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.workers)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(|error| ServeError::new(format!("no threads to serve with: {error}")))?;
        let doors = runtime.block_on(Doors::open(&options))?;
        let addresses = doors.addresses();
        let cluster = match (&options.cluster, addresses.tcp) {
            (Some(map), Some(own)) => {
                Some(Cluster::parse(map, &own.to_string()).map_err(ServeError::new)?)
            }
            (Some(_), None) => return Err(ServeError::new("servers of a cluster listen on TCP")),
            (None, _) => None,
        };
        Ok(Self { runtime, doors, addresses, cluster, options })
    }

    /// Serves a store.
    ///
    /// # Errors
    /// Returns [`ServeError`] if the store has pairs that no server wrote or is of another version,
    /// or if a thread cannot be started.
    pub fn serve(self, store: Store, clock: Clock) -> Result<Server, ServeError> {
        let Self { runtime, doors, addresses, cluster, options } = self;
        let database = Database::open(store.clone(), clock, options.durability)?;
        let count = Count::begin(&database).map_err(Fault::from)?;
        let statistics = Arc::new(Statistics::new());
        let commits = Commits::start(store, Arc::clone(&statistics))
            .map_err(|error| ServeError::new(format!("no thread for commits: {error}")))?;
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
    /// Starts to serve a store. Clients can connect once it returns.
    ///
    /// # Errors
    /// Returns [`ServeError`] if an address cannot be bound or is unsafe, if the store has pairs
    /// that no server wrote or is of another version, or if a certificate is invalid.
    pub fn start(store: Store, options: Options, clock: Clock) -> Result<Self, ServeError> {
        Listening::open(options)?.serve(store, clock)
    }

    /// Returns the addresses at which the server listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Waits for SIGTERM or SIGINT. Signals are handled from the call of `ready` on.
    ///
    /// # Errors
    /// Returns [`ServeError`] if the signal handlers cannot be installed.
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
        waited.map_err(|error| ServeError::new(format!("signals cannot be heard: {error}")))
    }

    /// Stops the server: accepts no new clients, executes and answers commands under way, and
    /// closes the store. Commands that take long get an error and have no effect.
    ///
    /// # Errors
    /// Returns [`ServeError`] if the writes cannot be made durable.
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
            // Clients that have not read their replies by now are abandoned.
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
        // To learn whether stopping succeeded, callers use `stop`.
        let _ = self.end();
    }
}

/// The work of a background thread, until the server is over.
type Work = Box<dyn FnOnce(&State, &AtomicBool) + Send>;

/// Starts the threads that sweep, that read the store's counters, and that count keys if the count
/// is not known.
fn background(
    state: &Arc<State>,
    is_over: &Arc<AtomicBool>,
    count: Option<Count>,
) -> Result<Vec<JoinHandle<()>>, ServeError> {
    let start = |name: &str, run: Work| {
        let (state, is_over) = (Arc::clone(state), Arc::clone(is_over));
        let thread = thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(move || run(&state, &is_over));
        started.map_err(|error| ServeError::new(format!("no thread to {name} with: {error}")))
    };
    let mut threads = vec![start("sweep", Box::new(sweep))?, start("observe", Box::new(observe))?];
    if let Some(count) = count {
        threads.push(start(
            "count",
            Box::new(move |state, is_over| {
                // If the count fails, commands that need it walk over the keys and report the
                // error.
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

/// Sweeps at most half of the time, because whenever the store delays the sweeper it also delays
/// the clients, which get their turn in the pause. The sweeper's writes are in the log before the
/// writes of waiting clients; it therefore waits itself until its writes are durable.
fn sweep(state: &State, is_over: &AtomicBool) {
    let mut sweeper = Sweeper::default();
    while !is_over.load(Ordering::SeqCst) {
        let watch = Stopwatch::start();
        let mut goes_on = true;
        let mut steps = 0;
        while goes_on && steps < STEPS {
            // A failed step is retried later. If the store is unusable, clients learn it from their
            // own commands.
            let (swept, outcome) = sweeper.step(&state.database);
            state.statistics.expired.fetch_add(swept.expired, Ordering::Relaxed);
            state.statistics.swept.fetch_add(swept.parts, Ordering::Relaxed);
            goes_on = swept.is_unfinished && outcome.is_ok();
            steps += 1 + swept.expired / KEYS_OF_STEP;
            // As long walks do, so that the system does not preempt the thread while it holds the
            // store's lock.
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
