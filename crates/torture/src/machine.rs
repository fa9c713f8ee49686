//! A host, its drives and its store, from one power cut to the next.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{OpenError, StoreId};
use runtime::{Handle, Rng, Runtime};
use stacks::host::{HostStore, Media, StorageError};
use volume::Volume;

use crate::fault::Fault;
use crate::rack::{Rack, RackImage};
use crate::shape::Shape;
use crate::store::{Sets, Store};

const ID: StoreId = StoreId(11);

/// A running host.
pub struct Machine {
    /// The runtime of the drives and the store.
    pub rt: Runtime,
    /// The drives.
    pub rack: Rack,
    /// The store.
    pub store: Store,
}

/// A host that is recovering its store.
pub struct Opening {
    rt: Runtime,
    rack: Rack,
    opened: Rc<RefCell<Option<Result<Store, OpenError>>>>,
}

/// Creates a store.
///
/// # Errors
/// Returns an error if the drives or the host's memory are too small for the store.
pub fn create(
    handle: &Handle,
    shape: &Shape,
    rack: &Rack,
    fault: Option<Fault>,
) -> Result<Store, OpenError> {
    let storage = &shape.storage;
    let cores = storage.cores(handle);
    let (host, options) = (&storage.host, shape.options(fault));
    if !storage.is_volume() {
        let media = storage.plain(rack).expect("it is measured");
        return Ok(Store::Plain(HostStore::create(handle, host, &cores, media, options)?));
    }
    let mut setup = storage.volume_setup(handle, &cores, rack, ID).expect("it is measured");
    setup.data.planted = Fault::in_volume(fault);
    let volume = |setup| Volume::create(setup).expect("members are alike");
    let media = Media { data: volume(setup.data), journal: setup.journal.map(volume) };
    let data = media.data.clone();
    start_windows(shape, &data);
    let store = HostStore::create(handle, host, &cores, media, options)?;
    Ok(Store::Volume(store, data))
}

fn start_windows(shape: &Shape, data: &Sets) {
    if let Some(options) = shape.windows {
        data.start_windows(options);
    }
}

async fn recover_volumes(
    handle: &Handle,
    shape: &Shape,
    rack: &Rack,
    fault: Option<Fault>,
) -> Result<Media<Sets>, StorageError> {
    let cores = shape.storage.cores(handle);
    let mut setup = shape.storage.volume_setup(handle, &cores, rack, ID)?;
    setup.data.planted = Fault::in_volume(fault);
    shape.storage.recover_media(setup).await
}

/// Opens the existing store.
///
/// # Errors
/// Returns the reason why the store cannot be opened.
pub async fn open(
    handle: &Handle,
    shape: &Shape,
    rack: &Rack,
    fault: Option<Fault>,
) -> Result<Store, OpenError> {
    let storage = &shape.storage;
    let (host, options) = (&storage.host, shape.options(fault));
    let cores = storage.cores(handle);
    if !storage.is_volume() {
        let media = storage.plain(rack).expect("it is measured");
        return Ok(Store::Plain(HostStore::open(handle, host, &cores, media, options).await?));
    }
    let media = recover_volumes(handle, shape, rack, fault).await;
    let media = media.unwrap_or_else(|error| panic!("the volume does not come back: {error}"));
    let (data, journal) = (media.data.clone(), media.journal.clone());
    let store = HostStore::open(handle, host, &cores, media, options).await?;
    journal.as_ref().unwrap_or(&data).note_tenures().await;
    [Some(&data), journal.as_ref()].into_iter().flatten().for_each(Volume::begin_filling);
    start_windows(shape, &data);
    Ok(Store::Volume(store, data))
}

impl Machine {
    /// Creates drives with a new store.
    pub fn format(seed: u64, shape: &Shape, fault: Option<Fault>) -> Self {
        let rt = Runtime::new(seed);
        let rack = Rack::format(&rt.handle(), &shape.storage.drive, Fault::in_drive(fault));
        let store = create(&rt.handle(), shape, &rack, fault).expect("it was made to fit");
        Self { rt, rack, store }
    }

    /// Cuts power and drops all running tasks.
    pub fn power_cut(self, rng: &mut Rng) -> RackImage {
        self.rack.power_cut(rng)
    }

    /// Replaces a set by a fresh drive.
    pub fn replace(&mut self, member: usize, shape: &Shape, fault: Option<Fault>) {
        let rack = self.rack.with_fresh(&self.rt.handle(), member, Fault::in_drive(fault));
        let fresh = shape.storage.members(&rack).expect("it is measured").swap_remove(member);
        let volume = self.store.volume().expect("nothing else has members");
        volume.replace(member, fresh).expect("it is alike");
        self.rack = rack;
    }
}

impl Opening {
    /// Powers the drives on and starts to open the store.
    pub fn begin(seed: u64, shape: &Rc<Shape>, image: RackImage, fault: Option<Fault>) -> Self {
        let rt = Runtime::new(seed);
        let handle = rt.handle();
        let rack = {
            let handle = handle.clone();
            rt.block_on(async move { Rack::recover(&handle, image, Fault::in_drive(fault)).await })
        };
        let opened = Rc::<RefCell<Option<_>>>::default();
        let (found, shape, drives) = (Rc::clone(&opened), Rc::clone(shape), rack.clone());
        rt.handle().spawn("opening", async move {
            let store = open(&handle, &shape, &drives, fault).await;
            *found.borrow_mut() = Some(store);
        });
        Self { rt, rack, opened }
    }

    /// Runs until the drives have received `commands` commands. Returns false if the opening ended
    /// before, with success or failure.
    pub fn run_to(&self, commands: u64) -> bool {
        self.rt
            .run_until_true(|| self.opened.borrow().is_some() || self.rack.submitted() >= commands);
        self.opened.borrow().is_none()
    }

    /// Cuts power at the current point of the opening.
    pub fn power_cut(self, rng: &mut Rng) -> RackImage {
        self.rack.power_cut(rng)
    }

    /// Completes the opening and returns the machine. If the opening fails, returns the error and
    /// the drives without power.
    ///
    /// # Errors
    /// Returns the reason why the store cannot be opened.
    pub fn finish(self, rng: &mut Rng) -> Result<Machine, (OpenError, RackImage)> {
        self.rt.run_until_true(|| self.opened.borrow().is_some());
        let Self { rt, rack, opened } = self;
        let opened = opened.borrow_mut().take().expect("an opening comes to an end");
        match opened {
            Ok(store) => Ok(Machine { rt, rack, store }),
            Err(error) => Err((error, rack.power_cut(rng))),
        }
    }
}
