//! Planted faults: deliberate bugs that the model tests must catch. A crate lists its own in an enum
//! and asks at the place of each whether it is planted. Compiled in only with the feature `test-hooks`,
//! which nothing but tests asks for: without it every answer is a constant.

#![forbid(unsafe_code)]

#[cfg(not(feature = "test-hooks"))]
use std::marker::PhantomData;

/// Which fault of `F` is planted, if any.
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

impl<F: Copy + PartialEq> Planted<F> {
    /// Plants `fault`.
    #[cfg(feature = "test-hooks")]
    pub const fn new(fault: F) -> Self {
        Self { fault: Some(fault) }
    }

    /// Whether this fault is planted. Never without the feature.
    #[cfg(feature = "test-hooks")]
    pub fn has(self, fault: F) -> bool {
        self.fault == Some(fault)
    }

    /// Whether this fault is planted. Never without the feature.
    #[cfg(not(feature = "test-hooks"))]
    #[allow(clippy::unused_self, reason = "the twin above needs it; not all builds are told")]
    pub const fn has(self, _fault: F) -> bool {
        false
    }
}

/// What a panic that a test caught has to say.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic of another kind")
}
