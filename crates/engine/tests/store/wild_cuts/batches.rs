//! A client that writes the same few keys in batches: after a power cut all keys must be of one
//! batch.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use engine::{BatchOptions, Engine, EngineError, LogSync};
use runtime::{Nanos, Rng};

use super::medium::Wild;
use super::model::{Model, number_of, value};
use super::{Case, Complaint};

/// Keys of a batch. They are short, so that a batch fits in half of the smallest memtable.
const KEYS: u8 = 6;

/// Batches are numbered, and values contain their batch's number.
#[derive(Default)]
pub(super) struct Batches {
    asked: Cell<u64>,
    /// The newest batch acknowledged as durable; 0 if none was.
    durable: Cell<u64>,
}

fn key(number: u8) -> Vec<u8> {
    // Before, after and among all other keys.
    vec![number.wrapping_mul(43), b'b']
}

impl Batches {
    /// Writes batches until an error occurs or the store is full.
    pub(super) async fn write(
        self: Rc<Self>,
        engine: Engine<Wild>,
        case: Rc<Case>,
        model: Rc<RefCell<Model>>,
        mut rng: Rng,
    ) {
        loop {
            let number = self.asked.get() + 1;
            self.asked.set(number);
            let sync = case.any_sync(&mut rng);
            let write = |n| (key(n).into(), Some(value(number, rng.below(100))));
            let batch = (0..KEYS).map(write).collect();
            let options = BatchOptions { sync, makes_room: number.is_multiple_of(2) };
            match engine.write_batch(batch, options, Nanos::ZERO).await {
                Ok(()) => {}
                Err(EngineError::Full(_)) => return,
                Err(error) => {
                    return model.borrow_mut().complain(format!("batch {number}: {error}"));
                }
            }
            if !matches!(sync, Some(LogSync::None | LogSync::Interval)) {
                self.durable.set(number);
            }
        }
    }

    /// Reads all keys after a power cut.
    pub(super) async fn check(self: Rc<Self>, engine: Engine<Wild>) -> Result<(), Complaint> {
        let mut found = Vec::new();
        for n in 0..KEYS {
            let got = engine.get(&key(n), Nanos::ZERO).await;
            found.push(number_of(
                got.map_err(|error| format!("key {n} of batches: {error}"))?.value,
            ));
        }
        let first = found[0].unwrap_or(0);
        let is_whole = found.iter().all(|number| number.unwrap_or(0) == first);
        if !is_whole || !(self.durable.get()..=self.asked.get()).contains(&first) {
            let (durable, asked) = (self.durable.get(), self.asked.get());
            return Err(format!(
                "keys are of batches {found:?}; {durable} was durable, {asked} asked for"
            ));
        }
        self.durable.set(first);
        Ok(())
    }
}
