//! Block devices on real files.
