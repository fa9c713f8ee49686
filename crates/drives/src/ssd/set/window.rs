//! Window commands, and their effect on the gates.

use std::rc::Rc;

use block::nvme::{Event, PerSetLog, PlmConfig, Status, WindowSelect};
use runtime::Nanos;

use super::Set;
use crate::nand::Lane;
use crate::ssd::planted::Fault;
use crate::ssd::windows::Window;

impl Set {
    /// Enables or disables windows, and sets the events that the host wants.
    pub(crate) async fn configure_plm(self: &Rc<Self>, config: PlmConfig) -> Result<(), Status> {
        let _in_turn = self.plm.commands.acquire(1).await;
        self.charge_command(Lane::Shared, 1).await;
        if !self.plm.windows.borrow().is_supported() {
            return Err(Status::InvalidField);
        }
        self.plm.windows.borrow_mut().configure(config, self.handle.now());
        self.arm_time_warning();
        self.announce_events();
        self.windows_changed();
        // Whether collection keeps pace with clients may have changed.
        self.space_changed.notify_all();
        Ok(())
    }

    pub(crate) fn plm_config(&self) -> Result<PlmConfig, Status> {
        let windows = self.plm.windows.borrow();
        windows.is_supported().then(|| windows.config()).ok_or(Status::InvalidField)
    }

    /// Moves the set to a window; returns when it is there. DTWIN is held back until NDWIN has
    /// lasted its minimum.
    pub(crate) async fn select_window(self: &Rc<Self>, to: WindowSelect) -> Result<(), Status> {
        let _in_turn = self.plm.commands.acquire(1).await;
        self.charge_command(Lane::Shared, 1).await;
        let window = self.plm.windows.borrow().window();
        match (window, to) {
            (Window::Off, _) => Err(Status::InvalidField),
            (Window::Dtwin { .. }, WindowSelect::Ndwin) => {
                self.leave_dtwin(None);
                Ok(())
            }
            (Window::Ndwin { .. }, WindowSelect::Dtwin) => {
                self.enter_dtwin().await;
                Ok(())
            }
            (Window::Dtwin { .. }, WindowSelect::Dtwin)
            | (Window::Ndwin { .. }, WindowSelect::Ndwin) => Ok(()),
            (Window::Lockdown { .. }, _) => unreachable!("commands come one after the other"),
        }
    }

    /// Waits for the minimum time of NDWIN, ends all internal jobs, empties the buffer, and begins
    /// the deterministic window.
    async fn enter_dtwin(self: &Rc<Self>) {
        let earliest = self.plm.windows.borrow().earliest_lockdown().expect("the set is in NDWIN");
        self.handle.sleep_until(earliest).await;
        // No job runs during a lockdown: the room for the buffer must be free before it. If it is,
        // jobs in progress are not waited for: they stop halfway.
        let has_room = self.has_room_for_buffer(&self.table.borrow());
        if !has_room && !self.planted.has(Fault::LockdownWithoutRoom) {
            self.jobs.wants_room.set(true);
            self.pace_may_change();
            self.jobs.wake();
            self.space_changed.wait_until(|| !self.jobs.wants_room.get()).await;
        }
        self.plm.windows.borrow_mut().begin_lockdown(self.handle.now());
        self.windows_changed();
        if !self.planted.has(Fault::JobsInWindow) {
            self.gates.jobs.until_empty().await;
        }
        if !self.planted.has(Fault::ForgetBufferAtWindow) {
            let generation = self.buffer.borrow_mut().begin_generation();
            self.flush_generation(generation).await;
            self.gates.flush.until_empty().await;
        }
        self.save_discards().await;
        self.gates.flush.until_empty().await;
        if self.planted.has(Fault::ForgetBufferAtWindow) {
            self.buffer.replace(crate::ssd::buffer::Buffer::default());
        }
        let deadline = self.plm.windows.borrow_mut().enter_dtwin(self.handle.now());
        self.windows_changed();
        self.count(|stats| stats.windows_entered += 1);
        self.end_window_at(deadline);
        self.arm_time_warning();
        self.announce_events();
        if self.room.waiting() > 0 {
            // Writes that arrived during the lockdown have filled the buffer, and more wait for
            // room.
            self.leave_dtwin(Some(Event::Excursion));
        }
    }

    /// Leaves the deterministic window, on the host's command or because of `event`.
    pub(super) fn leave_dtwin(self: &Rc<Self>, event: Option<Event>) {
        self.plm.windows.borrow_mut().leave_dtwin(self.handle.now(), event);
        if event.is_some() {
            self.count(|stats| stats.windows_broken += 1);
            self.announce_events();
        }
        self.windows_changed();
    }

    /// Opens and closes the gates, and notifies waiting tasks.
    fn windows_changed(&self) {
        let windows = self.plm.windows.borrow();
        let (runs_jobs, empties) = (windows.runs_jobs(), windows.empties_buffer());
        drop(windows);
        self.gates.jobs.set_open(runs_jobs);
        self.gates.flush.set_open(empties);
        self.plm.changed.notify_all();
        // A flush that waits for the pace of collection continues: during a lockdown there is no
        // collection.
        self.space_changed.notify_all();
        self.jobs.wake();
        self.flusher.wake();
    }

    /// Schedules the end of the window that has just begun.
    fn end_window_at(self: &Rc<Self>, deadline: Nanos) {
        let (set, generation) = (Rc::clone(self), self.plm.windows.borrow().generation());
        self.handle.spawn("end of window", async move {
            set.handle.sleep_until(deadline).await;
            if set.is_in_dtwin(generation) {
                set.leave_dtwin(Some(Event::Exceeded));
            }
        });
    }

    fn arm_time_warning(self: &Rc<Self>) {
        let Some(at) = self.plm.windows.borrow().time_warning_at() else { return };
        let (set, generation) = (Rc::clone(self), self.plm.windows.borrow().generation());
        self.handle.spawn("time warning", async move {
            set.handle.sleep_until(at.max(set.handle.now())).await;
            if set.is_in_dtwin(generation) {
                set.plm.windows.borrow_mut().warn(set.handle.now());
                set.announce_events();
            }
        });
    }

    fn is_in_dtwin(&self, generation: u64) -> bool {
        let windows = self.plm.windows.borrow();
        windows.is_deterministic() && windows.generation() == generation
    }

    /// Returns the log page 0Ah. `clears`: whether it clears the events.
    pub(crate) fn plm_log(&self, clears: bool) -> Result<PerSetLog, Status> {
        let mut windows = self.plm.windows.borrow_mut();
        if !windows.is_supported() {
            return Err(Status::InvalidLogPage);
        }
        let log = windows.log(self.handle.now(), self.lockdown_estimate());
        if clears {
            windows.clear_events();
            self.plm.is_listed.set(false);
        }
        Ok(log)
    }

    /// Notifies the host if the set has just joined those with events.
    pub(super) fn announce_events(&self) {
        if self.has_events() && !self.plm.is_listed.replace(true) {
            self.plm.bell.ring();
        }
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.plm.windows.borrow().events().is_empty()
    }

    /// Estimates the duration of a lockdown that begins now: the buffer at the speed of all dies,
    /// plus one operation that each die may have begun.
    fn lockdown_estimate(&self) -> Nanos {
        let timing = &self.profile.flash.timing;
        let geometry = self.flash.geometry();
        let program_us = timing.program_us.iter().copied().fold(0.0, f64::max);
        let transfer_us = f64::from(geometry.transfer_bytes) / timing.channel_mb_per_s
            * f64::from(geometry.program_unit());
        let waiting = self.buffer.borrow().waiting();
        let rounds = waiting.div_ceil(self.layout.slots_per_unit).div_ceil(geometry.dies());
        let bus_us = transfer_us * f64::from(geometry.dies_per_channel);
        let per_round = (program_us + transfer_us).max(bus_us);
        let begun = program_us.max(timing.erase_us);
        Nanos::from_micros_f64(f64::from(rounds) * per_round + begun)
    }
}
