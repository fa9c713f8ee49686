//! Host commands: each crosses the link, is executed by its set, and its completion crosses the
//! link back. Each command is in flight from the call on ([`crate::firmware::submit`]).
//!
//! Commands to a lost set fail, including those in flight when it is lost.

use std::rc::Rc;

use block::nvme::{EventAggregate, PerSetLog, PlmConfig, SetId, Status, WindowSelect};
use block::{BLOCK_BYTES, Block, BlockDevice, DeviceError, Force, SetShape};
use runtime::IoClass;

use super::drive::{Ssd, set_id};
use super::set::{Set, Unreadable};
use crate::firmware::Submitted;
use crate::nand::Lane;

fn bytes_of(blocks: usize) -> u64 {
    blocks as u64 * u64::from(BLOCK_BYTES)
}

impl Ssd {
    fn submit<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        name: &'static str,
        command: impl FnOnce(Self) -> F,
    ) -> Submitted<T> {
        crate::firmware::submit(self.handle(), name, command(self.clone()))
    }

    /// Returns the set if it can execute a command. The loss of a set is reported over the link: a
    /// client that retries in a loop would otherwise stop virtual time. The host detects invalid
    /// commands at once.
    async fn admitted(&self, set: Result<&Rc<Set>, DeviceError>) -> Result<Rc<Set>, DeviceError> {
        if let Err(DeviceError::Gone(_)) = set {
            self.complete(0).await;
        }
        set.map(Rc::clone)
    }

    async fn read_blocks(
        &self,
        id: SetId,
        first: u64,
        blocks: u32,
        lane: Lane,
    ) -> Result<Vec<Block>, DeviceError> {
        let set = self.admitted(self.within(id, first, u64::from(blocks))).await?;
        let first = first as u32;
        let read = set.read(first..first + blocks, lane);
        let (read, in_memory) = match set.in_slot(lane, self.queue(), read).await {
            Ok(read) => read,
            Err(Unreadable { block }) => {
                self.complete(0).await;
                self.present(id)?;
                return Err(DeviceError::Unreadable { set: id, block: u64::from(block) });
            }
        };
        // The link is requested only when the data are ready: until then it can carry the data of
        // other sets, however long this set's memory takes.
        self.handle().sleep_until(in_memory).await;
        self.complete_in(lane, bytes_of(read.len())).await;
        self.present(id).map(|_| read)
    }

    async fn write_blocks(
        &self,
        id: SetId,
        first: u64,
        blocks: Vec<Block>,
        force: Force,
    ) -> Result<(), DeviceError> {
        let set = self.admitted(self.within(id, first, blocks.len() as u64)).await?;
        self.receive(bytes_of(blocks.len())).await;
        let write = set.write(first as u32, blocks, force);
        set.in_slot(Lane::Shared, self.queue(), write).await;
        self.complete(0).await;
        self.present(id).map(drop)
    }

    /// Completes a window command.
    async fn answer<T>(&self, set: SetId, done: Result<T, Status>) -> Result<T, DeviceError> {
        self.complete(0).await;
        self.present(set)?;
        done.map_err(DeviceError::Refused)
    }
}

impl BlockDevice for Ssd {
    fn sets(&self) -> Vec<SetShape> {
        self.shapes()
    }

    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
        class: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<> {
        let lane = self.lane_of(class);
        self.submit(
            "read",
            move |ssd| async move { ssd.read_blocks(set, first, blocks, lane).await },
        )
    }

    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
        _class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.submit(
            "write",
            move |ssd| async move { ssd.write_blocks(set, first, blocks, force).await },
        )
    }

    fn flush(&self, set: SetId) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.submit("flush", |ssd| async move {
            let admitted = ssd.admitted(ssd.present(set)).await?;
            admitted.in_slot(Lane::Shared, ssd.queue(), admitted.flush()).await;
            ssd.complete(0).await;
            ssd.present(set).map(drop)
        })
    }

    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.submit("discard", |ssd| async move {
            let range = first as u32..(first.saturating_add(blocks)) as u32;
            let admitted = ssd.admitted(ssd.within(set, first, blocks)).await?;
            admitted.in_slot(Lane::Shared, ssd.queue(), admitted.discard(range)).await;
            ssd.complete(0).await;
            ssd.present(set).map(drop)
        })
    }

    fn configure_plm(
        &self,
        set: SetId,
        config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.submit("configure windows", |ssd| async move {
            let done = ssd.admitted(ssd.present(set)).await?.configure_plm(config).await;
            ssd.answer(set, done).await
        })
    }

    fn plm_config(
        &self,
        set: SetId,
    ) -> impl Future<Output = Result<PlmConfig, DeviceError>> + use<> {
        self.submit("configuration of windows", |ssd| async move {
            let config = ssd.admitted(ssd.present(set)).await?.plm_config();
            ssd.answer(set, config).await
        })
    }

    fn select_window(
        &self,
        set: SetId,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.submit("select window", |ssd| async move {
            let done = ssd.admitted(ssd.present(set)).await?.select_window(window).await;
            ssd.answer(set, done).await
        })
    }

    fn plm_log(
        &self,
        set: SetId,
        retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>> + use<> {
        self.submit("log of windows", |ssd| async move {
            let log = ssd.admitted(ssd.present(set)).await?.plm_log(!retains);
            ssd.answer(set, log).await
        })
    }

    fn plm_events(&self) -> impl Future<Output = Result<EventAggregate, DeviceError>> + use<> {
        self.submit("window events", |ssd| async move {
            let with_events = ssd.sets_with_events().map(set_id).collect();
            ssd.complete(0).await;
            Ok(EventAggregate { sets: with_events })
        })
    }
}
