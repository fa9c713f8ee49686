//! Counters of trials: a mechanism that never ran was not tested.

use std::fmt;

use drives::nand::CutReport;
use drives::ssd::SetReport;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub commands: u64,
    pub power_cuts: u64,
    pub cuts_of_recoveries: u64,
    pub clean_ends: u64,
    pub torn: u64,
    pub collections: u64,
    pub wear_moves: u64,
    pub reclaims: u64,
    pub blocks_paced: u64,
    pub mapping_reads: u64,
    pub mapping_writes: u64,
    pub blocks_moved: u64,
    pub blocks_wasted: u64,
    pub windows_entered: u64,
    pub windows_broken: u64,
    pub starvations: u64,
    pub buffer_hits: u64,
    pub cache_hits: u64,
    pub discards_ignored: u64,
    pub suspends: u64,
    pub trace: u64,
}

impl Tally {
    /// Returns all summed counters by name.
    fn all(&mut self) -> [(&'static str, &mut u64); 20] {
        [
            ("commands", &mut self.commands),
            ("power cuts", &mut self.power_cuts),
            ("cuts of recoveries", &mut self.cuts_of_recoveries),
            ("clean ends", &mut self.clean_ends),
            ("torn programs and erases", &mut self.torn),
            ("collections", &mut self.collections),
            ("wear moves", &mut self.wear_moves),
            ("reclaims", &mut self.reclaims),
            ("blocks paced", &mut self.blocks_paced),
            ("mapping pages read", &mut self.mapping_reads),
            ("mapping pages written", &mut self.mapping_writes),
            ("blocks moved", &mut self.blocks_moved),
            ("slots wasted", &mut self.blocks_wasted),
            ("windows entered", &mut self.windows_entered),
            ("windows broken", &mut self.windows_broken),
            ("starvations", &mut self.starvations),
            ("buffer hits", &mut self.buffer_hits),
            ("cache hits", &mut self.cache_hits),
            ("discards ignored", &mut self.discards_ignored),
            ("suspends", &mut self.suspends),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let mut other = other.clone();
        for ((_, sum), (_, more)) in self.all().into_iter().zip(other.all()) {
            *sum += *more;
        }
        self.trace = self.trace.rotate_left(1) ^ other.trace;
    }

    /// Counts the work of a set since power-up.
    pub(crate) fn count(&mut self, report: &SetReport) {
        let firmware = &report.firmware;
        self.add(&Self {
            collections: firmware.collections,
            wear_moves: firmware.wear_moves,
            reclaims: firmware.reclaims,
            blocks_paced: firmware.blocks_paced,
            mapping_reads: firmware.mapping_reads,
            mapping_writes: firmware.mapping_writes,
            blocks_moved: firmware.slots_moved,
            blocks_wasted: firmware.slots_wasted,
            windows_entered: firmware.windows_entered,
            windows_broken: firmware.windows_broken,
            starvations: firmware.starvations,
            buffer_hits: firmware.buffer_hits,
            cache_hits: firmware.cache_hits,
            discards_ignored: firmware.discards_ignored,
            suspends: report.flash.program_suspends + report.flash.erase_suspends,
            ..Self::default()
        });
    }

    pub(crate) fn count_cut(&mut self, cut: CutReport) {
        self.power_cuts += 1;
        self.torn += u64::from(cut.torn);
    }

    /// Asserts that power failed often, also during recoveries, and with flash operations in
    /// flight.
    pub(crate) fn assert_cuts_did_harm(&self, trials: u64) {
        assert!(self.power_cuts > 10 * trials, "too few power cuts: {self}");
        assert!(self.cuts_of_recoveries > trials, "too few power cuts of recoveries: {self}");
        assert!(self.torn > trials, "too few programs and erases were torn: {self}");
    }

    /// Asserts that every mechanism ran in some trial.
    pub(crate) fn assert_everything_happened(&self) {
        for (name, count) in self.clone().all() {
            assert!(*count > 0, "no {name} in {self}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.clone().all().map(|(name, count)| format!("{count} {name}"));
        f.write_str(&all.join(", "))
    }
}
