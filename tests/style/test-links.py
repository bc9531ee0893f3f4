#!/usr/bin/env python3
"""tests/style/test-links.py FORESHARD LINKS-MPI - foreshard links neither MPI nor CUDA.

Whoever only predicts needs neither, and a laptop must not fail to start for want of a GPU driver.
ldd is asked, since a library may bring MPI along. LINKS-MPI is a program that does link MPI ("" if
there is none): it shows that the question can be answered with yes.
"""
import os
import re
import shutil
import subprocess
import sys

from tap import Tap

BANNED = re.compile(r'^(libmpi|libopen-rte|libopen-pal|libpmix|libcuda|libcudart|libcublas|libcudnn|'
                    r'libnccl|libnvidia|libcurand)')


def banned_libraries(ldd_output):
    names = [line.split()[0] for line in ldd_output.split('\n') if line.strip()]
    return [name for name in (os.path.basename(name) for name in names) if BANNED.match(name)]


def links(program):
    run = subprocess.run(['ldd', program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         check=False)
    output = run.stdout.decode('utf-8', 'replace')
    if run.returncode:
        return [program + ': ldd failed: ' + output.strip()]
    return [program + ': links ' + name for name in banned_libraries(output)]


def main(foreshard, links_mpi):
    tap = Tap()
    planted = ('\tlinux-vdso.so.1 (0x1)\n\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x1)\n'
               '\tlibglib-2.0.so.0 => /lib/libglib-2.0.so.0 (0x1)\n\tlibcudart.so.13 => not found\n')
    found = banned_libraries(planted)
    tap.case('/style/links/reads-ldd',
             [] if found == ['libmpi.so.40', 'libcudart.so.13'] else ['found ' + ' '.join(found)])
    if not shutil.which('ldd'):
        tap.skip('/style/links/catches-planted', 'ldd is missing')
        tap.skip('/style/links/foreshard', 'ldd is missing')
        return tap.finish()
    if links_mpi:
        tap.case('/style/links/catches-planted',
                 [] if links(links_mpi) else ['a program that links MPI was let pass'])
    else:
        tap.skip('/style/links/catches-planted', 'built without MPI')
    if os.path.exists(foreshard):
        tap.case('/style/links/foreshard', links(foreshard))
    else:
        tap.skip('/style/links/foreshard', 'not built: ' + os.path.basename(foreshard))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2]))
