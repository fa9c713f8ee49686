//! Which operation a stream does next, and when. Plain arithmetic and seeded randomness.

use runtime::{Nanos, Rng};

use super::job::Arrivals;
use super::plan::StreamPlan;
use super::report::Direction;

/// The next operation of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Operation {
    /// When it is to begin.
    pub at: Nanos,
    pub direction: Direction,
    /// Its first block.
    pub first: u64,
}

/// Operations of one stream, in order.
pub(super) struct Source {
    rng: Rng,
    first: u64,
    places: u64,
    blocks: u64,
    is_random: bool,
    read_share: f64,
    /// Where reads and writes in order go on.
    next_place: [u64; 2],
    left: u64,
    planned: u64,
    /// When it began, once it has.
    since: Option<Nanos>,
    duration: Option<Nanos>,
    /// Nothing begins from here on.
    until: Nanos,
    /// Arrivals of an open loop.
    schedule: Option<Schedule>,
}

struct Schedule {
    arrivals: Arrivals,
    spacing: f64,
    /// Nanoseconds from the start to the next arrival. As a float, so that spacings below a
    /// nanosecond add up; exact to a nanosecond for a hundred days.
    next: f64,
}

impl Source {
    pub(super) fn new(plan: &StreamPlan, rng: Rng) -> Self {
        Self {
            rng,
            first: plan.first,
            places: plan.places,
            blocks: u64::from(plan.blocks),
            is_random: plan.is_random,
            read_share: plan.read_share,
            next_place: [0; 2],
            left: plan.operations,
            planned: plan.operations,
            since: None,
            duration: plan.duration,
            until: Nanos::MAX,
            schedule: plan.rate.map(|(rate, arrivals)| Schedule {
                arrivals,
                spacing: 1e9 / rate,
                next: 0.0,
            }),
        }
    }

    /// The stream begins. Its time counts from now.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.since = Some(now);
        self.until = self.duration.map_or(Nanos::MAX, |duration| now + duration);
    }

    /// The next operation; none if the stream is over. Asked at the instant at which somebody is
    /// free to do it.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Operation> {
        let at = self.next_at(now);
        if self.left == 0 || at >= self.until {
            return None;
        }
        self.left -= 1;
        let is_read = self.read_share >= 1.0 || self.rng.chance(self.read_share);
        let direction = if is_read { Direction::Read } else { Direction::Write };
        let place = if self.is_random {
            self.rng.below(self.places)
        } else {
            let next = &mut self.next_place[usize::from(is_read)];
            let place = *next;
            *next = if place + 1 == self.places { 0 } else { place + 1 };
            place
        };
        Some(Operation { at, direction, first: self.first + place * self.blocks })
    }

    fn next_at(&mut self, now: Nanos) -> Nanos {
        let Some(schedule) = &mut self.schedule else { return now };
        let since = self.since.expect("a stream begins before its operations");
        let at = since + Nanos(schedule.next as u64);
        schedule.next += match schedule.arrivals {
            Arrivals::Fixed => schedule.spacing,
            Arrivals::Poisson => -(1.0 - self.rng.unit_f64()).ln() * schedule.spacing,
        };
        at
    }

    /// Nothing more begins.
    pub(super) fn stop(&mut self) {
        self.left = 0;
    }

    /// How far the stream is, 0 to 1.
    pub(super) fn progress(&self, now: Nanos) -> f64 {
        if self.left == 0 {
            return 1.0;
        }
        let share = |done: u64, all: u64| done as f64 / all as f64;
        let by_time = self.since.zip(self.duration).map_or(0.0, |(since, duration)| {
            share(now.saturating_since(since).0, duration.0.max(1))
        });
        // A stream without a number of operations has done none of so many.
        share(self.planned - self.left, self.planned).max(by_time).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fake::stream_plan;

    const START: Nanos = Nanos(1_000);

    fn source(change: impl FnOnce(&mut StreamPlan)) -> Source {
        let mut plan = stream_plan();
        change(&mut plan);
        let mut source = Source::new(&plan, Rng::new(1));
        source.begin(START);
        source
    }

    fn all(source: &mut Source) -> Vec<Operation> {
        std::iter::from_fn(|| source.next(START)).collect()
    }

    #[test]
    fn operations_in_order_wrap_around_their_part_and_reads_and_writes_go_on_by_themselves() {
        let mut reads = source(|plan| {
            (plan.first, plan.places, plan.blocks, plan.operations) = (100, 3, 8, 5);
        });
        let firsts: Vec<u64> = all(&mut reads).iter().map(|op| op.first).collect();
        assert_eq!(firsts, [100, 108, 116, 100, 108]);
        let mut both = source(|plan| {
            (plan.places, plan.operations, plan.read_share) = (1_000, 100, 0.5);
        });
        let both = all(&mut both);
        for direction in [Direction::Read, Direction::Write] {
            let firsts = both.iter().filter(|op| op.direction == direction).map(|op| op.first);
            assert!(firsts.enumerate().all(|(i, first)| first == i as u64));
        }
    }

    #[test]
    fn random_operations_reach_all_of_their_part_and_nothing_else() {
        let mut source = source(|plan| {
            (plan.first, plan.places, plan.blocks, plan.operations) = (7, 10, 4, 1_000);
            plan.is_random = true;
        });
        let mut firsts: Vec<u64> = all(&mut source).iter().map(|op| op.first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts, (0..10).map(|place| 7 + 4 * place).collect::<Vec<_>>());
    }

    #[test]
    fn shares_of_reads_are_those_asked_for() {
        for share in [0.0, 0.3, 0.7, 1.0] {
            let mut source = source(|plan| (plan.operations, plan.read_share) = (100_000, share));
            let reads =
                all(&mut source).iter().filter(|op| op.direction == Direction::Read).count();
            assert!((reads as f64 / 1e5 - share).abs() < 0.01, "{reads} for {share}");
        }
    }

    #[test]
    fn arrivals_keep_their_rate_and_end_with_the_duration() {
        for arrivals in [Arrivals::Fixed, Arrivals::Poisson] {
            let mut source = source(|plan| {
                (plan.operations, plan.duration) = (u64::MAX, Some(Nanos::from_millis(100)));
                plan.rate = Some((1e6, arrivals));
            });
            let all = all(&mut source);
            assert!((all.len() as f64 / 1e5 - 1.0).abs() < 0.02, "{}", all.len());
            assert_eq!(all[0].at, START);
            assert!(all.iter().all(|op| op.at < START + Nanos::from_millis(100)));
            assert!(all.is_sorted_by_key(|op| op.at));
            if arrivals == Arrivals::Fixed {
                assert_eq!((all.len(), all[70].at), (100_000, START + Nanos::from_micros(70)));
            }
        }
    }

    #[test]
    fn the_first_end_that_is_reached_counts() {
        let mut source = source(|plan| {
            (plan.operations, plan.duration) = (4, Some(Nanos::from_micros(10)));
        });
        assert!(source.next(START).is_some());
        assert!((source.progress(START) - 0.25).abs() < 1e-9);
        assert!((source.progress(START + Nanos::from_micros(5)) - 0.5).abs() < 1e-9);
        assert_eq!(source.next(START + Nanos::from_micros(10)), None);
        assert!(source.next(START + Nanos::from_micros(9)).is_some());
        source.stop();
        assert_eq!(source.next(START), None);
        assert!((source.progress(START) - 1.0).abs() < 1e-9);
    }
}
