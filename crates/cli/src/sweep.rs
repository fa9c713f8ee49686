//! Sweeps: flags with several values make one run for each combination. A single run is the one
//! combination of flags with one value each.

use anyhow::bail;

use crate::output;
use crate::overrides::Setting;

/// The text below the help of commands that accept several values.
pub(crate) const HELP: &str = "Several values of a flag, apart by commas, make a run for each \
     combination, side by side, with one table and one page: --design pink,hash --queue-depth 1,4,16,64, or --set gc_start=0.05,0.1. \
     With --out each run is on disk as soon as it has ended: --resume goes on with a sweep that was \
     stopped, --shard 1/4 runs every fourth combination";

/// Maximum number of runs: more are a mistake, and would exhaust the memory of the machine.
const MOST_RUNS: usize = 100_000;

type Keep<A> = Box<dyn Fn(&mut A, usize)>;

/// One of the values of a flag.
pub(crate) struct Level {
    /// The name of a run with this value.
    label: String,
    /// The value alone.
    value: String,
}

impl Level {
    /// Creates a level from a value that needs no explanation in a run's name.
    pub(crate) fn plain<T: ToString + ?Sized>(value: &T) -> Self {
        Self { label: value.to_string(), value: value.to_string() }
    }

    pub(crate) fn labelled<T: ToString + ?Sized>(value: &T, label: String) -> Self {
        Self { label, value: value.to_string() }
    }
}

/// A flag that takes several values.
pub(crate) struct Axis<A> {
    /// The input that the flag changes, as named in results.
    key: String,
    /// The values given.
    levels: Vec<Level>,
    /// Keeps only the value with this number.
    keep: Keep<A>,
}

impl<A: 'static> Axis<A> {
    /// Creates an axis from the `levels` of a flag; `keep` keeps one of them.
    pub(crate) fn new(
        key: &str,
        levels: Vec<Level>,
        keep: impl Fn(&mut A, usize) + 'static,
    ) -> Self {
        Self { key: key.to_owned(), levels, keep: Box::new(keep) }
    }

    /// Creates an axis from a flag whose values are a list among the arguments.
    pub(crate) fn list<T: Clone + 'static>(
        arguments: &A,
        key: &str,
        list: fn(&mut A) -> &mut Vec<T>,
        level: fn(&T) -> Level,
    ) -> Self
    where
        A: Clone,
    {
        let levels = list(&mut arguments.clone()).iter().map(level).collect();
        Self::new(key, levels, move |arguments, number| {
            let list = list(arguments);
            *list = vec![list[number].clone()];
        })
    }

    /// Creates an axis from the values that `--set` gives a key.
    pub(crate) fn of_setting(setting: &Setting, keep: impl Fn(&mut A, usize) + 'static) -> Self {
        let level = |(value, label): (&String, String)| Level::labelled(value, label);
        let levels = setting.values().iter().zip(setting.labels()).map(level);
        Self::new(setting.key(), levels.collect(), keep)
    }
}

/// One of the runs.
pub(crate) struct Cell<A> {
    /// Arguments with one value for each flag.
    pub(crate) arguments: A,
    /// The values that distinguish the run from the others; empty for a single run.
    pub(crate) name: String,
    /// The same values by key.
    pub(crate) asked: Vec<(String, String)>,
}

impl<A> Cell<A> {
    /// Adds the name of this run to an error, if there are other runs.
    pub(crate) fn named(&self, error: anyhow::Error) -> anyhow::Error {
        if self.name.is_empty() { error } else { error.context(self.name.clone()) }
    }
}

/// One of the runs, with its plan.
pub(crate) struct Combination<P> {
    pub(crate) name: String,
    /// The values that distinguish the run from the others, by key.
    pub(crate) asked: Vec<(String, String)>,
    /// The work, or the reason for a refusal.
    pub(crate) plan: Result<P, String>,
}

impl<P> Combination<P> {
    /// Returns the combination with another plan.
    pub(crate) fn with<'a, Q>(&'a self, change: impl FnOnce(&'a P) -> Q) -> Combination<Q> {
        let plan = self.plan.as_ref().map(change).map_err(String::clone);
        Combination { name: self.name.clone(), asked: self.asked.clone(), plan }
    }
}

/// Plans each run. `plan` returns `Err` if an argument is wrong, and `Ok(Err)` if the run is
/// refused. A run that is refused, or is wrong only in its combination of values, does not stop the
/// other runs.
///
/// # Errors
/// Returns the first error if a value is wrong in all of its runs, or if no run can start.
pub(crate) fn planned<A, P>(
    cells: Vec<Cell<A>>,
    mut plan: impl FnMut(&Cell<A>) -> anyhow::Result<anyhow::Result<P>>,
) -> anyhow::Result<Vec<Combination<P>>> {
    let mut plans: Vec<_> = cells.iter().map(&mut plan).collect();
    let asked: Vec<_> = cells.iter().map(|cell| &cell.asked).collect();
    let is_useless = |plan: &anyhow::Result<anyhow::Result<P>>| !matches!(plan, Ok(Ok(_)));
    let ends = |number: &usize| {
        let is_wrong = |axis: usize| {
            let mut of_value =
                (0..plans.len()).filter(|other| asked[*other][axis] == asked[*number][axis]);
            of_value.all(|other| plans[other].is_err())
        };
        is_useless(&plans[*number])
            && (plans.iter().all(is_useless) || (0..asked[*number].len()).any(is_wrong))
    };
    if let Some(number) = (0..plans.len()).find(ends) {
        let error = plans.swap_remove(number).and_then(|plan| plan).err();
        return Err(cells[number].named(error.expect("it is of no use")));
    }
    let combination = |(cell, plan): (Cell<A>, anyhow::Result<anyhow::Result<P>>)| {
        let plan = plan.and_then(|plan| plan).map_err(|error| output::why(&error));
        Combination { name: cell.name, asked: cell.asked, plan }
    };
    Ok(cells.into_iter().zip(plans).map(combination).collect())
}

/// A part of the runs: those whose number has the same remainder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shard {
    /// Counted from 1.
    number: usize,
    of: usize,
}

impl Shard {
    /// Parses `2/4`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let number = |text: &str| text.trim().parse::<usize>().ok();
        let shard = parts.and_then(|(i, n)| Some(Self { number: number(i)?, of: number(n)? }));
        shard.filter(|shard| (1..=shard.of).contains(&shard.number)).ok_or_else(|| {
            "write which part of how many, such as 1/4 for the first of four".to_owned()
        })
    }

    /// Whether a run, counted from 0, belongs to the shard.
    pub(crate) fn has(self, number: usize) -> bool {
        number % self.of + 1 == self.number
    }
}

/// Returns the runs. Runs that differ in the last flag are adjacent.
///
/// # Errors
/// Returns an error if there are too many runs, or two are the same.
pub(crate) fn cells<A: Clone>(arguments: &A, axes: &[Axis<A>]) -> anyhow::Result<Vec<Cell<A>>> {
    let swept: Vec<&Axis<A>> = axes.iter().filter(|axis| axis.levels.len() > 1).collect();
    let count = swept.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.levels.len()));
    match count {
        Some(count) if count <= MOST_RUNS => {}
        _ => bail!("these flags make more than {MOST_RUNS} runs: give fewer values"),
    }
    let mut cells =
        vec![Cell { arguments: arguments.clone(), name: String::new(), asked: Vec::new() }];
    for axis in swept {
        let labels: Vec<&String> = axis.levels.iter().map(|level| &level.label).collect();
        if let Some((_, twice)) = labels.iter().enumerate().find(|(i, l)| labels[..*i].contains(l))
        {
            bail!("{twice} is given twice");
        }
        cells = cells.iter().flat_map(|cell| along(cell, axis)).collect();
    }
    Ok(cells)
}

/// Returns a cell for each value of a flag.
fn along<A: Clone>(cell: &Cell<A>, axis: &Axis<A>) -> Vec<Cell<A>> {
    let one = |(number, Level { label, value }): (usize, &Level)| {
        let mut arguments = cell.arguments.clone();
        (axis.keep)(&mut arguments, number);
        let name = match cell.name.as_str() {
            "" => label.clone(),
            name => format!("{name}, {label}"),
        };
        let mut asked = cell.asked.clone();
        asked.push((axis.key.clone(), value.clone()));
        Cell { arguments, name, asked }
    };
    axis.levels.iter().enumerate().map(one).collect()
}

/// Maximum length of a run's name in the name of its directory, in characters.
const MOST_LETTERS: usize = 120;

/// Returns the directory name of a run, counted from 0. Names sort in the order of the runs.
pub(crate) fn directory_name(name: &str, number: usize, runs: usize) -> String {
    let digits = runs.to_string().len().max(2);
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() || ['.', '-', '_', '='].contains(&c) { c } else { '-' }
    };
    let slug: String = name.chars().map(letter).collect();
    let slug: Vec<&str> = slug.split('-').filter(|part| !part.is_empty()).collect();
    let slug: String = slug.join("-").chars().take(MOST_LETTERS).collect();
    format!("{:0digits$}-{slug}", number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Arguments {
        designs: Vec<String>,
        depths: Vec<u64>,
        seeds: Vec<u64>,
    }

    fn runs(arguments: &Arguments) -> anyhow::Result<Vec<Cell<Arguments>>> {
        let axes = [
            Axis::list(arguments, "design", |a| &mut a.designs, Level::plain),
            Axis::list(arguments, "depth", |a| &mut a.depths, Level::plain),
            Axis::list(arguments, "seed", |a| &mut a.seeds, Level::plain),
        ];
        cells(arguments, &axes)
    }

    #[test]
    fn each_combination_is_a_run_and_one_of_each_is_one() {
        let mut arguments = Arguments { depths: vec![4], ..Arguments::default() };
        let one = runs(&arguments).unwrap();
        assert_eq!((one.len(), one[0].name.as_str()), (1, ""));
        assert_eq!(one[0].arguments.depths, [4]);
        arguments.designs = vec!["pink".into(), "hash".into()];
        arguments.depths = vec![1, 4, 16];
        let six = runs(&arguments).unwrap();
        let names: Vec<&str> = six.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names, ["pink, 1", "pink, 4", "pink, 16", "hash, 1", "hash, 4", "hash, 16"]);
        assert_eq!(
            (&six[4].arguments.designs[..], &six[4].arguments.depths[..]),
            (&["hash".into()][..], &[4][..])
        );
        arguments.depths = vec![1, 1];
        assert!(runs(&arguments).err().unwrap().to_string().contains("1 is given twice"));
        let asked = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(six[4].asked, [asked("design", "hash"), asked("depth", "4")]);
        arguments.depths = (0..1000).collect();
        assert_eq!(runs(&arguments).unwrap().len(), 2000);
        arguments.seeds = (0..1000).collect();
        assert!(runs(&arguments).err().unwrap().to_string().contains("more than 100000 runs"));
    }

    #[test]
    fn those_that_are_refused_keep_no_other_from_being_run() {
        let designs = || vec!["pink".to_owned(), "hash".to_owned()];
        let arguments = Arguments { designs: designs(), depths: vec![1, 2, 3], seeds: Vec::new() };
        let planned = |wrong: &[&str], refused: &[&str]| {
            let plans = super::planned(runs(&arguments).unwrap(), |cell| {
                let is_among = |list: &[&str]| list.iter().any(|part| cell.name.contains(part));
                anyhow::ensure!(!is_among(wrong), "wrong");
                Ok(if is_among(refused) { Err(anyhow::anyhow!("no room")) } else { Ok(()) })
            });
            let word = |one: Combination<()>| one.plan.map_or_else(|words| words, |()| "ok".into());
            let plans = plans.map(|plans| plans.into_iter().map(word).collect::<Vec<_>>());
            plans.map(|plans| plans.join(",")).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(planned(&[], &["2"]), Ok("ok,no room,ok,ok,no room,ok".to_owned()));
        assert_eq!(planned(&["pink, 1", "hash, 2"], &[]), Ok("wrong,ok,ok,ok,wrong,ok".to_owned()));
        // A value that is wrong in each combination is a typing error.
        assert_eq!(planned(&["hash"], &[]), Err("hash, 1: wrong".to_owned()));
        assert_eq!(planned(&["3"], &["2"]), Err("pink, 3: wrong".to_owned()));
        assert_eq!(
            planned(&["pink, 2"], &["pink, 1", "3", "hash"]),
            Err("pink, 1: no room".to_owned())
        );
        let one = Arguments { depths: vec![1], ..Arguments::default() };
        let alone = |refused: bool| {
            let plan =
                |_: &Cell<_>| Ok(if refused { Err(anyhow::anyhow!("no room")) } else { Ok(7) });
            super::planned(runs(&one).unwrap(), plan).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(alone(true).err(), Some("no room".to_owned()));
        assert_eq!(alone(false).unwrap()[0].plan, Ok(7));
    }

    #[test]
    fn shards_have_each_run_once() {
        let shards = ["1/3", "2/3", "3/3"].map(|text| Shard::parse(text).unwrap());
        for number in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(number)).count(), 1);
        }
        assert!(shards[0].has(0) && shards[0].has(3) && shards[2].has(2));
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2", "1/2/3"] {
            assert!(Shard::parse(wrong).unwrap_err().contains("1/4"), "{wrong}");
        }
    }

    #[test]
    fn names_of_directories_are_plain() {
        assert_eq!(
            directory_name("pink, a/b.toml, gc_start=0.1", 0, 99),
            "01-pink-a-b.toml-gc_start=0.1"
        );
        assert_eq!(directory_name("../..", 9, 10), "10-..-..");
        assert_eq!(directory_name("1 deep", 9, 500), "010-1-deep");
        assert!(directory_name(&"x".repeat(500), 0, 2).len() < 200);
    }
}
