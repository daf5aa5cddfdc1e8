"""What tools/bench_report is made of: figures read, blocks of a page, and charts."""
