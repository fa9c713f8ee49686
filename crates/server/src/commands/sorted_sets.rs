//! Commands on sorted sets.

use std::ops::Bound;

use super::parse::{self, Limit, NameBound, is};
use super::{Call, Outcome};
use crate::data::collections::{AddOptions, Scored};
use crate::data::records::Kind;
use crate::fault::Fault;
use crate::resp::{Protocol, Reply};

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
        pairs.push((parse::float(pair[0])?, pair[1]));
    }
    let added = call.access.add(call.key(), &pairs, options)?;
    if options.increments {
        match added.score {
            Some(score) => call.reply.double(score),
            None => call.reply.null(),
        }
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
    let pair = (parse::float(call.argument(2))?, call.argument(3));
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
    match call.access.score(call.key(), call.argument(2))? {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

pub(super) fn zcard(call: &mut Call<'_>) -> Outcome {
    let length = call.access.length(call.key(), Kind::SortedSet)?;
    call.reply.count(length as usize);
    Ok(())
}

pub(super) fn zcount(call: &mut Call<'_>) -> Outcome {
    let (min, max) = (parse::score_bound(call.argument(2))?, parse::score_bound(call.argument(3))?);
    let mut count = 0;
    call.access.each_scored(call.key(), min, max, |_, _| {
        count += 1;
        Ok(true)
    })?;
    call.reply.count(count);
    Ok(())
}

/// What a range is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Name,
}

/// What a range command asks for.
struct Asked {
    by: By,
    is_reversed: bool,
    with_scores: bool,
    limit: Limit,
}

pub(super) fn zrange(call: &mut Call<'_>) -> Outcome {
    range(call, By::Rank, false)
}

pub(super) fn zrevrange(call: &mut Call<'_>) -> Outcome {
    range(call, By::Rank, true)
}

pub(super) fn zrangebyscore(call: &mut Call<'_>) -> Outcome {
    range(call, By::Score, false)
}

pub(super) fn zrevrangebyscore(call: &mut Call<'_>) -> Outcome {
    range(call, By::Score, true)
}

pub(super) fn zrangebylex(call: &mut Call<'_>) -> Outcome {
    range(call, By::Name, false)
}

fn range(call: &mut Call<'_>, by: By, is_reversed: bool) -> Outcome {
    let asked = asked(call, by, is_reversed)?;
    let found = match asked.by {
        By::Rank => by_rank(call, &asked)?,
        By::Score => by_score(call, &asked)?,
        By::Name => by_name(call, &asked)?,
    };
    say(call.reply, &found, asked.with_scores);
    call.check_room()
}

fn asked(call: &Call<'_>, by: By, is_reversed: bool) -> Result<Asked, Fault> {
    let is_zrange = is(call.argument(0), "ZRANGE");
    let mut asked = Asked { by, is_reversed, with_scores: false, limit: Limit::NONE };
    let (mut rest, mut has_limit) = (&call.arguments[4..], false);
    while let [word, behind @ ..] = rest {
        rest = behind;
        match word {
            word if is(word, "WITHSCORES") && asked.by != By::Name => asked.with_scores = true,
            word if is(word, "REV") && is_zrange => asked.is_reversed = true,
            word if is(word, "BYSCORE") && is_zrange => asked.by = By::Score,
            word if is(word, "BYLEX") && is_zrange => asked.by = By::Name,
            word if is(word, "LIMIT") => {
                let [offset, count, behind @ ..] = rest else { return Err(Fault::syntax()) };
                (asked.limit, has_limit, rest) = (Limit::parse(offset, count)?, true, behind);
            }
            _ => return Err(Fault::syntax()),
        }
    }
    if has_limit && asked.by == By::Rank {
        let message =
            "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
        return Err(Fault::error(message));
    }
    Ok(asked)
}

/// Ranks count from the end where they are negative. Members before the first one are passed over one by one.
fn by_rank(call: &Call<'_>, asked: &Asked) -> Result<Vec<Scored>, Fault> {
    let (start, stop) = (parse::integer(call.argument(2))?, parse::integer(call.argument(3))?);
    let length = call.access.length(call.key(), Kind::SortedSet)? as i64;
    let from_front = |rank: i64| if rank < 0 { rank + length } else { rank };
    let (start, stop) = (from_front(start).max(0), from_front(stop).min(length - 1));
    if start > stop {
        return Ok(Vec::new());
    }
    let (first, last) =
        if asked.is_reversed { (length - 1 - stop, length - 1 - start) } else { (start, stop) };
    let limit = Limit { offset: first as usize, count: (last - first + 1) as usize };
    let mut found = gather(call, Bound::Unbounded, Bound::Unbounded, limit, |_| true)?;
    if asked.is_reversed {
        found.reverse();
    }
    Ok(found)
}

fn by_score(call: &Call<'_>, asked: &Asked) -> Result<Vec<Scored>, Fault> {
    let (min, max) = ends(call, asked);
    let (min, max) = (parse::score_bound(min)?, parse::score_bound(max)?);
    limited(call, asked, min, max, |_| true)
}

/// Of members that all have one score; those with others are in the order of scores first, as in Redis.
fn by_name(call: &Call<'_>, asked: &Asked) -> Result<Vec<Scored>, Fault> {
    let (min, max) = ends(call, asked);
    let (min, max) = (parse::name_bound(min, false)?, parse::name_bound(max, true)?);
    let (NameBound::At(min), NameBound::At(max)) = (min, max) else { return Ok(Vec::new()) };
    let is_within = |member: &[u8]| {
        let is_above = match min {
            Bound::Included(min) => member >= min,
            Bound::Excluded(min) => member > min,
            Bound::Unbounded => true,
        };
        let is_below = match max {
            Bound::Included(max) => member <= max,
            Bound::Excluded(max) => member < max,
            Bound::Unbounded => true,
        };
        is_above && is_below
    };
    limited(call, asked, Bound::Unbounded, Bound::Unbounded, is_within)
}

/// The lower and the upper one, which come the other way round where the order is reversed.
fn ends<'a>(call: &Call<'a>, asked: &Asked) -> (&'a [u8], &'a [u8]) {
    let (first, second) = (call.argument(2), call.argument(3));
    if asked.is_reversed { (second, first) } else { (first, second) }
}

fn limited(
    call: &Call<'_>,
    asked: &Asked,
    min: Bound<f64>,
    max: Bound<f64>,
    is_within: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Scored>, Fault> {
    if !asked.is_reversed {
        return gather(call, min, max, asked.limit, is_within);
    }
    let mut found = gather(call, min, max, Limit::NONE, is_within)?;
    found.reverse();
    let Limit { offset, count } = asked.limit;
    Ok(found.into_iter().skip(offset).take(count).collect())
}

fn gather(
    call: &Call<'_>,
    min: Bound<f64>,
    max: Bound<f64>,
    mut limit: Limit,
    is_within: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Scored>, Fault> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    if limit.is_used_up() {
        call.access.collection(call.key(), Kind::SortedSet)?;
        return Ok(found);
    }
    call.access.each_scored(call.key(), min, max, |member, score| {
        if is_within(member) && limit.takes() {
            bytes += member.len() + 32;
            found.push((member.to_vec(), score));
            if bytes > call.state.options.reply_bytes {
                return Err(Fault::error("the reply would be too long; ask for parts of it"));
            }
        }
        Ok(!limit.is_used_up())
    })?;
    Ok(found)
}

fn say(reply: &mut Reply, found: &[Scored], with_scores: bool) {
    // Version 3 has pairs, version 2 a flat list.
    let has_pairs = with_scores && reply.protocol == Protocol::Resp3;
    let is_flat = with_scores && !has_pairs;
    reply.array(if is_flat { 2 * found.len() } else { found.len() });
    for (member, score) in found {
        if has_pairs {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(*score);
        }
    }
}
