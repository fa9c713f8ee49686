//! Tests of levels, range pointers and searches against plain sorted arrays.

use std::rc::Rc;

use proptest::prelude::*;

use super::level::{NamedSegment, Segment};
use super::location::Location;
use super::{LevelEdit, Version};
use crate::effort::Effort;
use crate::medium::PageNo;

fn named(key: u16) -> NamedSegment {
    NamedSegment {
        first_key: format!("user{key:05}").into_bytes().into(),
        segment: Segment::new(Location::Stored(PageNo(u32::from(key))), 1, &Rc::default()),
        filter: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..Default::default()
    })]

    /// Applies random splices to three levels and compares them with vectors; searches with and
    /// without range pointers and prefixes must find the results of a linear scan.
    #[test]
    fn edits_and_searches_agree_with_sorted_vectors(
        edits in prop::collection::vec(
            (0..3_usize, any::<u16>(), any::<u16>(), prop::collection::vec(any::<u16>(), 0..400)),
            1..20,
        ),
        probes in prop::collection::vec(any::<u16>(), 20),
        prefix_bytes in prop::sample::select(vec![0_usize, 4, 8]),
    ) {
        let mut version = Version::new(3, prefix_bytes, true);
        let mut model = vec![Vec::<u16>::new(); 3];
        for (level, a, b, mut new) in edits {
            let (low, high) = (a.min(b), a.max(b));
            let start = model[level].partition_point(|k| *k < low);
            let end = model[level].partition_point(|k| *k < high);
            new.retain(|k| (low..high).contains(k));
            new.sort_unstable();
            new.dedup();
            let segments = new.iter().map(|k| named(*k)).collect();
            version = version.edited(vec![LevelEdit { level, range: start..end, new: segments }]);
            model[level].splice(start..end, new);
            version.assert_consistent();
        }
        for probe in probes {
            let key = format!("user{probe:05}").into_bytes();
            let mut among = None;
            for (n, keys) in model.iter().enumerate() {
                let expected = keys.partition_point(|k| *k <= probe).checked_sub(1);
                let level = version.level(n);
                prop_assert_eq!(level.len(), keys.len());
                prop_assert_eq!(level.covering(&key, None, &mut Effort::default()), expected);
                let bounded = level.covering(&key, among.clone(), &mut Effort::default());
                prop_assert_eq!(bounded, expected, "range pointers mislead at level {}", n);
                prop_assert_eq!(
                    level.first_at_or_after(&key),
                    keys.partition_point(|k| *k < probe)
                );
                among = expected.and_then(|at| version.below(n, at));
            }
        }
    }
}

#[test]
fn edits_that_were_not_made_of_this_version_are_not_replayed() {
    let edit = |level, range, keys: &[u16]| {
        vec![LevelEdit { level, range, new: keys.iter().map(|key| named(*key)).collect() }]
    };
    let version = Version::new(2, 4, true).edited(edit(0, 0..0, &[10, 20, 30]));
    let is_replayed = |edits| version.replay(edits).is_some();
    assert!(is_replayed(edit(0, 1..2, &[11, 29])) && is_replayed(edit(1, 0..0, &[5])));
    assert!(!is_replayed(edit(2, 0..0, &[5])), "there is no such level");
    assert!(
        !is_replayed(edit(0, 2..4, &[])) && !is_replayed(edit(1, 1..1, &[])),
        "nor such places"
    );
    for keys in [&[15, 12][..], &[15, 15], &[10], &[30]] {
        assert!(!is_replayed(edit(0, 1..2, keys)), "{keys:?} are out of order there");
    }
}
