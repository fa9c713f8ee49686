//! Decodes commands from input.
//!
//! The caller passes the same growing buffer again and again, and the decoder continues where it
//! stopped: a command of a million bytes that arrives in small pieces is parsed once.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::inline;

/// Minimum length of an argument, in bytes: `$0` and two line ends.
const ARGUMENT: usize = 6;

/// Limits on commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of arguments of a command.
    pub arguments: usize,
    /// Maximum length of an argument, in bytes.
    pub argument_bytes: usize,
    /// Maximum length of a line, in bytes: an inline command or a header.
    pub line_bytes: usize,
}

impl Limits {
    /// For clients that are not authenticated; the same limits as in Redis.
    pub const STRANGER: Self =
        Self { arguments: 10, argument_bytes: 16 << 10, line_bytes: 4 << 10 };
}

impl Default for Limits {
    fn default() -> Self {
        Self { arguments: 1 << 20, argument_bytes: 512 << 20, line_bytes: 64 << 10 }
    }
}

/// A violation of the protocol. The client gets this error and is disconnected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtocolError(pub(crate) Cow<'static, str>);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.0)
    }
}

impl std::error::Error for ProtocolError {}

/// The arguments of a command; the first one is its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// The ranges of the arguments in the buffer.
    Framed(Vec<Range<usize>>),
    /// Words of an inline command, with quotes resolved.
    Inline(Vec<Vec<u8>>),
}

impl Command {
    /// Returns the arguments, given the buffer from which they were decoded.
    pub fn arguments<'a>(&'a self, buffer: &'a [u8]) -> Vec<&'a [u8]> {
        match self {
            Self::Framed(ranges) => ranges.iter().map(|range| &buffer[range.clone()]).collect(),
            Self::Inline(words) => words.iter().map(Vec::as_slice).collect(),
        }
    }

    /// Returns the number of arguments and their total length in bytes.
    pub fn size(&self) -> (usize, usize) {
        match self {
            Self::Framed(ranges) => (ranges.len(), ranges.iter().map(ExactSizeIterator::len).sum()),
            Self::Inline(words) => (words.len(), words.iter().map(Vec::len).sum()),
        }
    }

    /// Returns the memory held besides the buffer, in bytes.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Framed(ranges) => ranges.capacity() * size_of::<Range<usize>>(),
            Self::Inline(words) => words.iter().map(|word| word.capacity() + 24).sum(),
        }
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// Offset up to which the buffer is decoded.
    at: usize,
    /// Offset up to which no line end was found.
    scanned: usize,
    /// Offset of the command that is incomplete.
    start: usize,
    /// The decoded arguments of the incomplete command; `missing` counts the others.
    begun: Vec<Range<usize>>,
    missing: usize,
}

impl Decoder {
    /// Returns the next command in `buffer`, or `None` if it is incomplete. Skips empty commands.
    /// Requires: `buffer` begins at the same byte as before, except for the bytes removed after
    /// [`take_done`](Self::take_done).
    ///
    /// # Errors
    /// Returns [`ProtocolError`] if the input is invalid; the rest of it cannot be decoded.
    pub fn next(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
    ) -> Result<Option<Command>, ProtocolError> {
        loop {
            if self.missing == 0 {
                let Some(&first) = buffer.get(self.at) else { return Ok(None) };
                if first != b'*' {
                    let Some(words) = self.inline(buffer, limits)? else { return Ok(None) };
                    if words.is_empty() {
                        continue;
                    }
                    return Ok(Some(Command::Inline(words)));
                }
                let start = self.at;
                let Some(count) = self.head(buffer, limits, "invalid multibulk length")? else {
                    return Ok(None);
                };
                let Ok(count) = usize::try_from(count) else { continue };
                if count > limits.arguments {
                    return Err(ProtocolError("invalid multibulk length".into()));
                }
                (self.start, self.missing) = (start, count);
                continue;
            }
            while self.missing > 0 {
                let Some(range) = self.argument(buffer, limits)? else { return Ok(None) };
                self.begun.push(range);
                self.missing -= 1;
            }
            return Ok(Some(Command::Framed(std::mem::take(&mut self.begun))));
        }
    }

    /// Returns the number of bytes at the front of the buffer that are decoded and not needed by an
    /// incomplete command. Requires: the caller removes these bytes before the next call.
    pub fn take_done(&mut self) -> usize {
        let has_begun = self.missing > 0;
        let done = if has_begun { std::mem::take(&mut self.start) } else { self.at };
        if done > 0 {
            self.at -= done;
            self.scanned = self.scanned.saturating_sub(done);
            for argument in &mut self.begun {
                *argument = argument.start - done..argument.end - done;
            }
        }
        done
    }

    /// Returns the memory held for an incomplete command, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.begun.capacity() * size_of::<Range<usize>>()
    }

    /// Returns the peak of memory held, in bytes, while room is made for the arguments in the next
    /// `more` bytes; 0 if the room exists.
    pub fn growth(&self, more: usize) -> usize {
        let wanted = self.wanted(more);
        let has_room = self.begun.capacity() >= wanted;
        if has_room { 0 } else { (self.begun.capacity() + wanted) * size_of::<Range<usize>>() }
    }

    /// Makes room for the arguments in the next `more` bytes.
    pub fn grow(&mut self, more: usize) {
        let wanted = self.wanted(more);
        self.begun.reserve_exact(wanted - self.begun.len());
    }

    /// Returns the capacity for arguments: enough for the next `more` bytes, and for at least a
    /// quarter more than now unless fewer are missing.
    fn wanted(&self, more: usize) -> usize {
        let may_come = self.missing.min(more / ARGUMENT + 1);
        let quarter = self.missing.min(self.begun.len() / 4);
        let has_room = self.begun.capacity() >= self.begun.len() + may_come;
        if has_room { self.begun.capacity() } else { self.begun.len() + may_come.max(quarter) }
    }

    /// Returns the next line without its end, or `None` if it is incomplete.
    fn line<'a>(
        &mut self,
        buffer: &'a [u8],
        limits: &Limits,
    ) -> Result<Option<&'a [u8]>, ProtocolError> {
        let from = self.scanned.max(self.at);
        match buffer[from..].iter().position(|byte| *byte == b'\n') {
            Some(found) => {
                let end = from + found;
                if end - self.at > limits.line_bytes {
                    return Err(ProtocolError("too big inline request".into()));
                }
                let line = &buffer[self.at..end];
                self.at = end + 1;
                Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
            }
            None if buffer.len() - self.at > limits.line_bytes => {
                Err(ProtocolError("too big inline request".into()))
            }
            None => {
                self.scanned = buffer.len();
                Ok(None)
            }
        }
    }

    fn inline(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
    ) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
        let Some(line) = self.line(buffer, limits)? else { return Ok(None) };
        let words =
            inline::split(line).ok_or(ProtocolError("unbalanced quotes in request".into()))?;
        let is_too_much = words.len() > limits.arguments;
        if is_too_much { Err(ProtocolError("too many arguments".into())) } else { Ok(Some(words)) }
    }

    /// Returns the number in a header line; its first byte was checked by the caller.
    fn head(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        wrong: &'static str,
    ) -> Result<Option<i64>, ProtocolError> {
        let Some(line) = self.line(buffer, limits)? else { return Ok(None) };
        let text = line.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = text.and_then(|digits| digits.parse().ok());
        number.map(Some).ok_or(ProtocolError(wrong.into()))
    }

    fn argument(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
    ) -> Result<Option<Range<usize>>, ProtocolError> {
        let begin = self.at;
        match buffer.get(begin) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(other) => {
                let got = format!("expected '$', got '{}'", other.escape_ascii());
                return Err(ProtocolError(got.into()));
            }
        }
        let Some(length) = self.head(buffer, limits, "invalid bulk length")? else {
            return Ok(None);
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= limits.argument_bytes);
        let length = length.ok_or(ProtocolError("invalid bulk length".into()))?;
        let from = self.at;
        let Some(end) = buffer.get(from + length..from + length + 2) else {
            // The header is short and is read again.
            self.at = begin;
            return Ok(None);
        };
        if end != b"\r\n" {
            return Err(ProtocolError("expected the end of a bulk string".into()));
        }
        self.at = from + length + 2;
        Ok(Some(from..from + length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let (mut decoder, mut commands) = (Decoder::default(), Vec::new());
        while let Some(command) = decoder.next(bytes, &Limits::default())? {
            commands.push(command.arguments(bytes).into_iter().map(<[u8]>::to_vec).collect());
        }
        Ok(commands)
    }

    #[test]
    fn commands_one_after_the_other() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n";
        let expected: Vec<Vec<Vec<u8>>> =
            vec![vec![b"GET".into(), b"a".into()], vec![b"PING".into()], vec![vec![]]];
        assert_eq!(all(bytes).expect("good commands"), expected);
    }

    #[test]
    fn nonsense_is_told() {
        let cases: [(&[u8], &str); 9] = [
            (b"*x\r\n", "invalid multibulk length"),
            (b"*99999999999\r\n", "invalid multibulk length"),
            (b"*1\r\n:1\r\n", "expected '$', got ':'"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$9999999999\r\n", "invalid bulk length"),
            (b"*1\r\n$1\r\nabc", "expected the end of a bulk string"),
            (b"SET a \"b\r\n", "unbalanced quotes in request"),
            (&b"a".repeat(70_000), "too big inline request"),
            (b"*\xff\r\n", "invalid multibulk length"),
        ];
        for (bytes, what) in cases {
            assert_eq!(all(bytes), Err(ProtocolError(what.into())), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_done_may_go() {
        let mut buffer = b"PING\r\n*2\r\n$4\r\nECHO\r\n$3\r\nab".to_vec();
        let mut decoder = Decoder::default();
        assert!(decoder.next(&buffer, &Limits::default()).expect("good").is_some());
        assert_eq!(decoder.take_done(), 6);
        buffer.drain(..6);
        assert_eq!(decoder.next(&buffer, &Limits::default()), Ok(None));
        assert_eq!(decoder.take_done(), 0, "a command has begun");
        buffer.extend_from_slice(b"c\r\n");
        let command = decoder.next(&buffer, &Limits::default()).expect("good").expect("whole");
        assert_eq!(command.arguments(&buffer), [&b"ECHO"[..], b"abc"]);
        // Clients that pipeline commands nearly always have one incomplete.
        buffer.extend_from_slice(b"*2\r\n$4\r\nECHO\r\n$3\r\nab");
        assert_eq!(decoder.next(&buffer, &Limits::default()), Ok(None));
        assert_eq!(decoder.take_done(), 23, "the one before it is done");
        buffer.drain(..23);
        buffer.extend_from_slice(b"c\r\n");
        let command = decoder.next(&buffer, &Limits::default()).expect("good").expect("whole");
        assert_eq!(command.arguments(&buffer), [&b"ECHO"[..], b"abc"]);
        assert_eq!(decoder.take_done(), buffer.len());
    }

    #[test]
    fn what_it_holds_counts() {
        let parts = b"$0\r\n\r\n".repeat(1_000);
        let begun = [&b"*2000\r\n"[..], &parts].concat();
        let mut decoder = Decoder::default();
        assert_eq!(decoder.next(&begun, &Limits::default()), Ok(None));
        assert!(decoder.held_bytes() >= 16_000, "{}", decoder.held_bytes());
        let whole = [&begun[..], &parts].concat();
        assert!(decoder.next(&whole, &Limits::default()).expect("good").is_some());
        assert_eq!(decoder.held_bytes(), 0);
    }

    /// The room made suffices for all input that follows: the decoder never grows by itself.
    #[test]
    fn room_is_made_before_it_is_needed() {
        let (mut decoder, mut buffer) = (Decoder::default(), b"*50000\r\n".to_vec());
        assert_eq!(decoder.next(&buffer, &Limits::default()), Ok(None));
        for _ in 0..40 {
            let at_most = decoder.growth(6_000);
            decoder.grow(6_000);
            let held = decoder.held_bytes();
            assert!(at_most == 0 || at_most >= held, "{at_most} and {held}");
            buffer.extend_from_slice(&b"$0\r\n\r\n".repeat(1_000));
            assert_eq!(decoder.next(&buffer, &Limits::default()), Ok(None));
            assert_eq!(decoder.held_bytes(), held);
            assert!(held <= 40_000 * 16 * 5 / 4 + 16_016, "{held}");
        }
    }

    #[test]
    fn strangers_may_say_little() {
        let bytes = b"*11\r\n";
        assert!(Decoder::default().next(bytes, &Limits::default()).is_ok());
        assert!(Decoder::default().next(bytes, &Limits::STRANGER).is_err());
    }
}
