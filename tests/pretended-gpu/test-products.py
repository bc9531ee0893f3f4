#!/usr/bin/env python3
"""tests/pretended-gpu/test-products.py SOURCE-ROOT KERNELS.a TOOLKIT - builds products.c over the real cuBLASLt.

cuBLASLt's static library takes the CUDA runtime from whatever it is linked with, here gpu.c. (The shared one carries a runtime
of its own, which wants a driver to prove that it is NVIDIA's; NVIDIA's licence, 1.2, has that left alone.) NVIDIA's toolkits have it, and Debian's
nvidia-cuda-dev; PyPI's wheels do not. It is linked only when the test runs, since the program is as large as the library.
FORESHARD_CUBLASLT names another one.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial

LIBRARY = 'libcublasLt_static.a'
DEBIAN = '/usr/lib/x86_64-linux-gnu'


def skip(why):
    print('1..0 # SKIP ' + why)
    sys.exit(0)


def find_library(toolkit):
    folders = [os.path.join(toolkit, name) for name in ('lib64', 'lib')] + [DEBIAN]
    named = os.environ.get('FORESHARD_CUBLASLT')
    for path in [named] if named else [os.path.join(folder, LIBRARY) for folder in folders]:
        if os.path.exists(path):
            return os.path.realpath(path)
    skip('no %s %s' % (named or LIBRARY, '(FORESHARD_CUBLASLT)' if named else "in the toolkit, nor Debian's nvidia-cuda-dev"))


def find_headers(library):
    """Those of the library's own toolkit, one to four folders up."""
    folder = os.path.dirname(library)
    for _ in range(4):
        folder = os.path.dirname(folder)
        if os.path.exists(os.path.join(folder, 'include', 'cuda.h')):
            return os.path.join(folder, 'include')
    skip('no cuda.h beside ' + LIBRARY)


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout


def wanted(libraries, headers):
    """Every name of the runtime that the libraries are linked to, and every one of the driver that they may look for."""
    names = set(re.findall(r' U (\w*cuda[A-Z_]\w+)$', said('nm', '--undefined-only', *libraries), re.M))
    with open(os.path.join(headers, 'cuda.h'), encoding='utf-8', errors='replace') as file:
        text = file.read()
    names.update(re.findall(r'CUDAAPI\s+(cu[A-Z]\w+)\(', text))
    names.update(re.findall(r'^\s*#\s*define cu\w+\s+(cu[A-Z]\w+)$', text, re.M))
    return names


def write_others(path, names, have):
    with open(path, 'w', encoding='utf-8') as file:
        for name in sorted(names - have):
            file.write('int %s(void);\nint %s(void) {\n    return 801; /* not supported */\n}\n' % (name, name))


def build(folder, root, kernels, library, headers, toolkit):
    def path(name):
        return os.path.join(folder, name)

    here = os.path.join(root, 'tests', 'pretended-gpu')
    flags = ['-std=c17', '-O1', '-w', '-fPIC', '-D_GNU_SOURCE', '-I' + root]
    run = partial(subprocess.run, check=True)
    run(['cc', *flags, '-I' + headers, '-c', os.path.join(here, 'gpu.c'), '-o', path('gpu.o')])
    write_others(path('others.c'), wanted([library, kernels], headers), set(re.findall(r' [TtDdBb] (\w+)$', said('nm', path('gpu.o')), re.M)))
    # By this name cuBLASLt loads the driver: it finds the one that is loaded already.
    run(['cc', *flags, '-shared', '-Wl,-soname,libcuda.so.1', path('gpu.o'), path('others.c'), '-o', path('libcuda.so.1')])
    run(['cc', *flags, *said('pkg-config', '--cflags', 'glib-2.0').split(), '-I' + os.path.join(toolkit, 'include'), '-c',
         os.path.join(here, 'products.c'), '-o', path('products.o')])
    places = [os.path.join(toolkit, name) for name in ('lib64', 'lib')]
    beside = os.path.join(os.path.dirname(library), 'libculibos.a')
    run(['c++', '-o', path('products'), path('products.o'), kernels, library, *([beside] if os.path.exists(beside) else []),
         path('libcuda.so.1'), *('-L' + place for place in places), *('-Wl,-rpath,' + place for place in [folder, *places]),
         *said('pkg-config', '--libs', 'glib-2.0').split(), '-lpthread', '-ldl'])
    return path('products')


def main():
    root, kernels, toolkit = sys.argv[1:]
    library = find_library(toolkit)
    headers = find_headers(library)
    if not all(shutil.which(tool) for tool in ('nm', 'cc', 'c++', 'pkg-config')):
        skip('nm, cc, c++ or pkg-config is missing')
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder, root, kernels, library, headers, toolkit)
        sys.exit(subprocess.run([program, '--tap'], check=False).returncode)


main()
