//! The default text output of blkparse: `MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR +
//! SECTORS [PROCESS]`.
//!
//! One of its actions counts ([`Action`]); the others are other stages of the same operation. A
//! line with CPU or Total begins the final summary.

use std::collections::VecDeque;

use super::super::Wrong;
use super::super::fields::whole;
use super::record::{BlockOp, BlockRecord, Counts};

const SECTOR_BYTES: u64 = 512;
const FIELDS: &str =
    "an event as blkparse prints it: 8,0 3 1 0.000000000 697 Q W 223490 + 8 [process]";

/// The action of blktrace that counts as an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
pub enum Action {
    /// Q: the request was queued.
    #[default]
    #[serde(rename = "Q")]
    Queued,
    /// D: the request was issued to the drive, possibly merged with others.
    #[serde(rename = "D")]
    Issued,
}

impl Action {
    /// Returns blktrace's letter.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Queued => "Q",
            Self::Issued => "D",
        }
    }
}

/// The parser of blkparse's output.
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

    /// Returns the number of events with action D, whichever action counts.
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

/// Returns whether a line belongs to the summary: `CPU0 (8,0):` or `Total (8,0):`.
fn is_summary(line: &str) -> bool {
    let after = line.strip_prefix("CPU").or_else(|| line.strip_prefix("Total"));
    after.is_some_and(|rest| rest.contains('(') && rest.ends_with(':'))
}

/// Returns the operation by the letters of RWBS; `None` if no data are moved.
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

/// The fields of a line that all events have.
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

    /// Returns the first sector and the number of sectors: `223490 + 8`. `None` for commands that
    /// are not reads or writes.
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

/// Parses seconds with up to nine decimal places, into nanoseconds.
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
