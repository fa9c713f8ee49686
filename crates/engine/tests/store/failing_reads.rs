//! Reads that fail during garbage collection: temporarily, without lasting effect, or because pages
//! are damaged.

use std::rc::Rc;

use engine::{
    Durability, Engine, EngineError, Options, PageNo, Shape, Stream, Value, WriteOptions,
};
use runtime::{Handle, Nanos, Rng, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::{create, setup};

const KEYS: u64 = 2_000;
/// One hour in milliseconds.
const HOUR: u64 = 3_600_000;

fn options() -> Options {
    Options { memtable_bytes: 16 << 10, durability: Durability::Log, ..Options::pink() }
}

/// Overwrites random keys `times` times. Returns the number of writes that a full store refused.
async fn overwrite(engine: &Engine<MemoryMedium>, times: u64, rng: &mut Rng) -> u64 {
    let mut refused = 0;
    for _ in 0..times {
        let key = rng.below(KEYS).to_be_bytes();
        let value = Value::Synthetic { seed: rng.next_u64(), len: 300 };
        match engine.put(&key, value, WriteOptions::default(), Nanos::ZERO).await {
            Ok(_) => {}
            Err(EngineError::Full(_)) => refused += 1,
            Err(error) => panic!("{error}: {}", engine.background()),
        }
    }
    refused
}

/// Returns the number of extents that are kept because they could not be collected.
fn kept(engine: &Engine<MemoryMedium>) -> u32 {
    let background = engine.background();
    let (before, _) = background.split_once(" quarantined").expect("it says how many");
    let (_, count) = before.rsplit_once(' ').expect("a number stands there");
    count.parse().expect("it is a number")
}

fn medium(rt: &Runtime, cells: &Rc<Cells>) -> MemoryMedium {
    MemoryMedium::new(&rt.handle(), cells, None)
}

fn cells() -> Rc<Cells> {
    Cells::new(Shape { extents: 70, ..SHAPE })
}

/// Opens the store as another process would.
fn open_again(cells: &Rc<Cells>) -> (Runtime, Engine<MemoryMedium>) {
    let rt = Runtime::new(2);
    let opened = rt.block_on(Engine::open(setup(&rt, &medium(&rt, cells), &options())));
    (rt, opened.expect("it opens"))
}

/// Makes reads of objects fail for a time while a client writes. Returns the number of extents kept
/// at the end of it, and the number of writes refused.
async fn fail_reads(
    handle: &Handle,
    cells: &Cells,
    engine: &Engine<MemoryMedium>,
    long: Nanos,
) -> (u32, u64) {
    cells.fail_reads_of(Some(Stream::Objects));
    let writer = engine.clone();
    let client =
        handle.spawn("writer", async move { overwrite(&writer, 12_000, &mut Rng::new(5)).await });
    handle.sleep(long).await;
    let kept = kept(engine);
    cells.fail_reads_of(None);
    (kept, client.await)
}

#[test]
fn reads_that_fail_for_a_second_cost_no_extent_and_refuse_no_write() {
    let (rt, cells) = (Runtime::new(1), cells());
    let (engine, handle) = (create(&rt, &medium(&rt, &cells), &options()), rt.handle());
    rt.block_on(async move {
        let rng = &mut Rng::new(2);
        assert_eq!(overwrite(&engine, 10_000, rng).await, 0);
        let (at_the_end, refused) =
            fail_reads(&handle, &cells, &engine, Nanos::from_millis(1_000)).await;
        println!("{at_the_end} extents are kept after a second");
        assert!(at_the_end > 0, "none was to be collected");
        assert!(at_the_end <= 20, "{at_the_end} extents were tried within a second");
        assert_eq!(refused, 0, "{}", engine.background());
        handle.sleep(Nanos::from_millis(20_000)).await;
        assert_eq!(kept(&engine), 0, "{}", engine.background());
        assert_eq!(overwrite(&engine, 10_000, rng).await, 0);
        assert_eq!(kept(&engine), 0, "{}", engine.background());
    });
}

#[test]
fn what_could_not_be_read_for_hours_is_collected_when_the_store_is_opened_again() {
    let cells = cells();
    let rt = Runtime::new(1);
    let (engine, handle) = (create(&rt, &medium(&rt, &cells), &options()), rt.handle());
    let own = Rc::clone(&cells);
    rt.block_on(async move {
        assert_eq!(overwrite(&engine, 10_000, &mut Rng::new(2)).await, 0);
        let (kept_then, refused) =
            fail_reads(&handle, &own, &engine, Nanos::from_millis(3 * HOUR)).await;
        assert!(kept_then > 0 && refused > 0, "{kept_then} kept, {refused} refused");
        handle.sleep(Nanos::from_millis(3 * HOUR)).await;
        assert!(kept(&engine) > 0, "an extent is tried without end");
    });
    drop(rt);
    let (rt, engine) = open_again(&cells);
    rt.block_on(async move {
        assert_eq!(kept(&engine), 0, "{}", engine.background());
        assert_eq!(overwrite(&engine, 20_000, &mut Rng::new(3)).await, 0);
        assert_eq!(kept(&engine), 0, "{}", engine.background());
    });
}

#[test]
fn what_is_damaged_is_kept_and_looked_at_again_only_when_the_store_is_opened() {
    let cells = cells();
    let rt = Runtime::new(1);
    let (engine, handle) = (create(&rt, &medium(&rt, &cells), &options()), rt.handle());
    let own = Rc::clone(&cells);
    rt.block_on(async move {
        assert_eq!(overwrite(&engine, 10_000, &mut Rng::new(2)).await, 0);
        engine.flush().await;
        let is_one = |page: &PageNo| {
            page.0 % SHAPE.pages_per_extent == 7 && own.stream_of(*page) == Some(Stream::Objects)
        };
        own.written().into_iter().filter(is_one).take(4).for_each(|page| own.flip(page));
        assert_eq!(overwrite(&engine, 10_000, &mut Rng::new(3)).await, 0);
        let kept_then = kept(&engine);
        assert!(kept_then > 0, "no damage was met: {}", engine.background());
        handle.sleep(Nanos::from_millis(3 * HOUR)).await;
        assert_eq!(kept(&engine), kept_then);
        assert_eq!(engine.stats().gc_quarantined_extents, u64::from(kept_then));
    });
    drop(rt);
    let (rt, engine) = open_again(&cells);
    rt.block_on(async move {
        assert_eq!(kept(&engine), 0);
        overwrite(&engine, 10_000, &mut Rng::new(4)).await;
        assert!(kept(&engine) > 0, "damage was released: {}", engine.background());
    });
}
