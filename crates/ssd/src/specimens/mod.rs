//! Specimens for tests: drives that are small, or of random shape. Compiled for tests only.

pub mod shape;
pub mod small;
