//! scratch
#![allow(clippy::all, clippy::disallowed_methods, clippy::disallowed_types, reason = "scratch")]
use engine::{Options, Value};
#[global_allocator]
static A: mimalloc::MiMalloc = mimalloc::MiMalloc;
use kvssd::*;
use runtime::*;
use std::time::Instant;
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let gets: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let rt = Runtime::new(7);
    let handle = rt.handle();
    let device = DeviceProfile::load("pink-zcu102").unwrap();
    let drive = KvDrive::format(&handle, &device, DriveOptions::new(Options::pink()));
    fn key(i: u64) -> [u8; 32] {
        let mut k = [b'0'; 32];
        k[..4].copy_from_slice(b"user");
        let mut h = mix64(i);
        let mut p = 31;
        while h > 0 {
            k[p] = b'0' + (h % 10) as u8;
            h /= 10;
            p -= 1;
        }
        k
    }
    let t = Instant::now();
    let d = drive.clone();
    let h = handle.clone();
    rt.block_on(async move {
        let mut js = vec![];
        for c in 0..64 {
            let d = d.clone();
            js.push(h.spawn("c", async move {
                let mut i = c;
                while i < n {
                    d.store(&key(i), Value::Synthetic { seed: i, len: 1024 }, StoreMode::Upsert)
                        .await
                        .unwrap();
                    i += 64;
                }
            }));
        }
        for j in js {
            j.await;
        }
        println!("loaded, virtual {}", h.now());
        d.settle().await;
        println!("settled, virtual {}", h.now());
    });
    let e = t.elapsed().as_secs_f64();
    println!("load {:.2}s wall = {:.0}/s  steps {}", e, n as f64 / e, handle.steps());
    let s = drive.engine_stats();
    println!(
        "{s:?}\n{:?}\n{:?} {:?}",
        drive.engine().levels(),
        drive.engine().plan(),
        drive.memory()
    );
    let f = drive.flash_stats();
    println!("{f:?}");
    let t = Instant::now();
    let v0 = handle.now();
    let s0 = handle.steps();
    let d = drive.clone();
    let h = handle.clone();
    rt.block_on(async move {
        let mut js = vec![];
        for c in 0..64u64 {
            let d = d.clone();
            js.push(h.spawn("c", async move {
                let mut rng = Rng::new(c);
                for _ in 0..gets / 64 {
                    let i = rng.below(n);
                    let r = d.retrieve(&key(i), u32::MAX).await.unwrap();
                    assert_eq!(r.value, Value::Synthetic { seed: i, len: 1024 });
                }
            }));
        }
        for j in js {
            j.await;
        }
    });
    let e = t.elapsed().as_secs_f64();
    println!(
        "gets {:.2}s wall = {:.0}/s, virtual {} = {:.0}/s, steps/get {:.1}",
        e,
        gets as f64 / e,
        handle.now() - v0,
        gets as f64 / (handle.now() - v0).as_secs_f64(),
        (handle.steps() - s0) as f64 / gets as f64
    );
    let s = drive.engine_stats();
    println!("{:?}", s.reads_per_get);
}
