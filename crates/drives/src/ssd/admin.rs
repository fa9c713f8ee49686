//! NVMe admin commands: dwords and data in; status, dword 0 and data out.
//!
//! Only the commands for sets and windows: Identify (controller, namespace, NVM Set List), Get Log
//! Page (0Ah, 0Bh), Get and Set Features (0Bh, 13h, 14h), Asynchronous Event Request. Each set is
//! one namespace of the same number.

use std::num::NonZeroU32;

use block::nvme::{
    ControllerAttributes, ControllerFields, DecodeError, Feature, GetFeatures, GetLogPage, Log,
    NamespaceFields, Notice, NvmSetAttributes, NvmSetList, PlmConfig, Select, SetFeatures, SetId,
    Setting, Status, WindowSelect, WindowStatus,
};
use block::{BLOCK_BYTES, BlockDevice, DeviceError, SetShape};

use super::drive::Ssd;

/// CNS values of Identify besides that of the NVM Set List.
const CNS_NAMESPACE: u8 = 0x00;
const CNS_CONTROLLER: u8 = 0x01;
const IDENTIFY_BYTES: usize = 4096;
/// Reply to Get Features with Select "supported capabilities": changeable, not saveable.
const CHANGEABLE: u32 = 1 << 2;

/// An admin command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdminCommand {
    /// Opcode.
    pub opcode: u8,
    /// Namespace identifier (NSID).
    pub namespace: u32,
    /// Command dwords 10 to 15.
    pub dwords: [u32; 6],
    /// Data from the host.
    pub data: Vec<u8>,
}

/// Completion of an admin command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminCompletion {
    /// Status code type and status code.
    pub status: Status,
    /// Dword 0 of the completion.
    pub dword0: u32,
    /// Data to the host.
    pub data: Vec<u8>,
}

impl AdminCompletion {
    fn of(dword0: u32, data: Vec<u8>) -> Self {
        Self { status: Status::Success, dword0, data }
    }
}

impl From<Status> for AdminCompletion {
    fn from(status: Status) -> Self {
        Self { status, dword0: 0, data: Vec::new() }
    }
}

impl From<DecodeError> for AdminCompletion {
    fn from(error: DecodeError) -> Self {
        Status::from(error).into()
    }
}

impl From<DeviceError> for AdminCompletion {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Refused(status) => status.into(),
            _ => Status::InvalidField.into(),
        }
    }
}

type Answer = Result<AdminCompletion, AdminCompletion>;

impl Ssd {
    /// Executes an admin command. Window commands and Asynchronous Event Requests complete only
    /// when their transition or event happens.
    pub async fn admin(&self, command: &AdminCommand) -> AdminCompletion {
        let answer = match command.opcode {
            SetFeatures::OPCODE => self.set_features(command).await,
            GetFeatures::OPCODE => self.get_features(command).await,
            GetLogPage::OPCODE => self.get_log_page(command).await,
            NvmSetList::OPCODE => self.identify(command),
            Notice::OPCODE => {
                self.next_event().await;
                Ok(AdminCompletion::of(Notice::EventAggregate.dword0(), Vec::new()))
            }
            _ => Err(Status::InvalidField.into()),
        };
        answer.unwrap_or_else(|refused| refused)
    }

    async fn set_features(&self, command: &AdminCommand) -> Answer {
        let [a, b, c, ..] = command.dwords;
        let SetFeatures { setting, save } = SetFeatures::decode([a, b, c], &command.data)?;
        if save {
            return Err(Status::FeatureNotSaveable.into());
        }
        match setting {
            Setting::PlmConfig { set, config } => self.configure_plm(set, config).await?,
            Setting::PlmWindow { set, window } => self.select_window(set, window).await?,
            Setting::AsyncEvents(config) => self.set_event_config(config),
        }
        Ok(AdminCompletion::of(0, Vec::new()))
    }

    async fn get_features(&self, command: &AdminCommand) -> Answer {
        let [a, b, ..] = command.dwords;
        let GetFeatures { feature, select } = GetFeatures::decode([a, b])?;
        let setting = match (feature, select) {
            (_, Select::Supported) => return Ok(AdminCompletion::of(CHANGEABLE, Vec::new())),
            (Feature::PlmConfig(set), Select::Current) => {
                Setting::PlmConfig { set, config: self.plm_config(set).await? }
            }
            (Feature::PlmConfig(set), Select::Default | Select::Saved) => {
                Setting::PlmConfig { set, config: PlmConfig::default() }
            }
            (Feature::PlmWindow(set), _) => {
                let window = match self.plm_log(set, true).await?.status {
                    WindowStatus::NotEnabled => return Err(Status::InvalidField.into()),
                    WindowStatus::Dtwin if select == Select::Current => WindowSelect::Dtwin,
                    WindowStatus::Dtwin | WindowStatus::Ndwin => WindowSelect::Ndwin,
                };
                Setting::PlmWindow { set, window }
            }
            (Feature::AsyncEvents, Select::Current) => Setting::AsyncEvents(self.event_config()),
            (Feature::AsyncEvents, Select::Default | Select::Saved) => {
                Setting::AsyncEvents(block::nvme::AsyncEventConfig::default())
            }
        };
        let data = setting.data().map_or_else(Vec::new, |data| data.to_vec());
        Ok(AdminCompletion::of(setting.dword0(), data))
    }

    async fn get_log_page(&self, command: &AdminCommand) -> Answer {
        let [a, b, c, d, ..] = command.dwords;
        let get = GetLogPage::decode([a, b, c, d])?;
        let page = match get.log {
            Log::PerSet(set) => self.plm_log(set, get.retain).await?.encode().to_vec(),
            Log::EventAggregate => {
                if !get.retain {
                    self.event_was_heard();
                }
                self.plm_events().await?.encode()
            }
        };
        // Reads past the end of a log page return zeros.
        let end = (get.span.offset_bytes() + get.span.length_bytes()) as usize;
        let mut page = page;
        page.resize(page.len().max(end), 0);
        let part = get.span.of(&page).ok_or(Status::InvalidField)?;
        Ok(AdminCompletion::of(0, part.to_vec()))
    }

    fn identify(&self, command: &AdminCommand) -> Answer {
        let sets = self.sets();
        let mut page = [0; IDENTIFY_BYTES];
        match command.dwords[0] as u8 {
            NvmSetList::CNS => {
                let entries = sets.iter().map(|set| self.attributes(set));
                let first = NvmSetList::first_of(command.dwords[1]);
                page = NvmSetList::starting_at(first, entries).encode();
            }
            CNS_CONTROLLER => controller_fields(&sets).write_into(&mut page),
            CNS_NAMESPACE => {
                let set = u16::try_from(command.namespace).ok().and_then(SetId::new);
                let known = set.filter(|set| sets.iter().any(|shape| shape.id == *set));
                let set = known.ok_or(Status::InvalidField)?;
                NamespaceFields { set: Some(set), endurance_group: 1 }.write_into(&mut page);
            }
            _ => return Err(Status::InvalidField.into()),
        }
        Ok(AdminCompletion::of(0, page.to_vec()))
    }

    fn attributes(&self, set: &SetShape) -> NvmSetAttributes {
        let alone_us = self.profile().read_alone_us();
        let mean_us = alone_us.iter().sum::<f64>() / alone_us.len() as f64;
        NvmSetAttributes {
            id: set.id,
            endurance_group: 1,
            read_typical_100ns: (mean_us * 10.0).round() as u32,
            optimal_write_bytes: NonZeroU32::new(set.optimal_write_bytes),
            capacity_bytes: u128::from(set.blocks) * u128::from(BLOCK_BYTES),
            unallocated_bytes: 0,
        }
    }
}

fn controller_fields(sets: &[SetShape]) -> ControllerFields {
    let has_windows = sets.iter().any(|set| set.has_windows);
    let base = ControllerAttributes::NVM_SETS.with(ControllerAttributes::ENDURANCE_GROUPS);
    let windows =
        ControllerAttributes::PREDICTABLE_LATENCY.with(ControllerAttributes::READ_RECOVERY_LEVELS);
    ControllerFields {
        attributes: if has_windows { base.with(windows) } else { base },
        announces_event_aggregate: has_windows,
        // The default level 4 and the fast fail level 15, which the standard requires.
        read_recovery_levels: if has_windows { 1 << 4 | 1 << 15 } else { 0 },
        largest_set: sets.len() as u16,
        largest_endurance_group: 1,
    }
}
