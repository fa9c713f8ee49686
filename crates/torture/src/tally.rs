//! Event counters of trials.

use std::fmt::Arguments;

use testkit::fuzz::from_environment;

use crate::machine::Machine;

/// Prints an event of the trial if a single seed is replayed.
pub(crate) fn narrate(what: Arguments<'_>) {
    if from_environment("LEVELHEAD_SEED").is_some() {
        println!("{what}");
    }
}

/// Declares counters by name, in the order of the list.
macro_rules! tally {
    ($($name:ident),* $(,)?) => {
        /// The events of trials, counted.
        #[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
        pub struct Tally { $(pub(crate) $name: u64),* }

        impl Tally {
            pub(crate) fn add(&mut self, more: &Self) {
                $(self.$name += more.$name;)*
            }

            /// Returns the names of the counters that are 0.
            pub(crate) fn missing(&self) -> Vec<&'static str> {
                let all = [$((stringify!($name), self.$name)),*];
                all.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect()
            }
        }
    };
}

tally! {
    commands, cuts, cuts_of_openings, refused, flushes, compactions, collected, expired,
    lost_sets, read_only_sets, stale_sets, replaced_sets, rotten_blocks, lost_writes, rotten_cells,
    rebuilt_reads, rebuilt_for_store, degraded_writes, stale_extents, refilled_bytes, filled,
    unopened_damaged, unopened_gone,
    slots, cached_reads, quiet_rebuilds, left_windows, lost_windows,
}

impl Tally {
    /// Adds the statistics of a machine whose power is about to be cut.
    pub(crate) fn count(&mut self, machine: &Machine) {
        let stats = machine.store.stats();
        self.cuts += 1;
        self.flushes += stats.flushes;
        self.compactions += stats.compactions.iter().sum::<u64>();
        self.collected += stats.gc_data_extents + stats.gc_meta_extents;
        self.rebuilt_for_store += stats.rebuilt_reads;
        let Some(volume) = machine.store.volume() else { return };
        let stats = volume.stats();
        self.rebuilt_reads += stats.rebuilt_reads;
        self.degraded_writes += stats.degraded_writes;
        self.stale_extents += stats.stale_extents;
        self.refilled_bytes += stats.refilled_bytes;
        let Some(windows) = volume.window_stats() else { return };
        self.slots += windows.slots;
        self.cached_reads += windows.cached_reads;
        self.quiet_rebuilds += windows.rebuilt_reads;
        self.lost_windows += windows.lost_windows;
    }
}
