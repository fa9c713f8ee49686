#!/usr/bin/env python3
"""Makes the tables of docs/reproduction.md of the results in papers.

    docs/tables.py                             all tables, of the results that are committed
    docs/tables.py NAME=REPORT_DIRECTORY ...   takes results over first
    docs/tables.py --check                     changes nothing; 1 if a table is not what the results give
    docs/tables.py --against NAME=REPORT_DIRECTORY ...   changes nothing; 1 if the results are not what such a report has
    docs/tables.py --unpack NAME=REPORT_DIRECTORY ...    puts there what the simulations of NAME gave, for --resume=any

REPORT_DIRECTORY is what `levelhead reproduce PAPER --out REPORT_DIRECTORY` wrote. What its tables need is copied to
papers/NAME, with `run.json`: the command, and the size of the experiments in words; and with what each simulation gave
(`simulations.tar.xz`), of which the command makes the whole report again in a second (papers/README.md). A table of docs/reproduction.md stands
between `<!-- table NAME FILE -->` and `<!-- end -->`, and is what papers/NAME/FILE.csv has: `comparisons`, or a
figure of bars, with a row for each series and a column for each of what it is over. Between `<!-- run NAME -->`
and `<!-- end -->` stands what `run.json` says; below `<!-- tally all -->` how many claims come to which verdict. All other text is written by hand and stays as it is.
"""

import csv
import json
import re
import shutil
import sys
import tarfile
from pathlib import Path

DOCS = Path(__file__).parent
DOCUMENT = DOCS / "reproduction.md"
RESULTS = DOCS.parent / "papers"
# What each simulation gave.
ARCHIVE = "simulations.tar.xz"
MADE = re.compile(r"<!-- (table|run|tally) (\S+)( \S+)? -->\n.*?<!-- end -->", re.DOTALL)


def row(cells):
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def comparisons(rows):
    headings = ["what", "paper", "ours", "verdict", "why"]
    return [row(headings), "|" + "---|" * len(headings)] + [
        row([r["what"], r["paper"], r["ours"], verdict(r), r["sentence"]]) for r in rows
    ]


def verdict(of):
    """The verdict of a row, and whether it counts."""
    remarks = {"yes": "", "fitted": ", fitted", "no": ", not counted"}
    return of["holds"] + ("" if of["holds"] == "not applicable" else remarks[of["counted"]])


def bars(rows):
    """A row for each series, a column for each category; the unit, which all headings end with, in the corner."""
    over, *series = list(rows[0])
    unit = series[0].rpartition(" (")[2].rstrip(")")
    lines = [row([unit, *(r[over] for r in rows)]), "|" + "---|" * (len(rows) + 1)]
    for heading in series:
        values = (f"{float(r[heading]):.0f}" if r[heading] else "" for r in rows)
        lines.append(row([heading.removesuffix(f" ({unit})"), *values]))
    return lines


def table(name, figure):
    with open(RESULTS / name / f"{figure}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return (comparisons if figure == "comparisons" else bars)(rows)


def run(name):
    of = json.loads((RESULTS / name / "run.json").read_text(encoding="utf-8"))
    return [f"`{of['command']}`: {of['scale']}."]


def tally():
    """A row for each directory: its claims by verdict, and those that are fitted."""
    headings = ["papers", "claims", "holds", "deviates", "does not hold", "fitted besides"]
    lines = [row(headings), "|" + "---|" * len(headings)]
    for path in sorted(RESULTS.glob("*/comparisons.csv")):
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        verdicts = [r["holds"] for r in rows if r["counted"] == "yes"]
        fitted = [r["holds"] for r in rows if r["counted"] == "fitted"]
        counts = [str(verdicts.count(verdict)) for verdict in headings[2:5]]
        words = ", ".join(f"{fitted.count(v)} {v}" for v in headings[2:5] if v in fitted)
        lines.append(row([path.parent.name, str(len(verdicts)), *counts, words]))
    return lines


def made(text):
    """The document with all that is made of results."""

    def replace(match):
        kind, name, figure = match[1], match[2], (match[3] or "").strip()
        lines = {"table": lambda: table(name, figure), "run": lambda: run(name), "tally": tally}[kind]()
        return "\n".join([match[0].splitlines()[0], *lines, "<!-- end -->"])

    return MADE.sub(replace, text)


def take_over(name, report, text):
    """Copies what the tables of `name` need out of a report."""
    made_of = [match for match in MADE.finditer(text) if (match[1], match[2]) == ("table", name)]
    # What has no table in the document is held against its command all the same.
    figures = {match[3].strip() for match in made_of} | {"comparisons"}
    into = RESULTS / name
    into.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        shutil.copyfile(report / f"{figure}.csv", into / f"{figure}.csv")
    document = json.loads((report / "report.json").read_text(encoding="utf-8"))
    of_run = {key: document[key] for key in ("levelhead", "command", "scale")}
    (into / "run.json").write_text(json.dumps(of_run, indent=2) + "\n", encoding="utf-8")
    pack(report / "simulations", into / ARCHIVE)
    print(f"{name}: {len(made_of)} tables")


def pack(simulations, archive):
    """Writes the files of a directory to an archive: the same bytes for the same files."""

    def same_for_all(member):
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mode = 0o644
        return member

    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for file in sorted(simulations.glob("*.json")):
            tar.add(file, f"simulations/{file.name}", filter=same_for_all)


def unpack(name, report):
    """Puts what the simulations of `name` gave into a directory, as `levelhead reproduce --resume=any` takes it."""
    with tarfile.open(RESULTS / name / ARCHIVE) as tar:
        tar.extractall(report, filter="data")


def hold_against(name, report):
    """Ends with what differs if the results that are committed are not those of a report."""
    for file in sorted((RESULTS / name).glob("*.csv")):
        ours, theirs = (path.read_text(encoding="utf-8") for path in (file, report / file.name))
        if ours != theirs:
            wrong = [f"- {a}\n+ {b}" for a, b in zip(ours.splitlines(), theirs.splitlines()) if a != b]
            sys.exit(f"{file} is not what its command gives: docs/tables.py {name}={report}\n" + "\n".join(wrong))


def main():
    arguments = sys.argv[1:]
    does = {"--against": hold_against, "--unpack": unpack}.get(arguments[0] if arguments else "")
    if does:
        for argument in arguments[1:]:
            name, _, directory = argument.partition("=")
            does(name, Path(directory))
        return
    is_check = arguments == ["--check"]
    if not is_check and any("=" not in a for a in arguments):
        sys.exit(__doc__)
    text = DOCUMENT.read_text(encoding="utf-8")
    if not is_check:
        for argument in arguments:
            name, _, directory = argument.partition("=")
            take_over(name, Path(directory), text)
    fresh = made(text)
    if is_check and fresh != text:
        wrong = [a for a, b in zip(text.splitlines(), fresh.splitlines()) if a != b]
        sys.exit(f"{DOCUMENT} is not what papers/ gives: run docs/tables.py. First: {wrong[:1]}")
    if not is_check:
        DOCUMENT.write_text(fresh, encoding="utf-8")


if __name__ == "__main__":
    main()
