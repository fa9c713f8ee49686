//! The windows of a device: looking for them, and their commands.

use std::future::Future;

use block::DeviceError;
use block::nvme::{SetId, Status};

use super::FileDevice;
use crate::passthrough::{Namespace, Passthrough};
use crate::plm::{Plm, PlmError};
use crate::trouble::{Doing, Trouble};
use crate::windows::{as_device_error, as_told, check_log};

impl FileDevice {
    /// Looks for predictable-latency windows of the drives below the sets. Afterwards either all
    /// sets have windows or none; then the error gives the reason in words, starting with the file.
    ///
    /// Cost: a few admin commands per set. The operating system allows them to administrators only.
    ///
    /// # Errors
    /// Returns an error if a set is on no NVMe namespace, its drive has no windows, two sets of
    /// this device are in one NVM set, or the operating system refuses.
    pub async fn look_for_windows(&self) -> Result<(), String> {
        let mut found: Vec<(Namespace, Plm<Passthrough>)> = Vec::new();
        // A lost set has no file to query.
        for set in self.all().iter().filter(|set| set.file.is_some()) {
            let path = set.path.display();
            let namespace = Namespace::below(&set.path)?;
            let admin = namespace.open(&set.handle)?;
            let plm = Plm::of_namespace(admin, namespace.number).await;
            let plm = plm.map_err(|error| format!("{path}: {error}"))?.ok_or_else(|| {
                format!("{path}: its drive has no Predictable Latency Mode, or no NVM sets")
            })?;
            let log = plm.log(true).await.map_err(|error| format!("{path}: {error}"))?;
            check_log(&as_told(log)).map_err(|why| format!("{path}: {why}"))?;
            let is_same = |(other, its): &(Namespace, Plm<Passthrough>)| {
                other.drive == namespace.drive && its.set() == plm.set()
            };
            if found.iter().any(is_same) {
                let set = plm.set();
                return Err(format!("{path}: another directory is in NVM set {set} too"));
            }
            found.push((namespace, plm));
        }
        let there = self.all().iter().filter(|set| set.file.is_some());
        for (set, (_, plm)) in there.zip(found) {
            set.plm.replace(Some(plm));
        }
        Ok(())
    }

    /// Submits a window command of a set.
    pub(super) fn window_command<T, F, S>(
        &self,
        id: SetId,
        submit: S,
    ) -> impl Future<Output = Result<T, DeviceError>> + use<T, F, S>
    where
        F: Future<Output = Result<T, PlmError>>,
        S: FnOnce(&Plm<Passthrough>) -> F,
    {
        let set = self.set(id).cloned();
        let submitted = match &set {
            Ok(set) => set.plm.borrow().as_ref().map(submit),
            Err(_) => None,
        };
        async move {
            let set = set?;
            let Some(submitted) = submitted else {
                return Err(DeviceError::Refused(Status::InvalidField));
            };
            submitted.await.map_err(|error| {
                let what = format!("{}: {error}", Doing::ChangingWindows);
                let path = set.path.clone();
                set.troubles.note(Trouble { path, offset: 0, bytes: 0, what });
                as_device_error(&error, id)
            })
        }
    }
}
