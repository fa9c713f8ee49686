//! Fuzz tests of all trace parsers: they return valid operations, or report the invalid line.

use runtime::{Nanos, Rng};
use testkit::fuzz::{Answer, Target, unsealed};

use super::TraceError;
use super::block::{Action, BlockFormat, BlockReader, BlockRecord, BlockSurvey};
use super::kv::{KvFormat, KvReader, KvRecord, KvSurvey};

fn fuzz(name: &str, encoding: &dyn Fn(&mut Rng) -> Vec<u8>, check: &dyn Fn(&[u8]) -> Answer) {
    Target { test: ("workload", name), encoding, seal: &unsealed, check }.run();
}

/// Returns a few lines, created by `line`.
fn text(rng: &mut Rng, header: &str, mut line: impl FnMut(&mut Rng) -> String) -> Vec<u8> {
    let lines: Vec<String> = (0..=rng.below(20)).map(|_| line(rng)).collect();
    format!("{header}{}\n", lines.join("\n")).into_bytes()
}

fn pick<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
    words[rng.below(words.len() as u64) as usize]
}

/// Checks all operations of a reader, and that an error comes last.
fn sound<T>(
    records: impl Iterator<Item = Result<T, TraceError>>,
    at: impl Fn(&T) -> Nanos,
    check: impl Fn(&T),
) -> Answer {
    let (mut last, mut has_failed) = (Nanos::ZERO, false);
    for record in records {
        assert!(!has_failed, "an error is the last");
        match record {
            Ok(record) => {
                assert!(at(&record) >= last, "times go back");
                last = at(&record);
                check(&record);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.starts_with("t:") && !text.contains('\n') && text.len() < 1_000,
                    "{text}"
                );
                has_failed = true;
            }
        }
    }
    (!has_failed).into()
}

fn check_block(format: BlockFormat, bytes: &[u8]) -> Answer {
    let _ = BlockFormat::detect("t", bytes);
    let check = |record: &BlockRecord| {
        assert!(record.offset.checked_add(record.bytes).is_some());
    };
    for action in [Action::Issued, Action::Queued] {
        let records = BlockReader::new("t", format, action, bytes);
        let answer = sound(records, |record| record.at, check);
        if action == Action::Queued {
            let survey = BlockSurvey::of("t", format, None, || Ok(bytes));
            assert!(survey.is_err() || answer == Answer::Taken);
            return answer;
        }
    }
    Answer::Refused
}

fn check_kv(format: KvFormat, bytes: &[u8]) -> Answer {
    let _ = KvFormat::detect("t", bytes);
    let check = |record: &KvRecord| {
        assert!((1..=4096).contains(&record.key_bytes) && record.value_bytes <= 1 << 30);
    };
    let answer = sound(KvReader::new("t", format, bytes), |record| record.at, check);
    let survey = KvSurvey::of("t", format, bytes);
    assert!(survey.is_err() || answer == Answer::Taken);
    answer
}

#[test]
fn fuzz_iolog() {
    let line = |version: u64, rng: &mut Rng| {
        let time = if version == 3 { format!("{} ", rng.below(1_000_000)) } else { String::new() };
        let offset = rng.below(1 << 40);
        match rng.below(8) {
            0 => format!("{time}/dev/sda {}", pick(rng, &["add", "open", "close"])),
            1 => format!("{time}/dev/sda {} 0 0", pick(rng, &["sync", "datasync"])),
            2 if version == 2 => format!("/dev/sda wait {}", rng.below(100_000)),
            _ => format!(
                "{time}/dev/sda {} {offset} {}",
                pick(rng, &["read", "write", "trim"]),
                rng.below(1 << 20)
            ),
        }
    };
    let encoding = &|rng: &mut Rng| {
        let version = 2 + rng.below(2);
        text(rng, &format!("fio version {version} iolog\n"), |rng| line(version, rng))
    };
    fuzz("fuzz_iolog", encoding, &|bytes| check_block(BlockFormat::Iolog, bytes));
}

#[test]
fn fuzz_blkparse() {
    let line = |rng: &mut Rng| {
        let (seconds, nanos) = (rng.below(1_000), rng.below(1_000_000_000));
        let (action, rwbs) =
            (pick(rng, &["Q", "D", "C", "G"]), pick(rng, &["R", "WS", "D", "FWFS", "RA"]));
        let place = format!("{} + {}", rng.below(1 << 32), rng.below(1 << 10));
        format!("  8,0    3       11  {seconds}.{nanos:09}   697  {action}  {rwbs} {place} [fio]")
    };
    let encoding = &|rng: &mut Rng| text(rng, "", line);
    fuzz("fuzz_blkparse", encoding, &|bytes| check_block(BlockFormat::Blkparse, bytes));
}

#[test]
fn fuzz_msr() {
    let line = |rng: &mut Rng| {
        let (ticks, offset) = (rng.below(1 << 40), rng.below(1 << 40));
        format!(
            "{ticks},hm,1,{},{offset},{},413",
            pick(rng, &["Read", "Write"]),
            rng.below(1 << 20)
        )
    };
    let encoding = &|rng: &mut Rng| text(rng, "", line);
    fuzz("fuzz_msr", encoding, &|bytes| check_block(BlockFormat::Msr, bytes));
}

#[test]
fn fuzz_twitter() {
    let line = |rng: &mut Rng| {
        let (key, size) = (rng.below(1 << 40), 1 + rng.below(100));
        let op = pick(rng, &["get", "set", "add", "incr", "delete", "cas"]);
        format!(
            "{},q:{key},{size},{},4,{op},{}",
            rng.below(1 << 20),
            rng.below(5_000),
            rng.below(1 << 20)
        )
    };
    let encoding = &|rng: &mut Rng| text(rng, "", line);
    fuzz("fuzz_twitter", encoding, &|bytes| check_kv(KvFormat::Twitter, bytes));
}

#[test]
fn fuzz_rocksdb() {
    let line = |rng: &mut Rng| {
        let key = rng.next_u64();
        format!(
            "0x{key:016X} {} {} {} {}",
            rng.below(9),
            rng.below(3),
            rng.below(5_000),
            rng.below(1 << 48)
        )
    };
    let encoding = &|rng: &mut Rng| text(rng, "", line);
    fuzz("fuzz_rocksdb", encoding, &|bytes| check_kv(KvFormat::Rocksdb, bytes));
}
