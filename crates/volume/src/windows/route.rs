//! The route of a read: the decisions of Vigil-KV's `reqd` (ATC'22, sections 4.2 and 6.2). No I/O
//! here.

use runtime::IoClass;

use super::state::State;

/// The kind of reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// A client waits for the read, or will.
    Client,
    /// An internal task, such as compaction or garbage collection.
    Internal,
}

impl Reader {
    /// Returns the reader of a class of reads.
    pub const fn of(class: IoClass) -> Self {
        if class.is_for_clients() { Self::Client } else { Self::Internal }
    }
}

/// The state of the redundancy of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// All members needed for a rebuild serve it, and are undisturbed.
    Quiet,
    /// All members needed for a rebuild serve it, but at least one is outside its deterministic
    /// window.
    Busy,
    /// A rebuild is impossible.
    Missing,
}

/// The route of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// To the member that has the page.
    Home,
    /// To the member that has the page, for lack of a better source. A violation: the read may be
    /// disturbed.
    BusyHome,
    /// To the other members: the page is rebuilt.
    Others,
    /// To the other members, although one of them is outside its window.
    BusyOthers,
}

impl Route {
    /// Whether a member outside its deterministic window is read.
    pub const fn is_busy(self) -> bool {
        matches!(self, Self::BusyHome | Self::BusyOthers)
    }
}

/// Returns the route of a read whose stripe is on the media. `home` is the state of the member that
/// has the page; `None` if that member cannot serve it.
pub const fn route(reader: Reader, home: Option<State>, others: Others) -> Route {
    match (reader, home, others) {
        (_, Some(State::Off | State::Adt), _)
        // The slot is reserved for internal tasks.
        | (Reader::Internal, Some(State::And), _) => Route::Home,
        (_, _, Others::Quiet) => Route::Others,
        (_, Some(_), Others::Busy | Others::Missing) => Route::BusyHome,
        // Without redundancy the rebuild returns the proper error.
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
