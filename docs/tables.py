#!/usr/bin/env python3
"""Puts the tables of reports into docs/reproduction.md.

    docs/tables.py NAME=REPORT_DIRECTORY ...

REPORT_DIRECTORY is what `levelhead reproduce PAPER --out REPORT_DIRECTORY` wrote. A table of docs/reproduction.md
that stands between `<!-- table NAME FILE -->` and `<!-- end -->` becomes what FILE.csv of that report has:
`comparisons`, or a figure of bars, with a row for each series and a column for each of what it is over. All other text stays as it is. It says which tables
it made, and ends with 1 if NAME has none.
"""

import csv
import re
import sys
from pathlib import Path

DOCUMENT = Path(__file__).with_name("reproduction.md")
TABLE = re.compile(r"<!-- table (\S+) (\S+) -->\n.*?<!-- end -->", re.DOTALL)


def row(cells):
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def comparisons(rows):
    headings = ["what", "paper", "ours", "verdict", "why"]
    columns = ["what", "paper", "ours", "holds", "sentence"]
    return [row(headings), "|" + "---|" * len(headings)] + [row([r[c] for c in columns]) for r in rows]


def bars(rows):
    """A row for each series, a column for each category; the unit, which all headings end with, in the corner."""
    over, *series = list(rows[0])
    unit = series[0].rpartition(" (")[2].rstrip(")")
    lines = [row([unit, *(r[over] for r in rows)]), "|" + "---|" * (len(rows) + 1)]
    for heading in series:
        values = (f"{float(r[heading]):.0f}" if r[heading] else "" for r in rows)
        lines.append(row([heading.removesuffix(f" ({unit})"), *values]))
    return lines


def table(directory, name):
    with open(directory / f"{name}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return (comparisons if name == "comparisons" else bars)(rows)


def main():
    if len(sys.argv) < 2 or any("=" not in a for a in sys.argv[1:]):
        sys.exit(__doc__)
    text = DOCUMENT.read_text(encoding="utf-8")
    for argument in sys.argv[1:]:
        report, _, directory = argument.partition("=")
        made = []

        def replace(match):
            if match[1] != report:
                return match[0]
            made.append(match[2])
            lines = table(Path(directory), match[2])
            return "\n".join([f"<!-- table {match[1]} {match[2]} -->", *lines, "<!-- end -->"])

        text = TABLE.sub(replace, text)
        if not made:
            sys.exit(f"{DOCUMENT} has no table of {report}")
        print(f"{report}: {', '.join(made)}")
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
