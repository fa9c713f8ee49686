//! Clients of block drives. The experiment chooses the requests; the client measures their latency.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use block::nvme::SetId;
use block::{BLOCK_BYTES, Block, BlockDevice, DeviceError, Force};
use drives::ssd::Ssd;
use runtime::{Handle, IoClass, Nanos, Rng};

use crate::failure::Failure;

/// The start and the latency of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub at: Nanos,
    pub took: Nanos,
}

/// The virtual clock.
#[derive(Clone)]
pub(crate) struct Clock {
    handle: Handle,
}

impl Clock {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    pub(super) fn now(&self) -> Nanos {
        self.handle.now()
    }

    pub(super) async fn sleep_until(&self, at: Nanos) {
        self.handle.sleep_until(at).await;
    }
}

/// A range of blocks of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub set: SetId,
    pub first: u64,
    pub blocks: u64,
}

impl Place {
    pub(super) fn bytes(&self) -> u64 {
        self.blocks * u64::from(BLOCK_BYTES)
    }

    /// Returns the whole blocks of the range of `bytes` from `offset`.
    pub(super) fn part(&self, offset: u64, bytes: u64) -> Self {
        let block = u64::from(BLOCK_BYTES);
        let skipped = (offset / block).min(self.blocks);
        let blocks = (bytes / block).min(self.blocks - skipped);
        Self { set: self.set, first: self.first + skipped, blocks }
    }
}

fn contents(block: u64) -> Block {
    Block::new(&(block + 1).to_le_bytes())
}

async fn write(ssd: &Ssd, set: SetId, first: u64, data: Vec<Block>) -> Result<(), DeviceError> {
    ssd.write(set, first, data, IoClass::Flush, Force::No).await
}

/// Writes a range in order, in requests of 128 KiB, with `depth` requests outstanding.
pub(super) async fn fill(
    ssd: &Ssd,
    clock: &Clock,
    place: Place,
    depth: u32,
) -> Result<(), Failure> {
    const REQUEST: u64 = 32;
    let next = Rc::new(Cell::new(place.first));
    let end = place.first + place.blocks;
    let writer = || {
        let (ssd, next) = (ssd.clone(), Rc::clone(&next));
        clock.handle.spawn("fill", async move {
            while next.get() < end {
                let first = next.get();
                let blocks = REQUEST.min(end - first);
                next.set(first + blocks);
                let data = (first..first + blocks).map(contents).collect();
                write(&ssd, place.set, first, data).await.map_err(|error| error.to_string())?;
            }
            Ok::<_, Failure>(())
        })
    };
    let writers: Vec<_> = (0..depth).map(|_| writer()).collect();
    for writer in writers {
        writer.await?;
    }
    Ok(())
}

/// Writes random blocks of a range at `rate` writes per second until `end`. A write does not wait
/// for the writes before.
pub(super) fn write_at_rate(ssd: &Ssd, clock: &Clock, place: Place, rate: f64, end: Nanos) {
    let (ssd, clock) = (ssd.clone(), clock.clone());
    let mut rng = clock.handle.rng("writes at a rate");
    clock.handle.clone().spawn("writes at a rate", async move {
        let begun = clock.now();
        for count in 0_u64.. {
            let at = begun + Nanos::from_micros_f64(count as f64 * 1e6 / rate);
            if at >= end {
                break;
            }
            clock.sleep_until(at).await;
            let block = place.first + rng.below(place.blocks);
            let ssd = ssd.clone();
            clock.handle.spawn("write", async move {
                let done = write(&ssd, place.set, block, vec![contents(block)]).await;
                done.expect("the block is within the set");
            });
        }
    });
}

/// Reads blocks until `end`, one at a time, in the order of `next`.
async fn read_one_by_one(
    ssd: &Ssd,
    clock: &Clock,
    set: SetId,
    mut next: impl FnMut() -> u64,
    end: Nanos,
) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    while clock.now() < end {
        let at = clock.now();
        ssd.read(set, next(), 1, IoClass::ClientRead).await.map_err(|error| error.to_string())?;
        samples.push(Sample { at, took: clock.now() - at });
    }
    Ok(samples)
}

/// Reads the blocks of a range in order, repeatedly, until `end`.
pub(super) async fn read_in_order(
    ssd: &Ssd,
    clock: &Clock,
    place: Place,
    end: Nanos,
) -> Result<Vec<Sample>, Failure> {
    let mut next = (0..place.blocks).cycle().map(|block| place.first + block);
    let next = || next.next().expect("it goes round");
    read_one_by_one(ssd, clock, place.set, next, end).await
}

/// Reads random blocks of a range until `end`, one at a time.
pub(super) async fn read_at_random(
    ssd: &Ssd,
    clock: &Clock,
    place: Place,
    end: Nanos,
) -> Result<Vec<Sample>, Failure> {
    read_picked(ssd, clock, place.set, |random| place.first + random % place.blocks, end).await
}

/// Reads blocks until `end`, one at a time. `pick` maps a random number to a block.
pub(super) async fn read_picked(
    ssd: &Ssd,
    clock: &Clock,
    set: SetId,
    pick: impl Fn(u64) -> u64,
    end: Nanos,
) -> Result<Vec<Sample>, Failure> {
    // Each call has its own random stream.
    let mut rng = Rng::derive(clock.handle.seed() ^ clock.now().0, "reads");
    read_one_by_one(ssd, clock, set, || pick(rng.next_u64()), end).await
}

/// Reads `reads` blocks with `depth` reads outstanding. `pick` maps a random number to a block.
/// Returns the sum of the latencies.
pub(super) async fn read_often(
    ssd: &Ssd,
    clock: &Clock,
    set: SetId,
    pick: impl Fn(u64) -> u64 + Copy + 'static,
    reads: u64,
    depth: u32,
) -> Result<Nanos, Failure> {
    let (left, took) = (Rc::new(Cell::new(reads)), Rc::new(Cell::new(Nanos::ZERO)));
    let reader = |number: u32| {
        let (ssd, clock) = (ssd.clone(), clock.clone());
        let (left, took) = (Rc::clone(&left), Rc::clone(&took));
        let mut rng = Rng::derive(clock.handle.seed() + u64::from(number), "reads often");
        clock.handle.clone().spawn("read often", async move {
            while left.get() > 0 {
                left.set(left.get() - 1);
                let at = clock.now();
                let read = ssd.read(set, pick(rng.next_u64()), 1, IoClass::ClientRead).await;
                read.map_err(|error| error.to_string())?;
                took.set(took.get() + (clock.now() - at));
            }
            Ok::<_, Failure>(())
        })
    };
    let readers: Vec<_> = (0..depth).map(reader).collect();
    for reader in readers {
        reader.await?;
    }
    Ok(took.get())
}

/// Start and end of each period of an activity.
pub(crate) type Stretches = Rc<RefCell<Vec<(Nanos, Nanos)>>>;

/// Records the periods until `end` in which a counter grows, with a resolution of 10 ms. Pauses of
/// up to 100 ms do not end a period.
pub(super) fn when_it_grows(
    clock: &Clock,
    end: Nanos,
    count: impl Fn() -> u64 + 'static,
) -> Stretches {
    let (clock, stretches) = (clock.clone(), Stretches::default());
    let noted = Rc::clone(&stretches);
    clock.handle.clone().spawn("when it grows", async move {
        let mut before = count();
        while clock.now() < end {
            let from = clock.now();
            clock.sleep_until(from + Nanos::from_millis(10)).await;
            let now = count();
            if now > before {
                lengthen(&mut noted.borrow_mut(), from, clock.now());
            }
            before = now;
        }
    });
    stretches
}

fn lengthen(stretches: &mut Vec<(Nanos, Nanos)>, from: Nanos, to: Nanos) {
    match stretches.last_mut() {
        Some(last) if from <= last.1 + Nanos::from_millis(100) => last.1 = to,
        _ => stretches.push((from, to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pauses_do_not_end_a_stretch() {
        let ms = Nanos::from_millis;
        let mut stretches = Vec::new();
        for (from, to) in [(10, 20), (20, 30), (120, 130), (500, 510)] {
            lengthen(&mut stretches, ms(from), ms(to));
        }
        assert_eq!(stretches, [(ms(10), ms(130)), (ms(500), ms(510))]);
    }
}
