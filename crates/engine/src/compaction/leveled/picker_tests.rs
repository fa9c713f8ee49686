use std::rc::Rc;

use crate::compaction::leveled::picker::*;
use crate::compaction::leveled::score::tests::{Shown, WEIGHTS, l0, level, tree};
use crate::medium::{ExtentId, Shape};
use crate::options::Options;
use crate::space::apart::Stretches;
use crate::version::table::TableMeta;
use crate::version::tree::tests::table;

/// Returns the form of tables of 64 pages of 1 MiB, in extents of 20 pages.
fn form() -> Form {
    let shape = Shape {
        payload_bytes: 60_000,
        page_bytes: 1 << 20,
        pages_per_extent: 20,
        extents: 1_000,
        grows_to: 0,
        append_unit: 1,
        parallelism: 1,
    };
    Form::new(&Options::pink(), &shape)
}

fn pick(tree: &Tree<Shown>, running: &[Running]) -> Option<Job<Shown>> {
    let options = &TableOptions::default();
    Picker {
        tree,
        options,
        weights: WEIGHTS,
        form: form(),
        running,
        squeezes: false,
        is_frugal: false,
    }
    .pick(|_| true)
}

/// Returns the level and numbers of a job's upper tables, its target level and the numbers of its
/// lower tables.
fn shown(job: Option<Job<Shown>>) -> Option<(usize, Vec<u64>, usize, Vec<u64>)> {
    let ids = |tables: &[Shown]| tables.iter().map(|table| table.0.id.0).collect();
    job.map(|job| (job.from, ids(&job.upper), job.into, ids(&job.lower)))
}

fn keys(first: u8, last: u8) -> KeyRange {
    KeyRange { first: [first].into(), last: [last].into() }
}

fn busy(tables: Vec<Shown>) -> Vec<Shown> {
    tables.into_iter().map(|table| Shown(table.0, true)).collect()
}

#[test]
fn all_of_l0_that_hangs_together_goes_into_l1_with_all_it_meets() {
    let tree = tree(&[l0(4), level(0, &[0, 128]), level(100, &[0])]);
    let job = shown(pick(&tree, &[]));
    assert_eq!(job, Some((0, vec![1000, 1001, 1002, 1003], 1, vec![0, 1])));
    assert_eq!(
        shown(pick(
            &crate::compaction::leveled::picker::tests::tree(&[l0(3), level(0, &[0]), Vec::new()]),
            &[]
        )),
        None
    );
}

#[test]
fn while_l0_is_compacted_the_newest_of_it_are_merged_among_themselves() {
    let mut newest_first = l0(6);
    newest_first.extend(busy(l0(4)).into_iter().map(|Shown(meta, is_busy)| {
        Shown(Rc::new(TableMeta { id: TableId(meta.id.0 + 50), ..(*meta).clone() }), is_busy)
    }));
    let tree = tree(&[newest_first, busy(level(0, &[0, 128])), level(100, &[0])]);
    let running = [Running { from: 0, into: 1, keys: keys(0, 255) }];
    let job = shown(pick(&tree, &running));
    assert_eq!(job, Some((0, (1000..1006).collect(), 0, vec![])));
}

#[test]
fn l1_is_left_alone_while_l0_wants_it() {
    let mut l1 = level(0, &[0, 40, 80, 120, 160, 200]);
    l1[0].1 = true;
    let tree = tree(&[l0(4), l1, level(100, &[0])]);
    let running = [Running { from: 1, into: 2, keys: keys(0, 39) }];
    assert_eq!(shown(pick(&tree, &running)), None);
}

#[test]
fn l0_waits_for_compactions_of_the_tables_it_is_to_be_merged_with() {
    let options = &TableOptions::default();
    let job = |tree: &Tree<Shown>, from: usize, upper: &[usize]| {
        let upper: Vec<Shown> = upper.iter().map(|at| tree.level(from)[*at].clone()).collect();
        Job { from, into: from + 1, upper, lower: Vec::new(), is_move: false, frugal: None }
    };
    let blocks = |of_l0: Vec<Shown>, from: usize, upper: &[usize]| {
        let tree = tree(&[of_l0, level(0, &[0, 40, 80]), level(100, &[0, 40])]);
        let (tree, weights, running, form) = (&tree, WEIGHTS, &[], form());
        let (squeezes, is_frugal) = (false, false);
        let picker = Picker { tree, options, weights, form, running, squeezes, is_frugal };
        picker.blocks_l0(&job(tree, from, upper))
    };
    assert!(blocks(l0(4), 1, &[0]) && blocks(l0(4), 1, &[2]));
    assert!(!blocks(l0(3), 1, &[0]), "it is not due");
    assert!(!blocks(busy(l0(4)), 1, &[0]), "it is under way");
    assert!(!blocks(l0(4), 2, &[0]), "L2 is not its");
    let few = || vec![Shown(table(50, 0, 9, 64), false), Shown(table(49, 90, 99, 300), false)];
    assert!(blocks(few(), 1, &[2]) != blocks(few(), 1, &[0]), "L0 falls in two parts");
}

#[test]
fn the_table_that_meets_least_below_goes_with_those_that_cost_nothing_more() {
    // Of six tables, the one with first key 200 overlaps one table below; the others overlap two
    // each.
    let below = level(100, &[0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200]);
    let tree = tree(&[l0(0), level(0, &[0, 40, 80, 120, 160, 200]), below.clone()]);
    assert_eq!(shown(pick(&tree, &[])), Some((1, vec![5], 2, vec![110])));
    // Two tables that overlap the same table are compacted together.
    let tree = crate::compaction::leveled::picker::tests::tree(&[
        l0(0),
        level(0, &[0, 40, 80, 120, 200, 220]),
        below,
    ]);
    assert_eq!(shown(pick(&tree, &[])), Some((1, vec![4, 5], 2, vec![110])));
}

#[test]
fn what_meets_nothing_is_moved_unless_it_would_meet_too_much_beyond() {
    let l2 = vec![Shown(table(100, 0, 100, 64), false)];
    let job = |l3: Vec<Shown>| {
        let tree = tree(&[l0(0), level(0, &[0, 40, 80, 101, 160, 200]), l2.clone(), l3]);
        pick(&tree, &[]).expect("L1 is over its size")
    };
    let few = job(level(200, &[0, 128]));
    assert!(few.is_move && few.lower.is_empty(), "{few:?}");
    let starts: Vec<u8> = (101..101 + 30).chain([160, 200]).collect();
    let many = job(level(200, &starts));
    assert_eq!((many.is_move, many.upper[0].0.id.0), (false, 3), "it is cut instead");
    let alone = |l3: Vec<Shown>| {
        let l1 = vec![Shown(table(1, 0, 255, 300), false)];
        pick(&tree(&[l0(0), l1, Vec::new(), l3]), &[]).expect("L1 is over its size").is_move
    };
    assert!(alone(level(200, &[0, 128])));
    assert!(!alone(level(200, &(0..30).collect::<Vec<u8>>())));
}

#[test]
fn a_range_that_is_being_written_is_left_alone() {
    let l1 = level(0, &[0, 40, 80, 120, 160, 200]);
    let tree = tree(&[l0(0), l1, level(100, &[0, 40, 80, 120, 160, 200])]);
    let running = |last: u8| [Running { from: 1, into: 2, keys: keys(0, last) }];
    assert_eq!(shown(pick(&tree, &running(199))), Some((1, vec![5], 2, vec![105])));
    assert_eq!(shown(pick(&tree, &running(255))), None);
}

#[test]
fn a_tree_that_is_squeezed_goes_down_whatever_its_sizes_are() {
    let options = &TableOptions::default();
    let tree = tree(&[l0(1), level(0, &[0]), Vec::new()]);
    let pick = |squeezes| {
        Picker {
            tree: &tree,
            options,
            weights: WEIGHTS,
            form: form(),
            running: &[],
            squeezes,
            is_frugal: false,
        }
        .pick(|_| true)
    };
    assert!(pick(false).is_none());
    let job = pick(true).expect("there is something above the last level");
    assert_eq!((job.from, job.into), (0, 1));
}

#[test]
fn where_space_is_short_jobs_are_small_and_another_level_may_go_first() {
    let options = &TableOptions::default();
    let pick = |tree: &Tree<Shown>, most: usize| {
        let (weights, running) = (WEIGHTS, &[]);
        let picker = Picker {
            tree,
            options,
            weights,
            running,
            squeezes: false,
            form: form(),
            is_frugal: true,
        };
        shown(picker.pick(|job| job.inputs().count() <= most))
    };
    let l2 = level(100, &[0, 40, 80, 128]);
    let tree = tree(&[l0(4), level(0, &[0, 40, 80, 120, 160, 200]), l2]);
    assert_eq!(pick(&tree, 9), Some((1, vec![0], 2, vec![100])), "scores: 1.0 and 1.5");
    let of_l0 = l0(8).into_iter().chain(level(500, &[0])).collect();
    let tree = crate::compaction::leveled::picker::tests::tree(&[
        of_l0,
        level(0, &[0, 40, 80, 120, 160]),
        level(100, &[0, 128]),
    ]);
    assert_eq!(
        pick(&tree, 2),
        Some((0, vec![500], 1, vec![0])),
        "the oldest, as far as one reaches"
    );
    assert_eq!(pick(&tree, 1), None);
    assert!(least_jobs(&tree).all(|(_, lower)| lower.len() == 1));
}

#[test]
fn small_neighbours_become_one_where_space_is_short() {
    let options = &TableOptions::default();
    let small = |id, first, data_pages: u32| {
        let pages = data_pages + 1;
        let extents = vec![ExtentId(0); pages.div_ceil(20) as usize];
        let meta = (*table(id, first, first + 9, data_pages)).clone();
        let meta = TableMeta { pages: Stretches { extents, pages }, ..meta };
        Shown(Rc::new(meta), false)
    };
    let pick = |last: Vec<Shown>| {
        let tree = tree(&[Vec::new(), Vec::new(), last]);
        let (weights, form, running) = (WEIGHTS, form(), &[]);
        let picker = Picker {
            tree: &tree,
            options,
            weights,
            form,
            running,
            squeezes: true,
            is_frugal: false,
        };
        shown(picker.pick(|_| true))
    };
    let neighbours = vec![small(1, 0, 60), small(2, 10, 3), small(3, 20, 3), small(4, 30, 60)];
    assert_eq!(pick(neighbours), Some((2, vec![1, 2, 3], 2, vec![])));
    assert_eq!(pick(vec![small(1, 0, 60), small(2, 10, 60)]), None);
    let mut busy = vec![small(1, 0, 3), small(2, 10, 3)];
    busy[1].1 = true;
    assert_eq!(pick(busy), None);
}
