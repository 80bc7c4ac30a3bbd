"""Run every benchmark."""

from benchmarks import smooth

smooth.main()
