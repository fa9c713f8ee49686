//! Commands on strings.

use super::command::Call;
use super::decimal;
use super::parse::{self, is};
use crate::data::strings::{Lifetime, SetOptions, When};
use crate::fault::{Fault, Outcome};

/// Returns an error if a value is too long for the store. Called before anything of a command is
/// written.
pub(super) fn check_length(call: &Call<'_>, length: usize) -> Outcome {
    let most = call.access.database.longest_value;
    if length <= most {
        return Ok(());
    }
    let message = "string exceeds maximum allowed size";
    Err(Fault::error(format!("{message}: {length} bytes, at most {most}")))
}

pub(super) fn get(call: &mut Call<'_>) -> Outcome {
    let value = call.access.string(call.key())?;
    call.reply.maybe_bulk(value.as_deref());
    Ok(())
}

pub(super) fn set(call: &mut Call<'_>) -> Outcome {
    let value = call.argument(2);
    check_length(call, value.len())?;
    let options = set_options(call)?;
    let set = call.access.set(call.key(), value, options)?;
    if options.get {
        call.reply.maybe_bulk(set.before.as_deref());
    } else if set.is_set {
        call.reply.simple("OK");
    } else {
        call.reply.null();
    }
    Ok(())
}

fn set_options(call: &Call<'_>) -> Result<SetOptions, Fault> {
    let (mut options, mut time) = (SetOptions::default(), None);
    let mut rest = &call.arguments[3..];
    // Options may be repeated; of several times with the same unit the last one counts.
    while let [word, behind @ ..] = rest {
        rest = behind;
        match word {
            word if is(word, "NX") && options.when != When::Present => options.when = When::Missing,
            word if is(word, "XX") && options.when != When::Missing => options.when = When::Present,
            word if is(word, "GET") => options.get = true,
            word if is(word, "KEEPTTL") && time.is_none() => options.lifetime = Lifetime::Keep,
            word if options.lifetime == Lifetime::None => {
                let given = time_unit(word, call.access.now).ok_or_else(Fault::syntax)?;
                let [argument, behind @ ..] = rest else { return Err(Fault::syntax()) };
                if time.is_some_and(|(_, before)| before != given) {
                    return Err(Fault::syntax());
                }
                (time, rest) = (Some((argument, given)), behind);
            }
            _ => return Err(Fault::syntax()),
        }
    }
    if let Some((argument, (unit, from))) = time {
        options.lifetime = Lifetime::At(positive_time(argument, unit, from, "set")?);
    }
    Ok(options)
}

/// Returns the unit of a time option in milliseconds, and the time it is relative to.
fn time_unit(word: &[u8], now: u64) -> Option<(i64, u64)> {
    let units = [("EX", 1_000, now), ("PX", 1, now), ("EXAT", 1_000, 0), ("PXAT", 1, 0)];
    units.into_iter().find(|(name, ..)| is(word, name)).map(|(_, unit, from)| (unit, from))
}

fn positive_time(argument: &[u8], unit: i64, from: u64, command: &str) -> Result<u64, Fault> {
    let wrong = || Fault::error(format!("invalid expire time in '{command}' command"));
    if parse::integer(argument)? <= 0 {
        return Err(wrong());
    }
    u64::try_from(parse::time(argument, unit, from, command)?).map_err(|_| wrong())
}

pub(super) fn setnx(call: &mut Call<'_>) -> Outcome {
    check_length(call, call.argument(2).len())?;
    let options = SetOptions { when: When::Missing, ..SetOptions::default() };
    let set = call.access.set(call.key(), call.argument(2), options)?;
    call.reply.integer(set.is_set.into());
    Ok(())
}

pub(super) fn setex(call: &mut Call<'_>) -> Outcome {
    set_with_time(call, 1_000, "setex")
}

pub(super) fn psetex(call: &mut Call<'_>) -> Outcome {
    set_with_time(call, 1, "psetex")
}

fn set_with_time(call: &mut Call<'_>, unit: i64, command: &str) -> Outcome {
    check_length(call, call.argument(3).len())?;
    let at = positive_time(call.argument(2), unit, call.access.now, command)?;
    let options = SetOptions { lifetime: Lifetime::At(at), ..SetOptions::default() };
    call.access.set(call.key(), call.argument(3), options)?;
    call.ok()
}

pub(super) fn getset(call: &mut Call<'_>) -> Outcome {
    check_length(call, call.argument(2).len())?;
    let options = SetOptions { get: true, ..SetOptions::default() };
    let set = call.access.set(call.key(), call.argument(2), options)?;
    call.reply.maybe_bulk(set.before.as_deref());
    Ok(())
}

pub(super) fn getdel(call: &mut Call<'_>) -> Outcome {
    let taken = call.access.take(call.key())?;
    call.reply.maybe_bulk(taken.as_deref());
    Ok(())
}

pub(super) fn getex(call: &mut Call<'_>) -> Outcome {
    let now = call.access.now;
    // A syntax error is reported first; an invalid time only if the string exists.
    let asked = match &call.arguments[2..] {
        [] => None,
        [word] if is(word, "PERSIST") => Some(None),
        [word, time] => Some(Some((time, time_unit(word, now).ok_or_else(Fault::syntax)?))),
        _ => return Err(Fault::syntax()),
    };
    let value = call.access.get_and_expire(call.key(), || match asked {
        None => Ok(None),
        Some(None) => Ok(Some(None)),
        Some(Some((time, (unit, from)))) => {
            positive_time(time, unit, from, "getex").map(|at| Some(Some(at)))
        }
    })?;
    call.reply.maybe_bulk(value.as_deref());
    Ok(())
}

pub(super) fn strlen(call: &mut Call<'_>) -> Outcome {
    let length = call.access.string(call.key())?.map_or(0, |value| value.len());
    call.reply.count(length);
    Ok(())
}

pub(super) fn getrange(call: &mut Call<'_>) -> Outcome {
    let (start, end) = (parse::integer(call.argument(2))?, parse::integer(call.argument(3))?);
    let value = call.access.string(call.key())?.unwrap_or_default();
    call.reply.bulk(part(&value, start, end));
    Ok(())
}

/// Returns the bytes from `start` to `end`, inclusive. Negative positions count from the end and
/// are clamped to the first byte, as in Redis.
fn part(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    let length = bytes.len() as i64;
    let from_front = |place: i64| if place < 0 { place.saturating_add(length) } else { place };
    let is_nothing = start < 0 && end < 0 && start > end;
    let from = from_front(start).clamp(0, length);
    let behind = from_front(end).max(0).saturating_add(1).clamp(from, length);
    let behind = if is_nothing { from } else { behind };
    &bytes[from as usize..behind as usize]
}

pub(super) fn append(call: &mut Call<'_>) -> Outcome {
    let tail = call.argument(2);
    let length = call.access.change(call.key(), |value| {
        let mut value = value.unwrap_or_default();
        check_length(call, value.len() + tail.len())?;
        value.extend_from_slice(tail);
        let length = value.len();
        Ok((value, length))
    })?;
    call.reply.count(length);
    Ok(())
}

pub(super) fn setrange(call: &mut Call<'_>) -> Outcome {
    let (offset, part) = (parse::integer(call.argument(2))?, call.argument(3));
    let offset = usize::try_from(offset).map_err(|_| Fault::error("offset is out of range"))?;
    if part.is_empty() {
        // No string is created.
        return strlen(call);
    }
    let length = call.access.change(call.key(), |value| {
        let mut value = value.unwrap_or_default();
        let end = offset.saturating_add(part.len());
        check_length(call, end.max(value.len()))?;
        if value.len() < end {
            value.resize(end, 0);
        }
        value[offset..end].copy_from_slice(part);
        let length = value.len();
        Ok((value, length))
    })?;
    call.reply.count(length);
    Ok(())
}

pub(super) fn incrbyfloat(call: &mut Call<'_>) -> Outcome {
    let by = decimal::parse(call.argument(2));
    let sum = call.access.change(call.key(), |value| {
        let by = by.ok_or_else(Fault::not_a_float)?;
        decimal::increased(value, by, Fault::not_a_float).map(|sum| (sum.clone(), sum))
    })?;
    call.reply.bulk(&sum);
    Ok(())
}

pub(super) fn incr(call: &mut Call<'_>) -> Outcome {
    add(call, 1)
}

pub(super) fn decr(call: &mut Call<'_>) -> Outcome {
    add(call, -1)
}

pub(super) fn incrby(call: &mut Call<'_>) -> Outcome {
    let by = parse::integer(call.argument(2))?;
    add(call, by)
}

pub(super) fn decrby(call: &mut Call<'_>) -> Outcome {
    let by = parse::integer(call.argument(2))?;
    let by = by.checked_neg().ok_or_else(|| Fault::error("decrement would overflow"))?;
    add(call, by)
}

fn add(call: &mut Call<'_>, by: i64) -> Outcome {
    let sum = call.access.change(call.key(), |value| added(value, by))?;
    call.reply.integer(sum);
    Ok(())
}

/// Adds to a number in decimal text; a missing value counts as 0.
pub(super) fn added(value: Option<Vec<u8>>, by: i64) -> Result<(Vec<u8>, i64), Fault> {
    let number = value.map_or(Ok(0), |value| parse::integer(&value))?;
    let sum = number.checked_add(by);
    let sum = sum.ok_or_else(|| Fault::error("increment or decrement would overflow"))?;
    Ok((sum.to_string().into_bytes(), sum))
}

pub(super) fn mget(call: &mut Call<'_>) -> Outcome {
    let room = call.room();
    call.reply.array(call.arguments.len() - 1);
    for key in &call.arguments[1..] {
        // A key of another kind shows null.
        let value = match call.access.string(key) {
            Err(fault) if fault == Fault::wrong_type() => None,
            value => value?,
        };
        call.reply.maybe_bulk(value.as_deref());
        room.take(call.reply.len())?;
    }
    Ok(())
}

/// Pairs of key and value.
type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

fn pairs<'a>(call: &Call<'a>, command: &str) -> Result<Pairs<'a>, Fault> {
    let arguments = &call.arguments[1..];
    if !arguments.len().is_multiple_of(2) {
        let message = format!("wrong number of arguments for '{command}' command");
        return Err(Fault::error(message));
    }
    let pairs: Vec<_> = arguments.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.iter().try_for_each(|(_, value)| check_length(call, value.len()))?;
    Ok(pairs)
}

pub(super) fn mset(call: &mut Call<'_>) -> Outcome {
    call.access.set_all(&pairs(call, "mset")?, When::Always)?;
    call.ok()
}

pub(super) fn msetnx(call: &mut Call<'_>) -> Outcome {
    let is_set = call.access.set_all(&pairs(call, "msetnx")?, When::Missing)?;
    call.reply.integer(is_set.into());
    Ok(())
}
