//! A panic inside a runtime that several threads share: all waiting threads are notified.

use std::cell::Cell;
use std::future::{Ready, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use runtime::{Handle, Nanos, RealOptions, Shared};

/// The object in the runtime; it is not `Send`.
struct Root {
    handle: Handle,
    waiting: Rc<Cell<u32>>,
}

fn shared() -> Arc<Shared<Root>> {
    let shared = Shared::new(RealOptions::default(), |handle| {
        let handle = handle.clone();
        async move { Root { handle, waiting: Rc::default() } }
    });
    Arc::new(shared.expect("any way will do"))
}

/// Runs `run` on another thread. The channel receives whether it panicked, once it has ended.
#[expect(clippy::disallowed_methods, reason = "another thread is what this is about")]
fn on_another_thread(run: impl FnOnce() + Send + 'static) -> mpsc::Receiver<bool> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let panicked = catch_unwind(AssertUnwindSafe(run)).is_err();
        sender.send(panicked).expect("the test waits");
    });
    receiver
}

/// Returns whether the thread panicked. The timeout, longer than any machine needs, detects a
/// thread that hangs.
fn panicked(thread: &mpsc::Receiver<bool>) -> bool {
    thread.recv_timeout(Duration::from_mins(5)).expect("it does not wait for ever")
}

/// Starts two threads that wait: for an event that never happens, and for a distant instant.
fn waiters(shared: &Arc<Shared<Root>>) -> [mpsc::Receiver<bool>; 2] {
    let threads = [false, true].map(|sleeps| {
        let shared = Arc::clone(shared);
        on_another_thread(move || {
            shared.call(|root| {
                let (handle, waiting) = (root.handle.clone(), Rc::clone(&root.waiting));
                async move {
                    waiting.set(waiting.get() + 1);
                    if sleeps {
                        handle.sleep(Nanos::from_millis(1_000_000_000)).await;
                    } else {
                        pending::<()>().await;
                    }
                }
            });
        })
    });
    while shared.look(|root| root.waiting.get()) < 2 {}
    threads
}

/// Checks that all waiting threads panic, and that later calls panic, too.
fn is_told_to_all(shared: &Arc<Shared<Root>>, waiting: [mpsc::Receiver<bool>; 2]) {
    assert_eq!(waiting.map(|thread| panicked(&thread)), [true, true]);
    assert!(shared.is_broken());
    let late = Arc::clone(shared);
    assert!(panicked(&on_another_thread(move || late.call(|_| async {}))));
    let late = Arc::clone(shared);
    assert!(panicked(&on_another_thread(move || late.look(|_| ()))));
}

fn drive(shared: &Arc<Shared<Root>>) -> mpsc::Receiver<bool> {
    let driver = Arc::clone(shared);
    on_another_thread(move || driver.drive())
}

#[test]
fn a_task_that_panics_is_told_to_all_who_wait() {
    let shared = shared();
    let driver = drive(&shared);
    let waiting = waiters(&shared);
    shared.call(|root| {
        let handle = root.handle.clone();
        drop(root.handle.spawn("panics", async move {
            handle.sleep(Nanos::from_millis(2)).await;
            panic!("as the test wants");
        }));
        async {}
    });
    is_told_to_all(&shared, waiting);
    let _either_polled_it = panicked(&driver);
}

#[test]
fn a_caller_that_panics_within_is_told_to_all_who_wait_and_to_who_drives() {
    let shared = shared();
    let driver = drive(&shared);
    let waiting = waiters(&shared);
    let caller = Arc::clone(&shared);
    let caller = on_another_thread(move || {
        caller.call(|_| -> Ready<()> { panic!("as the test wants") });
    });
    assert!(panicked(&caller));
    is_told_to_all(&shared, waiting);
    assert!(!panicked(&driver), "it returns");
}

/// Accesses the runtime while its thread unwinds, and panics there.
struct PanicsWithin(Arc<Shared<Root>>);

impl Drop for PanicsWithin {
    fn drop(&mut self) {
        let look = || self.0.look(|_| panic!("as the test wants"));
        assert!(catch_unwind(AssertUnwindSafe(look)).is_err());
    }
}

#[test]
fn a_panic_within_counts_on_a_thread_that_unwinds_as_well() {
    let shared = shared();
    let driver = drive(&shared);
    let waiting = waiters(&shared);
    let last = PanicsWithin(Arc::clone(&shared));
    let unwinding = on_another_thread(move || {
        let _last = last;
        panic!("as the test wants, too");
    });
    assert!(panicked(&unwinding));
    is_told_to_all(&shared, waiting);
    assert!(!panicked(&driver), "it returns");
}
