//! What a member may be given now.
//!
//! ```text
//!                  slot of the member
//!        +------------------------------------+
//!  Adt -> Udt ->       And       -> Und -> Lockdown -> Adt ...
//!  |  DTWIN  |         NDWIN        |  no I/O   | DTWIN
//! ```
//! Source: Vigil-KV (ATC'22), section 6.2 and figure 10.

/// What a member may be given now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// There are no windows: everything, as it comes.
    #[default]
    Off,
    /// Available DTWIN: reads of clients.
    Adt,
    /// Unavailable DTWIN: nothing new. Reads that were begun come to their end.
    Udt,
    /// Available NDWIN: what the store does for itself.
    And,
    /// Unavailable NDWIN: nothing new. What was begun comes to its end.
    Und,
    /// The device gets ready for DTWIN: nothing at all.
    Lockdown,
}

impl State {
    /// Whether a client's read is undisturbed.
    pub const fn is_quiet(self) -> bool {
        matches!(self, Self::Off | Self::Adt)
    }

    /// Whether the device is in its deterministic window, so that a write would break it.
    pub const fn is_dtwin(self) -> bool {
        matches!(self, Self::Adt | Self::Udt)
    }

    /// Whether writes may begin.
    pub const fn takes_writes(self) -> bool {
        matches!(self, Self::Off | Self::And)
    }
}
