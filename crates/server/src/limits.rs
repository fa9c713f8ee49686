//! How many files the system lets this process have open: each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files of the store, and what else is open.
const BESIDES: u64 = 128;

/// What the system lets this process have open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenFiles {
    /// Files before; none for no limit.
    pub before: Option<u64>,
    /// Files from now on.
    pub now: Option<u64>,
    /// Connections that there is room for, of those that were asked for.
    pub connections: usize,
}

impl OpenFiles {
    /// Raises the limit of this process to what so many connections need, as far as it may.
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

/// The limit that is enough for so many files, if the system allows it.
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
