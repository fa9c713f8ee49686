//! The slow log: the most recent commands that took long.

use std::collections::VecDeque;
use std::sync::Mutex;

/// Maximum number of arguments kept per command, and bytes kept of each.
const ARGUMENTS: usize = 32;
const BYTES: usize = 128;

/// An entry of the slow log.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub id: u64,
    pub at_s: u64,
    pub micros: u64,
    pub arguments: Vec<Vec<u8>>,
    pub client: String,
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Slowlog(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    next: u64,
    last: VecDeque<Slow>,
}

impl Slowlog {
    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("nothing panics with it locked")
    }

    /// Adds a command and keeps the newest `most` entries.
    pub(crate) fn keep(
        &self,
        at_s: u64,
        micros: u64,
        arguments: &[&[u8]],
        client: String,
        most: usize,
    ) {
        let mut kept: Vec<Vec<u8>> =
            arguments.iter().take(ARGUMENTS).map(|argument| shortened(argument)).collect();
        if arguments.len() > ARGUMENTS {
            let more = arguments.len() - ARGUMENTS + 1;
            kept[ARGUMENTS - 1] = format!("... ({more} more arguments)").into_bytes();
        }
        let mut inner = self.inner();
        let id = inner.next;
        inner.next += 1;
        inner.last.push_front(Slow { id, at_s, micros, arguments: kept, client });
        inner.last.truncate(most);
    }

    /// Returns up to `most` entries, newest first.
    pub(crate) fn last(&self, most: usize) -> Vec<Slow> {
        self.inner().last.iter().take(most).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.inner().last.len()
    }

    pub(crate) fn clear(&self) {
        self.inner().last.clear();
    }
}

fn shortened(argument: &[u8]) -> Vec<u8> {
    if argument.len() <= BYTES {
        return argument.to_vec();
    }
    let more = argument.len() - BYTES;
    [&argument[..BYTES], format!("... ({more} more bytes)").as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_short_and_so_is_what_is_in_it() {
        let slowlog = Slowlog::default();
        for _ in 0..5 {
            slowlog.keep(1, 20_000, &[&[b'a'; 500][..]; 100], String::new(), 3);
        }
        let last = slowlog.last(10);
        assert_eq!((last.len(), last[0].id, last[0].arguments.len()), (3, 4, ARGUMENTS));
        assert!(last[0].arguments.iter().all(|argument| argument.len() < 200));
        slowlog.clear();
        assert_eq!(slowlog.len(), 0);
    }
}
