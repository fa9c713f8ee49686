//! Runs that differ in what flags with several values say: one for each combination. A single run is the one combination of
//! flags with one value each.

use anyhow::bail;

/// What is said below the help of commands that take several values.
pub(crate) const HELP: &str = "Several values of a flag, apart by commas, make a run for each combination, side by side, \
with one table and one page: --design pink,hash --queue-depth 1,4,16,64, or --set gc_start=0.05,0.1";

/// More runs than this at once are no sweep that anyone looks at.
const MOST_RUNS: usize = 256;

type Keep<A> = Box<dyn Fn(&mut A, usize)>;

/// A flag that takes several values.
pub(crate) struct Axis<A> {
    /// The values as they were given.
    labels: Vec<String>,
    /// Leaves only the value of that number.
    keep: Keep<A>,
}

impl<A: 'static> Axis<A> {
    /// A flag of which `labels` were given; `keep` leaves one.
    pub(crate) fn new(labels: Vec<String>, keep: impl Fn(&mut A, usize) + 'static) -> Self {
        Self { labels, keep: Box::new(keep) }
    }

    /// A flag whose values are a list among the arguments.
    pub(crate) fn list<T: Clone + 'static>(
        arguments: &A,
        list: fn(&mut A) -> &mut Vec<T>,
        label: fn(&T) -> String,
    ) -> Self
    where
        A: Clone,
    {
        let labels = list(&mut arguments.clone()).iter().map(label).collect();
        Self::new(labels, move |arguments, number| {
            let list = list(arguments);
            *list = vec![list[number].clone()];
        })
    }
}

/// One of the runs.
pub(crate) struct Cell<A> {
    /// Arguments with one value for each flag.
    pub(crate) arguments: A,
    /// What sets it apart from the others; empty for the only one.
    pub(crate) name: String,
}

impl<A> Cell<A> {
    /// An error of this run, which names it if there are others.
    pub(crate) fn named(&self, error: anyhow::Error) -> anyhow::Error {
        if self.name.is_empty() { error } else { error.context(self.name.clone()) }
    }
}

/// The runs, those that differ in the last flag next to each other.
///
/// # Errors
/// There are too many, or two are the same.
pub(crate) fn cells<A: Clone>(arguments: &A, axes: &[Axis<A>]) -> anyhow::Result<Vec<Cell<A>>> {
    let swept: Vec<&Axis<A>> = axes.iter().filter(|axis| axis.labels.len() > 1).collect();
    let count = swept.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.labels.len()));
    match count {
        Some(count) if count <= MOST_RUNS => {}
        _ => bail!("these flags make more than {MOST_RUNS} runs: give fewer values"),
    }
    let mut cells = vec![Cell { arguments: arguments.clone(), name: String::new() }];
    for axis in swept {
        if let Some(twice) =
            axis.labels.iter().enumerate().find(|(i, l)| axis.labels[..*i].contains(l))
        {
            bail!("{} is given twice", twice.1);
        }
        cells = cells.iter().flat_map(|cell| along(cell, axis)).collect();
    }
    Ok(cells)
}

/// A cell for each value of a flag.
fn along<A: Clone>(cell: &Cell<A>, axis: &Axis<A>) -> Vec<Cell<A>> {
    let one = |(number, label): (usize, &String)| {
        let mut arguments = cell.arguments.clone();
        (axis.keep)(&mut arguments, number);
        let name = match cell.name.as_str() {
            "" => label.clone(),
            name => format!("{name}, {label}"),
        };
        Cell { arguments, name }
    };
    axis.labels.iter().enumerate().map(one).collect()
}

/// A name of a directory for a run.
pub(crate) fn directory_name(name: &str, number: usize) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() || ['.', '-', '_', '='].contains(&c) { c } else { '-' }
    };
    let slug: String = name.chars().map(letter).collect();
    let slug: Vec<&str> = slug.split('-').filter(|part| !part.is_empty()).collect();
    format!("{:02}-{}", number + 1, slug.join("-"))
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
            Axis::list(arguments, |a| &mut a.designs, String::clone),
            Axis::list(arguments, |a| &mut a.depths, u64::to_string),
            Axis::list(arguments, |a| &mut a.seeds, u64::to_string),
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
        arguments.depths = (0..1000).collect();
        assert!(runs(&arguments).err().unwrap().to_string().contains("more than 256 runs"));
    }

    #[test]
    fn names_of_directories_are_plain() {
        assert_eq!(
            directory_name("pink, a/b.toml, gc_start=0.1", 0),
            "01-pink-a-b.toml-gc_start=0.1"
        );
        assert_eq!(directory_name("../..", 9), "10-..-..");
    }
}
