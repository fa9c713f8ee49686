//! The drive against an ordered map: random commands, power cuts, crash points, planted faults.

mod harness;
mod smoke;
