//! Files and directories, and the state that a power cut leaves.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use runtime::Rng;

use crate::file::{File, Mood};

/// The node number of the root directory.
pub(crate) const ROOT: u64 = 1;

type Names = BTreeMap<OsString, u64>;

/// A change of a directory since its last sync.
#[derive(Clone)]
enum Change {
    Named(OsString, u64),
    Removed(OsString),
    /// A cut keeps both the removal of the first name and the creation of the second, or neither.
    Renamed(OsString, OsString, u64),
}

/// A directory: its current names, its durable names and the changes between.
#[derive(Clone, Default)]
pub(crate) struct Directory {
    now: Names,
    durable: Names,
    changes: Vec<Change>,
}

fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Named(name, node) => drop(names.insert(name.clone(), *node)),
        Change::Removed(name) => drop(names.remove(name)),
        Change::Renamed(from, to, node) => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
    }
}

impl Directory {
    fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.changes.push(change);
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&OsString, u64)> {
        self.now.iter().map(|(name, node)| (name, *node))
    }

    fn names_after_cut(&self, mood: Mood, rng: &mut Rng) -> Names {
        let mut names = self.durable.clone();
        for change in &self.changes {
            let is_kept = match mood {
                Mood::Loses => false,
                Mood::Keeps => true,
                Mood::Mixes | Mood::Tears => rng.below(2) == 0,
            };
            if is_kept {
                apply(&mut names, change);
            }
        }
        names
    }
}

/// A file or a directory.
#[derive(Clone)]
pub(crate) enum Node {
    File(File),
    Directory(Directory),
}

/// The disk. Node numbers are never reused.
#[derive(Clone)]
pub(crate) struct Disk {
    nodes: BTreeMap<u64, Node>,
    last: u64,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self { nodes: [(ROOT, Node::Directory(Directory::default()))].into(), last: ROOT }
    }

    pub(crate) fn node(&self, number: u64) -> Option<&Node> {
        self.nodes.get(&number)
    }

    pub(crate) fn file(&mut self, number: u64) -> Option<&mut File> {
        match self.nodes.get_mut(&number) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    pub(crate) fn directory(&mut self, number: u64) -> Option<&mut Directory> {
        match self.nodes.get_mut(&number) {
            Some(Node::Directory(directory)) => Some(directory),
            _ => None,
        }
    }

    pub(crate) fn find(&self, directory: u64, name: &OsStr) -> Option<u64> {
        match self.nodes.get(&directory) {
            Some(Node::Directory(directory)) => directory.now.get(name).copied(),
            _ => None,
        }
    }

    /// Creates a file or directory. Returns `None` if the parent directory does not exist.
    pub(crate) fn make(&mut self, parent: u64, name: &OsStr, node: Node) -> Option<u64> {
        let number = self.last + 1;
        self.directory(parent)?.change(Change::Named(name.to_owned(), number));
        self.last = number;
        self.nodes.insert(number, node);
        Some(number)
    }

    /// Removes a name. The node stays for clients that have it open.
    pub(crate) fn remove(&mut self, parent: u64, name: &OsStr) -> Option<()> {
        self.find(parent, name)?;
        self.directory(parent)?.change(Change::Removed(name.to_owned()));
        Some(())
    }

    pub(crate) fn rename(&mut self, parent: u64, from: &OsStr, to: &OsStr) -> Option<()> {
        let node = self.find(parent, from)?;
        self.directory(parent)?.change(Change::Renamed(from.to_owned(), to.to_owned(), node));
        Some(())
    }

    /// Makes the names in a directory durable.
    pub(crate) fn sync_directory(&mut self, number: u64) -> Option<()> {
        let directory = self.directory(number)?;
        directory.durable = directory.now.clone();
        directory.changes.clear();
        Some(())
    }

    pub(crate) fn directories(&self) -> impl Iterator<Item = &Directory> {
        self.nodes.values().filter_map(|node| match node {
            Node::Directory(directory) => Some(directory),
            Node::File(_) => None,
        })
    }

    /// Returns the number of allocated blocks of all files that have a name.
    pub(crate) fn blocks_in_use(&self) -> u64 {
        let mut blocks = 0;
        let mut todo = vec![ROOT];
        while let Some(number) = todo.pop() {
            match self.nodes.get(&number) {
                Some(Node::File(file)) => blocks += file.blocks_in_use(),
                Some(Node::Directory(directory)) => {
                    todo.extend(directory.names().map(|(_, node)| node));
                }
                None => {}
            }
        }
        blocks
    }

    /// Returns the state that a power cut leaves.
    pub(crate) fn after_cut(&self, rng: &mut Rng) -> Self {
        // Node numbers are new, so that the kernel's caches of old nodes do not apply.
        let mut left = Self { nodes: BTreeMap::new(), last: self.last };
        let mood = Mood::draw(rng);
        left.copy_of(self, ROOT, ROOT, mood, rng);
        left
    }

    /// Returns the state after all client processes end: all written data is there, with unchanged
    /// durability. Operations in progress have ended.
    pub(crate) fn after_end_of_users(&self) -> Self {
        let mut left = self.clone();
        for node in left.nodes.values_mut() {
            if let Node::File(file) = node {
                file.end_all();
            }
        }
        left
    }

    fn copy_of(&mut self, old: &Self, from: u64, to: u64, mood: Mood, rng: &mut Rng) {
        let node = match old.nodes.get(&from) {
            Some(Node::File(file)) => Node::File(file.after_cut(mood, rng)),
            Some(Node::Directory(directory)) => {
                let mut names = Names::new();
                for (name, node) in directory.names_after_cut(mood, rng) {
                    self.last += 1;
                    let number = self.last;
                    names.insert(name, number);
                    self.copy_of(old, node, number, mood, rng);
                }
                Node::Directory(Directory { now: names.clone(), durable: names, changes: vec![] })
            }
            None => unreachable!("a name is of something"),
        };
        self.nodes.insert(to, node);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names_after_cuts(disk: &Disk) -> BTreeSet<Vec<OsString>> {
        let rng = &mut Rng::derive(2, "cuts");
        let names = |disk: &Disk| match disk.node(ROOT) {
            Some(Node::Directory(root)) => root.names().map(|(name, _)| name.clone()).collect(),
            _ => unreachable!("it is a directory"),
        };
        (0..100).map(|_| names(&disk.after_cut(rng))).collect()
    }

    #[test]
    fn names_are_durable_after_a_sync_of_their_directory() {
        let mut disk = Disk::new();
        let a = disk.make(ROOT, OsStr::new("a"), Node::File(File::default()));
        disk.file(a.expect("it is there")).expect("a file").sync();
        assert_eq!(names_after_cuts(&disk), [vec![], vec!["a".into()]].into());
        disk.sync_directory(ROOT).expect("it is there");
        assert_eq!(names_after_cuts(&disk), [vec!["a".into()]].into());
        disk.rename(ROOT, OsStr::new("a"), OsStr::new("b")).expect("it is there");
        assert_eq!(names_after_cuts(&disk), [vec!["a".into()], vec!["b".into()]].into());
        assert!(disk.find(ROOT, OsStr::new("a")).is_none());
        disk.sync_directory(ROOT).expect("it is there");
        disk.remove(ROOT, OsStr::new("b")).expect("it is there");
        assert_eq!(names_after_cuts(&disk), [vec![], vec!["b".into()]].into());
    }

    #[test]
    fn what_is_in_a_directory_goes_with_it() {
        let mut disk = Disk::new();
        let inner = disk.make(ROOT, OsStr::new("d"), Node::Directory(Directory::default()));
        let inner = inner.expect("it is there");
        let file = disk.make(inner, OsStr::new("f"), Node::File(File::default()));
        let file = disk.file(file.expect("it is there")).expect("a file");
        let ticket = file.begin_write(0, b"x");
        file.end(ticket, true);
        disk.sync_directory(inner).expect("it is there");
        assert_eq!(disk.blocks_in_use(), 1);
        let rng = &mut Rng::derive(4, "cuts");
        let there: BTreeSet<u64> = (0..50).map(|_| disk.after_cut(rng).blocks_in_use()).collect();
        assert_eq!(there, [0, 1].into());
        disk.sync_directory(ROOT).expect("it is there");
        assert!((0..50).all(|_| disk.after_cut(rng).blocks_in_use() == 1));
    }
}
