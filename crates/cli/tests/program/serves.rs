//! `levelhead serve` as a process: what it acknowledged is there after it was asked to end, and after it was killed.

mod crowd;
mod hostile;
mod kills;
mod offline;
mod process;
