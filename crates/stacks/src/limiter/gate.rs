//! Requests that wait for bytes, with the times since when they wait. A request is stored as the
//! closure that submits it, so that requests proceed in order even if no task awaits them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use engine::ExtentId;
use runtime::{Event, Handle, Nanos, Rng};

use super::bandwidth::Bandwidth;
use super::class::{Direction, Lane, Use};
use super::options::LimiterOptions;
use super::stats::{LimiterStats, PriorityStats};
use super::tokens::Tokens;
use super::tuning::Tuning;

/// Submits a request to the medium.
pub(crate) type Submit = Box<dyn FnOnce()>;

/// A waiting request.
struct Waiting {
    submit: Submit,
    since: Nanos,
    bytes: u64,
    /// The extent of an append.
    extent: Option<ExtentId>,
}

struct State {
    tokens: Tokens,
    rng: Rng,
    bandwidth: Option<Bandwidth>,
    tuning: Option<Tuning>,
    waiting: BTreeMap<u64, Waiting>,
    /// Extents with waiting appends: their queue, and the number of appends.
    extents: BTreeMap<ExtentId, (Lane, u64)>,
    newest: u64,
    has_timer: bool,
    stats: LimiterStats,
}

/// The limiter.
pub(crate) struct Limiter {
    handle: Handle,
    myself: Weak<Self>,
    limits_reads: bool,
    has_l0_lane: bool,
    fairness: u64,
    state: RefCell<State>,
}

impl Limiter {
    /// Creates a limiter; `None` if nothing is limited.
    pub(crate) fn new(handle: &Handle, options: &LimiterOptions) -> Option<Rc<Self>> {
        let problems = options.problems();
        assert!(problems.is_empty(), "options were not checked: {}", problems.join("; "));
        let bandwidth = options.silk.as_ref().map(Bandwidth::new);
        let (period, rate, fairness) = match (&options.rate_limiter, &options.silk, &bandwidth) {
            (_, Some(silk), Some(bandwidth)) => {
                (silk.interval(), bandwidth.budget(), silk.fairness)
            }
            (Some(limit), ..) => {
                (Nanos::from_millis(limit.refill_ms), limit.bytes_per_second, limit.fairness)
            }
            _ => return None,
        };
        let limit = options.rate_limiter.as_ref();
        let tuning = limit.filter(|limit| limit.auto_tuned).map(|_| Tuning::new(rate, period));
        let rate = tuning.as_ref().map_or(rate, Tuning::rate);
        let state = State {
            tokens: Tokens::new(period, rate),
            rng: handle.rng("limiter"),
            bandwidth,
            tuning,
            waiting: BTreeMap::new(),
            extents: BTreeMap::new(),
            newest: 0,
            has_timer: false,
            stats: LimiterStats { bytes_per_second: rate, ..LimiterStats::default() },
        };
        Some(Rc::new_cyclic(|myself| Self {
            handle: handle.clone(),
            myself: Weak::clone(myself),
            limits_reads: options.silk.is_some() || limit.is_some_and(|limit| limit.limits_reads),
            has_l0_lane: options.silk.is_some(),
            fairness,
            state: RefCell::new(state),
        }))
    }

    /// Returns the queue of an I/O; `None` if it is not limited. Counts the bytes of clients.
    pub(crate) fn lane(&self, what: Use, bytes: u64) -> Option<Lane> {
        match what {
            Use::Free => None,
            Use::Client => {
                let state = &mut *self.state.borrow_mut();
                state.stats.client_bytes += bytes;
                state.advance(self.handle.now());
                if let Some(bandwidth) = &mut state.bandwidth {
                    bandwidth.count(bytes);
                }
                None
            }
            Use::Internal(_, Direction::Read) if !self.limits_reads => None,
            Use::Internal(Lane::L0, _) if !self.has_l0_lane => Some(Lane::Rest),
            Use::Internal(lane, _) => Some(lane),
        }
    }

    /// Takes `bytes`, if they are available and no request waits.
    pub(crate) fn take(&self, lane: Lane, bytes: u64) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.advance(self.handle.now());
        let takes = state.tokens.take(bytes);
        if takes {
            state.passed(lane).bytes += bytes;
        }
        takes
    }

    /// Lets `bytes` pass at once. Later refills pay for them.
    pub(crate) fn owe(&self, lane: Lane, bytes: u64) {
        let state = &mut *self.state.borrow_mut();
        state.tokens.owe(bytes);
        state.passed(lane).bytes += bytes;
    }

    /// Calls `submit` once `bytes` are available.
    pub(crate) fn enqueue(&self, lane: Lane, bytes: u64, extent: Option<ExtentId>, submit: Submit) {
        let since = self.handle.now();
        let mut state = self.state.borrow_mut();
        state.enqueue(lane, Waiting { submit, since, bytes, extent });
        let is_due = state.tokens.refills_at() <= since;
        drop(state);
        if is_due {
            self.refill();
        }
        self.set_timer();
    }

    fn refill(&self) {
        let now = self.handle.now();
        let mut state = self.state.borrow_mut();
        state.advance(now);
        let rest_first = state.rng.below(self.fairness) == 0;
        let granted = state.tokens.refill(now, rest_first);
        let submits: Vec<Submit> =
            granted.into_iter().map(|(lane, number)| state.grant(lane, number, now)).collect();
        drop(state);
        for submit in submits {
            submit();
        }
    }

    /// Waiting requests proceed at the next refill.
    fn set_timer(&self) {
        let state = &mut *self.state.borrow_mut();
        if state.has_timer || !state.tokens.is_waited_for() {
            return;
        }
        state.has_timer = true;
        if let Some(tuning) = &mut state.tuning {
            tuning.note_drain();
        }
        let myself = self.myself.upgrade().expect("somebody calls it");
        self.handle.fire_at(state.tokens.refills_at(), myself, 0);
    }

    /// Whether compactions below L0 are paused.
    pub(crate) fn is_paused(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.advance(self.handle.now());
        state.bandwidth.as_ref().is_some_and(Bandwidth::is_paused)
    }

    pub(crate) fn stats(&self) -> LimiterStats {
        let state = &mut *self.state.borrow_mut();
        state.advance(self.handle.now());
        let stats = state.stats;
        state.bandwidth.as_ref().map_or(stats, |bandwidth| LimiterStats {
            rate_changes: bandwidth.changes,
            pauses: bandwidth.pauses,
            paused_ns: bandwidth.paused.0,
            ..stats
        })
    }
}

impl Event for Limiter {
    fn fire(&self, _: u64) {
        self.state.borrow_mut().has_timer = false;
        self.refill();
        self.set_timer();
    }
}

impl State {
    /// Updates the rate.
    fn advance(&mut self, now: Nanos) {
        let by_silk = self.bandwidth.as_mut();
        let by_silk =
            by_silk.and_then(|bandwidth| bandwidth.advance(now).then(|| bandwidth.budget()));
        let by_tuning = self.tuning.as_mut().and_then(|tuning| tuning.tune(now));
        if let Some(rate) = by_silk.or(by_tuning) {
            self.tokens.set_rate(rate);
            self.stats.bytes_per_second = rate;
            self.stats.rate_changes += 1;
        }
    }

    fn passed(&mut self, lane: Lane) -> &mut PriorityStats {
        match lane {
            Lane::Flush => &mut self.stats.flush,
            Lane::L0 => &mut self.stats.l0,
            Lane::Rest => &mut self.stats.rest,
        }
    }

    /// Queues a request. Appends to one extent use one queue, regardless of their lane, to keep
    /// their order.
    fn enqueue(&mut self, lane: Lane, waiting: Waiting) {
        let lane = match waiting.extent {
            None => lane,
            Some(extent) => {
                let (lane, count) = self.extents.entry(extent).or_insert((lane, 0));
                *count += 1;
                *lane
            }
        };
        self.newest += 1;
        self.tokens.enqueue(lane, self.newest, waiting.bytes);
        self.waiting.insert(self.newest, waiting);
    }

    fn grant(&mut self, lane: Lane, number: u64, now: Nanos) -> Submit {
        let waiting = self.waiting.remove(&number).expect("it waits");
        let stats = self.passed(lane);
        stats.bytes += waiting.bytes;
        if now > waiting.since {
            stats.note_wait(now - waiting.since);
        }
        if let Some(extent) = waiting.extent {
            let (_, count) = self.extents.get_mut(&extent).expect("it was noted");
            *count -= 1;
            if *count == 0 {
                self.extents.remove(&extent);
            }
        }
        waiting.submit
    }
}
