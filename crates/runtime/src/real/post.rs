//! What comes to the executor from other threads.
//!
//! Tasks to wake, closures to run, I/O that threads have carried out. It is looked through once a turn; a
//! lock is taken only if there is something. Wakers find the post by the number of their runtime, in a list
//! that is for this way only: wakes on the thread that runs the runtime do not come here.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, mpsc};

use super::bell::Bell;
use super::op::Op;
use crate::{Handle, waker};

/// One thing for the executor.
pub(crate) enum Letter {
    Wake(u32),
    Run(Box<dyn FnOnce(&Handle) + Send>),
    /// The operation in this place was carried out, with this result.
    Ended(u32, Op, std::io::Result<usize>),
}

/// See the module's documentation.
pub(crate) struct Post {
    runtime: u32,
    /// `None` once nobody will look again.
    letters: Mutex<Option<Vec<Letter>>>,
    has_letters: AtomicBool,
    pub(crate) bell: Bell,
}

static OFFICES: RwLock<Vec<Arc<Post>>> = RwLock::new(Vec::new());

/// Wakes `task` of `runtime`, which this thread does not run, if it is one in real time that still is.
pub(crate) fn wake_elsewhere(runtime: u32, task: u32) {
    let offices = OFFICES.read().expect("nothing panics with the list locked");
    if let Some(post) = offices.iter().find(|post| post.runtime == runtime) {
        let post = Arc::clone(post);
        drop(offices);
        let _gone = post.send(Letter::Wake(task));
    }
}

impl Post {
    /// The post of a runtime, where wakers find it.
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

    /// Leaves something for the executor, and wakes it if it sleeps. Gives it back if the runtime is gone.
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

    /// Takes what has come.
    pub(crate) fn collect(&self) -> Vec<Letter> {
        if !self.has_letters() {
            return Vec::new();
        }
        self.has_letters.store(false, Ordering::SeqCst);
        let mut letters = self.letters.lock().expect("nothing panics with the letters locked");
        letters.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Nobody looks any more. Returns what was left.
    pub(crate) fn close(&self) -> Option<Vec<Letter>> {
        let mut offices = OFFICES.write().expect("nothing panics with the list locked");
        offices.retain(|post| post.runtime != self.runtime);
        drop(offices);
        self.letters.lock().expect("nothing panics with the letters locked").take()
    }
}

/// The runtime has ended, and with it what was asked of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the runtime has ended; open it again")
    }
}

impl std::error::Error for Gone {}

/// A runtime in real time, as other threads hold it. Clones are the same.
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

    /// Has `run` run on the thread of the runtime, between two tasks, after what was posted before.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn post(&self, run: impl FnOnce(&Handle) + Send + 'static) -> Result<(), Gone> {
        self.post.send(Letter::Run(Box::new(run))).map_err(|_| Gone)
    }

    /// Runs the future that `make` makes as a task of the runtime, and waits for its result.
    ///
    /// # Errors
    /// [`Gone`] if the runtime ends before the task does.
    ///
    /// # Panics
    /// If a task of the runtime calls it, which would wait for itself.
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
                // Whoever asked may be gone; then nobody wants to know.
                let _ = sender.send(future.await);
            }));
        })?;
        receiver.recv().map_err(|_| Gone)
    }
}
