//! Checks by arithmetic whether a bench can end, before any work: lengths of keys and values, space
//! on the drive, memory of this machine, virtual time.

use engine::sizing;
use engine::sizing::pair::Pair;
use report::units::{bytes_text, count_text};
use stacks::design::IndexOptions;
use workload::{CoreWorkload, Pace, ValueForm};

use crate::platform::Platform;
use crate::spec::{BenchSpec, PairBytes, TraceSpec};

/// Maximum virtual time of a run, in seconds: thirty years, of the 584 that the clock has.
const LONGEST_SECONDS: f64 = 30.0 * 365.0 * 86_400.0;
/// Approximate bytes that a pair needs in the index of a hash table, besides its key.
const SLOT_BYTES: f64 = 8.0;
/// Approximate bytes of a slot in a bucket page: a pointer and a byte of the key's hash.
const TABLE_SLOT_BYTES: u64 = 5;
/// Approximate bytes of a pointer.
const POINTER_BYTES: usize = 5;
/// Share of the calculated number of pairs that certainly fits. The arithmetic omits the space that
/// is lost at the ends of pages, and the space that garbage collection has not yet released.
const CERTAIN_SHARE: f64 = 0.8;

/// Returns how many pairs of the workload's lengths the drive holds: an approximate upper bound.
pub fn pairs_held(spec: &BenchSpec) -> u64 {
    let Some((page_bytes, payload_bytes)) = spec.platform.page_and_payload() else { return 0 };
    let index = spec.design.index();
    let usable = spec.platform.usable_bytes(&index).saturating_sub(kept_free(&index));
    let pages = usable as f64 / f64::from(page_bytes);
    (pages / pages_of_pair(spec, &index, payload_bytes)) as u64
}

/// Returns the bytes that a tree of tables leaves free for flushes and compactions.
fn kept_free(index: &IndexOptions) -> u64 {
    match index {
        IndexOptions::Lsm(options) if options.is_leveled() => sizing::tables::kept_free(options),
        _ => 0,
    }
}

/// Returns the pages of flash that a pair needs, including the space that it leaves empty: in the
/// index, and in the value log unless the value is stored with its key.
fn pages_of_pair(spec: &BenchSpec, index: &IndexOptions, payload_bytes: u32) -> f64 {
    let typical = spec.typical_pair();
    let (key_bytes, value_bytes) = (typical.key as u32, typical.value);
    let pair =
        |inline_up_to| Pair { page_bytes: payload_bytes, key_bytes, value_bytes, inline_up_to };
    let in_value_log = |pair: Pair| pair.bytes_in_value_log() / f64::from(payload_bytes);
    match index {
        IndexOptions::Lsm(options) => {
            let pair = pair(options.inline_up_to);
            1.0 / f64::from(pair.entries_per_segment(POINTER_BYTES)) + in_value_log(pair)
        }
        IndexOptions::Hash(_) => {
            (f64::from(key_bytes) + SLOT_BYTES) / f64::from(payload_bytes) + in_value_log(pair(0))
        }
    }
}

/// Returns the number of pairs at the end of the run if inserts have their expected share, without
/// the keys of a trace.
fn pairs(spec: &BenchSpec) -> u64 {
    let workload = &spec.workload;
    match &spec.trace {
        None => workload.insert_count + share(workload, workload.mix.insert_share()),
        Some(_) if spec.loads_workload() => workload.insert_count,
        Some(_) => 0,
    }
}

/// Returns the number of keys of the trace; 0 without a trace.
fn keys_of_trace(spec: &BenchSpec) -> u64 {
    spec.trace.as_ref().map_or(0, |trace| trace.trace.survey.keys)
}

fn share(workload: &CoreWorkload, share: f64) -> u64 {
    (workload.operation_count as f64 * share) as u64
}

/// Checks for reasons why the bench certainly cannot end.
///
/// # Errors
/// Returns the reason, and the values that would be possible.
pub fn check(spec: &BenchSpec) -> Result<(), String> {
    spec.platform.check(&spec.design)?;
    check_lengths(spec)?;
    check_time(spec)?;
    let (pairs, held) = (pairs(spec), pairs_held(spec));
    // A drive without space for any pair is refused at setup, which returns the reason.
    let has_room = spec.platform.usable_bytes(&spec.design.index()) > 0;
    if has_room && pairs > held {
        return Err(format!(
            "{} do not fit: {}; load fewer (--records), shorter values (-p levelhead.valuebytes), or \
             take a larger drive",
            pairs_words(&spec.workload, pairs),
            held_words(spec)
        ));
    }
    Ok(())
}

/// Returns problems that may occur later, as text.
pub fn warnings(spec: &BenchSpec) -> Vec<String> {
    let (pairs, of_trace, held) = (pairs(spec), keys_of_trace(spec), pairs_held(spec));
    let is_tight = (pairs + of_trace) as f64 > held as f64 * CERTAIN_SHARE;
    let words = || {
        let pairs = match of_trace {
            0 => pairs_words(&spec.workload, pairs),
            keys => {
                format!("{} keys of the trace, and what is loaded before it,", count_text(keys))
            }
        };
        format!(
            "{pairs} may not fit: {}, and fewer by what levels and collection need to work in, which shows only when they are \
             loaded; {} fit ({:.0} % of that)",
            held_words(spec),
            count_text(rounded((held as f64 * CERTAIN_SHARE) as u64)),
            CERTAIN_SHARE * 100.0
        )
    };
    let cached = matches!(spec.design.index(), IndexOptions::Lsm(options)
        if options.value_cache_bytes > 0
            && options.inline_up_to >= spec.longest_pair().value);
    let idle_cache = || {
        "value_cache_bytes has no effect: all values stand beside their keys (inline_up_to)"
            .to_owned()
    };
    is_tight.then(words).into_iter().chain(cached.then(idle_cache)).collect()
}

fn pairs_words(workload: &CoreWorkload, pairs: u64) -> String {
    let length = if workload.values.is_constant() { "" } else { "up to " };
    let (key, value) = (workload.keys.key_bytes(), workload.values.longest_bytes());
    format!("{} pairs of {key} + {length}{value} bytes", count_text(pairs))
}

/// Returns a text about the number of pairs that the drive holds.
fn held_words(spec: &BenchSpec) -> String {
    format!("{} holds {} of them at most", spec.platform.name(), count_text(pairs_held(spec)))
}

/// Returns the number rounded down to two significant digits.
pub(crate) fn rounded(number: u64) -> u64 {
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number / unit * unit
}

fn check_lengths(spec: &BenchSpec) -> Result<(), String> {
    let PairBytes { key, value } = spec.longest_pair();
    if key > engine::MAX_KEY_BYTES {
        return Err(format!(
            "keys of {key} bytes are too long: a drive takes 1 to {}{}",
            engine::MAX_KEY_BYTES,
            if spec.trace.is_some() { "" } else { " (levelhead.keybytes)" }
        ));
    }
    let longest = spec.platform.max_value_bytes();
    if value > longest {
        return Err(format!(
            "values of {value} bytes are too long: {} takes 0 to {longest}{}",
            spec.platform.name(),
            if spec.trace.is_some() {
                ""
            } else {
                " (levelhead.valuebytes, or fieldcount times fieldlength)"
            }
        ));
    }
    Ok(())
}

fn check_time(spec: &BenchSpec) -> Result<(), String> {
    let rate = match (spec.clients.pace, &spec.trace) {
        (Pace::Open { rate, .. }, _) => rate,
        (Pace::Recorded { stretch, .. }, Some(TraceSpec { trace, .. }))
            if trace.survey.span.as_secs_f64() * stretch > LONGEST_SECONDS =>
        {
            return Err("the trace takes more than 30 years at this speed: ask for more \
                        (--replay-time-scale), or for no times (--replay-no-stall)"
                .to_owned());
        }
        _ => return Ok(()),
    };
    let operations = spec.workload.operation_count;
    if operations as f64 / rate > LONGEST_SECONDS {
        return Err(format!(
            "{} operations at {rate} a second take more than 30 years of virtual time: ask for fewer \
             (--operations) or a higher rate (--rate)",
            count_text(operations)
        ));
    }
    Ok(())
}

/// Returns the approximate maximum memory of this machine that the bench uses, in bytes.
///
/// Measured on a drive of 64 GiB with keys of 32 bytes: 544 MiB for 4 million pairs and a million
/// operations, 7.0 GiB for 44 million pairs. Overwritten objects stay in memory until they are
/// collected. `hash` on the same drive: 445 MiB for 50 thousand pairs, 861 MiB for 100 thousand,
/// 3.30 GiB for 400 thousand, 4.12 GiB for a million.
pub fn memory_bytes(spec: &BenchSpec) -> u64 {
    const BASE: u64 = 64 << 20;
    const OBJECT: u64 = 110;
    const KEY_OF_TRACE: u64 = 64;
    let workload = &spec.workload;
    let typical = spec.typical_pair();
    let key = typical.key as u64;
    let value = match workload.values.form() {
        ValueForm::Synthetic => 0,
        ValueForm::Bytes => u64::from(typical.value),
    };
    let overwritten = if spec.ages { pairs_held(spec) } else { 0 };
    let writes = match &spec.trace {
        None => share(workload, workload.mix.write_share()),
        Some(TraceSpec { trace, .. }) => trace.survey.puts + trace.survey.read_modify_writes,
    };
    let writes = writes.saturating_add(overwritten);
    let objects = spec.loaded().saturating_add(writes).min(pairs_held(spec));
    // Verification needs four bytes per record, or twelve if there are scans, and more per key of a
    // trace.
    let checked = workload.record_count * if workload.mix.scan > 0.0 { 12 } else { 4 }
        + keys_of_trace(spec) * KEY_OF_TRACE;
    let puts = spec.loaded().saturating_add(writes);
    BASE + checked + objects * (OBJECT + 2 * key + value) + bytes_of_bucket_pages(spec, puts)
}

/// Returns the bytes of bucket pages on the flash of a hash table, including overwritten pages.
/// Each page is stored whole, however few keys it has. A Put changes a page that is usually no
/// longer in memory, so that the page is written again for this Put. The flash releases an extent
/// when the last of its pages has been overwritten. If Puts change pages at random, this takes as
/// many Puts as there are bucket pages, times the logarithm of the pages of an extent, and for some
/// extents twice the number of bucket pages more.
fn bytes_of_bucket_pages(spec: &BenchSpec, puts: u64) -> u64 {
    let IndexOptions::Hash(_) = spec.design.index() else { return 0 };
    let Platform::KvDrive(drive) = &spec.platform else { return 0 };
    let geometry = &drive.flash.geometry;
    let (typical, page_bytes) = (spec.typical_pair(), u64::from(geometry.page_bytes));
    let slots = geometry.capacity_bytes() / (typical.key as u64 + u64::from(typical.value)).max(1);
    let bucket_pages = (slots * TABLE_SLOT_BYTES).div_ceil(page_bytes).max(1);
    let pages_of_extent = f64::from(geometry.dies() * geometry.pages_per_die_block());
    let most = bucket_pages as f64 * (pages_of_extent.ln() + 2.0);
    puts.min(most as u64).saturating_mul(page_bytes).min(geometry.capacity_bytes())
}

/// The verdict on the memory that a bench needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryVerdict {
    /// The memory suffices.
    Fits,
    /// The memory may be too small; the text is the warning.
    Tight(String),
    /// The memory is far too small; the text is the reason.
    TooLittle(String),
}

/// Compares the estimated with the available memory, in bytes. The estimate may be twice the actual
/// need. `advice` is the end of the text of [`MemoryVerdict::TooLittle`].
pub fn judge_memory(needed: u64, available: u64, advice: &str) -> MemoryVerdict {
    if needed <= available {
        return MemoryVerdict::Fits;
    }
    let words = format!(
        "this takes up to {} of memory, and {} are available here",
        bytes_text(needed),
        bytes_text(available)
    );
    if needed / 2 <= available {
        return MemoryVerdict::Tight(format!("{words}: it is tried"));
    }
    MemoryVerdict::TooLittle(format!("{words}: {advice}"))
}

#[cfg(test)]
mod tests {
    use stacks::design::Design;
    use workload::{ClientOptions, builtin};

    use super::*;
    use crate::platform::HostChoice;
    use blockbench::Before;

    fn spec(settings: &[(&str, &str)]) -> BenchSpec {
        let mut properties = builtin("a").expect("built in");
        for (name, value) in settings {
            properties.set(name, value);
        }
        BenchSpec {
            configuration: None,
            design: Design::load("pink").expect("built in"),
            platform: Platform::load("pink-zcu102", HostChoice::default()).expect("built in"),
            workload_name: "a".to_owned(),
            workload: CoreWorkload::from_properties(&properties).expect("they are right"),
            clients: ClientOptions::closed(64),
            trace: None,
            seed: 1,
            precondition: Before::Empty,
            ages: false,
            at_rest: false,
            sample_every: None,
        }
    }

    #[test]
    fn the_paper_s_pairs_fit_the_paper_s_drive_and_twice_as_many_do_not() {
        assert_eq!(check(&spec(&[("recordcount", "44000000")])), Ok(()));
        assert_eq!(warnings(&spec(&[("recordcount", "44000000")])), Vec::<String>::new());
        let [words] = &warnings(&spec(&[("recordcount", "50000000")]))[..] else { panic!("one") };
        assert!(words.contains("44 000 000 fit (80 % of that)"), "{words}");
        let words = check(&spec(&[("recordcount", "100000000")])).expect_err("106 GB on 64 GiB");
        assert!(words.starts_with("100 000 000 pairs of 32 + 1024 bytes do not fit"), "{words}");
        assert!(words.contains("pink-zcu102 holds 55 "), "{words}");
        let inserts = [("recordcount", "44000000"), ("operationcount", "100000000")];
        assert_eq!(check(&spec(&inserts)), Ok(()), "updates need no room of their own");
        let inserts = [&inserts[..], &[("insertproportion", "9")]].concat();
        assert!(check(&spec(&inserts)).is_err());
    }

    /// The numbers of pairs are measured: loads of uniform keys on `baseline-15gb` until the store
    /// was full.
    #[test]
    fn a_host_s_store_holds_nearly_what_it_was_filled_with() {
        let loads = [("1024", 11_417_185), ("4096", 1_634_580), ("16384", 547_388)];
        for (value_bytes, measured) in loads {
            let spec = BenchSpec {
                design: Design::load("rocksdb").expect("built in"),
                platform: Platform::load("baseline-15gb", HostChoice::default()).expect("built in"),
                ..spec(&[("levelhead.valuebytes", value_bytes)])
            };
            let held = pairs_held(&spec);
            assert!(
                (measured * 9 / 10..=measured * 101 / 100).contains(&held),
                "{value_bytes}: {held}"
            );
        }
    }

    #[test]
    fn lengths_that_no_drive_takes_are_refused() {
        let words = check(&spec(&[("levelhead.valuebytes", "1073741824")])).expect_err("1 GiB");
        assert!(words.contains("pink-zcu102 takes 0 to 2097152"), "{words}");
        let words = check(&spec(&[("levelhead.keybytes", "300")])).expect_err("300 bytes");
        assert!(words.contains("takes 1 to 255"), "{words}");
    }

    #[test]
    fn runs_of_centuries_are_refused() {
        let mut slow = spec(&[("operationcount", "1000000")]);
        slow.clients = ClientOptions::open(1e-6, 64);
        assert!(check(&slow).is_err_and(|words| words.contains("30 years")));
        slow.clients = ClientOptions::open(1.0, 64);
        assert_eq!(check(&slow), Ok(()));
    }

    #[test]
    fn memory_is_judged_by_what_was_measured() {
        const GIB: u64 = 1 << 30;
        let small =
            memory_bytes(&spec(&[("recordcount", "4000000"), ("operationcount", "1000000")]));
        assert!((544 << 20..GIB).contains(&small), "{small}");
        let paper = memory_bytes(&spec(&[("recordcount", "44000000")]));
        assert!((7 * GIB..9 * GIB).contains(&paper), "{paper}");
        // Measured memory of simulations of `hash` in MiB, by thousands of pairs.
        for (device, thousands, measured) in [
            ("pink-zcu102", 50, 445),
            ("pink-zcu102", 100, 861),
            ("pink-zcu102", 400, 3379),
            ("pink-zcu102", 1000, 4219),
            ("pink-zcu102-1gib", 200, 106),
            ("pink-zcu102-1gib", 600, 135),
        ] {
            let count = (thousands * 1000).to_string();
            let hash = BenchSpec {
                design: Design::load("hash").expect("built in"),
                platform: Platform::load(device, HostChoice::default()).expect("built in"),
                ..spec(&[("recordcount", &count), ("operationcount", "1000")])
            };
            let mib = memory_bytes(&hash) >> 20;
            assert!((measured * 9 / 10..=measured * 2).contains(&mib), "{thousands}: {mib}");
        }
        assert_eq!(judge_memory(GIB, 2 * GIB, ""), MemoryVerdict::Fits);
        let MemoryVerdict::Tight(words) = judge_memory(3 * GIB, 2 * GIB, "") else {
            panic!("tight")
        };
        assert!(words.contains("up to 3.00 GiB") && words.contains("2.00 GiB are"), "{words}");
        let too_little = judge_memory(9 * GIB, 2 * GIB, "give up");
        assert!(
            matches!(&too_little, MemoryVerdict::TooLittle(words) if words.ends_with("here: give up"))
        );
    }
}
