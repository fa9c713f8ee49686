//! What blkparse prints by itself: `MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS]`.
//!
//! Of its actions one counts ([`Action`]); the others are the same operation on its way. Lines with CPU or Total begin the summary
//! at the end, which nothing follows.

use std::collections::VecDeque;

use super::super::Wrong;
use super::super::fields::whole;
use super::{BlockOp, BlockRecord, Counts};

const SECTOR_BYTES: u64 = 512;
const FIELDS: &str =
    "an event as blkparse prints it: 8,0 3 1 0.000000000 697 Q W 223490 + 8 [process]";

/// Which of blktrace's actions stand for operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
pub enum Action {
    /// Q: it was asked for.
    #[default]
    #[serde(rename = "Q")]
    Queued,
    /// D: it was issued to the drive, perhaps merged with others.
    #[serde(rename = "D")]
    Issued,
}

impl Action {
    /// blktrace's letter.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Queued => "Q",
            Self::Issued => "D",
        }
    }
}

/// The parser.
#[derive(Debug)]
pub(super) struct Blkparse {
    action: Action,
    is_in_summary: bool,
    counts: Counts,
    issued: u64,
}

impl Blkparse {
    pub(super) fn new(action: Action) -> Self {
        Self { action, is_in_summary: false, counts: Counts::default(), issued: 0 }
    }

    pub(super) fn is_event(line: &str) -> bool {
        Event::of(line).is_ok()
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Events with action D, whichever counts.
    pub(super) fn issued(&self) -> u64 {
        self.issued
    }

    pub(super) fn line(
        &mut self,
        text: &str,
        records: &mut VecDeque<BlockRecord>,
    ) -> Result<(), Wrong> {
        self.is_in_summary |= is_summary(text);
        if self.is_in_summary {
            return Ok(());
        }
        let event = Event::of(text)?;
        self.issued += u64::from(event.action == "D");
        if event.action != self.action.letter() {
            return Ok(());
        }
        let rwbs = event.rest.split_whitespace().next();
        let rwbs = rwbs.ok_or_else(|| Wrong::new(text, FIELDS))?;
        let is_known = rwbs.bytes().all(|letter| b"RWDFNAMSEBZV-".contains(&letter));
        if !is_known {
            return Err(Wrong::new(rwbs, "letters for what is done, such as R, WS or D"));
        }
        self.counts.sources.note(event.device);
        let at = self.counts.clock.at(event.nanos, text)?;
        let place = event.place()?;
        let op = op(rwbs).zip(place.filter(|(_, sectors)| *sectors > 0));
        let has_flush = rwbs.starts_with('F');
        if has_flush {
            records.push_back(BlockRecord::flush(at));
        }
        match op {
            Some((op, (sector, sectors))) => {
                let in_bytes = |sectors: u64| {
                    let bytes = sectors.checked_mul(SECTOR_BYTES);
                    bytes.ok_or_else(|| Wrong::new(text, "sectors within 16 EiB"))
                };
                let (offset, bytes) = (in_bytes(sector)?, in_bytes(sectors)?);
                records.push_back(BlockRecord::of_bytes(at, op, offset, bytes, text)?);
            }
            None => self.counts.left_out += u64::from(!has_flush),
        }
        Ok(())
    }
}

/// Whether a line is of the summary: `CPU0 (8,0):` or `Total (8,0):`.
fn is_summary(line: &str) -> bool {
    let after = line.strip_prefix("CPU").or_else(|| line.strip_prefix("Total"));
    after.is_some_and(|rest| rest.contains('(') && rest.ends_with(':'))
}

/// What is done, by the letters of RWBS; nothing where no data is moved.
fn op(rwbs: &str) -> Option<BlockOp> {
    if rwbs.contains(['D', 'E']) {
        Some(BlockOp::Trim)
    } else if rwbs.contains('W') {
        Some(BlockOp::Write)
    } else if rwbs.contains('R') {
        Some(BlockOp::Read)
    } else {
        None
    }
}

/// A line, as far as all events have the same fields.
struct Event<'a> {
    device: &'a str,
    nanos: u128,
    action: &'a str,
    rest: &'a str,
}

impl<'a> Event<'a> {
    fn of(line: &'a str) -> Result<Self, Wrong> {
        let mut rest = line;
        let mut next = || {
            let text = rest.trim_start();
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            rest = &text[end..];
            if end > 0 { Ok(&text[..end]) } else { Err(Wrong::new(line, FIELDS)) }
        };
        let (device, cpu, sequence, time, pid, action) =
            (next()?, next()?, next()?, next()?, next()?, next()?);
        let (major, minor) = device.split_once(',').ok_or_else(|| Wrong::new(device, FIELDS))?;
        for (text, what) in [
            (major, "a device"),
            (minor, "a device"),
            (cpu, "a CPU"),
            (sequence, "a sequence number"),
            (pid, "a process"),
        ] {
            whole(text, what)?;
        }
        Ok(Self { device, nanos: nanos(time)?, action, rest })
    }

    /// Its first sector and how many there are: `223490 + 8`. Commands that are no reads or writes have none.
    fn place(&self) -> Result<Option<(u64, u64)>, Wrong> {
        let mut words = self.rest.split_whitespace().skip(1);
        let Some(sector) = words.next().filter(|word| word.as_bytes()[0].is_ascii_digit()) else {
            return Ok(None);
        };
        if words.next() != Some("+") {
            return Ok(None);
        }
        let sectors = words.next().unwrap_or_default();
        Ok(Some((whole(sector, "a sector")?, whole(sectors, "a number of sectors")?)))
    }
}

/// Seconds with up to nine digits behind the point.
fn nanos(text: &str) -> Result<u128, Wrong> {
    let wrong = || Wrong::new(text, "a time in seconds, such as 0.000001829");
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = fraction.len() as u32;
    if digits > 9 {
        return Err(wrong());
    }
    let (seconds, fraction) = (whole(seconds, "").ok(), whole(fraction, "").ok());
    let (seconds, fraction) = seconds.zip(fraction).ok_or_else(wrong)?;
    Ok(u128::from(seconds) * 1_000_000_000 + u128::from(fraction) * 10_u128.pow(9 - digits))
}
