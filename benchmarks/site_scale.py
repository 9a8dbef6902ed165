"""How long the site takes and how large it is: synthetic matrices, and the run that is published here.

    .venv/bin/python benchmarks/site_scale.py [CELLS ...]

Prints for each size: pages and bytes without the report, bytes with it, seconds that each keeps a processor busy, and
the most memory that the process has held by then. The cells are those of `report_scale`; 0 stands for the published
run, whose models are taken from its archive.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

from benchmarks.report_scale import results
from harness.record.archive import decompress, unpack
from harness.report.model import Results
from harness.report.site import site_files
from harness.report.site_writer import packed_logs, whole_site

_PUBLISHED = Path(__file__).parents[1] / "reports" / "published"


def _published() -> tuple[Results, dict[tuple[str, str], bytes], bytes]:
    found = Results.from_json(json.loads(decompress(_PUBLISHED / "results.json.xz")))
    models = unpack(_PUBLISHED / "models.tar.xz")
    named = {
        (variant.case, variant.name): models[f"{variant.case}-{variant.name}.onnx"]
        for case in found.cases
        for variant in case.variants
    }
    return found, named, packed_logs(_PUBLISHED)


def main() -> None:
    """Measure each size that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="*", type=int, default=[0, 1_000, 10_000])
    for cells in parser.parse_args().cells:
        found, models, logs = _published() if cells == 0 else (results(cells), {}, b"")
        began = time.process_time()
        pages = site_files(found, models, "https://site.example/")
        paged = time.process_time()
        whole = whole_site(found, models, logs, "https://site.example/")
        done = time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{len(found.cells):6} cells: {len(pages)} files, {sum(map(len, pages.values())) / 1e6:.1f} MB in "
            f"{paged - began:.1f} s; whole {sum(map(len, whole.values())) / 1e6:.1f} MB in {done - paged:.1f} s; "
            f"{peak:.0f} MiB"
        )


if __name__ == "__main__":
    main()
