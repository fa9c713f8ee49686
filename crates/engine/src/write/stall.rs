//! Write stalls by pending compactions: the rules of `RocksDB` 6.23
//! (`GetWriteStallConditionAndCause`, `SetupDelay`, the write controller). Memtables that wait for
//! their flush also stop writes; that check comes first.

use runtime::Nanos;

use crate::options::tables::TableOptions;

/// The stall condition of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stall {
    None,
    Delayed,
    Stopped,
}

/// The compaction load of the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The number of L0 tables, including those in compactions.
    pub l0: usize,
    /// Pending compaction bytes.
    pub pending_bytes: u64,
}

impl Load {
    pub(crate) fn stall(&self, options: &TableOptions) -> Stall {
        let l0 = self.l0 as u64;
        if l0 >= u64::from(options.l0_stop_trigger)
            || self.pending_bytes >= options.hard_pending_bytes
        {
            Stall::Stopped
        } else if l0 >= u64::from(options.l0_slowdown_trigger)
            || self.pending_bytes >= options.soft_pending_bytes
        {
            Stall::Delayed
        } else {
            Stall::None
        }
    }

    /// Whether the load is close to stopping writes.
    fn is_near_stop(&self, options: &TableOptions) -> bool {
        let TableOptions { soft_pending_bytes: soft, hard_pending_bytes: hard, .. } = *options;
        self.l0 as u64 + 2 >= u64::from(options.l0_stop_trigger)
            || self.pending_bytes >= soft + (hard - soft) / 4 * 3
    }

    /// Whether more than one compaction may run.
    pub(crate) fn is_under_pressure(&self, options: &TableOptions) -> bool {
        let (trigger, slowdown) = (options.l0_compaction_trigger, options.l0_slowdown_trigger);
        let many = (2 * trigger).min(trigger + (slowdown - trigger) / 4);
        self.stall(options) != Stall::None
            || self.l0 >= many as usize
            || self.pending_bytes >= options.soft_pending_bytes / 4
    }
}

/// The rate of delayed writes.
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    /// Bytes per second; kept for the next delay.
    rate: f64,
    stall: Stall,
    pending_bytes: u64,
    /// Bytes that may be written at once.
    credit: f64,
    refills_at: Option<Nanos>,
}

/// The interval at which credit is granted, and the shortest delay.
const REFILL: Nanos = Nanos::from_millis(1);
const LEAST_RATE: f64 = (16 << 10) as f64;

impl Throttle {
    pub(crate) fn new(options: &TableOptions) -> Self {
        Self {
            rate: options.delayed_write_bytes_per_s as f64,
            stall: Stall::None,
            pending_bytes: 0,
            credit: 0.0,
            refills_at: None,
        }
    }

    pub(crate) fn stall(&self) -> Stall {
        self.stall
    }

    /// Updates the rate after a flush or compaction: writes slow down while the pending bytes grow,
    /// and speed up again when they fall. A new delay starts with the rate of the previous one,
    /// somewhat raised.
    pub(crate) fn note(&mut self, load: Load, options: &TableOptions) {
        let most = options.delayed_write_bytes_per_s as f64;
        let stall = load.stall(options);
        let factor = match (self.stall, stall) {
            (Stall::Delayed, Stall::None) => 1.4,
            (Stall::Delayed, Stall::Delayed) if load.is_near_stop(options) => 0.6,
            (Stall::Delayed, Stall::Delayed) if load.pending_bytes < self.pending_bytes => 1.25,
            (Stall::Delayed, Stall::Delayed) => 0.8,
            _ => 1.0,
        };
        self.rate = (self.rate * factor).max(LEAST_RATE).min(most);
        if stall != Stall::Delayed {
            (self.credit, self.refills_at) = (0.0, None);
        }
        (self.stall, self.pending_bytes) = (stall, load.pending_bytes);
    }

    /// Returns the delay of a write of `bytes` bytes, and deducts the bytes from the credit.
    pub(crate) fn delay(&mut self, now: Nanos, bytes: u64) -> Nanos {
        if self.stall != Stall::Delayed {
            return Nanos::ZERO;
        }
        let bytes = bytes as f64;
        let refills_at = self.refills_at.unwrap_or(now);
        if self.credit < bytes && refills_at <= now {
            let elapsed = now - refills_at + REFILL;
            self.credit += elapsed.as_secs_f64() * self.rate;
            self.refills_at = Some(now + REFILL);
        }
        if self.credit >= bytes {
            self.credit -= bytes;
            return Nanos::ZERO;
        }
        let needed = (bytes - self.credit) / self.rate;
        self.credit = 0.0;
        let refills_at = self.refills_at.unwrap_or(now) + Nanos((needed * 1e9) as u64);
        self.refills_at = Some(refills_at);
        (refills_at - now).max(REFILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn load(l0: usize, pending_gib: u64) -> Load {
        Load { l0, pending_bytes: pending_gib * GIB }
    }

    #[test]
    fn writes_are_delayed_and_stopped_by_tables_of_l0_and_by_pending_bytes() {
        let options = &TableOptions::default();
        for (l0, pending, stall) in [
            (19, 63, Stall::None),
            (20, 0, Stall::Delayed),
            (0, 64, Stall::Delayed),
            (35, 255, Stall::Delayed),
            (36, 0, Stall::Stopped),
            (0, 256, Stall::Stopped),
        ] {
            assert_eq!(load(l0, pending).stall(options), stall, "{l0} tables, {pending} GiB");
        }
        assert!(!load(7, 15).is_under_pressure(options));
        assert!(load(8, 0).is_under_pressure(options) && load(0, 16).is_under_pressure(options));
    }

    #[test]
    fn the_rate_follows_what_is_pending() {
        let options = &TableOptions::default();
        let mut throttle = Throttle::new(options);
        let most = options.delayed_write_bytes_per_s as f64;
        let mut per_mille_after = |l0, pending| {
            throttle.note(load(l0, pending), options);
            (throttle.rate / most * 1e3).round() as u64
        };
        assert_eq!(per_mille_after(20, 0), 1_000, "the first delay");
        assert_eq!(per_mille_after(21, 0), 800, "nothing fell");
        assert_eq!(per_mille_after(34, 0), 480, "near the stop");
        assert_eq!(per_mille_after(22, 1), 384);
        assert_eq!(per_mille_after(22, 0), 480, "it fell");
        assert_eq!(per_mille_after(3, 0), 672, "kept for the next time");
        assert_eq!(per_mille_after(20, 0), 672);
    }

    #[test]
    fn delayed_writes_get_their_rate() {
        let options = &TableOptions::default();
        let mut throttle = Throttle::new(options);
        assert_eq!(throttle.delay(Nanos::ZERO, 1_000), Nanos::ZERO, "nothing is delayed");
        throttle.note(load(20, 0), options);
        let (mut now, mut written) = (Nanos::from_millis(5), 0_u64);
        let end = now + Nanos::from_millis(2_000);
        while now < end {
            let delay = throttle.delay(now, 1_040);
            assert!(delay == Nanos::ZERO || delay >= REFILL);
            now += delay;
            written += 1_040;
        }
        let rate = written as f64 / 2.0 / options.delayed_write_bytes_per_s as f64;
        assert!((0.97..1.03).contains(&rate), "{rate}");
    }
}
