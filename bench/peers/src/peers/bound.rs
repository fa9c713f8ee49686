//! One read for each Get, and nothing else: an index in memory and an aligned read of 4 KiB by O_DIRECT. It is no store: it is
//! loaded once, and reads.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, RwLock};

use rustix::fs::OFlags;
use workload::SharedTarget;

use crate::child::Setup;
use crate::peer::{Peer, words};

const PAGE: usize = 4096;
/// Pages of a write.
const BATCH: usize = 256;

/// Where a value is: page, offset, length.
type Place = (u32, u16, u16);

pub struct Bound {
    index: RwLock<HashMap<Box<[u8]>, Place>>,
    file: File,
    tail: Mutex<Tail>,
}

/// Pages that are not written yet.
struct Tail {
    first_page: u32,
    pages: Vec<Page>,
    used: usize,
}

#[derive(Clone)]
#[repr(align(4096))]
struct Page([u8; PAGE]);

impl Bound {
    pub fn open(setup: &Setup) -> anyhow::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::DIRECT;
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        let file = File::from(rustix::fs::open(setup.directory.join("values"), flags, mode)?);
        let tail = Tail { first_page: 0, pages: vec![Page([0; PAGE])], used: 0 };
        Ok(Self { index: RwLock::default(), file, tail: Mutex::new(tail) })
    }

    fn flush(&self, tail: &mut Tail) -> std::io::Result<()> {
        for (page, number) in tail.pages.iter().zip(u64::from(tail.first_page)..) {
            self.file.write_all_at(&page.0, number * PAGE as u64)?;
        }
        tail.first_page += tail.pages.len() as u32;
        tail.pages = vec![Page([0; PAGE])];
        tail.used = 0;
        Ok(())
    }
}

impl SharedTarget for Bound {
    type Error = String;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let place = self.index.read().expect("nobody panics with it").get(key).copied();
        let Some((page, offset, length)) = place else { return Ok(None) };
        let mut read = Page([0; PAGE]);
        self.file.read_exact_at(&mut read.0, u64::from(page) * PAGE as u64).map_err(words)?;
        Ok(Some(read.0[usize::from(offset)..][..usize::from(length)].to_vec()))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        if value.len() > PAGE {
            return Err("values have a page at most here".to_owned());
        }
        let mut tail = self.tail.lock().expect("nobody panics with it");
        if tail.used + value.len() > PAGE {
            if tail.pages.len() == BATCH {
                self.flush(&mut tail).map_err(words)?;
            } else {
                tail.pages.push(Page([0; PAGE]));
                tail.used = 0;
            }
        }
        let (at, page) = (tail.used, tail.first_page + tail.pages.len() as u32 - 1);
        let last = tail.pages.last_mut().expect("there is one");
        last.0[at..][..value.len()].copy_from_slice(value);
        tail.used += value.len();
        let place = (page, at as u16, value.len() as u16);
        self.index.write().expect("nobody panics with it").insert(key.into(), place);
        Ok(())
    }

    fn delete(&self, _key: &[u8]) -> Result<(), String> {
        Err("it only reads".to_owned())
    }

    fn scan(
        &self,
        _from: &[u8],
        _until: Option<&[u8]>,
        _take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), String> {
        Err("it only reads".to_owned())
    }
}

impl Peer for Bound {
    fn settle(&self) {
        let mut tail = self.tail.lock().expect("nobody panics with it");
        self.flush(&mut tail).expect("it can be written");
    }

    fn put_durably(&self, _pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
        Err("it only reads".to_owned())
    }

    fn reads_only(&self) -> bool {
        true
    }
}
