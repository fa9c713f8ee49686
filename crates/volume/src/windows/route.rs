//! Where a read goes: the decisions of Vigil-KV's `reqd` (ATC'22, sections 4.2 and 6.2). No I/O here.

use runtime::IoClass;

use super::state::State;

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// A client waits, or will.
    Client,
    /// An internal task: compaction, collection.
    Internal,
}

impl Reader {
    /// Whose reads have that class.
    pub const fn of(class: IoClass) -> Self {
        if class.is_for_clients() { Self::Client } else { Self::Internal }
    }
}

/// What the redundancy of a page is good for now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// All that it takes is there, and undisturbed.
    Quiet,
    /// All that it takes is there; something of it is outside its deterministic window.
    Busy,
    /// It is not there.
    Missing,
}

/// Where a read goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// To the member that has the page.
    Home,
    /// The same, which is against the rules: the read may be disturbed, and nothing else is left.
    BusyHome,
    /// To the others: the page is rebuilt.
    Others,
    /// The same, though one of them is outside its window.
    BusyOthers,
}

impl Route {
    /// Whether a member outside its deterministic window is asked for a client.
    pub const fn is_busy(self) -> bool {
        matches!(self, Self::BusyHome | Self::BusyOthers)
    }
}

/// Where a page is read from whose stripe is on the media. `home` is the state of the member that has
/// it; nothing, if that cannot serve it.
pub const fn route(reader: Reader, home: Option<State>, others: Others) -> Route {
    match (reader, home, others) {
        (_, Some(State::Off | State::Adt), _)
        // Its slot is there for the internal tasks.
        | (Reader::Internal, Some(State::And), _) => Route::Home,
        (_, _, Others::Quiet) => Route::Others,
        (_, Some(_), Others::Busy | Others::Missing) => Route::BusyHome,
        // Without redundancy this says what is wrong.
        (_, None, Others::Busy | Others::Missing) => Route::BusyOthers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 6] =
        [State::Off, State::Adt, State::Udt, State::And, State::Und, State::Lockdown];

    #[test]
    fn a_client_never_meets_a_busy_member_while_the_others_are_quiet() {
        for home in STATES {
            let route = route(Reader::Client, Some(home), Others::Quiet);
            assert_eq!(route == Route::Home, home.is_quiet(), "{home:?}");
            assert!(!route.is_busy(), "{home:?}");
        }
        assert_eq!(route(Reader::Client, None, Others::Quiet), Route::Others);
    }

    #[test]
    fn without_quiet_others_the_member_is_asked_all_the_same() {
        for others in [Others::Busy, Others::Missing] {
            for home in STATES {
                let expected = if home.is_quiet() { Route::Home } else { Route::BusyHome };
                assert_eq!(route(Reader::Client, Some(home), others), expected);
            }
            assert_eq!(route(Reader::Client, None, others), Route::BusyOthers);
        }
    }

    #[test]
    fn internal_tasks_use_the_slot() {
        let at = |home| route(Reader::Internal, Some(home), Others::Quiet);
        assert_eq!([at(State::And), at(State::Adt)], [Route::Home; 2]);
        assert_eq!([at(State::Udt), at(State::Und), at(State::Lockdown)], [Route::Others; 3]);
        assert!(IoClass::ALL.iter().all(|class| {
            let waits = class.priority() == runtime::Priority::Background;
            (Reader::of(*class) == Reader::Internal) == (waits && *class != IoClass::Journal)
        }));
    }
}
