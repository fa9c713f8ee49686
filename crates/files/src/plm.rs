//! Predictable Latency Mode of a set, by admin commands: encodes requests as dwords and data, and
//! decodes the responses.
//!
//! [`Admin`] executes the commands: the operating system's driver ([`crate::passthrough`]), or a
//! simulated drive in tests.

use std::fmt;
use std::future::Future;
use std::io;

use block::nvme::{
    ControllerAttributes, ControllerFields, DecodeError, Feature, GetFeatures, GetLogPage,
    NamespaceFields, NvmSetList, PerSetLog, PlmConfig, Select, SetFeatures, SetId, Setting, Status,
    Thresholds, WindowSelect,
};
use runtime::{AdminCompletion, AdminDwords};

/// Executes admin commands. The call itself submits the command.
pub trait Admin: 'static {
    /// Submits a command in the layout of a submission queue entry. `data` is the data to send, or
    /// a buffer of the length to receive.
    ///
    /// # Errors
    /// Returns an error if the command did not reach the drive. A refusal by the drive is a
    /// completion with a status.
    fn submit(
        &self,
        dwords: AdminDwords,
        data: Vec<u8>,
    ) -> impl Future<Output = io::Result<AdminCompletion>> + use<Self>;
}

/// The reason why a window command failed.
#[derive(Debug)]
pub enum PlmError {
    /// The operating system did not pass the command on.
    System {
        /// The requested operation.
        doing: &'static str,
        /// The operating system's error.
        error: io::Error,
    },
    /// The drive refused the command.
    Refused {
        /// The requested operation.
        doing: &'static str,
        /// Status code in bits 7:0, status code type in bits 10:8.
        status: u16,
    },
    /// The response of the drive violates the specification.
    Answer {
        /// The requested operation.
        doing: &'static str,
        /// The decoding error.
        error: DecodeError,
    },
}

impl PlmError {
    /// Returns the status of a refusal, if it is a status that the drives of this project use.
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Refused { status, .. } => {
                let [code, code_type] = status.to_le_bytes();
                Status::from_numbers(code_type, code)
            }
            Self::System { .. } | Self::Answer { .. } => None,
        }
    }
}

/// Describes further statuses with which drives answer unknown commands (NVMe base specification,
/// status codes).
fn words(status: u16) -> Option<&'static str> {
    Some(match status {
        0x001 => "it does not know the command",
        0x002 => "invalid field: it does not know the feature, or the NVM set is not in that mode",
        0x004 => "the data could not be transferred",
        0x006 => "internal error",
        0x007 => "the command was aborted",
        0x00B => "invalid namespace",
        0x109 => "it does not keep that log page",
        0x10D => "the feature cannot be saved",
        0x10E => "the feature cannot be changed",
        0x10F => "the feature is of no namespace",
        _ => return None,
    })
}

impl fmt::Display for PlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { doing, error } => {
                write!(f, "{doing} did not come to the drive: {error}")
            }
            Self::Refused { doing, status } => {
                let said = words(*status).unwrap_or("a status that is not known here");
                let (code_type, code) = (status >> 8, status & 0xFF);
                write!(
                    f,
                    "the drive refused {doing}: {said} (status type {code_type:X}h, code {code:02X}h)"
                )
            }
            Self::Answer { doing, error } => {
                write!(f, "the drive's answer to {doing} means nothing: {error}")
            }
        }
    }
}

impl std::error::Error for PlmError {}

const SET_CONFIG: &str = "Set Features 13h (Predictable Latency Mode Config)";
const GET_CONFIG: &str = "Get Features 13h (Predictable Latency Mode Config)";
const SET_WINDOW: &str = "Set Features 14h (Predictable Latency Mode Window)";
const GET_WINDOW: &str = "Get Features 14h (Predictable Latency Mode Window)";
const GET_LOG: &str = "Get Log Page 0Ah (Predictable Latency Per NVM Set)";
const IDENTIFY: &str = "Identify";

const CNS_NAMESPACE: u32 = 0x00;
const CNS_CONTROLLER: u32 = 0x01;
const IDENTIFY_BYTES: usize = 4_096;

fn command(opcode: u8, namespace: u32, from_dword_10: &[u32]) -> AdminDwords {
    let mut dwords = [0; 16];
    (dwords[0], dwords[1]) = (opcode.into(), namespace);
    dwords[10..10 + from_dword_10.len()].copy_from_slice(from_dword_10);
    dwords
}

/// The windows of one NVM set of a drive.
#[derive(Clone, Debug)]
pub struct Plm<A> {
    admin: A,
    set: SetId,
}

impl<A: Admin> Plm<A> {
    /// Creates access to the windows of a known set.
    pub fn of_set(admin: A, set: SetId) -> Self {
        Self { admin, set }
    }

    /// Creates access to the windows of the set of a namespace. Returns `None` if Identify reports
    /// no NVM sets or no Predictable Latency Mode.
    ///
    /// # Errors
    /// Returns a [`PlmError`].
    pub async fn of_namespace(admin: A, namespace: u32) -> Result<Option<Self>, PlmError> {
        let controller = identify(&admin, CNS_CONTROLLER, 0).await?;
        let attributes = ControllerFields::read_from(&controller).attributes;
        let wanted = ControllerAttributes::NVM_SETS.with(ControllerAttributes::PREDICTABLE_LATENCY);
        if !attributes.contains(wanted) {
            return Ok(None);
        }
        let fields = NamespaceFields::read_from(&identify(&admin, CNS_NAMESPACE, namespace).await?);
        Ok(fields.set.map(|set| Self { admin, set }))
    }

    /// Returns the drive's number of the set.
    pub fn set(&self) -> SetId {
        self.set
    }

    /// Enables or disables the mode.
    ///
    /// # Errors
    /// Returns a [`PlmError`].
    pub fn configure(
        &self,
        config: PlmConfig,
    ) -> impl Future<Output = Result<(), PlmError>> + use<A> {
        self.set_feature(SET_CONFIG, Setting::PlmConfig { set: self.set, config })
    }

    /// Returns the current configuration.
    ///
    /// # Errors
    /// Returns a [`PlmError`].
    pub fn config(&self) -> impl Future<Output = Result<PlmConfig, PlmError>> + use<A> {
        let setting = self.feature(GET_CONFIG, Feature::PlmConfig(self.set));
        async move {
            match setting.await? {
                Setting::PlmConfig { config, .. } => Ok(config),
                other => unreachable!("another feature was asked for than {other:?}"),
            }
        }
    }

    /// Moves the set to a window. Completes when the set is in it.
    ///
    /// # Errors
    /// Returns a [`PlmError`].
    pub fn select(
        &self,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), PlmError>> + use<A> {
        self.set_feature(SET_WINDOW, Setting::PlmWindow { set: self.set, window })
    }

    /// Returns the window that the host selected, or that the set moved to by itself.
    ///
    /// # Errors
    /// Returns a [`PlmError`]; the drive refuses the command while the mode is disabled.
    pub fn window(&self) -> impl Future<Output = Result<WindowSelect, PlmError>> + use<A> {
        let setting = self.feature(GET_WINDOW, Feature::PlmWindow(self.set));
        async move {
            match setting.await? {
                Setting::PlmWindow { window, .. } => Ok(window),
                other => unreachable!("another feature was asked for than {other:?}"),
            }
        }
    }

    /// Returns the current window of the set, its remaining budget, and the limits of its windows.
    /// If `retains`, pending events stay pending.
    ///
    /// # Errors
    /// Returns a [`PlmError`].
    pub fn log(&self, retains: bool) -> impl Future<Output = Result<PerSetLog, PlmError>> + use<A> {
        let get = GetLogPage { retain: retains, ..GetLogPage::per_set(self.set) };
        let dwords = command(GetLogPage::OPCODE, 0, &get.dwords());
        let submitted = self.admin.submit(dwords, vec![0; PerSetLog::BYTES]);
        async move {
            let ended = completed(GET_LOG, submitted.await)?;
            let page = page_of(GET_LOG, &ended.data)?;
            PerSetLog::decode(page).map_err(|error| PlmError::Answer { doing: GET_LOG, error })
        }
    }

    fn set_feature(
        &self,
        doing: &'static str,
        setting: Setting,
    ) -> impl Future<Output = Result<(), PlmError>> + use<A> {
        let set = SetFeatures { setting, save: false };
        let data = setting.data().map_or_else(Vec::new, |data| data.to_vec());
        let submitted = self.admin.submit(command(SetFeatures::OPCODE, 0, &set.dwords()), data);
        async move { completed(doing, submitted.await).map(drop) }
    }

    fn feature(
        &self,
        doing: &'static str,
        feature: Feature,
    ) -> impl Future<Output = Result<Setting, PlmError>> + use<A> {
        let get = GetFeatures { feature, select: Select::Current };
        let bytes = if matches!(feature, Feature::PlmConfig(_)) { Thresholds::BYTES } else { 0 };
        let dwords = command(GetFeatures::OPCODE, 0, &get.dwords());
        let submitted = self.admin.submit(dwords, vec![0; bytes]);
        async move {
            let ended = completed(doing, submitted.await)?;
            let setting = Setting::from_completion(feature, ended.dword0, &ended.data);
            setting.map_err(|error| PlmError::Answer { doing, error })
        }
    }
}

async fn identify<A: Admin>(
    admin: &A,
    structure: u32,
    namespace: u32,
) -> Result<[u8; IDENTIFY_BYTES], PlmError> {
    let dwords = command(NvmSetList::OPCODE, namespace, &[structure]);
    let ended = completed(IDENTIFY, admin.submit(dwords, vec![0; IDENTIFY_BYTES]).await)?;
    page_of(IDENTIFY, &ended.data).copied()
}

fn completed(
    doing: &'static str,
    ended: io::Result<AdminCompletion>,
) -> Result<AdminCompletion, PlmError> {
    match ended {
        Err(error) => Err(PlmError::System { doing, error }),
        Ok(AdminCompletion { status, .. }) if status != 0 => {
            Err(PlmError::Refused { doing, status })
        }
        Ok(ended) => Ok(ended),
    }
}

/// Returns the received data, which must have the requested length.
fn page_of<'a, const N: usize>(
    doing: &'static str,
    data: &'a [u8],
) -> Result<&'a [u8; N], PlmError> {
    let error = DecodeError::DataLength { found: data.len(), wanted: N };
    data.try_into().map_err(|_| PlmError::Answer { doing, error })
}
