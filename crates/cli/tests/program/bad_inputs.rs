//! What people type wrong, run against the program: each ends soon, by itself, with the exit code and
//! the words of its row, and none with a panic.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{Ended, levelhead};

/// Refused by the reader of arguments, and by what reads files and sets up the work.
const USAGE: i32 = 2;
const REFUSED: i32 = 1;
const FINE: i32 = 0;

struct Case {
    arguments: Vec<String>,
    code: i32,
    says: &'static str,
}

/// A command line, cut at its blanks.
fn typed(line: &str, code: i32, says: &'static str) -> Case {
    Case { arguments: line.split_whitespace().map(str::to_owned).collect(), code, says }
}

/// Files that cases are made of.
struct Files {
    directory: PathBuf,
    count: usize,
}

impl Files {
    fn new() -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad-inputs");
        fs::create_dir_all(&directory).expect("the target directory takes files");
        Self { directory, count: 0 }
    }

    fn file(&mut self, contents: &str) -> String {
        self.count += 1;
        let path = self.directory.join(format!("{}.txt", self.count));
        fs::write(&path, contents).expect("the target directory takes files");
        path.to_str().expect("the path is text").to_owned()
    }

    /// A file of ours with the line of a key replaced; what stands in `head` comes before it.
    fn changed(&mut self, ours: &str, key: &str, value: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(ours);
        let text = fs::read_to_string(path).expect("it is part of the project");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let line = lines.iter_mut().find(|line| line.starts_with(&format!("{key} =")));
        *line.unwrap_or_else(|| panic!("{ours} has no {key}")) = format!("{key} = {value}");
        self.file(&lines.join("\n"))
    }

    fn device(&mut self, key: &str, value: &str, says: &'static str) -> Case {
        let file = self.changed("kvssd/devices/pink-zcu102.toml", key, value);
        typed(&format!("bench {SMALL} --device {file}"), REFUSED, says)
    }

    fn design(&mut self, key: &str, value: &str, says: &'static str) -> Case {
        let file = self.changed("design/designs/pink.toml", key, value);
        typed(&format!("bench {SMALL} --design {file}"), REFUSED, says)
    }

    fn profile(&mut self, key: &str, value: &str, says: &'static str) -> Case {
        let file = self.changed("ssd/profiles/vigil-15gb.toml", key, value);
        typed(&format!("device --profile {file} --job randread-qd1"), REFUSED, says)
    }

    fn job(&mut self, text: &str, says: &'static str) -> Case {
        let file = self.file(text);
        typed(&format!("device --job {file}"), REFUSED, says)
    }

    fn workload(&mut self, text: &str, code: i32, says: &'static str) -> Case {
        let file = self.file(text);
        typed(&format!("bench --workload {file} --operations 100"), code, says)
    }
}

const SMALL: &str = "--records 2000 --operations 100";

fn arguments() -> Vec<Case> {
    let usage = |line: &str, says| typed(line, USAGE, says);
    vec![
        usage("bench --records 0", "'--records <RECORDS>': allowed is a whole number from 1 to"),
        usage("bench --records -5", "'-5' for '--records"),
        usage("bench --records many", "4M and 1e6 are such numbers"),
        usage("bench --records 1e300", "allowed is a whole number from 1 to 68719476736"),
        usage("bench --records 18446744073709551616", "from 1 to 68719476736"),
        usage("bench --operations -1", "from 0 to 68719476736"),
        usage("bench --operations 1.5", "allowed is a whole number"),
        usage("bench --queue-depth 0", "from 1 to 65536"),
        usage("bench --queue-depth 65537", "from 1 to 65536"),
        usage("bench --queue-depth -3", "from 1 to 65536"),
        usage("bench --rate 0", "'0' for '--rate <RATE>': allowed are operations per second"),
        usage("bench --rate -1", "from 0.000001 to 1e12"),
        usage("bench --rate NaN", "from 0.000001 to 1e12"),
        usage("bench --rate inf", "from 0.000001 to 1e12"),
        usage("bench --rate 1e300", "from 0.000001 to 1e12"),
        usage("bench --seed -1", "from 0 to 18446744073709551615"),
        usage("bench --seed 18446744073709551616", "from 0 to 18446744073709551615"),
        usage("bench -p recordcount", "is not of the form NAME=VALUE"),
        usage("device --seed -1", "from 0 to 18446744073709551615"),
        usage("plan --value 1TiB", "allowed is 0 B to 2.00 MiB"),
        usage("plan --value 5GiB", "allowed is 0 B to 2.00 MiB"),
        usage("plan --key 5GiB", "'5GiB' for '--key <KEY>': allowed is 1 B to 255 B"),
        usage("plan --key 0", "allowed is 1 B to 255 B"),
        usage("plan --key -1", "`-1` is no size"),
        usage("plan --capacity 0", "allowed is 1.00 MiB to 1.00 PiB"),
        usage("plan --capacity 2PiB", "allowed is 1.00 MiB to 1.00 PiB"),
        usage("plan --capacity 1EiB", "allowed is 1.00 MiB to 1.00 PiB"),
        usage("plan --capacity much", "KiB, MiB, GiB, TiB, PiB"),
        usage("plan --page 5GiB", "allowed is 1.00 KiB to 64.0 KiB"),
        usage("plan --dram 1EiB", "allowed is 0 B to 32.0 TiB"),
        usage("plan --levels -1", "from 2 to 12"),
        usage("plan --levels 13", "from 2 to 12"),
        usage("plan --fill 70", "such as 0.7 or 70%"),
        usage("plan --fill -0.5", "such as 0.7 or 70%"),
        usage("plan --fill half", "such as 0.7 or 70%"),
        usage("reproduce pink --threads 0", "from 1 to 1024"),
        usage("reproduce pink --threads -1", "from 1 to 1024"),
        typed("plan --page 3000", REFUSED, "a power of two from 1 KiB to 64 KiB"),
        typed(
            "plan --dram 1",
            REFUSED,
            "levelhead: it does not fit: what a full drive has to have in memory",
        ),
        typed("plan --design hash", REFUSED, "what is planned here are the levels of LSM-trees"),
        typed("plan --capacity 1PiB --dram 1TiB", FINE, ""),
        typed("plan --fill 70%", FINE, ""),
        typed("plan --design rocksdb --capacity 1.9TB --dram 64GiB", FINE, ""),
        typed("bench --records 2k --operations 1e2", FINE, "load: 2 000 operations"),
    ]
}

fn names() -> Vec<Case> {
    let refused = |line: &str, says| typed(line, REFUSED, says);
    vec![
        refused(
            "bench --device vigil-15gb",
            "take a design with a log, durability = \"log\", such as",
        ),
        refused("bench --device windows", "windows is for levelhead device --job"),
        refused("bench --device desktop-12-core", "desktop-12-core is for levelhead bench --host"),
        refused("bench --host desktop-12-core", "pink-zcu102 is a KV drive, on which"),
        refused("bench --device vigil-15gb --host pink", "there is no host `pink`"),
        refused("bench --device vigil-15gb --layout plain", "cut into 4 sets, and layout plain"),
        refused("bench --device baseline-15gb --layout parity", "3 to 64 members, and there are 1"),
        refused(
            "bench --design rocksdb --device baseline-15gb --journal own-set",
            "leaves the data none",
        ),
        refused(
            "bench --journal own-set",
            "--journal, --windows, --plm-cache and --hedge-after are for block drives",
        ),
        refused(
            "bench --configuration base --hedge-after 200",
            "a hedged read is rebuilt from other sets: take layout parity or mirrored",
        ),
        refused("bench --configuration o-vigil --hedge-after 200", "take windows off"),
        typed("bench --windows always", USAGE, "allowed are off, simple, constant, dynamic, rails"),
        refused(
            "bench --design rocksdb --device vigil-15gb --layout parity --windows dynamic",
            "take journal own-set",
        ),
        refused(
            "bench --design rocksdb --device baseline-15gb --windows rails",
            "layout striped, parity or mirrored",
        ),
        refused(
            "bench --design rocksdb --device baseline-15gb --windows simple",
            "take a vigil drive",
        ),
        refused(
            "bench --design hash-log --device vigil-15gb --journal own-set",
            "hash-log is a hash table, whose log and manifest lie beside the data",
        ),
        refused(
            "bench --configuration vigil",
            "there is no configuration `vigil`: give one of base,",
        ),
        refused("bench --configuration rocksdb", "rocksdb is for levelhead bench --design"),
        refused("bench --design o-vigil", "o-vigil is for levelhead bench --configuration"),
        refused(
            "bench --configuration base --device pink-zcu102",
            "--plm-cache and --hedge-after are for block drives",
        ),
        refused("bench --configuration o-vigil --partitions 2", "a window is a whole set's"),
        refused("bench --configuration base --plm-cache 1MB", "take windows constant, dynamic or"),
        typed("bench --partitions 65", USAGE, "1 to 64"),
        typed("bench --journal raid6", USAGE, "allowed are beside, own-set"),
        typed("bench --layout raid6", USAGE, "allowed are plain, striped, parity, mirrored"),
        refused("bench --design pink-zcu102", "pink-zcu102 is for levelhead bench --device"),
        refused("bench --workload windows", "windows is for levelhead device --job"),
        refused("bench --workload no-such", "or the path of a YCSB property file"),
        refused("device --profile pink-zcu102", "pink-zcu102 is for levelhead bench --device"),
        refused("device --job seekrandom", "seekrandom is for levelhead bench --workload"),
        refused("bench --design /dev/zero", "it has more than 1 MiB"),
        refused("bench --device /dev/zero", "it has more than 1 MiB"),
        refused("bench --workload /dev/zero", "it has more than 1 MiB"),
        refused("device --profile /dev/zero", "it has more than 1 MiB"),
        refused("device --job /dev/zero", "it has more than 1 MiB"),
        refused("bench --design /", "cannot read /"),
    ]
}

fn workloads(files: &mut Files) -> Vec<Case> {
    let small = |rest: &str, code, says| typed(&format!("bench {SMALL} {rest}"), code, says);
    let mut cases = vec![
        typed("bench --records 100000000", REFUSED, "pink-zcu102 holds about 55 000 000 of them"),
        typed("bench --records 2000000000", REFUSED, "pairs of 32 + 1024 bytes do not fit"),
        typed("bench --records 68719476736 --operations 100", REFUSED, "--operations 100 is not"),
        small("-p levelhead.valuebytes=1073741824", REFUSED, "takes 0 to 2097152"),
        small("-p levelhead.valuebytes=4294967296", REFUSED, "from 0 to 1073741824"),
        small("-p levelhead.keybytes=300", REFUSED, "a drive takes 1 to 255"),
        small("-p levelhead.keybytes=4", REFUSED, "override: levelhead.keybytes=4 is not allowed"),
        small("-p fieldcount=1000000 -p fieldlength=1000", REFUSED, "values of 1000000000 bytes"),
        small("-p recordcount=500", REFUSED, "--records 2000 and -p recordcount=500 contradict"),
        small(
            "-p operationcount=5",
            REFUSED,
            "--operations 100 and -p operationcount=5 contradict",
        ),
        small("--queue-depth 4 -p threadcount=1", REFUSED, "contradict each other"),
        small("--rate 5 -p target=6", REFUSED, "contradict each other"),
        small("-p threadcount=0", REFUSED, "override: threadcount=0 is not allowed"),
        small("-p threadcount=1000000", REFUSED, "a whole number from 1 to 65536"),
        small("-p target=-1", REFUSED, "override: target=-1 is not allowed"),
        small("-p target=1e-300", REFUSED, "0 for none, or 0.000001 to 1e12"),
        small("-p target=fast", REFUSED, "override: target=fast is not allowed"),
        small("-p levelhead.keysize=3", REFUSED, "the levelhead properties are"),
        small("-p readproportion=NaN", REFUSED, "readproportion=NaN is not allowed"),
        typed(
            "bench --records 2000 -p operationcount=1000000 --rate 0.000001",
            REFUSED,
            "30 years",
        ),
        typed("bench --records 2000 --operations 0", REFUSED, "nothing to run"),
        typed("bench -p recordcount=0", REFUSED, "override: recordcount=0 is not allowed"),
        small("--design hash --workload e", REFUSED, "keeps no key order"),
        small("-p maxexecutiontime=60", FINE, "maxexecutiontime=60 has no effect"),
        small("-p dataintegrity=true", FINE, "dataintegrity=true has no effect"),
        small("-p threadcont=4", FINE, "threadcont is not known and has no effect"),
        small("-p recordcount=2000", FINE, "load: 2 000 operations"),
        small("-p insertcount=1000", FINE, "load: 1 000 operations"),
    ];
    cases.extend([
        files.workload("operationcount=5\n", REFUSED, "recordcount is not set"),
        files.workload("recordcount=many\n", REFUSED, "txt:1: recordcount=many is not allowed"),
        files.workload("\nrecordcount=5\nb=\\u12\n", REFUSED, "txt:3: `\\u12` is not"),
        files.workload("recordcount=9\nkeyprefix=a\\u001bb\n", FINE, "load: 9 operations"),
        files.workload("recordcount=9\na\\u001b[2J=1\n", FINE, "a\\u{1b}[2J is not known"),
    ]);
    cases
}

fn devices(files: &mut Files) -> Vec<Case> {
    vec![
        files.device("read_us", "[1e18, 1e18]", "timing.read_us is 1e18, must be 0 to 60000000"),
        files.device("read_us", "[1e15, 1e15]", "timing.read_us is 1e15, must be"),
        files.device("read_us", "[1e9, 1e9]", "(a minute)"),
        files.device("read_us", "[-1.0, 1.0]", "timing.read_us is -1, must be"),
        files.device("read_us", "[nan, 1.0]", "timing.read_us is NaN, must be"),
        files.device("read_us", "[75.0]", "timing.read_us needs 2 numbers"),
        files.device("program_us", "[1e18, 1e18]", ".txt:21: timing.program_us is 1e18"),
        files.device("erase_us", "1e300", "timing.erase_us is 1e300, must be"),
        files.device(
            "channel_mb_per_s",
            "1e-300",
            "timing.channel_mb_per_s is 1e-300, must be 0.1",
        ),
        files.device("background_deadline_us", "1e16", "timing.background_deadline_us is 1e16"),
        files.device("pipeline_us", "1e16", "controller.pipeline_us is 1e16, must be"),
        files.device("latency_us", "1e16", "host.latency_us is 1e16, must be"),
        files.device("quantum_us", "1e-300", "controller.quantum_us is 1e-300, must be 1 to"),
        files.device("cores", "4294967295", "controller.cores is 4294967295, must be 1 to 1024"),
        files.device("cores", "0", "controller.cores is 0, must be 1 to 1024"),
        files.device("queue_depth", "4294967295", "controller.queue_depth is 4294967295"),
        files.device("memtable_ns", "1e16", "memtable_ns is 1e16, must be 0 to 1000000"),
        files.device("merge_entry_ns", "inf", "merge_entry_ns is inf, must be"),
        files.device("clock_mhz", "0.0", "clock_mhz is 0, must be"),
        files.device(
            "index_bytes",
            "9223372036854775807",
            "dram.index_bytes is 9223372036854775807",
        ),
        files.device("index_bytes", "35184372088832", "the drive is too small for its memory"),
        files.device("spare_bytes", "4294967295", "spare_bytes is 4294967295, must be 0 to"),
        files.device("transfer_bytes", "4294967295", "transfer_bytes is 4294967295, must be"),
        files.device("blocks_per_plane", "4000000000", "more than 4294967295 pages"),
        files.device("blocks_per_plane", "1", "the drive is too small for its memory"),
        files.device("name", "\"a\\u001b[2J\"", "name has the control character U+001B"),
        files.design(
            "compaction_workers",
            "100000",
            "compaction_workers is 100000, must be 1 to 64",
        ),
        files.design("compaction_workers", "0", "compaction_workers is 0, must be 1 to 64"),
        files.design("memtable_bytes", "1152921504606846976", "must be 1024 to 1099511627776"),
        files.design("memtable_bytes", "1099511627776", "the drive is too small for its memory"),
        files.design("frozen_memtables", "1000000000", "frozen_memtables is 1000000000, must be"),
        files.design("levels", "99", ".txt:6: levels is 99, must be 2 to 12"),
        files.design("fill", "1.5", "fill is 1.5, must be"),
        files.design("description", "\"\\u0007\"", "description has the control character U+0007"),
        files.profile("read_us", "[1e18, 1e18, 1e18]", "timing.read_us is 1e18, must be"),
        files.profile("cores", "1000000", "controller.cores is 1000000, must be 1 to 1024"),
        files.profile("cores", "3", "controller.cores must be a multiple of sets"),
        files.profile("sets", "3", "sets must divide channels"),
        files.profile("block_ns", "1e16", "controller.block_ns is 1e16, must be"),
        files.profile("mb_per_s", "1e-300", "dram.mb_per_s is 1e-300, must be"),
        files.profile("burst_interval_ms", "1e-9", "burst_interval_ms is 1e-9, must be 0.01"),
        files.profile("programs_per_die", "4294967295", "programs_per_die is 4294967295"),
        files.profile("blocks_per_plane", "1", "none is left for data"),
        files.profile("user_bytes", "15002992641", "must be a multiple of 4096"),
        files.profile("dtwin_time_max_ms", "9223372036854775807", "must be 0 to 864000000"),
        files.profile("name", "\"\\u001b]0;x\"", "name has the control character U+001B"),
    ]
}

fn jobs(files: &mut Files) -> Vec<Case> {
    let mut job = |stream: &str, says| {
        files.job(&format!("name = \"x\"\n[[stream]]\nrw = \"randread\"\n{stream}\n"), says)
    };
    vec![
        job("", "stream 1: it never ends"),
        job("operations = 0", "operations = 0: allowed is 1 or more"),
        job("operations = 1\ndepth = 0", "txt:5: stream 1: depth = 0: allowed is 1 to 65536"),
        job("bytes = 4096\nbs = 0", "block_bytes = 0: allowed are multiples of 4096"),
        job("bytes = 4096\nrate = 1.0\nbs = 0", "block_bytes = 0: allowed are multiples of 4096"),
        job("operations = 1\nrate = 1e300", "rate = 1e300: allowed are operations per second"),
        job("operations = 9000000000\nrate = 1.0", "take more than 30 years at it"),
        job("duration_s = 1e18", "allowed is more than 0 to 864000"),
        job("operations = 1\nname = \"a\\u001b[2J\"", "stream 1 (a\\u{1b}[2J): name has control"),
        job("operations = 1\nset = 9", "stream 1 is for set 9; the drive has sets 1 to 4"),
        job("operations = 1\nsize = \"10%\"\noffset = \"200%\"", "offset = 2: allowed is a share"),
        files.job("name = \"\\u001b\"\n", "name has the control character U+001B"),
        files.job("name = \"x\"\nsamples = 1000000000000\n", "samples is 1000000000000, must be"),
        files.job("name = \"x\"\nbucket_ms = 1e-300\n", "bucket_ms = "),
        files.job("[global]\nrw=randread\n", "job "),
    ]
}

#[test]
fn what_is_typed_wrong_ends_soon_and_says_what_is_right() {
    let mut files = Files::new();
    let mut cases = arguments();
    cases.extend(names());
    cases.extend(workloads(&mut files));
    cases.extend(devices(&mut files));
    cases.extend(jobs(&mut files));
    assert!(cases.len() >= 100, "{}", cases.len());
    let wrong: Vec<String> = cases.iter().filter_map(failure).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// What is wrong with the end of a case, if anything is.
fn failure(case: &Case) -> Option<String> {
    let Case { arguments, code, says } = case;
    let Ended { code: ended, stderr, stdout, .. } = levelhead(arguments);
    let is_silent = code == &FINE || arguments[0] == "plan" || stdout.is_empty();
    let is_plain = !stderr.contains(|c: char| c.is_control() && c != '\n');
    let is_right = ended == Some(*code) && stderr.contains(says) && is_silent && is_plain;
    let words = || {
        let line = arguments.join(" ");
        format!(
            "levelhead {line}\n  ended with {ended:?}, not {code}; said, without \"{says}\":\n{stderr}"
        )
    };
    (!is_right).then(words)
}
