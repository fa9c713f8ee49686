//! `levelhead serve` as a process: acknowledged writes survive SIGTERM and SIGKILL.

mod crowd;
mod hostile;
mod kills;
mod offline;
mod process;
