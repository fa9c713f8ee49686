//! Telling the processor what will be read soon.
//!
//! A simulation of a large drive reads its memory at random, and most of its wall time goes into
//! waiting for it. Where an address is known some events before it is used, a hint lets the wait
//! overlap with other work. Results never depend on it.

/// Hints that `item` will be read soon. Costs nothing where the platform has no such hint.
#[inline]
pub fn prefetch<T>(item: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that neither faults nor changes anything a program can see;
    // the address is that of a live reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}
