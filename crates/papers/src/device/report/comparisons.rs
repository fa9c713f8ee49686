//! Published claims beside the measured values.

use report::units::count_text;
use report::{Comparison, Verdict};

use crate::device::measured::{Lockdown, Measured, Watched};
use crate::words::{beside, micros, millis, row, times};

pub(super) fn comparisons(measured: &Measured) -> Vec<Comparison> {
    let mut rows = vec![flush_row(measured)];
    rows.extend(collection_rows(measured));
    rows.push(reclaim_row(measured));
    rows.push(lockdown_row(measured));
    rows.extend(window_rows(measured));
    rows.push(alternating_row(measured));
    rows.extend(isolation_rows(measured));
    rows.extend(model_rows(measured));
    rows
}

/// Returns a sentence about the operations that the longest reads waited for.
fn waits(watched: &Watched) -> String {
    format!(
        "Erases are suspended for reads, page programs of 700 us are not: the longest met one of \
         those that had just begun, or an erase that was not suspended at once. {}.",
        watched.met.text()
    )
}

fn flush_row(measured: &Measured) -> Comparison {
    let latency = &measured.buffer_flush.after;
    let most = latency.longest_us / latency.median_us;
    row(
        "device-2a",
        "longest read while the buffer is emptied, over the typical one",
        "7.75x (section 2.2, figure 2a)",
        beside(
            7.75,
            most,
            format_args!(
                "{} ({} over {})",
                times(most),
                micros(latency.longest_us),
                micros(latency.median_us)
            ),
        ),
        Verdict::of_amount(7.75, most),
        format!(
            "The typical read was read ahead and comes from memory; the longest waits for a page \
             program of 700 us to end, or for two in a row. Over a read of the flash, {}, it is {}. \
             Whether the paper's typical read comes from memory is not said.",
            micros(alone(measured)),
            times(latency.longest_us / alone(measured)),
        ),
    )
}

fn collection_rows(measured: &Measured) -> Vec<Comparison> {
    let Watched { before, after, .. } = &measured.collection;
    vec![
        row(
            "device-2b-before",
            "typical read before garbage is collected",
            "16.2 us (section 2.2)",
            beside(16.2, before.median_us, format_args!("{:.1} us", before.median_us)),
            Verdict::of_amount(16.2, before.median_us),
            "Reads in order that were read ahead: firmware, memory and link.",
        ),
        row(
            "device-2b",
            "longest read while garbage is collected",
            "9.8 ms (section 2.2, figure 2b)",
            beside(9_800.0, after.longest_us, millis(after.longest_us)),
            Verdict::of_amount(9_800.0, after.longest_us),
            format!(
                "Before collection began the longest took {}; p99.9 went from {} to {}. Ours passes \
                 a read ahead of whatever waits for its die, and suspends erases for it; 9.8 ms are \
                 nearly three erases, each waited for to its end.",
                micros(before.longest_us),
                micros(before.p999_us),
                micros(after.p999_us),
            ),
        ),
    ]
}

fn reclaim_row(measured: &Measured) -> Comparison {
    let watched = &measured.reclaim;
    let latency = &watched.after;
    row(
        "device-2c",
        "longest read while blocks are reclaimed",
        "2.5 ms (section 2.2, figure 2c)",
        beside(2_500.0, latency.longest_us, millis(latency.longest_us)),
        Verdict::of_amount(2_500.0, latency.longest_us),
        format!(
            "{} blocks were reclaimed; mean {}. Ours moves the data of the one block that was read \
             often and erases it with its superblock later, so reads meet programs, not erases. {}.",
            watched.reclaims,
            micros(latency.mean_us),
            watched.met.text()
        ),
    )
}

fn lockdown_row(measured: &Measured) -> Comparison {
    let text = |lockdown: &Lockdown| {
        let megabytes = lockdown.written_bytes / 1_000_000;
        format!("{megabytes} MB {:.1} ms", lockdown.took_ms)
    };
    let longest = measured.lockdowns.iter().map(|one| one.took_ms).fold(0.0, f64::max);
    row(
        "device-7b",
        "lockdown after tens of MB were written",
        "under 20 ms (section 5.2, figure 7b)",
        measured.lockdowns.iter().map(text).collect::<Vec<_>>().join(", "),
        Verdict::of_bound(20.0, longest),
        "How large the prototype's buffer is was not published, and ours, 12 MiB a set, is what this time allows. \
         What was written before the last 12 MiB is on flash already.",
    )
    .fitted()
}

/// The published upper bound of reads in DTWIN, in microseconds.
const DTWIN_US: f64 = 200.0;

fn window_rows(measured: &Measured) -> Vec<Comparison> {
    let (plain, windowed) = (&measured.plain.all, &measured.windowed);
    let (dtwin, ndwin) = (&windowed.before, &windowed.after);
    vec![
        row(
            "device-8a-baseline",
            "longest reads without windows, after writes",
            "spikes of 402 us (section 5.2, figure 8a)",
            beside(402.0, plain.longest_us, micros(plain.longest_us)),
            Verdict::of_amount(402.0, plain.longest_us),
            format!(
                "p99.9 {}, mean {}. {}",
                micros(plain.p999_us),
                micros(plain.mean_us),
                waits(&measured.plain)
            ),
        ),
        row(
            "device-8a-dtwin-mean",
            "mean read in DTWIN",
            "74 us (section 5.2)",
            beside(74.0, dtwin.mean_us, format_args!("{:.1} us", dtwin.mean_us)),
            Verdict::of_amount(74.0, dtwin.mean_us),
            format!(
                "Arithmetic gives {:.1} us: 60 us of it are the flash's, 11.4 the firmware's, both \
                 assumed of the class of drive.",
                mean(&measured.alone_in_set_us)
            ),
        ),
        row(
            "device-8a-dtwin",
            "longest read in DTWIN",
            "under 200 us, always (section 5.2)",
            format!("{}, of {} reads", micros(dtwin.longest_us), count_text(dtwin.reads as u64)),
            Verdict::of_bound(DTWIN_US, dtwin.longest_us),
            "No internal job is under way in the window; the model asserts that at each read. How many reads are sensed again is \
             not published, and ours, one of 2,000, is what this bound allows.",
        )
        .fitted(),
        row(
            "device-8a-ndwin",
            "longest read in NDWIN",
            "736 us (section 5.2, figure 8a)",
            beside(736.0, ndwin.longest_us, micros(ndwin.longest_us)),
            Verdict::of_amount(736.0, ndwin.longest_us),
            format!(
                "p99.9 {}, mean {}. That programs go page by page and are not suspended was concluded from this time. {}",
                micros(ndwin.p999_us),
                micros(ndwin.mean_us),
                waits(windowed)
            ),
        )
        .fitted(),
    ]
}

fn alternating_row(measured: &Measured) -> Comparison {
    let alternating = &measured.alternating;
    let of = |wants_dtwin: bool| {
        let windows = alternating.longest_us.iter().enumerate();
        let wanted = windows.filter(|(i, _)| (i % 2 == 1) == wants_dtwin);
        wanted.map(|(_, longest)| *longest).fold(0.0, f64::max)
    };
    let (dtwin, ndwin) = (of(true), of(false));
    let (one_dtwin, one_ndwin) =
        (measured.windowed.before.longest_us, measured.windowed.after.longest_us);
    row(
        "device-8b",
        "longest read through windows in turns",
        "as in one window, in each (section 5.2, figure 8b)",
        format!("DTWIN {}, NDWIN {}", micros(dtwin), micros(ndwin)),
        Verdict::of_all([
            Verdict::of_amount(one_dtwin, dtwin),
            Verdict::of_amount(one_ndwin, ndwin),
            Verdict::of_less(dtwin / ndwin),
        ]),
        format!(
            "In one window: DTWIN {}, NDWIN {}. {} windows; {} of them ended before the host said so.",
            micros(one_dtwin),
            micros(one_ndwin),
            alternating.watched.windows_entered,
            alternating.watched.windows_broken
        ),
    )
}

fn isolation_rows(measured: &Measured) -> Vec<Comparison> {
    let longest = |watched: &Watched| watched.all.longest_us;
    let (mixed, isolated) = (longest(&measured.mixed), longest(&measured.isolated));
    let undisturbed = longest(&measured.undisturbed);
    vec![
        row(
            "device-8c-mixed",
            "longest read beside writes in one space",
            "2 ms (section 5.2, figure 8c)",
            beside(2_000.0, mixed, millis(mixed)),
            Verdict::of_amount(2_000.0, mixed),
            format!("p99.9 {}. {}", micros(measured.mixed.all.p999_us), waits(&measured.mixed)),
        ),
        row(
            "device-8c-isolated",
            "longest read beside writes to another set, windows off",
            "not disturbed (section 5.2, figure 8c)",
            format!("{}; alone {}", micros(isolated), micros(undisturbed)),
            Verdict::of_no_worse(isolated / undisturbed),
            "Sets share the host link only.",
        ),
    ]
}

/// Returns the latency of a read alone by arithmetic, the mean over page types, in microseconds.
fn alone(measured: &Measured) -> f64 {
    mean(&measured.alone_us)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn rate(a_second: f64) -> String {
    count_text(a_second.round() as u64)
}

fn model_rows(measured: &Measured) -> Vec<Comparison> {
    let (bound, most) = measured.bounds.smallest();
    let first = measured.curve.first().map_or(0.0, |point| point.mean_us);
    let best = measured.curve.iter().map(|point| point.reads_per_second).fold(0.0, f64::max);
    let b = measured.bounds;
    vec![
        row(
            "device-model-depth-1",
            "the model itself: mean of reads one at a time",
            "nothing; a check by arithmetic",
            format!("{first:.2} us; by arithmetic {:.2} us", alone(measured)),
            Verdict::NotApplicable,
            format!(
                "By page type arithmetic gives {} us.",
                measured
                    .alone_us
                    .iter()
                    .map(|us| format!("{us:.2}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        ),
        row(
            "device-model-saturation",
            "the model itself: most reads a second",
            "nothing; a check by arithmetic",
            format!("{}; by arithmetic at most {}, by the {bound}", rate(best), rate(most)),
            Verdict::NotApplicable,
            format!(
                "Bounds: dies {}, channels {}, link {}, firmware {} reads a second.",
                rate(b.dies),
                rate(b.channels),
                rate(b.link),
                rate(b.firmware)
            ),
        ),
    ]
}
