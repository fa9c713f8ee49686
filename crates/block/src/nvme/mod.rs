//! NVM sets and Predictable Latency Mode in the byte layouts of the NVMe base specification (2.x).
//!
//! A drive with NVM sets can guarantee the read latency of a set for some time, the deterministic
//! window (DTWIN). It needs time without the guarantee, the non-deterministic window (NDWIN), for
//! flushes and garbage collection. The host selects windows by Set Features and reads the budgets
//! from a log page. An asynchronous event notifies the host when a set leaves its window by itself.
//!
//! All functions of this module are pure: no device, no clock. The drive decodes commands and the
//! host encodes them; for responses the roles are reversed. Numbers are little-endian. Byte ranges
//! are half open: `2..4` is bytes 3:2 of the specification.
//!
//! ```text
//! Identify, CNS 04h: NVM Set List, 4096 bytes                            NvmSetList
//!   0         number of entries, at most 31
//!   128..     one NVM Set Attributes Entry of 128 bytes each:            NvmSetAttributes
//!     0..2    NVM set   2..4 endurance group
//!     8..12   random 4 KiB read typical   12..16 optimal write size
//!     16..32  total capacity              32..48 unallocated capacity
//! Identify, CNS 01h: controller                                          ControllerFields
//!   92..96    OAES, bit 12   96..100 CTRATT, bits 2 to 5   100..102 RRLS
//!   338..340  NSETIDMAX      340..342 ENDGIDMAX
//! Identify, CNS 00h: namespace                                           NamespaceFields
//!   100..102  NVMSETID       102..104 ENDGID
//!
//! Feature 13h: Deterministic Threshold Configuration, 512 bytes          Thresholds
//!   0..2      enable event
//!   32..56    thresholds: reads, writes, time
//! Feature 14h: no data, the window is in the command                     WindowSelect
//!
//! Log page 0Ah: Predictable Latency Per NVM Set, 512 bytes               PerSetLog
//!   0         status   2..4 event type
//!   32..56    reads typical, writes typical, time maximum of a DTWIN
//!   56..72    time minimum high, time minimum low of an NDWIN
//!   128..152  estimates of the remaining reads, writes, time
//!   504..512  project extension, reserved in the specification: lockdown estimate
//! Log page 0Bh: Predictable Latency Event Aggregate                      EventAggregate
//!   0..8      number of entries
//!   8..       NVM sets with events, two bytes each, ascending
//! ```
//!
//! The other bytes are reserved: encoders write zeros, decoders ignore them. Reserved bits and
//! codes in a command's dwords are refused, so that a driver with other codes (Vigil-KV's paper
//! selects NDWIN with 0) fails at once.
//!
//! `header_tests.rs` checks layouts and numbers against the headers of the C library. The headers
//! do not document the unit of the times in features and log pages. Milliseconds are taken from a
//! secondary source, notes on the specification.

mod error;
mod events;
mod features;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod header_tests;
mod identify;
mod layout;
mod logs;
mod set_id;
mod status;
mod window;

pub use error::DecodeError;
pub use events::{AsyncEventConfig, Event, Events, Notice};
pub use features::{Feature, GetFeatures, PlmConfig, Select, SetFeatures, Setting, Thresholds};
pub use identify::{
    ControllerAttributes, ControllerFields, NamespaceFields, NvmSetAttributes, NvmSetList,
};
pub use logs::{EventAggregate, GetLogPage, Log, LogSpan, PerSetLog};
pub use set_id::SetId;
pub use status::Status;
pub use window::{Budget, WindowSelect, WindowStatus};
