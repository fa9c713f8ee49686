//! What came of `IterKVSSD`'s experiments, as figures and beside the published statements.

use workload::LatencySummary;

use super::iter::{
    DEGREE_SCAN, DEGREES, ITERATORS, LONG_SCAN, Layout, Measured, Run, SIZES, SUMMARY_ENTRY_BYTES,
    Series as Stand, Size,
};
use super::words::{change, holds, megabytes, micros, row, times, verdict};
use super::{Plan, Scale};
use crate::bytes_text;
use crate::report::{Axis, BarSeries, Comparison, Figure, FigureKind, Report, Series, Unit};

/// The report.
pub(super) fn report(plan: &Plan<'_>, measured: &Measured) -> Report {
    let scale = plan.scale.name();
    let records = Size::of(plan.scale).records;
    let (best_size, best) = most_gained(measured, Layout::Sequential);
    Report {
        title: "IterKVSSD (SYSTOR'23): iterators inside the drive".to_owned(),
        summary: format!(
            "Reading values ahead gains up to {} ({} values, sequential layout) and up to {} in \
             random layout; index prefetch removes {} of the reads that a Next of a long scan \
             waited for. {ITERATORS} iterators share one pool of descriptors: {} in place of {}.",
            times(best),
            bytes_text(best_size),
            times(most_gained(measured, Layout::Random).1),
            removed(measured),
            bytes_text(measured.versions.last().map_or(0, |memory| memory.pooled)),
            bytes_text(measured.versions.last().map_or(0, |memory| memory.summaries)),
        ),
        scale: format!(
            "{} pairs with 4-byte keys on the whole simulated Cosmos+ board{}; the paper has 3 \
             million",
            crate::count_text(records),
            if plan.scale == Scale::Quick { " (quick scale)" } else { "" },
        ),
        command: format!("levelhead reproduce iter --scale {scale} --seed {}", plan.seed),
        figures: figures(measured),
        comparisons: comparisons(measured),
        notes: notes(),
    }
}

fn notes() -> Vec<String> {
    [
        "One request is outstanding at a time, as the published host library has it.",
        "Throughput is bytes of values per second of virtual time; a range query is one Seek and as \
         many Next as the scan is long.",
        "The paper's figures were available without numbers, and its text not at all: what is \
         compared is what its abstract and its slides state.",
        "Flash and firmware times of the board are assumed (its parts are under a non-disclosure \
         agreement); every one is marked in the device profile cosmos-plus-4ch.",
        "A page that an iterator has read stays in its buffer until newer ones push it out, so small \
         values in sequential layout are read from the buffer.",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn stand(measured: &Measured, size: u64, layout: Layout) -> &Stand {
    let mut stands = measured.series.iter();
    stands.find(|s| s.size == size && s.layout == layout).expect("every size in every layout")
}

/// Throughput of the best degree over that of none.
fn gain(stand: &Stand) -> f64 {
    let base = stand.by_degree[0].bytes_per_second;
    stand.by_degree.iter().map(|run| run.bytes_per_second / base).fold(0.0, f64::max)
}

/// The value size that gains most in a layout, and how much.
fn most_gained(measured: &Measured, layout: Layout) -> (u64, f64) {
    let gains = SIZES.map(|size| (size, gain(stand(measured, size, layout))));
    gains.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are sizes")
}

fn removed(measured: &Measured) -> String {
    let reads = |of: fn(&Stand) -> u64| measured.series.iter().map(of).sum::<u64>();
    let before = reads(|stand| stand.baseline.index_reads);
    let after = reads(|stand| stand.with_index.index_reads);
    format!("{:.0} %", (before - after.min(before)) as f64 / before.max(1) as f64 * 100.0)
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let mut figures = vec![index_prefetch(measured), index_percentiles(measured), gains(measured)];
    figures.extend(SIZES.map(|size| by_degree(measured, size)));
    figures.extend(SIZES.map(|size| by_length(measured, size)));
    figures.push(seek_and_next(measured));
    figures.push(version_memory(measured));
    figures
}

fn index_prefetch(measured: &Measured) -> Figure {
    let stand = stand(measured, 4 << 10, Layout::Random);
    Figure {
        id: "iter-index-prefetch".to_owned(),
        title: "Latency of Next in long scans, with and without index prefetch".to_owned(),
        caption: format!(
            "4 KiB values, random layout, scans of up to {LONG_SCAN} pairs, no value prefetch. \
             Beside the slide \"Effect of Index Prefetching\"."
        ),
        kind: FigureKind::Cdf {
            x: Axis::log("latency of Next", Unit::Microseconds),
            of: "Nexts".to_owned(),
            tail: true,
            series: vec![
                Series::latency_cdf("IterKVSSD-B (no prefetch)", &stand.baseline.next),
                Series::latency_cdf("IterKVSSD-I (index prefetch)", &stand.with_index.next),
            ],
        },
    }
}

fn index_percentiles(measured: &Measured) -> Figure {
    let name = |stand: &Stand| format!("{} {}", bytes_text(stand.size), stand.layout.name());
    let of = |quantile: f64, with_index: bool| {
        let values = measured.series.iter().map(move |stand| {
            let run = if with_index { &stand.with_index } else { &stand.baseline };
            run.next.value_at_quantile(quantile) as f64 / 1e3
        });
        values.collect::<Vec<_>>()
    };
    Figure {
        id: "iter-index-percentiles".to_owned(),
        title: "Tails of Next in long scans".to_owned(),
        caption: "Without (B) and with (I) index prefetch, by value size and layout.".to_owned(),
        kind: FigureKind::Bars {
            over: "values".to_owned(),
            categories: measured.series.iter().map(name).collect(),
            y: Axis::log("latency of Next", Unit::Microseconds),
            series: vec![
                BarSeries::new("B, p99.9", of(0.999, false)),
                BarSeries::new("I, p99.9", of(0.999, true)),
                BarSeries::new("B, p99.99", of(0.9999, false)),
                BarSeries::new("I, p99.99", of(0.9999, true)),
            ],
        },
    }
}

fn gains(measured: &Measured) -> Figure {
    let line = |stand: &Stand| {
        let base = stand.by_degree[0].bytes_per_second;
        let points = stand.by_degree.iter();
        let points = points.map(|run| (f64::from(run.degree), run.bytes_per_second / base));
        Series::new(format!("{} {}", bytes_text(stand.size), stand.layout.name()), points)
    };
    Figure {
        id: "iter-gain-by-degree".to_owned(),
        title: "What value prefetch gains".to_owned(),
        caption: format!(
            "Throughput over that without value prefetch, scans of {DEGREE_SCAN} pairs."
        ),
        kind: FigureKind::Lines {
            x: Axis::linear("degree D", Unit::Number),
            y: Axis::linear("gain", Unit::Other("x".to_owned())),
            series: measured.series.iter().map(line).collect(),
        },
    }
}

fn by_degree(measured: &Measured, size: u64) -> Figure {
    let line = |layout: Layout| {
        let runs = stand(measured, size, layout).by_degree.iter();
        Series::new(layout.name(), runs.map(|run| (f64::from(run.degree), run.bytes_per_second)))
    };
    Figure {
        id: format!("iter-degree-{size}"),
        title: format!("Throughput by degree of value prefetch, {} values", bytes_text(size)),
        caption: format!(
            "Scans of {DEGREE_SCAN} pairs. Beside the slide \"Effect of Prefetching Degree\"."
        ),
        kind: FigureKind::Lines {
            x: Axis::linear("degree D", Unit::Number),
            y: Axis::linear("throughput", Unit::BytesPerSecond),
            series: Layout::ALL.map(line).to_vec(),
        },
    }
}

fn by_length(measured: &Measured, size: u64) -> Figure {
    let line = |layout: Layout, degree: u32| {
        let runs = stand(measured, size, layout).by_length.iter();
        let points = runs.filter(|run| run.degree == degree);
        let points = points.map(|run| (run.length as f64, run.bytes_per_second));
        Series::new(format!("{}, D = {degree}", layout.name()), points)
    };
    let degrees = [0, *DEGREES.end()];
    let lines = Layout::ALL.into_iter().flat_map(|layout| degrees.map(|d| line(layout, d)));
    Figure {
        id: format!("iter-length-{size}"),
        title: format!("Throughput by scan length, {} values", bytes_text(size)),
        caption: "Beside the slide \"Effect of Scan Length in Range Query\".".to_owned(),
        kind: FigureKind::Lines {
            x: Axis::log("scan length", Unit::Other("pairs".to_owned())),
            y: Axis::linear("throughput", Unit::BytesPerSecond),
            series: lines.collect(),
        },
    }
}

fn seek_and_next(measured: &Measured) -> Figure {
    let of = |degree: usize, latency: fn(&Run) -> f64| {
        SIZES.map(|size| latency(&stand(measured, size, Layout::Random).by_degree[degree]))
    };
    let most = *DEGREES.end() as usize;
    Figure {
        id: "iter-seek-next".to_owned(),
        title: "Mean latency of Seek and Next".to_owned(),
        caption: "Random layout. Beside the slide \"Effect of Value Prefetching\".".to_owned(),
        kind: FigureKind::Bars {
            over: "values".to_owned(),
            categories: SIZES.map(bytes_text).to_vec(),
            y: Axis::log("mean latency", Unit::Microseconds),
            series: vec![
                BarSeries::new("Seek, D = 0", of(0, |run| run.seek.mean_us)),
                BarSeries::new("Seek, D = 8", of(most, |run| run.seek.mean_us)),
                BarSeries::new("Next, D = 0", of(0, |run| run.next.mean_us)),
                BarSeries::new("Next, D = 8", of(most, |run| run.next.mean_us)),
            ],
        },
    }
}

fn version_memory(measured: &Measured) -> Figure {
    let line = |name: &str, of: fn(&super::iter::VersionMemory) -> u64| {
        let points = (1..).zip(&measured.versions);
        Series::new(name, points.map(|(count, memory)| (f64::from(count), of(memory) as f64)))
    };
    Figure {
        id: "iter-version-memory".to_owned(),
        title: "Memory of versions by open iterators".to_owned(),
        caption: format!(
            "A twentieth of the pairs is overwritten between two iterators. The store has {} \
             segments; a summary takes {SUMMARY_ENTRY_BYTES} bytes for each.",
            crate::count_text(measured.segments)
        ),
        kind: FigureKind::Lines {
            x: Axis::linear("open iterators", Unit::Number),
            y: Axis::log("memory", Unit::Bytes),
            series: vec![
                line("one full summary per iterator", |memory| memory.summaries),
                line("pooled descriptors and views", |memory| memory.pooled),
                line("memtables that snapshots hold", |memory| memory.memtables),
            ],
        },
    }
}

fn comparisons(measured: &Measured) -> Vec<Comparison> {
    let mut rows = index_rows(measured);
    rows.extend(gain_rows(measured));
    rows.push(lengths_row(measured));
    rows.push(seek_row(measured));
    rows.extend(memory_rows(measured));
    rows
}

fn index_rows(measured: &Measured) -> Vec<Comparison> {
    let stand = stand(measured, 4 << 10, Layout::Random);
    let quantile =
        |histogram: &hdrhistogram::Histogram<u64>, q| histogram.value_at_quantile(q) as f64 / 1e3;
    let (base, with) = (&stand.baseline, &stand.with_index);
    let ratio = |q| quantile(&base.next, q) / quantile(&with.next, q);
    let share = base.index_reads as f64 / base.next.len().max(1) as f64;
    let why = format!(
        "A segment of 16 KiB holds some 1,500 entries of 4-byte keys, so {:.3} % of the Nexts wait \
         for one: {} the p99.9, {} the p99.99 ({} without, {} with prefetch).",
        share * 100.0,
        if share > 0.001 { "that moves" } else { "too few to move" },
        if share > 0.0001 { "but enough to move" } else { "and too few to move" },
        micros(quantile(&base.next, 0.9999)),
        micros(quantile(&with.next, 0.9999)),
    );
    let ours = format!("{} at p99.9, {} at p99.99", times(ratio(0.999)), times(ratio(0.9999)));
    let residual = format!(
        "{} of {} segments read ahead had not come in time; the longest Next took {} instead of {}.",
        with.late_prefetches,
        with.next.len().min(base.index_reads),
        micros(with.next.max() as f64 / 1e3),
        micros(base.next.max() as f64 / 1e3),
    );
    vec![
        row(
            "iter-index-p999",
            "tail of Next with index prefetch, scans of 200,000",
            "about 3.6x better p99.9 (slide \"Effect of Index Prefetching\")",
            ours.clone(),
            verdict(3.6, ratio(0.999), 1.0),
            why.clone(),
        ),
        row(
            "iter-tail-conclusion",
            "tail latency, as concluded",
            "2x lower p99.9 (conclusion; configuration not given)",
            ours,
            verdict(2.0, ratio(0.999), 1.0),
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
    let gains = |layout: Layout| SIZES.map(|size| gain(stand(measured, size, layout)));
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
            let top = best_run(stand(measured, size, layout));
            row(
                &format!("iter-gain-{}", layout.name()),
                &format!("most that value prefetch gains, {} layout", layout.name()),
                &format!("{factor}x (abstract)"),
                times(gained),
                verdict(factor, gained, 1.0),
                format!(
                    "With {} values and D = {}: {} in place of {}. By size: {}. {}",
                    bytes_text(size),
                    top.degree,
                    megabytes(top.bytes_per_second),
                    megabytes(stand(measured, size, layout).by_degree[0].bytes_per_second),
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
    let device = kvssd::DeviceProfile::load(super::iter::DEVICE).expect("it is built in");
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

fn best_run(stand: &Stand) -> &Run {
    let runs = stand.by_degree.iter();
    runs.max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second)).expect("there are runs")
}

fn saturation_row(measured: &Measured) -> Comparison {
    // Below its top a curve has to rise, but for the 3 % that the keys drawn make; at the top it may
    // go up and down by 5 %.
    let rises = |stand: &Stand| {
        let top = best_run(stand).bytes_per_second;
        let at = |run: &Run| run.bytes_per_second / top;
        stand.by_degree.windows(2).all(|pair| at(&pair[1]) > at(&pair[0]).min(0.95) * 0.97)
    };
    let last_step = |stand: &Stand| {
        let [.., before, last] = &stand.by_degree[..] else { return 1.0 };
        last.bytes_per_second / before.bytes_per_second
    };
    let rising = measured.series.iter().filter(|stand| rises(stand)).count();
    let steps = measured.series.iter().map(last_step);
    let most = steps.fold(0.0, f64::max);
    row(
        "iter-saturation",
        "throughput by degree",
        "rises with D until bandwidth is used up or the reads are hidden",
        format!("rises in {rising} of {}", measured.series.len()),
        holds(rising == measured.series.len()),
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
    let rises = |stand: &Stand, degree: u32| {
        let runs: Vec<_> = stand.by_length.iter().filter(|run| run.degree == degree).collect();
        let (first, last) = (runs.first().expect("lengths"), runs.last().expect("lengths"));
        last.bytes_per_second > first.bytes_per_second
    };
    let cases: Vec<bool> = measured
        .series
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
    let run = &stand(measured, 4 << 10, Layout::Random).by_degree[0];
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
            bytes_text(full),
            verdict(2.7e6, full as f64, 0.0),
            format!(
                "Arithmetic. This store has {} segments of one page, {} for a summary.",
                crate::count_text(measured.segments),
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
