//! Tests of traces as written by their tools, and of invalid lines.

use runtime::Nanos;

use super::*;

const IOLOG_2: &str = "fio version 2 iolog
/dev/nvme0n1 add
/dev/nvme0n1 open
/dev/nvme0n1 read 4096 8192
/dev/nvme0n1 wait 1500 0
/dev/nvme0n1 write 0 4096
/dev/nvme0n1 sync 0 0
/dev/nvme0n1 wait 500
/dev/nvme0n1 trim 1048576 65536
/dev/nvme0n1 close
";
const IOLOG_3: &str = "fio version 3 iolog
2 /dev/sda add
872 /dev/sda open
878 /dev/sda write 0 16384
888 /dev/sda datasync 0 0
1001 /dev/sda read 16384 512
10001677 /dev/sda close
";
const BLKPARSE: &str = "  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001829   697  Q  WS 223490 + 8 [kjournald]
  8,0    3        3     0.000002197   697  G  WS 223490 + 8 [kjournald]
  8,0    3        4     0.000005533   697  P   N [kjournald]
  8,0    3        0     0.000006000     0  m   N cfq697 insert_request
  8,0    3        5     0.000011096   697  D  WS 223490 + 8 [kjournald]
  8,0    1        6     0.009507758     0  C  WS 223490 + 8 [0]
  8,0    1        7     1.000000000   701  Q   R 1000 + 16 [a process [x] with brackets]
  8,0    1        8     1.000000001   701  Q FWFS 2000 + 8 [jbd2/sda1-8]
  8,0    1        9     1.000000002   701  Q FN [jbd2/sda1-8]
  8,0    1       10     1.000000003   701  Q   D 4096 + 2048 [fstrim]
  8,0    1       11     1.000000004   701  Q  WM 5000 + 0 [x]
CPU0 (8,0):
 Reads Queued:           1,        8KiB\t Writes Queued:           2,        8KiB
Total (8,0):
 anything at all
";
const MSR: &str = "128166372003061629,hm,1,Read,383496192,32768,413
128166372003061729,hm,1,Write,310378496,4096,1123
128166372002061629,hm,1,read,0,512,10
128166372013061629,hm,1,Write,0,0,10
";

fn all(format: BlockFormat, action: Action, text: &str) -> Vec<Result<BlockRecord, TraceError>> {
    BlockReader::new("t", format, action, text.as_bytes()).collect()
}

fn records(text: &str) -> Vec<(u64, BlockOp, u64, u64)> {
    let format = BlockFormat::detect("t", text.as_bytes()).unwrap();
    let all = all(format, Action::Queued, text).into_iter();
    all.map(|record| record.unwrap()).map(|r| (r.at.0, r.op, r.offset, r.bytes)).collect()
}

fn survey(text: &str) -> Result<BlockSurvey, TraceError> {
    let format = BlockFormat::detect("t", text.as_bytes())?;
    BlockSurvey::of("t", format, None, || Ok(text.as_bytes()))
}

#[test]
fn an_iolog_of_version_2_has_the_times_of_its_waits() {
    use BlockOp::{Flush, Read, Trim, Write};
    let expected = [
        (0, Read, 4096, 8192),
        (1_500_000, Write, 0, 4096),
        (1_500_000, Flush, 0, 0),
        (2_000_000, Trim, 1_048_576, 65_536),
    ];
    assert_eq!(records(IOLOG_2), expected);
    let survey = survey(IOLOG_2).unwrap();
    assert_eq!((survey.lines, survey.operations(), survey.sources), (10, 4, 1));
    assert_eq!((survey.span, survey.end), (Some(Nanos(2_000_000)), 1_114_112));
    let untimed = IOLOG_2.replace("wait 1500 0", "read 0 512").replace("wait 500", "read 0 512");
    assert_eq!(self::survey(&untimed).unwrap().span, None);
}

#[test]
fn an_iolog_of_version_3_has_times_in_microseconds() {
    use BlockOp::{Flush, Read, Write};
    let expected =
        [(878_000, Write, 0, 16_384), (888_000, Flush, 0, 0), (1_001_000, Read, 16_384, 512)];
    assert_eq!(records(IOLOG_3), expected);
}

#[test]
fn what_blkparse_prints_counts_by_what_was_queued() {
    use BlockOp::{Flush, Read, Trim, Write};
    let expected = [
        (0, Write, 223_490 * 512, 4096),
        (999_998_171, Read, 512_000, 8192),
        (999_998_172, Flush, 0, 0),
        (999_998_172, Write, 1_024_000, 4096),
        (999_998_173, Flush, 0, 0),
        (999_998_174, Trim, 2_097_152, 1_048_576),
    ];
    assert_eq!(records(BLKPARSE), expected);
    let survey = survey(BLKPARSE).unwrap();
    assert_eq!((survey.lines, survey.left_out, survey.action), (16, 1, Action::Queued));
    assert_eq!((survey.reads, survey.writes, survey.trims, survey.flushes), (1, 2, 1, 2));
}

/// Removes the lines with these words.
fn without(text: &str, words: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains(words)).collect();
    lines.join("\n")
}

#[test]
fn without_anything_queued_what_was_issued_counts() {
    let issued = without(BLKPARSE, " Q ");
    let survey = survey(&issued).unwrap();
    assert_eq!((survey.action, survey.operations()), (Action::Issued, 1));
    let neither = without(&issued, " D ");
    let error = self::survey(&neither).unwrap_err().to_string();
    assert_eq!(error, "nothing to replay in t: none of its 9 lines is an operation on bytes");
}

#[test]
fn the_action_that_counts_can_be_chosen() {
    let of = |text: &str, action| {
        BlockSurvey::of("t", BlockFormat::Blkparse, Some(action), || Ok(text.as_bytes()))
    };
    let issued = of(BLKPARSE, Action::Issued).unwrap();
    assert_eq!((issued.action, issued.operations()), (Action::Issued, 1));
    let queued = of(BLKPARSE, Action::Queued).unwrap();
    assert_eq!((queued.action, queued.operations()), (Action::Queued, 6));
    let none = of(&without(BLKPARSE, " Q "), Action::Queued);
    assert!(none.unwrap_err().to_string().starts_with("nothing to replay in t"));
}

#[test]
fn msr_cambridge_has_ticks_of_100_ns_with_or_without_a_header() {
    use BlockOp::{Read, Write};
    let expected = [
        (0, Read, 383_496_192, 32_768),
        (10_000, Write, 310_378_496, 4096),
        (10_000, Read, 0, 512),
    ];
    assert_eq!(records(MSR), expected);
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    assert_eq!(records(&format!("{header}{MSR}")), expected);
    let survey = survey(MSR).unwrap();
    assert_eq!((survey.left_out, survey.out_of_order, survey.sources), (1, 1, 1));
    assert_eq!((survey.largest, survey.end), (32_768, 383_528_960));
}

#[test]
fn other_beginnings_are_of_no_format() {
    for (text, words) in [
        ("", "nothing to replay in t: it is empty"),
        ("# a comment\n", "give --trace-format (iolog, blkparse, msr)"),
        ("fio version 1 iolog\n", "begins with `fio version 1 iolog` is of no format"),
        (
            "0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n",
            "looks like twitter, which levelhead bench --trace takes",
        ),
        ("0x6b31 1 0 100 1000\n", "looks like rocksdb, which levelhead bench --trace takes"),
    ] {
        let error = survey(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_wrong_line_is_told_with_what_is_expected() {
    use BlockFormat::{Blkparse, Iolog, Msr};
    for (format, text, words) in [
        (
            Iolog,
            "/dev/sda read 0 4096",
            "t:1: found `/dev/sda read 0 4096`, expected the first line of an iolog",
        ),
        (Iolog, "fio version 2 iolog\n/dev/sda", "t:2: found `/dev/sda`, expected an action"),
        (
            Iolog,
            "fio version 2 iolog\n/dev/sda reed 0 1",
            "t:2: found `reed`, expected an action: read, write",
        ),
        (
            Iolog,
            "fio version 2 iolog\n/dev/sda read 0",
            "t:2: found `/dev/sda read 0`, expected a length",
        ),
        (
            Iolog,
            "fio version 2 iolog\n/dev/sda read x 1",
            "t:2: found `x`, expected an offset, a whole number",
        ),
        (
            Iolog,
            "fio version 2 iolog\n/dev/sda read 0 1 2",
            "t:2: found `2`, expected the end of the line",
        ),
        (
            Iolog,
            "fio version 3 iolog\n/dev/sda read 0 1",
            "t:2: found `/dev/sda`, expected a time in microseconds",
        ),
        (
            Iolog,
            "fio version 3 iolog\n5 /dev/sda wait 0 1",
            "t:2: found `wait`, expected an action",
        ),
        (Iolog, "fio version 3 iolog\n5 /dev/sda read 18446744073709551615 2", "end within 16 EiB"),
        (
            Iolog,
            "fio version 3 iolog\n5 /dev/sda read 0 2000000000",
            "reads and writes of up to 1 GiB",
        ),
        (Iolog, "fio version 3 iolog\n18446744073709551615 d read 0 1", "a time within 30 years"),
        (
            Blkparse,
            "8,0 3 1 0.0 697 Q",
            "found `8,0 3 1 0.0 697 Q`, expected an event as blkparse prints it",
        ),
        (Blkparse, "8 3 1 0.0 697 Q W 1 + 8", "found `8`, expected an event"),
        (Blkparse, "8,0 3 1 0.0.0 697 Q W 1 + 8", "found `0.0.0`, expected a time in seconds"),
        (Blkparse, "8,0 3 1 0.1234567890 697 Q W 1 + 8", "expected a time in seconds"),
        (Blkparse, "8,0 3 1 0.1 697 Q w 1 + 8", "found `w`, expected letters"),
        (Blkparse, "8,0 3 1 0.1 697 Q W 1 + x", "found `x`, expected a number of sectors"),
        (Blkparse, "8,0 3 1 0.1 697 Q W 18446744073709551615 + 8", "sectors within 16 EiB"),
        (Msr, "1,hm,1,Read,0,4096", "found `1,hm,1,Read,0,4096`, expected seven fields"),
        (Msr, "1,hm,1,Reed,0,4096,1", "found `Reed`, expected a type: Read or Write"),
        (Msr, "1,hm,1,Read,-4,4096,1", "found `-4`, expected an offset in bytes, a whole number"),
        (Msr, "1.5,hm,1,Read,4,4096,1", "found `1.5`, expected a timestamp in ticks"),
    ] {
        let all = all(format, Action::Queued, text);
        let Some(Err(error)) = all.last() else { panic!("{text} is taken: {all:?}") };
        let error = error.to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
