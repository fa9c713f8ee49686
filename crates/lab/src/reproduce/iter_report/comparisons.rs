//! What the paper says, beside what came out.

use workload::LatencySummary;

use super::most_gained;
use super::tails::{published_gain, swept_rows, tail_rows};
use crate::report::{Comparison, Verdict};
use crate::reproduce::iter::{
    DEGREES, FIXED_US, ITERATORS, SIZES, SUMMARY_ENTRY_BYTES, SWEPT_BYTES,
};
use crate::reproduce::iter_bounds::Board;
use crate::reproduce::iter_measured::{Layout, Measured, OnStand, Run};
use crate::reproduce::words::{beside, holds, megabytes, micros, row, times};
use crate::{bytes_text, count_text};

pub(super) fn comparisons(board: &Board, measured: &Measured) -> Vec<Comparison> {
    let mut rows = tail_rows(board, measured);
    rows.extend(gain_rows(board, measured));
    rows.push(lengths_row(measured));
    rows.push(seek_row(measured));
    rows.extend(memory_rows(measured));
    rows
}

fn gain_rows(board: &Board, measured: &Measured) -> Vec<Comparison> {
    let gains = |layout: Layout| SIZES.map(|size| measured.stand(size, layout).most_gained());
    let listed = |layout: Layout| {
        let texts = SIZES.iter().zip(gains(layout));
        let texts = texts.map(|(size, gain)| format!("{} {}", bytes_text(*size), times(gain)));
        texts.collect::<Vec<_>>().join(", ")
    };
    let mut rows: Vec<Comparison> = Layout::ALL
        .into_iter()
        .map(|layout| {
            let factor = published_gain(layout);
            let (size, gained) = most_gained(measured, layout);
            let top = best_run(measured.stand(size, layout));
            row(
                &format!("iter-gain-{}", layout.name()),
                &format!("largest gain from value prefetch, {} layout", layout.name()),
                &format!("{factor}x (abstract)"),
                beside(factor, gained, times(gained)),
                Verdict::of_gain(factor, gained),
                format!(
                    "With {} values and D = {}: {} in place of {}. By size: {}. {}",
                    bytes_text(size),
                    top.degree,
                    megabytes(top.bytes_per_second),
                    megabytes(measured.stand(size, layout).by_degree[0].bytes_per_second),
                    listed(layout),
                    what_is_left(board, size, top)
                ),
            )
        })
        .collect();
    rows.extend(swept_rows(measured));
    rows.push(layouts_row(measured));
    rows.push(saturation_row(measured));
    rows.push(sizes_row(&listed(Layout::Sequential)));
    rows
}

/// What a Next still takes when its value was read ahead, and what the board allows.
fn what_is_left(board: &Board, size: u64, run: &Run) -> String {
    format!(
        "A Next then takes {} on average, and {} of it are firmware, host and the transfer of the value, which no prefetch \
         hides; how long those take is assumed. If each value took pages of its own, the board would allow {}.",
        micros(run.next.mean_us),
        micros(board.floor_us(size)),
        times(board.most_gain(size))
    )
}

fn best_run(stand: &OnStand) -> &Run {
    let runs = stand.by_degree.iter();
    runs.max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second)).expect("there are runs")
}

fn saturation_row(measured: &Measured) -> Comparison {
    // Below its top a curve has to rise, but for the 3 % that the keys drawn make; at the top it may
    // go up and down by 5 %.
    let rises = |stand: &OnStand| {
        let top = best_run(stand).bytes_per_second;
        let at = |run: &Run| run.bytes_per_second / top;
        stand.by_degree.windows(2).all(|pair| at(&pair[1]) > at(&pair[0]).min(0.95) * 0.97)
    };
    let last_step = |stand: &OnStand| {
        let [.., before, last] = &stand.by_degree[..] else { return 1.0 };
        last.bytes_per_second / before.bytes_per_second
    };
    let rising = measured.stands.iter().filter(|stand| rises(stand)).count();
    let steps = measured.stands.iter().map(last_step);
    let most = steps.fold(0.0, f64::max);
    row(
        "iter-saturation",
        "throughput by degree",
        "rises with D until bandwidth is used up or the reads are hidden",
        format!("rises in {rising} of {}", measured.stands.len()),
        holds(rising == measured.stands.len()),
        format!(
            "Curves rise to within 5 % of their top and stay there; the step from D = 7 to 8 still \
             gains at most {:.0} %.",
            (most - 1.0) * 100.0
        ),
    )
}

fn layouts_row(measured: &Measured) -> Comparison {
    let published = published_gain(Layout::Sequential) / published_gain(Layout::Random);
    let of = |layout| measured.stand(SWEPT_BYTES, layout).most_gained();
    let ratio = of(Layout::Sequential) / of(Layout::Random);
    let swept = FIXED_US.map(|fixed| {
        let of = |layout| {
            let mut all = measured.swept.iter();
            let one = all.find(|one| {
                let is_of_it = one.fixed_us.to_bits() == fixed.to_bits();
                one.layout == layout && is_of_it && one.read_us.is_none()
            });
            one.expect("both layouts were run").best().1
        };
        format!("{} {}", micros(fixed), times(of(Layout::Sequential) / of(Layout::Random)))
    });
    row(
        "iter-layouts",
        &format!(
            "gain in sequential layout over that in random, {} values",
            bytes_text(SWEPT_BYTES)
        ),
        "7.22x over 4.13x: 1.75x (abstract; sizes not given)",
        beside(
            published,
            ratio,
            format!(
                "{} over {}: {}",
                times(of(Layout::Sequential)),
                times(of(Layout::Random)),
                times(ratio)
            ),
        ),
        Verdict::of_gain(published, ratio),
        format!(
            "Neighbours that were written one after the other lie on different dies and channels; in random layout two of nine \
             reads under way often meet on one. By time of firmware and host: {}.",
            swept.join(", ")
        ),
    )
}

fn sizes_row(listed: &str) -> Comparison {
    row(
        "iter-sizes",
        "gain by value size, sequential layout",
        "(not stated)",
        listed,
        Verdict::NotApplicable,
        "A value of 16 KiB takes a page of its own; one of 128 KiB takes eight, whose reads keep the \
         channels busy by themselves. Small values share pages that the iterator still has.",
    )
}

/// How far throughput may fall from one length to the next before that counts: the keys drawn differ.
const NO_FALL: f64 = 0.97;

fn lengths_row(measured: &Measured) -> Comparison {
    let cases: Vec<Vec<f64>> = measured
        .stands
        .iter()
        .flat_map(|stand| [0, *DEGREES.end()].map(|degree| stand.by_length_at(degree)))
        .collect();
    let count = |holds: fn(&[f64]) -> bool| cases.iter().filter(|case| holds(case)).count();
    let rising = count(|rates| rates.windows(2).all(|pair| pair[1] >= NO_FALL * pair[0]));
    let more = count(|rates| rates.last() > rates.first());
    row(
        "iter-lengths",
        "throughput by scan length, 128 to 2 048",
        "longer scans give more (slide)",
        format!("step by step in {rising} of {} cases", cases.len()),
        match cases.len() {
            all if rising == all => Verdict::Holds,
            all if more == all => Verdict::Deviates,
            _ => Verdict::DoesNotHold,
        },
        format!(
            "Within 3 % from each length to the next; more at 2 048 than at 128 in {more}. A query is one Seek and N Next, and the Seek, \
             which reads a segment of each level first, weighs less the more Next follow."
        ),
    )
}

fn seek_row(measured: &Measured) -> Comparison {
    let run = &measured.stand(4 << 10, Layout::Random).by_degree[0];
    let ratio = |of: fn(&LatencySummary) -> f64| of(&run.seek) / of(&run.next);
    row(
        "iter-seek-next",
        "Seek against Next",
        "Seek shows much higher latency (slide; no value)",
        format!("{} against {}", micros(run.seek.mean_us), micros(run.next.mean_us)),
        holds(ratio(|summary| summary.mean_us) > 1.2),
        "4 KiB values, random layout, D = 0. A Seek reads the segments of all levels side by side, \
         then the value; a Next reads the value.",
    )
}

fn memory_rows(measured: &Measured) -> Vec<Comparison> {
    let last = measured.versions.last().expect("there were iterators");
    let full = 65_000 * SUMMARY_ENTRY_BYTES;
    vec![
        row(
            "iter-summary",
            "a full summary of the tables",
            "44 B x about 65,000 tables = 2.7 MB (slide)",
            beside(2.7e6, full as f64, bytes_text(full)),
            Verdict::NotApplicable,
            format!(
                "Arithmetic, which no run can contradict. This store has {} segments of one page, {} for a summary.",
                count_text(measured.segments),
                bytes_text(measured.segments * SUMMARY_ENTRY_BYTES)
            ),
        ),
        row(
            "iter-version-memory",
            &format!(
                "metadata for {ITERATORS} open iterators; 5 % of pairs overwritten between successive ones"
            ),
            "pooled metadata in place of a summary for each (no value)",
            format!("{} against {}", bytes_text(last.pooled), bytes_text(last.summaries)),
            holds(last.pooled < last.summaries),
            format!(
                "Descriptors are shared and views are copied in chunks of 256 references. The \
                 memtables that the snapshots hold are {} besides: overwrites keep them alive.",
                bytes_text(last.memtables)
            ),
        ),
    ]
}
