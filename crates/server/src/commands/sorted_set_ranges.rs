//! Commands on ranges of sorted sets: by rank, by score, by name.

use std::ops::Bound;

use super::command::Call;
use super::parse::{self, NameBound, is};
use super::room::Items;
use crate::data::overlay::Direction;
use crate::data::selection::{Limit, Selection, Span};
use crate::fault::{Fault, Outcome};
use crate::resp::Protocol;

/// The order of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Name,
}

pub(super) fn zrange(call: &mut Call<'_>) -> Outcome {
    range(call, By::Rank, Direction::Up)
}

pub(super) fn zrevrange(call: &mut Call<'_>) -> Outcome {
    range(call, By::Rank, Direction::Down)
}

pub(super) fn zrangebyscore(call: &mut Call<'_>) -> Outcome {
    range(call, By::Score, Direction::Up)
}

pub(super) fn zrevrangebyscore(call: &mut Call<'_>) -> Outcome {
    range(call, By::Score, Direction::Down)
}

pub(super) fn zrangebylex(call: &mut Call<'_>) -> Outcome {
    range(call, By::Name, Direction::Up)
}

pub(super) fn zrevrangebylex(call: &mut Call<'_>) -> Outcome {
    range(call, By::Name, Direction::Down)
}

fn range(call: &mut Call<'_>, by: By, direction: Direction) -> Outcome {
    let (selection, with_scores) = asked(call, by, direction)?;
    let (access, key) = (call.access, call.key());
    let mut items = call.items();
    // RESP3 returns pairs, RESP2 a flat list.
    let are_pairs = items.protocol() == Protocol::Resp3;
    access.each_selected(key, &selection, |member, score| {
        say(&mut items, member, with_scores.then_some(score), are_pairs)
    })?;
    items.end();
    Ok(())
}

/// Parses the selection of a range command, and whether scores are requested.
fn asked<'a>(
    call: &Call<'a>,
    mut by: By,
    mut direction: Direction,
) -> Result<(Selection<'a>, bool), Fault> {
    let is_zrange = is(call.argument(0), "ZRANGE");
    let (mut with_scores, mut limit) = (false, None);
    let mut rest = &call.arguments[4..];
    while let [word, behind @ ..] = rest {
        rest = behind;
        match word {
            word if is(word, "WITHSCORES") => with_scores = true,
            word if is(word, "REV") && is_zrange && direction == Direction::Up => {
                direction = Direction::Down;
            }
            word if is(word, "BYSCORE") && is_zrange && by == By::Rank => by = By::Score,
            word if is(word, "BYLEX") && is_zrange && by == By::Rank => by = By::Name,
            word if is(word, "LIMIT") => {
                let [offset, count, behind @ ..] = rest else { return Err(Fault::syntax()) };
                (limit, rest) = (Some(parse::limit(offset, count)?), behind);
            }
            _ => return Err(Fault::syntax()),
        }
    }
    if limit.is_some() && by == By::Rank {
        let message =
            "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
        return Err(Fault::error(message));
    }
    if with_scores && by == By::Name {
        let message = "syntax error, WITHSCORES not supported in combination with BYLEX";
        return Err(Fault::error(message));
    }
    let span = span(call, by, direction)?;
    Ok((Selection { span, direction, limit: limit.unwrap_or(Limit::NONE) }, with_scores))
}

/// Parses the second and third argument. In a descending range the upper bound comes first.
fn span<'a>(call: &Call<'a>, by: By, direction: Direction) -> Result<Span<'a>, Fault> {
    let (first, second) = (call.argument(2), call.argument(3));
    let (min, max) = match direction {
        Direction::Down if by != By::Rank => (second, first),
        _ => (first, second),
    };
    Ok(match by {
        By::Rank => Span::Ranks(parse::integer(min)?, parse::integer(max)?),
        By::Score => Span::Scores(parse::score_bound(min)?, parse::score_bound(max)?),
        By::Name => match (parse::name_bound(min, false)?, parse::name_bound(max, true)?) {
            (NameBound::At(min), NameBound::At(max)) => Span::Names(min, max),
            _ => Span::Nothing,
        },
    })
}

/// Replies with one member, with or without its score.
fn say(items: &mut Items<'_>, member: &[u8], score: Option<f64>, are_pairs: bool) -> Outcome {
    match score {
        Some(score) if are_pairs => items.one(|reply| {
            reply.array(2);
            reply.bulk(member);
            reply.double(score);
        }),
        Some(score) => {
            items.bulk(member)?;
            items.one(|reply| reply.double(score))
        }
        None => items.bulk(member),
    }
}

pub(super) fn zcount(call: &mut Call<'_>) -> Outcome {
    count(call, By::Score)
}

pub(super) fn zlexcount(call: &mut Call<'_>) -> Outcome {
    count(call, By::Name)
}

fn count(call: &mut Call<'_>, by: By) -> Outcome {
    let (selection, mut count) = (Selection::of(span(call, by, Direction::Up)?), 0);
    call.access.each_selected(call.key(), &selection, |_, _| {
        count += 1;
        Ok(())
    })?;
    call.reply.count(count);
    Ok(())
}

pub(super) fn zremrangebyrank(call: &mut Call<'_>) -> Outcome {
    remove(call, By::Rank)
}

pub(super) fn zremrangebyscore(call: &mut Call<'_>) -> Outcome {
    remove(call, By::Score)
}

pub(super) fn zremrangebylex(call: &mut Call<'_>) -> Outcome {
    remove(call, By::Name)
}

fn remove(call: &mut Call<'_>, by: By) -> Outcome {
    let selection = Selection::of(span(call, by, Direction::Up)?);
    let removed = call.access.take_selected(call.key(), &selection, |_, _| Ok(()))?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn zpopmin(call: &mut Call<'_>) -> Outcome {
    pop(call, Direction::Up)
}

pub(super) fn zpopmax(call: &mut Call<'_>) -> Outcome {
    pop(call, Direction::Down)
}

fn pop(call: &mut Call<'_>, direction: Direction) -> Outcome {
    let count = match &call.arguments[2..] {
        [] => None,
        [count] => Some(parse::count(count)?),
        _ => return Err(Fault::syntax()),
    };
    let limit = Limit { offset: 0, count: count.unwrap_or(1) };
    let span = Span::Scores(Bound::Unbounded, Bound::Unbounded);
    let selection = Selection { span, direction, limit };
    let (access, key) = (call.access, call.key());
    let mut items = call.items();
    // A single member popped without a count is not nested as a pair, in RESP3 either.
    let are_pairs = count.is_some() && items.protocol() == Protocol::Resp3;
    access.take_selected(key, &selection, |member, score| {
        say(&mut items, member, Some(score), are_pairs)
    })?;
    items.end();
    Ok(())
}
