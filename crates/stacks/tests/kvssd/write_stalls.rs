//! Writers that wait for a flush, and readers that never pause.

use std::cell::Cell;
use std::rc::Rc;

use engine::Value;
use runtime::{Nanos, Rng, Runtime};
use stacks::kvssd::{KvDrive, StoreMode};

use crate::harness::{small_device, small_options};

const KEYS: u64 = 1_000;
const WRITERS: u64 = 8;
const SPAN: Nanos = Nanos::from_millis(2_000);

fn key(i: u64) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

/// Returns the gets and puts of clients without pauses in the span.
fn work(readers: u64, writers: u64) -> (u64, u64) {
    let rt = Runtime::new(5);
    let drive = KvDrive::format(&rt.handle(), &small_device(), small_options()).expect("it fits");
    let value = |seed| Value::Synthetic { seed, len: 200 };
    let loader = drive.clone();
    rt.block_on(async move {
        for i in 0..KEYS {
            loader.store(&key(i), value(i), StoreMode::Upsert).await.expect("there is room");
        }
    });
    let (gets, puts) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for client in 0..readers + writers {
        let (drive, gets, puts) = (drive.clone(), Rc::clone(&gets), Rc::clone(&puts));
        let mut rng = Rng::derive(client, "client");
        rt.handle().spawn("client", async move {
            loop {
                let key = key(rng.below(KEYS));
                if client < readers {
                    drive.retrieve(&key, u32::MAX).await.expect("it was stored");
                    gets.set(gets.get() + 1);
                } else {
                    let stored = drive.store(&key, value(client), StoreMode::Upsert).await;
                    stored.expect("there is room");
                    puts.set(puts.get() + 1);
                }
            }
        });
    }
    rt.run_until(rt.handle().now() + SPAN);
    (gets.get(), puts.get())
}

/// While client writes wait, flushes and compactions get half of the time of each die.
#[test]
fn readers_without_a_pause_leave_writers_half_of_the_dies() {
    let (_, alone) = work(0, WRITERS);
    let (gets, puts) = work(64, WRITERS);
    let (undisturbed, _) = work(64, 0);
    println!(
        "puts: {alone} alone, {puts} beside 64 readers; gets: {undisturbed} alone, {gets} beside writers"
    );
    assert!(3 * puts > alone, "{puts} puts beside readers, {alone} without");
    assert!(3 * gets > undisturbed, "{gets} gets beside writers, {undisturbed} without");
}
