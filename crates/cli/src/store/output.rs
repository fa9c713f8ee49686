//! Output of pairs.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;

use super::encoding::Encoding;
use super::{Format, escapes};

/// Treats a closed reader as success; any other failed write is an error.
pub(crate) fn unless_nobody_reads(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the result to standard output"),
    }
}

/// Writes pairs in a format.
pub(crate) struct PairWriter<W> {
    out: W,
    format: Format,
    encoding: Encoding,
    has_values: bool,
    line: Vec<u8>,
}

impl<W: Write> PairWriter<W> {
    pub(crate) fn new(out: W, format: Format, encoding: Encoding, has_values: bool) -> Self {
        Self { out, format, encoding, has_values, line: Vec::new() }
    }

    /// Whether values are written.
    pub(crate) fn has_values(&self) -> bool {
        self.has_values
    }

    /// Writes the header, if the format has one.
    pub(crate) fn header(&mut self) -> io::Result<()> {
        match (self.format, self.has_values) {
            (Format::Csv, true) => self.out.write_all(b"key,value\n"),
            (Format::Csv, false) => self.out.write_all(b"key\n"),
            _ => Ok(()),
        }
    }

    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.line.clear();
        match self.format {
            Format::Tsv => self.tsv(key, value),
            Format::Csv => self.csv(key, value),
            Format::Jsonl => self.jsonl(key, value)?,
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    fn tsv(&mut self, key: &[u8], value: &[u8]) {
        escapes::escape(&self.encoding.encode(key), &mut self.line);
        if self.has_values {
            self.line.push(b'\t');
            escapes::escape(&self.encoding.encode(value), &mut self.line);
        }
    }

    fn csv(&mut self, key: &[u8], value: &[u8]) {
        quote(&self.encoding.encode(key), &mut self.line);
        if self.has_values {
            self.line.push(b',');
            quote(&self.encoding.encode(value), &mut self.line);
        }
    }

    fn jsonl(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.line.push(b'{');
        field("key", self.encoding, key, &mut self.line)?;
        if self.has_values {
            self.line.push(b',');
            field("value", self.encoding, value, &mut self.line)?;
        }
        self.line.push(b'}');
        Ok(())
    }

    /// Flushes and returns the underlying writer.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Appends a CSV field, quoted if needed.
fn quote(bytes: &[u8], line: &mut Vec<u8>) {
    let needs_quotes = bytes.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'));
    if !needs_quotes {
        line.extend_from_slice(bytes);
        return;
    }
    line.push(b'"');
    for byte in bytes {
        if *byte == b'"' {
            line.push(b'"');
        }
        line.push(*byte);
    }
    line.push(b'"');
}

/// Appends a member of a JSON object. JSON strings cannot hold bytes that are not UTF-8: these
/// become base64, which the member's name shows.
fn field(name: &str, encoding: Encoding, bytes: &[u8], line: &mut Vec<u8>) -> io::Result<()> {
    let (encoding, suffix) = match encoding {
        Encoding::Text if std::str::from_utf8(bytes).is_ok() => (encoding, ""),
        Encoding::Text | Encoding::Base64 => (Encoding::Base64, "_base64"),
        Encoding::Hex => (encoding, "_hex"),
    };
    let encoded = encoding.encode(bytes);
    let text = std::str::from_utf8(&encoded).expect("it is text, or was made so");
    write!(line, "\"{name}{suffix}\":")?;
    serde_json::to_writer(line, text)?;
    Ok(())
}
