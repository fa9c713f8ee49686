//! The flash as its users see it: completion times, contents of the cells, effects of a power cut.

mod cells;
mod faults;
mod latency;
mod overlap;
mod power_cut;
mod priority;
mod problems;
mod saturation;
mod small_drive;
mod suspend;
