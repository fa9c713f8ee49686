//! Fuzz tests of field lists: WAL records, and memtables and extents of dumps.

use std::ops::Bound;

use runtime::Rng;
use testkit::fuzz::{Answer, unsealed};

use super::fuzz;
use crate::format::codec::{Reader, Writer};
use crate::recovery::dump::{read_extents, read_memtables, write_extents, write_memtables};
use crate::specimens::{SHAPE, entry, extents, keys, memtables, walk_extents};
use crate::wal::records::{read_record, write_record};

#[test]
fn fuzz_records() {
    let encoding = |rng: &mut Rng| {
        let mut out = Writer::default();
        for (sequence, key) in (1..).zip(keys(rng, 12)) {
            write_record(&mut out, &key, sequence, &entry(rng));
        }
        out.finish()
    };
    fuzz("fuzz_records", &unsealed, &encoding, &|bytes| {
        let (input, mut again) = (&mut Reader::new(bytes), Writer::default());
        while !input.is_at_end() {
            let Some(record) = read_record(input, 1 << 20) else { return Answer::Refused };
            write_record(&mut again, record.key, record.sequence, &record.entry);
        }
        assert_eq!(again.finish(), bytes);
        Answer::Taken
    });
}

#[test]
fn fuzz_memtables_and_extents() {
    let encoding = |rng: &mut Rng| {
        let mut out = Writer::default();
        write_memtables(&mut out, &memtables(rng), true);
        write_extents(&mut out, &extents(rng));
        out.finish()
    };
    fuzz("fuzz_memtables_and_extents", &unsealed, &encoding, &|bytes| {
        let input = &mut Reader::new(bytes);
        let Some(memtables) = read_memtables(input, 1_000, SHAPE) else { return Answer::Refused };
        let Some(extents) = read_extents(input, SHAPE, SHAPE.extents) else {
            return Answer::Refused;
        };
        let mut again = Writer::default();
        write_memtables(&mut again, &memtables, true);
        let mut active = memtables.active.borrow_mut();
        for key in [&b"k"[..], b"k00000001"] {
            active.insert(key, 1_001, None, None);
        }
        let _ = (active.bytes(), active.writes(Bound::Unbounded, usize::MAX));
        walk_extents(&extents);
        input.is_at_end().into()
    });
}
