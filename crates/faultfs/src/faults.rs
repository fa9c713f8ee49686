//! Injected faults: requests that fail, and syncs that have no effect.

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Makes a file or directory durable.
    Sync,
    /// Releases or zeroes space.
    Discard,
    /// Creates, renames, removes or resizes files and directories.
    Name,
}

/// A run of failing requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fails {
    /// The kind of the failing requests.
    pub kind: Kind,
    /// Requests of this kind that succeed first.
    pub after: u64,
    /// Requests that then fail.
    pub times: u64,
    /// The error number of the failures.
    pub errno: i32,
}

/// Syncs that report success and have no effect, as if the program had forgotten them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ignored {
    /// Syncs of files with this name are ignored.
    pub file: Option<&'static str>,
    /// Whether syncs of directories are ignored.
    pub directories: bool,
}

/// The injected faults.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Requests that fail.
    pub fails: Vec<Fails>,
    /// The size of the disk in bytes; unlimited if absent.
    pub room: Option<u64>,
    /// Syncs that have no effect.
    pub ignored: Ignored,
}

impl Faults {
    /// Counts a request and returns its error number if it must fail.
    pub(crate) fn meets(&mut self, kind: Kind) -> Option<i32> {
        for fails in self.fails.iter_mut().filter(|fails| fails.kind == kind) {
            if fails.after > 0 {
                fails.after -= 1;
            } else if fails.times > 0 {
                fails.times -= 1;
                return Some(fails.errno);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_requests_fail_and_then_no_more() {
        let mut faults = Faults {
            fails: vec![Fails { kind: Kind::Write, after: 1, times: 2, errno: 5 }],
            ..Faults::default()
        };
        let met: Vec<_> = (0..4).map(|_| faults.meets(Kind::Write)).collect();
        assert_eq!(met, [None, Some(5), Some(5), None]);
        assert_eq!(faults.meets(Kind::Read), None);
    }
}
