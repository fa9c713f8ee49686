//! Planted faults: deliberate bugs that the trials must catch. Compiled in only with the feature
//! `test-hooks`, which only tests enable.

/// A deliberate bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A rebuild uses the parity member of the first stripe for all stripes.
    ParityNotRotated,
    /// A member that is being filled serves stripes that it does not have yet.
    ServeBeforeFilled,
    /// A member's data of an extent is used regardless of its generation.
    BelieveStaleExtents,
    /// Parity is not written.
    ParityLeftOut,
    /// The header of an extent does not note the members that missed writes.
    ForgetAbsence,
    /// A sync notes all members that missed writes, even more than the layout tolerates.
    NoteTooMany,
    /// An unreadable header counts as missing.
    UnreadAsBlank,
    /// An unreadable page of the log or manifest counts as never written.
    UnreadAsUnwritten,
    /// The stream and time of an extent's opening are unknown.
    ForgetOpenings,
    /// A sync is acknowledged before the absent members are noted.
    AcknowledgeBeforeNote,
    /// Extents that were being released, or never synced, count.
    BelieveReleased,
    /// A replaced member that comes back counts.
    BelieveReplaced,
    /// Filling declares pages lost at the first error.
    GiveUpAtOnce,
    /// Headers of openings that do not count are kept.
    LeaveStrayHeaders,
    /// A stripe that is written while it is filled in is not filled in again.
    FillWithoutRecheck,
    /// A page that cannot be rebuilt is filled in as an empty page.
    LostAsEmpty,
    /// An extent is released while a member is being filled with it.
    ReleaseUnderFill,
    /// A sync leaves one member out.
    SyncAllButOne,
    /// Openings are identified by generation alone, although a generation may be assigned twice.
    RunsWithoutNumbers,
    /// With windows: a stripe leaves `plm_cache` before its members have it.
    DropImagesEarly,
    /// With windows: a sync does not wait for slots.
    SyncWithoutSlots,
    /// With windows: reads go to the page's home regardless of its window.
    ReadBusyMembers,
    /// With windows: a slot ends with writes in progress.
    EndSlotsEarly,
    /// A rebuild uses a member's old data of an earlier life of a stripe, before the member is
    /// filled: old data combined with new parity.
    MixGenerations,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 24] = [
        Self::ParityNotRotated,
        Self::ServeBeforeFilled,
        Self::BelieveStaleExtents,
        Self::ParityLeftOut,
        Self::ForgetAbsence,
        Self::NoteTooMany,
        Self::UnreadAsBlank,
        Self::UnreadAsUnwritten,
        Self::ForgetOpenings,
        Self::AcknowledgeBeforeNote,
        Self::BelieveReleased,
        Self::BelieveReplaced,
        Self::GiveUpAtOnce,
        Self::LeaveStrayHeaders,
        Self::FillWithoutRecheck,
        Self::LostAsEmpty,
        Self::ReleaseUnderFill,
        Self::SyncAllButOne,
        Self::RunsWithoutNumbers,
        Self::DropImagesEarly,
        Self::SyncWithoutSlots,
        Self::ReadBusyMembers,
        Self::EndSlotsEarly,
        Self::MixGenerations,
    ];
}

impl Fault {
    /// Whether the fault shows only if reads, writes or syncs of several members fail.
    pub fn is_of_failures(self) -> bool {
        matches!(
            self,
            Self::NoteTooMany
                | Self::UnreadAsBlank
                | Self::UnreadAsUnwritten
                | Self::ForgetOpenings
                | Self::AcknowledgeBeforeNote
                | Self::BelieveReleased
                | Self::BelieveReplaced
                | Self::GiveUpAtOnce
                | Self::LeaveStrayHeaders
        )
    }

    /// Whether the fault shows only with windows.
    pub fn is_of_windows(self) -> bool {
        matches!(
            self,
            Self::DropImagesEarly
                | Self::SyncWithoutSlots
                | Self::ReadBusyMembers
                | Self::EndSlotsEarly
                | Self::MixGenerations
        )
    }
}

/// The planted fault, if any.
pub type Planted = runtime::planted::Planted<Fault>;
