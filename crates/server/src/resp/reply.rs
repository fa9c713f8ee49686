//! Encodes replies.

/// The version of the protocol that a client chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// Version 2, the default.
    #[default]
    Resp2,
    /// Version 3, with maps, sets, doubles and null.
    Resp3,
}

/// Capacity in bytes that is kept after truncation.
const KEPT: usize = 1 << 20;

/// A buffer of encoded replies. Types that version 2 lacks are encoded as Redis does.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    bytes: Vec<u8>,
    /// The protocol version of the following replies.
    pub protocol: Protocol,
}

impl Reply {
    /// Creates an empty buffer.
    pub fn new(protocol: Protocol) -> Self {
        Self { bytes: Vec::new(), protocol }
    }

    /// Returns the encoded bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the length of the encoded bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the memory held, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes and returns the encoded bytes.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Inserts the output of `say` at offset `place`.
    pub(crate) fn insert(&mut self, place: usize, say: impl FnOnce(&mut Self)) {
        let mut said = Self::new(self.protocol);
        say(&mut said);
        drop(self.bytes.splice(place..place, said.bytes));
    }

    /// Appends encoded bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Keeps only the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        // Memory is freed only if little of it is in use; otherwise each error in a long
        // transaction would copy all replies before it.
        if self.bytes.capacity() > KEPT.max(length.saturating_mul(4)) {
            self.bytes.shrink_to(KEPT);
        }
    }

    fn head(&mut self, sign: u8, number: impl itoa::Number) {
        self.bytes.push(sign);
        number.write(&mut self.bytes);
        self.end();
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Appends a simple string, like `OK`.
    pub fn simple(&mut self, word: &str) {
        self.bytes.push(b'+');
        self.line(word);
    }

    /// Appends an error; its first word is the error's kind.
    pub fn error(&mut self, message: &str) {
        self.bytes.push(b'-');
        self.line(message);
    }

    /// Appends a line; line breaks in it become blanks.
    fn line(&mut self, text: &str) {
        let bytes =
            text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte });
        self.bytes.extend(bytes);
        self.end();
    }

    /// Appends an integer.
    pub fn integer(&mut self, number: i64) {
        self.head(b':', number);
    }

    /// Appends a count as an integer.
    pub fn count(&mut self, count: usize) {
        self.head(b':', count);
    }

    /// Appends a bulk string.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.end();
    }

    /// Appends a text for people; version 3 has a type for it.
    pub fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.head(b'=', text.len() + 4);
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.end();
            }
        }
    }

    /// Appends null.
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Appends null in place of an array.
    pub fn null_array(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Appends a bulk string, or null.
    pub fn maybe_bulk(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Formats a double as text.
    pub(crate) fn double_text(number: f64) -> String {
        format_double(number)
    }

    /// Appends a double.
    pub fn double(&mut self, number: f64) {
        let text = format_double(number);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.bytes.push(b',');
                self.line(&text);
            }
        }
    }

    /// Appends the header of an array; `count` values follow.
    pub fn array(&mut self, count: usize) {
        self.head(b'*', count);
    }

    /// Appends the header of a map; `count` pairs follow.
    pub fn map(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', 2 * count),
            Protocol::Resp3 => self.head(b'%', count),
        }
    }

    /// Appends the header of a set; `count` values follow.
    pub fn set(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', count),
            Protocol::Resp3 => self.head(b'~', count),
        }
    }
}

/// Formats a double as Redis formats scores: integers without a fraction, infinities as `inf`.
pub(crate) fn format_double(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    if number != 0.0 && !(1e-5..1e17).contains(&number.abs()) {
        let text = format!("{number:e}");
        // Exponents as C prints them: with a sign and at least two digits.
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{number}")
}

/// Decimal integers without the standard formatter, for speed: every reply has some.
mod itoa {
    pub(super) trait Number {
        fn write(self, out: &mut Vec<u8>);
    }

    impl Number for usize {
        fn write(self, out: &mut Vec<u8>) {
            let (mut digits, mut at, mut rest) = ([0; 20], 20, self);
            loop {
                at -= 1;
                digits[at] = b'0' + (rest % 10) as u8;
                rest /= 10;
                if rest == 0 {
                    break;
                }
            }
            out.extend_from_slice(&digits[at..]);
        }
    }

    impl Number for i64 {
        fn write(self, out: &mut Vec<u8>) {
            if self < 0 {
                out.push(b'-');
            }
            usize::try_from(self.unsigned_abs()).expect("64 bits").write(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(protocol: Protocol, say: impl Fn(&mut Reply)) -> String {
        let mut reply = Reply::new(protocol);
        say(&mut reply);
        String::from_utf8(reply.take()).expect("text")
    }

    #[test]
    fn both_versions() {
        type Case = (fn(&mut Reply), &'static str, &'static str);
        let cases: [Case; 11] = [
            (|r| r.simple("OK"), "+OK\r\n", "+OK\r\n"),
            (|r| r.error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (|r| r.integer(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"),
            (|r| r.count(0), ":0\r\n", ":0\r\n"),
            (|r| r.bulk(b"ab"), "$2\r\nab\r\n", "$2\r\nab\r\n"),
            (Reply::null, "$-1\r\n", "_\r\n"),
            (|r| r.double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (|r| r.text("ab"), "$2\r\nab\r\n", "=6\r\ntxt:ab\r\n"),
            (|r| r.map(2), "*4\r\n", "%2\r\n"),
            (|r| r.set(2), "*2\r\n", "~2\r\n"),
            (|r| r.array(10), "*10\r\n", "*10\r\n"),
        ];
        for (say, two, three) in cases {
            assert_eq!(said(Protocol::Resp2, say), two);
            assert_eq!(said(Protocol::Resp3, say), three);
        }
    }

    #[test]
    fn scores() {
        let cases = [
            (0.0, "0"),
            (3.0, "3"),
            (-1.25, "-1.25"),
            (1e20, "1e+20"),
            (1.5e-7, "1.5e-07"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (1_700_000_000_123.0, "1700000000123"),
        ];
        for (number, text) in cases {
            assert_eq!(format_double(number), text);
        }
    }
}
