//! Published claims beside the measured values.

use report::units::{bytes_text, count_text};
use report::{Comparison, Verdict};
use workload::LatencySummary;

use super::tails::{published_gain, swept_rows, tail_rows};
use crate::iter::bounds::Board;
use crate::iter::measured::{Layout, Measured, OnStand, Run};
use crate::iter::size::{DEGREES, FIXED_US, ITERATORS, SIZES, SUMMARY_ENTRY_BYTES, SWEPT_BYTES};
use crate::words::{beside, megabytes, micros, row, times};

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
            let (size, gained) = measured.most_gained(layout);
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

/// Returns a sentence about the time of a Next whose value was prefetched, and about the maximum
/// gain.
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
    let rises = |stand: &OnStand| {
        rising(stand.by_degree.iter().map(|run| run.bytes_per_second).collect::<Vec<_>>())
    };
    let last_step = |stand: &OnStand| {
        let [.., before, last] = &stand.by_degree[..] else { return 1.0 };
        last.bytes_per_second / before.bytes_per_second
    };
    let cases: Vec<Verdict> = measured.stands.iter().map(rises).collect();
    let steps = measured.stands.iter().map(last_step);
    let most = steps.fold(0.0, f64::max);
    row(
        "iter-saturation",
        "throughput by degree",
        "rises with D until bandwidth is used up or the reads are hidden",
        format!("rises in {} of {}", holding(&cases), cases.len()),
        Verdict::of_all(cases),
        format!(
            "A curve rises if its top is more than 5 % over D = 0 and no step falls by more than 5 %. The step from D = 7 to 8 still \
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

/// Verdict on values that should rise: the highest is a gain over the first, and no step falls by
/// more than 5 %.
fn rising(values: impl AsRef<[f64]>) -> Verdict {
    let values = values.as_ref();
    let top = values.iter().copied().fold(f64::NAN, f64::max);
    match Verdict::of_more(top / values[0]) {
        Verdict::Holds => {
            Verdict::of_all(values.windows(2).map(|pair| Verdict::of_no_worse(pair[0] / pair[1])))
        }
        nothing => nothing,
    }
}

fn holding(cases: &[Verdict]) -> usize {
    cases.iter().filter(|verdict| **verdict == Verdict::Holds).count()
}

fn lengths_row(measured: &Measured) -> Comparison {
    let cases: Vec<Vec<f64>> = measured
        .stands
        .iter()
        .flat_map(|stand| [0, *DEGREES.end()].map(|degree| stand.by_length_at(degree)))
        .collect();
    let more = cases.iter().filter(|rates| rates.last() > rates.first()).count();
    let cases: Vec<Verdict> = cases.iter().map(rising).collect();
    row(
        "iter-lengths",
        "throughput by scan length, 128 to 2 048",
        "longer scans give more (slide)",
        format!("in {} of {} cases", holding(&cases), cases.len()),
        Verdict::of_all(cases),
        format!(
            "In the others no length gives 5 % more than 128, or a step falls by more than 5 %. More at 2 048 than at 128, by however little, in {more}. A query is one Seek and N Next, and the Seek, \
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
        Verdict::of_more(ratio(|summary| summary.mean_us)),
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
            Verdict::of_less(last.pooled as f64 / last.summaries as f64),
            format!(
                "Descriptors are shared and views are copied in chunks of 256 references. The \
                 memtables that the snapshots hold are {} besides: overwrites keep them alive.",
                bytes_text(last.memtables)
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Verdict, rising};

    #[test]
    fn what_stays_where_it_is_does_not_rise() {
        for (values, verdict) in [
            (&[1.0, 1.5, 1.48, 1.6][..], Verdict::Holds),
            (&[1.0, 1.5, 1.2], Verdict::Deviates),
            (&[1.0, 1.01, 1.02], Verdict::DoesNotHold),
            (&[1.0, 0.9], Verdict::DoesNotHold),
        ] {
            assert_eq!(rising(values), verdict, "{values:?}");
        }
    }
}
