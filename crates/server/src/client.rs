//! Connections, as the whole server knows them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

/// What is known of a connection.
pub(crate) struct Client {
    pub id: u64,
    address: String,
    name: Mutex<Names>,
    begun_ms: u64,
    last_ms: AtomicU64,
    /// Bytes that its buffers hold.
    bytes: AtomicUsize,
    /// Asks it to end.
    pub end: Notify,
}

#[derive(Default)]
struct Names {
    name: String,
    library: String,
    version: String,
}

impl Client {
    fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        self.name.lock().expect("nothing panics with it locked")
    }

    pub(crate) fn name(&self) -> String {
        self.names().name.clone()
    }

    pub(crate) fn set_name(&self, name: &str) {
        name.clone_into(&mut self.names().name);
    }

    pub(crate) fn set_library(&self, name: Option<&str>, version: Option<&str>) {
        let mut names = self.names();
        if let Some(name) = name {
            name.clone_into(&mut names.library);
        }
        if let Some(version) = version {
            version.clone_into(&mut names.version);
        }
    }

    pub(crate) fn has_spoken(&self, now: u64) {
        self.last_ms.store(now, Ordering::Relaxed);
    }

    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// As CLIENT LIST has it.
    pub(crate) fn line(&self, now: u64) -> String {
        let names = self.names();
        let age = |since: u64| now.saturating_sub(since) / 1_000;
        format!(
            "id={} addr={} name={} age={} idle={} db=0 tot-mem={} lib-name={} lib-ver={}\n",
            self.id,
            self.address,
            names.name,
            age(self.begun_ms),
            age(self.last_ms.load(Ordering::Relaxed)),
            self.bytes.load(Ordering::Relaxed),
            names.library,
            names.version,
        )
    }
}

/// All connections.
pub(crate) struct Clients {
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    last: AtomicU64,
    bytes: AtomicUsize,
    most_bytes: usize,
}

impl Clients {
    pub(crate) fn new(most_bytes: usize) -> Self {
        let all = Mutex::default();
        Self { all, last: AtomicU64::new(0), bytes: AtomicUsize::new(0), most_bytes }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.all.lock().expect("nothing panics with it locked")
    }

    /// One more, unless there are `most` already.
    pub(crate) fn join(&self, address: String, now: u64, most: usize) -> Option<Arc<Client>> {
        let mut all = self.all();
        if all.len() >= most {
            return None;
        }
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client {
            id,
            address,
            name: Mutex::default(),
            begun_ms: now,
            last_ms: AtomicU64::new(now),
            bytes: AtomicUsize::new(0),
            end: Notify::new(),
        });
        all.insert(id, Arc::clone(&client));
        Some(client)
    }

    pub(crate) fn leave(&self, client: &Client) {
        self.all().remove(&client.id);
        self.holds(client, 0);
    }

    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// Connections since the server began.
    pub(crate) fn joined(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Bytes in the buffers of all.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A connection's buffers hold so many bytes now. If all together hold too many, the one that holds the most is asked to end.
    pub(crate) fn holds(&self, client: &Client, bytes: usize) {
        let before = client.bytes.swap(bytes, Ordering::Relaxed);
        if before == bytes {
            return;
        }
        // What wraps here comes back with the other half.
        let change = bytes.wrapping_sub(before);
        let all = self.bytes.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
        if bytes > before && all > self.most_bytes {
            let largest =
                self.all().values().max_by_key(|c| c.bytes.load(Ordering::Relaxed)).cloned();
            if let Some(largest) = largest {
                largest.end.notify_one();
            }
        }
    }

    pub(crate) fn lines(&self, now: u64) -> String {
        let mut lines = String::new();
        for client in self.all().values() {
            let _ = write!(lines, "{}", client.line(now));
        }
        lines
    }

    /// Asks one to end; whether there is such a one.
    pub(crate) fn kill(&self, id: u64) -> bool {
        let client = self.all().get(&id).cloned();
        client.inspect(|client| client.end.notify_one()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_goes() {
        let clients = Clients::new(1_000);
        let join = || clients.join(String::new(), 0, 3).expect("there is room");
        let (small, large, last) = (join(), join(), join());
        assert!(clients.join(String::new(), 0, 3).is_none());
        clients.holds(&small, 300);
        clients.holds(&large, 600);
        clients.holds(&last, 200);
        assert_eq!(clients.bytes(), 1_100);
        clients.leave(&large);
        assert_eq!((clients.bytes(), clients.count(), clients.joined()), (500, 2, 3));
        let mut ends = std::pin::pin!(large.end.notified());
        let waker = std::task::Waker::noop();
        assert!(ends.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_ready());
    }
}
