//! When the operations of an open loop are to begin.
//!
//! A rate of all directions together is one lane: what an operation does is drawn when its time has
//! come. Rates by direction are a lane each, and the earliest is next, as fio has it.

use runtime::{Nanos, Rng};

use block::BLOCK_BYTES;

use super::report::Direction;
use super::stream::{Arrivals, Rates};

/// Arrivals of one of a stream's jobs.
pub(super) struct Schedule {
    arrivals: Arrivals,
    lanes: Vec<Lane>,
}

struct Lane {
    /// What its operations do, where it is not drawn.
    direction: Option<Direction>,
    /// Nanoseconds from the start to the next arrival. As a float, so that spacings below a
    /// nanosecond add up; exact to a nanosecond for a hundred days.
    next: f64,
    spacing: Spacing,
}

/// Nanoseconds from an arrival to the next.
#[derive(Clone, Copy)]
enum Spacing {
    Each(f64),
    Byte(f64),
}

/// The next arrival.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Arrival {
    /// From the start.
    pub at: Nanos,
    pub direction: Option<Direction>,
    /// What is to be told how many blocks it has.
    lane: usize,
}

impl Schedule {
    /// Of a stream whose operations go in these directions.
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

    /// Takes the next arrival. Those of rates in bytes are asked for again once their length is
    /// known: see [`Self::has`].
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

    /// An arrival has so many blocks.
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
    use super::super::PerDirection;
    use super::*;

    const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

    /// When reads and writes of so many blocks are to begin, in microseconds.
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
