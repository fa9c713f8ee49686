//! The LSM engine.
mod value;
pub use value::Value;
