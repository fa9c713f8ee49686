//! Rows about tails of Next by form of the index, and about gains by time of firmware and host.
//! Each row gives the upper bound.

use report::units::bytes_text;
use report::{Comparison, Verdict};

use crate::iter::bounds::Board;
use crate::iter::measured::{Index, Layout, Measured, Swept, Tail};
use crate::iter::size::{DEGREES, SWEPT_BYTES, TAIL_BYTES};
use crate::words::{beside, micros, row, times};

/// The gain of index prefetch, from the slide.
pub(super) const PUBLISHED_TAIL: f64 = 3.6;
/// The gain in the tail, from the conclusion.
pub(super) const CONCLUDED_TAIL: f64 = 2.0;

/// Returns the maximum gain of value prefetch, from the abstract.
pub(super) fn published_gain(layout: Layout) -> f64 {
    match layout {
        Layout::Random => 4.13,
        Layout::Sequential => 7.22,
    }
}

pub(super) fn tail_rows(board: &Board, measured: &Measured) -> Vec<Comparison> {
    let mut rows: Vec<Comparison> =
        Index::ALL.iter().map(|index| prefetch_row(board, measured, *index)).collect();
    rows.push(conclusion_row(board, measured));
    rows.push(ahead_row(board, measured));
    rows.push(residual_row(measured));
    rows.push(cost_row(measured));
    rows
}

/// Formats a quantile as a percentile, without trailing zeros.
pub(super) fn percentile(quantile: f64) -> String {
    let text = format!("{:.4}", quantile * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the gain of index prefetch at p99.9 and at the quantile in the middle of the Nexts that
/// wait for the index, with the upper bound, as text.
fn ratios(board: &Board, tail: &Tail, is_ahead: bool) -> String {
    let met = tail.runs.where_units_are_met();
    format!(
        "{} at p99.9, {} at {} (at most {})",
        times(tail.runs.ratio(0.999, is_ahead)),
        times(tail.runs.ratio(met, is_ahead)),
        percentile(met),
        times(board.most_tail(TAIL_BYTES, &tail.phases, is_ahead)),
    )
}

/// Returns a row for a form of the index. Only the row for tables counts, because the firmware of
/// the paper's group has tables.
fn prefetch_row(board: &Board, measured: &Measured, index: Index) -> Comparison {
    let tail = measured.tail(index, Layout::Random);
    let at = |quantile: f64| {
        let (without, with) = tail.runs.both(false);
        format!("{} to {}", micros(without.next_us(quantile)), micros(with.next_us(quantile)))
    };
    let met = tail.runs.where_units_are_met();
    let pages: Vec<String> = tail.phases.iter().map(u32::to_string).collect();
    let waits = match &pages[..] {
        [one] => format!("{one} page"),
        several => format!("up to {} pages, one kind after the other,", several.join(", then ")),
    };
    let row = row(
        &format!("iter-index-{}", id_of(index)),
        &format!("tail of Next with index prefetch, scans of 200 000, {}", index.name()),
        "about 3.6x better p99.9 (slide \"Effect of Index Prefetching\")",
        beside(PUBLISHED_TAIL, tail.runs.ratio(0.999, false), ratios(board, tail, false)),
        Verdict::of_gain(PUBLISHED_TAIL, tail.runs.ratio(0.999, false)),
        format!(
            "{:.3} % of the Nexts wait for {waits} where it is not read ahead; p99.9 from {}, {} from {}. In sequential layout {}.",
            100.0 * tail.runs.share_of_waits(),
            at(0.999),
            percentile(met),
            at(met),
            ratios(board, measured.tail(index, Layout::Sequential), false),
        ),
    );
    if index == Index::Tables { row } else { row.again() }
}

fn id_of(index: Index) -> &'static str {
    match index {
        Index::Pages => "p999",
        Index::Tables => "tables",
        Index::WithoutFilter => "tables-without-filter",
        Index::SmallTables => "small-tables",
    }
}

fn conclusion_row(board: &Board, measured: &Measured) -> Comparison {
    let tail = measured.tail(Index::Tables, Layout::Random);
    row(
        "iter-tail-conclusion",
        "tail latency, as concluded",
        "2x lower p99.9 (conclusion; configuration not given)",
        beside(CONCLUDED_TAIL, tail.runs.ratio(0.999, true), ratios(board, tail, true)),
        Verdict::of_gain(CONCLUDED_TAIL, tail.runs.ratio(0.999, true)),
        format!(
            "Which configuration the conclusion means is not known: here it is tables with D = {}, without and with \
             index prefetch.",
            DEGREES.end()
        ),
    )
}

fn ahead_row(board: &Board, measured: &Measured) -> Comparison {
    let of = |tail: &Tail| format!("{}: {}", tail.index.name(), ratios(board, tail, true));
    let sequential = Index::ALL.map(|index| of(measured.tail(index, Layout::Sequential)));
    let random = Index::ALL.map(|index| of(measured.tail(index, Layout::Random)));
    row(
        "iter-index-ahead",
        &format!(
            "tail of Next with index prefetch where values are read ahead, D = {}",
            DEGREES.end()
        ),
        "(not stated)",
        format!("sequential layout, {}", sequential.join("; ")),
        Verdict::NotApplicable,
        format!(
            "This is where index prefetch gains most: with their values there, other Nexts are short. Random layout, {}.",
            random.join("; ")
        ),
    )
}

fn residual_row(measured: &Measured) -> Comparison {
    let of = |index, layout| {
        let runs = &measured.tail(index, layout).runs;
        let met = runs.where_units_are_met();
        (runs.with_index.next_us(0.5), runs.with_index.next_us(met), percentile(met))
    };
    let (median, left, at) = of(Index::Tables, Layout::Random);
    let runs = &measured.tail(Index::Tables, Layout::Random).runs;
    let (_, in_order, _) = of(Index::Tables, Layout::Sequential);
    row(
        "iter-index-residual",
        "what index prefetch leaves where units were met, tables",
        "channel conflicts keep the tail from going altogether",
        format!("{} at {at}, {} in the median", micros(left), micros(median)),
        Verdict::of_more(left / median),
        format!(
            "Random layout; in sequential layout {} is left there. {} tables that were read ahead had not come in time; the longest \
             Next took {} instead of {}.",
            micros(in_order),
            runs.with_index.late_prefetches,
            micros(runs.with_index.longest_next_us()),
            micros(runs.baseline.longest_next_us()),
        ),
    )
}

fn cost_row(measured: &Measured) -> Comparison {
    let of = |index| {
        let tail = measured.tail(index, Layout::Random);
        format!("{} {:.3}", index.name(), tail.index_bytes_per_byte)
    };
    row(
        "iter-index-writes",
        "what each form of the index costs to write",
        "(not stated)",
        Index::ALL.map(of).join("; "),
        Verdict::NotApplicable,
        format!(
            "Bytes that merges of the index write for each byte of pairs while they are loaded in random order, {} values.",
            bytes_text(TAIL_BYTES)
        ),
    )
}

/// Returns rows about the gain of value prefetch with other times of the board.
pub(super) fn swept_rows(measured: &Measured) -> Vec<Comparison> {
    let one = |swept: &Swept| {
        let (best, gained) = swept.best();
        let layout = swept.layout;
        let id = swept.read_us.map_or(String::new(), |read_us| format!("-tr-{read_us:.0}us"));
        row(
            &format!("iter-gain-{}-{:.0}us{id}", layout.name(), swept.fixed_us),
            &format!(
                "the same with {} values where firmware and host take {}, {} layout",
                bytes_text(SWEPT_BYTES),
                swept.times(),
                layout.name()
            ),
            &format!("{}x (abstract)", published_gain(layout)),
            beside(
                published_gain(layout),
                gained,
                format!("{} (at most {})", times(gained), times(swept.most)),
            ),
            Verdict::of_gain(published_gain(layout), gained),
            format!(
                "With D = {}: a Next takes {} on average, {} without prefetch.",
                best.degree,
                tenths(best.next.mean_us),
                tenths(swept.runs[0].next.mean_us)
            ),
        )
        .again()
    };
    measured.swept.iter().map(one).collect()
}

fn tenths(us: f64) -> String {
    format!("{us:.1} us")
}
