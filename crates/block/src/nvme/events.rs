//! Events of a set, and how the host is notified of them.
//!
//! 1. A set records an event if the host enabled it (feature 13h, [`Events`]).
//! 2. The set is then listed in the event aggregate (log page 0Bh). A change of the list is
//!    announced by a [`Notice`] if the host enabled announcements ([`AsyncEventConfig`], feature
//!    0Bh).
//! 3. Reading the set's log page 0Ah without Retain Asynchronous Event clears its events.

/// An event of a set. The number is its bit in [`Events`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Event {
    /// Fewer reads than the threshold remain in the deterministic window.
    ReadsWarning = 0,
    /// Fewer writes than the threshold remain in the deterministic window.
    WritesWarning = 1,
    /// Less time than the threshold remains in the deterministic window.
    TimeWarning = 2,
    /// The set left the window by itself: reads or writes exceeded the typical number, or the
    /// window exceeded its maximum time.
    Exceeded = 14,
    /// The set left the window by itself for a deterministic excursion: work that could not be
    /// deferred.
    Excursion = 15,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 5] = [
        Self::ReadsWarning,
        Self::WritesWarning,
        Self::TimeWarning,
        Self::Exceeded,
        Self::Excursion,
    ];

    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// A set of events: Enable Event of feature 13h, Event Type of log page 0Ah.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events(u16);

impl Events {
    /// No event.
    pub const NONE: Self = Self(0);
    /// Every event.
    pub const ALL: Self = Self(0xC007);

    /// Decodes an event field. Reserved bits are ignored.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Returns the value of the event field.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns these events and `event`.
    #[must_use]
    pub const fn with(self, event: Event) -> Self {
        Self(self.0 | event.bit())
    }

    /// Whether the set contains `event`.
    pub const fn contains(self, event: Event) -> bool {
        self.0 & event.bit() != 0
    }

    /// Returns the events that are in both sets, for example those that occurred and are enabled.
    #[must_use]
    pub const fn intersection(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the events, by ascending bit.
    pub fn iter(self) -> impl Iterator<Item = Event> {
        Event::ALL.into_iter().filter(move |event| self.contains(*event))
    }
}

impl FromIterator<Event> for Events {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        events.into_iter().fold(Self::NONE, Self::with)
    }
}

/// An asynchronous event of type Notice, as dword 0 of the completion of an Asynchronous Event
/// Request: type in bits 2:0, information in bits 15:8, log page to read in bits 23:16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Predictable Latency Event Aggregate Log Change: a set was added to log page 0Bh.
    EventAggregate,
}

impl Notice {
    /// The opcode of Asynchronous Event Request.
    pub const OPCODE: u8 = 0x0C;

    /// Returns dword 0 of the completion: type 2h (notice), information 04h, log page 0Bh.
    pub const fn dword0(self) -> u32 {
        match self {
            Self::EventAggregate => 0x000B_0402,
        }
    }

    /// Decodes the notice of a completion; `None` for any other event. Reserved bits are ignored.
    pub const fn from_completion(dword0: u32) -> Option<Self> {
        const DEFINED: u32 = 0x00FF_FF07;
        if dword0 & DEFINED == Self::EventAggregate.dword0() {
            Some(Self::EventAggregate)
        } else {
            None
        }
    }
}

/// Asynchronous Event Configuration, feature 0Bh: the announcements that the host enables. Bit 12
/// enables those of log page 0Bh. All other bits are preserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AsyncEventConfig {
    /// Command dword 11 of Set Features, dword 0 of the completion of Get Features.
    pub bits: u32,
}

impl AsyncEventConfig {
    const EVENT_AGGREGATE: u32 = 1 << 12;

    /// Whether changes of log page 0Bh are announced.
    pub const fn event_aggregate(self) -> bool {
        self.bits & Self::EVENT_AGGREGATE != 0
    }

    /// Returns the configuration with announcements of log page 0Bh enabled or disabled.
    #[must_use]
    pub const fn with_event_aggregate(self, announced: bool) -> Self {
        let others = self.bits & !Self::EVENT_AGGREGATE;
        Self { bits: if announced { others | Self::EVENT_AGGREGATE } else { others } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_their_bits() {
        let bits: Vec<u16> = Event::ALL.iter().map(|e| Events::NONE.with(*e).bits()).collect();
        assert_eq!(bits, [0x0001, 0x0002, 0x0004, 0x4000, 0x8000]);
        assert_eq!(Event::ALL.into_iter().collect::<Events>(), Events::ALL);
        assert_eq!(Events::from_bits(0xFFFF), Events::ALL, "reserved bits are ignored");
        let both = Events::NONE.with(Event::TimeWarning).with(Event::Excursion);
        assert_eq!(both.iter().collect::<Vec<_>>(), [Event::TimeWarning, Event::Excursion]);
        assert!(both.intersection(Events::NONE.with(Event::Exceeded)).is_empty());
    }

    #[test]
    fn the_notice_is_told_from_other_events() {
        let notice = Notice::EventAggregate;
        assert_eq!(notice.dword0(), 0x000B_0402);
        assert_eq!(Notice::from_completion(0xFF0B_04FA), Some(notice), "reserved bits");
        let others = [
            ("SMART", 0x000B_0401),
            ("asymmetric access", 0x000C_0302),
            ("another page", 0x000C_0402),
        ];
        for (name, dword0) in others {
            assert_eq!(Notice::from_completion(dword0), None, "{name}");
        }
    }

    #[test]
    fn enabling_announcements_keeps_the_other_bits() {
        let config = AsyncEventConfig { bits: 0x0000_031F };
        assert!(!config.event_aggregate());
        let on = config.with_event_aggregate(true);
        assert_eq!(on.bits, 0x0000_131F);
        assert!(on.event_aggregate());
        assert_eq!(on.with_event_aggregate(false), config);
    }
}
