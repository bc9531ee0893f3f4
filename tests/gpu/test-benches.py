"""The benchmark of the CUDA kernels on the emulated GPU, in small: it goes through to its end, and says what goals.py judges.

    test-benches.py SOURCE-ROOT BUILD-FOLDER BENCHMARK
"""
import re
import sys

from trying import run, unlike

import matrix
import parts
from tap import Tap

BENCHMARK = sys.argv[3]


def all_case(tap):
    done = run(BENCHMARK)
    shares = parts.shares_of_copy(done.stdout)
    complaints = unlike(done, 0) + ['no share of a copy: ' + kernel for kernel in parts.AT_COPY_SPEED if kernel not in shares]
    tap.case('/gpu/benches/all is gone through, and what is wanted of a copy told', complaints)


def roofs_case(tap):
    done = run(BENCHMARK, 'the roofs alone')
    complaints = unlike(done, 0) + ([] if re.search(matrix.ROOFS, done.stdout) else ['no roofs'])
    tap.case('/gpu/benches/roofs come alone', complaints + ['more is told'] * ('% of' in done.stdout))


if __name__ == '__main__':
    cases = Tap()
    roofs_case(cases)
    all_case(cases)
    sys.exit(cases.finish())
