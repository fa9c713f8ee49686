//! Prefetch hints for the processor.
//!
//! A simulation of a large drive reads its memory at random, and spends most of its wall time on
//! cache misses. If an address is known some events before it is used, a hint lets the miss overlap
//! with other work. Results never depend on it.

/// Hints that `item` will be read soon. Does nothing on platforms without such a hint.
#[inline]
pub fn prefetch<T>(item: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that neither faults nor changes anything a program can observe;
    // the address is that of a live reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}
