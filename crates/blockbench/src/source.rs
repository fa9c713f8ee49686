//! The operations of a stream: their order, places and start times. Plain arithmetic and seeded
//! randomness.

use runtime::{Nanos, Rng};
use workload::trace::TraceError;

use crate::block_sizes::Sizes;
use crate::operation::{Direction, Operation};
use crate::per_direction::PerDirection;
use crate::plan::StreamPlan;
use crate::random_map::RandomMap;
use crate::replay::{Fitted, Replay};
use crate::schedule::Schedule;
use crate::skew::Places;

/// The operations of one job of a stream, in order.
pub(super) struct Source {
    rng: Rng,
    first: u64,
    length: u64,
    sets: u64,
    sizes: PerDirection<Sizes>,
    /// The places of random operations, by direction.
    places: Option<PerDirection<Places>>,
    /// The places that random operations have not yet visited in this pass.
    map: Option<RandomMap>,
    read_share: f64,
    trim_share: f64,
    writes_what_it_trims: bool,
    /// The trace that determines the operations, if there is one.
    replay: Option<Replay>,
    /// The positions of operations in order, by direction.
    next_in_order: [InOrder; Direction::ALL.len()],
    left: u64,
    planned: u64,
    blocks_left: u64,
    planned_blocks: u64,
    /// The start of the stream, once it has begun.
    since: Option<Nanos>,
    duration: Option<Nanos>,
    /// No operation begins at this time or later.
    until: Nanos,
    /// The arrivals of an open loop.
    schedule: Option<Schedule>,
}

/// The positions of operations in order; the sets are visited in turn.
struct InOrder {
    set: usize,
    /// The next block of each set, counted from the beginning of its part.
    at: Vec<u64>,
}

impl InOrder {
    fn new(sets: usize) -> Self {
        Self { set: 0, at: vec![0; sets] }
    }

    /// Returns the next set, and the position of `blocks` blocks in its part of `length` blocks.
    fn next(&mut self, blocks: u64, length: u64) -> (usize, u64) {
        let set = self.set;
        self.set = (set + 1) % self.at.len();
        let first = if self.at[set] + blocks > length { 0 } else { self.at[set] };
        self.at[set] = first + blocks;
        (set, first)
    }
}

impl Source {
    /// Creates the operations of job number `job`, from 0.
    pub(super) fn new(plan: &StreamPlan, job: usize, rng: Rng) -> Self {
        let sets = plan.sets.len() as u64;
        let part = &plan.parts[job];
        let length = part.end - part.start;
        let least = plan.sizes.least();
        let spots = length / least * sets;
        let pass = spots * least;
        let loops = plan.loops.map_or(u64::MAX, |loops| loops.saturating_mul(pass));
        let places = |how| plan.sizes.map(|sizes| Places::new(how, length / sizes.least() * sets));
        Self {
            rng,
            first: part.start,
            length,
            sets,
            sizes: plan.sizes.clone(),
            places: plan.distribution.as_ref().map(places),
            map: plan.has_map.then(|| RandomMap::new(spots)),
            read_share: plan.read_share,
            trim_share: plan.trim_share,
            writes_what_it_trims: plan.writes_what_it_trims,
            replay: plan.replay.as_ref().map(Replay::new),
            next_in_order: std::array::from_fn(|_| InOrder::new(plan.sets.len())),
            left: plan.operations,
            planned: plan.operations,
            blocks_left: plan.blocks.min(loops),
            planned_blocks: plan.blocks.min(loops),
            since: None,
            duration: plan.duration,
            until: Nanos::MAX,
            schedule: plan
                .rates
                .map(|(rates, arrivals)| Schedule::new(rates, arrivals, &plan.directions)),
        }
    }

    /// Begins the stream: its time counts from `now`.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.since = Some(now);
        self.until = self.duration.map_or(Nanos::MAX, |duration| now + duration);
    }

    /// Returns the next operation; `None` at the end. Requires: a client is free at `now`.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Operation> {
        if self.replay.is_some() {
            return self.next_of_trace(now);
        }
        let arrival = self.schedule.as_mut().map(|schedule| schedule.next(&mut self.rng));
        let begun = |arrival: Nanos| Nanos(self.started().0.saturating_add(arrival.0));
        let at = arrival.map_or(now, |arrival| begun(arrival.at));
        if self.left == 0 || at >= self.until {
            return None;
        }
        self.left -= 1;
        let given = arrival.and_then(|arrival| arrival.direction);
        let direction = given.unwrap_or_else(|| self.next_direction());
        let blocks = self.sizes.of(direction).draw(&mut self.rng);
        if let (Some(arrival), Some(schedule)) = (arrival, &mut self.schedule) {
            schedule.has(arrival, blocks, &mut self.rng);
        }
        if blocks > self.blocks_left {
            self.stop();
            return None;
        }
        self.blocks_left -= blocks;
        let (set, offset) = self.next_place(direction, blocks);
        let is_written_after = self.writes_what_it_trims;
        Some(Operation { at, direction, set, first: self.first + offset, blocks, is_written_after })
    }

    fn next_of_trace(&mut self, now: Nanos) -> Option<Operation> {
        let (replay, since) = (self.replay.as_mut()?, self.since?);
        if self.left == 0 {
            return None;
        }
        let next = replay.next(since, now, self.first).filter(|next| next.at < self.until);
        self.left = if next.is_some() { self.left - 1 } else { 0 };
        next
    }

    /// Returns the error that ended a trace early, once.
    pub(super) fn failure(&mut self) -> Option<TraceError> {
        self.replay.as_mut()?.failure()
    }

    /// Returns the changes to the operations of a trace that fit them to the drive; `None` without
    /// a trace.
    pub(super) fn fitted(&self) -> Option<Fitted> {
        self.replay.as_ref().map(Replay::fitted)
    }

    fn next_direction(&mut self) -> Direction {
        if self.read_share >= 1.0 || self.rng.chance(self.read_share) {
            Direction::Read
        } else if self.trim_share >= 1.0 || self.rng.chance(self.trim_share) {
            Direction::Trim
        } else {
            Direction::Write
        }
    }

    /// Returns the index of the set, and the offset in its part.
    fn next_place(&mut self, direction: Direction, blocks: u64) -> (usize, u64) {
        // Aligned like in fio: to the smallest size of the direction.
        let unit = self.sizes.of(direction).least();
        if let Some(map) = &mut self.map {
            let place = map.next(&mut self.rng);
            return ((place % self.sets) as usize, place / self.sets * unit);
        }
        match self.places.as_ref().map(|places| places.of(direction)) {
            None => self.next_in_order[direction as usize].next(blocks, self.length),
            Some(Places::Random) => {
                let room = (self.length - blocks) / unit + 1;
                let place = self.rng.below(room * self.sets);
                ((place % self.sets) as usize, place / self.sets * unit)
            }
            Some(places) => {
                let place = places.draw(self.length / unit * self.sets, &mut self.rng);
                // An operation that would cross the end of the part is shifted so that it ends
                // there.
                let offset = (place / self.sets * unit).min(self.length - blocks);
                ((place % self.sets) as usize, offset)
            }
        }
    }

    fn started(&self) -> Nanos {
        self.since.expect("a stream begins before its operations")
    }

    /// Returns the time from which no operation begins.
    pub(super) fn until(&self) -> Nanos {
        self.until
    }

    /// Prevents further operations.
    pub(super) fn stop(&mut self) {
        self.left = 0;
    }

    /// Returns the progress of the stream, from 0 to 1.
    pub(super) fn progress(&self, now: Nanos) -> f64 {
        if self.left == 0 {
            return 1.0;
        }
        let share = |done: u64, all: u64| done as f64 / all as f64;
        let by_time = self.since.zip(self.duration).map_or(0.0, |(since, duration)| {
            share(now.saturating_since(since).0, duration.0.max(1))
        });
        // A limit that is not set is `u64::MAX`, of which the share is practically 0.
        let by_blocks = share(self.planned_blocks - self.blocks_left, self.planned_blocks);
        share(self.planned - self.left, self.planned).max(by_blocks).max(by_time).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::fake::{set, stream_plan};
    use crate::skew::Distribution;
    use crate::stream::{Arrivals, Rates};

    const START: Nanos = Nanos(1_000);

    /// Returns the parts of a single job.
    fn part(first: u64, end: u64) -> Vec<Range<u64>> {
        std::iter::once(first..end).collect()
    }

    fn source(change: impl FnOnce(&mut StreamPlan)) -> Source {
        let mut plan = stream_plan();
        change(&mut plan);
        let mut source = Source::new(&plan, 0, Rng::new(1));
        source.begin(START);
        source
    }

    fn all(source: &mut Source) -> Vec<Operation> {
        std::iter::from_fn(|| source.next(START)).collect()
    }

    #[test]
    fn operations_in_order_wrap_around_their_part_and_reads_and_writes_go_on_by_themselves() {
        let mut reads = source(|plan| {
            (plan.parts, plan.sizes, plan.operations) = (part(100, 130), Sizes::One(8).into(), 5);
        });
        let firsts: Vec<u64> = all(&mut reads).iter().map(|op| op.first).collect();
        assert_eq!(firsts, [100, 108, 116, 100, 108]);
        let mut both = source(|plan| {
            (plan.parts, plan.operations, plan.read_share) = (part(0, 1_000), 100, 0.5);
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
            (plan.parts, plan.sizes, plan.operations) = (part(7, 50), Sizes::One(4).into(), 1_000);
            plan.distribution = Some(Distribution::Random);
        });
        let mut firsts: Vec<u64> = all(&mut source).iter().map(|op| op.first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts, (0..10).map(|place| 7 + 4 * place).collect::<Vec<_>>());
    }

    #[test]
    fn with_a_map_reads_and_writes_go_to_each_place_once_a_pass() {
        let mut source = source(|plan| {
            plan.sets = (1..=2).zip(0..).map(|(number, at)| (set(number), at)).collect();
            (plan.parts, plan.sizes, plan.operations) = (part(7, 50), Sizes::One(4).into(), 60);
            (plan.distribution, plan.has_map) = (Some(Distribution::Random), true);
            plan.read_share = 0.5;
        });
        let all = all(&mut source);
        let places =
            |ops: &[Operation]| ops.iter().map(|op| (op.set, op.first)).collect::<Vec<_>>();
        let passes: Vec<_> = all.chunks(20).map(places).collect();
        for pass in &passes {
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            let each = (0..2).flat_map(|set| (0..10).map(move |place| (set, 7 + 4 * place)));
            assert_eq!(sorted, each.collect::<Vec<_>>());
        }
        assert!(passes[0] != passes[1] && passes[1] != passes[2], "a new order each");
        assert!(all.iter().any(|op| op.direction == Direction::Read));
        assert!(all.iter().any(|op| op.direction == Direction::Write));
    }

    #[test]
    fn operations_begin_at_multiples_of_the_smallest_size_of_their_direction() {
        for distribution in [Distribution::Random, Distribution::Zipf(1.1)] {
            let mut source = source(|plan| {
                (plan.parts, plan.operations, plan.read_share) = (part(0, 1_600), 4_000, 0.5);
                plan.sizes = Sizes::One(1).into();
                plan.sizes.write = Sizes::One(16);
                plan.distribution = Some(distribution.clone());
            });
            let (reads, writes): (Vec<Operation>, Vec<Operation>) =
                all(&mut source).into_iter().partition(|op| op.direction == Direction::Read);
            assert!(writes.iter().all(|op| op.first % 16 == 0), "{distribution:?}");
            assert!(reads.iter().any(|op| op.first % 16 != 0), "{distribution:?}");
            // If ranks went beyond the places of writes, all of these would fall to the last place.
            let last = writes.iter().filter(|op| op.first == 1_584).count();
            assert!(last < writes.len() / 2, "{last} of {}", writes.len());
        }
    }

    #[test]
    fn passes_are_of_whole_operations() {
        let mut source = source(|plan| {
            (plan.parts, plan.sizes, plan.operations) = (part(0, 43), Sizes::One(4).into(), 1_000);
            (plan.distribution, plan.has_map) = (Some(Distribution::Random), true);
            plan.loops = Some(3);
        });
        assert_eq!(all(&mut source).len(), 3 * 10);
    }

    #[test]
    fn arrivals_beyond_all_time_end_a_stream() {
        let mut source = source(|plan| {
            plan.operations = u64::MAX;
            plan.rates = Some((Rates::Total(1e-6), Arrivals::Fixed));
        });
        assert!(all(&mut source).len() < 20_000, "584 years");
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
                plan.rates = Some((Rates::Total(1e6), arrivals));
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

    #[test]
    fn loops_end_a_stream_and_tell_how_far_it_is() {
        let mut source = source(|plan| (plan.parts, plan.loops) = (part(0, 10), Some(2)));
        (0..5).for_each(|_| assert!(source.next(START).is_some()));
        assert!((source.progress(START) - 0.25).abs() < 1e-9);
        assert_eq!(all(&mut source).len(), 15);
        assert!((source.progress(START) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn all_sets_have_their_turns_in_order_and_their_share_at_random() {
        let over_three = |plan: &mut StreamPlan| {
            plan.sets = (1..=3).zip(0..).map(|(number, at)| (set(number), at)).collect();
            (plan.parts, plan.operations) = (part(0, 2), 9);
        };
        let mut in_order = source(over_three);
        let places: Vec<_> = all(&mut in_order).iter().map(|op| (op.set, op.first)).collect();
        let round = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 0), (1, 0), (2, 0)];
        assert_eq!(places, round);
        for how in [Distribution::Random, Distribution::Zipf(0.5)] {
            let mut random = source(|plan| {
                over_three(plan);
                (plan.parts, plan.operations) = (part(0, 100), 30_000);
                plan.distribution = Some(how);
            });
            let mut counts = [0_u32; 3];
            for op in all(&mut random) {
                counts[op.set] += 1;
            }
            assert!(counts.iter().all(|count| count.abs_diff(10_000) < 2_000), "{counts:?}");
        }
    }

    #[test]
    fn several_sizes_stay_in_their_part_and_within_their_bytes() {
        let sizes = Sizes::Split(vec![(2, 0.5), (16, 1.0)]);
        let hill = Distribution::Normal(100.0);
        for how in [None, Some(Distribution::Random), Some(hill)] {
            let mut source = source(|plan| {
                (plan.parts, plan.sizes) = (part(5, 42), sizes.clone().into());
                (plan.blocks, plan.distribution) = (9_001, how);
            });
            let all = all(&mut source);
            assert!(all.iter().all(|op| op.first >= 5 && op.first + op.blocks <= 42));
            let blocks: u64 = all.iter().map(|op| op.blocks).sum();
            assert!((9_001 - 16..=9_001).contains(&blocks), "{blocks}");
            assert!(all.iter().any(|op| op.blocks == 2) && all.iter().any(|op| op.blocks == 16));
        }
    }

    #[test]
    fn trims_are_a_share_of_what_does_not_read() {
        let mut source = source(|plan| {
            (plan.operations, plan.read_share, plan.trim_share) = (100_000, 0.5, 0.2);
        });
        let all = all(&mut source);
        let share = |direction| {
            all.iter().filter(|op| op.direction == direction).count() as f64 / all.len() as f64
        };
        assert!((share(Direction::Trim) - 0.1).abs() < 0.01);
        assert!((share(Direction::Write) - 0.4).abs() < 0.01);
    }
}
