//! An estimate of the memory that a job needs on this machine, computed before the job.

use crate::device::DeviceSpec;
use crate::size;
use crate::stream::{Rw, StreamSpec};

const BASE_BYTES: u64 = 64 << 20;
/// Bytes for each block that was written and whose data is still on the flash, whether valid or
/// garbage.
const BLOCK_BYTES: u64 = 84;
/// The upper limit, a little more than the most ever measured, for overwriting all of 1.92 TB.
const MOST_BYTES: u64 = 8 << 30;
/// Blocks that the drive programs for each block written by clients, including that block: garbage
/// collection in the steady state programs 4 to 6.
const WRITTEN_PER_BLOCK: u64 = 6;

/// Returns the approximate maximum of the memory that a job needs on this machine, in bytes. It
/// depends on the blocks written by the job, at most all blocks of the drive. Data written before
/// the job is computed when needed, and needs no memory.
///
/// Measured: 305 to 328 MiB for overwriting 15 GB in the steady state, 84 bytes for each block of
/// the drive; 337 MiB for 4 GB of 960 GB; 45 MiB for a million reads of 1.92 TB, 111 MiB with 150
/// thousand writes among half a million operations; up to 7 GiB for overwriting all of 1.92 TB.
pub fn memory_bytes(spec: &DeviceSpec) -> u64 {
    let link_bytes_per_second = spec.profile.host.write_mb_per_s * 1e6;
    let written =
        spec.job.streams.iter().map(|stream| blocks_written(stream, link_bytes_per_second));
    let written = written.fold(0_u64, u64::saturating_add).saturating_mul(WRITTEN_PER_BLOCK);
    let there = spec.profile.blocks_per_set() * u64::from(spec.profile.sets);
    BASE_BYTES + written.min(there).saturating_mul(BLOCK_BYTES).min(MOST_BYTES)
}

/// Returns the maximum number of blocks that a stream writes, as limited by its end, its rate and
/// the link.
fn blocks_written(stream: &StreamSpec, link_bytes_per_second: f64) -> u64 {
    if !stream.writes() {
        return 0;
    }
    let by_trace = stream.trace.as_ref().map_or(u64::MAX, |trace| trace.survey.writes);
    let operations = stream.operation_limit().min(by_trace);
    let largest = match &stream.trace {
        None => stream.sizes().most(),
        Some(trace) => trace.survey.largest / size::default_block_bytes() + 2,
    };
    let seconds = stream.duration_s.unwrap_or(f64::INFINITY);
    let jobs = f64::from(stream.jobs());
    let by_rate = jobs * seconds * stream.total_rate().unwrap_or(f64::INFINITY) * largest as f64;
    let by_link = seconds * link_bytes_per_second / size::default_block_bytes() as f64;
    // In a mix only the share of writes counts. For a trace the number of writes is known.
    let share = match stream.rw {
        Rw::RandRw | Rw::Rw => 1.0 - stream.read_share(),
        _ => 1.0,
    };
    // A rate of all directions together is reduced to the share of writes. Rates by direction are
    // not, so this is an upper bound.
    let of_rate = if stream.operations_per_second.is_some() { share } else { 1.0 };
    let by_end = (jobs * operations as f64 * share) * largest as f64;
    by_end.min(by_rate * of_rate).min(by_link) as u64
}

#[cfg(test)]
mod tests {
    use drives::ssd::SsdProfile;

    use super::*;
    use crate::Job;

    fn mib(device: &str, job: Job) -> u64 {
        let profile = SsdProfile::load(device).expect("built in");
        memory_bytes(&DeviceSpec { profile, job, seed: 1 }) >> 20
    }

    #[test]
    fn memory_is_reckoned_from_what_was_measured() {
        // Job, drive, and measured memory of this program, in MiB.
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
