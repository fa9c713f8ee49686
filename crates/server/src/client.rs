//! Connections, as the whole server sees them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tokio::sync::Notify;

/// A connection.
pub(crate) struct Client {
    pub id: u64,
    address: String,
    name: Mutex<Names>,
    begun_ms: u64,
    last_ms: AtomicU64,
    /// Bytes held by its buffers.
    bytes: AtomicUsize,
    /// Asks the connection to end.
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

    /// Returns the connection's line of CLIENT LIST.
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

/// All connections, and the memory of their buffers.
pub(crate) struct Clients {
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    last: AtomicU64,
    bytes: AtomicUsize,
    most_bytes: usize,
    /// Wakes the connections that wait for memory.
    freed: Notify,
    waiting: AtomicUsize,
}

/// The answer to a request for memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Grant {
    Given,
    /// A connection that holds more was asked to end; try again later.
    Later,
    /// No other connection holds more than the requested amount.
    Never,
}

impl Clients {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            all: Mutex::default(),
            last: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            most_bytes,
            freed: Notify::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.all.lock().expect("nothing panics with it locked")
    }

    /// Adds a connection, or returns `None` if there are `most` already.
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

    /// Returns the number of connections accepted since the server began.
    pub(crate) fn joined(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Returns the bytes in the buffers of all connections.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Records that a connection's buffers hold `bytes`. If all connections together exceed the
    /// limit, asks the one that holds the most to end.
    ///
    /// For small amounts: before taking much memory, reserve it with [`room`](Self::room).
    pub(crate) fn holds(&self, client: &Client, bytes: usize) {
        let before = client.bytes.swap(bytes, Ordering::SeqCst);
        if before == bytes {
            return;
        }
        // A decrease wraps around here, and wraps back in the wrapping addition below.
        let change = bytes.wrapping_sub(before);
        let all = self.bytes.fetch_add(change, Ordering::SeqCst).wrapping_add(change);
        if bytes < before {
            self.wake();
        } else if all > self.most_bytes
            && let Some(largest) = self.largest()
        {
            largest.end.notify_one();
        }
    }

    /// Whether `bytes` more are within the limit now.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes().saturating_add(bytes) <= self.most_bytes
    }

    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }

    fn largest(&self) -> Option<Arc<Client>> {
        self.all().values().max_by_key(|client| client.bytes.load(Ordering::SeqCst)).cloned()
    }

    /// Reserves `bytes`, the total that a connection is going to hold, before it allocates the
    /// memory. Waits until connections that hold more have ended. Returns false if this connection
    /// has to end instead: it was asked to, or no other connection holds more than `bytes`.
    /// `besides` is reserved too, but is not counted in that comparison.
    pub(crate) async fn room(&self, client: &Client, bytes: usize, besides: usize) -> bool {
        if self.try_room(client, bytes, besides) == Grant::Given {
            return true;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let is_given = self.wait_for_room(client, bytes, besides).await;
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        is_given
    }

    async fn wait_for_room(&self, client: &Client, bytes: usize, besides: usize) -> bool {
        let mut asked_to_end = pin!(client.end.notified());
        loop {
            // Registered before the check below, so that no release of memory is missed.
            let mut freed = pin!(self.freed.notified());
            match self.try_room(client, bytes, besides) {
                Grant::Given => return true,
                Grant::Never => return false,
                Grant::Later => {}
            }
            let is_to_end = poll_fn(|context| match asked_to_end.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => freed.as_mut().poll(context).map(|()| false),
            });
            if is_to_end.await {
                return false;
            }
        }
    }

    /// Returns the bytes to reserve for the replies to a usual batch of commands, whose lengths are
    /// not known before.
    pub(crate) fn allowance(&self, bytes: usize) -> usize {
        bytes.min(self.most_bytes / 64)
    }

    /// Raises the reservation of a connection to `bytes` for a growing reply if there is room now.
    /// Never ends another connection, and leaves a quarter of the memory for the input of other
    /// connections.
    pub(crate) fn take_for_reply(&self, client: &Client, bytes: usize) -> bool {
        self.take_up_to(client, bytes, self.most_bytes - self.most_bytes / 4)
    }

    /// Raises the reservation of a connection to `bytes` if there is room now. Never ends another
    /// connection.
    pub(crate) fn take(&self, client: &Client, bytes: usize) -> bool {
        self.take_up_to(client, bytes, self.most_bytes)
    }

    /// Raises the reservation of a connection to `bytes` if all reservations then stay within
    /// `most`.
    fn take_up_to(&self, client: &Client, bytes: usize, most: usize) -> bool {
        let before = client.bytes.load(Ordering::SeqCst);
        let more = bytes.saturating_sub(before);
        let fits = |all: usize| all.checked_add(more).filter(|all| *all <= most);
        let is_taken = self.bytes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).is_ok();
        if is_taken {
            // Only this connection's own task changes its reservation.
            client.bytes.store(before + more, Ordering::SeqCst);
        }
        is_taken
    }

    fn try_room(&self, client: &Client, bytes: usize, besides: usize) -> Grant {
        if self.take(client, bytes + besides) {
            return Grant::Given;
        }
        match self.largest() {
            Some(largest)
                if largest.id != client.id && largest.bytes.load(Ordering::SeqCst) > bytes =>
            {
                largest.end.notify_one();
                Grant::Later
            }
            _ => Grant::Never,
        }
    }

    /// Returns the CLIENT LIST lines of the connections whose ids `is_wanted` accepts.
    pub(crate) fn lines(&self, now: u64, is_wanted: impl Fn(u64) -> bool) -> String {
        let mut lines = String::new();
        for client in self.all().values().filter(|client| is_wanted(client.id)) {
            let _ = write!(lines, "{}", client.line(now));
        }
        lines
    }

    /// Asks a connection to end. Returns whether it exists.
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

    #[test]
    fn room_is_set_aside_or_waited_for() {
        let clients = Clients::new(1_000);
        let join = || clients.join(String::new(), 0, 3).expect("there is room");
        let (small, large) = (join(), join());
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        let now = |room: &mut std::pin::Pin<&mut dyn Future<Output = bool>>, context: &mut _| {
            room.as_mut().poll(context)
        };
        assert_eq!(clients.try_room(&large, 700, 0), Grant::Given);
        let mut waits: std::pin::Pin<&mut dyn Future<Output = bool>> =
            pin!(clients.room(&small, 300, 100));
        assert_eq!(now(&mut waits, &mut context), Poll::Pending);
        assert_eq!(clients.bytes(), 700, "nothing is held that was not given");
        assert!(pin!(large.end.notified()).poll(&mut context).is_ready(), "the larger one goes");
        clients.leave(&large);
        assert_eq!(now(&mut waits, &mut context), Poll::Ready(true));
        assert_eq!(clients.bytes(), 400);
        // `take` succeeds only if there is room, and ends no connection.
        assert!(!clients.take(&small, 1_001) && clients.bytes() == 400);
        assert!(clients.take(&small, 1_000) && clients.bytes() == 1_000);
        // A connection that would itself hold the most gets no memory.
        assert_eq!(clients.try_room(&small, 1_001, 0), Grant::Never);
    }
}
