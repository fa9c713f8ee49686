//! The encoding of edits in the manifest.
//!
//! ```text
//! count, u32 | level edits: level u32, range u32 u32, count u32, segments
//! changes of extents | flushed | retired u8 (1: extent u32)
//! edit of tables, if levels are made of tables
//! ```
//! Segments are encoded as in a dump. Replaying an edit changes the state that a checkpoint
//! restored in the same way as [`Inner::apply`](crate::engine::Inner) changed the running store.

use std::rc::Rc;

use super::edit::Edit;
use super::fields::{read_changes, read_flushed, write_changes, write_flushed};
use super::level_codec::{Home, write_segment};
use super::table_codec::{read_edit, write_edit};
use crate::format::codec::{Reader, Writer};
use crate::medium::ExtentId;
use crate::version::LevelEdit;
use crate::version::table::{Described, TableMeta};
use crate::version::tree::TreeEdit;

pub(crate) fn encode<T: Described>(edit: &Edit<T>, is_leveled: bool) -> Vec<u8> {
    let mut out = Writer::default();
    out.u32(edit.levels.len() as u32);
    for level in &edit.levels {
        out.u32(level.level as u32);
        out.u32(level.range.start as u32);
        out.u32(level.range.end as u32);
        out.u32(level.new.len() as u32);
        for named in &level.new {
            write_segment(&mut out, &named.first_key, &named.segment, named.filter.as_ref());
        }
    }
    write_changes(&mut out, &edit.changes);
    write_flushed(&mut out, edit.flushed);
    match edit.retired {
        None => out.u8(0),
        Some(id) => {
            out.u8(1);
            out.u32(id.0);
        }
    }
    if is_leveled {
        write_edit(&mut out, &edit.tables);
    }
    out.finish()
}

/// Decodes an edit; `None` if `bytes` are invalid.
pub(crate) fn decode(bytes: &[u8], home: &Home<'_>) -> Option<Edit<Rc<TableMeta>>> {
    let input = &mut Reader::new(bytes);
    let mut levels = Vec::new();
    for _ in 0..input.u32()? {
        let level = input.u32()? as usize;
        let range = input.u32()? as usize..input.u32()? as usize;
        let mut new = Vec::new();
        for _ in 0..input.u32()? {
            new.push(home.read_segment(input)?);
        }
        levels.push(LevelEdit { level, range, new });
    }
    let changes = read_changes(input)?;
    let flushed = read_flushed(input)?;
    let retired = match input.u8()? {
        0 => None,
        _ => Some(ExtentId(input.u32()?)),
    };
    let tables = if home.is_leveled { read_edit(input, &home.shape)? } else { TreeEdit::default() };
    input.is_at_end().then_some(Edit { levels, tables, changes, flushed, retired })
}
