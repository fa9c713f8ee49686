//! Commands on members of sorted sets, by name.

use super::command::Call;
use super::parse::{self, is};
use crate::data::overlay::Direction;
use crate::data::records::Kind;
use crate::data::sorted_sets::AddOptions;
use crate::fault::{Fault, Outcome};
use crate::resp::Reply;

pub(super) fn zadd(call: &mut Call<'_>) -> Outcome {
    let (mut options, mut counts_changed) = (AddOptions::default(), false);
    let mut rest = &call.arguments[2..];
    while let [word, behind @ ..] = rest {
        match word {
            word if is(word, "NX") => options.only_missing = true,
            word if is(word, "XX") => options.only_present = true,
            word if is(word, "GT") => options.greater = true,
            word if is(word, "LT") => options.less = true,
            word if is(word, "CH") => counts_changed = true,
            word if is(word, "INCR") => options.increments = true,
            _ => break,
        }
        rest = behind;
    }
    check(rest, options)?;
    let mut pairs = Vec::with_capacity(rest.len() / 2);
    for pair in rest.chunks_exact(2) {
        pairs.push((parse::score(pair[0])?, pair[1]));
    }
    let added = call.access.add(call.key(), &pairs, options)?;
    if options.increments {
        maybe_double(call.reply, added.score);
    } else {
        call.reply.count(added.new + if counts_changed { added.changed } else { 0 });
    }
    Ok(())
}

fn check(rest: &[&[u8]], options: AddOptions) -> Outcome {
    if rest.is_empty() || !rest.len().is_multiple_of(2) {
        return Err(Fault::syntax());
    }
    if options.only_missing && options.only_present {
        return Err(Fault::error("XX and NX options at the same time are not compatible"));
    }
    let compares = options.greater || options.less;
    if options.only_missing && compares || options.greater && options.less {
        let message = "GT, LT, and/or NX options at the same time are not compatible";
        return Err(Fault::error(message));
    }
    if options.increments && rest.len() > 2 {
        return Err(Fault::error("INCR option supports a single increment-element pair"));
    }
    Ok(())
}

pub(super) fn zincrby(call: &mut Call<'_>) -> Outcome {
    let options = AddOptions { increments: true, ..AddOptions::default() };
    let pair = (parse::score(call.argument(2))?, call.argument(3));
    let added = call.access.add(call.key(), &[pair], options)?;
    call.reply.double(added.score.unwrap_or_default());
    Ok(())
}

pub(super) fn zrem(call: &mut Call<'_>) -> Outcome {
    let removed = call.access.remove_members(call.key(), &call.arguments[2..])?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn zscore(call: &mut Call<'_>) -> Outcome {
    let reply = &mut *call.reply;
    call.access.each_score(call.arguments[1], &call.arguments[2..], |score| {
        maybe_double(reply, score);
        Ok(())
    })
}

pub(super) fn zmscore(call: &mut Call<'_>) -> Outcome {
    let (members, room, reply) = (&call.arguments[2..], call.room(), &mut *call.reply);
    reply.array(members.len());
    call.access.each_score(call.arguments[1], members, |score| {
        maybe_double(reply, score);
        room.take(reply.len())
    })
}

fn maybe_double(reply: &mut Reply, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

pub(super) fn zrank(call: &mut Call<'_>) -> Outcome {
    rank(call, Direction::Up, "zrank")
}

pub(super) fn zrevrank(call: &mut Call<'_>) -> Outcome {
    rank(call, Direction::Down, "zrevrank")
}

fn rank(call: &mut Call<'_>, direction: Direction, command: &str) -> Outcome {
    let with_score = match &call.arguments[3..] {
        [] => false,
        [word] if is(word, "WITHSCORE") => true,
        [_] => return Err(Fault::syntax()),
        _ => {
            let message = format!("wrong number of arguments for '{command}' command");
            return Err(Fault::error(message));
        }
    };
    match call.access.rank(call.key(), call.argument(2), direction)? {
        Some((rank, score)) if with_score => {
            call.reply.array(2);
            call.reply.count(rank);
            call.reply.double(score);
        }
        Some((rank, _)) => call.reply.count(rank),
        None if with_score => call.reply.null_array(),
        None => call.reply.null(),
    }
    Ok(())
}

pub(super) fn zcard(call: &mut Call<'_>) -> Outcome {
    let length = call.access.length(call.key(), Kind::SortedSet)?;
    call.reply.count(length as usize);
    Ok(())
}
