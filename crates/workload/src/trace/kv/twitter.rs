//! CSV of Twitter's caches: `timestamp,key,key size,value size,client id,operation,TTL`, times in
//! seconds.
//!
//! Fields are counted from both ends, because keys may contain commas.

use std::collections::VecDeque;

use runtime::Nanos;

use super::super::Wrong;
use super::super::fields::whole;
use super::record::{Counts, KvOp, KvRecord, sizes};

/// Resolution of the times.
pub(super) const TICK: Nanos = Nanos::from_millis(1_000);

const FIELDS: &str = "seven fields: timestamp,key,key size,value size,client id,operation,TTL";
const OPERATIONS: &str =
    "an operation: get, gets, set, add, replace, cas, append, prepend, delete, incr or decr";

/// The parser of Twitter's CSV.
#[derive(Debug, Default)]
pub(super) struct Twitter {
    counts: Counts,
}

impl Twitter {
    pub(super) fn is_line(line: &str) -> bool {
        fields(line).is_ok_and(|[time, _, key, value, _, operation, _]| {
            op(operation).is_some() && [time, key, value].iter().all(|text| whole(text, "").is_ok())
        })
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn line(
        &mut self,
        text: &str,
        records: &mut VecDeque<KvRecord>,
    ) -> Result<(), Wrong> {
        let [time, key, key_bytes, value_bytes, client, operation, ttl] = fields(text)?;
        let seconds = u128::from(whole(time, "a timestamp in seconds")?);
        let key_bytes = whole(key_bytes, "the size of the key")?;
        let value_bytes = whole(value_bytes, "the size of the value")?;
        whole(client, "the number of a client")?;
        let op = op(operation).ok_or_else(|| Wrong::new(operation, OPERATIONS))?;
        whole(ttl, "a TTL in seconds")?;
        if key.is_empty() {
            return Err(Wrong::new(text, "a key in the second field"));
        }
        let (key_bytes, value_bytes) = sizes(key_bytes, value_bytes, text)?;
        let at = self.counts.clock.at(seconds * u128::from(TICK.0), time)?;
        let key = key.as_bytes().into();
        records.push_back(KvRecord { at, op, key, family: 0, key_bytes, value_bytes });
        Ok(())
    }
}

fn fields(line: &str) -> Result<[&str; 7], Wrong> {
    let wrong = || Wrong::new(line, FIELDS);
    let (time, rest) = line.split_once(',').ok_or_else(wrong)?;
    let mut from_behind = rest.rsplitn(6, ',');
    let mut fields = [""; 6];
    for field in fields.iter_mut().rev() {
        *field = from_behind.next().ok_or_else(wrong)?;
    }
    let [key, key_bytes, value_bytes, client, operation, ttl] = fields;
    Ok([
        time.trim(),
        key,
        key_bytes.trim(),
        value_bytes.trim(),
        client.trim(),
        operation.trim(),
        ttl.trim(),
    ])
}

fn op(text: &str) -> Option<KvOp> {
    Some(match text {
        "get" | "gets" => KvOp::Get,
        "set" | "cas" => KvOp::Put,
        "add" => KvOp::PutIfAbsent,
        "replace" | "append" | "prepend" | "incr" | "decr" => KvOp::PutIfPresent,
        "delete" => KvOp::Delete,
        _ => return None,
    })
}
