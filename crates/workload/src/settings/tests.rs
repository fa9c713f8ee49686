use super::*;
use crate::{KeyRanges, Pareto, PowerLaw, Properties, TwoTermExponential};

fn from(text: &str) -> Result<CoreWorkload, SettingsError> {
    CoreWorkload::from_properties(&Properties::parse("w", text).unwrap())
}

fn error(text: &str) -> String {
    from(text).unwrap_err().to_string()
}

#[test]
fn defaults_are_ycsbs() {
    let workload = from("recordcount=7").unwrap();
    assert_eq!((workload.record_count, workload.operation_count), (7, 0));
    assert_eq!((workload.insert_start, workload.insert_count), (0, 7));
    assert_eq!(workload.mix, Mix { read: 0.95, update: 0.05, ..Mix::default() });
    assert_eq!(workload.request_distribution, RequestDistribution::Uniform);
    assert_eq!(workload.values.longest_bytes(), 1000);
    assert_eq!(workload.values.form(), ValueForm::Synthetic);
    assert_eq!(workload.keys.key_bytes(), 32);
    assert_eq!(workload.keys.order(), InsertOrder::Hashed);
    let lengths = ScanLengths { min: 1, max: 1000, distribution: LengthDistribution::Uniform };
    assert_eq!(workload.scans, Scans { lengths, batch: 1, end: ScanEnd::Length });
    assert_eq!((workload.thread_count, workload.target_rate), (None, None));
    assert!(workload.warnings.is_empty());
}

#[test]
fn everything_can_be_set() {
    let text = "
        recordcount = 1000
        operationcount = 50
        insertstart = 100
        insertcount = 200
        readproportion = 1
        updateproportion = 2
        insertproportion = 3
        scanproportion = 4
        readmodifywriteproportion = 5
        deleteproportion = 6
        requestdistribution = hotspot
        hotspotdatafraction = 0.1
        hotspotopnfraction = 0.9
        fieldcount = 4
        fieldlength = 50
        fieldlengthdistribution = uniform
        minfieldlength = 20
        insertorder = ordered
        zeropadding = 12
        keyprefix = k
        maxscanlength = 9
        minscanlength = 3
        scanlengthdistribution = zipfian
        scanbatch = 16
        scanbound = true
        threadcount = 16
        target = 5000
        levelhead.keybytes = 40
        levelhead.values = bytes";
    let workload = from(text).unwrap();
    assert_eq!((workload.insert_start, workload.insert_count), (100, 200));
    let mix =
        Mix { read: 1.0, update: 2.0, insert: 3.0, scan: 4.0, read_modify_write: 5.0, delete: 6.0 };
    assert_eq!(workload.mix, mix);
    let hotspot = RequestDistribution::Hotspot { data_fraction: 0.1, operation_fraction: 0.9 };
    assert_eq!(workload.request_distribution, hotspot);
    let lengths = FieldLengths::Uniform { min: 20, max: 50 };
    assert_eq!(workload.values, ValueRecipe::new(4, lengths, ValueForm::Bytes));
    assert_eq!(workload.keys, KeyFormat::new("k", 40, InsertOrder::Ordered).unwrap());
    let lengths = ScanLengths { min: 3, max: 9, distribution: LengthDistribution::Zipfian };
    assert_eq!(workload.scans, Scans { lengths, batch: 16, end: ScanEnd::Bound });
    assert_eq!((workload.thread_count, workload.target_rate), (Some(16), Some(5000.0)));
    assert!(workload.warnings.is_empty(), "{:?}", workload.warnings);
}

#[test]
fn wrong_values_are_told_with_their_place_and_what_is_allowed() {
    let table = [
        ("# c\nrecordcount=many", "w:2: recordcount=many is not allowed; allowed: a whole number"),
        ("recordcount=0", "w:1: recordcount=0 is not allowed; allowed: a whole number from 1 to"),
        ("operationcount=1", "recordcount is not set"),
        ("recordcount=5\nreadproportion=-1", "w:2: readproportion=-1 is not allowed; allowed: a n"),
        ("recordcount=5\nreadproportion=NaN", "w:2: readproportion=NaN"),
        ("recordcount=5\nreadproportion=0\nupdateproportion=0", "w:2: readproportion=0 is not all"),
        (
            "recordcount=5\nrequestdistribution=zipf",
            "uniform, zipfian, latest, sequential, hotspot",
        ),
        (
            "recordcount=5\ninsertcount=6",
            "w:2: insertcount=6 is not allowed; allowed: a whole numb",
        ),
        ("recordcount=5\ninsertstart=5", "w:2: insertstart=5"),
        ("recordcount=5\nfieldlengthdistribution=histogram", "constant, uniform, zipfian"),
        ("recordcount=5\nminfieldlength=101", "w:2: minfieldlength=101"),
        ("recordcount=5\nminscanlength=11\nmaxscanlength=10", "w:2: minscanlength=11"),
        ("recordcount=5\ninsertorder=random", "hashed, ordered"),
        ("recordcount=5\nmaxscanlength=0", "w:2: maxscanlength=0 is not allowed; allowed: a whole"),
        ("recordcount=5\nscanlengthdistribution=fixed", "allowed: uniform, zipfian"),
        (
            "recordcount=5\nscanbatch=all",
            "w:2: scanbatch=all is not allowed; allowed: a whole numb",
        ),
        (
            "recordcount=5\nscanbound=half",
            "w:2: scanbound=half is not allowed; allowed: false, true",
        ),
        (
            "recordcount=5\nseeknexts=-1",
            "w:2: seeknexts=-1 is not allowed; allowed: a whole number",
        ),
        ("recordcount=5\nlevelhead.keydigits=hex", "allowed: decimal, binary"),
        ("recordcount=5\nlevelhead.keybytes=4", "w:2: levelhead.keybytes=4"),
        ("recordcount=11\nlevelhead.keybytes=5", "digits for 11 keys; this one has them for 10"),
        ("recordcount=5\nlevelhead.valuesize=4", "levelhead properties are levelhead.keybytes,"),
        ("recordcount=5\nlevelhead.values=real", "synthetic, bytes"),
        ("recordcount=5\nthreadcount=0", "w:2: threadcount=0"),
        ("recordcount=5\nthreadcount=65537", "allowed: a whole number from 1 to 65536"),
        ("recordcount=5\ntarget=1e-300", "w:2: target=1e-300 is not allowed; allowed: 0 for none"),
        ("recordcount=5\ntarget=1e300", "allowed: a number from 0 to 1000000000000"),
        (
            "recordcount=68719476736\noperationcount=100",
            "w:2: operationcount=100 is not allowed; allowed: records (68719476736) and operations",
        ),
    ];
    for (text, expected) in table {
        let error = error(text);
        assert!(error.contains(expected), "{text:?} gave {error:?}");
    }
}

#[test]
fn inserts_to_come_need_keys_too() {
    let text = "recordcount=5\noperationcount=6\nlevelhead.keybytes=5\n";
    assert!(from(text).is_ok());
    assert!(error(&format!("{text}insertproportion=0.1")).contains("digits for 11 keys"));
}

#[test]
fn zero_padding_lengthens_keys_that_have_no_set_length() {
    let workload = from("recordcount=5\nzeropadding=40").unwrap();
    assert_eq!(workload.keys.key_bytes(), 44);
    assert!(error("recordcount=5\nzeropadding=40\nlevelhead.keybytes=43").contains("from 44 to"));
}

#[test]
fn padding_that_a_flag_asks_for_is_what_is_wrong() {
    let mut properties = Properties::parse("a", "recordcount=5\nlevelhead.keybytes=32").unwrap();
    properties.set("zeropadding", "99");
    let error = CoreWorkload::from_properties(&properties).unwrap_err().to_string();
    assert!(error.contains("zeropadding=99 is not allowed; allowed: up to 28 digits"), "{error}");
    properties.set("zeropadding", "28");
    assert!(CoreWorkload::from_properties(&properties).is_ok());
}

#[test]
fn seeknexts_counts_what_follows_the_seek() {
    let workload = from("recordcount=5\nmaxscanlength=9\nseeknexts=127\nscanbatch=0").unwrap();
    assert_eq!((workload.scans.lengths.min, workload.scans.lengths.max), (128, 128));
    assert_eq!(workload.scans.batch, 1);
    let warning = "w:2: maxscanlength has no effect: seeknexts sets the length of scans";
    assert_eq!(workload.warnings, [warning]);
}

#[test]
fn keys_of_four_bytes_have_room_for_millions_in_binary_only() {
    let text = "recordcount=3000000\nkeyprefix=\nlevelhead.keybytes=4\n";
    assert!(error(text).contains("digits for 3000000 keys; this one has them for 10000"));
    let workload = from(&format!("{text}levelhead.keydigits=binary")).unwrap();
    assert_eq!((workload.keys.key_bytes(), workload.keys.capacity()), (4, 1 << 32));
}

#[test]
fn an_override_is_told_as_such() {
    let mut properties = Properties::parse("w", "recordcount=5").unwrap();
    properties.set_assignment("target=fast").unwrap();
    let error = CoreWorkload::from_properties(&properties).unwrap_err();
    assert!(error.to_string().starts_with("override: target=fast is not allowed"), "{error}");
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let text = "recordcount=5
        redis.host=localhost
        hdrhistogram.percentiles=95,99
        levelhead.valuebytes=64
        fieldlength=10
        workload=site.ycsb.workloads.TimeSeriesWorkload";
    let workload = from(text).unwrap();
    assert_eq!(workload.values.longest_bytes(), 64);
    let expected = [
        "w:2: redis.host is not known and has no effect",
        "w:5: fieldlength has no effect: levelhead.valuebytes sets the value length",
        "w:6: workload=site.ycsb.workloads.TimeSeriesWorkload has no effect: only the core \
         workload is built in",
    ];
    assert_eq!(workload.warnings, expected);
}

#[test]
fn fields_of_the_command_line_win_over_the_value_length_of_a_file() {
    let file = "recordcount=5\nlevelhead.valuebytes=1024\n";
    let with = |settings: &[(&str, &str)]| {
        let mut properties = Properties::parse("w", file).unwrap();
        for (name, value) in settings {
            properties.set(name, value);
        }
        CoreWorkload::from_properties(&properties).unwrap()
    };
    let longest = |settings: &[(&str, &str)]| {
        let workload = with(settings);
        assert!(workload.warnings.is_empty(), "{:?}", workload.warnings);
        workload.values.longest_bytes()
    };
    assert_eq!(longest(&[]), 1024);
    assert_eq!(longest(&[("fieldlength", "50")]), 500);
    assert_eq!(longest(&[("fieldcount", "3"), ("fieldlength", "50")]), 150);
    let both = with(&[("fieldlength", "50"), ("levelhead.valuebytes", "7")]);
    assert_eq!(both.values.longest_bytes(), 7);
    let told = "override: fieldlength has no effect: levelhead.valuebytes sets the value length";
    assert_eq!(both.warnings, [told]);
}

#[test]
fn what_changes_the_experiment_and_cannot_be_honoured_is_told() {
    let workload = from("recordcount=5\nmaxexecutiontime=60\ndataintegrity=true").unwrap();
    let told = workload.warnings.join("; ");
    assert!(told.contains("w:2: maxexecutiontime=60 has no effect: a run ends with"), "{told}");
    assert!(told.contains("w:3: dataintegrity=true has no effect: every value"), "{told}");
}

#[test]
fn a_flag_of_the_command_line_is_called_by_its_name() {
    let mut properties = Properties::parse("w", "recordcount=5").unwrap();
    properties.set_by_flag("--records", "recordcount", "0");
    let error = CoreWorkload::from_properties(&properties).unwrap_err().to_string();
    assert!(
        error.starts_with("--records 0 is not allowed; allowed: a whole number from 1"),
        "{error}"
    );
}

#[test]
fn trailing_blanks_do_no_harm() {
    assert_eq!(from("recordcount=5  \ninsertorder=ordered\t").unwrap().record_count, 5);
}

#[test]
fn lengths_of_mixgraph_have_its_names_and_bounds() {
    let pareto = "recordcount=7\nfieldcount=1\nfieldlengthdistribution=pareto\n";
    let workload = from(&format!("{pareto}value_k=0.5\nvalue_sigma=20\nmix_max_value_size=99"));
    let expected =
        FieldLengths::Pareto { pareto: Pareto { k: 0.5, sigma: 20.0 }, min: 10, max: 99 };
    let values = workload.unwrap().values;
    assert_eq!(values, ValueRecipe::new(1, expected, ValueForm::Synthetic));
    assert!(error(&format!("{pareto}value_k=0")).contains("a number from 0.001 to 10"));
    assert!(error("recordcount=7\nlevelhead.updatereads=yes").contains("false, true"));
    let ignored = from("recordcount=7\nvalue_sigma=20\nlevelhead.valuebytes=10").unwrap();
    assert!(ignored.warnings[0].contains("value_sigma has no effect"), "{:?}", ignored.warnings);
}

#[test]
fn keys_and_scans_of_mixgraph_have_its_names_and_the_published_fit_by_default() {
    let ranges =
        |text: &str| from(&format!("recordcount=50\nrequestdistribution=keyranges\n{text}"));
    let hotness = TwoTermExponential { a: 14.18, b: -2.917, c: 0.0164, d: -0.08082 };
    let fit = KeyRanges { count: 30, hotness, keys: PowerLaw { a: 0.002_312, b: 0.3467 } };
    let default = ranges("").unwrap();
    assert_eq!(default.request_distribution, RequestDistribution::KeyRanges(fit));
    let text = "keyrange_num=50\nkeyrange_dist_a=1\nkeyrange_dist_b=2\nkeyrange_dist_c=3\n\
                keyrange_dist_d=4\nkey_dist_a=5\nkey_dist_b=6\nscanlengthdistribution=pareto\n\
                iter_k=0.5\niter_sigma=7\nmix_max_scan_len=8";
    let set = ranges(text).unwrap();
    let hotness = TwoTermExponential { a: 1.0, b: 2.0, c: 3.0, d: 4.0 };
    let own = KeyRanges { count: 50, hotness, keys: PowerLaw { a: 5.0, b: 6.0 } };
    assert_eq!(set.request_distribution, RequestDistribution::KeyRanges(own));
    let distribution = LengthDistribution::Pareto(Pareto { k: 0.5, sigma: 7.0 });
    assert_eq!(set.scans.lengths, ScanLengths { min: 1, max: 8, distribution });
    assert!(set.warnings.is_empty(), "{:?}", set.warnings);
}

#[test]
fn what_mixgraph_cannot_draw_by_is_refused() {
    let table = [
        ("keyrange_num=6", "keyrange_num=6 is not allowed; allowed: as many ranges as records are"),
        ("keyrange_num=0", "allowed: a whole number from 1 to 1048576"),
        (
            "keyrange_dist_a=x",
            "w:3: keyrange_dist_a=x is not allowed; allowed: a number from -1000",
        ),
        ("keyrange_dist_b=1001", "allowed: a number from -1000 to 1000"),
        ("keyrange_dist_d=1000", "keyrange_num, and finite for all"),
        (
            "keyrange_dist_a=0\nkeyrange_dist_c=-1",
            "w:3: keyrange_dist_a=0 is not allowed; allowed:",
        ),
        ("key_dist_a=0", "w:3: key_dist_a=0 is not allowed; allowed: a number from 0.000000001"),
        ("key_dist_b=NaN", "w:3: key_dist_b=NaN is not allowed"),
        ("iter_k=0", "w:3: iter_k=0 is not allowed; allowed: a number from 0.001 to 10"),
        ("iter_sigma=1e7", "allowed: a number from 0.001 to 1000000"),
        ("mix_max_scan_len=0", "allowed: a whole number from 1"),
        ("scanlengthdistribution=gpd", "allowed: uniform, zipfian, pareto"),
    ];
    for (text, expected) in table {
        let usual = if text.contains("keyrange_num") { "" } else { "\nkeyrange_num=5" };
        let text = format!("recordcount=5\nrequestdistribution=keyranges\n{text}{usual}");
        let error = error(&text);
        assert!(error.contains(expected), "{text:?} gave {error:?}");
    }
    let few = error("recordcount=5\nrequestdistribution=keyranges");
    assert!(few.starts_with("keyrange_num=30 (default) is not allowed"), "{few}");
    assert!(from("recordcount=5").is_ok(), "other distributions have no ranges");
}

#[test]
fn options_of_mixgraph_that_go_by_another_name_here_are_told() {
    let text =
        "recordcount=5\nmix_get_ratio=0.83\nsine_a=1000\nvalue_theta=0\nseeknexts=3\niter_k=2";
    let expected = [
        "w:2: mix_get_ratio=0.83 has no effect: set readproportion",
        "w:3: sine_a=1000 has no effect: the rate is constant: set target",
        "w:6: iter_k has no effect: seeknexts sets the length of scans",
    ];
    assert_eq!(from(text).unwrap().warnings, expected);
}

#[test]
fn the_skew_is_ycsb_s_unless_it_is_set() {
    for (name, usual, set) in [
        ("zipfian", RequestDistribution::Zipfian, RequestDistribution::ZipfianOf { theta: 1.2 }),
        ("latest", RequestDistribution::Latest, RequestDistribution::LatestOf { theta: 1.2 }),
    ] {
        let lines = format!("recordcount=5\nrequestdistribution={name}");
        assert_eq!(from(&lines).unwrap().request_distribution, usual);
        // Saved results contain the settings in this form.
        let same = from(&format!("{lines}\nzipfian.theta=0.99")).unwrap();
        assert_eq!(format!("{:?}", same.request_distribution), format!("{usual:?}"));
        let skewed = from(&format!("{lines}\nzipfian.theta=1.2")).unwrap();
        assert_eq!((skewed.request_distribution, skewed.warnings), (set, Vec::new()));
    }
    let idle = from("recordcount=5\nzipfian.theta=1.2").unwrap().warnings;
    assert_eq!(idle, ["w:2: zipfian.theta has no effect: requests are uniform"]);
    let words = error("recordcount=5\nzipfian.theta=1.0");
    assert!(
        words.contains("zipfian.theta=1.0 is not allowed; allowed: a number beside 1"),
        "{words}"
    );
    assert!(error("recordcount=5\nzipfian.theta=11").contains("from 0.01 to 10"));
}
