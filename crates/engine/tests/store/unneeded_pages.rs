//! Pages of log and manifest that cannot be read. A store on files keeps what it has released: where nobody needs such a page the
//! store opens, with all that was acknowledged, and where it may be needed it does not open.
//!
//! A failure prints its seed: `LEVELHEAD_SEED=3 cargo test -p engine --test store unneeded`; `LEVELHEAD_TRIALS=200` asks for more of them.

use std::collections::BTreeMap;
use std::rc::Rc;

use engine::Engine;
use pages::{OpenError, PageFault, PageNo, Shape, Stream, Value, WriteOptions};
use runtime::{Nanos, Rng, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::{logged, seeds};

fn medium(rt: &Runtime, cells: &Rc<Cells>) -> MemoryMedium {
    MemoryMedium::new(&rt.handle(), cells, None)
}

/// The last write of each key.
type Acknowledged = BTreeMap<u64, u64>;

/// Writes `count` times under few keys, and loses power. How long values are differs from write to write.
fn write(
    engine: &Engine<MemoryMedium>,
    count: u64,
    from: u64,
) -> impl Future<Output = Acknowledged> {
    let engine = engine.clone();
    async move {
        let mut acknowledged = Acknowledged::new();
        for round in from..from + count {
            let key = round * 7 % 90;
            let value = Value::Synthetic { seed: round, len: 50 + (round % 5 * 150) as u32 };
            let (name, options) = (key.to_be_bytes(), WriteOptions::default());
            engine.put(&name, value, options, Nanos::ZERO).await.expect("it is written");
            acknowledged.insert(key, round);
        }
        acknowledged
    }
}

/// A store that has lost power after so many writes in each of its lives.
fn lose_power_after(lives: &[u64]) -> (Rc<Cells>, Acknowledged) {
    let cells = Cells::of_file(Shape { extents: 60, ..SHAPE });
    let mut all = Acknowledged::new();
    let mut from = 1;
    for (life, count) in (0..).zip(lives) {
        let rt = Runtime::new(life);
        let (setup, count) = (logged(&rt, medium(&rt, &cells)), *count);
        let acknowledged = rt.block_on(async move {
            let engine = match life {
                0 => Engine::create(setup).expect("it fits"),
                _ => Engine::open(setup).await.expect("it opens"),
            };
            write(&engine, count, from).await
        });
        from += count;
        all.extend(acknowledged);
    }
    (cells, all)
}

/// Opens a copy of which these pages cannot be read. Whether that goes well: then all that was acknowledged is there, and what is
/// written then as well when it is opened once more.
fn opens(cells: &Cells, acknowledged: &Acknowledged, lost: &[PageNo], what: &str) -> bool {
    let cells = cells.copy();
    cells.set_unreadable(lost.iter().copied());
    let mut all = acknowledged.clone();
    for life in 0..2 {
        let rt = Runtime::new(9 + life);
        let (setup, expected, what) =
            (logged(&rt, medium(&rt, &cells)), all.clone(), what.to_owned());
        let written = rt.block_on(async move {
            let engine = match Engine::open(setup).await {
                Ok(engine) => engine,
                Err(OpenError::Damaged(_, PageFault::Unreadable)) => return None,
                Err(error) => panic!("{what}: {error}"),
            };
            check(&engine, &expected, &what).await;
            Some(write(&engine, 30, 1_000_000).await)
        });
        let Some(written) = written else { return life > 0 };
        all.extend(written);
        cells.set_unreadable([]);
    }
    true
}

async fn check(engine: &Engine<MemoryMedium>, expected: &Acknowledged, what: &str) {
    for (key, round) in expected {
        let found = engine.get(&key.to_be_bytes(), Nanos::ZERO).await;
        let found = found.unwrap_or_else(|error| panic!("{what}: key {key}: {error}"));
        let is_right = matches!(found.value, Some(Value::Synthetic { seed, .. }) if seed == *round);
        assert!(is_right, "{what}: key {key}, written in {round}: {:?}", found.value);
    }
}

fn is_first(page: PageNo) -> bool {
    page.0.is_multiple_of(SHAPE.pages_per_extent)
}

fn pages_of(cells: &Cells, stream: Stream) -> Vec<PageNo> {
    let mut pages = cells.written();
    pages.retain(|page| cells.stream_of(*page) == Some(stream) && !is_first(*page));
    pages
}

#[test]
fn one_page_that_cannot_be_read_and_is_not_needed_does_not_shut_a_store() {
    for stream in [Stream::Log, Stream::Manifest] {
        let (mut all, mut opened) = (0, 0);
        for writes in (150..1_600).step_by(145) {
            let (cells, acknowledged) = lose_power_after(&[writes]);
            let pages = pages_of(&cells, stream);
            let opens = |page: &&PageNo| {
                let what = format!("{writes} writes, without {page:?} of {stream:?}");
                opens(&cells, &acknowledged, &[**page], &what)
            };
            opened += pages.iter().filter(opens).count();
            all += pages.len();
        }
        println!("{stream:?}: of {all} pages {opened} are not needed");
        assert!(opened > all / 10, "{stream:?}: {opened} of {all} pages are not needed");
        assert!(opened < all, "{stream:?}: none is needed");
    }
}

#[test]
fn unneeded_pages_are_told_from_those_that_count() {
    let (mut opened, mut refused) = (0, 0);
    for seed in seeds(150) {
        let rng = &mut Rng::new(seed);
        let lives: Vec<u64> = (0..=rng.below(3)).map(|_| 1 + rng.below(500)).collect();
        let (cells, acknowledged) = lose_power_after(&lives);
        let journal = [pages_of(&cells, Stream::Log), pages_of(&cells, Stream::Manifest)].concat();
        for _ in 0..8 {
            let count = 1 + rng.below(4);
            let lost = (0..count).map(|_| journal[rng.below(journal.len() as u64) as usize]);
            let lost: Vec<PageNo> = lost.collect();
            let what = format!("LEVELHEAD_SEED={seed}, lives of {lives:?}, without {lost:?}");
            if opens(&cells, &acknowledged, &lost, &what) {
                opened += 1;
            } else {
                refused += 1;
            }
        }
    }
    println!("{opened} opened, {refused} refused");
    let are_many = seeds(150).count() > 20;
    assert!(!are_many || opened > 0 && refused > 0, "{opened} opened, {refused} refused");
}
