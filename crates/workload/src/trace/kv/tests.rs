//! Tests of traces as published and as written by tools, and of invalid lines.

use runtime::Nanos;

use super::*;

const TWITTER: &str = "0,q:q:1:8WTfjZU14ee,17,213,4,get,0
0,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,5,set,604800
0,a,key,with,commas,17,8,5,add,0
0,counter,7,4,5,incr,0
2,q:q:1:8WTfjZU14ee,17,213,4,gets,0
2,gone,4,0,4,delete,0
";
const ROCKSDB: &str = "0x6B31 1 0 100 1591000000000000
0x6B32 0 0 0 1591000000000250
6b31 2 0 0 1591000000000500
0x6B33 5 1 20 1591000000000500
0x6B33 6 0 0 1591000000000600
0x6B34 4 0 0 1591000000000700
0x6B31 8 1 0 1591000000001000
";

fn all(format: KvFormat, text: &str) -> Vec<Result<KvRecord, TraceError>> {
    KvReader::new("t", format, text.as_bytes()).collect()
}

fn records(text: &str) -> Vec<(u64, KvOp, String, u32, u32)> {
    let format = KvFormat::detect("t", text.as_bytes()).unwrap();
    let all = all(format, text).into_iter().map(|record| record.unwrap());
    let shown = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    all.map(|r| (r.at.0 / 1_000, r.op, shown(&r.key), r.key_bytes, r.value_bytes)).collect()
}

fn survey(text: &str) -> KvSurvey {
    let format = KvFormat::detect("t", text.as_bytes()).unwrap();
    KvSurvey::of("t", format, text.as_bytes()).unwrap()
}

#[test]
fn twitters_seconds_are_spread_evenly() {
    use KvOp::{Delete, Get, Put, PutIfAbsent, PutIfPresent};
    let expected = [
        (0, Get, "q:q:1:8WTfjZU14ee", 17, 213),
        (250_000, Put, "yDqF:3q:1AJrrJ1nnCJKKrnGx1A", 27, 27),
        (500_000, PutIfAbsent, "a,key,with,commas", 17, 8),
        (750_000, PutIfPresent, "counter", 7, 4),
        (2_000_000, Get, "q:q:1:8WTfjZU14ee", 17, 213),
        (2_500_000, Delete, "gone", 4, 0),
    ];
    assert_eq!(
        records(TWITTER),
        expected.map(|(at, op, key, k, v)| (at, op, key.to_owned(), k, v))
    );
    let survey = survey(TWITTER);
    assert_eq!((survey.lines, survey.operations(), survey.keys, survey.met_first), (6, 6, 5, 2));
    assert_eq!((survey.gets, survey.puts, survey.read_modify_writes, survey.deletes), (2, 1, 2, 1));
    assert_eq!((survey.longest_key, survey.longest_value), (27, 213));
    assert!((survey.mean_value - 13.0).abs() < 1e-9, "{}", survey.mean_value);
    assert_eq!(survey.span, Nanos::from_millis(2_500));
}

#[test]
fn rocksdbs_types_are_told_apart_and_what_has_no_counterpart_is_left_out() {
    use KvOp::{Delete, Get, Merge, Put};
    let expected = [
        (0, Put, "k1", 100),
        (250, Get, "k2", 0),
        (500, Delete, "k1", 0),
        (500, Merge, "k3", 20),
        (1_000, Get, "k1", 0),
    ];
    let expected = expected.map(|(at, op, key, value)| (at, op, key.to_owned(), 2, value));
    assert_eq!(records(ROCKSDB), expected);
    let survey = survey(ROCKSDB);
    assert_eq!(
        (survey.lines, survey.operations(), survey.families, survey.largest_family),
        (7, 5, 2, 1)
    );
    assert_eq!(survey.left_out, [("seek", 1), ("range delete", 1)]);
    assert_eq!(survey.keys, 4, "k1 of two column families are two keys");
}

#[test]
fn other_beginnings_are_of_no_format() {
    for (text, words) in [
        ("", "nothing to replay in t: it is empty"),
        ("timestamp,key\n", "give --trace-format (twitter, rocksdb)"),
        ("1 0 100 1591000000000000\n", "give --trace-format (twitter, rocksdb)"),
        // Formats of DiskSim and MQSim.
        ("4809000 0 1234 8 1\n", "give --trace-format (twitter, rocksdb)"),
        ("fio version 3 iolog\n", "looks like iolog, which levelhead device --replay takes"),
        ("1,hm,1,Read,0,4096,5\n", "looks like msr, which levelhead device --replay takes"),
    ] {
        let error = KvFormat::detect("t", text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    let error = KvSurvey::of("t", KvFormat::Rocksdb, &b"0x6B33 6 0 0 1\n"[..]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothing to replay in t: none of its lines is a get, a put or a delete"
    );
}

#[test]
fn a_wrong_line_is_told_with_what_is_expected() {
    use KvFormat::{Rocksdb, Twitter};
    for (format, text, words) in [
        (Twitter, "0,k,1,2,3,get", "found `0,k,1,2,3,get`, expected seven fields"),
        (Twitter, "x,k,1,2,3,get,0", "found `x`, expected a timestamp in seconds"),
        (Twitter, "0,k,-1,2,3,get,0", "found `-1`, expected the size of the key"),
        (Twitter, "0,k,0,2,3,get,0", "expected a key of 1 to 4096 bytes"),
        (Twitter, "0,k,5000,2,3,get,0", "expected a key of 1 to 4096 bytes"),
        (Twitter, "0,k,1,2000000000,3,set,0", "expected a value of up to 1 GiB"),
        (Twitter, "0,k,1,2,3,touch,0", "found `touch`, expected an operation: get, gets, set"),
        (Twitter, "0,,1,2,3,get,0", "expected a key in the second field"),
        (Twitter, "0,k,1,2,3,get,soon", "found `soon`, expected a TTL in seconds"),
        (
            Rocksdb,
            "1 0 100 1591000000000000",
            "expected a key first; without trace_analyzer's -no_key",
        ),
        (Rocksdb, "0x6B 1 0", "found `0x6B 1 0`, expected five fields"),
        (Rocksdb, "0x6B3 1 0 1 1", "found `0x6B3`, expected a key in pairs of hexadecimal digits"),
        (Rocksdb, "0x6G 1 0 1 1", "found `0x6G`, expected a key in pairs"),
        (Rocksdb, "0x6B 99 0 1 1", "found `99`, expected the number of a type, 0 to 32"),
        (Rocksdb, "0x6B 1 0 1 1 1", "expected five fields"),
        (Rocksdb, "0x6B 1 0 1 soon", "found `soon`, expected a time in microseconds"),
    ] {
        let all = all(format, text);
        let Some(Err(error)) = all.last() else { panic!("{text} is taken: {all:?}") };
        let error = error.to_string();
        assert!(error.starts_with("t:1: ") && error.contains(words), "{text}: {error}");
    }
}

#[test]
fn an_error_comes_behind_what_was_right() {
    let all = all(KvFormat::Twitter, "5,a,1,2,3,get,0\n6,b,1,2,3,get,0\nbad\n");
    assert!(all[..2].iter().all(Result::is_ok) && all[2].is_err() && all.len() == 3);
}
