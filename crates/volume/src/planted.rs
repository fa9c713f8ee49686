//! Planted faults: deliberate bugs that the trials must catch. Compiled in only with the feature
//! `planted-faults`, which nothing but tests asks for.

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A rebuild takes the parity for that of the first stripe, wherever it is.
    ParityNotRotated,
    /// A member that is being filled serves what it does not have yet.
    ServeBeforeFilled,
    /// What a member holds of an extent is believed, whichever generation it is of.
    BelieveStaleExtents,
    /// Parity is not written.
    ParityLeftOut,
    /// The header of an extent does not say who missed writes to it.
    ForgetAbsence,
    /// A sync notes all who missed writes, more of them than the layout stands.
    NoteTooMany,
    /// A header that cannot be read is none.
    UnreadAsBlank,
    /// A page of log or manifest that cannot be read is one that was never written.
    UnreadAsUnwritten,
    /// For what an extent was opened, and when, is not known.
    ForgetOpenings,
    /// A sync is acknowledged before it is noted who has not got it.
    AcknowledgeBeforeNote,
    /// An extent that is being released counts, and one that was never synced.
    BelieveReleased,
    /// A member that was replaced and comes back counts.
    BelieveReplaced,
    /// A filling takes pages for lost at once.
    GiveUpAtOnce,
    /// Headers of openings that do not count stay.
    LeaveStrayHeaders,
    /// A stripe that is written while it is being filled in is not filled in again.
    FillWithoutRecheck,
    /// What cannot be rebuilt is filled in as if nothing had been there.
    LostAsEmpty,
    /// An extent is released while a member is still being filled with it.
    ReleaseUnderFill,
    /// A sync leaves one member out.
    SyncAllButOne,
    /// A generation that was given twice tells of the same opening of an extent.
    RunsWithoutNumbers,
    /// With windows: a stripe leaves `plm_cache` before its members have it.
    DropImagesEarly,
    /// With windows: a sync does not wait for slots.
    SyncWithoutSlots,
    /// With windows: reads go where the page lies, whatever window that is in.
    ReadBusyMembers,
    /// With windows: a slot ends with writes under way.
    EndSlotsEarly,
    /// A rebuild takes what a member has of an earlier life of a stripe that it is not filled with yet: old data with
    /// new parity.
    MixGenerations,
}

impl Fault {
    /// Every fault there is.
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
    /// Whether it takes reads, writes or syncs of several members that fail to show.
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

    /// Whether it takes windows to show.
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

/// Which fault is planted, if any.
pub type Planted = planted::Planted<Fault>;
