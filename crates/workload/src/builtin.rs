//! Built-in workloads, as property files: the six core workloads of YCSB (Cooper et al., `SoCC`
//! 2010, table 2), `db_bench`'s random seeks and its mixgraph, uniform reads, and approximations of
//! two stores at Facebook.

use crate::Properties;

/// The names accepted by [`builtin`]; `workloada` means the same as `a`.
pub const BUILTIN_NAMES: [&str; 11] =
    ["a", "b", "c", "d", "e", "f", "seekrandom", "kvbench-read", "userdb", "zippydb", "mixgraph"];

/// File names and contents, in the order of [`BUILTIN_NAMES`].
const FILES: [(&str, &str); BUILTIN_NAMES.len()] = [
    ("workloada", include_str!("../workloads/workloada")),
    ("workloadb", include_str!("../workloads/workloadb")),
    ("workloadc", include_str!("../workloads/workloadc")),
    ("workloadd", include_str!("../workloads/workloadd")),
    ("workloade", include_str!("../workloads/workloade")),
    ("workloadf", include_str!("../workloads/workloadf")),
    ("seekrandom", include_str!("../workloads/seekrandom")),
    ("kvbench-read", include_str!("../workloads/kvbench-read")),
    ("userdb", include_str!("../workloads/userdb")),
    ("zippydb", include_str!("../workloads/zippydb")),
    ("mixgraph", include_str!("../workloads/mixgraph")),
];

/// Returns the text of the built-in workload `name`, as a property file.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let mut named = FILES.into_iter().zip(BUILTIN_NAMES);
    named.find(|((file, _), short)| name == *file || name == *short).map(|((_, text), _)| text)
}

/// Returns the properties of the built-in workload `name` (`a`, `A` or `workloada`), to be changed
/// with [`Properties::set`] as needed. `None` if no such workload exists.
pub fn builtin(name: &str) -> Option<Properties> {
    let parsed = Properties::parse(&name.to_ascii_lowercase(), builtin_text(name)?);
    Some(parsed.expect("the files that come with the crate are well formed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CoreWorkload, InsertOrder, KeyRanges, LengthDistribution, Mix, Pareto, PowerLaw,
        RequestDistribution, ScanLengths, TwoTermExponential,
    };

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
    fn scans_of_workload_e_are_up_to_100_long_and_read_one_by_one() {
        let scans = workload("workloade").scans;
        assert_eq!((scans.lengths.min, scans.lengths.max, scans.batch), (1, 100, 1));
    }

    #[test]
    fn random_seeks_are_uniform_on_four_byte_keys_in_either_layout() {
        let seeks = workload("seekrandom");
        assert_eq!(seeks.mix, Mix { scan: 1.0, ..Mix::default() });
        assert_eq!(seeks.request_distribution, RequestDistribution::Uniform);
        assert_eq!((seeks.scans.lengths.min, seeks.scans.lengths.max), (128, 128));
        assert_eq!((seeks.keys.key_bytes(), seeks.keys.order()), (4, InsertOrder::Hashed));
        assert!(seeks.warnings.is_empty(), "{:?}", seeks.warnings);
        let mut properties = builtin("seekrandom").unwrap();
        properties.set("insertorder", "ordered");
        properties.set("recordcount", "3000000");
        let ordered = CoreWorkload::from_properties(&properties).unwrap();
        assert_eq!(ordered.keys.order(), InsertOrder::Ordered);
    }

    #[test]
    fn uniform_reads_are_uniform_reads() {
        let reads = workload("kvbench-read");
        assert_eq!(reads.mix, Mix { read: 1.0, ..Mix::default() });
        assert_eq!(reads.request_distribution, RequestDistribution::Uniform);
        assert_eq!((reads.keys.key_bytes(), reads.values.longest_bytes()), (32, 1024));
        assert!(reads.warnings.is_empty(), "{:?}", reads.warnings);
    }

    #[test]
    fn stand_ins_have_the_lengths_and_mixes_that_are_published() {
        let (user, zippy) = (workload("userdb"), workload("zippydb"));
        assert_eq!(user.mix, Mix { read: 0.54, update: 0.46, ..Mix::default() });
        assert_eq!(zippy.mix, Mix { read: 0.42, update: 0.58, ..Mix::default() });
        assert_eq!((user.keys.key_bytes(), zippy.keys.key_bytes()), (27, 48));
        // Means of 126.7 and 34.5 bytes.
        assert_eq!((user.values.typical_bytes(), zippy.values.typical_bytes()), (126, 34));
        assert_eq!(zippy.request_distribution, RequestDistribution::Latest);
        assert!(user.warnings.is_empty() && zippy.warnings.is_empty());
    }

    #[test]
    fn mixgraph_has_the_published_fit() {
        let mixgraph = workload("mixgraph");
        let mix = Mix { read: 0.83, update: 0.14, scan: 0.03, ..Mix::default() };
        assert_eq!(mixgraph.mix, mix);
        let hotness = TwoTermExponential { a: 14.18, b: -2.917, c: 0.0164, d: -0.08082 };
        let keys = PowerLaw { a: 0.002_312, b: 0.3467 };
        let ranges = KeyRanges { count: 30, hotness, keys };
        assert_eq!(mixgraph.request_distribution, RequestDistribution::KeyRanges(ranges));
        assert_eq!((mixgraph.keys.key_bytes(), mixgraph.keys.order()), (48, InsertOrder::Ordered));
        let distribution = LengthDistribution::Pareto(Pareto { k: 2.517, sigma: 14.236 });
        assert_eq!(mixgraph.scans.lengths, ScanLengths { min: 1, max: 10_000, distribution });
        assert_eq!(mixgraph.scans.batch, 1);
        assert_eq!(mixgraph.values, workload("zippydb").values);
        assert!(mixgraph.warnings.is_empty(), "{:?}", mixgraph.warnings);
    }

    #[test]
    fn names_come_in_three_spellings() {
        assert!(builtin("A").is_some() && builtin("WorkloadF").is_some());
        assert!(BUILTIN_NAMES.into_iter().all(|name| builtin(name).is_some()));
        assert!(builtin("SeekRandom").is_some() && builtin("workloadseekrandom").is_none());
        assert!(builtin("g").is_none() && builtin("workload").is_none());
    }
}
