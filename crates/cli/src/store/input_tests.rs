//! Tests with files as users have them.

use super::*;
use crate::store::output::PairWriter;

fn shape(format: Format) -> Shape {
    Shape {
        format,
        encoding: Encoding::Text,
        has_header: format == Format::Csv,
        is_verbatim: false,
        key: None,
        value: None,
    }
}

/// Returns the lines of a file: numbers, and `key=value` or the error.
fn read(text: &str, shape: Shape) -> anyhow::Result<Vec<(u64, String)>> {
    let mut input = Input::new(text.as_bytes(), shape)?;
    let mut lines = Vec::new();
    while let Some(Line { number, pair, .. }) = input.next()? {
        let words = pair.map_or_else(
            |what| format!("! {what}"),
            |(key, value)| {
                format!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
            },
        );
        lines.push((number, words));
    }
    Ok(lines)
}

#[test]
fn a_pair_ends_in_the_line_where_its_last_value_does() {
    for text in ["key,value\na,1\nb,\"x\n\ny\"\nd,4", "key,value\na,1\nb,\"x\n\ny\"\nd,4\n"] {
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let mut input = Input::new(text.as_bytes(), shape(Format::Csv)).unwrap();
            let mut lines = Vec::new();
            while let Some(line) = input.next().unwrap() {
                lines.push((line.number, line.last));
            }
            assert_eq!(lines, [(2, 2), (3, 5), (6, 6)], "{text:?}");
        }
    }
}

fn name(name: &str) -> Column {
    Column::Name(name.to_owned())
}

#[test]
fn tsv_has_pairs_in_its_first_columns_or_in_those_that_are_named() {
    let lines = read("a\t1\r\n\nb\t2\\n2\tmore\nc\n", shape(Format::Tsv)).unwrap();
    let expected = [(1, "a=1"), (3, "b=2\n2"), (4, "! there is no column 2: the line has 1")];
    assert_eq!(lines, expected.map(|(line, words)| (line, words.to_owned())));
    let named = Shape {
        has_header: true,
        key: Some(name("id")),
        value: Some(Column::Number(1)),
        ..shape(Format::Tsv)
    };
    let lines = read("text\tid\nx\t7\n", named).unwrap();
    assert_eq!(lines, [(2, "7=x".to_owned())]);
    let verbatim = Shape { is_verbatim: true, ..shape(Format::Tsv) };
    assert_eq!(read("C:\\new\t1", verbatim).unwrap(), [(1, "C:\\new=1".to_owned())]);
}

#[test]
fn csv_goes_by_its_header_and_counts_lines_within_quotes() {
    let text = "value,key\n\"1, \"\"one\"\"\n\",a\n2,b\n";
    let lines = read(text, shape(Format::Csv)).unwrap();
    assert_eq!(lines, [(2, "a=1, \"one\"\n".to_owned()), (4, "b=2".to_owned())]);
    let bare = Shape { has_header: false, ..shape(Format::Csv) };
    assert_eq!(read("a,1\n", bare.clone()).unwrap(), [(1, "a=1".to_owned())]);
    let crlf = text.replace('\n', "\r\n");
    let lines = read(&crlf, shape(Format::Csv)).unwrap();
    assert_eq!(lines, [(2, "a=1, \"one\"\r\n".to_owned()), (4, "b=2".to_owned())]);
    let lines = read("a,1\r\nb,2\r\n", bare).unwrap();
    assert_eq!(lines, [(1, "a=1".to_owned()), (2, "b=2".to_owned())]);
}

#[test]
fn a_quote_that_is_not_closed_is_told_with_its_line() {
    let bare = Shape { has_header: false, ..shape(Format::Csv) };
    for (text, line) in [
        ("key,value\na,\"1\nb,2\nc,3\n", 2),
        ("key,value\na,\"1\n\"\nb,\"2\"\"\n\"\"", 4),
        ("key,\"value\na,1\n", 1),
        ("\"a,1\n", 1),
    ] {
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let shape = if text.starts_with('k') { shape(Format::Csv) } else { bare.clone() };
            let error = read(&text, shape).expect_err(&text).to_string();
            let says = format!("the quote that opens in line {line} is not closed");
            assert!(error.starts_with(&says), "{text}: {error}");
        }
    }
    // A quote within a bare field is an ordinary character, and a quoted field may end with the
    // file.
    for text in ["a,5\" disk\n", "a,\"1\"", "a,\"1\" \"\n", "a,\"\"\"\"\r\n"] {
        assert_eq!(read(text, bare.clone()).unwrap().len(), 1, "{text}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    for (format, text) in [
        (Format::Tsv, "a\t1\n"),
        (Format::Csv, "key,value\na,1\n"),
        (Format::Csv, "\"key\",value\na,1\n"),
        (Format::Jsonl, "{\"key\":\"a\",\"value\":1}"),
    ] {
        let lines = read(&format!("\u{feff}{text}"), shape(format)).unwrap();
        assert_eq!(lines[0].1, "a=1", "{text}");
    }
}

#[test]
fn json_has_members_of_these_names_or_of_others() {
    let text = "{\"key\":\"a\",\"value\":\"\\u00fc\"}\n{\"key_hex\":\"6162\",\"value_base64\":\"MQ==\"}\n\
                {\"key\":7,\"value\":{\"n\": 1.50}}\n{\"key\":\"a\"}\n[1]\n{\"key\":null,\"value\":1}\n\
                {\"key\":\"a\",\"key_hex\":\"61\",\"value\":1}\n{\"key\":\"a\",\"value\":1,\"value\":2}\n";
    let lines = read(text, shape(Format::Jsonl)).unwrap();
    let words: Vec<&str> = lines.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(words[..4], ["a=\u{fc}", "ab=1", "7={\"n\": 1.50}", "! it has no `value`"]);
    assert!(words[4].starts_with("! it is no JSON object: invalid type"), "{}", words[4]);
    assert_eq!(
        words[5..],
        ["! `key` is null", "! it has both `key` and `key_hex`", "! it has `value` more than once"]
    );
    let named = Shape { key: Some(name("id")), value: Some(name("text")), ..shape(Format::Jsonl) };
    assert_eq!(read("{\"id\":1,\"text\":\"x\"}", named).unwrap(), [(1, "1=x".to_owned())]);
}

#[test]
fn columns_that_are_not_there_end_it_with_words() {
    for (text, shape, says) in [
        (
            "id,text\n",
            shape(Format::Csv),
            "the header has no column `key`, but id, text: name one with --key-column",
        ),
        (
            "a\t1\n",
            Shape { key: Some(name("id")), ..shape(Format::Tsv) },
            "--key-column id is a name, and the file has no",
        ),
        (
            "key,value,value\n",
            shape(Format::Csv),
            "the header has the column `value` more than once: give the number of one with --value-column",
        ),
        (
            "{}",
            Shape { key: Some(Column::Number(1)), ..shape(Format::Jsonl) },
            "JSON objects have names",
        ),
    ] {
        let error = read(text, shape).expect_err(says).to_string();
        assert!(error.starts_with(says), "{error}");
    }
    assert!(Column::parse("0").is_err() && Column::parse("").is_err());
}

#[test]
fn whatever_is_written_is_read_back_in_every_format() {
    let all: Vec<u8> = (0..=255).collect();
    let odd = [
        (&b"a"[..], &b""[..]),
        (b" ", b" \n"),
        (b"\xef\xbb\xbfkey", b"\r"),
        (b"\r\n", b"\"\"\","),
        (b"key", b"value"),
        (b"\\t", b"\\x00\\"),
        (b"null", b"{\"a\":1}"),
        (b"0", b"\xff\xfe\xc3"),
        (&all[..200], &all),
    ];
    for format in [Format::Tsv, Format::Csv, Format::Jsonl] {
        for encoding in [Encoding::Text, Encoding::Hex, Encoding::Base64] {
            let mut writer = PairWriter::new(Vec::new(), format, encoding, true);
            writer.header().unwrap();
            for (key, value) in odd {
                writer.pair(key, value).unwrap();
            }
            let file = writer.finish().unwrap();
            let mut input = Input::new(&file[..], Shape { encoding, ..shape(format) }).unwrap();
            for (key, value) in odd {
                let line = input.next().unwrap().expect("it was written");
                let expected = (key.to_vec(), value.to_vec());
                assert_eq!(line.pair, Ok(expected), "{format:?} {encoding:?}");
            }
            assert!(input.next().unwrap().is_none(), "{format:?} {encoding:?}");
        }
    }
}
