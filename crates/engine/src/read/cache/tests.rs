//! Tests of the cache against a model of plain lists, and of its purpose: scans do not evict hot
//! entries.

use proptest::prelude::*;
use runtime::{Rng, mix64};

use crate::read::cache::*;

impl Key for u32 {
    fn hash(&self) -> u64 {
        mix64(u64::from(*self))
    }
}

/// The same policy with linear search in lists: key, bytes, uses, whether a scan inserted it.
#[derive(Default)]
struct Model {
    budget: u64,
    small: Vec<(u32, u64, u8, bool)>,
    main: Vec<(u32, u64, u8, bool)>,
    ghosts: Vec<u32>,
}

impl Model {
    fn bytes(queue: &[(u32, u64, u8, bool)]) -> u64 {
        queue.iter().map(|entry| entry.1).sum()
    }

    fn get(&mut self, key: u32, access: Access) -> bool {
        let entry = self.small.iter_mut().chain(&mut self.main).find(|entry| entry.0 == key);
        let is_point = access == Access::Point;
        entry.map(|entry| entry.2 = MOST_USES.min(entry.2 + u8::from(is_point))).is_some()
    }

    fn insert(&mut self, key: u32, bytes: u64, access: Access) {
        let takes = bytes + ENTRY_BYTES;
        let is_there = self.small.iter().chain(&self.main).any(|entry| entry.0 == key);
        if is_there || takes > self.budget {
            return;
        }
        let was_ghost = self.ghosts.contains(&key);
        self.ghosts.retain(|ghost| *ghost != key);
        while Self::bytes(&self.small) + Self::bytes(&self.main) + takes > self.budget {
            self.evict();
        }
        let entry = (key, takes, 0, access == Access::Scan);
        let is_back = was_ghost && access == Access::Point;
        if is_back {
            self.main.push(entry);
        } else {
            self.small.push(entry);
        }
        let excess = self.ghosts.len().saturating_sub(self.small.len() + self.main.len());
        self.ghosts.drain(..excess);
    }

    fn evict(&mut self) {
        if Self::bytes(&self.small) > self.budget / SMALL_PART || self.main.is_empty() {
            match self.small.remove(0) {
                (key, _, 0, false) => self.ghosts.push(key),
                (_, _, 0, true) => (),
                (key, bytes, _, is_scanned) => self.main.push((key, bytes, 0, is_scanned)),
            }
        } else {
            let (key, bytes, uses, is_scanned) = self.main.remove(0);
            if uses > 0 {
                self.main.push((key, bytes, uses - 1, is_scanned));
            }
        }
    }
}

/// Returns the only valid value of a key.
fn value_of(key: u32) -> u64 {
    mix64(u64::from(key) + 7)
}

proptest! {
    #[test]
    fn the_cache_holds_what_the_model_holds(
        budget in 0_u64..6_000,
        steps in prop::collection::vec(
            (0_u32..60, 0_u64..900, any::<bool>(), any::<bool>()),
            1..400
        ),
    ) {
        let mut cache = Cache::new(budget);
        let mut model = Model { budget, ..Model::default() };
        for (key, bytes, is_insert, is_scan) in steps {
            let access = if is_scan { Access::Scan } else { Access::Point };
            if is_insert {
                cache.insert(key, value_of(key), bytes, access);
                model.insert(key, bytes, access);
            } else {
                let got = cache.get(&key, access).copied();
                prop_assert_eq!(got, model.get(key, access).then(|| value_of(key)));
            }
            prop_assert_eq!(cache.bytes(), Model::bytes(&model.small) + Model::bytes(&model.main));
            prop_assert!(cache.bytes() <= budget);
            prop_assert_eq!(cache.slots.count(Queue::Ghosts), model.ghosts.len());
        }
    }
}

const PAGE: u64 = 1_000;

/// Does a client's read of one page. Returns whether it was a hit.
fn read(cache: &mut Cache<u32, u64>, key: u32, access: Access) -> bool {
    let is_hit = cache.get(&key, access).is_some();
    if !is_hit {
        cache.insert(key, value_of(key), PAGE, access);
    }
    is_hit
}

/// Returns a cache of a hundred pages with eighty hot ones, each read a few times, and other pages.
fn warm() -> (Cache<u32, u64>, Rng) {
    let mut cache = Cache::new(100 * (PAGE + ENTRY_BYTES));
    let mut rng = Rng::derive(1, "warm");
    for _ in 0..4_000 {
        let key = if rng.chance(0.8) { rng.below(80) } else { 1_000 + rng.below(100_000) };
        read(&mut cache, key as u32, Access::Point);
    }
    (cache, rng)
}

fn hits_of_hot(cache: &mut Cache<u32, u64>) -> usize {
    (0..80).filter(|key| cache.get(key, Access::Scan).is_some()).count()
}

#[test]
fn a_long_scan_does_not_drive_out_a_hot_set() {
    for access in [Access::Scan, Access::Point] {
        let (mut cache, _) = warm();
        let before = hits_of_hot(&mut cache);
        assert!(before >= 70, "{before} of 80");
        for key in 1_000_000..1_010_000 {
            assert!(!read(&mut cache, key, access));
        }
        let after = hits_of_hot(&mut cache);
        assert!(after + 10 >= before, "{after} of {before} are left");
    }
}

#[test]
fn scans_of_the_same_again_and_again_earn_no_place() {
    let (mut cache, mut rng) = warm();
    let before = hits_of_hot(&mut cache);
    for round in 0..20 {
        // Scans twice as many pages as fit, and reads the hot ones meanwhile.
        for key in 1_000_000..1_000_200 {
            read(&mut cache, key, Access::Scan);
            read(&mut cache, rng.below(80) as u32, Access::Point);
        }
        let after = hits_of_hot(&mut cache);
        assert!(after + 10 >= before, "{after} of {before} are left after round {round}");
    }
}

#[test]
fn what_is_hot_changes_and_the_cache_follows() {
    let (mut cache, mut rng) = warm();
    let mut hits = 0;
    for n in 0..8_000 {
        let is_hit = read(&mut cache, 500_000 + rng.below(80) as u32, Access::Point);
        hits += u32::from(is_hit && n >= 4_000);
    }
    assert!(hits > 3_900, "{hits} of 4000");
}

#[test]
fn nothing_is_kept_in_no_bytes_and_nothing_larger_than_all() {
    let mut none = Cache::new(0);
    none.insert(1, value_of(1), 0, Access::Point);
    assert_eq!((none.bytes(), none.get(&1, Access::Point)), (0, None));
    let mut one = Cache::new(PAGE + ENTRY_BYTES);
    one.insert(1, value_of(1), PAGE + 1, Access::Point);
    assert_eq!(one.get(&1, Access::Point), None);
    one.insert(2, value_of(2), PAGE, Access::Point);
    one.insert(3, value_of(3), PAGE, Access::Scan);
    assert_eq!(one.get(&2, Access::Point), None);
    assert_eq!(one.get(&3, Access::Point), Some(&value_of(3)));
}

/// An LRU cache, for comparison: it evicts the least recently used page.
struct Lru {
    pages: Vec<u32>,
    most: usize,
}

impl Lru {
    fn read(&mut self, key: u32) -> bool {
        let found = self.pages.iter().position(|page| *page == key);
        if let Some(at) = found {
            self.pages.remove(at);
        }
        self.pages.push(key);
        if self.pages.len() > self.most {
            self.pages.remove(0);
        }
        found.is_some()
    }
}

/// Returns the hits among 40,000 Gets, of which a share of 1/n is for the page of rank n, with a
/// scan of `scan` pages after every fiftieth Get.
fn hits_beside_scans(scan: u32, mut read: impl FnMut(u32, Access) -> bool) -> u32 {
    const PAGES: u32 = 5_000;
    let mut rng = Rng::derive(3, "skewed");
    let mut hits = 0;
    for n in 0..40_000 {
        let rank = f64::from(PAGES).powf(rng.below(1 << 20) as f64 / f64::from(1 << 20)) as u32;
        hits += u32::from(read(mix64(u64::from(rank)) as u32 % PAGES, Access::Point));
        if n % 50 == 0 {
            let first = rng.below(u64::from(PAGES)) as u32;
            for page in first..first + scan {
                read(page % PAGES, Access::Scan);
            }
        }
    }
    hits
}

#[test]
fn gets_hit_more_often_than_in_an_lru_and_scans_beside_them_hardly_matter() {
    const MOST: usize = 250;
    let mut hits = Vec::new();
    for scan in [0, 200] {
        let mut lru = Lru { pages: Vec::new(), most: MOST };
        let mut unaware = Cache::new(MOST as u64 * (PAGE + ENTRY_BYTES));
        let mut cache = Cache::new(MOST as u64 * (PAGE + ENTRY_BYTES));
        hits.push([
            hits_beside_scans(scan, |key, _| lru.read(key)),
            hits_beside_scans(scan, |key, _| read(&mut unaware, key, Access::Point)),
            hits_beside_scans(scan, |key, access| read(&mut cache, key, access)),
        ]);
    }
    println!(
        "hits of 40000 Gets; LRU, S3-FIFO, with a word for scans; without scans, with: {hits:?}"
    );
    let [[lru, _, alone], [swept, unaware, beside]] = hits[..] else { unreachable!("two rounds") };
    assert!(alone > lru && beside > unaware && unaware > swept, "{hits:?}");
    assert!(beside + beside / 20 > alone, "{hits:?}");
}
