//! A clock that jumps by hours in both directions while keys expire and servers restart. Readers do
//! not see expired keys; all other keys exist, with the time that is left. If the clock was set
//! back, a key that had expired before may have been swept or not; once it is gone it stays gone.

use runtime::Rng;
use server::{Clock, Hand, Options};

use crate::client::{Client, directory, start};

/// Number of trials; `LEVELHEAD_ROUNDS` sets it, `LEVELHEAD_SEED` runs a single one.
const TRIALS: u64 = 6;
const COMMANDS: u64 = 1_500;
const KEYS: u64 = 24;
const HOUR_MS: u64 = 3_600_000;

#[expect(clippy::disallowed_methods, reason = "a test may be told from outside")]
fn wanted(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

/// The expected value of a key.
#[derive(Clone, Debug)]
struct Held {
    value: String,
    expiry: Option<u64>,
    /// Whether the clock has reached the expiry since it was set.
    had_passed: bool,
}

struct Trial {
    client: Client,
    hand: Hand,
    now: u64,
    rng: Rng,
    keys: Vec<Option<Held>>,
}

impl Trial {
    fn say(&mut self, words: &str) -> String {
        self.client.say(words)
    }

    /// Even keys are strings, odd ones hashes.
    fn is_string(key: usize) -> bool {
        key.is_multiple_of(2)
    }

    fn set_clock(&mut self, now: u64) {
        self.now = now;
        self.hand.set_ms(now);
        for held in self.keys.iter_mut().flatten() {
            held.had_passed |= held.expiry.is_some_and(|expiry| expiry <= now);
        }
    }

    fn jump(&mut self) {
        let far = HOUR_MS + self.rng.below(5 * HOUR_MS);
        let now = match self.rng.below(4) {
            0 => self.now + far,
            1 => self.now.saturating_sub(far),
            // By about the remaining lifetime of the keys, or less.
            2 => self.now.saturating_sub(self.rng.below(20_000)),
            _ => self.now + self.rng.below(20_000),
        };
        self.set_clock(now);
    }

    fn put(&mut self, key: usize, number: u64) {
        let value = format!("v{number}");
        let (mut expiry, now) = (None, self.now);
        let longest = [15, 20_000][self.rng.below(2) as usize];
        let seconds = 1 + self.rng.below(longest);
        let expires = self.rng.below(3) > 0;
        if expires {
            expiry = Some(now + seconds * 1_000);
        }
        if Self::is_string(key) {
            let words = match (expires, self.rng.below(2)) {
                (false, _) => format!("SET {key} {value}"),
                (true, 0) => format!("SET {key} {value} EX {seconds}"),
                (true, _) => format!("SET {key} {value} PXAT {}", now + seconds * 1_000),
            };
            assert_eq!(self.say(&words), "OK", "{words}");
        } else {
            self.say(&format!("DEL {key}"));
            assert_eq!(self.say(&format!("HSET {key} f {value}")), "1");
            if expires {
                assert_eq!(self.say(&format!("EXPIRE {key} {seconds}")), "1");
            }
        }
        self.keys[key] = Some(Held { value, expiry, had_passed: false });
    }

    /// Checks whether a key may be found or missing. Returns whether it exists.
    fn is_there(&mut self, key: usize, found: bool, what: &str) -> bool {
        let (now, held) = (self.now, &mut self.keys[key]);
        let words = format!("{what} of {key} at {now}: {found}, {held:?}");
        let Some(known) = held else {
            assert!(!found, "{words}");
            return false;
        };
        if known.expiry.is_some_and(|expiry| expiry <= now) {
            assert!(!found, "{words}");
        } else if !known.had_passed {
            assert!(found, "{words}");
        } else if !found {
            // The key was swept.
            *held = None;
        }
        found
    }

    fn get(&mut self, key: usize) {
        let words =
            if Self::is_string(key) { format!("GET {key}") } else { format!("HGET {key} f") };
        let found = self.say(&words);
        if self.is_there(key, found != "(nil)", &words) {
            let value = self.keys[key].as_ref().map(|held| held.value.clone());
            assert_eq!(Some(found), value, "{words}");
        }
    }

    fn left(&mut self, key: usize) {
        let left = self.say(&format!("PTTL {key}"));
        if self.is_there(key, left != "-2", "PTTL") {
            let expiry = self.keys[key].as_ref().and_then(|held| held.expiry);
            let wanted = expiry.map_or("-1".to_owned(), |expiry| (expiry - self.now).to_string());
            assert_eq!(left, wanted, "PTTL of {key} at {}", self.now);
        }
    }

    fn change_expiry(&mut self, key: usize) {
        let seconds = 1 + self.rng.below(30_000);
        let found = self.say(&format!("EXPIRE {key} {seconds}")) == "1";
        if self.is_there(key, found, "EXPIRE") {
            let expiry = Some(self.now + seconds * 1_000);
            let held = self.keys[key].as_mut().expect("it is there");
            (held.expiry, held.had_passed) = (expiry, false);
        }
    }

    fn step(&mut self, number: u64) {
        let key = self.rng.below(KEYS) as usize;
        match self.rng.below(10) {
            0 | 1 => self.jump(),
            2 | 3 => self.put(key, number),
            4 | 5 => self.left(key),
            6 => self.change_expiry(key),
            _ => self.get(key),
        }
    }

    /// Checks all keys, and their number once all expired keys are swept.
    fn check_all(&mut self) {
        (0..KEYS as usize).for_each(|key| self.get(key));
        let now = self.now;
        let is_alive = |held: &&Held| held.expiry.is_none_or(|expiry| expiry > now);
        let alive = self.keys.iter().flatten().filter(is_alive).count().to_string();
        for _ in 0..4_000 {
            if self.say("DBSIZE") == alive {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        panic!("{alive} keys are alive, {} are counted", self.say("DBSIZE"));
    }
}

fn trial(seed: u64) {
    let directory = directory(&format!("clocks-{seed}"));
    let durability = [levelhead::Durability::Interval, levelhead::Durability::Group];
    let options = || Options { durability: durability[seed as usize % 2], ..Options::default() };
    let (clock, hand) = Clock::by_hand(100 * HOUR_MS);
    let mut server = start(&directory, options(), clock.clone());
    let (client, rng) = (Client::of(&server), Rng::derive(seed, "clocks"));
    let keys = vec![None; KEYS as usize];
    let mut trial = Trial { client, hand, now: 100 * HOUR_MS, rng, keys };
    for number in 0..COMMANDS {
        trial.step(number);
        if number % 500 == 499 {
            server.stop().expect("nothing is in the way");
            // The clock may be set while no server runs.
            trial.jump();
            server = start(&directory, options(), clock.clone());
            trial.client = Client::of(&server);
            trial.check_all();
            assert!(trial.say("INFO server").contains("uptime_in_seconds:"));
            assert!(trial.say("CLIENT LIST").contains("age="));
        }
    }
    server.stop().expect("nothing is in the way");
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn keys_expire_by_a_clock_that_jumps() {
    let all = 0..wanted("LEVELHEAD_ROUNDS").unwrap_or(TRIALS);
    for seed in wanted("LEVELHEAD_SEED").map_or(all, |seed| seed..seed + 1) {
        let ran = std::panic::catch_unwind(|| trial(seed));
        if let Err(why) = ran {
            println!(
                "LEVELHEAD_SEED={seed} cargo test -p server --test serve -- --nocapture keys_expire_by_a_clock"
            );
            std::panic::resume_unwind(why);
        }
    }
}
