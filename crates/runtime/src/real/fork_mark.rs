//! Whether this process is a copy, made by `fork`, of the one that something was made in.
//!
//! To ask the system who one is takes 0.1 to 0.2 us, a hundredth of what a call of a store takes of the processor at best. A page of memory that the
//! kernel hands to the copy with zeros (`MADV_WIPEONFORK`) says it for a read.

use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The kernel rounds it up to a page.
const BYTES: usize = 4096;

/// A mark of the process that made it, which a copy of the process does not have.
pub struct ForkMark(Kind);

enum Kind {
    /// One byte that is set, until the kernel wipes it.
    Page(NonNull<u8>),
    /// Of a kernel that wipes nothing: the number of the process.
    Number(u32),
}

// SAFETY: the byte is written before anybody else has it, and only read then; the kernel changes it in another process.
unsafe impl Send for ForkMark {}
// SAFETY: as above.
unsafe impl Sync for ForkMark {}

impl ForkMark {
    /// Marks this process.
    pub fn new() -> Self {
        Self(page().map_or_else(|| Kind::Number(std::process::id()), Kind::Page))
    }

    /// Whether this is another process than the one that made it.
    pub fn is_lost(&self) -> bool {
        match self.0 {
            // SAFETY: the page is there as long as the mark. The compiler does not know who changes it.
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
            // SAFETY: it was mapped so, and nobody has it any more.
            let _ = unsafe { munmap(page.as_ptr().cast(), BYTES) };
        }
    }
}

/// A page that is wiped by a fork, marked; nothing if the system has none.
fn page() -> Option<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: new memory, anywhere.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), BYTES, access, MapFlags::PRIVATE) };
    let page = NonNull::new(page.ok()?.cast::<u8>())?;
    // SAFETY: it is all of what was mapped, and nobody else has it.
    if unsafe { madvise(page.as_ptr().cast(), BYTES, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: as above.
        let _ = unsafe { munmap(page.as_ptr().cast(), BYTES) };
        return None;
    }
    // SAFETY: it may be written to, and is as long as this.
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
