//! See `pages::planted`.

pub use pages::planted::{Fault, Planted};
