//! Commands on keys of any kind.

use std::ops::Bound;

use super::command::Call;
use super::help::other_part;
use super::parse::{self, NameBound, is};
use super::room::Items;
use crate::data::names::Found;
use crate::data::records::Entry;
use crate::data::rename::{Moved, Replace};
use crate::data::selection::Limit;
use crate::fault::{Fault, Outcome};
use crate::glob;
use crate::resp::Protocol;

pub(super) fn del(call: &mut Call<'_>) -> Outcome {
    let removed = call.access.delete(&call.arguments[1..])?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_>) -> Outcome {
    let mut count = 0;
    for key in &call.arguments[1..] {
        count += usize::from(call.access.look(key)?.is_some());
    }
    call.reply.count(count);
    Ok(())
}

pub(super) fn type_of(call: &mut Call<'_>) -> Outcome {
    let kind = call.access.look(call.key())?.map(|entry| entry.kind().name());
    call.reply.simple(kind.unwrap_or("none"));
    Ok(())
}

/// Each kind has one encoding. Accesses are not counted, so FREQ and IDLETIME return an error.
pub(super) fn object(call: &mut Call<'_>) -> Outcome {
    let word = call.argument(1);
    let &[_, _, key] = call.arguments else { return other_part(call.reply, word, "OBJECT") };
    let kind = call.access.look(key)?.map(|entry| entry.kind());
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
    say_expiry(call, |at, _| at.saturating_add(500) / 1_000)
}

pub(super) fn pexpiretime(call: &mut Call<'_>) -> Outcome {
    say_expiry(call, |at, _| at)
}

/// Replies -2 for a missing key and -1 for a key without an expiry.
fn say_expiry(call: &mut Call<'_>, say: impl Fn(u64, u64) -> u64) -> Outcome {
    let now = call.access.now;
    let answer = match call.access.look(call.key())?.map(|entry| entry.expiry()) {
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
    let [mut nx, mut xx, mut gt, mut lt] = [false; 4];
    for word in &call.arguments[3..] {
        let words = [("NX", &mut nx), ("XX", &mut xx), ("GT", &mut gt), ("LT", &mut lt)];
        let known = words.into_iter().find(|(name, _)| is(word, name));
        let wrong = || Fault::error(format!("Unsupported option {}", word.escape_ascii()));
        *known.ok_or_else(wrong)?.1 = true;
    }
    if gt && lt && !nx {
        let message = "GT and LT options at the same time are not compatible";
        return Err(Fault::error(message));
    }
    if nx && (xx || gt || lt) {
        let message = "NX and XX, GT or LT options at the same time are not compatible";
        return Err(Fault::error(message));
    }
    let at = parse::time(call.argument(2), unit, from, command)?.max(0) as u64;
    let is_set = call.access.expire(call.key(), |before| {
        // A key without an expiry counts as one that expires last.
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
    let count = call.access.count()?;
    call.reply.count(count as usize);
    Ok(())
}

pub(super) fn rename(call: &mut Call<'_>) -> Outcome {
    match call.access.rename(call.key(), call.argument(2), Replace::Always)? {
        Moved::Missing => Err(Fault::error("no such key")),
        Moved::Refused | Moved::Done => call.ok(),
    }
}

pub(super) fn renamenx(call: &mut Call<'_>) -> Outcome {
    match call.access.rename(call.key(), call.argument(2), Replace::Never)? {
        Moved::Missing => return Err(Fault::error("no such key")),
        moved => call.reply.integer((moved == Moved::Done).into()),
    }
    Ok(())
}

pub(super) fn copy(call: &mut Call<'_>) -> Outcome {
    let mut replace = Replace::Never;
    let mut rest = &call.arguments[3..];
    while let [word, behind @ ..] = rest {
        rest = match behind {
            _ if is(word, "REPLACE") => {
                replace = Replace::Always;
                behind
            }
            [number, behind @ ..] if is(word, "DB") => {
                if parse::integer(number)? != 0 {
                    return Err(Fault::error("DB index is out of range"));
                }
                behind
            }
            _ => return Err(Fault::syntax()),
        };
    }
    if call.key() == call.argument(2) {
        return Err(Fault::error("source and destination objects are the same"));
    }
    let moved = call.access.copy(call.key(), call.argument(2), replace)?;
    call.reply.integer((moved == Moved::Done).into());
    Ok(())
}

pub(super) fn keys(call: &mut Call<'_>) -> Outcome {
    let pattern = call.key();
    let prefix = glob::prefix(pattern);
    let access = call.access;
    let mut items = call.items();
    for name in access.names((Bound::Included(&prefix), Bound::Unbounded))? {
        let name = name?;
        let key = name.key();
        if !key.starts_with(&prefix) {
            break;
        }
        if glob::matches(pattern, key) {
            items.bulk(key)?;
        }
    }
    items.end();
    Ok(())
}

pub(super) fn randomkey(call: &mut Call<'_>) -> Outcome {
    let key = call.access.random_name(&|| call.state.random())?;
    call.reply.maybe_bulk(key.as_deref());
    Ok(())
}

/// `KEYRANGE min max [LIMIT offset count] [WITHVALUES]`: returns keys in order, with the bounds of
/// ZRANGEBYLEX.
pub(super) fn keyrange(call: &mut Call<'_>) -> Outcome {
    let (mut limit, mut with_values) = (Limit::NONE, false);
    let mut rest = &call.arguments[3..];
    while let [word, behind @ ..] = rest {
        rest = behind;
        match word {
            word if is(word, "WITHVALUES") => with_values = true,
            word if is(word, "LIMIT") => {
                let [offset, count, behind @ ..] = rest else { return Err(Fault::syntax()) };
                (limit, rest) = (parse::limit(offset, count)?, behind);
            }
            _ => return Err(Fault::syntax()),
        }
    }
    let (min, max) =
        (parse::name_bound(call.argument(1), false)?, parse::name_bound(call.argument(2), true)?);
    let access = call.access;
    let mut items = call.items();
    let has_pairs = with_values && items.protocol() == Protocol::Resp3;
    if let (NameBound::At(min), NameBound::At(max)) = (min, max)
        && !limit.is_used_up()
    {
        let bounds = (min, max);
        if with_values {
            let pairs = access.keys(bounds)?;
            gather(pairs, limit, |found| say_pair(&mut items, &found, has_pairs))?;
        } else {
            gather(access.names(bounds)?, limit, |name| items.bulk(name.key()))?;
        }
    }
    items.end();
    Ok(())
}

/// Calls `say` for the items within the limit.
fn gather<T>(
    all: impl Iterator<Item = Result<T, Fault>>,
    mut limit: Limit,
    mut say: impl FnMut(T) -> Outcome,
) -> Outcome {
    for one in all {
        let one = one?;
        if limit.takes() {
            say(one)?;
        }
        if limit.is_used_up() {
            break;
        }
    }
    Ok(())
}

fn say_pair(items: &mut Items<'_>, found: &Found, is_pair: bool) -> Outcome {
    // Only strings have a value here; collections show null.
    let value = match &found.entry {
        Entry::String { value, .. } => Some(&value[..]),
        Entry::Head(_) => None,
    };
    if is_pair {
        return items.one(|reply| {
            reply.array(2);
            reply.bulk(found.key());
            reply.maybe_bulk(value);
        });
    }
    items.bulk(found.key())?;
    items.one(|reply| reply.maybe_bulk(value))
}

/// Removes all keys that exist when it begins. Takes time proportional to their number.
pub(super) fn flush(call: &mut Call<'_>) -> Outcome {
    match &call.arguments[1..] {
        [] => {}
        [word] if is(word, "SYNC") || is(word, "ASYNC") => {}
        _ => return Err(Fault::syntax()),
    }
    call.access.steps.take_all()?;
    call.access.remove_all()?;
    call.ok()
}
