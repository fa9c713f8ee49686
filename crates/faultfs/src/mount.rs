//! The mount: power on and off.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use fuser::{BackgroundSession, Config, MountOption};
use runtime::Rng;

use crate::disk::{Disk, Node, ROOT};
use crate::faults::Faults;
use crate::file::BLOCK_BYTES;
use crate::requests::Requests;

/// Threads that answer: so many writes are under way side by side.
const THREADS: usize = 6;

/// What requests and the test share.
pub(crate) struct State {
    pub disk: Disk,
    /// What the last cut left, while power is off.
    pub left: Option<Disk>,
    /// What the one before left.
    pub was_left: Disk,
    pub faults: Faults,
    /// Requests that change something, so far.
    pub changes: u64,
    /// Power fails instead of the request with this number.
    pub cut_at: Option<u64>,
    pub rng: Rng,
}

impl State {
    /// Power fails now. Nothing is answered any more but that it failed.
    fn cut(&mut self) {
        if self.left.is_none() {
            self.left = Some(self.disk.after_cut(&mut self.rng));
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.left.is_some()
    }

    /// A request that changes something has come. False if power fails instead.
    pub(crate) fn count(&mut self) -> bool {
        self.changes += 1;
        if self.cut_at.is_some_and(|at| self.changes >= at) {
            self.cut();
        }
        !self.is_off()
    }
}

pub(crate) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no request panics")
}

/// A file system that is mounted. Dropping it unmounts it.
pub struct FaultFs {
    session: Option<BackgroundSession>,
    state: Arc<Mutex<State>>,
    path: PathBuf,
}

impl FaultFs {
    /// Mounts an empty one at `path`, a directory that is made if there is none.
    ///
    /// # Errors
    /// What the system says: there may be no FUSE, or no leave to mount.
    pub fn mount(path: &Path, seed: u64) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let state = State {
            disk: Disk::new(),
            left: None,
            was_left: Disk::new(),
            faults: Faults::default(),
            changes: 0,
            cut_at: None,
            rng: Rng::derive(seed, "power cuts"),
        };
        let state = Arc::new(Mutex::new(state));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("faultfs".to_owned())];
        config.n_threads = Some(THREADS);
        let requests = Requests::new(Arc::clone(&state), seed);
        let session = fuser::spawn_mount(requests, path, &config)?;
        Ok(Self { session: Some(session), state, path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has power fail instead of the `requests`-th request from now on that changes something or syncs.
    pub fn cut_after(&self, requests: u64) {
        let mut state = lock(&self.state);
        state.cut_at = Some(state.changes + requests);
    }

    /// Power fails now.
    pub fn cut(&self) {
        lock(&self.state).cut();
    }

    /// Whoever uses it is ended now, as a process that is killed: what was written is there, and no more durable than it was. Nothing is answered any more,
    /// until [`Self::power_on`].
    pub fn end_users(&self) {
        let mut state = lock(&self.state);
        if state.left.is_none() {
            state.left = Some(state.disk.after_end_of_users());
        }
    }

    /// Whether power has failed.
    pub fn is_off(&self) -> bool {
        lock(&self.state).is_off()
    }

    /// Goes on with what a cut has left, which [`Self::save_left`] writes out; no cut is due any more. Whoever had files open has them no more.
    pub fn power_on(&self) {
        let mut state = lock(&self.state);
        state.cut_at = None;
        if let Some(left) = state.left.take() {
            state.was_left = left.clone();
            state.disk = left;
        }
    }

    /// What goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        lock(&self.state).faults = faults;
    }

    /// Bytes that are in use, as [`Faults::room`] counts them.
    pub fn bytes_in_use(&self) -> u64 {
        lock(&self.state).disk.blocks_in_use() * BLOCK_BYTES
    }

    /// Requests so far that change something or sync.
    pub fn changes(&self) -> u64 {
        lock(&self.state).changes
    }

    /// Writes what there was when power came back to a directory of another file system.
    ///
    /// # Errors
    /// What the system says.
    pub fn save_left(&self, to: &Path) -> io::Result<()> {
        let disk = lock(&self.state).was_left.clone();
        save(&disk, ROOT, to)
    }
}

fn save(disk: &Disk, number: u64, to: &Path) -> io::Result<()> {
    match disk.node(number) {
        Some(Node::Directory(directory)) => {
            std::fs::create_dir_all(to)?;
            directory.names().try_for_each(|(name, node)| save(disk, node, &to.join(name)))
        }
        Some(Node::File(file)) => {
            let out = std::fs::File::create(to)?;
            let mut used = file.used();
            used.try_for_each(|(offset, bytes)| out.write_all_at(bytes, offset))?;
            out.set_len(file.size())
        }
        None => Ok(()),
    }
}

impl Drop for FaultFs {
    fn drop(&mut self) {
        lock(&self.state).cut();
        if let Some(session) = self.session.take()
            && session.umount_and_join().is_err()
        {
            // The kernel has a file of somebody open who has just ended: it is unmounted when that is over.
            let _ = std::process::Command::new("umount").arg("-l").arg(&self.path).status();
        }
        let _ = std::fs::remove_dir(&self.path);
    }
}
