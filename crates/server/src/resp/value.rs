//! Decodes replies, for tests and for clients in Rust.

use std::fmt;

/// Maximum nesting of values.
const DEEPEST: usize = 32;
/// Maximum length of a string, in bytes.
const LONGEST: usize = 512 << 20;

/// A value in a reply.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A simple string.
    Simple(String),
    /// An error.
    Error(String),
    /// An integer.
    Integer(i64),
    /// A bulk string or a text.
    Bulk(Vec<u8>),
    /// Null.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A double.
    Double(f64),
    /// An array.
    Array(Vec<Value>),
    /// A map.
    Map(Vec<(Value, Value)>),
    /// A set.
    Set(Vec<Value>),
}

/// The reason that bytes do not decode to a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueError {
    /// The value is incomplete.
    Incomplete,
    /// The value is invalid.
    Malformed,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "the reply is not all there",
            Self::Malformed => "this is no reply",
        })
    }
}

impl std::error::Error for ValueError {}

impl Value {
    /// Decodes the value at the beginning of `bytes`. Returns it with its length in bytes.
    ///
    /// # Errors
    /// Returns [`ValueError`] if the value is incomplete or invalid.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), ValueError> {
        let mut reader = Reader { bytes, at: 0 };
        let value = reader.value(0)?;
        Ok((value, reader.at))
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Value, ValueError> {
        if depth > DEEPEST {
            return Err(ValueError::Malformed);
        }
        let line = self.line()?;
        let (&sign, rest) = line.split_first().ok_or(ValueError::Malformed)?;
        let text = std::str::from_utf8(rest);
        let text = || text.map_err(|_| ValueError::Malformed);
        Ok(match sign {
            b'+' => Value::Simple(text()?.to_owned()),
            b'-' => Value::Error(text()?.to_owned()),
            b':' => Value::Integer(number(rest)?),
            b'_' if rest.is_empty() => Value::Null,
            b'#' if rest == b"t" || rest == b"f" => Value::Boolean(rest == b"t"),
            b',' => Value::Double(text()?.parse().map_err(|_| ValueError::Malformed)?),
            b'$' | b'*' if rest == b"-1" => Value::Null,
            b'$' => Value::Bulk(self.string(length(rest, LONGEST)?)?.to_vec()),
            b'=' => {
                let text = self.string(length(rest, LONGEST)?)?;
                Value::Bulk(text.get(4..).ok_or(ValueError::Malformed)?.to_vec())
            }
            b'*' => Value::Array(self.values(rest, depth)?),
            b'~' => Value::Set(self.values(rest, depth)?),
            b'%' => {
                let mut pairs = Vec::new();
                for _ in 0..length(rest, usize::MAX)? {
                    pairs.push((self.value(depth + 1)?, self.value(depth + 1)?));
                }
                Value::Map(pairs)
            }
            _ => return Err(ValueError::Malformed),
        })
    }

    fn values(&mut self, count: &[u8], depth: usize) -> Result<Vec<Value>, ValueError> {
        // Allocates as values arrive, and nothing for an announced count.
        let mut values = Vec::new();
        for _ in 0..length(count, usize::MAX)? {
            values.push(self.value(depth + 1)?);
        }
        Ok(values)
    }

    fn line(&mut self) -> Result<&'a [u8], ValueError> {
        let rest = &self.bytes[self.at..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n").ok_or(ValueError::Incomplete)?;
        self.at += end + 2;
        Ok(&rest[..end])
    }

    fn string(&mut self, length: usize) -> Result<&'a [u8], ValueError> {
        let rest = &self.bytes[self.at..];
        let string = rest.get(..length).ok_or(ValueError::Incomplete)?;
        let end = rest.get(length..length + 2).ok_or(ValueError::Incomplete)?;
        if end != b"\r\n" {
            return Err(ValueError::Malformed);
        }
        self.at += length + 2;
        Ok(string)
    }
}

fn number(digits: &[u8]) -> Result<i64, ValueError> {
    let text = std::str::from_utf8(digits).map_err(|_| ValueError::Malformed)?;
    text.parse().map_err(|_| ValueError::Malformed)
}

fn length(digits: &[u8], most: usize) -> Result<usize, ValueError> {
    let length = usize::try_from(number(digits)?).map_err(|_| ValueError::Malformed)?;
    if length > most { Err(ValueError::Malformed) } else { Ok(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_within_values() {
        let bytes = b"%1\r\n+a\r\n*3\r\n:-1\r\n$-1\r\n~1\r\n#t\r\nrest";
        let inner = vec![Value::Integer(-1), Value::Null, Value::Set(vec![Value::Boolean(true)])];
        let expected = Value::Map(vec![(Value::Simple("a".to_owned()), Value::Array(inner))]);
        assert_eq!(Value::decode(bytes), Ok((expected, bytes.len() - 4)));
    }

    #[test]
    fn too_deep_is_refused() {
        let bytes = b"*1\r\n".repeat(100);
        assert_eq!(Value::decode(&bytes), Err(ValueError::Malformed));
    }
}
