//! What a job takes of this machine's memory, reckoned before it.

use super::{DeviceSpec, Rw, StreamSpec, stream};

const BASE_BYTES: u64 = 64 << 20;
/// Bytes of a block that was written and is still on the drive's flash, be it as garbage.
const BLOCK_BYTES: u64 = 84;
/// Most that was ever seen to be needed, where 1.92 TB were overwritten, and some more.
const MOST_BYTES: u64 = 8 << 30;
/// What collection writes for each block of clients, and that block: drives in their steady state do 4 to 6.
const WRITTEN_PER_BLOCK: u64 = 6;

/// Memory of this machine that a job takes at most, about, in bytes: what it writes, and not more than the drive has. What was
/// written before the job is computed and takes none.
///
/// Measured: 305 to 328 MiB where 15 GB were overwritten in the steady state, 84 bytes for each block of the drive; 337 MiB for
/// 4 GB of 960 GB; 45 MiB for a million reads of 1.92 TB, 111 MiB where 150 thousand writes were among half a million
/// operations; up to 7 GiB where all of it was overwritten.
pub fn memory_bytes(spec: &DeviceSpec) -> u64 {
    let link_bytes_per_second = spec.profile.host.write_mb_per_s * 1e6;
    let written =
        spec.job.streams.iter().map(|stream| blocks_written(stream, link_bytes_per_second));
    let written = written.fold(0_u64, u64::saturating_add).saturating_mul(WRITTEN_PER_BLOCK);
    let there = spec.profile.blocks_per_set() * u64::from(spec.profile.sets);
    BASE_BYTES + written.min(there).saturating_mul(BLOCK_BYTES).min(MOST_BYTES)
}

/// Blocks that a stream writes at most, as far as its end, its rate and the link bound them.
fn blocks_written(stream: &StreamSpec, link_bytes_per_second: f64) -> u64 {
    if !stream.writes() {
        return 0;
    }
    let by_trace = stream.trace.as_ref().map_or(u64::MAX, |trace| trace.survey.writes);
    let operations = stream.operation_limit().min(by_trace);
    let largest = match &stream.trace {
        None => stream.sizes().most(),
        Some(trace) => trace.survey.largest / stream::default_block_bytes() + 2,
    };
    let seconds = stream.duration_s.unwrap_or(f64::INFINITY);
    let jobs = f64::from(stream.jobs());
    let by_rate = jobs * seconds * stream.total_rate().unwrap_or(f64::INFINITY) * largest as f64;
    let by_link = seconds * link_bytes_per_second / stream::default_block_bytes() as f64;
    // Of a mix only the share that writes counts; a trace's writes are known.
    let share = match stream.rw {
        Rw::RandRw | Rw::Rw => 1.0 - stream.read_share(),
        _ => 1.0,
    };
    // Of rates by direction as well, at most.
    let of_rate = if stream.operations_per_second.is_some() { share } else { 1.0 };
    let by_end = (jobs * operations as f64 * share) * largest as f64;
    by_end.min(by_rate * of_rate).min(by_link) as u64
}

#[cfg(test)]
mod tests {
    use ssd::SsdProfile;

    use super::super::Job;
    use super::*;

    fn mib(device: &str, job: Job) -> u64 {
        let profile = SsdProfile::load(device).expect("built in");
        memory_bytes(&DeviceSpec { profile, job, seed: 1 }) >> 20
    }

    #[test]
    fn memory_is_reckoned_from_what_was_measured() {
        // Jobs, drives, and what this program took, in MiB.
        for (job, device, measured) in [
            ("randwrite-qd32", "baseline-15gb", 328),
            ("randwrite-qd32", "pm9a3-960gb", 337),
            ("randread-qd64", "pm9a3-960gb", 37),
            ("randread-qd64", "vigil-1.92tb", 45),
            ("mixed-70-30", "vigil-1.92tb", 111),
            ("windows", "vigil-15gb", 60),
        ] {
            let reckoned = mib(device, Job::load(job).expect("built in"));
            assert!(
                (measured..=2 * measured).contains(&reckoned),
                "{job} on {device}: {reckoned} for {measured}"
            );
        }
    }

    #[test]
    fn what_bounds_no_writes_is_the_drive() {
        let endless = StreamSpec { duration_s: Some(1e6), ..StreamSpec::new(Rw::Write) };
        let of =
            |stream: &StreamSpec, device| mib(device, Job::new("writes", vec![stream.clone()]));
        assert_eq!(of(&endless, "vigil-1.92tb"), (8 << 10) + 64);
        assert!(of(&endless, "vigil-15gb") < 400);
        let slow = StreamSpec { operations_per_second: Some(0.01), ..endless };
        assert!(of(&slow, "vigil-1.92tb") < 70);
    }
}
