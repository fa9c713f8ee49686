//! Commands on keys, whatever they hold.

use std::ops::Bound;

use super::help::other_part;
use super::parse::{self, Limit, NameBound, is};
use super::{Call, Items, Outcome, check_room};
use crate::data::batch::Batch;
use crate::data::database::{Access, Entry};
use crate::data::keys::{self, Space};
use crate::fault::Fault;
use crate::glob;
use crate::resp::Protocol;

/// Pairs that FLUSHALL removes with one write.
const PAIRS: usize = 256;

pub(super) fn del(call: &mut Call<'_>) -> Outcome {
    let removed = call.access.delete(&call.arguments[1..])?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_>) -> Outcome {
    let mut count = 0;
    for key in &call.arguments[1..] {
        count += usize::from(call.access.find(key)?.is_some());
    }
    call.reply.count(count);
    Ok(())
}

pub(super) fn type_of(call: &mut Call<'_>) -> Outcome {
    let kind = call.access.find(call.key())?.map(|entry| entry.kind().name());
    call.reply.simple(kind.unwrap_or("none"));
    Ok(())
}

/// Every kind is kept in one way. Nothing counts uses, so that nothing can be said of them.
pub(super) fn object(call: &mut Call<'_>) -> Outcome {
    let word = call.argument(1);
    let &[_, _, key] = call.arguments else { return other_part(call.reply, word, "OBJECT") };
    let kind = call.access.find(key)?.map(|entry| entry.kind());
    match (word, kind) {
        (word, Some(kind)) if is(word, "ENCODING") => call.reply.bulk(kind.encoding().as_bytes()),
        (word, Some(_)) if is(word, "REFCOUNT") => call.reply.integer(1),
        (word, None) if is(word, "ENCODING") || is(word, "REFCOUNT") => call.reply.null(),
        (word, _) if is(word, "FREQ") || is(word, "IDLETIME") => {
            return Err(Fault::error("nothing counts how often or when keys are used"));
        }
        _ => return other_part(call.reply, word, "OBJECT"),
    }
    Ok(())
}

pub(super) fn ttl(call: &mut Call<'_>) -> Outcome {
    say_expiry(call, |at, now| (at - now + 500) / 1_000)
}

pub(super) fn pttl(call: &mut Call<'_>) -> Outcome {
    say_expiry(call, |at, now| at - now)
}

pub(super) fn expiretime(call: &mut Call<'_>) -> Outcome {
    say_expiry(call, |at, _| at / 1_000)
}

pub(super) fn pexpiretime(call: &mut Call<'_>) -> Outcome {
    say_expiry(call, |at, _| at)
}

/// -2 for a key that is not there, -1 for one that does not expire.
fn say_expiry(call: &mut Call<'_>, say: impl Fn(u64, u64) -> u64) -> Outcome {
    let now = call.access.now;
    let answer = match call.access.find(call.key())?.map(|entry| entry.expiry()) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => i64::try_from(say(at, now)).unwrap_or(i64::MAX),
    };
    call.reply.integer(answer);
    Ok(())
}

pub(super) fn expire(call: &mut Call<'_>) -> Outcome {
    expire_at(call, 1_000, call.access.now, "expire")
}

pub(super) fn pexpire(call: &mut Call<'_>) -> Outcome {
    expire_at(call, 1, call.access.now, "pexpire")
}

pub(super) fn expireat(call: &mut Call<'_>) -> Outcome {
    expire_at(call, 1_000, 0, "expireat")
}

pub(super) fn pexpireat(call: &mut Call<'_>) -> Outcome {
    expire_at(call, 1, 0, "pexpireat")
}

fn expire_at(call: &mut Call<'_>, unit: i64, from: u64, command: &str) -> Outcome {
    let at = parse::time(call.argument(2), unit, from, command)?.max(0) as u64;
    let [mut nx, mut xx, mut gt, mut lt] = [false; 4];
    for word in &call.arguments[3..] {
        let words = [("NX", &mut nx), ("XX", &mut xx), ("GT", &mut gt), ("LT", &mut lt)];
        let known = words.into_iter().find(|(name, _)| is(word, name));
        let wrong = || Fault::error(format!("Unsupported option {}", word.escape_ascii()));
        *known.ok_or_else(wrong)?.1 = true;
    }
    if nx && (xx || gt || lt) || gt && lt {
        let message = "NX and XX, GT or LT options at the same time are not compatible";
        return Err(Fault::error(message));
    }
    let is_set = call.access.expire(call.key(), |before| {
        // A key that never expires counts as one that expires last.
        let is_wanted = (!nx || before.is_none())
            && (!xx || before.is_some())
            && (!gt || before.is_some_and(|before| at > before))
            && (!lt || before.is_none_or(|before| at < before));
        is_wanted.then_some(Some(at))
    })?;
    call.reply.integer(is_set.into());
    Ok(())
}

pub(super) fn persist(call: &mut Call<'_>) -> Outcome {
    let is_set = call.access.expire(call.key(), |before| before.is_some().then_some(None))?;
    call.reply.integer(is_set.into());
    Ok(())
}

pub(super) fn dbsize(call: &mut Call<'_>) -> Outcome {
    call.reply.count(call.access.database.count() as usize);
    Ok(())
}

/// What SCAN is asked for.
struct Scan<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    kind: Option<&'a [u8]>,
}

pub(super) fn scan(call: &mut Call<'_>) -> Outcome {
    let (after, asked) = (cursor(call)?, scan_options(&call.arguments[2..])?);
    let prefix = asked.pattern.map(glob::prefix).unwrap_or_default();
    let lower = match &after {
        // A cursor of another pattern may stand before this one's first key.
        Some(key) if key[..] >= prefix[..] => Bound::Excluded(&key[..]),
        _ => Bound::Included(&prefix[..]),
    };
    let (mut items, mut seen, mut last) = (Items::new(call.reply.protocol), 0, None);
    for found in call.access.keys(lower, Bound::Unbounded) {
        let found = found?;
        if !found.key.starts_with(&prefix) {
            last = None;
            break;
        }
        let is_wanted = asked.pattern.is_none_or(|pattern| glob::matches(pattern, &found.key))
            && asked.kind.is_none_or(|kind| is(kind, found.entry.kind().name()));
        if is_wanted {
            items.bulk(&found.key);
        }
        seen += 1;
        last = None;
        if seen >= asked.count || items.reply.len() > call.state.options.reply_bytes / 2 {
            last = Some(found.key);
            break;
        }
    }
    let cursor = last.map_or(0, |key| call.state.cursors.keep(&key));
    call.reply.array(2);
    call.reply.bulk(cursor.to_string().as_bytes());
    items.end(call.reply);
    Ok(())
}

/// The key behind which to go on.
fn cursor(call: &Call<'_>) -> Result<Option<Box<[u8]>>, Fault> {
    let text = std::str::from_utf8(call.argument(1)).ok();
    let cursor: Option<u64> = text.and_then(|text| text.parse().ok());
    let wrong = || Fault::error("invalid cursor");
    match cursor.ok_or_else(wrong)? {
        0 => Ok(None),
        cursor => call.state.cursors.find(cursor).map(Some).ok_or_else(wrong),
    }
}

fn scan_options<'a>(arguments: &[&'a [u8]]) -> Result<Scan<'a>, Fault> {
    let mut asked = Scan { pattern: None, count: 10, kind: None };
    for pair in arguments.chunks(2) {
        let &[word, argument] = pair else { return Err(Fault::syntax()) };
        match word {
            word if is(word, "MATCH") => asked.pattern = Some(argument),
            word if is(word, "TYPE") => asked.kind = Some(argument),
            word if is(word, "COUNT") => {
                asked.count = parse::count(argument)
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or_else(Fault::syntax)?;
            }
            _ => return Err(Fault::syntax()),
        }
    }
    Ok(asked)
}

pub(super) fn keys(call: &mut Call<'_>) -> Outcome {
    let pattern = call.key();
    let prefix = glob::prefix(pattern);
    let mut items = Items::new(call.reply.protocol);
    for found in call.access.keys(Bound::Included(&prefix), Bound::Unbounded) {
        let found = found?;
        if !found.key.starts_with(&prefix) {
            break;
        }
        if glob::matches(pattern, &found.key) {
            items.bulk(&found.key);
            check_room(call.state, &items.reply)?;
        }
    }
    items.end(call.reply);
    Ok(())
}

pub(super) fn randomkey(call: &mut Call<'_>) -> Outcome {
    // A place between all keys, which does not make all of them equally likely.
    let place = call.state.random().to_be_bytes();
    let mut found = call.access.keys(Bound::Included(&place), Bound::Unbounded).next();
    if found.is_none() {
        found = call.access.keys(Bound::Unbounded, Bound::Unbounded).next();
    }
    let key = found.transpose()?.map(|found| found.key);
    call.reply.maybe_bulk(key.as_deref());
    Ok(())
}

/// `KEYRANGE min max [LIMIT offset count] [WITHVALUES]`: keys in order, with bounds as ZRANGEBYLEX has them.
pub(super) fn keyrange(call: &mut Call<'_>) -> Outcome {
    let (mut limit, mut with_values) = (Limit::NONE, false);
    let mut rest = &call.arguments[3..];
    while let [word, behind @ ..] = rest {
        rest = behind;
        match word {
            word if is(word, "WITHVALUES") => with_values = true,
            word if is(word, "LIMIT") => {
                let [offset, count, behind @ ..] = rest else { return Err(Fault::syntax()) };
                (limit, rest) = (Limit::parse(offset, count)?, behind);
            }
            _ => return Err(Fault::syntax()),
        }
    }
    let (min, max) =
        (parse::name_bound(call.argument(1), false)?, parse::name_bound(call.argument(2), true)?);
    let mut items = Items::new(call.reply.protocol);
    let has_pairs = with_values && call.reply.protocol == Protocol::Resp3;
    if let (NameBound::At(min), NameBound::At(max)) = (min, max)
        && !limit.is_used_up()
    {
        for found in call.access.keys(min, max) {
            let found = found?;
            if limit.takes() {
                say_pair(&mut items, &found.key, &found.entry, with_values, has_pairs);
                check_room(call.state, &items.reply)?;
            }
            if limit.is_used_up() {
                break;
            }
        }
    }
    items.end(call.reply);
    Ok(())
}

fn say_pair(items: &mut Items, key: &[u8], entry: &Entry, with_value: bool, is_pair: bool) {
    if is_pair {
        items.reply.array(2);
    }
    items.reply.bulk(key);
    items.count += 1;
    if with_value {
        // What is no string has no value of its own.
        match entry {
            Entry::String { value, .. } => items.reply.bulk(value),
            Entry::Head(_) => items.reply.null(),
        }
        items.count += usize::from(!is_pair);
    }
}

/// Removes everything, with every key locked. Takes as long as there are pairs.
pub(super) fn flush(call: &mut Call<'_>) -> Outcome {
    for word in &call.arguments[1..] {
        if !is(word, "SYNC") && !is(word, "ASYNC") {
            return Err(Fault::syntax());
        }
    }
    let _locks = call.access.database.locks.write_all();
    for space in [Space::String, Space::Head] {
        remove_all(call.access, space, 1)?;
    }
    for space in [Space::Field, Space::Member, Space::Score, Space::Expiry, Space::Dropped] {
        remove_all(call.access, space, 0)?;
    }
    call.ok()
}

fn remove_all(access: &Access<'_>, space: Space, keys_each: i64) -> Outcome {
    let (from, to) = keys::all(space);
    let mut batch = Batch::default();
    for pair in access.between(&from, &to) {
        batch.delete(&pair?.0);
        batch.keys -= keys_each;
        if batch.len() == PAIRS {
            access.write(std::mem::take(&mut batch))?;
        }
    }
    access.write(batch)
}
