//! Values of the store keys.

use super::keys::CollectionId;
use crate::fault::Fault;

/// The kind of value of a user key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    String,
    Hash,
    SortedSet,
}

impl Kind {
    /// Returns the name for OBJECT ENCODING: the closest one that Redis has.
    pub(crate) fn encoding(self) -> &'static str {
        match self {
            Self::String => "raw",
            Self::Hash => "hashtable",
            Self::SortedSet => "skiplist",
        }
    }

    /// Returns the name for TYPE.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::SortedSet => "zset",
        }
    }
}

/// The time at which a key expires, in milliseconds since 1970; `None` for never.
pub(crate) type Expiry = Option<u64>;

/// Maximum bytes of the header before a string.
pub(crate) const BESIDE: usize = 9;

const EXPIRES: u8 = 1;

fn damaged(what: &str) -> Fault {
    Fault::error(format!("damaged: {what} is not what this server writes"))
}

/// Encodes a string: flags, the expiry if any, and the bytes.
pub(crate) fn encode_string(value: &[u8], expiry: Expiry) -> Vec<u8> {
    let mut record = Vec::with_capacity(value.len() + BESIDE);
    push_expiry(&mut record, expiry);
    record.extend_from_slice(value);
    record
}

/// Returns the expiry of a string and the offset of its bytes.
pub(crate) fn decode_string(record: &[u8]) -> Result<(Expiry, usize), Fault> {
    let (expiry, rest) = take_expiry(record).ok_or_else(|| damaged("a string"))?;
    Ok((expiry, record.len() - rest.len()))
}

fn push_expiry(record: &mut Vec<u8>, expiry: Expiry) {
    match expiry {
        Some(at) => {
            record.push(EXPIRES);
            record.extend_from_slice(&at.to_le_bytes());
        }
        None => record.push(0),
    }
}

fn take_expiry(record: &[u8]) -> Option<(Expiry, &[u8])> {
    let (flags, rest) = record.split_first()?;
    match *flags {
        0 => Some((None, rest)),
        EXPIRES => {
            let (at, rest) = rest.split_first_chunk::<8>()?;
            Some((Some(u64::from_le_bytes(*at)), rest))
        }
        _ => None,
    }
}

/// The head of a hash or a sorted set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub kind: Kind,
    pub id: CollectionId,
    /// Number of fields or members.
    pub count: u64,
    pub expiry: Expiry,
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut record = Vec::with_capacity(26);
        push_expiry(&mut record, self.expiry);
        record.push(match self.kind {
            Kind::String => unreachable!("a string has no head"),
            Kind::Hash => 1,
            Kind::SortedSet => 2,
        });
        record.extend_from_slice(&self.id.0.to_le_bytes());
        record.extend_from_slice(&self.count.to_le_bytes());
        record
    }

    pub(crate) fn decode(record: &[u8]) -> Result<Self, Fault> {
        Self::read(record).ok_or_else(|| damaged("the head of a collection"))
    }

    fn read(record: &[u8]) -> Option<Self> {
        let (expiry, rest) = take_expiry(record)?;
        let (kind, rest) = rest.split_first()?;
        let kind = match kind {
            1 => Kind::Hash,
            2 => Kind::SortedSet,
            _ => return None,
        };
        let (id, rest) = rest.split_first_chunk::<8>()?;
        let count: &[u8; 8] = rest.try_into().ok()?;
        let id = CollectionId(u64::from_le_bytes(*id));
        Some(Self { kind, id, count: u64::from_le_bytes(*count), expiry })
    }
}

/// The value of a key.
#[derive(Debug)]
pub(crate) enum Entry {
    String { value: Vec<u8>, expiry: Expiry },
    Head(Head),
}

impl Entry {
    pub(crate) fn expiry(&self) -> Expiry {
        match self {
            Self::String { expiry, .. } => *expiry,
            Self::Head(head) => head.expiry,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::String { .. } => Kind::String,
            Self::Head(head) => head.kind,
        }
    }
}

/// Decodes a number of the server's own records.
pub(crate) fn decode_number(record: &[u8]) -> Result<u64, Fault> {
    let bytes: &[u8; 8] = record.try_into().map_err(|_| damaged("a number"))?;
    Ok(u64::from_le_bytes(*bytes))
}

/// Decodes the score of a member.
pub(crate) fn decode_score(record: &[u8]) -> Result<f64, Fault> {
    decode_number(record).map(f64::from_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        for expiry in [None, Some(0), Some(u64::MAX)] {
            let record = encode_string(b"value", expiry);
            let (read, from) = decode_string(&record).expect("ours");
            assert_eq!((read, &record[from..]), (expiry, &b"value"[..]));
            for kind in [Kind::Hash, Kind::SortedSet] {
                let head = Head { kind, id: CollectionId(7), count: 9, expiry };
                assert_eq!(Head::decode(&head.encode()).expect("ours"), head);
            }
        }
    }

    #[test]
    fn others_are_told() {
        for record in [&b""[..], b"\x02", b"\x01short", b"\0\x01\0\0", b"\0\x03aaaaaaaabbbbbbbb"] {
            assert!(Head::decode(record).is_err());
        }
        assert!(decode_string(b"").is_err() && decode_string(b"\x01\0").is_err());
        assert!(decode_number(b"1").is_err());
    }
}

#[cfg(test)]
mod fuzz_tests {
    use super::*;
    use runtime::Rng;
    use testkit::fuzz::{Answer, Target, unsealed};

    /// Every accepted record is canonical: encoding it again gives the same bytes.
    #[test]
    fn fuzz_records() {
        let encoding = |rng: &mut Rng| {
            let expiry = rng.chance(0.5).then(|| rng.next_u64());
            let kind = if rng.chance(0.5) { Kind::Hash } else { Kind::SortedSet };
            Head { kind, id: CollectionId(rng.next_u64()), count: rng.below(1_000), expiry }
                .encode()
        };
        let check = |bytes: &[u8]| {
            if let Ok((expiry, from)) = decode_string(bytes) {
                assert_eq!(encode_string(&bytes[from..], expiry), bytes);
            }
            match Head::decode(bytes) {
                Ok(head) => {
                    assert_eq!(head.encode(), bytes);
                    Answer::Taken
                }
                Err(_) => Answer::Refused,
            }
        };
        let test = ("server", "fuzz_records");
        Target { test, encoding: &encoding, seal: &unsealed, check: &check }.run();
    }
}
