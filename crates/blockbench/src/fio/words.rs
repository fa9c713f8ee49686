//! Options of fio without effect on the simulation, and known options that are not supported.

/// The reasons for ignoring options, and the options.
const PASSED_OVER: [(&str, &[&str]); 8] = [
    (
        "all jobs go to the one drive, each from its offset on",
        &[
            "allow_file_create",
            "allow_mounted_write",
            "create_fsync",
            "create_on_open",
            "create_serialize",
            "directory",
            "fallocate",
            "file_service_type",
            "filename",
            "filename_format",
            "nr_files",
            "nrfiles",
            "opendir",
            "openfiles",
            "overwrite",
            "unlink",
            "unlink_each_loop",
            "unique_filename",
        ],
    ),
    (
        "there is no page cache: operations go to the drive",
        &[
            "buffered",
            "direct",
            "end_fsync",
            "fadvise_hint",
            "fsync_on_close",
            "invalidate",
            "odirect",
            "uncached",
        ],
    ),
    (
        "operations take no time of the host's",
        &[
            "clocksource",
            "cpumask",
            "cpus_allowed",
            "cpus_allowed_policy",
            "disable_clat",
            "disable_lat",
            "disable_slat",
            "fixedbufs",
            "force_async",
            "gtod_cpu",
            "gtod_reduce",
            "hipri",
            "hugepage-size",
            "io_submit_mode",
            "iodepth_batch",
            "iodepth_batch_complete",
            "iodepth_batch_complete_max",
            "iodepth_batch_complete_min",
            "iodepth_batch_submit",
            "iomem",
            "iomem_align",
            "libblkio_driver",
            "libblkio_path",
            "lockmem",
            "mem",
            "mem_align",
            "nice",
            "nonvectored",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "thinktime_spin",
            "thread",
            "threads",
            "userspace_reap",
            "cmd_type",
        ],
    ),
    (
        "the drive serves all commands alike",
        &[
            "cmdprio",
            "cmdprio_bssplit",
            "cmdprio_class",
            "cmdprio_hint",
            "cmdprio_percentage",
            "log_prio",
            "prio",
            "prioclass",
            "priohint",
        ],
    ),
    (
        "what is written is checked, and its bytes make no difference to the drive",
        &[
            "buffer_compress_chunk",
            "buffer_compress_percentage",
            "buffer_pattern",
            "dedupe_global",
            "dedupe_mode",
            "dedupe_percentage",
            "dedupe_working_set_percentage",
            "do_verify",
            "refill_buffers",
            "scramble_buffers",
            "zero_buffers",
        ],
    ),
    (
        "--seed is the seed of all randomness",
        &["allrandrepeat", "random_generator", "randrepeat", "randseed", "softrandommap"],
    ),
    (
        "results have a form of their own",
        &[
            "clat_percentiles",
            "description",
            "group_reporting",
            "lat_percentiles",
            "log_avg_msec",
            "log_compression",
            "log_hist_msec",
            "log_offset",
            "log_unix_epoch",
            "name",
            "new_group",
            "per_job_logs",
            "percentile_list",
            "significant_figures",
            "slat_percentiles",
            "unified_rw_reporting",
            "unit_base",
            "write_bw_log",
            "write_hist_log",
            "write_iops_log",
            "write_lat_log",
        ],
    ),
    (
        "an operation that fails ends the job, and a rate that is not kept is in the results",
        &[
            "continue_on_error",
            "error_dump",
            "ignore_error",
            "rate_cycle",
            "rate_iops_min",
            "rate_min",
            "ratecycle",
            "rateminimum",
            "ratemin",
        ],
    ),
];

/// Known options that are not supported, and their replacements.
const NOT_READ: [(&str, &str); 28] = [
    ("exitall", "give each job an end of its own"),
    ("exit_what", "give each job an end of its own"),
    ("fill_device", "give --precondition sequential, or size=100%"),
    ("flow", "give each job a rate"),
    ("flow_sleep", "give each job a rate"),
    ("fdp", "the drive has no placement"),
    ("file_append", "give offset"),
    ("iodepth_low", "leave it out"),
    ("iodepth_mode", "give a run for each iodepth: --iodepth 1,4,16"),
    ("latency_target", "give a run for each iodepth: --iodepth 1,4,16"),
    ("percentage_random", "make two jobs of it, one at random and one in order"),
    ("ramp_time", "the drive begins in the state that --precondition says; leave it out"),
    ("random_sequence_stride", "leave it out"),
    ("read_iolog", "give --replay FILE"),
    ("sg_write_mode", "leave it out"),
    ("sprandom", "give --precondition random"),
    ("ss", "give runtime; the drive begins in the state that --precondition says"),
    ("steadystate", "give runtime; the drive begins in the state that --precondition says"),
    ("sync", "give fsync=1, a flush behind each write"),
    ("thinktime_iotime", "give thinktime_blocks"),
    ("trim_percentage", "give rw=randrw and --trim-percent"),
    ("verify", "every block that is read is checked in any case; leave it out"),
    ("write_iolog", "leave it out"),
    ("writefua", "give fsync=1, a flush behind each write"),
    ("zonemode", "the drive has no zones"),
    ("zonesize", "the drive has no zones"),
    ("zonerange", "the drive has no zones"),
    ("zoneskip", "the drive has no zones"),
];

/// The I/O engines that access a drive with one operation at a time, and those with several.
const ONE_AT_A_TIME: [&str; 11] = [
    "dev-dax",
    "fusion-aw-sync",
    "libpmem",
    "mmap",
    "pmemblk",
    "psync",
    "pvsync",
    "pvsync2",
    "splice",
    "sync",
    "vsync",
];
const SEVERAL: [&str; 12] = [
    "cpp_null",
    "guasi",
    "io_uring",
    "io_uring_cmd",
    "libaio",
    "libblkio",
    "null",
    "posixaio",
    "sg",
    "sgunmap",
    "solarisaio",
    "windowsaio",
];

/// Returns the reason for ignoring an option; `None` if it is not ignored.
pub(super) fn passed_over(name: &str) -> Option<&'static str> {
    PASSED_OVER.iter().find(|(_, names)| names.contains(&name)).map(|(why, _)| *why)
}

/// Returns the replacement of a known option that is not supported.
pub(super) fn not_read(name: &str) -> Option<&'static str> {
    NOT_READ.iter().find(|(known, _)| *known == name).map(|(_, instead)| *instead)
}

/// Returns the known names, as suggestions for misspelled ones.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let passed_over = PASSED_OVER.iter().flat_map(|(_, names)| names.iter().copied());
    passed_over.chain(NOT_READ.iter().map(|(name, _)| *name))
}

/// Whether an I/O engine has several operations in flight; `None` if it does not access a drive.
pub(super) fn does_several(engine: &str) -> Option<bool> {
    if ONE_AT_A_TIME.contains(&engine) {
        return Some(false);
    }
    SEVERAL.contains(&engine).then_some(true)
}
