//! Pacing of background work: how many of its writes may be in flight at the same time.
//!
//! Every program occupies a die for about a millisecond, and a read that arrives meanwhile waits.
//! Background work therefore keeps few dies busy while it has time, and more dies as it falls
//! behind. It uses all dies only when writers would otherwise stall. The total work is the same.

/// Returns the number of appends that may be in flight for work of `urgency` (0 = plenty of time, 1
/// = writers wait).
pub(crate) fn window(urgency: f64, parallelism: u32) -> usize {
    let most = f64::from(parallelism);
    let least = (most / 8.0).max(1.0);
    let share = urgency.clamp(0.0, 1.0);
    (least + (most - least) * share).round() as usize
}

#[cfg(test)]
mod tests {
    use super::window;

    #[test]
    fn the_window_opens_with_urgency() {
        assert_eq!(window(0.0, 64), 8);
        assert_eq!(window(0.5, 64), 36);
        assert_eq!(window(7.0, 64), 64);
        assert_eq!(window(0.0, 4), 1);
    }
}
