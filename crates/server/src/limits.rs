//! Limits of a server: the length of an argument, and the open files of this process, of which each
//! connection needs one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum length of an argument, in bytes. Arguments that are too long for the store but not for
/// this limit get an error reply; longer ones end the connection.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 8 << 20;

/// Files reserved for the store and everything else but connections.
const BESIDES: u64 = 128;

/// The limit on open files, before and after raising it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenFiles {
    /// The limit before; `None` if unlimited.
    pub before: Option<u64>,
    /// The limit now; `None` if unlimited.
    pub now: Option<u64>,
    /// The number of requested connections that fit under the limit.
    pub connections: usize,
}

impl OpenFiles {
    /// Raises the limit of this process to the need of `connections`, as far as the hard limit
    /// permits.
    pub fn allow(connections: usize) -> Self {
        let limit = getrlimit(Resource::Nofile);
        let wanted = wanted(limit, connections as u64 + BESIDES);
        let is_raised = wanted != limit.current
            && setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum: limit.maximum })
                .is_ok();
        let now = if is_raised { wanted } else { limit.current };
        let room = now.map_or(u64::MAX, |now| now.saturating_sub(BESIDES).max(1));
        let connections = connections.min(usize::try_from(room).unwrap_or(usize::MAX));
        Self { before: limit.current, now, connections }
    }
}

/// Returns the soft limit to set for `files` open files, within the hard limit.
fn wanted(limit: Rlimit, files: u64) -> Option<u64> {
    let current = limit.current?;
    Some(current.max(files.min(limit.maximum.unwrap_or(u64::MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_raised_as_far_as_they_may() {
        let limit = |current, maximum| Rlimit { current, maximum };
        assert_eq!(wanted(limit(Some(1_024), Some(20_000)), 10_128), Some(10_128));
        assert_eq!(wanted(limit(Some(1_024), Some(4_096)), 10_128), Some(4_096));
        assert_eq!(wanted(limit(Some(1_024), None), 10_128), Some(10_128));
        assert_eq!(wanted(limit(Some(20_000), Some(20_000)), 10_128), Some(20_000));
        assert_eq!(wanted(limit(None, None), 10_128), None);
    }

    #[test]
    fn there_is_room_for_what_is_asked_for() {
        let files = OpenFiles::allow(10);
        assert_eq!(files.connections, 10);
        assert!(files.now.is_none() || files.now >= files.before);
    }
}
