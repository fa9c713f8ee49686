//! Files with pairs to load: TSV, CSV, JSON Lines.
//!
//! An error in one line is returned with the line's number and does not end the input: the caller
//! decides whether to continue. Errors that always end it (a file that cannot be read, a header
//! without the columns) are returned as `Err`.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::rc::Rc;

use anyhow::{Context, bail};
use catalogue::Unmarked;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::encoding::Encoding;
use super::quotes::{Quotes, Seen};
use super::{Format, escapes};

/// A key and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// A line with its pair or its error. `number` counts from 1.
pub(crate) struct Line {
    pub number: u64,
    /// The line on which the record ends: a quoted value may contain line ends.
    pub last: u64,
    pub pair: Result<Pair, String>,
}

/// A column of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Column {
    /// The number of a column, counted from 1.
    Number(usize),
    /// A name in the header, or of a member of a JSON object.
    Name(String),
}

impl Column {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("allowed is a name, or a number from 1".to_owned());
        }
        match text.parse() {
            Ok(0) => Err("columns are counted from 1".to_owned()),
            Ok(number) => Ok(Self::Number(number)),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

/// How a file is read.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub format: Format,
    pub encoding: Encoding,
    /// Whether the first line has the names of the columns.
    pub has_header: bool,
    /// TSV: whether a backslash is literal.
    pub is_verbatim: bool,
    pub key: Option<Column>,
    pub value: Option<Column>,
}

/// A file that is being read.
pub(crate) enum Input<R: Read> {
    Tsv {
        lines: Lines<Unmarked<R>>,
        shape: Shape,
        columns: [usize; 2],
    },
    Csv {
        reader: csv::Reader<BufReader<Quotes<Unmarked<R>>>>,
        seen: Rc<Seen>,
        record: csv::ByteRecord,
        shape: Shape,
        columns: [usize; 2],
    },
    Jsonl {
        lines: Lines<Unmarked<R>>,
        shape: Shape,
        names: [Option<String>; 2],
    },
}

impl<R: Read> Input<R> {
    /// Opens the input and reads the header.
    pub(crate) fn new(file: R, shape: Shape) -> anyhow::Result<Self> {
        let file = Unmarked::new(file);
        match shape.format {
            Format::Jsonl => {
                let names = [member(shape.key.as_ref())?, member(shape.value.as_ref())?];
                Ok(Self::Jsonl { lines: Lines::new(file), shape, names })
            }
            Format::Tsv => {
                let mut lines = Lines::new(file);
                let header = if shape.has_header { lines.next()? } else { None };
                let names: Option<Vec<String>> =
                    header.map(|line| line.split(|byte| *byte == b'\t').map(text).collect());
                let columns = columns(&shape, names.as_deref())?;
                Ok(Self::Tsv { lines, shape, columns })
            }
            Format::Csv => {
                let (file, seen) = Quotes::new(file);
                let file = BufReader::with_capacity(1 << 16, file);
                let mut options = csv::ReaderBuilder::new();
                let mut reader =
                    options.has_headers(shape.has_header).flexible(true).from_reader(file);
                let names: Option<Vec<String>> = if shape.has_header {
                    Some(reader.byte_headers()?.iter().map(text).collect())
                } else {
                    None
                };
                check_closed(&seen)?;
                let columns = columns(&shape, names.as_deref())?;
                let record = csv::ByteRecord::new();
                Ok(Self::Csv { reader, seen, record, shape, columns })
            }
        }
    }

    /// Returns the next line that is not empty; `None` at the end.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Line>> {
        match self {
            Self::Tsv { lines, shape, columns } => {
                let Some(line) = lines.next()? else { return Ok(None) };
                let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
                let pair = pair(&fields[..], *columns, |field| {
                    let field =
                        if shape.is_verbatim { field.to_vec() } else { escapes::unescape(field)? };
                    shape.encoding.decode(&field)
                });
                Ok(Some(Line { number: lines.number, last: lines.number, pair }))
            }
            Self::Csv { reader, seen, record, shape, columns } => {
                if !reader.read_byte_record(record)? {
                    return Ok(None);
                }
                // An unclosed quote is detected at the end of the file, in the last record.
                check_closed(seen)?;
                let number = record
                    .position()
                    .map_or(0, |at| line_of(at, seen.has_crlf.get() == Some(true)));
                let line_ends = |field: &[u8]| field.split(|byte| *byte == b'\n').count() - 1;
                let last = number + record.iter().map(line_ends).sum::<usize>() as u64;
                let pair = pair(&*record, *columns, |field| shape.encoding.decode(field));
                Ok(Some(Line { number, last, pair }))
            }
            Self::Jsonl { lines, shape, names } => {
                let Some(line) = lines.next()? else { return Ok(None) };
                let pair = object(line, names, shape.encoding);
                Ok(Some(Line { number: lines.number, last: lines.number, pair }))
            }
        }
    }
}

/// Returns an error if a quote is not closed. It always ends the load, because the number of pairs
/// after it is unknown.
fn check_closed(seen: &Seen) -> anyhow::Result<()> {
    if let Some(line) = seen.unclosed.get() {
        bail!(
            "the quote that opens in line {line} is not closed: all behind it would be one value"
        );
    }
    Ok(())
}

/// Returns the line of a record at `at`. For the CSV reader a record ends at the carriage return,
/// and the line feed after it counts as part of the next record: without this correction all
/// records but the first would be numbered one too low.
fn line_of(at: &csv::Position, has_crlf: bool) -> u64 {
    at.line() + u64::from(has_crlf && at.byte() > 0)
}

/// Fields of a line by number, counted from 0.
trait Fields {
    fn field(&self, number: usize) -> Option<&[u8]>;
    fn count(&self) -> usize;
}

impl Fields for [&[u8]] {
    fn field(&self, number: usize) -> Option<&[u8]> {
        self.get(number).copied()
    }

    fn count(&self) -> usize {
        self.len()
    }
}

impl Fields for csv::ByteRecord {
    fn field(&self, number: usize) -> Option<&[u8]> {
        self.get(number)
    }

    fn count(&self) -> usize {
        self.len()
    }
}

fn pair(
    fields: &(impl Fields + ?Sized),
    columns: [usize; 2],
    decode: impl Fn(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<Pair, String> {
    let of = |column: usize| {
        let field = fields.field(column).ok_or_else(|| {
            format!("there is no column {}: the line has {}", column + 1, fields.count())
        });
        field.and_then(&decode)
    };
    Ok((of(columns[0])?, of(columns[1])?))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Returns the columns of key and value, counted from 0. `names` are those of the header, if there
/// is one.
fn columns(shape: &Shape, names: Option<&[String]>) -> anyhow::Result<[usize; 2]> {
    let of = |column: Option<&Column>, usual: (&str, usize), flag: &str| match (column, names) {
        (Some(Column::Number(number)), _) => Ok(number - 1),
        (None, None) => Ok(usual.1),
        (Some(Column::Name(name)), None) => {
            let or =
                if shape.format == Format::Csv { "leave --no-header out" } else { "say --header" };
            bail!("{flag} {name} is a name, and the file has no header: give a number, or {or}")
        }
        (column, Some(names)) => {
            let name = match column {
                Some(Column::Name(name)) => name,
                _ => usual.0,
            };
            if names.iter().all(String::is_empty) {
                bail!("it is empty: there is no header that names columns");
            }
            let found = names.iter().position(|other| other == name);
            if names.iter().filter(|other| *other == name).count() > 1 {
                bail!(
                    "the header has the column `{name}` more than once: give the number of one with {flag}"
                );
            }
            found.with_context(|| {
                format!(
                    "the header has no column `{name}`, but {}: name one with {flag}, or say --no-header",
                    names.join(", ")
                )
            })
        }
    };
    let key = of(shape.key.as_ref(), ("key", 0), "--key-column")?;
    Ok([key, of(shape.value.as_ref(), ("value", 1), "--value-column")?])
}

/// Returns the name of the requested member.
fn member(column: Option<&Column>) -> anyhow::Result<Option<String>> {
    match column {
        Some(Column::Number(number)) => {
            bail!("JSON objects have names, no column {number}: give the name of a member")
        }
        Some(Column::Name(name)) => Ok(Some(name.clone())),
        None => Ok(None),
    }
}

/// Formats a JSON error with the column only, as the number of the line is known.
fn in_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column", ", column")
}

/// The members of an object in their order. Duplicates are kept, because a name that occurs twice
/// is ambiguous.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Result<Option<&'a RawValue>, String> {
        let mut found = self.0.iter().filter(|(other, _)| other == name);
        let first = found.next().map(|(_, member)| *member);
        match found.next() {
            Some(_) => Err(format!("it has `{name}` more than once")),
            None => Ok(first),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// Returns the pair of an object.
fn object(line: &[u8], names: &[Option<String>; 2], encoding: Encoding) -> Result<Pair, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    let members: Members<'_> = serde_json::from_str(text)
        .map_err(|error| format!("it is no JSON object: {}", in_line(&error)))?;
    let of = |usual: &str, asked: &Option<String>| {
        if let Some(name) = asked {
            let member = members.get(name)?.ok_or_else(|| format!("it has no `{name}`"))?;
            return encoding.decode(&contents(name, member)?);
        }
        let mut forms = Vec::new();
        for (suffix, encoding) in
            [("", encoding), ("_base64", Encoding::Base64), ("_hex", Encoding::Hex)]
        {
            let name = format!("{usual}{suffix}");
            forms.extend(members.get(&name)?.map(|member| (name, member, encoding)));
        }
        let mut found = forms.into_iter();
        let (name, member, encoding) =
            found.next().ok_or_else(|| format!("it has no `{usual}`"))?;
        if let Some((other, ..)) = found.next() {
            return Err(format!("it has both `{name}` and `{other}`"));
        }
        encoding.decode(&contents(&name, member)?)
    };
    Ok((of("key", &names[0])?, of("value", &names[1])?))
}

/// Returns the text of a string; for a number, a list, an object or a boolean, its JSON text.
fn contents(name: &str, member: &RawValue) -> Result<Vec<u8>, String> {
    let raw = member.get();
    match raw.as_bytes().first() {
        Some(b'"') => {
            let text: Result<String, _> = serde_json::from_str(raw);
            text.map(String::into_bytes).map_err(|error| format!("`{name}`: {error}"))
        }
        Some(b'n') => Err(format!("`{name}` is null")),
        _ => Ok(raw.as_bytes().to_vec()),
    }
}

/// Reads lines that are not empty, without their line ends.
pub(crate) struct Lines<R> {
    file: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

/// Maximum length of a line in bytes: longer than any pair that a store takes, even with all bytes
/// escaped.
const LONGEST_LINE: u64 = 64 << 20;

impl<R: Read> Lines<R> {
    fn new(file: R) -> Self {
        Self { file: BufReader::with_capacity(1 << 16, file), line: Vec::new(), number: 0 }
    }

    fn next(&mut self) -> anyhow::Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            let mut line = (&mut self.file).take(LONGEST_LINE);
            let length = line.read_until(b'\n', &mut self.line)? as u64;
            if length == 0 {
                return Ok(None);
            }
            self.number += 1;
            if length == LONGEST_LINE {
                bail!("line {} is longer than any pair: is it of this format?", self.number);
            }
            let end = [&b"\r\n"[..], b"\n"].into_iter().find(|end| self.line.ends_with(end));
            self.line.truncate(self.line.len() - end.map_or(0, <[u8]>::len));
            if !self.line.is_empty() {
                return Ok(Some(&self.line));
            }
        }
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
