//! Admin commands of NVMe, through the system's driver (`NVME_IOCTL_ADMIN_CMD`).
//!
//! Only commands whose transfer is known to fit the buffer are permitted. The driver describes to
//! the drive as much memory as the caller states, and a drive that is asked for more would write
//! beyond it. So this module supports Identify and the features and log pages of windows; it is not
//! a general interface to drives.
//!
//! Cost: a blocked thread, because the driver blocks its caller, for a window command as long as
//! the drive takes.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};

use super::compute::Compute;
use crate::Handle;

/// The dwords of a command, as in a submission queue. The driver fills in the pointers in the
/// middle.
pub type AdminDwords = [u32; 16];

/// The completion of a command, and its buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminCompletion {
    /// The status code in bits 7:0, and its type in bits 10:8; zero on success.
    pub status: u16,
    /// Dword 0 of the completion.
    pub dword0: u32,
    /// The data received from the drive, or sent to it.
    pub data: Vec<u8>,
}

/// The timeout after which the driver resets the drive, in milliseconds. A set may have to stay in
/// its window for seconds, with other window commands queued before this one.
const TIMEOUT_MS: u32 = 120_000;

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[derive(Default)]
#[repr(C)]
struct Passthru {
    opcode: u8,
    flags: u8,
    reserved: u16,
    nsid: u32,
    dwords_2_and_3: [u32; 2],
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    dwords_10_to_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<Passthru>() == 72, "the system's layout");

/// The call, which borrows the buffer exclusively.
struct Call<'a> {
    command: Passthru,
    buffer: PhantomData<&'a mut [u8]>,
}

// SAFETY: the opcode is that of a call which takes a pointer to a `Passthru`, and `as_ptr` returns
// one. The driver writes to it, hence `IS_MUTATING`, and to `data_len` bytes at `addr`: a buffer
// that `buffer` borrows meanwhile.
unsafe impl Ioctl for Call<'_> {
    type Output = (u16, u32);

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Passthru>(b'N', 0x41)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.command).cast()
    }

    unsafe fn output_from_ptr(
        status: IoctlOutput,
        command: *mut c_void,
    ) -> rustix::io::Result<Self::Output> {
        // SAFETY: the pointer is the one from `as_ptr`, and the call has ended.
        let result = unsafe { (*command.cast::<Passthru>()).result };
        Ok((status as u16 & 0x7FF, result))
    }
}

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0A;

/// Returns the transfer size of a permitted command, in bytes; `None` for other commands.
fn transfer_bytes(dwords: &AdminDwords) -> Option<u64> {
    match (dwords[0].to_le_bytes()[0], dwords[10].to_le_bytes()[0]) {
        (GET_LOG_PAGE, _) => {
            let last_dword = u64::from(dwords[10] >> 16) | u64::from(dwords[11] & 0xFFFF) << 16;
            Some((last_dword + 1) * 4)
        }
        (IDENTIFY, _) => Some(4_096),
        // 13h: Deterministic Threshold Configuration. 14h: the window, which is in the command
        // itself.
        (SET_FEATURES | GET_FEATURES, 0x13) => Some(512),
        (SET_FEATURES | GET_FEATURES, 0x14) => Some(0),
        _ => None,
    }
}

/// Checks that a command may be sent with a buffer of `bytes` bytes.
fn check(dwords: &AdminDwords, bytes: usize) -> io::Result<()> {
    let fused_or_pointed = dwords[0] >> 8 != 0 || dwords[2..10].iter().any(|dword| *dword != 0);
    match transfer_bytes(dwords) {
        Some(wanted) if wanted == bytes as u64 && !fused_or_pointed => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no admin command that is passed on, with {bytes} bytes: {dwords:X?}"),
        )),
    }
}

/// Executes a command through the driver, and blocks until it completes.
fn perform(file: &File, dwords: &AdminDwords, data: &mut [u8]) -> io::Result<(u16, u32)> {
    check(dwords, data.len())?;
    if !file.metadata()?.file_type().is_block_device() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no drive"));
    }
    let command = Passthru {
        opcode: dwords[0].to_le_bytes()[0],
        nsid: dwords[1],
        addr: if data.is_empty() { 0 } else { data.as_mut_ptr().expose_provenance() as u64 },
        data_len: data.len() as u32,
        dwords_10_to_15: std::array::from_fn(|n| dwords[10 + n]),
        timeout_ms: TIMEOUT_MS,
        ..Passthru::default()
    };
    // SAFETY: see `Call`. `check` ensures that the transfer is as long as the buffer. The file is a
    // block device, for which the opcode means this call or nothing, because the opcode includes
    // the size of the structure.
    Ok(unsafe { rustix::ioctl::ioctl(file, Call { command, buffer: PhantomData }) }?)
}

impl Handle {
    /// Executes an admin command on an NVMe drive, on a thread that blocks until it completes.
    /// `file` is a whole namespace of the drive. `data` is the data to send, or a buffer of the
    /// length to receive. If the drive refuses the command, the completion has a status.
    ///
    /// Permitted commands: Identify, Get Log Page, and Get and Set Features of 13h and 14h.
    ///
    /// # Errors
    /// The result is `InvalidInput` for other commands or a buffer of the wrong length, else the
    /// system's error (the system requires administrator rights).
    ///
    /// # Panics
    /// Panics in virtual time.
    pub fn nvme_admin(
        &self,
        file: &Arc<File>,
        dwords: AdminDwords,
        mut data: Vec<u8>,
    ) -> Compute<io::Result<AdminCompletion>> {
        let file = Arc::clone(file);
        self.real().wait_apart(move || {
            let (status, dword0) = perform(&file, &dwords, &mut data)?;
            Ok(AdminCompletion { status, dword0, data })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(opcode: u32, dword10: u32, dword11: u32) -> AdminDwords {
        let mut dwords = [0; 16];
        (dwords[0], dwords[10], dwords[11]) = (opcode, dword10, dword11);
        dwords
    }

    #[test]
    fn what_does_not_fit_its_buffer_is_not_passed_on() {
        let log = command(0x02, 0x0A | 127 << 16, 3 << 16);
        assert_eq!(transfer_bytes(&log), Some(512));
        let huge = command(0x02, 0x0A | 0xFFFF << 16, 0xFFFF);
        assert_eq!(transfer_bytes(&huge), Some(4 << 32));
        assert!(check(&log, 512).is_ok() && check(&huge, 512).is_err());
        assert!(check(&log, 508).is_err() && check(&log, 0).is_err());
        assert!(check(&command(0x09, 0x13, 1), 512).is_ok());
        assert!(check(&command(0x0A, 0x13, 1), 0).is_err());
        assert!(check(&command(0x09, 0x14, 1), 0).is_ok());
        // Format NVM, another feature, and a fused command; below, a command with a pointer.
        for dwords in [command(0x80, 0, 0), command(0x09, 0x02, 0), command(0x0109, 0x14, 1)] {
            assert!(check(&dwords, 0).is_err(), "{dwords:X?}");
        }
        let mut pointed = log;
        pointed[6] = 0x1000;
        assert!(check(&pointed, 512).is_err());
    }

    #[test]
    fn the_call_has_the_number_of_the_system_s_header() {
        let call = Call { command: Passthru::default(), buffer: PhantomData };
        assert_eq!(call.opcode(), 0xC048_4E41);
        let offsets = [
            std::mem::offset_of!(Passthru, nsid),
            std::mem::offset_of!(Passthru, addr),
            std::mem::offset_of!(Passthru, data_len),
            std::mem::offset_of!(Passthru, dwords_10_to_15),
            std::mem::offset_of!(Passthru, result),
        ];
        assert_eq!(offsets, [4, 24, 36, 40, 68]);
    }

    #[test]
    fn a_file_that_is_no_drive_is_refused() {
        let file = File::open("/dev/null").expect("every system has it");
        let refused = perform(&file, &command(0x09, 0x14, 1), &mut []);
        assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidInput));
    }
}
