//! Which requests fail, and which syncs do nothing.

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reading a file.
    Read,
    /// Writing one.
    Write,
    /// Making a file or a directory durable.
    Sync,
    /// Giving room back, or zeroing it.
    Discard,
    /// Making, renaming and removing files and directories, and changing their sizes.
    Name,
}

/// Requests that fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fails {
    /// Which.
    pub kind: Kind,
    /// So many of them go well first.
    pub after: u64,
    /// So many fail then.
    pub times: u64,
    /// With this number of the system.
    pub errno: i32,
}

/// Syncs that say that all is well and do nothing: what a program that forgot them would get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ignored {
    /// Of files whose name is this.
    pub file: Option<&'static str>,
    /// Of all directories.
    pub directories: bool,
}

/// What goes wrong.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Requests that fail.
    pub fails: Vec<Fails>,
    /// Bytes that there is room for; no bound if absent.
    pub room: Option<u64>,
    /// Syncs that do nothing.
    pub ignored: Ignored,
}

impl Faults {
    /// Whether this request fails, and how.
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
