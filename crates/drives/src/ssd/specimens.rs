//! Specimens for tests: small drives, and drives of random shape. Compiled for tests only.

pub mod shape;
pub mod small;
