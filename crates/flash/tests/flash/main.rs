//! The flash as its users see it: when operations end, what the cells hold, what a power cut does.

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
