//! The options with which a device is created or opened.

use crate::error::FileError;

/// Whether I/O bypasses the operating system's page cache (direct I/O).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DirectIo {
    /// Uses direct I/O if the file system supports it.
    #[default]
    Probe,
    /// Requires direct I/O: opening fails without it.
    On,
    /// Never uses direct I/O.
    Off,
}

/// The effect of a discard. A way that the file system or drive does not support is replaced by the
/// next variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discards {
    /// Zeros the blocks and keeps their space allocated: a device that was created with all its
    /// space never runs out of it.
    #[default]
    KeepRoom,
    /// Punches holes: other files can use the space, and the drive below is notified. A later write
    /// may find the disk full.
    GiveBack,
    /// Writes zeros.
    WriteZeros,
    /// Does nothing, as a drive may do: the old contents stay until the next write, which then
    /// costs the file system no extra work. For users that detect old contents by themselves.
    Ignore,
}

/// The time at which a new file gets its disk space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RoomOf {
    /// At creation: writes never find the disk full, unless discards release space.
    #[default]
    Whole,
    /// As the file is written, 16 MiB at a time: the disk may be full by then. The space is
    /// allocated ahead of the write, because writing into a hole blocks reads of the file
    /// meanwhile.
    Written,
}

/// Options for creating or opening a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices, by name")]
pub struct FileOptions {
    /// Whether to use direct I/O.
    pub direct: DirectIo,
    /// The effect of discards.
    pub discards: Discards,
    /// The time at which new files get their space.
    pub room: RoomOf,
    /// Whether the device refuses writes; it may then be on read-only media. The file's holes are
    /// recorded at open and read without I/O, because no writer fills them.
    pub read_only: bool,
    /// Minimum file size in bytes. A shorter file is extended by a hole, which is durable when the
    /// open completes. Drives keep their size.
    pub least_bytes: u64,
    /// Whether a missing file is opened as a lost set, with the size of the smallest other set.
    /// Fails if all files are missing.
    pub bears_missing: bool,
    /// Whether a file on a read-only file system is opened as a read-only set.
    pub bears_read_only: bool,
    /// Whether a file that cannot be opened for any reason, except that another process has it
    /// open, becomes a lost set. A file shorter than the longest gets that size; reads past its end
    /// fail. For salvage tools that do not write.
    pub bears_damage: bool,
}

impl FileOptions {
    /// Whether a file that fails to open with this error becomes a lost set.
    pub(crate) fn bears(&self, error: &FileError) -> bool {
        match error {
            FileError::Missing(_) => self.bears_missing,
            FileError::InUse(_) => false,
            _ => self.bears_damage,
        }
    }
}
