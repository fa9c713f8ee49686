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

/// Threads that serve requests, and so the maximum number of concurrent writes.
const THREADS: usize = 6;

/// The state that requests and the test share.
pub(crate) struct State {
    pub disk: Disk,
    /// The state that the last cut left; present while power is off.
    pub left: Option<Disk>,
    /// The state that the last completed cut left.
    pub was_left: Disk,
    pub faults: Faults,
    /// The number of changing requests so far.
    pub changes: u64,
    /// Power fails at the request with this number, which is not executed.
    pub cut_at: Option<u64>,
    pub rng: Rng,
}

impl State {
    /// Cuts power. All later requests fail.
    fn cut(&mut self) {
        if self.left.is_none() {
            self.left = Some(self.disk.after_cut(&mut self.rng));
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.left.is_some()
    }

    /// Counts a changing request. Returns false if power is off or fails now.
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

/// A mounted file system; unmounted on drop.
pub struct FaultFs {
    session: Option<BackgroundSession>,
    state: Arc<Mutex<State>>,
    path: PathBuf,
}

impl FaultFs {
    /// Mounts an empty file system at `path`, a directory that is created if necessary.
    ///
    /// # Errors
    /// Returns the operating system's error, for example if FUSE or the permission to mount is
    /// missing.
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

    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Schedules a power cut in place of the `requests`-th changing request (writes, syncs,
    /// discards, names) from now on.
    pub fn cut_after(&self, requests: u64) {
        let mut state = lock(&self.state);
        state.cut_at = Some(state.changes + requests);
    }

    /// Cuts power now.
    pub fn cut(&self) {
        lock(&self.state).cut();
    }

    /// Simulates the death of all client processes, as by `kill`: written data stays, with
    /// unchanged durability. All requests fail until [`Self::power_on`].
    pub fn end_users(&self) {
        let mut state = lock(&self.state);
        if state.left.is_none() {
            state.left = Some(state.disk.after_end_of_users());
        }
    }

    /// Whether power is off.
    pub fn is_off(&self) -> bool {
        lock(&self.state).is_off()
    }

    /// Restores power with the state that the cut left; [`Self::save_left`] saves that state.
    /// Cancels a scheduled cut. Files opened before the cut stay invalid.
    pub fn power_on(&self) {
        let mut state = lock(&self.state);
        state.cut_at = None;
        if let Some(left) = state.left.take() {
            state.was_left = left.clone();
            state.disk = left;
        }
    }

    /// Replaces the injected faults.
    pub fn set_faults(&self, faults: Faults) {
        lock(&self.state).faults = faults;
    }

    /// Returns the bytes in use, as [`Faults::room`] counts them.
    pub fn bytes_in_use(&self) -> u64 {
        lock(&self.state).disk.blocks_in_use() * BLOCK_BYTES
    }

    /// Returns the number of changing requests and syncs so far.
    pub fn changes(&self) -> u64 {
        lock(&self.state).changes
    }

    /// Writes the state at the last power-on to a directory of another file system.
    ///
    /// # Errors
    /// Returns the operating system's error.
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
            // The kernel still holds a file of a process that has just ended; a lazy unmount
            // completes when the file is closed.
            let _ = std::process::Command::new("umount").arg("-l").arg(&self.path).status();
        }
        let _ = std::fs::remove_dir(&self.path);
    }
}
