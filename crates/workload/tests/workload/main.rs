//! Whole sessions on stores in memory: honest ones, lying ones and slow ones.

mod honest;
mod lying;
mod scans;
mod store;
mod threads;
mod timing;
mod traces;
