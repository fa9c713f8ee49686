//! Planted faults: deliberate bugs that the model tests must catch. A crate lists its faults in an
//! enum, and the code at the place of each fault asks whether it is planted. Compiled in only with
//! the feature `test-hooks`, which only tests enable; without it every answer is a constant.

#[cfg(not(feature = "test-hooks"))]
use std::marker::PhantomData;

/// The planted fault of type `F`, if any.
#[derive(Clone, Copy, Debug)]
pub struct Planted<F> {
    #[cfg(feature = "test-hooks")]
    fault: Option<F>,
    #[cfg(not(feature = "test-hooks"))]
    nothing: PhantomData<F>,
}

impl<F> Default for Planted<F> {
    /// No fault.
    fn default() -> Self {
        #[cfg(feature = "test-hooks")]
        return Self { fault: None };
        #[cfg(not(feature = "test-hooks"))]
        return Self { nothing: PhantomData };
    }
}

#[cfg(feature = "test-hooks")]
impl<F> From<Option<F>> for Planted<F> {
    fn from(fault: Option<F>) -> Self {
        Self { fault }
    }
}

impl<F: Copy + PartialEq> Planted<F> {
    /// Plants `fault`.
    #[cfg(feature = "test-hooks")]
    pub const fn new(fault: F) -> Self {
        Self { fault: Some(fault) }
    }

    /// Whether this fault is planted. Always false without the feature `test-hooks`.
    #[cfg(feature = "test-hooks")]
    pub fn has(self, fault: F) -> bool {
        self.fault == Some(fault)
    }

    /// Whether this fault is planted. Always false without the feature `test-hooks`.
    #[cfg(not(feature = "test-hooks"))]
    #[allow(clippy::unused_self, reason = "the twin above needs it; not all builds are told")]
    pub const fn has(self, _fault: F) -> bool {
        false
    }
}

/// Returns the message of a caught panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic of another kind")
}
