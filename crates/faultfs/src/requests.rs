//! The kernel's requests.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use runtime::Rng;
use rustix::fs::{FallocateFlags, OFlags};

use crate::disk::{Directory, Disk, Node};
use crate::faults::Kind;
use crate::file::{BLOCK_BYTES, File};
use crate::state::{State, lock};

#[expect(clippy::disallowed_types, reason = "the kernel wants a time; it is always the same one")]
type Time = std::time::SystemTime;
const NO_TIME: Time = std::time::UNIX_EPOCH;
/// Disables kernel caching, because cached attributes may be wrong after a cut.
const TTL: Duration = Duration::ZERO;
/// The maximum delay of a delayed write.
const DELAY: Duration = Duration::from_millis(1);

pub(crate) struct Requests {
    state: Arc<Mutex<State>>,
    writes: AtomicU64,
    seed: u64,
}

type Answer<T> = Result<T, Errno>;

fn attributes(number: u64, node: &Node) -> FileAttr {
    let (kind, perm, size, blocks) = match node {
        Node::File(file) => (FileType::RegularFile, 0o644, file.size(), file.blocks_in_use() * 8),
        Node::Directory(_) => (FileType::Directory, 0o755, 0, 0),
    };
    FileAttr {
        ino: INodeNo(number),
        size,
        blocks,
        atime: NO_TIME,
        mtime: NO_TIME,
        ctime: NO_TIME,
        crtime: NO_TIME,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: BLOCK_BYTES as u32,
        flags: 0,
    }
}

/// Returns an error if the disk is too full for a write to a file.
fn check_room(state: &mut State, node: u64, offset: u64, bytes: u64) -> Answer<()> {
    let new = state.disk.file(node).ok_or(Errno::EIO)?.blocks_without_room(offset, bytes);
    let wanted = (state.disk.blocks_in_use() + new) * BLOCK_BYTES;
    match state.faults.room {
        Some(room) if new > 0 && wanted > room => Err(Errno::ENOSPC),
        _ => Ok(()),
    }
}

fn of_number(errno: i32) -> Errno {
    Errno::from_i32(errno)
}

impl Requests {
    pub(crate) fn new(state: Arc<Mutex<State>>, seed: u64) -> Self {
        Self { state, writes: AtomicU64::new(0), seed }
    }

    /// Returns the state, unless power is off or this request must fail.
    fn state(&self, kind: Option<Kind>) -> Answer<MutexGuard<'_, State>> {
        let mut state = lock(&self.state);
        let changes = kind.is_some_and(|kind| kind != Kind::Read);
        if state.is_off() || (changes && !state.count()) {
            return Err(Errno::EIO);
        }
        match kind.and_then(|kind| state.faults.meets(kind)) {
            Some(errno) => Err(of_number(errno)),
            None => Ok(state),
        }
    }

    fn entry(&self, parent: INodeNo, name: &OsStr) -> Answer<FileAttr> {
        let state = self.state(None)?;
        let number = state.disk.find(parent.0, name).ok_or(Errno::ENOENT)?;
        Ok(attributes(number, state.disk.node(number).ok_or(Errno::ENOENT)?))
    }

    fn make(&self, parent: INodeNo, name: &OsStr, node: Node) -> Answer<FileAttr> {
        let mut state = self.state(Some(Kind::Name))?;
        if state.disk.find(parent.0, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let number = state.disk.make(parent.0, name, node).ok_or(Errno::ENOENT)?;
        Ok(attributes(number, state.disk.node(number).ok_or(Errno::ENOENT)?))
    }

    fn write(&self, node: u64, offset: u64, data: &[u8], is_forced: bool) -> Answer<u32> {
        let ticket = {
            let mut state = self.state(Some(Kind::Write))?;
            check_room(&mut state, node, offset, data.len() as u64)?;
            state.disk.file(node).ok_or(Errno::EIO)?.begin_write(offset, data)
        };
        self.wait();
        let mut state = self.state(None)?;
        state.disk.file(node).ok_or(Errno::EIO)?.end(ticket, is_forced);
        Ok(data.len() as u32)
    }

    /// Delays some writes, so that other writes and syncs overtake them.
    #[expect(clippy::disallowed_methods, reason = "this is a drive, not a task")]
    fn wait(&self) {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let rng = &mut Rng::derive(self.seed ^ number << 20, "delays");
        if rng.below(8) == 0 {
            std::thread::sleep(DELAY.mul_f64(rng.unit_f64()));
        }
    }

    fn give_room(&self, node: u64, offset: u64, bytes: u64) -> Answer<()> {
        let mut state = self.state(None)?;
        check_room(&mut state, node, offset, bytes)?;
        state.disk.file(node).ok_or(Errno::EIO)?.give(offset, bytes);
        Ok(())
    }

    fn zero(&self, node: u64, offset: u64, bytes: u64) -> Answer<()> {
        let mut state = self.state(Some(Kind::Discard))?;
        let file = state.disk.file(node).ok_or(Errno::EIO)?;
        let ticket = file.begin_zeroing(offset, bytes);
        file.end(ticket, false);
        Ok(())
    }

    fn sync(&self, node: u64) -> Answer<()> {
        let mut state = self.state(Some(Kind::Sync))?;
        let ignored = state.faults.ignored;
        match state.disk.node(node) {
            Some(Node::File(_)) => {
                if !ignored.file.is_some_and(|name| has_name(&state.disk, node, name)) {
                    state.disk.file(node).expect("it is one").sync();
                }
                Ok(())
            }
            Some(Node::Directory(_)) => {
                if !ignored.directories {
                    state.disk.sync_directory(node);
                }
                Ok(())
            }
            None => Err(Errno::EIO),
        }
    }
}

/// Whether the file has this name in some directory.
fn has_name(disk: &Disk, node: u64, name: &str) -> bool {
    disk.directories().any(|directory| {
        directory.names().any(|(found, number)| number == node && found == OsStr::new(name))
    })
}

fn empty(reply: ReplyEmpty, answer: Answer<()>) {
    match answer {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn entry(reply: ReplyEntry, answer: Answer<FileAttr>) {
    match answer {
        Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Requests {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.entry(parent, name));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let state = lock(&self.state);
        match state.disk.node(ino.0) {
            Some(node) => reply.attr(&TTL, &attributes(ino.0, node)),
            None => reply.error(Errno::EIO),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<Time>,
        _: Option<FileHandle>,
        _: Option<Time>,
        _: Option<Time>,
        _: Option<Time>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || {
            let mut state = self.state(size.map(|_| Kind::Name))?;
            if let Some(size) = size {
                state.disk.file(ino.0).ok_or(Errno::EIO)?.resize(size);
            }
            Ok(attributes(ino.0, state.disk.node(ino.0).ok_or(Errno::EIO)?))
        };
        match set() {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        entry(reply, self.make(parent, name, Node::Directory(Directory::default())));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self
            .state(Some(Kind::Name))
            .and_then(|mut state| state.disk.remove(parent.0, name).ok_or(Errno::ENOENT));
        empty(reply, removed);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.state(Some(Kind::Name)).and_then(|mut state| {
            let node = state.disk.find(parent.0, name).ok_or(Errno::ENOENT)?;
            let found = state.disk.directory(node).ok_or(Errno::ENOTDIR)?;
            if found.names().next().is_some() {
                return Err(Errno::ENOTEMPTY);
            }
            state.disk.remove(parent.0, name).ok_or(Errno::ENOENT)
        });
        empty(reply, removed);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if parent != newparent {
            return reply.error(Errno::EXDEV);
        }
        let renamed = self
            .state(Some(Kind::Name))
            .and_then(|mut state| state.disk.rename(parent.0, name, newname).ok_or(Errno::ENOENT));
        empty(reply, renamed);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match self.make(parent, name, Node::File(File::default())) {
            Ok(attributes) => {
                let flags = FopenFlags::FOPEN_DIRECT_IO;
                reply.created(&TTL, &attributes, Generation(0), FileHandle(0), flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.state(None) {
            Ok(state) if state.disk.node(ino.0).is_some() => {
                reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
            }
            Ok(_) => reply.error(Errno::EIO),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.state(Some(Kind::Read)).and_then(|mut state| {
            Ok(state.disk.file(ino.0).ok_or(Errno::EIO)?.read(offset, size as usize))
        });
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let flags = OFlags::from_bits_retain(flags.0.cast_unsigned());
        match self.write(ino.0, offset, data, flags.intersects(OFlags::DSYNC | OFlags::SYNC)) {
            Ok(bytes) => reply.written(bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.sync(ino.0));
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.sync(ino.0));
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut state = match self.state(None) {
            Ok(state) => state,
            Err(errno) => return reply.error(errno),
        };
        let Some(directory) = state.disk.directory(ino.0) else {
            return reply.error(Errno::ENOTDIR);
        };
        let found: Vec<_> = directory.names().map(|(name, node)| (name.clone(), node)).collect();
        for (n, (name, node)) in (1..).zip(found).skip(offset as usize) {
            let kind = match state.disk.node(node) {
                Some(Node::Directory(_)) => FileType::Directory,
                _ => FileType::RegularFile,
            };
            if reply.add(INodeNo(node), n, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let state = lock(&self.state);
        let used = state.disk.blocks_in_use();
        let all = state.faults.room.map_or(1 << 30, |room| room / BLOCK_BYTES);
        let free = all.saturating_sub(used);
        reply.statfs(
            all,
            free,
            free,
            1 << 20,
            1 << 20,
            BLOCK_BYTES as u32,
            255,
            BLOCK_BYTES as u32,
        );
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        if mode.intersects(FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE) {
            empty(reply, self.zero(ino.0, offset, length));
        } else {
            empty(reply, self.give_room(ino.0, offset, length));
        }
    }
}
