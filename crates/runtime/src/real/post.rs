//! Letters from other threads to the executor: tasks to wake, closures to run, I/O that threads
//! have completed.
//!
//! The executor checks for letters once per turn, and takes a lock only if there are any. Wakers
//! find the post by the number of their runtime, in a global list. Wakes on the thread that runs
//! the runtime do not use the post.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, mpsc};

use super::bell::Bell;
use super::op::Op;
use crate::{Handle, waker};

/// One letter to the executor.
pub(crate) enum Letter {
    Wake(u32),
    Run(Box<dyn FnOnce(&Handle) + Send>),
    /// The operation for this place has ended, with this result.
    Ended(u32, Op, std::io::Result<usize>),
}

/// See the module's documentation.
pub(crate) struct Post {
    runtime: u32,
    /// `None` once the executor has ended.
    letters: Mutex<Option<Vec<Letter>>>,
    has_letters: AtomicBool,
    pub(crate) bell: Bell,
}

static OFFICES: RwLock<Vec<Arc<Post>>> = RwLock::new(Vec::new());

/// Wakes `task` of `runtime`, which this thread does not run. Does nothing unless it is a runtime
/// in real time that still exists.
pub(crate) fn wake_elsewhere(runtime: u32, task: u32) {
    let offices = OFFICES.read().expect("nothing panics with the list locked");
    if let Some(post) = offices.iter().find(|post| post.runtime == runtime) {
        let post = Arc::clone(post);
        drop(offices);
        let _gone = post.send(Letter::Wake(task));
    }
}

impl Post {
    /// Creates the post of a runtime, and enters it in the list.
    pub(crate) fn open(runtime: u32, bell: Bell) -> Arc<Self> {
        let letters = Mutex::new(Some(Vec::new()));
        let post = Arc::new(Self { runtime, letters, has_letters: AtomicBool::new(false), bell });
        let mut offices = OFFICES.write().expect("nothing panics with the list locked");
        offices.push(Arc::clone(&post));
        post
    }

    pub(crate) fn runtime(&self) -> u32 {
        self.runtime
    }

    pub(crate) fn has_letters(&self) -> bool {
        self.has_letters.load(Ordering::SeqCst)
    }

    /// Sends a letter, and wakes the executor if it sleeps. Returns the letter if the runtime has
    /// ended.
    pub(crate) fn send(&self, letter: Letter) -> Result<(), Letter> {
        let mut letters = self.letters.lock().expect("nothing panics with the letters locked");
        match &mut *letters {
            None => return Err(letter),
            Some(letters) => letters.push(letter),
        }
        drop(letters);
        self.has_letters.store(true, Ordering::SeqCst);
        self.bell.ring();
        Ok(())
    }

    /// Takes all letters.
    pub(crate) fn collect(&self) -> Vec<Letter> {
        if !self.has_letters() {
            return Vec::new();
        }
        self.has_letters.store(false, Ordering::SeqCst);
        let mut letters = self.letters.lock().expect("nothing panics with the letters locked");
        letters.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Closes the post. Returns the remaining letters.
    pub(crate) fn close(&self) -> Option<Vec<Letter>> {
        let mut offices = OFFICES.write().expect("nothing panics with the list locked");
        offices.retain(|post| post.runtime != self.runtime);
        drop(offices);
        self.letters.lock().expect("nothing panics with the letters locked").take()
    }
}

/// The runtime has ended, and the request with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the runtime has ended; open it again")
    }
}

impl std::error::Error for Gone {}

/// A handle to a runtime in real time, for other threads. Clones refer to the same runtime.
#[derive(Clone)]
pub struct Remote {
    post: Arc<Post>,
}

impl Remote {
    pub(crate) fn new(post: Arc<Post>) -> Self {
        Self { post }
    }

    pub(crate) fn office(&self) -> &Post {
        &self.post
    }

    /// Runs `run` on the thread of the runtime, between two tasks, after the closures posted
    /// before.
    ///
    /// # Errors
    /// Returns [`Gone`] if the runtime has ended.
    pub fn post(&self, run: impl FnOnce(&Handle) + Send + 'static) -> Result<(), Gone> {
        self.post.send(Letter::Run(Box::new(run))).map_err(|_| Gone)
    }

    /// Runs the future that `make` returns as a task of the runtime, and waits for its result.
    ///
    /// # Errors
    /// Returns [`Gone`] if the runtime ends before the task does.
    ///
    /// # Panics
    /// Panics if called from a task of the runtime, which would wait for itself.
    pub fn call<T, F>(
        &self,
        name: &'static str,
        make: impl FnOnce(&Handle) -> F + Send + 'static,
    ) -> Result<T, Gone>
    where
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        assert!(!waker::is_entered(self.post.runtime), "`{name}`: a task would wait for itself");
        let (sender, receiver) = mpsc::sync_channel(1);
        self.post(move |handle| {
            let future = make(handle);
            drop(handle.spawn(name, async move {
                // The caller may be gone; then the result is not needed.
                let _ = sender.send(future.await);
            }));
        })?;
        receiver.recv().map_err(|_| Gone)
    }
}
