"""Keep a compact record of each run under `reports/history/`, and read the past of each cell from them."""
