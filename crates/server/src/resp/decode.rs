//! Commands out of what a client sent.
//!
//! A decoder is shown the same buffer again and again as it grows, and goes on where it had stopped: a command of
//! a million bytes that comes in small pieces is looked at once.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::inline;

/// Bytes that an argument takes at least: `$0`, its end, and that of its bytes.
const ARGUMENT: usize = 6;

/// What a client may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Arguments of a command.
    pub arguments: usize,
    /// Bytes of an argument.
    pub argument_bytes: usize,
    /// Bytes of a line: an inline command, or the head of something.
    pub line_bytes: usize,
}

impl Limits {
    /// For a client who has not said who it is: enough for that, as Redis has it.
    pub const STRANGER: Self =
        Self { arguments: 10, argument_bytes: 16 << 10, line_bytes: 4 << 10 };
}

impl Default for Limits {
    fn default() -> Self {
        Self { arguments: 1 << 20, argument_bytes: 512 << 20, line_bytes: 64 << 10 }
    }
}

/// A client that does not speak the protocol: it is told, and let go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtocolError(pub(crate) Cow<'static, str>);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.0)
    }
}

impl std::error::Error for ProtocolError {}

/// Arguments of a command, the first of which is its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Where in the buffer they are.
    Framed(Vec<Range<usize>>),
    /// Typed by a person, quotes and all: not as they stand in the buffer.
    Inline(Vec<Vec<u8>>),
}

impl Command {
    /// The arguments, given the buffer that they were decoded from.
    pub fn arguments<'a>(&'a self, buffer: &'a [u8]) -> Vec<&'a [u8]> {
        match self {
            Self::Framed(ranges) => ranges.iter().map(|range| &buffer[range.clone()]).collect(),
            Self::Inline(words) => words.iter().map(Vec::as_slice).collect(),
        }
    }

    /// How many arguments there are, and bytes in them.
    pub fn size(&self) -> (usize, usize) {
        match self {
            Self::Framed(ranges) => (ranges.len(), ranges.iter().map(ExactSizeIterator::len).sum()),
            Self::Inline(words) => (words.len(), words.iter().map(Vec::len).sum()),
        }
    }

    /// Bytes of memory that it holds besides the buffer.
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
    /// Up to where the buffer has been understood.
    at: usize,
    /// How far the end of a line has been looked for in vain.
    scanned: usize,
    /// Where the command begins that has begun.
    start: usize,
    /// Its arguments, and how many are to come.
    begun: Vec<Range<usize>>,
    missing: usize,
}

impl Decoder {
    /// The next command in `buffer`, which begins where it began last time; `None` if not all of it is there. Empty ones are skipped.
    ///
    /// # Errors
    /// [`ProtocolError`]: nothing behind this place makes sense.
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

    /// Bytes of the buffer that no command to come needs: what was understood before the command that has begun. They are to be taken off
    /// its front, and are forgotten here.
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

    /// Bytes of memory that it holds for a command that has begun.
    pub fn held_bytes(&self) -> usize {
        self.begun.capacity() * size_of::<Range<usize>>()
    }

    /// Bytes of memory that it would hold at most, while it makes room for what `more` bytes of the buffer may bring of the command that
    /// has begun; none if it has that room.
    pub fn growth(&self, more: usize) -> usize {
        let wanted = self.wanted(more);
        let has_room = self.begun.capacity() >= wanted;
        if has_room { 0 } else { (self.begun.capacity() + wanted) * size_of::<Range<usize>>() }
    }

    /// Makes that room.
    pub fn grow(&mut self, more: usize) {
        let wanted = self.wanted(more);
        self.begun.reserve_exact(wanted - self.begun.len());
    }

    /// Arguments to have room for: what may come, or a quarter more than there are, if they are not the last.
    fn wanted(&self, more: usize) -> usize {
        let may_come = self.missing.min(more / ARGUMENT + 1);
        let quarter = self.missing.min(self.begun.len() / 4);
        let has_room = self.begun.capacity() >= self.begun.len() + may_come;
        if has_room { self.begun.capacity() } else { self.begun.len() + may_come.max(quarter) }
    }

    /// A line, without its end, if it is there.
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

    /// The number in a line that begins with a sign of its kind, which was looked at.
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
            self.at = begin; // its head is short, and read again
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
        // Those who send one command behind the other are nearly always in the midst of one.
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

    /// What is made room for is all that may come: nothing grows by itself.
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
