//! The drive below a file, and admin commands to it through the operating system's driver.
//!
//! Windows belong to an NVM set. The drive reports the set of a namespace. Each member of a volume
//! needs a set, and so a namespace, of its own. The member may be a file or a partition in that
//! namespace. Other data in the namespace is the operator's responsibility; I/O to it disturbs the
//! windows.

use std::fs::{self, File};
use std::future::Future;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime::{AdminCompletion, AdminDwords, Handle};
use rustix::fs::{major, minor};

use crate::plm::Admin;

/// The directory of block devices, by device number.
const BY_NUMBER: &str = "/sys/dev/block";

/// A namespace of an NVMe drive that accepts admin commands through the operating system.
#[derive(Clone)]
pub struct Passthrough {
    handle: Handle,
    file: Arc<File>,
}

impl Admin for Passthrough {
    fn submit(
        &self,
        dwords: AdminDwords,
        data: Vec<u8>,
    ) -> impl Future<Output = io::Result<AdminCompletion>> + use<> {
        self.handle.nvme_admin(&self.file, dwords, data)
    }
}

/// A namespace as listed by the operating system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    /// The device file.
    pub(crate) device: PathBuf,
    /// The namespace identifier.
    pub(crate) number: u32,
    /// The drive that has the namespace.
    pub(crate) drive: PathBuf,
}

impl Namespace {
    /// Returns the namespace that holds the file, or that the path, a drive or a partition, belongs
    /// to. The error is the reason in words.
    pub(crate) fn below(path: &Path) -> Result<Self, String> {
        let found = path.metadata().map_err(|error| format!("{}: {error}", path.display()))?;
        let is_drive = found.file_type().is_block_device();
        let number = if is_drive { found.rdev() } else { found.dev() };
        let known = Path::new(BY_NUMBER).join(format!("{}:{}", major(number), minor(number)));
        let known = known.canonicalize().map_err(|_| {
            format!("{} is not on a drive of its own, as far as the system tells", path.display())
        })?;
        Self::of(&known).map_err(|why| format!("{} is on {why}", path.display()))
    }

    /// Reads the namespace from the sysfs directory of a block device.
    fn of(known: &Path) -> Result<Self, String> {
        let whole = match known.parent() {
            Some(parent) if known.join("partition").exists() => parent,
            _ => known,
        };
        let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = fs::read_to_string(whole.join("nsid")).ok();
        let number = number.and_then(|text| text.trim().parse().ok());
        let Some(number) = number else {
            return Err(format!("{name}, which is no namespace of an NVMe drive"));
        };
        let drive = whole.join("device");
        let drive = drive.canonicalize().unwrap_or(drive);
        Ok(Self { device: Path::new("/dev").join(name), number, drive })
    }

    /// Opens the namespace for admin commands.
    pub(crate) fn open(&self, handle: &Handle) -> Result<Passthrough, String> {
        let file = File::open(&self.device);
        let file = file.map_err(|error| format!("{}: {error}", self.device.display()))?;
        Ok(Passthrough { handle: handle.clone(), file: Arc::new(file) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_of_its_namespace_and_other_drives_have_none() {
        let root =
            std::env::temp_dir().join(format!("levelhead-namespaces-{}", std::process::id()));
        let namespace = root.join("nvme3n2");
        for directory in [namespace.join("nvme3n2p1"), root.join("sda"), root.join("nvme3")] {
            fs::create_dir_all(directory).expect("there is room");
        }
        fs::write(namespace.join("nsid"), "2\n").expect("there is room");
        fs::write(namespace.join("nvme3n2p1/partition"), "1\n").expect("there is room");
        std::os::unix::fs::symlink(root.join("nvme3"), namespace.join("device")).expect("a link");
        let whole = Namespace::of(&namespace).expect("it has a number");
        let drive = root.join("nvme3").canonicalize().expect("it is there");
        assert_eq!(whole, Namespace { device: "/dev/nvme3n2".into(), number: 2, drive });
        assert_eq!(Namespace::of(&namespace.join("nvme3n2p1")), Ok(whole));
        let why = Namespace::of(&root.join("sda")).expect_err("it is no NVMe drive");
        assert!(why.contains("sda, which is no namespace"), "{why}");
        fs::remove_dir_all(&root).expect("it is ours");
    }

    #[test]
    fn a_file_without_a_drive_is_told() {
        let why = Namespace::below(Path::new("/proc/self/stat")).expect_err("it is on no drive");
        assert!(why.contains("not on a drive"), "{why}");
        assert!(Namespace::below(Path::new("/there/is/none")).is_err());
    }
}
