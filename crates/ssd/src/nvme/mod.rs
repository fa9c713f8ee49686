//! Commands and data structures of the NVMe standard that the drive speaks.
