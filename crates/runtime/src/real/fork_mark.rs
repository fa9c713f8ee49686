//! Detection of a process that was forked from the one that created an object.
//!
//! Asking the system for the process id takes 0.1 to 0.2 us, a hundredth of the fastest call of a
//! store. Instead, a page of memory that the kernel gives to the child filled with zeros
//! (`MADV_WIPEONFORK`) answers with one memory access.

use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The kernel rounds this up to a page.
const BYTES: usize = 4096;

/// A mark of the process that created it. A forked child loses the mark.
pub struct ForkMark(Kind);

enum Kind {
    /// A byte that is 1 until the kernel wipes it.
    Page(NonNull<u8>),
    /// The process id, if the kernel does not support wiping.
    Number(u32),
}

// SAFETY: the byte is written before it is shared, and only read after that; the kernel changes it
// only in another process.
unsafe impl Send for ForkMark {}
// SAFETY: as above.
unsafe impl Sync for ForkMark {}

impl ForkMark {
    /// Marks this process.
    pub fn new() -> Self {
        Self(page().map_or_else(|| Kind::Number(std::process::id()), Kind::Page))
    }

    /// Whether this is not the process that created the mark.
    pub fn is_lost(&self) -> bool {
        match self.0 {
            // SAFETY: the page exists as long as the mark. Volatile, because the kernel changes it
            // unseen by the compiler.
            Kind::Page(page) => unsafe { page.read_volatile() == 0 },
            Kind::Number(number) => std::process::id() != number,
        }
    }
}

impl Default for ForkMark {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ForkMark {
    fn drop(&mut self) {
        if let Kind::Page(page) = self.0 {
            // SAFETY: the page was mapped with this length, and no reference to it is left.
            let _ = unsafe { munmap(page.as_ptr().cast(), BYTES) };
        }
    }
}

/// Returns a marked page that a fork wipes; `None` if the system does not support it.
fn page() -> Option<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: maps new memory at an address that the kernel chooses.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), BYTES, access, MapFlags::PRIVATE) };
    let page = NonNull::new(page.ok()?.cast::<u8>())?;
    // SAFETY: the range is the whole mapping, and only this function uses it.
    if unsafe { madvise(page.as_ptr().cast(), BYTES, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: as above.
        let _ = unsafe { munmap(page.as_ptr().cast(), BYTES) };
        return None;
    }
    // SAFETY: the page is writable and has at least one byte.
    unsafe { page.write(1) };
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_its_own_mark() {
        let mark = ForkMark::new();
        assert!(matches!(mark.0, Kind::Page(_)), "this kernel wipes pages");
        assert!(!mark.is_lost());
        let number = std::process::id();
        assert!(
            !ForkMark(Kind::Number(number)).is_lost()
                && ForkMark(Kind::Number(number + 1)).is_lost()
        );
    }
}
