//! fio's iolog, versions 2 and 3: `FILE ACTION [OFFSET LENGTH]`, in version 3 preceded by the time
//! in microseconds.
//!
//! In version 2 the times are the sums of `wait` actions; without any it has no times.

use std::collections::VecDeque;

use super::super::fields::whole;
use super::super::{Clock, Wrong};
use super::record::{BlockOp, BlockRecord, Counts};

const HEADERS: [&str; 2] = ["fio version 2 iolog", "fio version 3 iolog"];
const ACTIONS: &str =
    "an action: read, write, trim, sync, datasync, add, open, close, or wait in version 2";

/// The parser of iologs.
#[derive(Debug)]
pub(super) struct Iolog {
    version: Option<u8>,
    /// Sum of waits so far in microseconds, in version 2.
    waited_us: u128,
    counts: Counts,
}

impl Default for Iolog {
    fn default() -> Self {
        let counts = Counts { clock: Clock::from_zero(), ..Counts::default() };
        Self { version: None, waited_us: 0, counts }
    }
}

impl Iolog {
    pub(super) fn is_header(line: &str) -> bool {
        HEADERS.contains(&line)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn has_times(&self) -> bool {
        self.version == Some(3) || self.waited_us > 0
    }

    pub(super) fn line(
        &mut self,
        text: &str,
        records: &mut VecDeque<BlockRecord>,
    ) -> Result<(), Wrong> {
        let Some(version) = self.version else {
            let at = HEADERS.iter().position(|header| *header == text);
            let expected = || {
                Wrong::new(text, format!("the first line of an iolog: {}", HEADERS.join(" or ")))
            };
            self.version = Some(at.ok_or_else(expected)? as u8 + 2);
            return Ok(());
        };
        let mut words = text.split_whitespace();
        let mut next = |what: &str| words.next().ok_or_else(|| Wrong::new(text, what));
        let us = match version {
            3 => {
                u128::from(whole(next("a time, a file and an action")?, "a time in microseconds")?)
            }
            _ => self.waited_us,
        };
        let (file, action) = (next("a file and an action")?, next(ACTIONS)?);
        let op = match action {
            "read" => BlockOp::Read,
            "write" => BlockOp::Write,
            "trim" => BlockOp::Trim,
            "sync" | "datasync" | "sync_file_range" | "syncfs" => BlockOp::Flush,
            "add" | "open" | "close" => return Ok(()),
            "wait" if version == 2 => {
                self.waited_us +=
                    u128::from(whole(next("microseconds to wait")?, "microseconds to wait")?);
                return Ok(());
            }
            other => return Err(Wrong::new(other, ACTIONS)),
        };
        self.counts.sources.note(file);
        let at = self.counts.clock.at(us * 1_000, text)?;
        if op == BlockOp::Flush {
            records.push_back(BlockRecord::flush(at));
            return Ok(());
        }
        let offset = whole(next("an offset and a length")?, "an offset")?;
        let bytes = whole(next("a length")?, "a length")?;
        if let Some(more) = words.next() {
            return Err(Wrong::new(more, "the end of the line"));
        }
        if bytes == 0 {
            self.counts.left_out += 1;
            return Ok(());
        }
        records.push_back(BlockRecord::of_bytes(at, op, offset, bytes, text)?);
        Ok(())
    }
}
