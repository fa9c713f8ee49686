//! Job files, flags and write orders of fio, given to `levelhead device`.

use std::fmt::Write;

use serde_json::Value;

use crate::{levelhead, stderr, traces};

/// Returns the result of a job as JSON, and its stderr.
fn device(arguments: &[&str]) -> (Value, String) {
    let output = levelhead(&[&["device", "--json", "--progress", "none"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    (serde_json::from_slice(&output.stdout).expect("it is JSON"), stderr(&output))
}

fn operations(stream: &Value, direction: &str) -> u64 {
    stream["directions"][direction]["operations"].as_u64().unwrap_or(0)
}

#[test]
fn a_job_file_is_run_as_fio_runs_it_and_flags_change_it() {
    let text = "; two phases\n[global]\nioengine=io_uring\nsize=1m\nbs=8k\ndirect=1\n\
                [fill]\nrw=randwrite\niodepth=4\n[reads]\nstonewall\nrw=randread\nnumjobs=3\n";
    let file = traces::file("phases.fio", text);
    let file = file.to_str().expect("the path is text");
    let (result, said) = device(&["--job", file, "--precondition", "empty"]);
    assert_eq!(result["job"], "phases");
    let (fill, reads) = (&result["streams"][0], &result["streams"][1]);
    assert_eq!((operations(fill, "write"), operations(reads, "read")), (128, 3 * 128));
    assert_eq!(result["verification"]["checked"], 3 * 256);
    assert_eq!((&fill["depth"], &reads["numjobs"]), (&4.into(), &3.into()));
    let end = |stream: &Value| stream["start_s"].as_f64().zip(stream["virtual_seconds"].as_f64());
    let (fill, reads) = (end(fill).expect("numbers"), end(reads).expect("numbers"));
    assert!(reads.0 >= fill.0 + fill.1, "{fill:?} {reads:?}");
    assert_eq!(said.matches("is passed over").count(), 2, "{said}");
    assert!(said.contains("phases.fio:3: ioengine=io_uring is passed over"), "{said}");
    let (result, _) = device(&["--job", file, "--bs", "4k", "--set", "stream.2.numjobs=1"]);
    assert_eq!(operations(&result["streams"][1], "read"), 256);
    assert_eq!(result["inputs"]["job"]["stream"][1]["rw"], "randread");
    let (result, said) = device(&["--job", file, "--size", "100g", "--operations", "10"]);
    assert!(operations(&result["streams"][0], "write") == 10 && said.contains("ends with it"));
}

#[test]
fn flags_have_the_names_that_they_have_with_fio() {
    let words = "--name=x --ioengine=libaio --direct=1 --time_based --group_reporting \
                 --readwrite=randrw --blocksize=8k --rwmixwrite=25 --numjobs=2 --io_size=8m \
                 --number_ios=1000 --thinktime=1us --runtime=1m --size=16m";
    let (result, said) = device(&words.split_whitespace().collect::<Vec<_>>());
    let stream = &result["streams"][0];
    let (reads, writes) = (operations(stream, "read"), operations(stream, "write"));
    assert_eq!((reads + writes, &stream["block_bytes"]), (2_000, &8_192.into()));
    assert!(reads.abs_diff(1_500) < 120, "{reads}");
    let passed = "--name, --ioengine, --direct, --time_based, --group_reporting are passed over";
    assert!(said.contains(passed), "{said}");
    let (result, _) = device(&["--rw", "randrw", "--rate_iops", "500", "--runtime", "1s"]);
    let stream = &result["streams"][0];
    assert_eq!((operations(stream, "read"), operations(stream, "write")), (500, 500));
    assert_eq!(stream["rate"], 1_000.0);
    assert_eq!(result["inputs"]["job"]["stream"][0].get("arrivals"), None);
    let (result, _) = device(&[
        "--rw",
        "randread",
        "--rate_iops",
        "500",
        "--rate_process",
        "poisson",
        "--runtime",
        "1s",
    ]);
    let reads = operations(&result["streams"][0], "read");
    assert!(reads != 500 && reads.abs_diff(500) < 100, "arrivals at random: {reads}");
    let (result, said) = device(&["--rw", "randread", "--bs", "8k,4k", "--operations", "10"]);
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(2));
    assert!(said.contains("--bs 8k,4k makes a run for each"), "{said}");
    let apart = ["--rw", "rw", "--set", "stream.block_bytes=\"8k,4k\"", "--operations", "100"];
    let (result, _) = device(&apart);
    let stream = &result["streams"][0];
    assert_eq!(stream["block_sizes"], "8k,4k");
    for (direction, blocks) in [("read", 2), ("write", 1)] {
        let all = stream["directions"][direction]["blocks"].as_u64();
        assert_eq!(all, Some(blocks * operations(stream, direction)));
    }
}

/// Blocks of a set of the drive below.
const BLOCKS: u32 = 187_000;

/// A smaller drive with the same utilization as `vigil-15gb`.
const DRIVE: [&str; 6] =
    ["--set", "blocks_per_plane=24", "--set", "user_bytes=3063808000", "--iodepth", "32"];

/// Returns an iolog with this many passes in fio's order: a random block, or the next one that was
/// not written in this pass.
fn iolog(passes: u32) -> String {
    let mut text = "fio version 2 iolog\nd add\nd open\n".to_owned();
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..passes {
        // The links from each block towards the next free one; a free block links to itself.
        let mut next: Vec<u32> = (0..BLOCKS).collect();
        for _ in 0..BLOCKS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let mut block = (state % u64::from(BLOCKS)) as usize;
            while next[block] as usize != block {
                let further = next[next[block] as usize];
                next[block] = further;
                block = further as usize;
            }
            writeln!(text, "d write {} 4096", block * 4_096).expect("a string takes any text");
            // The last block wraps around to the first.
            next[block] = (block as u32 + 1) % BLOCKS;
        }
    }
    text
}

#[test]
fn random_writes_cost_what_they_cost_in_the_order_of_fio() {
    let amplification = |arguments: &[&str]| {
        let (result, _) = device(&[&DRIVE, arguments].concat());
        let set = &result["sets"][0];
        assert_eq!(set["blocks_written"], 3 * BLOCKS);
        set["write_amplification"].as_f64().expect("it wrote")
    };
    let file = traces::file("order.iolog", &iolog(3));
    let file = file.to_str().expect("the path is text");
    let of_fio = amplification(&["--replay", file, "--replay-no-stall"]);
    let ours = amplification(&["--rw", "randwrite", "--operations", "561000"]);
    assert!((ours / of_fio - 1.0).abs() < 0.03, "{ours} for {of_fio}");
    let drawn = ["--rw", "randwrite", "--norandommap", "--operations", "561000"];
    let drawn = amplification(&drawn);
    assert!(drawn > 1.3 * of_fio, "drawn with replacement: {drawn} for {of_fio}");
}
