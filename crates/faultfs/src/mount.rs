//! The mount: power on and off.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fuser::{BackgroundSession, Config, MountOption};
use runtime::Rng;

use crate::disk::{Disk, Node, ROOT};
use crate::faults::Faults;
use crate::file::BLOCK_BYTES;
use crate::requests::Requests;
use crate::state::{State, lock};

/// Threads that serve requests, and so the maximum number of concurrent writes.
const THREADS: usize = 6;

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
