//! The answers of drives to window commands: the limits of a set, and refusals.

use block::DeviceError;
use block::nvme::{Budget, PerSetLog, SetId};
use rustix::io::Errno;

use crate::plm::PlmError;

/// Longer times are cut to a day: no client waits that long, and arithmetic on them cannot
/// overflow.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Sanitizes the log page of a real drive. Drops the lockdown estimate, which is an extension of
/// this project in bytes that the specification reserves.
pub(crate) fn as_told(log: PerSetLog) -> PerSetLog {
    PerSetLog {
        dtwin: Budget { time_ms: log.dtwin.time_ms.min(DAY_MS), ..log.dtwin },
        ndwin_minimum_high_ms: log.ndwin_minimum_high_ms.min(DAY_MS),
        ndwin_minimum_low_ms: log.ndwin_minimum_low_ms.min(DAY_MS),
        lockdown_estimate_us: None,
        ..log
    }
}

/// Checks that the limits of a set allow a host to keep windows.
pub(crate) fn check_log(log: &PerSetLog) -> Result<(), String> {
    let (longest, least) = (log.dtwin.time_ms, log.ndwin_minimum_high_ms);
    if longest == 0 {
        return Err("its log page 0Ah tells no length of a deterministic window".to_owned());
    }
    if least >= longest {
        return Err(format!(
            "it asks for {least} ms outside of a window that lasts {longest} ms at most"
        ));
    }
    Ok(())
}

/// Converts the error of a window command to a device error.
pub(crate) fn as_device_error(error: &PlmError, set: SetId) -> DeviceError {
    let io = |errno: Errno| DeviceError::Io { set, code: errno.raw_os_error() };
    match (error, error.status()) {
        (_, Some(status)) => DeviceError::Refused(status),
        (PlmError::System { error, .. }, _) => match Errno::from_io_error(error) {
            Some(Errno::NODEV | Errno::NXIO) => DeviceError::Gone(set),
            errno => io(errno.unwrap_or(Errno::IO)),
        },
        (PlmError::Refused { .. } | PlmError::Answer { .. }, _) => io(Errno::PROTO),
    }
}

#[cfg(test)]
mod tests {
    use block::nvme::Status;

    use super::*;

    fn log(longest: u64, least: u64) -> PerSetLog {
        let dtwin = Budget { time_ms: longest, ..Budget::default() };
        PerSetLog { dtwin, ndwin_minimum_high_ms: least, ..PerSetLog::default() }
    }

    #[test]
    fn what_no_windows_can_be_kept_by_is_told() {
        assert!(check_log(&log(60_000, 4_000)).is_ok());
        assert!(check_log(&log(0, 0)).expect_err("it has none").contains("no length"));
        assert!(check_log(&log(10, 10)).expect_err("too long").contains("10 ms outside"));
        let told = as_told(log(u64::MAX, u64::MAX));
        assert_eq!((told.dtwin.time_ms, told.ndwin_minimum_high_ms), (DAY_MS, DAY_MS));
    }

    #[test]
    fn refusals_keep_what_a_caller_can_do_about_them() {
        let set = SetId::new(2).expect("numbers begin with 1");
        let refused = |status| as_device_error(&PlmError::Refused { doing: "it", status }, set);
        assert_eq!(refused(0x002), DeviceError::Refused(Status::InvalidField));
        assert_eq!(refused(0x109), DeviceError::Refused(Status::InvalidLogPage));
        assert!(matches!(refused(0x001), DeviceError::Io { .. }));
        let gone = std::io::Error::from(Errno::NODEV);
        let gone = PlmError::System { doing: "it", error: gone };
        assert_eq!(as_device_error(&gone, set), DeviceError::Gone(set));
    }
}
