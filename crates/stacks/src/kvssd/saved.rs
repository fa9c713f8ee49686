//! Saved drives: a drive that was loaded, saved and opened again runs, byte for byte, as it would
//! have run directly after the load.
//!
//! A saved file has the cells, the firmware's memory (its dump, and the parts that the dump leaves
//! out), the bookings of cores, link, dies and channels, all counters, the time, and the position
//! in the random stream that orders tasks. No operation may be in flight: see
//! [`Runtime::standstill`]. Drives whose design has a log or caches are refused: a log works in the
//! background, and the contents of caches are not saved.
//!
//! This differs from the image of a power cut ([`KvDrive::power_cut`]): no time passes, and nothing
//! is read or erased.
//!
//! Memory: one block at a time, in addition to the drive. A page is stored with the length that the
//! simulation keeps, so synthetic values need few bytes. For the format of the file see `stream`.

mod error;
mod stream;

use std::io::{Read, Write};

use drives::nand::{BlockAddress, Flash, Geometry, NandArray};
use engine::NotAtRest;
use runtime::{Carrier, Runtime, Standstill};

use super::drive::{Index, KvDrive};
use super::profile::DeviceProfile;
use super::setup::{DriveOptions, Parts};

pub use error::{SaveError, SavedError};
use stream::{Input, Output};

/// A file with a saved drive, with its header already read.
pub struct SavedDrive<R> {
    input: Input<R>,
    key: String,
    attached: Vec<u8>,
    standstill: Standstill,
}

/// Returns the properties that must be the same when a drive is opened again, as text. Times and
/// costs may differ.
fn form(profile: &DeviceProfile, options: &DriveOptions) -> String {
    let DriveOptions { engine, key_format, expected_key_bytes, expected_value_bytes, .. } = options;
    let expected = (expected_key_bytes, expected_value_bytes);
    let memory = profile.dram.index_bytes;
    format!(
        "{:?}, {memory} bytes, {engine:?}, {key_format:?}, {expected:?}",
        profile.flash.geometry
    )
}

impl KvDrive {
    /// Saves the drive, which was created in `runtime` with this profile. `key` describes the load;
    /// `attached` is data of the caller that is stored with the drive. The drive continues
    /// unaffected.
    ///
    /// # Errors
    /// Returns [`SaveError`] if an operation is in flight, the design cannot be saved, or the file
    /// cannot be written.
    pub fn save(
        &self,
        runtime: &Runtime,
        profile: &DeviceProfile,
        key: &str,
        attached: &[u8],
        file: &mut impl Write,
    ) -> Result<(), SaveError> {
        let inner = self.inner();
        let standstill = runtime.standstill();
        let mut standstill = standstill.ok_or(NotAtRest("something is about to happen"))?;
        if inner.slots.in_use() > 0 || !inner.flash.is_at_rest() {
            return Err(NotAtRest("commands are under way").into());
        }
        let index = inner.engine.park()?;
        let mut moment = Vec::new();
        standstill.carry(&mut Carrier::out(&mut moment)).ok_or(SaveError::TOO_LARGE)?;
        let mut rest = Vec::new();
        self.carry_rest(&mut Carrier::out(&mut rest)).ok_or(SaveError::TOO_LARGE)?;
        let mut output = Output::begin(file)?;
        let form = form(profile, &inner.options);
        for part in [key.as_bytes(), attached, &moment, form.as_bytes(), &rest, &index] {
            output.put(part)?;
        }
        for block in blocks(inner.flash.geometry()) {
            let mut bytes = Vec::new();
            let carried = inner.flash.with_array(|array| carry_block(array, block, &mut bytes));
            carried.ok_or(SaveError::TOO_LARGE)?;
            output.put(&bytes)?;
        }
        Ok(output.end()?)
    }

    /// Saves or restores the state outside the index and the cells.
    fn carry_rest(&self, by: &mut Carrier<'_>) -> Option<()> {
        let inner = self.inner();
        inner.flash.carry(by)?;
        inner.cores.carry(by)?;
        inner.link.carry(by)
    }
}

fn blocks(geometry: &Geometry) -> impl Iterator<Item = BlockAddress> + use<> {
    (0..geometry.dies() * geometry.blocks_per_die()).map(BlockAddress)
}

fn carry_block(array: &mut NandArray, block: BlockAddress, bytes: &mut Vec<u8>) -> Option<()> {
    array.carry_block(block, &mut Carrier::out(bytes))
}

impl<R: Read> SavedDrive<R> {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// Returns [`SavedError`] if the file is not a saved drive of this version, or is damaged.
    pub fn begin(file: R) -> Result<Self, SavedError> {
        let mut input = Input::begin(file)?;
        let key = String::from_utf8(input.take()?).map_err(|_| SavedError::Damaged)?;
        let attached = input.take()?;
        let moment = input.take()?;
        let mut standstill = Standstill::default();
        let by = &mut Carrier::back(&moment);
        standstill.carry(by).filter(|()| by.is_at_end()).ok_or(SavedError::Damaged)?;
        Ok(Self { input, key, attached, standstill })
    }

    /// Returns the description of the load with which the drive was saved.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the attached data.
    pub fn attached(&self) -> &[u8] {
        &self.attached
    }

    /// Opens the drive in a runtime that continues from the saved time. `profile` and `options`
    /// must be those of its creation, except that times, costs and the number of iterators may
    /// differ.
    ///
    /// # Errors
    /// Returns [`SavedError`] if the file is damaged, or the drive would not continue as it was.
    pub fn open(
        mut self,
        profile: &DeviceProfile,
        options: DriveOptions,
    ) -> Result<(Runtime, KvDrive), SavedError> {
        let runtime = Runtime::at(&self.standstill);
        let handle = runtime.handle();
        if self.input.take()? != form(profile, &options).into_bytes() {
            return Err(SavedError::OtherDrive);
        }
        let (rest, index) = (self.input.take()?, self.input.take()?);
        let geometry = &profile.flash.geometry;
        let mut array = NandArray::new(geometry);
        for block in blocks(geometry) {
            let bytes = self.input.take()?;
            let by = &mut Carrier::back(&bytes);
            let carried = array.carry_block(block, by).filter(|()| by.is_at_end());
            carried.ok_or(SavedError::Damaged)?;
        }
        self.input.end()?;
        let flash = Flash::new(handle.clone(), &profile.flash, array);
        let parts = Parts::new(handle, profile, &options, flash)?;
        let setup = parts.setup(profile, &options);
        let engine = Index::unpark(&options.engine, setup, &index, &runtime)?;
        let drive = KvDrive::assemble(parts, profile, options, engine, 1);
        let by = &mut Carrier::back(&rest);
        drive.carry_rest(by).filter(|()| by.is_at_end()).ok_or(SavedError::Damaged)?;
        let is_still = runtime.standstill().as_ref() == Some(&self.standstill);
        if is_still && drive.flash().is_at_rest() {
            Ok((runtime, drive))
        } else {
            Err(NotAtRest("its background work finds something to do").into())
        }
    }
}
