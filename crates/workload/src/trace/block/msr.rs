//! CSV of MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, times in
//! ticks of 100 ns since 1601.

use std::collections::VecDeque;

use super::super::Wrong;
use super::super::fields::{by_commas, whole};
use super::record::{BlockOp, BlockRecord, Counts};

const FIELDS: &str = "seven fields: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const TICK_NANOS: u128 = 100;

/// The parser of MSR Cambridge's CSV.
#[derive(Debug, Default)]
pub(super) struct Msr {
    counts: Counts,
    has_begun: bool,
}

impl Msr {
    pub(super) fn is_line(line: &str) -> bool {
        is_header(line) || by_commas::<7>(line, FIELDS).is_ok_and(|fields| op(fields[3]).is_some())
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn line(
        &mut self,
        text: &str,
        records: &mut VecDeque<BlockRecord>,
    ) -> Result<(), Wrong> {
        if !std::mem::replace(&mut self.has_begun, true) && is_header(text) {
            return Ok(());
        }
        let [time, host, disk, kind, offset, size, _took] = by_commas(text, FIELDS)?;
        let ticks = u128::from(whole(time, "a timestamp in ticks of 100 ns")?);
        let op = op(kind).ok_or_else(|| Wrong::new(kind, "a type: Read or Write"))?;
        let (offset, bytes) =
            (whole(offset, "an offset in bytes")?, whole(size, "a size in bytes")?);
        self.counts.sources.note(&format!("{host},{disk}"));
        let at = self.counts.clock.at(ticks * TICK_NANOS, time)?;
        if bytes == 0 {
            self.counts.left_out += 1;
            return Ok(());
        }
        records.push_back(BlockRecord::of_bytes(at, op, offset, bytes, text)?);
        Ok(())
    }
}

fn is_header(line: &str) -> bool {
    line.to_ascii_lowercase().starts_with("timestamp,hostname,")
}

fn op(text: &str) -> Option<BlockOp> {
    if text.eq_ignore_ascii_case("read") {
        Some(BlockOp::Read)
    } else if text.eq_ignore_ascii_case("write") {
        Some(BlockOp::Write)
    } else {
        None
    }
}
