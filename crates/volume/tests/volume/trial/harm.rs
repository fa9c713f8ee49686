//! Failures of members, and the repairs of an operator.

use std::cell::RefCell;
use std::rc::Rc;

use engine::Medium;
use volume::Layout;

use super::Life;
use super::known::Model;
use crate::memory::{Disk, MemoryMedium};

impl Life {
    /// Whether another member may be lost without loss of data.
    fn can_lose(&self) -> bool {
        let model = self.model.borrow();
        // Stripes torn by a power cut are filled in after recovery, too.
        let lacks = |member: &usize| {
            model.missing.contains(member) || self.volume.progress(*member).is_some()
        };
        (0..self.world.members).filter(lacks).count() < self.world.spares() && !model.is_beyond
    }

    pub(super) fn is_whole(&self) -> bool {
        let is_filled = (0..self.world.members).all(|m| self.volume.progress(m).is_none());
        is_filled && self.volume.failed_members().is_empty()
    }

    /// Whether a member may be lost without the volume having noticed.
    pub(super) fn has_hidden_loss(&self) -> bool {
        let disks = self.disks.borrow();
        disks.iter().any(|disk| {
            let disk = disk.borrow();
            disk.is_gone || disk.is_read_only || disk.gone_after.is_some()
        })
    }

    pub(super) fn complain_unless_beyond(&self, model: &mut Model, what: &str) {
        if !model.is_beyond && self.world.spares() > 0 {
            model.complaints.push(what.to_owned());
        }
    }

    /// Makes a member fail: gone at once, gone after some commands, or read-only.
    pub(super) fn lose(&mut self) {
        if !self.can_lose() {
            return;
        }
        let member = self.rng.below(self.world.members as u64) as usize;
        if !self.model.borrow_mut().missing.insert(member) {
            return;
        }
        self.tally.borrow_mut().losses += 1;
        self.harm_damaged();
        let disks = self.disks.borrow();
        let mut disk = disks[member].borrow_mut();
        match self.rng.below(3) {
            0 => disk.is_gone = true,
            1 => disk.gone_after = Some(1 + self.rng.below(30)),
            _ => disk.is_read_only = true,
        }
    }

    /// Damaged rows may be unrecoverable from now on.
    fn harm_damaged(&self) {
        let mut model = self.model.borrow_mut();
        for extent in model.extents.values_mut() {
            for row in extent.rows.values_mut().filter(|row| row.is_damaged) {
                row.may_fail = true;
            }
        }
    }

    /// Replaces a lost member by a fresh medium, or makes it answer again: the volume uses it again
    /// after the next power cut.
    pub(super) fn replace(&mut self) {
        let lost: Vec<usize> = {
            let disks = self.disks.borrow();
            let is_lost = |disk: &Disk| disk.is_gone || disk.is_read_only;
            (0..disks.len()).filter(|member| is_lost(&disks[*member].borrow())).collect()
        };
        let Some(member) = lost.first().copied() else { return };
        if self.model.borrow().is_beyond {
            return;
        }
        // A member that comes back while others are missing may lack their later notes.
        let noticed = self.volume.failed_members().contains(&member);
        let is_only = self.model.borrow().missing.len() == 1;
        if noticed && is_only && self.rng.chance(0.5) {
            let disk = Rc::clone(&self.disks.borrow()[member]);
            disk.borrow_mut().come_back();
            self.tally.borrow_mut().returned += 1;
            return;
        }
        let seed = self.rng.next_u64();
        let disk = Disk::new(self.world.shape, self.world.is_anywhere, seed);
        let disk = Rc::new(RefCell::new(disk));
        self.volume.replace(member, MemoryMedium::new(&self.handle, &disk)).expect("it is alike");
        self.disks.borrow_mut()[member] = disk;
        self.tally.borrow_mut().replaced += 1;
    }

    /// Makes a page of one member unreadable, or flips a bit of it.
    pub(super) fn damage(&mut self) {
        let shape = self.volume.shape();
        let found = {
            let model = self.model.borrow();
            let rows = model.extents.iter().flat_map(|(id, e)| e.rows.iter().map(|r| (*id, r)));
            let sound = rows.filter(|(_, (_, row))| row.is_synced && !row.is_damaged);
            let sound: Vec<(u32, u32)> = sound.map(|(id, (row, _))| (id, *row)).collect();
            if sound.is_empty() || self.world.spares() == 0 || model.is_beyond {
                return;
            }
            sound[self.rng.below(sound.len() as u64) as usize]
        };
        let (id, row) = found;
        let per_row = shape.append_unit;
        let chunk = match self.world.layout {
            Layout::Mirrored => per_row,
            Layout::Parity { chunk_pages } | Layout::Striped { chunk_pages } => chunk_pages,
        };
        let member = self.rng.below(self.world.members as u64) as usize;
        let place =
            self.world.shape.append_unit + row * chunk + self.rng.below(u64::from(chunk)) as u32;
        let place = id * self.world.shape.pages_per_extent + place;
        let flips = self.world.flips && self.rng.chance(0.5);
        let disks = self.disks.borrow();
        let mut disk = disks[member].borrow_mut();
        if flips && !disk.flip(place) {
            return;
        } else if !flips {
            disk.unreadable.insert(place);
        }
        drop(disk);
        let mut model = self.model.borrow_mut();
        let is_whole = model.missing.is_empty() && self.is_whole();
        let extent = model.extents.get_mut(&id).expect("it is there");
        let row = extent.rows.get_mut(&row).expect("it is there");
        (row.is_damaged, row.is_flipped) = (true, flips);
        row.may_fail |= !is_whole;
    }

    /// Loses more members than the layout tolerates. Rare, because little can happen afterwards.
    pub(super) fn lose_too_many(&mut self) {
        if !self.rng.chance(0.2) || self.model.borrow().is_beyond {
            return;
        }
        self.tally.borrow_mut().beyond += 1;
        let mut model = self.model.borrow_mut();
        model.is_beyond = true;
        let first = self.rng.below(self.world.members as u64) as usize;
        for step in 0..=self.world.spares() {
            let member = (first + step) % self.world.members;
            model.missing.insert(member);
            self.disks.borrow()[member].borrow_mut().is_gone = true;
        }
    }
}
