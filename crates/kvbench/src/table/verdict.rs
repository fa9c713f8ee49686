//! The verification, and the time and memory that the run used on this machine.

use std::fmt::Write;

use report::units::{bytes_text, count_text};

use crate::result::{BenchResult, Verification};

pub(super) fn verdict(result: &BenchResult) -> String {
    let verification = &result.verification;
    let mut text = match &verification.first_mismatch {
        None => format!("verified: all {} returned what they must", answers(verification)),
        Some(first) => {
            format!("WRONG DATA: {} answers; first: {first}", count_text(verification.mismatches))
        }
    };
    if let Some(error) = &verification.first_error {
        write!(text, "\nFAILED: {} operations; first: {error}", verification.errors)
            .expect("a string takes any text");
    }
    if let Some(host) = result.host.as_ref().filter(|_| result.store.is_some()) {
        write!(text, "\nthis program: {} of memory at most", bytes_text(host.peak_rss_bytes))
            .expect("a string takes any text");
    } else if let Some(host) = &result.host {
        write!(
            text,
            "\nthis machine: {:.1} s wall (load {:.1} s, {} puts/s; run {:.1} s, {} simulated \
             operations/s), {} of memory",
            host.wall_seconds,
            host.load_wall_seconds,
            count_text(host.loaded_per_wall_second.round() as u64),
            host.run_wall_seconds,
            count_text(host.simulated_ops_per_wall_second.round() as u64),
            bytes_text(host.peak_rss_bytes)
        )
        .expect("a string takes any text");
    }
    text
}

/// Returns the number of verified Gets, and of verified pairs of scans.
fn answers(verification: &Verification) -> String {
    let gets = format!("{} gets", count_text(verification.checked));
    let pairs = format!("scans of {} pairs", count_text(verification.checked_pairs));
    match (verification.checked, verification.checked_pairs) {
        (_, 0) => gets,
        (0, _) => pairs,
        (_, _) => format!("{gets} and {pairs}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_says_what_was_checked() {
        let told = |checked, checked_pairs| {
            answers(&Verification {
                checked,
                checked_pairs,
                mismatches: 0,
                first_mismatch: None,
                errors: 0,
                first_error: None,
            })
        };
        assert_eq!(told(5000, 0), "5 000 gets");
        assert_eq!(told(0, 128), "scans of 128 pairs");
        assert_eq!(told(2, 30), "2 gets and scans of 30 pairs");
    }
}
