//! Comparisons of results with plausible, invented numbers.

use std::fmt::Write;

use report::compare::{Finished, SideBySide};

fn finished(name: &str, design: &str, depth: u32) -> Finished {
    let (depth_f, base) = (f64::from(depth), if design == "hash" { 400.0 } else { 250.0 });
    let us = |factor: f64| base * factor * (1.0 + depth_f / 40.0);
    let result = format!(
        "{{\"levelhead\": \"0\", \"design\": \"{design}\", \"device\": \"d\", \"workload\": \"a\", \"seed\": 1,
          \"records\": 1000, \"inputs\": {{\"design\": {{\"name\": \"{design}\"}}, \"options\": {{\"queue_depth\": {depth}}}}},
          \"operations\": {{\"get\": {{\"count\": 500, \"mean_us\": {}, \"p50_us\": {}, \"p99_us\": {}, \"p999_us\": {},
          \"max_us\": {}}}}}, \"throughput_ops_per_second\": {}, \"run_write_amplification\": 2.5,
          \"flash_reads_per_get\": [100, 300, 100], \"load\": {{}}, \"flash\": {{\"flushes\": 7}}}}",
        us(1.2),
        us(1.0),
        us(4.0),
        us(6.0),
        us(9.0),
        depth_f / us(1.2) * 1e6,
    );
    let mut latency = "operation,quantile,latency_us\n".to_owned();
    for step in 0..=40 {
        let rest = 10_f64.powf(-f64::from(step) / 10.0);
        writeln!(latency, "get,{:.7},{}", 1.0 - rest, us(1.0 + f64::from(step) / 5.0))
            .expect("a string takes any text");
    }
    let mut timeline = "start_s,operations_per_s,get_p99_us,put_p99_us\n".to_owned();
    for slice in 0..50 {
        let wave = 1.0 + f64::from(slice % 7) / 10.0;
        writeln!(timeline, "{},1000,{},0.0", f64::from(slice) / 100.0, us(4.0 * wave))
            .expect("a string takes any text");
    }
    Finished::new(name, &result, Some(&latency), Some(&timeline)).expect("a result")
}

/// Returns the files of a comparison of eight runs.
pub(crate) fn sweep() -> Vec<(String, String)> {
    let runs = ["pink", "hash"].into_iter().flat_map(|design| {
        [1, 4, 16, 64].map(|depth| finished(&format!("{design}, {depth} deep"), design, depth))
    });
    let sweep = SideBySide::new(runs.collect(), true).expect("results of one kind");
    sweep.files("Benches side by side", "levelhead bench --design pink,hash").expect("a page")
}

/// Returns the files of a comparison of two results.
pub(crate) fn two() -> Vec<(String, String)> {
    let runs = vec![finished("results/pink", "pink", 64), finished("results/<hash>", "hash", 64)];
    let two = SideBySide::new(runs, false).expect("results of one kind");
    two.files("Results side by side", "levelhead compare results/pink results/hash")
        .expect("a page")
}
