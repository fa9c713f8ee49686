//! A limited medium over a plain one, in virtual time.

mod memory;

use std::cell::Cell;
use std::rc::Rc;

use engine::{ExtentId, Medium, PageNo, Stream};
use runtime::{Handle, IoClass, Nanos, PageImage, Runtime};
use stacks::limiter::{Limited, LimiterOptions, RateLimiterOptions, SilkOptions};

use crate::memory::{MemoryMedium, SHAPE};

const MB: u64 = 1_000_000;
const END: Nanos = Nanos::from_millis(10_000);

/// A limited medium, its inner medium, and the runtime.
struct Stand {
    rt: Runtime,
    handle: Handle,
    inside: MemoryMedium,
    medium: Limited<MemoryMedium>,
}

fn stand(options: &LimiterOptions) -> Stand {
    let rt = Runtime::new(3);
    let handle = rt.handle();
    let inside = MemoryMedium::new(&handle);
    let medium = Limited::new(&handle, inside.clone(), options);
    Stand { rt, handle, inside, medium }
}

fn images(pages: u32) -> Vec<PageImage> {
    vec![PageImage::new(&[1; 8]); pages as usize]
}

impl Stand {
    /// Spawns a task that writes runs of `pages` to an extent of its own, one after the other,
    /// forever.
    fn write_forever(&self, extent: u32, pages: u32, class: IoClass) {
        let medium = self.medium.clone();
        self.handle.spawn("writer", async move {
            loop {
                let first = SHAPE.page(ExtentId(extent), 0);
                medium.append_run(first, images(pages), class).await.expect("it is written");
            }
        });
    }

    fn read_forever(&self, extent: u32, pages: u32, class: IoClass) {
        let (medium, handle) = (self.medium.clone(), self.handle.clone());
        self.handle.spawn("reader", async move {
            loop {
                medium.read_run(SHAPE.page(ExtentId(extent), 0), pages, class).await;
                handle.sleep(Nanos(50_000)).await;
            }
        });
    }

    fn bytes(&self, class: IoClass) -> u64 {
        self.inside.bytes_by(Nanos::MAX, |it| it == class)
    }
}

#[test]
fn a_rate_holds_within_two_bursts_at_all_times() {
    let stand = stand(&LimiterOptions::rate_limiter(MB));
    stand.write_forever(0, 30, IoClass::Flush);
    stand.write_forever(1, 250, IoClass::CompactionWrite);
    stand.rt.run_until(END);
    for ms in (0..10_000).step_by(50) {
        let passed = stand.inside.bytes_by(Nanos::from_millis(ms), |_| true);
        let most = ms * MB / 1_000 + 2 * MB / 10;
        assert!(passed <= most, "{passed} by {ms} ms");
    }
    let passed = stand.inside.bytes_by(END, |_| true);
    assert!(passed + 3 * MB / 10 >= 10 * MB, "{passed}");
}

#[test]
fn flushes_go_first_and_compactions_do_not_starve() {
    let stand = stand(&LimiterOptions::rate_limiter(MB));
    // Flushes alone would use the whole rate.
    for extent in 0..4 {
        stand.write_forever(extent, 50, IoClass::Flush);
    }
    stand.write_forever(9, 50, IoClass::L0CompactionWrite);
    stand.rt.run_until(END);
    let (flushed, compacted) =
        (stand.bytes(IoClass::Flush), stand.bytes(IoClass::L0CompactionWrite));
    assert!((MB / 4..2 * MB).contains(&compacted), "about one in ten: {compacted} of {flushed}");
    assert!(flushed > 7 * MB, "{flushed}");
    let stats = stand.medium.stats();
    let queued = stats.flush.bytes + stats.rest.bytes;
    assert_eq!((queued, stats.l0.bytes), (flushed + compacted, 0));
    assert!(stats.rest.waits > 0 && stats.rest.waited_ns / stats.rest.waits > 500_000_000);
}

#[test]
fn clients_and_the_journal_never_wait() {
    let stand = stand(&LimiterOptions::silk(2 * MB, "a test"));
    stand.write_forever(0, 400, IoClass::CompactionWrite);
    let (medium, handle) = (stand.medium.clone(), stand.handle.clone());
    let done = stand.handle.spawn("client", async move {
        for n in 0..1_000 {
            let began = handle.now();
            let page = PageNo(n % 9);
            let _unwritten = medium.read(page, IoClass::ClientRead).await;
            medium.read_run(page, 3, IoClass::ValuePrefetch).await;
            assert_eq!(handle.now(), began, "reads of the medium inside take no time");
            let first = SHAPE.page(ExtentId(7), n);
            medium.append(first, images(1), IoClass::Log).await.expect("it is written");
            medium.append(first, images(1), IoClass::Journal).await.expect("it is written");
            assert_eq!(handle.now(), began + Nanos(200_000), "and its appends 100 us each");
            handle.sleep(Nanos(1_000_000)).await;
        }
    });
    stand.rt.block_on(done);
    let client_bytes = stand.medium.stats().client_bytes;
    assert_eq!(client_bytes, 1_000 * 5 * u64::from(SHAPE.page_bytes));
}

#[test]
fn the_log_counts_as_what_clients_take_and_the_manifest_does_not() {
    let stand = stand(&LimiterOptions::silk(2 * MB, "a test"));
    let medium = stand.medium.clone();
    let written = stand.handle.spawn("journal", async move {
        for (extent, stream) in [(0, Stream::Log), (1, Stream::Manifest), (0, Stream::Tables)] {
            medium.open(ExtentId(extent), 1, stream).expect("it is opened");
            let first = SHAPE.page(ExtentId(extent), 0);
            medium.append(first, images(1), IoClass::Journal).await.expect("it is written");
        }
    });
    stand.rt.block_on(written);
    assert_eq!(stand.medium.stats().client_bytes, u64::from(SHAPE.page_bytes));
}

#[test]
fn reads_of_compactions_are_free_unless_asked_for() {
    let limit = RateLimiterOptions::new(MB);
    let both = RateLimiterOptions { limits_reads: true, ..limit.clone() };
    let read = |limit: RateLimiterOptions| {
        let stand = stand(&LimiterOptions { rate_limiter: Some(limit), silk: None });
        stand.read_forever(1, 100, IoClass::CompactionRead);
        stand.rt.run_until(END);
        stand.bytes(IoClass::CompactionRead)
    };
    assert!(read(limit) > 1_000 * MB);
    assert!((9 * MB..=11 * MB).contains(&read(both)));
}

#[test]
fn an_auto_tuned_rate_falls_where_nobody_uses_it_up() {
    let limit = RateLimiterOptions { auto_tuned: true, ..RateLimiterOptions::new(2 * MB) };
    let stand = stand(&LimiterOptions { rate_limiter: Some(limit), silk: None });
    assert_eq!(stand.medium.stats().bytes_per_second, MB);
    stand.rt.run_until(END);
    let (medium, handle) = (stand.medium.clone(), stand.handle.clone());
    stand.rt.block_on(async move { handle.sleep(Nanos::from_millis(20_000)).await });
    assert_eq!(medium.stats().bytes_per_second, MB / 10);
}

/// Returns the bytes per second of internal work by class, while clients read `of_clients` bytes
/// per second.
fn silk_beside(of_clients: u64) -> [u64; 3] {
    let options = LimiterOptions { silk: Some(silk()), rate_limiter: None };
    let stand = stand(&options);
    for extent in 0..2 {
        stand.write_forever(extent, 20, IoClass::CompactionWrite);
    }
    stand.read_forever(5, 20, IoClass::L0CompactionRead);
    let (medium, handle) = (stand.medium.clone(), stand.handle.clone());
    stand.handle.spawn("client", async move {
        loop {
            if of_clients > 0 {
                medium
                    .read_run(PageNo(0), (of_clients / 1_000 / 1_000) as u32, IoClass::ClientRead)
                    .await;
            }
            handle.sleep(Nanos::from_millis(1)).await;
        }
    });
    stand.rt.run_until(END);
    let is_paused = stand.medium.pauses(IoClass::CompactionRead);
    assert_eq!(is_paused, of_clients > 15 * MB, "{of_clients}");
    assert!(
        !stand.medium.pauses(IoClass::Flush) && !stand.medium.pauses(IoClass::L0CompactionRead)
    );
    let classes = [IoClass::Flush, IoClass::L0CompactionRead, IoClass::CompactionWrite];
    classes.map(|class| stand.bytes(class) / 10)
}

/// 20 MB/s with a floor of 5 MB/s.
fn silk() -> SilkOptions {
    SilkOptions { hysteresis_bytes_per_second: MB, ..SilkOptions::new(20 * MB, "a test") }
}

#[test]
fn internal_work_gets_what_clients_leave_and_the_floor_in_any_case() {
    for (of_clients, expected) in [(0, 20), (10, 10), (14, 6), (18, 5), (40, 5)] {
        let got = silk_beside(of_clients * MB);
        let (of_l0, in_all) = (got[1], got.iter().sum::<u64>());
        let expected = expected * MB;
        assert!(in_all.abs_diff(expected) < expected / 10, "beside {of_clients}: {got:?}");
        // This task reads 20 kB at a time and waits for each read, so it leaves some bandwidth.
        assert!(of_l0 > got[2] / 20, "beside {of_clients}: {got:?}");
    }
}

#[test]
fn appends_to_an_extent_stay_in_order_whatever_they_are_for() {
    let stand = stand(&LimiterOptions::rate_limiter(MB));
    let mut under_way = Vec::new();
    for n in 0..200 {
        let class = if n % 2 == 0 { IoClass::GcWrite } else { IoClass::Flush };
        under_way.push(stand.medium.append(PageNo(n), images(1), class));
    }
    // They proceed in order even if their futures are dropped.
    under_way.truncate(10);
    stand.rt.run_until(END);
    let commands = stand.inside.commands.borrow();
    let order: Vec<u32> = commands.iter().map(|command| command.first.0).collect();
    assert_eq!(order, (0..200).collect::<Vec<_>>());
}

#[test]
fn what_is_acknowledged_is_there_when_power_is_cut_while_others_wait() {
    for cut_ms in [0, 99, 100, 1_050, 7_777] {
        let stand = stand(&LimiterOptions::rate_limiter(MB));
        let acknowledged = Rc::new(Cell::new(0));
        for writer in 0..3 {
            let (medium, acknowledged) = (stand.medium.clone(), Rc::clone(&acknowledged));
            stand.handle.spawn("writer", async move {
                for n in 0..1_000 {
                    let first = SHAPE.page(ExtentId(writer), n);
                    let class = [IoClass::Flush, IoClass::CompactionWrite][writer as usize % 2];
                    medium.append(first, images(1), class).await.expect("it is written");
                    acknowledged.set(acknowledged.get() + 1);
                }
            });
        }
        let Stand { rt, handle, inside, medium } = stand;
        rt.run_until(Nanos::from_millis(cut_ms));
        drop((rt, handle, medium));
        let there = inside.pages.borrow().len();
        assert_eq!(there, acknowledged.get(), "at {cut_ms} ms");
        assert_eq!(Rc::strong_count(&inside.pages), 1, "nothing is left of what waited");
    }
}

#[test]
fn without_a_limit_everything_passes() {
    let stand = stand(&LimiterOptions::rocksdb());
    stand.write_forever(0, 100, IoClass::CompactionWrite);
    stand.rt.run_until(Nanos::from_millis(1_000));
    assert_eq!(stand.bytes(IoClass::CompactionWrite), 10_001 * 100 * 1_000);
    assert_eq!(stand.medium.stats(), stacks::limiter::LimiterStats::default());
    assert!(!stand.medium.pauses(IoClass::CompactionRead));
}
