//! Line-by-line reading of a trace.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use super::error::{TraceError, Wrong, shown};

/// Longest line of a trace, in bytes: has room for a key of 4 KiB in hexadecimal digits.
pub const MOST_LINE_BYTES: u64 = 64 << 10;

/// First bytes of files compressed by gzip and by zstd.
const COMPRESSED: [&[u8]; 2] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];

/// Converts lines into operations.
pub(crate) trait LineParser {
    /// An operation.
    type Record;

    /// Adds the operations of a line, if it has any.
    fn line(&mut self, text: &str, records: &mut VecDeque<Self::Record>) -> Result<(), Wrong>;
}

/// The operations of a trace, in order.
#[derive(Debug)]
pub(crate) struct TraceReader<R, P: LineParser> {
    origin: String,
    input: R,
    /// The current line, and the number of lines so far.
    text: Vec<u8>,
    lines: u64,
    parser: P,
    records: VecDeque<P::Record>,
    has_ended: bool,
}

impl<R: BufRead, P: LineParser> TraceReader<R, P> {
    pub(crate) fn new(origin: &str, input: R, parser: P) -> Self {
        Self {
            origin: origin.to_owned(),
            input,
            text: Vec::new(),
            lines: 0,
            parser,
            records: VecDeque::new(),
            has_ended: false,
        }
    }

    /// Returns the number of lines read so far.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    pub(crate) fn parser(&self) -> &P {
        &self.parser
    }

    fn read(&mut self) -> Result<Option<P::Record>, TraceError> {
        loop {
            if let Some(record) = self.records.pop_front() {
                return Ok(Some(record));
            }
            let Some(text) = next_line(&self.origin, &mut self.input, &mut self.text, self.lines)?
            else {
                return Ok(None);
            };
            self.lines += 1;
            let text = text.trim();
            if !text.is_empty() {
                let parsed = self.parser.line(text, &mut self.records);
                parsed.map_err(|wrong| wrong.at(&self.origin, self.lines))?;
            }
        }
    }
}

/// Ends after an error.
impl<R: BufRead, P: LineParser> Iterator for TraceReader<R, P> {
    type Item = Result<P::Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let next = self.read().transpose();
        self.has_ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Reads the line after the first `lines` lines; `None` at the end.
fn next_line<'a>(
    origin: &str,
    input: &mut impl BufRead,
    text: &'a mut Vec<u8>,
    lines: u64,
) -> Result<Option<&'a str>, TraceError> {
    text.clear();
    let read = input.take(MOST_LINE_BYTES + 1).read_until(b'\n', text);
    let bytes = read.map_err(|error| unreadable(origin, &error))?;
    if bytes == 0 {
        return Ok(None);
    }
    let wrong = |found: &str, expected: &str| TraceError::Line {
        origin: origin.to_owned(),
        line: lines + 1,
        found: found.to_owned(),
        expected: expected.to_owned(),
    };
    if lines == 0 && COMPRESSED.iter().any(|magic| text.starts_with(magic)) {
        return Err(wrong("what is compressed", "text: uncompress it first"));
    }
    if bytes as u64 > MOST_LINE_BYTES {
        return Err(wrong("a line of more than 64 KiB", "the lines of a trace"));
    }
    match std::str::from_utf8(text) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(wrong(
            &shown(&String::from_utf8_lossy(text)),
            "text (UTF-8); blkparse makes it of what blktrace writes",
        )),
    }
}

fn unreadable(origin: &str, error: &io::Error) -> TraceError {
    TraceError::Read { origin: origin.to_owned(), why: error.to_string() }
}

/// Returns the first nonblank line of a trace, to detect its format.
pub(super) fn first_line(origin: &str, mut input: impl BufRead) -> Result<String, TraceError> {
    let mut text = Vec::new();
    for lines in 0.. {
        let Some(line) = next_line(origin, &mut input, &mut text, lines)? else { break };
        if !line.trim().is_empty() {
            return Ok(line.trim().to_owned());
        }
    }
    Err(TraceError::Nothing { origin: origin.to_owned(), what: "it is empty".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns each line twice.
    struct Twice;

    impl LineParser for Twice {
        type Record = String;

        fn line(&mut self, text: &str, records: &mut VecDeque<String>) -> Result<(), Wrong> {
            if text == "bad" {
                return Err(Wrong::new(text, "good"));
            }
            records.extend([text.to_owned(), text.to_owned()]);
            Ok(())
        }
    }

    fn read(bytes: &[u8]) -> Vec<Result<String, String>> {
        let reader = TraceReader::new("t", bytes, Twice);
        reader.map(|record| record.map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn lines_end_as_they_may_and_blank_ones_count_but_give_nothing() {
        assert_eq!(read(b"a\r\n\n  b"), ["a", "a", "b", "b"].map(|text| Ok(text.to_owned())));
        assert_eq!(read(b""), []);
        assert_eq!(first_line("t", &b"\n\n x \ny"[..]), Ok("x".to_owned()));
        let error = first_line("t", &b"\n"[..]).unwrap_err().to_string();
        assert_eq!(error, "nothing to replay in t: it is empty");
    }

    #[test]
    fn the_first_wrong_line_is_told_and_ends_the_trace() {
        let all = read(b"a\n\nbad\nb\n");
        assert_eq!(all.len(), 3);
        assert_eq!(all[2], Err("t:3: found `bad`, expected good".to_owned()));
        for (bytes, words) in [
            (vec![0xff, 0xfe], "t:1: found `\u{fffd}\u{fffd}`, expected text (UTF-8)"),
            (vec![0x1f, 0x8b, 8, 0], "t:1: found what is compressed"),
            (vec![b'x'; 70_000], "t:1: found a line of more than 64 KiB"),
        ] {
            let all = read(&bytes);
            let Some(Err(error)) = all.last() else { panic!("{words}") };
            assert!(all.len() == 1 && error.starts_with(words), "{error}");
        }
    }
}
