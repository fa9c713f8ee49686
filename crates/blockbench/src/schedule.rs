//! Intended start times of the operations of an open loop.
//!
//! One rate for all directions is one lane; the direction of an operation is drawn at its start.
//! Rates by direction are one lane each, and the lane with the earliest arrival is next, as in fio.

use block::BLOCK_BYTES;
use runtime::{Nanos, Rng};

use crate::operation::Direction;
use crate::stream::{Arrivals, Rates};

/// The arrivals of one job of a stream.
pub(super) struct Schedule {
    arrivals: Arrivals,
    lanes: Vec<Lane>,
}

struct Lane {
    /// The direction of the operations; `None` if it is drawn for each operation.
    direction: Option<Direction>,
    /// Nanoseconds from the start to the next arrival. A float, so that spacings below a nanosecond
    /// add up; exact to a nanosecond for a hundred days.
    next: f64,
    spacing: Spacing,
}

/// Nanoseconds from one arrival to the next: per operation, or per byte.
#[derive(Clone, Copy)]
enum Spacing {
    Each(f64),
    Byte(f64),
}

/// An arrival.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Arrival {
    /// The time since the start.
    pub at: Nanos,
    pub direction: Option<Direction>,
    /// The lane of the arrival, for [`Schedule::has`].
    lane: usize,
}

impl Schedule {
    /// Creates the schedule of a stream with operations in these directions.
    pub(super) fn new(rates: Rates, arrivals: Arrivals, directions: &[Direction]) -> Self {
        let lane = |direction, spacing| Lane { direction, next: 0.0, spacing };
        let lanes = match rates {
            Rates::Total(rate) => vec![lane(None, Spacing::Each(1e9 / rate))],
            Rates::Operations(rates) => {
                let of = |direction: &Direction| Spacing::Each(1e9 / rates.of(*direction));
                directions.iter().map(|d| lane(Some(*d), of(d))).collect()
            }
            Rates::Bytes(rates) => {
                let of = |direction: &Direction| Spacing::Byte(1e9 / rates.of(*direction));
                directions.iter().map(|d| lane(Some(*d), of(d))).collect()
            }
        };
        Self { arrivals, lanes }
    }

    /// Returns the next arrival. With rates in bytes, the lane advances only in [`Self::has`], once
    /// the length of the operation is known.
    pub(super) fn next(&mut self, rng: &mut Rng) -> Arrival {
        let lanes = self.lanes.iter().enumerate();
        let earliest = lanes.min_by(|(_, one), (_, other)| one.next.total_cmp(&other.next));
        let lane = earliest.expect("a rate has a lane").0;
        let Lane { direction, next, spacing } = self.lanes[lane];
        if let Spacing::Each(spacing) = spacing {
            self.pass(lane, spacing, rng);
        }
        Arrival { at: Nanos(next as u64), direction, lane }
    }

    /// Sets the number of blocks of an arrival, and advances its lane if the rate is in bytes.
    pub(super) fn has(&mut self, arrival: Arrival, blocks: u64, rng: &mut Rng) {
        if let Spacing::Byte(spacing) = self.lanes[arrival.lane].spacing {
            let bytes = (blocks * u64::from(BLOCK_BYTES)) as f64;
            self.pass(arrival.lane, spacing * bytes, rng);
        }
    }

    fn pass(&mut self, lane: usize, spacing: f64, rng: &mut Rng) {
        self.lanes[lane].next += match self.arrivals {
            Arrivals::Fixed => spacing,
            Arrivals::Poisson => -(1.0 - rng.unit_f64()).ln() * spacing,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PerDirection;

    const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

    /// Returns the directions and start times of reads and writes of `blocks` blocks, in
    /// microseconds.
    fn arrivals(rates: Rates, blocks: u64, count: usize) -> Vec<(Option<Direction>, u64)> {
        let (mut schedule, mut rng) = (Schedule::new(rates, Arrivals::Fixed, &BOTH), Rng::new(1));
        let mut next = || {
            let arrival = schedule.next(&mut rng);
            schedule.has(arrival, blocks, &mut rng);
            (arrival.direction, arrival.at.0 / 1_000)
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn each_direction_has_its_rate() {
        let rates = PerDirection { read: 1e6, write: 5e5, trim: 0.0 };
        let read = |at| (Some(Direction::Read), at);
        let write = |at| (Some(Direction::Write), at);
        let expected = [read(0), write(0), read(1), read(2), write(2), read(3)];
        assert_eq!(arrivals(Rates::Operations(rates), 1, 6), expected);
        let bytes = rates.map(|rate| rate * 8_192.0);
        assert_eq!(arrivals(Rates::Bytes(bytes), 2, 6), expected);
        let long: Vec<u64> = arrivals(Rates::Bytes(bytes), 4, 4).iter().map(|a| a.1).collect();
        assert_eq!(long, [0, 0, 2, 4], "twice as long, half as often");
        assert_eq!(arrivals(Rates::Total(1e6), 1, 3), [(None, 0), (None, 1), (None, 2)]);
    }
}
