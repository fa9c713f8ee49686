//! SCAN, HSCAN and ZSCAN: names, some at a time; and names drawn at random.

use std::ops::Bound;

use super::parse::{self, is};
use super::{Call, Items, Outcome, check_room};
use crate::cursors::From;
use crate::data::names::{Name, Names};
use crate::data::overlay::Gives;
use crate::data::records::{self, Kind};
use crate::fault::Fault;
use crate::glob;
use crate::resp::{Protocol, Reply};

/// What a cursor goes through: one of another kind is not taken for it.
const KEYS: u8 = b'k';
const FIELDS: u8 = b'f';
const MEMBERS: u8 = b'm';

/// What SCAN is asked for.
struct Scan<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    kind: Option<&'a [u8]>,
}

pub(super) fn scan(call: &mut Call<'_>) -> Outcome {
    let (after, asked) = (cursor(call, 1, KEYS)?, options(&call.arguments[2..], true)?);
    let prefix = asked.pattern.map(glob::prefix).unwrap_or_default();
    let lower = match &after {
        // A cursor of another pattern may stand before this one's first key.
        Some(key) if key[..] >= prefix[..] => Bound::Excluded(&key[..]),
        _ => Bound::Included(&prefix[..]),
    };
    let (mut items, mut seen, mut last) = (Items::new(call.reply.protocol), 0, None);
    let mut names = call.access.names((lower, Bound::Unbounded))?;
    while let Some(name) = names.next() {
        let name = name?;
        if !name.key().starts_with(&prefix) {
            last = None;
            break;
        }
        let is_wanted = asked.pattern.is_none_or(|pattern| glob::matches(pattern, name.key()))
            && asked.kind.map_or(Ok(true), |kind| is_of_kind(&names, &name, kind))?;
        if is_wanted {
            items.bulk(name.key());
        }
        seen += 1;
        last = None;
        if seen >= asked.count || items.reply.len() > call.state.options.reply_bytes / 2 {
            last = Some(name.key().to_vec());
            break;
        }
    }
    say(call, KEYS, last.as_deref(), items);
    Ok(())
}

/// Whether a key is of the kind with a name. That of a string is known; of a collection its head is read.
fn is_of_kind(names: &Names<'_>, name: &Name, kind: &[u8]) -> Result<bool, Fault> {
    Ok(names.kind(name)?.is_some_and(|of| is(kind, of.name())))
}

pub(super) fn hscan(call: &mut Call<'_>) -> Outcome {
    scan_parts(call, Kind::Hash, FIELDS, |items, value| {
        items.bulk(value);
        Ok(())
    })
}

/// In the order of names: one whose score changes is given once all the same.
pub(super) fn zscan(call: &mut Call<'_>) -> Outcome {
    scan_parts(call, Kind::SortedSet, MEMBERS, |items, record| {
        // A string, in version 3 as well.
        items.bulk(Reply::double_text(records::decode_score(record)?).as_bytes());
        Ok(())
    })
}

fn scan_parts(
    call: &mut Call<'_>,
    kind: Kind,
    space: u8,
    say_record: impl Fn(&mut Items, &[u8]) -> Outcome,
) -> Outcome {
    let after = cursor(call, 2, space)?;
    let mut items = Items::new(call.reply.protocol);
    if call.access.length(call.key(), kind)? == 0 {
        say(call, space, None, items);
        return Ok(());
    }
    let asked = options(&call.arguments[3..], false)?;
    let most = call.state.options.reply_bytes / 2;
    let (mut seen, mut last, mut has_more) = (0, Vec::new(), false);
    call.access.each_part(call.key(), (kind, Gives::Pairs), after.as_deref(), |name, record| {
        if seen >= asked.count || items.reply.len() > most {
            has_more = true;
            return Ok(false);
        }
        if asked.pattern.is_none_or(|pattern| glob::matches(pattern, name)) {
            items.bulk(name);
            say_record(&mut items, record)?;
        }
        seen += 1;
        last = name.to_vec();
        Ok(true)
    })?;
    say(call, space, has_more.then_some(&last[..]), items);
    Ok(())
}

/// The cursor behind what was looked at last, if there may be more, and what was found.
fn say(call: &mut Call<'_>, space: u8, last: Option<&[u8]>, items: Items) {
    let cursor = last.map_or(0, |name| call.state.cursors.keep(space, name));
    call.reply.array(2);
    call.reply.bulk(cursor.to_string().as_bytes());
    items.end(call.reply);
}

/// The name behind which to go on: a cursor that none gave stands behind all.
fn cursor(call: &Call<'_>, place: usize, space: u8) -> Result<Option<Box<[u8]>>, Fault> {
    let text = std::str::from_utf8(call.argument(place)).ok();
    let cursor: Option<u64> = text.and_then(|text| match text.strip_prefix('-') {
        // As C reads it.
        Some(digits) => digits.parse().ok().map(u64::wrapping_neg),
        None => text.parse().ok(),
    });
    match cursor.ok_or_else(|| Fault::error("invalid cursor"))? {
        0 => Ok(None),
        cursor => match call.state.cursors.find(space, cursor) {
            Some(From::Behind(name)) => Ok(Some(name)),
            Some(From::Beginning) => Ok(None),
            Some(From::End) => Ok(Some([u8::MAX; 255].into())),
            None => Err(Fault::error(
                "invalid cursor: it was forgotten, or is another command's; begin again with 0",
            )),
        },
    }
}

fn options<'a>(arguments: &[&'a [u8]], has_type: bool) -> Result<Scan<'a>, Fault> {
    let mut asked = Scan { pattern: None, count: 10, kind: None };
    for pair in arguments.chunks(2) {
        let &[word, argument] = pair else { return Err(Fault::syntax()) };
        match word {
            word if is(word, "MATCH") => asked.pattern = Some(argument),
            word if is(word, "TYPE") && has_type => asked.kind = Some(argument),
            word if is(word, "COUNT") => {
                let count = parse::integer(argument)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                asked.count = count.ok_or_else(Fault::syntax)?;
            }
            _ => return Err(Fault::syntax()),
        }
    }
    Ok(asked)
}

pub(super) fn hrandfield(call: &mut Call<'_>) -> Outcome {
    random(call, Kind::Hash, "WITHVALUES", |reply, value| {
        reply.bulk(value);
        Ok(())
    })
}

pub(super) fn zrandmember(call: &mut Call<'_>) -> Outcome {
    random(call, Kind::SortedSet, "WITHSCORES", |reply, record| {
        reply.double(records::decode_score(record)?);
        Ok(())
    })
}

/// Parts drawn at random, in the order of their names: some of them, or, of a negative count, each as often as it is drawn.
fn random(
    call: &mut Call<'_>,
    kind: Kind,
    with: &str,
    say_record: impl Fn(&mut Reply, &[u8]) -> Outcome,
) -> Outcome {
    let (drawn, with_records) = match &call.arguments[2..] {
        [] => (None, false),
        [count, behind @ ..] => match (draws(count)?, behind) {
            (count, []) => (Some(count), false),
            (count, [word]) if is(word, with) => (Some(count), true),
            _ => return Err(Fault::syntax()),
        },
    };
    let count = drawn.unwrap_or(1);
    check_draws(count, with_records)?;
    let mut items = Items::new(call.reply.protocol);
    let are_pairs = with_records && call.reply.protocol == Protocol::Resp3;
    let state = call.state;
    let choose = |there: u64| {
        let most = state.options.reply_bytes as u64 / 8;
        chosen(count, there, most, || state.random())
    };
    let gives = if with_records { Gives::Pairs } else { Gives::Keys };
    call.access.chosen_parts(call.key(), (kind, gives), choose, |name, record| {
        if are_pairs {
            items.reply.array(2);
        }
        items.reply.bulk(name);
        items.count += 1;
        if with_records {
            say_record(&mut items.reply, record)?;
            items.count += usize::from(!are_pairs);
        }
        check_room(state, &items.reply)
    })?;
    if drawn.is_some() {
        items.end(call.reply);
    } else if items.count == 0 {
        call.reply.null();
    } else {
        call.reply.append(&items.reply.take());
    }
    Ok(())
}

/// How many to draw.
fn draws(argument: &[u8]) -> Result<i64, Fault> {
    let most = i64::MAX;
    let message = || format!("value is out of range, value must between -{most} and {most}");
    let count = parse::integer(argument)?;
    if count == i64::MIN { Err(Fault::error(message())) } else { Ok(count) }
}

/// As far as Redis goes.
fn check_draws(count: i64, with_records: bool) -> Outcome {
    let most = i64::MAX / 2;
    let is_far = with_records && (count < -most || count > most);
    if is_far { Err(Fault::error("value is out of range")) } else { Ok(()) }
}

/// Which of so many are drawn, in order: `count` different ones, or, if it is negative, as many draws.
fn chosen(
    count: i64,
    there: u64,
    most: u64,
    mut random: impl FnMut() -> u64,
) -> Result<Vec<u64>, Fault> {
    let draws = count.unsigned_abs().min(if count > 0 { there } else { u64::MAX });
    if draws > most {
        return Err(Fault::error("value is out of range"));
    }
    let mut chosen: Vec<u64> = if count < 0 {
        (0..draws).map(|_| random() % there).collect()
    } else {
        // Floyd's way: each of the last places, or, if what is drawn up to it was there before, itself.
        let mut set = std::collections::BTreeSet::new();
        for place in there - draws..there {
            let drawn = random() % (place + 1);
            set.insert(if set.contains(&drawn) { place } else { drawn });
        }
        set.into_iter().collect()
    };
    chosen.sort_unstable();
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let different = chosen(5, 8, 100, &mut random).expect("few");
        assert!(different.len() == 5 && different.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(chosen(9, 3, 100, &mut random), Ok(vec![0, 1, 2]));
        let draws = chosen(-50, 3, 100, &mut random).expect("few");
        assert!(draws.len() == 50 && (0..3).all(|place| draws.contains(&place)));
        assert_eq!(chosen(0, 3, 100, &mut random), Ok(Vec::new()));
        assert!(chosen(-101, 3, 100, &mut random).is_err());
    }
}
