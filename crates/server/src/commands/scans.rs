//! SCAN, HSCAN and ZSCAN, and random elements.

use std::ops::Bound;

use super::command::Call;
use super::parse::{self, is};
use super::room::Items;
use crate::cursors::{Cursors, From};
use crate::data::names::{Name, Names};
use crate::data::overlay::Gives;
use crate::data::records::{self, Kind};
use crate::fault::{Fault, Outcome};
use crate::glob;
use crate::resp::{Protocol, Reply};

/// The spaces of cursors; a cursor is valid only in its own space.
const KEYS: u8 = b'k';
const FIELDS: u8 = b'f';
const MEMBERS: u8 = b'm';

/// The options of a scan.
struct Scan<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    kind: Option<&'a [u8]>,
}

pub(super) fn scan(call: &mut Call<'_>) -> Outcome {
    let (after, asked) = (cursor(call, 1, KEYS)?, options(&call.arguments[2..], true)?);
    let prefix = asked.pattern.map(glob::prefix).unwrap_or_default();
    let lower = match &after {
        // The cursor of a scan with another pattern may be before this prefix.
        Some(key) if key[..] >= prefix[..] => Bound::Excluded(&key[..]),
        _ => Bound::Included(&prefix[..]),
    };
    let access = call.access;
    let mut page = Page::new(call);
    let (mut seen, mut last) = (0, None);
    let mut names = access.names((lower, Bound::Unbounded))?;
    while let Some(name) = names.next() {
        let name = name?;
        if !name.key().starts_with(&prefix) {
            last = None;
            break;
        }
        let is_wanted = asked.pattern.is_none_or(|pattern| glob::matches(pattern, name.key()))
            && asked.kind.map_or(Ok(true), |kind| is_of_kind(&names, &name, kind))?;
        if is_wanted {
            page.items.on_page(name.key());
        }
        seen += 1;
        last = None;
        if seen >= asked.count || page.items.are_full() {
            last = Some(name.key().to_vec());
            break;
        }
    }
    page.end(KEYS, last.as_deref());
    Ok(())
}

/// Whether a key is of the named kind. For a collection this reads its head.
fn is_of_kind(names: &Names<'_>, name: &Name, kind: &[u8]) -> Result<bool, Fault> {
    Ok(names.kind(name)?.is_some_and(|of| is(kind, of.name())))
}

pub(super) fn hscan(call: &mut Call<'_>) -> Outcome {
    scan_parts(call, Kind::Hash, FIELDS, |value| Ok(value.to_vec()))
}

/// Scans in the order of names, so that a member whose score changes is still returned once.
pub(super) fn zscan(call: &mut Call<'_>) -> Outcome {
    scan_parts(call, Kind::SortedSet, MEMBERS, |record| {
        // The score is a string, in RESP3 too.
        Ok(Reply::double_text(records::decode_score(record)?).into_bytes())
    })
}

fn scan_parts(
    call: &mut Call<'_>,
    kind: Kind,
    space: u8,
    shown: impl Fn(&[u8]) -> Result<Vec<u8>, Fault>,
) -> Outcome {
    let after = cursor(call, 2, space)?;
    let (access, key, words) = (call.access, call.key(), &call.arguments[3..]);
    let mut page = Page::new(call);
    if access.length(key, kind)? == 0 {
        page.end(space, None);
        return Ok(());
    }
    let asked = options(words, false)?;
    let (mut seen, mut last, mut has_more) = (0, Vec::new(), false);
    access.each_part(key, (kind, Gives::Pairs), after.as_deref(), |name, record| {
        // At least one element per page, or the scan would not advance.
        if seen >= asked.count || seen > 0 && page.items.are_full() {
            has_more = true;
            return Ok(false);
        }
        if asked.pattern.is_none_or(|pattern| glob::matches(pattern, name)) {
            page.items.on_page(name);
            page.items.on_page(&shown(record)?);
        }
        seen += 1;
        last = name.to_vec();
        Ok(true)
    })?;
    page.end(space, has_more.then_some(&last[..]));
    Ok(())
}

/// A page of a scan: the elements found, and the cursor. A page ends early if memory runs short.
struct Page<'a> {
    items: Items<'a>,
    cursors: &'a Cursors,
}

impl<'a> Page<'a> {
    fn new(call: &'a mut Call<'_>) -> Self {
        let cursors = &call.state.cursors;
        Self { items: call.items(), cursors }
    }

    /// Completes the page with a cursor after `last`, or with cursor 0 if the scan is complete.
    fn end(self, space: u8, last: Option<&[u8]>) {
        let cursor = last.map_or(0, |name| self.cursors.keep(space, name)).to_string();
        self.items.end_behind(|reply| {
            reply.array(2);
            reply.bulk(cursor.as_bytes());
        });
    }
}

/// Returns the name after which the scan continues. For a cursor that was never issued, this is
/// after all names.
fn cursor(call: &Call<'_>, place: usize, space: u8) -> Result<Option<Box<[u8]>>, Fault> {
    let text = std::str::from_utf8(call.argument(place)).ok();
    let cursor: Option<u64> = text.and_then(|text| match text.strip_prefix('-') {
        // As C's `strtoul` does.
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

/// Replies with random parts in the order of their names: distinct ones, or with repetitions if the
/// count is negative.
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
    let (access, key, state, room) = (call.access, call.key(), call.state, call.room());
    let mut items = call.items();
    let are_pairs = with_records && items.protocol() == Protocol::Resp3;
    let choose = |there: u64| {
        let draws = drawn_of(count, there, state.options.reply_bytes as u64 / 8)?;
        // Each draw occupies 8 bytes before its name is read.
        room.take(8 * draws as usize)?;
        Ok(chosen(count > 0, draws, there, || state.random()))
    };
    let gives = if with_records { Gives::Pairs } else { Gives::Keys };
    access.chosen_parts(key, (kind, gives), choose, |name, record| {
        let mut outcome = Ok(());
        items.one(|reply| {
            if are_pairs {
                reply.array(2);
            }
            reply.bulk(name);
            if are_pairs {
                outcome = say_record(reply, record);
            }
        })?;
        if with_records && !are_pairs {
            items.one(|reply| outcome = say_record(reply, record))?;
        }
        outcome
    })?;
    match items.count {
        _ if drawn.is_some() => items.end(),
        0 => call.reply.null(),
        _ => {}
    }
    Ok(())
}

/// Parses the number of draws.
fn draws(argument: &[u8]) -> Result<i64, Fault> {
    let most = i64::MAX;
    let message = || format!("value is out of range, value must between -{most} and {most}");
    let count = parse::integer(argument)?;
    if count == i64::MIN { Err(Fault::error(message())) } else { Ok(count) }
}

/// Checks the limits of Redis.
fn check_draws(count: i64, with_records: bool) -> Outcome {
    let most = i64::MAX / 2;
    let is_far = with_records && (count < -most || count > most);
    if is_far { Err(Fault::error("value is out of range")) } else { Ok(()) }
}

/// Returns the number of draws from `there` parts: `count` distinct ones, or `-count` with
/// repetitions.
fn drawn_of(count: i64, there: u64, most: u64) -> Result<u64, Fault> {
    let draws = count.unsigned_abs().min(if count > 0 { there } else { u64::MAX });
    if draws > most { Err(Fault::error("value is out of range")) } else { Ok(draws) }
}

/// Returns the drawn positions out of `there`, in ascending order.
fn chosen(
    are_different: bool,
    draws: u64,
    there: u64,
    mut random: impl FnMut() -> u64,
) -> Vec<u64> {
    let mut chosen: Vec<u64> = if are_different {
        // Floyd's algorithm: for each of the last `draws` places, draws up to it, and inserts the
        // place itself if the draw is in the set already.
        let mut set = std::collections::BTreeSet::new();
        for place in there - draws..there {
            let drawn = random() % (place + 1);
            set.insert(if set.contains(&drawn) { place } else { drawn });
        }
        set.into_iter().collect()
    } else {
        (0..draws).map(|_| random() % there).collect()
    };
    chosen.sort_unstable();
    chosen
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
        let different = chosen(true, 5, 8, &mut random);
        assert!(different.len() == 5 && different.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(chosen(true, 3, 3, &mut random), [0, 1, 2]);
        let draws = chosen(false, 50, 3, &mut random);
        assert!(draws.len() == 50 && (0..3).all(|place| draws.contains(&place)));
        assert!(chosen(false, 0, 3, &mut random).is_empty());
        assert_eq!((drawn_of(9, 3, 100), drawn_of(5, 8, 100)), (Ok(3), Ok(5)));
        assert_eq!((drawn_of(-50, 3, 100), drawn_of(0, 3, 100)), (Ok(50), Ok(0)));
        assert!(drawn_of(-101, 3, 100).is_err() && drawn_of(i64::MIN, 3, 100).is_err());
    }
}
