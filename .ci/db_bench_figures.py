"""Reads what .ci/db_bench-figures left in a directory and prints the figures."""
import json
import re
import statistics
import sys
from pathlib import Path

PAIR = 16 + 400
LEVELS = 7
STALLS = {
    "level0_slowdown": "l0_slowdowns",
    "level0_numfiles": "l0_stops",
    "slowdown for pending_compaction_bytes": "pending_slowdowns",
    "stop for pending_compaction_bytes": "pending_stops",
    "memtable_compaction": "memtable_stops",
    "memtable_slowdown": "memtable_slowdowns",
}


def options(path):
    """{(section, name): value} of a file of options."""
    section, found = None, {}
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found[section, name] = value
    return found


def check_options(directory):
    """Every option asked for must stand in the OPTIONS file that the run left."""
    asked, left = options(directory / "asked.ini"), options(directory / "OPTIONS")
    wrong = [f"{name}: asked {value}, ran with {left.get((section, name))}"
             for (section, name), value in asked.items() if left.get((section, name)) != value]
    if wrong:
        sys.exit("options that did not take effect:\n  " + "\n  ".join(wrong))
    return {name: value for (section, name), value in asked.items() if section != "[Version]"}


def db_bench_output(text):
    """Seconds of the two benchmarks, stall counters after each of the four steps, tickers."""
    seconds = [float(s) for s in re.findall(r"^(?:fillrandom|overwrite) .*? ([\d.]+) seconds", text, re.M)]
    counts = re.findall(r"^Stalls\(count\): (.*)$", text, re.M)
    times = re.findall(r"^Cumulative stall: (\d+):(\d+):([\d.]+) ", text, re.M)
    steps = []
    for line, (h, m, s) in zip(counts, times, strict=True):
        counters = {name: int(n) for n, name in re.findall(r"(\d+) ([^,]+)(?:,|$)", line)}
        steps.append({ours: counters[theirs] for theirs, ours in STALLS.items()}
                     | {"seconds": int(h) * 3600 + int(m) * 60 + float(s)})
    tickers = {name: int(n) for name, n in re.findall(r"^(rocksdb\.\S+) COUNT : (\d+)$", text, re.M)}
    if len(seconds) != 2 or len(steps) != 4:
        sys.exit("db_bench.txt is not what this db_bench was expected to print")
    return seconds, steps, tickers


class Tree:
    """The levels as the events of the LOG build them, and what was done since the last `take`."""

    def __init__(self):
        self.levels = [{} for _ in range(LEVELS)]
        self.sizes, self.jobs = {}, {}
        self.reset()

    def reset(self):
        self.flushes, self.compactions, self.moves, self.most_l0 = [], [], [], len(self.levels[0])
        self.trivial_moves, self.first, self.last = 0, None, None

    def event(self, e):
        job, kind = e.get("job"), e["event"]
        self.first, self.last = self.first or e["time_micros"], e["time_micros"]
        if kind == "table_file_creation":
            self.sizes[e["file_number"]] = e["file_size"]
            self.jobs.setdefault(job, {"outputs": []})["outputs"].append(e["file_number"])
        elif kind == "flush_finished":
            made = self.jobs.pop(job)["outputs"]
            self.levels[0] |= {f: self.sizes[f] for f in made}
            self.flushes.append(sum(self.sizes[f] for f in made))
            self.agree(e)
        elif kind == "compaction_started":
            inputs = {int(k[len("files_L"):]): v for k, v in e.items() if k.startswith("files_L")}
            self.jobs[job] = {"outputs": [], "inputs": inputs}
        elif kind == "trivial_move":
            self.trivial_moves += 1
        elif kind == "compaction_finished":
            self.compaction(self.jobs.pop(job), e)
            self.agree(e)

    def compaction(self, job, e):
        start, out = min(job["inputs"]), e["output_level"]
        read = {level: [self.levels[level].pop(f) for f in files] for level, files in job["inputs"].items()}
        made = {f: self.sizes[f] for f in job["outputs"]}
        self.levels[out] |= made
        assert sum(made.values()) == e["total_output_size"], e
        self.compactions.append({
            "kind": f"L{start}->L{out}",
            "start_files": len(read[start]), "start_bytes": sum(read[start]),
            "next_files": len(read.get(out, [])) if out != start else 0,
            "next_bytes": sum(read.get(out, [])) if out != start else 0,
            "written_files": len(made), "written_bytes": sum(made.values()),
            "seconds": e["compaction_time_micros"] / 1e6,
            "cpu_seconds": e["compaction_time_cpu_micros"] / 1e6,
            "records_in": e["num_input_records"], "records_out": e["num_output_records"],
        })

    def move(self, file, to, e_bytes):
        start = next(n for n, level in enumerate(self.levels) if file in level)
        self.levels[to][file] = self.levels[start].pop(file)
        assert self.levels[to][file] == e_bytes
        self.moves.append({"kind": f"L{start}->L{to}", "bytes": e_bytes})

    def agree(self, e):
        """The LOG writes the number of files of each level beside each event."""
        self.most_l0 = max(self.most_l0, e["lsm_state"][0])
        ours = [len(level) for level in self.levels]
        assert ours == e["lsm_state"], (ours, e)

    def take(self):
        step = {
            "flushes": len(self.flushes), "flushed_bytes": sum(self.flushes),
            "compactions": kinds(self.compactions),
            "compaction_read_bytes": sum(c["start_bytes"] + c["next_bytes"] for c in self.compactions),
            "compaction_written_bytes": sum(c["written_bytes"] for c in self.compactions),
            "trivial_moves": self.trivial_moves,
            "moved": {k: {"files": sum(m["kind"] == k for m in self.moves),
                          "bytes": sum(m["bytes"] for m in self.moves if m["kind"] == k)}
                      for k in sorted({m["kind"] for m in self.moves})},
            "most_l0_files": self.most_l0,
            "seconds_first_to_last_event": round(((self.last or 0) - (self.first or 0)) / 1e6, 1),
            "levels": [{"files": len(level), "bytes": sum(level.values())} for level in self.levels],
        }
        every = self.flushes, self.compactions
        self.reset()
        return step, every


def kinds(compactions):
    """Medians of each kind of compaction, and the speed of its reading and writing together."""
    result = {}
    for kind in sorted({c["kind"] for c in compactions}):
        some = [c for c in compactions if c["kind"] == kind]
        moved = sum(c["start_bytes"] + c["next_bytes"] for c in some)
        result[kind] = {"count": len(some)} | {
            f"median_{name}": statistics.median(c[name] for c in some)
            for name in ("start_files", "start_bytes", "next_files", "next_bytes",
                         "written_files", "written_bytes", "seconds", "cpu_seconds")
        } | {
            "read_bytes_per_second": round(moved / sum(c["seconds"] for c in some)),
            "records_kept": round(sum(c["records_out"] for c in some) / sum(c["records_in"] for c in some), 4),
        }
    return result


def log_steps(path):
    """The four steps: load, its settling, overwrite, its settling."""
    tree, steps, settling = Tree(), [], False

    def close():
        step, (flushes, compactions) = tree.take()
        steps.append(step)
        everything["flushes"] += flushes
        everything["compactions"] += compactions

    everything = {"flushes": [], "compactions": [], "full_memtables": []}
    for line in path.read_text().splitlines():
        if "] Manual flush start." in line:
            close()
        elif "] Manual flush finished" in line:
            settling = True  # The next flush is of the next phase: all memtables are in tables.
        elif match := re.search(r"Moving #(\d+) to level-(\d+) (\d+) bytes", line):
            tree.move(*map(int, match.groups()))
        elif "EVENT_LOG_v1" in line:
            event = json.loads(line.split("EVENT_LOG_v1 ", 1)[1])
            if settling and event["event"] == "flush_started":
                close()
                settling = False
            if event.get("flush_reason") == "Write Buffer Full":
                everything["full_memtables"].append(event["num_entries"])
            tree.event(event)
    close()
    if len(steps) != 4:
        sys.exit(f"LOG has {len(steps)} steps in place of 4")
    return steps, everything


def main():
    output, directory = sys.argv[1], Path(sys.argv[2])
    pairs, write_rate, background_rate = map(int, sys.argv[3:])
    ran_with = check_options(directory)
    seconds, stalls, tickers = db_bench_output((directory / "db_bench.txt").read_text())
    steps, everything = log_steps(directory / "LOG")
    # Two counts of the same: the events of the LOG and the tickers.
    flushed = sum(everything["flushes"])
    written = sum(c["written_bytes"] for c in everything["compactions"])
    assert written == tickers["rocksdb.compact.write.bytes"]
    # This ticker has some 140 bytes a flush besides its table.
    assert 0 <= tickers["rocksdb.flush.write.bytes"] - flushed < 1000 * len(everything["flushes"])

    none = dict.fromkeys(stalls[0], 0)
    for step, now, before in zip(steps, stalls, [none, *stalls]):
        step["stalls"] = {name: round(now[name] - before[name], 3) for name in now}
    phases = []
    for name, took, writing, settling in zip(("load", "overwrite"), seconds, steps[::2], steps[1::2]):
        phases.append({"phase": name, "puts": pairs, "user_bytes": pairs * PAIR, "seconds": took,
                       "puts_per_second": round(pairs / took), "writing": writing, "settling": settling})
    result = {"pairs": pairs, "write_rate": write_rate, "background_rate": background_rate,
              "options": ran_with, "phases": phases, "all_compactions": kinds(everything["compactions"]),
              "median_pairs_of_full_memtable": statistics.median(everything["full_memtables"]),
              "wal_bytes": tickers["rocksdb.wal.bytes"],
              "compaction_read_ticker": tickers["rocksdb.compact.read.bytes"]}
    if output == "json":
        print(json.dumps(result, indent=1))
    else:
        table(result)


def table(result):
    steps = [(f"{p['phase']}{suffix}", p, p[step])
             for p in result["phases"] for step, suffix in (("writing", ""), ("settling", " settles"))]
    mib = lambda n: f"{n / 2**20:,.0f}"
    counted = lambda kind: lambda p, s: s["compactions"].get(kind, {}).get("count", 0)
    moved = lambda p, s: sum(m["files"] for m in s["moved"].values())
    every_kind = sorted({k for _, _, s in steps for k in s["compactions"]})
    rows = [
        ("puts per second", lambda p, s: f"{p['puts_per_second']:,}" if s is p["writing"] else ""),
        ("flushed, per user byte", lambda p, s: f"{s['flushed_bytes'] / p['user_bytes']:.3f}"),
        ("compaction wrote, per user byte", lambda p, s: f"{s['compaction_written_bytes'] / p['user_bytes']:.3f}"),
        ("compaction read, per user byte", lambda p, s: f"{s['compaction_read_bytes'] / p['user_bytes']:.3f}"),
        ("flushes", lambda p, s: s["flushes"]),
        *((f"compactions {kind}", counted(kind)) for kind in every_kind),
        ("trivial moves", lambda p, s: s["trivial_moves"]),
        ("files moved by them", moved),
        ("most files in L0", lambda p, s: s["most_l0_files"]),
        *((name.replace("_", " ").replace("l0", "L0"), lambda p, s, name=name: s["stalls"][name])
          for name in STALLS.values()),
        ("seconds stalled", lambda p, s: f"{s['stalls']['seconds']:.1f}"),
        ("seconds until settled", lambda p, s: "" if s is p["writing"] else s["seconds_first_to_last_event"]),
        *((f"L{n} after: files, MiB", lambda p, s, n=n: f"{s['levels'][n]['files']}, {mib(s['levels'][n]['bytes'])}")
          for n in range(LEVELS) if any(s["levels"][n]["files"] for _, _, s in steps)),
    ]
    print(f"{'':32}" + "".join(f"{name:>20}" for name, _, _ in steps))
    for name, value in rows:
        print(f"{name:32}" + "".join(f"{value(p, s):>20}" for _, p, s in steps))
    print(f"\na full memtable has {result['median_pairs_of_full_memtable']:,.0f} pairs")
    print(f"\n{'compactions, medians':24}{'count':>6}{'start level':>18}{'next level':>18}{'written':>18}"
          f"{'seconds':>9}{'read MiB/s':>12}")
    for kind, k in result["all_compactions"].items():
        cells = "".join(f"{k[f'median_{c}_files']:>7g}, {mib(k[f'median_{c}_bytes']):>5} MiB"
                        for c in ("start", "next", "written"))
        print(f"{kind:24}{k['count']:>6}{cells}{k['median_seconds']:>9.1f}{k['read_bytes_per_second'] / 2**20:>12,.0f}")


main()
