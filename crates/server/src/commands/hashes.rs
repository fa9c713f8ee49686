//! Commands on hashes.

use super::command::Call;
use super::decimal::{self, Number};
use super::parse;
use super::room::Items;
use super::strings::{added, check_length};
use crate::data::overlay::Gives;
use crate::data::records::Kind;
use crate::fault::{Fault, Outcome};

fn set(call: &Call<'_>, command: &str) -> Result<usize, Fault> {
    let arguments = &call.arguments[2..];
    if arguments.is_empty() || !arguments.len().is_multiple_of(2) {
        let message = format!("wrong number of arguments for '{command}' command");
        return Err(Fault::error(message));
    }
    let pairs: Vec<_> = arguments.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.iter().try_for_each(|(_, value)| check_length(call, value.len()))?;
    call.access.set_fields(call.key(), &pairs)
}

pub(super) fn hset(call: &mut Call<'_>) -> Outcome {
    let new = set(call, "hset")?;
    call.reply.count(new);
    Ok(())
}

pub(super) fn hmset(call: &mut Call<'_>) -> Outcome {
    set(call, "hmset")?;
    call.ok()
}

pub(super) fn hsetnx(call: &mut Call<'_>) -> Outcome {
    let value = call.argument(3);
    check_length(call, value.len())?;
    let is_set = call.access.change_field(call.key(), call.argument(2), |before| {
        let is_set = before.is_none();
        Ok((before.unwrap_or_else(|| value.to_vec()), is_set))
    })?;
    call.reply.integer(is_set.into());
    Ok(())
}

pub(super) fn hincrby(call: &mut Call<'_>) -> Outcome {
    let by = parse::integer(call.argument(3))?;
    let sum = call.access.change_field(call.key(), call.argument(2), |before| {
        added(before, by).map_err(|fault| {
            let is_text = fault == Fault::not_an_integer();
            if is_text { Fault::error("hash value is not an integer") } else { fault }
        })
    })?;
    call.reply.integer(sum);
    Ok(())
}

pub(super) fn hincrbyfloat(call: &mut Call<'_>) -> Outcome {
    let by = decimal::parse(call.argument(3)).ok_or_else(Fault::not_a_float)?;
    if by == Number::Infinite {
        return Err(Fault::error("value is NaN or Infinity"));
    }
    let not_a_float = || Fault::error("hash value is not a float");
    let sum = call.access.change_field(call.key(), call.argument(2), |before| {
        decimal::increased(before, by, not_a_float).map(|sum| (sum.clone(), sum))
    })?;
    call.reply.bulk(&sum);
    Ok(())
}

pub(super) fn hget(call: &mut Call<'_>) -> Outcome {
    let value = call.access.field(call.key(), call.argument(2))?;
    call.reply.maybe_bulk(value.as_deref());
    Ok(())
}

pub(super) fn hmget(call: &mut Call<'_>) -> Outcome {
    let (fields, room, reply) = (&call.arguments[2..], call.room(), &mut *call.reply);
    reply.array(fields.len());
    call.access.each_field(call.arguments[1], fields, |value| {
        reply.maybe_bulk(value.as_deref());
        room.take(reply.len())
    })
}

pub(super) fn hexists(call: &mut Call<'_>) -> Outcome {
    let is_there = call.access.field(call.key(), call.argument(2))?.is_some();
    call.reply.integer(is_there.into());
    Ok(())
}

pub(super) fn hstrlen(call: &mut Call<'_>) -> Outcome {
    let length = call.access.field(call.key(), call.argument(2))?.map_or(0, |value| value.len());
    call.reply.count(length);
    Ok(())
}

pub(super) fn hdel(call: &mut Call<'_>) -> Outcome {
    let removed = call.access.remove_fields(call.key(), &call.arguments[2..])?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn hlen(call: &mut Call<'_>) -> Outcome {
    let length = call.access.length(call.key(), Kind::Hash)?;
    call.reply.count(length as usize);
    Ok(())
}

pub(super) fn hgetall(call: &mut Call<'_>) -> Outcome {
    gather(call, true, true)?.end_as_map();
    Ok(())
}

pub(super) fn hkeys(call: &mut Call<'_>) -> Outcome {
    gather(call, true, false)?.end();
    Ok(())
}

pub(super) fn hvals(call: &mut Call<'_>) -> Outcome {
    gather(call, false, true)?.end();
    Ok(())
}

fn gather<'c>(call: &'c mut Call<'_>, fields: bool, values: bool) -> Result<Items<'c>, Fault> {
    let (access, key) = (call.access, call.key());
    let mut items = call.items();
    let gives = if values { Gives::Pairs } else { Gives::Keys };
    access.each_part(key, (Kind::Hash, gives), None, |field, value| {
        if fields {
            items.bulk(field)?;
        }
        if values {
            items.bulk(value)?;
        }
        Ok(true)
    })?;
    Ok(items)
}
