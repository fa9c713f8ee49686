//! Small cases as text: one command per line, followed by `=>` and its result (`ok` by default).
//!
//! ```text
//! put KEY VALUE        delete KEY          create X [BOUND]     seek X KEY      next X
//! many X COUNT BYTES   destroy X           reset                settle          cut
//! churn                (overwrites keys from `~` on until all is flushed, compacted and collected)
//! ```
//! Iterators have arbitrary names; a name can be reused.

use std::collections::BTreeMap;

use engine::Value;
use runtime::Rng;
use stacks::kvssd::{DriveOptions, IteratorHandle, KvDrive, Pair, Status, StoreMode};

use crate::harness::{Machine, small_device};

/// A drive, and its open handles.
pub(crate) struct Script {
    pub machine: Machine,
    options: DriveOptions,
    handles: BTreeMap<String, IteratorHandle>,
}

/// Runs `text` on a fresh small drive.
pub(crate) fn case(options: &DriveOptions, text: &str) {
    Script::new(options).run(text);
}

impl Script {
    pub(crate) fn new(options: &DriveOptions) -> Self {
        let machine = Machine::format(1, &small_device(), options.clone());
        Self { machine, options: options.clone(), handles: BTreeMap::new() }
    }

    pub(crate) fn run(mut self, text: &str) -> Self {
        for (number, line) in text.lines().enumerate() {
            let (command, expected) = line.split_once("=>").unwrap_or((line, "ok"));
            let words: Vec<&str> = command.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            let answer;
            (self, answer) = self.obey(&words);
            assert_eq!(answer, expected.trim(), "line {number}: {}", command.trim());
        }
        self
    }

    fn obey(mut self, words: &[&str]) -> (Self, String) {
        if words == ["cut"] {
            let off = self.machine.power_cut(&mut Rng::new(1));
            let machine = Machine::recover(2, &small_device(), self.options.clone(), off.array);
            self.machine = machine.expect("it comes back");
            return (self, "ok".to_owned());
        }
        let drive = self.machine.drive.clone();
        if let ["create", name, bound @ ..] = words {
            let bound = bound.first().map(|bound| bytes(bound));
            let created = self
                .machine
                .rt
                .block_on(async move { drive.create_iterator(bound.as_deref()).await });
            return match created {
                Ok(handle) => {
                    self.handles.insert((*name).to_owned(), handle);
                    (self, "ok".to_owned())
                }
                Err(status) => (self, format!("{status:?}")),
            };
        }
        let handle = words.get(1).and_then(|name| self.handles.get(*name)).copied();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let answer = self.machine.rt.block_on(async move { answer(&drive, &words, handle).await });
        (self, answer)
    }
}

async fn answer(drive: &KvDrive, words: &[String], handle: Option<IteratorHandle>) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let known = || handle.expect("an iterator by this name was made");
    let done = match words[..] {
        ["put", key, value] => {
            let value = Value::from_bytes(value.as_bytes());
            drive.store(&bytes(key), value, StoreMode::Upsert).await
        }
        ["delete", key] => drive.delete(&bytes(key)).await,
        ["seek", _, key] => return show(drive.seek(known(), &bytes(key)).await),
        ["next", _] => return show(drive.next(known()).await),
        ["many", _, count, room] => {
            let (count, room) = (count.parse().expect("count"), room.parse().expect("bytes"));
            return match drive.next_many(known(), count, room).await {
                Ok(batch) => {
                    let pairs: Vec<String> = batch.pairs.iter().map(shown).collect();
                    pairs.join(" ") + if batch.is_last { " end" } else { "" }
                }
                Err(status) => format!("{status:?}"),
            };
        }
        ["destroy", _] => drive.destroy_iterator(known()).await,
        ["reset"] => {
            drive.reset_iterators();
            Ok(())
        }
        ["settle"] => {
            drive.settle().await;
            Ok(())
        }
        ["churn"] => churn(drive).await,
        _ => panic!("there is no command {words:?}"),
    };
    done.map_or_else(|status| format!("{status:?}"), |()| "ok".to_owned())
}

/// `-` is the empty key, `long` a key that is too long.
fn bytes(key: &str) -> Vec<u8> {
    match key {
        "-" => Vec::new(),
        "long" => vec![b'x'; 256],
        key => key.into(),
    }
}

fn shown(pair: &Pair) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}={}", text(&pair.key), text(&pair.value.to_bytes()))
}

fn show(answer: Result<Pair, Status>) -> String {
    answer.map_or_else(|status| format!("{status:?}"), |pair| shown(&pair))
}

/// Writes several times the drive's capacity, and asserts that every mechanism that moves data has
/// run.
async fn churn(drive: &KvDrive) -> Result<(), Status> {
    let before = drive.engine_stats();
    for round in 0..16 {
        for i in 0..900_u64 {
            let value = Value::Synthetic { seed: round * 1000 + i, len: 200 };
            drive.store(format!("~{i:05}").as_bytes(), value, StoreMode::Upsert).await?;
        }
    }
    let after = drive.engine_stats();
    assert!(after.flushes > before.flushes && after.compactions > before.compactions);
    assert!(after.gc_data_extents > before.gc_data_extents, "{after:?}");
    Ok(())
}
