//! What the paper says, beside what came out.

use workload::LatencySummary;

use super::most_gained;
use crate::report::Comparison;
use crate::reproduce::iter::{DEGREES, DEVICE, ITERATORS, SIZES, SUMMARY_ENTRY_BYTES};
use crate::reproduce::iter_measured::{Layout, Measured, OnStand, Run};
use crate::reproduce::words::{amount, beside, change, gain, holds, megabytes, micros, row, times};
use crate::{bytes_text, count_text};

pub(super) fn comparisons(measured: &Measured) -> Vec<Comparison> {
    let mut rows = index_rows(measured);
    rows.extend(gain_rows(measured));
    rows.push(lengths_row(measured));
    rows.push(seek_row(measured));
    rows.extend(memory_rows(measured));
    rows
}

fn index_rows(measured: &Measured) -> Vec<Comparison> {
    let stand = measured.stand(4 << 10, Layout::Random);
    let (base, with) = (&stand.baseline, &stand.with_index);
    let ratio = |q| base.next_us(q) / with.next_us(q);
    let share = base.index_reads as f64 / base.next.len().max(1) as f64;
    let why = format!(
        "A segment of 16 KiB holds some 1,500 entries of 4-byte keys, so {:.3} % of the Nexts wait \
         for one: {} the p99.9, {} the p99.99 ({} without, {} with prefetch).",
        share * 100.0,
        if share > 0.001 { "that moves" } else { "too few to move" },
        if share > 0.0001 { "but enough to move" } else { "and too few to move" },
        micros(base.next_us(0.9999)),
        micros(with.next_us(0.9999)),
    );
    let ours = format!("{} at p99.9, {} at p99.99", times(ratio(0.999)), times(ratio(0.9999)));
    let residual = format!(
        "{} of {} segments read ahead had not come in time; the longest Next took {} instead of {}.",
        with.late_prefetches,
        with.next.len().min(base.index_reads),
        micros(with.longest_next_us()),
        micros(base.longest_next_us()),
    );
    vec![
        row(
            "iter-index-p999",
            "tail of Next with index prefetch, scans of 200,000",
            "about 3.6x better p99.9 (slide \"Effect of Index Prefetching\")",
            beside(3.6, ratio(0.999), &ours),
            gain(3.6, ratio(0.999)),
            why,
        ),
        row(
            "iter-tail-conclusion",
            "tail latency, as concluded",
            "2x lower p99.9 (conclusion; configuration not given)",
            beside(2.0, ratio(0.999), ours),
            gain(2.0, ratio(0.999)),
            "The same measurement; which configuration the conclusion means is not known.",
        ),
        row(
            "iter-index-residual",
            "what index prefetch leaves",
            "channel conflicts keep the tail from going altogether",
            format!("longest Next {}", change(base.next.max() as f64, with.next.max() as f64)),
            holds(with.next.max() > with.next.value_at_quantile(0.5)),
            residual,
        ),
    ]
}

fn gain_rows(measured: &Measured) -> Vec<Comparison> {
    let gains = |layout: Layout| SIZES.map(|size| measured.stand(size, layout).most_gained());
    let listed = |layout: Layout| {
        let texts = SIZES.iter().zip(gains(layout));
        let texts = texts.map(|(size, gain)| format!("{} {}", bytes_text(*size), times(gain)));
        texts.collect::<Vec<_>>().join(", ")
    };
    let published = [(Layout::Random, 4.13), (Layout::Sequential, 7.22)];
    let mut rows: Vec<Comparison> = published
        .into_iter()
        .map(|(layout, factor)| {
            let (size, gained) = most_gained(measured, layout);
            let top = best_run(measured.stand(size, layout));
            row(
                &format!("iter-gain-{}", layout.name()),
                &format!("most that value prefetch gains, {} layout", layout.name()),
                &format!("{factor}x (abstract)"),
                beside(factor, gained, times(gained)),
                gain(factor, gained),
                format!(
                    "With {} values and D = {}: {} in place of {}. By size: {}. {}",
                    bytes_text(size),
                    top.degree,
                    megabytes(top.bytes_per_second),
                    megabytes(measured.stand(size, layout).by_degree[0].bytes_per_second),
                    listed(layout),
                    what_is_left(size, top)
                ),
            )
        })
        .collect();
    rows.push(saturation_row(measured));
    rows.push(layouts_row(&gains(Layout::Sequential), &gains(Layout::Random)));
    rows.push(sizes_row(&gains(Layout::Sequential), &listed(Layout::Sequential)));
    rows
}

/// What a Next still takes when its value was read ahead.
fn what_is_left(size: u64, run: &Run) -> String {
    let device = kvssd::DeviceProfile::load(DEVICE).expect("it is built in");
    let (controller, host) = (&device.controller, &device.host);
    let transfer = size as f64 / host.read_mb_per_s;
    let fixed = controller.command_us + controller.pipeline_us + host.latency_us + transfer;
    format!(
        "A Next then takes {} on average, and {} of it are firmware, host and the transfer of the \
         value, which no prefetch hides; how long these take is assumed.",
        micros(run.next.mean_us),
        micros(fixed)
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

fn layouts_row(sequential: &[f64; SIZES.len()], random: &[f64; SIZES.len()]) -> Comparison {
    // Those that do not share pages: 16 KiB and 128 KiB.
    let both = sequential[2..].iter().zip(&random[2..]);
    let texts = both.clone().map(|(seq, rnd)| format!("{} against {}", times(*seq), times(*rnd)));
    row(
        "iter-layouts",
        "gain in sequential layout against random, 16 KiB and 128 KiB",
        "gains more: 7.22x against 4.13x (abstract)",
        texts.collect::<Vec<_>>().join("; "),
        holds(both.clone().all(|(seq, rnd)| seq > rnd)),
        format!(
            "Neighbours that were written one after the other lie on different dies and channels; \
             in random layout two of nine reads under way often meet on one. Smaller values in \
             sequential layout are in a page that the iterator still has even without prefetch, \
             which leaves less to gain ({} against {} for 4 KiB).",
            times(sequential[1]),
            times(random[1])
        ),
    )
}

fn sizes_row(gains: &[f64; SIZES.len()], listed: &str) -> Comparison {
    let most = gains.iter().copied().fold(0.0, f64::max);
    let is_16k_most = gains[2] >= most;
    let without_smallest = &gains[1..];
    let is_128k_least = without_smallest.iter().all(|gain| *gain >= gains[3]);
    row(
        "iter-sizes",
        "gain by value size, sequential layout",
        "(expected, not stated) most with 16 KB, least with 128 KB",
        listed,
        holds(is_16k_most && is_128k_least),
        "A value of 16 KiB takes a page of its own; one of 128 KiB takes eight, whose reads keep the \
         channels busy by themselves. Small values share pages that the iterator still has.",
    )
}

fn lengths_row(measured: &Measured) -> Comparison {
    let rises = |stand: &OnStand, degree: u32| {
        let runs: Vec<_> = stand.by_length.iter().filter(|run| run.degree == degree).collect();
        let (first, last) = (runs.first().expect("lengths"), runs.last().expect("lengths"));
        last.bytes_per_second > first.bytes_per_second
    };
    let cases: Vec<bool> = measured
        .stands
        .iter()
        .flat_map(|stand| [0, *DEGREES.end()].map(|degree| rises(stand, degree)))
        .collect();
    let rising = cases.iter().filter(|rises| **rises).count();
    row(
        "iter-lengths",
        "throughput by scan length, 128 to 2,048",
        "longer scans give more (slide)",
        format!("in {rising} of {} cases", cases.len()),
        holds(rising == cases.len()),
        "A query is one Seek and N Next, and the Seek, which reads a segment of each level first, \
         weighs less the more Next follow.",
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
            amount(2.7e6, full as f64),
            format!(
                "Arithmetic. This store has {} segments of one page, {} for a summary.",
                count_text(measured.segments),
                bytes_text(measured.segments * SUMMARY_ENTRY_BYTES)
            ),
        ),
        row(
            "iter-version-memory",
            &format!("versions of {ITERATORS} iterators, a twentieth overwritten between two"),
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
