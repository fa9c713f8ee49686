//! The state of a member: the commands that it may be given now.
//!
//! ```text
//!                  slot of the member
//!        +------------------------------------+
//!  Adt -> Udt ->       And       -> Und -> Lockdown -> Adt ...
//!  |  DTWIN  |         NDWIN        |  no I/O   | DTWIN
//! ```
//! Source: Vigil-KV (ATC'22), section 6.2 and figure 10.

/// The commands that a member may be given now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// No windows: all commands, at once.
    #[default]
    Off,
    /// Available DTWIN: client reads.
    Adt,
    /// Unavailable DTWIN: no new commands. Reads in progress end.
    Udt,
    /// Available NDWIN: all commands; the slot of writes and internal tasks.
    And,
    /// Unavailable NDWIN: new client reads only. Writes in progress end.
    Und,
    /// The device prepares for DTWIN: no commands.
    Lockdown,
}

impl State {
    /// Whether client reads are undisturbed.
    pub const fn is_quiet(self) -> bool {
        matches!(self, Self::Off | Self::Adt)
    }

    /// Whether the device is in its deterministic window, which a write would break.
    pub const fn is_dtwin(self) -> bool {
        matches!(self, Self::Adt | Self::Udt)
    }

    /// Whether writes may begin.
    pub const fn takes_writes(self) -> bool {
        matches!(self, Self::Off | Self::And)
    }
}
