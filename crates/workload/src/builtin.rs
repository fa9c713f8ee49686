//! The six core workloads of YCSB (Cooper et al., `SoCC` 2010, table 2) as property files of ours.

use crate::Properties;

/// The names that [`builtin`] knows; `workloada` means the same as `a`.
pub const BUILTIN_NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

const TEXTS: [&str; 6] = [
    include_str!("../workloads/workloada"),
    include_str!("../workloads/workloadb"),
    include_str!("../workloads/workloadc"),
    include_str!("../workloads/workloadd"),
    include_str!("../workloads/workloade"),
    include_str!("../workloads/workloadf"),
];

/// The properties of the built-in workload `name` (`a`, `A` or `workloada`), to be changed with
/// [`Properties::set`] as needed. `None` if there is no such workload.
pub fn builtin(name: &str) -> Option<Properties> {
    let name = name.to_ascii_lowercase();
    let letter = name.strip_prefix("workload").unwrap_or(&name);
    let index = BUILTIN_NAMES.iter().position(|known| *known == letter)?;
    let file = format!("workload{letter}");
    let parsed = Properties::parse(&file, TEXTS[index]);
    Some(parsed.expect("the files that come with the crate are well formed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoreWorkload, Mix, RequestDistribution};

    fn workload(name: &str) -> CoreWorkload {
        CoreWorkload::from_properties(&builtin(name).unwrap()).unwrap()
    }

    #[test]
    fn shipped_files_have_the_published_mixes() {
        let none = Mix::default();
        let zipfian = RequestDistribution::Zipfian;
        let table = [
            ("a", Mix { read: 0.5, update: 0.5, ..none }, zipfian),
            ("b", Mix { read: 0.95, update: 0.05, ..none }, zipfian),
            ("c", Mix { read: 1.0, ..none }, zipfian),
            ("d", Mix { read: 0.95, insert: 0.05, ..none }, RequestDistribution::Latest),
            ("e", Mix { scan: 0.95, insert: 0.05, ..none }, zipfian),
            ("f", Mix { read: 0.5, read_modify_write: 0.5, ..none }, zipfian),
        ];
        for (name, mix, distribution) in table {
            let workload = workload(name);
            assert_eq!(workload.mix, mix, "workload {name}");
            assert_eq!(workload.request_distribution, distribution, "workload {name}");
            assert_eq!((workload.record_count, workload.operation_count), (1000, 1000));
            assert_eq!((workload.keys.key_bytes(), workload.values.longest_bytes()), (32, 1024));
            assert!(workload.warnings.is_empty(), "{:?}", workload.warnings);
        }
    }

    #[test]
    fn scans_of_workload_e_are_up_to_100_long() {
        let scans = workload("workloade").scans;
        assert_eq!((scans.min, scans.max), (1, 100));
    }

    #[test]
    fn names_come_in_three_spellings() {
        assert!(builtin("A").is_some() && builtin("WorkloadF").is_some());
        assert!(builtin("g").is_none() && builtin("workload").is_none());
    }
}
