//! The engine on a medium in memory, which injects the failures that a test requests.

mod backwards;
mod compact;
mod exchange;
mod failing_reads;
mod failing_writes;
mod full;
mod full_groups;
mod groups;
mod looks;
mod memory;
mod readahead;
mod refused_openings;
mod repair;
mod setup;
mod torn_checkpoints;
mod unneeded_pages;
mod wild_cuts;
